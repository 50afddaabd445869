"""What a gateway does now: its connections by the ids of hosts and clients, its streams, its nodes, its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tmuxctl.errors import Unreachable
from tmuxctl.gateway import subjects
from tmuxctl.gateway.server.administration import ask_nodes
from tmuxctl.gateway.server.authority.accounts import Accounts
from tmuxctl.gateway.server.authority.claims import public_key, read_name
from tmuxctl.gateway.server.authority.members import Member, Members
from tmuxctl.gateway.server.monitoring import ask_server
from tmuxctl.gateway.server.running import find_process
from tmuxctl.gateway.server.settings import GatewayFiles
from tmuxctl.results import GatewayConnection, GatewayEvents, GatewayNode, GatewayReplica, GatewayStatus
from tmuxctl.untrusted import fits

_CONNECTION = {"ip!": str, "port!": int, "start!": str, "in_bytes!": int, "out_bytes!": int, "pending_bytes!": int}
_STATE = {"messages!": int, "bytes!": int, "first_seq!": int, "last_seq!": int}
_REPLICA = {"name!": str, "current": bool, "offline": bool, "lag": int}
_CLUSTER = {"leader": str, "replicas": [_REPLICA]}
_STORE = {"id!": str, "stream_detail": [{"name!": str, "state!": _STATE, "cluster": _CLUSTER}]}
_ABOUT = {"start!": str, "version!": str, "connections!": int, "mem!": int}


def look(files: GatewayFiles) -> GatewayStatus:
    """What the server that runs tells, and on the gateway's first machine all nodes of its cluster. NotFound `no_gateway`,
    Unreachable `not_running` and `no_monitoring`."""
    settings = files.read_settings()
    process = find_process(files)
    if process is None:
        raise Unreachable("the gateway is not running", reason="not_running", hint="start it: tmuxctl gateway up")
    port = settings.monitor_port
    about = ask_server(port, "/varz")
    found = ask_server(port, "/connz?auth=1&limit=8192").get("connections")
    members, accounts = Members(files), Accounts(files)
    known = {one.id: one for one in members.list_members()}
    stores = {settings.server_name: ask_server(port, "/jsz?streams=1")}
    nodes: tuple[GatewayNode, ...] = ()
    if settings.nodes and accounts.exist:
        stores = ask_nodes(files, "JSZ")
        nodes = tuple(_list_nodes((settings.server_name, *settings.nodes), ask_nodes(files, "VARZ"), stores))
    tenants = {public_key(one.store): one.name for one in accounts.tenants}
    memory = about.get("mem")
    return GatewayStatus(
        process,
        str(about.get("version")),
        str(about.get("start")),
        (*settings.urls, *settings.websocket_urls),
        memory if isinstance(memory, int) else 0,
        tuple(_list_connections(found, known)),
        tuple(_list_streams(stores, tenants)),
        nodes,
    )


def _list_connections(found: Any, known: Mapping[str, Member]) -> Iterable[GatewayConnection]:
    if not fits(found, [_CONNECTION]):
        return
    for one in found:
        name = read_name(one.get("jwt"))
        member = known.get(name)
        yield GatewayConnection(
            name if subjects.is_id(name) else None,
            member.role if member else None,
            member.label if member else None,
            f"{one['ip']}:{one['port']}",
            one["start"],
            one["in_bytes"],
            one["out_bytes"],
            one["pending_bytes"],
        )


def _list_streams(stores: Mapping[str, Any], tenants: Mapping[str, str]) -> Iterable[GatewayEvents]:
    """The stream of each tenant, as the node tells it that leads it; else as any that has it. A node tells the lag of others if
    it leads, and of itself in no case."""
    found: dict[str, tuple[bool, GatewayEvents]] = {}
    for node, answer in stores.items():
        if not fits(answer, {"account_details!": [_STORE]}):
            continue
        for store in answer["account_details"]:
            for one in store.get("stream_detail", ()):
                if one["name"] == subjects.STREAM:
                    made = _make_stream(tenants.get(store["id"], store["id"]), one)
                    leads = made.leader in (node, None)
                    if made.tenant not in found or (leads and not found[made.tenant][0]):
                        found[made.tenant] = leads, made
    return [made for _, made in sorted(found.values(), key=lambda pair: pair[1].tenant)]


def _make_stream(tenant: str, detail: Mapping[str, Any]) -> GatewayEvents:
    state, cluster = detail["state"], detail.get("cluster", {})
    replicas = tuple(
        GatewayReplica(one["name"], one.get("lag", 0), one.get("current", False), one.get("offline", False))
        for one in cluster.get("replicas", ())
    )
    numbers = state["messages"], state["bytes"], state["first_seq"], state["last_seq"]
    return GatewayEvents(tenant, *numbers, cluster.get("leader") or None, replicas)


def _list_nodes(names: Iterable[str], abouts: Mapping[str, Any], stores: Mapping[str, Any]) -> Iterable[GatewayNode]:
    for name in names:
        about: Any = abouts.get(name)
        store = stores.get(name)
        if not fits(about, _ABOUT):
            yield GatewayNode(name, True)
            continue
        meta = store.get("meta_cluster") if isinstance(store, dict) else None
        leads = isinstance(meta, dict) and meta.get("leader") == name
        facts = about["start"], about["version"], about["connections"], about["mem"]
        yield GatewayNode(name, False, *facts, leads)
