"""The configuration of nats-server, which takes JSON.

Hosts and clients are users of one account without a stream; the stream EVENTS belongs to another one, whose four subjects the
first imports. So no member can name a subject of the stream's own interface, not even as the subject for a reply: stock NATS
publishes an answer of a stream wherever the question wanted it, with the rights of the server. In one account a client that may
do no more than read events deleted the stream so (measured on 2.15.1; docs/adr/0059).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import nkeys

from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import EVENT_BYTES, MAX_PAYLOAD
from tmuxctl.gateway.server.certificates import ServerCertificate
from tmuxctl.gateway.server.members import Member
from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings
from tmuxctl.state_files import make_private_file
from tmuxctl.timing import TIMING

ACCOUNT, STORE_ACCOUNT = "main", "main_store"
"""The account of a tenant, of which there is one by now, and the one that has its stream."""

STORE_BYTES = 2 << 30
"""Bytes that the server's store may have on disk."""

DIRECT_GET = f"$JS.API.DIRECT.GET.{subjects.STREAM}"
"""Where the stream is asked for what it holds (NATS ADR-31)."""

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
"""The stream of events: a week, 10,000 events of 64 KiB each host, 1 GiB."""


def make_config(
    files: GatewayFiles, settings: GatewaySettings, certificate: ServerCertificate, members: Iterable[Member]
) -> dict[str, Any]:
    """The configuration of the server, for these hosts and clients."""
    tls = {"cert_file": certificate.cert, "key_file": certificate.key, "min_version": "1.2", "timeout": 5}
    return {
        "server_name": settings.server,
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
        **_store_config(files),
        "accounts": {
            STORE_ACCOUNT: {
                "jetstream": {"max_memory": 0, "max_file": STORE_BYTES, "max_streams": 1},
                "exports": _EXPORTS,
            },
            # a server without any user takes everybody (2.15.1): the last member that is removed would open it
            ACCOUNT: {"imports": _IMPORTS, "users": [_make_unusable_user(), *map(_make_user, members)]},
        },
    }


def make_store_config(files: GatewayFiles, admin: str) -> dict[str, Any]:
    """The configuration of a server on a free port of loopback that has the same store and one user, who may change the stream;
    `admin` is the user's public nkey."""
    return {
        "host": "127.0.0.1",
        "port": -1,
        "ports_file_dir": files.folder,
        **_store_config(files),
        "accounts": {STORE_ACCOUNT: {"jetstream": "enabled", "users": [{"nkey": admin}]}},
    }


def write_config(files: GatewayFiles, name: str, config: Mapping[str, Any]) -> str:
    """Write a configuration to a private file in the folder, in the place of an earlier one; its path."""
    made = files.path(f".{name}.new")
    with suppress(FileNotFoundError):
        os.unlink(made)
    make_private_file(made, json.dumps(config, indent=1).encode())
    os.rename(made, files.path(name))
    return files.path(name)


def _store_config(files: GatewayFiles) -> dict[str, Any]:
    return {
        "jetstream": {
            "store_dir": files.path("store"),
            "max_memory_store": 64 << 20,
            "max_file_store": STORE_BYTES,
            # a machine that loses its power loses what came since
            "sync_interval": f"{TIMING.gateway.sync_seconds}s",
        }
    }


_EXPORTS = [
    {"service": subjects.events(subjects.ANY), "accounts": [ACCOUNT]},
    {"service": f"{DIRECT_GET}.{subjects.events(subjects.ANY)}", "accounts": [ACCOUNT]},
    {"service": DIRECT_GET, "accounts": [ACCOUNT], "response_type": "stream"},
    {"stream": subjects.feed(subjects.ANY), "accounts": [ACCOUNT]},
]

_IMPORTS = [
    {"service": {"account": STORE_ACCOUNT, "subject": subjects.events(subjects.ANY)}},
    {
        "service": {"account": STORE_ACCOUNT, "subject": f"{DIRECT_GET}.{subjects.events(subjects.ANY)}"},
        "to": subjects.last(subjects.ANY),
    },
    {"service": {"account": STORE_ACCOUNT, "subject": DIRECT_GET}, "to": subjects.READ},
    {"stream": {"account": STORE_ACCOUNT, "subject": subjects.feed(subjects.ANY)}},
]


def _make_unusable_user() -> dict[str, Any]:
    """A user with a key that nothing has, who may do nothing."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    denied = {"deny": [">"]}
    return {
        "nkey": nkeys.from_seed(seed).public_key.decode(),
        "permissions": {"publish": denied, "subscribe": denied},
    }


def _make_user(member: Member) -> dict[str, Any]:
    allowed = subjects.permissions(member.role, member.id)
    return {
        "nkey": member.nkey,
        "permissions": {
            "publish": {"allow": list(allowed.publish)},
            "subscribe": {"allow": list(allowed.subscribe)},
        },
    }
