"""MCP at `/mcp`, as the SDK's own client sees it: the tools that the token lets it call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client


def talk(server: Any, token: str, conversation: Callable[[mcp.Client], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{server.port}/mcp", http_client=http)
            async with mcp.Client(transport) as client:
                return await conversation(client)

    return anyio.run(main)


def make_token(name: str, *words: str) -> str:
    made = subprocess.run(
        [sys.executable, "-m", "tmuxctl", "token", "new", name, *words], capture_output=True, text=True, check=True
    )
    return made.stdout.strip()


@pytest.mark.night
def test_a_client_starts_drives_and_ends_a_session(server):
    async def conversation(client: mcp.Client) -> None:
        created = await client.call_tool("pty_create", {"name": "one", "command": ["sh"]})
        assert not created.is_error, created
        wrote = await client.call_tool(
            "pty_write", {"session_id": "one", "input": "echo m''ark\\r", "wait_for": "^mark$"}
        )
        assert wrote.structured_content["matched"]
        assert "mark" in wrote.structured_content["screen"]
        killed = await client.call_tool("pty_kill", {"session_id": "one"})
        assert killed.structured_content["killed"]

    talk(server, server.token, conversation)
    assert server.get("/v1/sessions").json["sessions"] == []


def test_a_token_to_read_has_the_tools_that_read(server):
    server.new("one", "sh", "-c", "echo mark; exec cat")
    server.post("/v1/sessions/one/wait", {"text": "mark", "since": "screen"})

    async def conversation(client: mcp.Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"pty_list", "pty_list_keys", "pty_read", "pty_wait"}
        read = await client.call_tool("pty_read", {"session_id": "one"})
        assert "mark" in read.structured_content["screen"]

    talk(server, make_token("reader", "--right", "read"), conversation)


def test_a_token_without_the_right_to_start_or_end_cannot(server):
    server.new("one", "cat")

    async def conversation(client: mcp.Client) -> None:
        for name, arguments in (("pty_create", {"command": ["cat"]}), ("pty_kill", {"session_id": "one"})):
            refused = await client.call_tool(name, arguments)
            assert refused.is_error
            assert "denied" in refused.content[0].text  # type: ignore[union-attr]

    talk(server, make_token("typist", "--right", "read", "--right", "write"), conversation)
    assert [one["name"] for one in server.get("/v1/sessions").json["sessions"]] == ["one"]


@pytest.mark.night
@pytest.mark.parametrize("words", [("--only", "build-*"), ("--right", "write")])
def test_a_token_for_some_sessions_or_without_reading_has_no_tools(server, words):
    token = make_token("limited", *words)
    reply = server.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, tcp=True, token=token)
    assert reply.status == 403
