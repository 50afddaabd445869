"""MCP over HTTP: `POST /mcp`, stateless, with the tools of `tmuxctl mcp`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import combinations
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from tmuxctl.errors import Denied, NotFound
from tmuxctl.operations import RIGHTS
from tmuxctl.surfaces.server.admission.guard import PRINCIPAL
from tmuxctl.value import changed

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from tmuxctl.access import CallerAccess
    from tmuxctl.surfaces.server.app import Served

PATH = "/mcp"


class McpEndpoint:
    """What answers at the path, as an ASGI application. `managers` are the SDK's, one for each set of rights: a manager serves one
    server, and a server has one list of tools."""

    def __init__(self) -> None:
        self.managers: dict[tuple[str, ...], Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as the SDK does, with what the caller's token lets it do."""
        access: CallerAccess = scope[PRINCIPAL]
        access.demand("read", "MCP")
        if not access.unlimited:
            # a tool may name any session, and several
            hint = "use a token for all sessions, or the routes below /v1"
            raise Denied("MCP reaches sessions that this token is not for", reason="sessions", hint=hint)
        if not self.managers:
            hint = "install the extra: pip install 'tmux-control-plane[mcp]'"
            raise NotFound("the MCP SDK is not installed", reason="no_mcp", hint=hint)
        rights = tuple(right for right in RIGHTS if right in access.rights)
        await self.managers[rights].handle_request(scope, receive, send)

    @asynccontextmanager
    async def running(self, served: Served) -> AsyncIterator[None]:
        """Ready to answer, while this holds."""
        try:
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            from tmuxctl.surfaces.mcp import server
        except ModuleNotFoundError:
            yield
            return
        async with AsyncExitStack() as stack:
            for count in range(len(RIGHTS)):
                for others in combinations(RIGHTS[1:], count):
                    tools = server.ToolServer(served.control, _client((RIGHTS[0], *others)))
                    manager = StreamableHTTPSessionManager(server.make_protocol_server(tools), stateless=True)
                    self.managers[(RIGHTS[0], *others)] = manager
                    await stack.enter_async_context(manager.run())
            yield


def add_mcp(app: FastAPI, served: Served) -> Any:
    """The part of a server that speaks MCP; without the extra `mcp` its path says what is missing."""
    endpoint = McpEndpoint()
    app.router.routes.append(Route(PATH, endpoint))
    return endpoint.running(served)


def _client(rights: tuple[str, ...]) -> Any:
    from tmuxctl.surfaces.mcp.client import read_settings

    found = read_settings({**os.environ, "TMUXCTL_MCP_OWNER": os.environ.get("TMUXCTL_MCP_OWNER") or "http"})
    # the clients are other processes than those above this one
    found = changed(found, processes=frozenset(), own_session=None, allowed=rights)
    return found if set(rights) - {RIGHTS[0]} else changed(found, tools="read")
