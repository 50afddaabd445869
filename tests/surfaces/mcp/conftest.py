"""The server as a client sees it: a process of `tmuxctl mcp`, spoken to by the SDK's own client over its pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import IO, Any

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


class Lines:
    """A client that writes whatever line it likes, to a server whose input and output these are."""

    def __init__(self, to_server: IO[str], from_server: IO[str]) -> None:
        self.to_server, self.from_server = to_server, from_server
        self.number = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert self.request("initialize", about)["result"]["serverInfo"]["name"] == "tmuxctl"

    def write(self, line: str) -> None:
        self.to_server.write(line + "\n")
        self.to_server.flush()

    def begin(self, method: str, params: dict[str, Any]) -> int:
        """Ask for something; returns the number of the request."""
        self.number += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}))
        return self.number

    def answer(self) -> dict[str, Any]:
        """What the server says next."""
        found: dict[str, Any] = json.loads(self.from_server.readline())
        return found

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        number = self.begin(method, params)
        while (found := self.answer()).get("id") != number:
            pass
        return found

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a tool, whether it failed or not."""
        found: dict[str, Any] = self.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        return found


@pytest.fixture
def lines() -> Callable[[IO[str], IO[str]], Lines]:
    """Makes a client that writes what it likes."""
    return Lines


@pytest.fixture
def server(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A server of its own, which is ended behind the test."""
    words = [sys.executable, "-m", "tmuxctl", "mcp"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.fixture
def client(server: subprocess.Popen[str]) -> Lines:
    """Such a client of that server."""
    assert server.stdin
    assert server.stdout
    return Lines(server.stdin, server.stdout)
