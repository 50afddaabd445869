"""The configuration of nats-server, which takes JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import EVENT_BYTES, MAX_PAYLOAD
from tmuxctl.gateway.server.authority.accounts import TrustedAccounts
from tmuxctl.gateway.server.authority.certificates import AUTHORITY, ROUTE, ROUTE_KEY, ServerCertificate
from tmuxctl.gateway.server.authority.claims import SignedUser
from tmuxctl.gateway.server.nodes import LeafWay
from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings
from tmuxctl.timing import TIMING

CLUSTER = "tmuxctl"

STORE_BYTES = 64 << 30
"""Bytes that the streams of all tenants may have on a server's disk."""

STREAM_CONFIG: Mapping[str, Any] = {
    "name": subjects.STREAM,
    "subjects": [subjects.events(subjects.ANY)],
    "retention": "limits",
    "storage": "file",
    "num_replicas": 1,
    "discard": "old",
    "max_bytes": 1 << 30,
    "max_age": 7 * 86400 * 10**9,
    "max_msgs": -1,
    # so that one host cannot push out what the others have
    "max_msgs_per_subject": 10_000,
    # with its headers
    "max_msg_size": EVENT_BYTES + 1024,
    "max_consumers": -1,
    "duplicate_window": 120 * 10**9,
    "allow_direct": True,
    "deny_delete": True,
    "deny_purge": True,
    "republish": {"src": subjects.events(subjects.ANY), "dest": "tmc.{{wildcard(1)}}.feed"},
}
"""The stream of events of each tenant: a week, 10,000 events of 64 KiB each host, 1 GiB."""


def make_config(
    files: GatewayFiles,
    settings: GatewaySettings,
    certificate: ServerCertificate,
    trusted: TrustedAccounts,
    leaf: LeafWay | None = None,
) -> dict[str, Any]:
    """The configuration of a server; `leaf`: that of a leaf node, which has no stream of its own."""
    tls = {"cert_file": certificate.cert, "key_file": certificate.key, "min_version": "1.2", "timeout": 5}
    made = {
        "server_name": settings.server_name,
        "host": settings.host,
        "port": settings.port,
        # before TLS the server says nothing, and a client believes nothing
        "tls": {**tls, "handshake_first": True},
        "websocket": {"host": settings.host, "port": settings.websocket_port, "tls": tls},
        "http": f"127.0.0.1:{settings.monitor_port}",
        "ping_interval": "5s",
        "ping_max": 2,
        "write_deadline": "5s",
        "max_payload": MAX_PAYLOAD,
        "max_pending": 16 << 20,
        "max_connections": 8192,
        "max_subscriptions": 4096,
        "authorization": {"timeout": 5},
        **_trust(files, trusted),
    }
    if leaf is not None:
        made["leafnodes"] = {"reconnect": "1s", "remotes": _leaf_remotes(files, leaf, trusted)}
        return made
    made["jetstream"] = {
        "store_dir": files.path("store"),
        "max_memory_store": 64 << 20,
        "max_file_store": STORE_BYTES,
        # a machine that loses its power loses what came since
        "sync_interval": f"{TIMING.gateway.sync_seconds}s",
    }
    if settings.nodes:
        made["cluster"] = {
            "name": CLUSTER,
            # one connection to each other node: with several, a leader that was cut off may be sent events again seconds before
            # it hears of the new leader, and takes minutes to drop what it stored of them (ADR 64)
            "pool_size": -1,
            "host": settings.host,
            "port": settings.cluster_port,
            "tls": {**_route_tls(files), "verify": True},
            "routes": list(settings.route_urls),
            # members have the addresses that reach the nodes from where they are
            "no_advertise": True,
        }
    if settings.leaf_port:
        made["leafnodes"] = {
            "host": settings.host,
            "port": settings.leaf_port,
            "tls": {**_route_tls(files), "handshake_first": True},
            "no_advertise": True,
        }
    return made


def write_config(files: GatewayFiles, name: str, config: Mapping[str, Any]) -> str:
    """Write a configuration to a private file in the folder, in the place of an earlier one; its path."""
    return files.replace(name, json.dumps(config, indent=1).encode())


def _trust(files: GatewayFiles, trusted: TrustedAccounts) -> dict[str, Any]:
    """What is known of accounts: each server keeps all of them, and asks the others for what is newer."""
    return {
        "operator": trusted.operator,
        "system_account": trusted.system,
        "resolver": {
            "type": "full",
            "dir": files.path("accounts"),
            "allow_delete": False,
            "interval": f"{TIMING.gateway.accounts_seconds}s",
            # how long a key of an unknown account waits to be refused: others are asked whether they know it
            "timeout": "1s",
        },
        # what the server keeps already is left as it is, if it was issued later
        "resolver_preload": dict(trusted.accounts),
    }


def _route_tls(files: GatewayFiles) -> dict[str, Any]:
    return {
        "cert_file": files.path(ROUTE),
        "key_file": files.path(ROUTE_KEY),
        "ca_file": files.path(AUTHORITY),
        "min_version": "1.2",
        "timeout": 5,
    }


def _leaf_remotes(files: GatewayFiles, leaf: LeafWay, trusted: TrustedAccounts) -> list[dict[str, Any]]:
    """The two connections of a leaf node: of its tenant, and of the servers' account, by which it learns which keys ended."""
    tls = {"ca_file": files.path(AUTHORITY), "handshake_first": True, "timeout": 5}
    users = ((leaf.account, leaf.user, "leaf.creds"), (trusted.system, leaf.observer, "leaf-observer.creds"))
    return [
        {"urls": list(leaf.urls), "account": account, "credentials": _write_user(files, name, user), "tls": tls}
        for account, user, name in users
    ]


def _write_user(files: GatewayFiles, name: str, user: SignedUser) -> str:
    """Write a user's key as nats-server reads it: a private file of two parts, each between lines that name it; its path."""
    parts = (("NATS USER JWT", user.claims), ("USER NKEY SEED", user.seed))
    text = "".join(f"-----BEGIN {what}-----\n{data}\n------END {what}------\n\n" for what, data in parts)
    return files.replace(name, text.encode())
