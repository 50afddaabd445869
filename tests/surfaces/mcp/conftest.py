"""The server as a client sees it: a process of `tmuxctl mcp`, spoken to by the SDK's own client over its pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp
import pytest


class Tools:
    """A client's tools: each call gives the fields of the reply, or the text of an error."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def __call__(self, name: str, /, **arguments: Any) -> Any:
        """The fields of a reply that is no error."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def fail(self, name: str, /, **arguments: Any) -> str:
        """The text of an error."""
        result = await self.client.call_tool(name, arguments)
        assert result.is_error, result.content
        text: str = result.content[0].text
        return text


HANDSHAKE, MODERN = "legacy", "2026-07-28"
"""The eras: one begins with `initialize`, in the other every request says its version."""


@pytest.fixture(params=[HANDSHAKE, MODERN])
def era(request: pytest.FixtureRequest) -> str:
    """Each era, for what a client sees of both."""
    return str(request.param)


@pytest.fixture
def talk(place: Path) -> Callable[..., Any]:
    """Runs a conversation (an async function that takes `Tools`) with a server of its own."""

    def run(conversation: Callable[[Any], Awaitable[Any]], mode: str = MODERN, **env: str) -> Any:
        server = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "tmuxctl", "mcp"], env={**os.environ, **env}
        )

        async def main() -> Any:
            async with mcp.Client(server, mode=mode) as client:
                return await conversation(Tools(client))

        return anyio.run(main)

    return run
