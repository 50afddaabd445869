"""What a gateway does now: its connections by the ids of hosts and clients, its stream, its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tmuxctl.errors import Unreachable
from tmuxctl.gateway import subjects
from tmuxctl.gateway.server.members import Member, Members
from tmuxctl.gateway.server.monitoring import ask_server
from tmuxctl.gateway.server.running import find_process
from tmuxctl.gateway.server.settings import GatewayFiles
from tmuxctl.results import GatewayConnection, GatewayEvents, GatewayStatus
from tmuxctl.untrusted import fits

_CONNECTION = {"ip!": str, "port!": int, "start!": str, "in_bytes!": int, "out_bytes!": int, "pending_bytes!": int}
_STATE = {"messages!": int, "bytes!": int, "first_seq!": int, "last_seq!": int}


def look(files: GatewayFiles) -> GatewayStatus:
    """What the server that runs tells. NotFound `no_gateway`, Unreachable `not_running` and `no_monitoring`."""
    settings = files.read_settings()
    process = find_process(files)
    if process is None:
        raise Unreachable("the gateway is not running", reason="not_running", hint="start it: tmuxctl gateway up")
    port = settings.monitor_port
    about = ask_server(port, "/varz")
    found = ask_server(port, "/connz?auth=1&limit=8192").get("connections")
    known = {one.nkey: one for one in Members(files).list_members()}
    stores = ask_server(port, "/jsz?streams=1").get("account_details")
    memory = about.get("mem")
    return GatewayStatus(
        process,
        str(about.get("version")),
        str(about.get("start")),
        (*settings.urls, *settings.websocket_urls),
        memory if isinstance(memory, int) else 0,
        tuple(_list_connections(found, known)),
        _find_stream(stores),
    )


def _list_connections(found: Any, known: Mapping[str, Member]) -> Iterable[GatewayConnection]:
    for one in found if fits(found, [_CONNECTION]) else ():
        member = known.get(str(one.get("authorized_user")))
        yield GatewayConnection(
            member.id if member else None,
            member.role if member else None,
            member.label if member else None,
            f"{one['ip']}:{one['port']}",
            one["start"],
            one["in_bytes"],
            one["out_bytes"],
            one["pending_bytes"],
        )


def _find_stream(stores: Any) -> GatewayEvents | None:
    if not fits(stores, [{"stream_detail": [{"name!": str, "state!": _STATE}]}]):
        return None
    for one in (stream for store in stores for stream in store.get("stream_detail", ())):
        if one["name"] == subjects.STREAM:
            state = one["state"]
            return GatewayEvents(state["messages"], state["bytes"], state["first_seq"], state["last_seq"])
    return None
