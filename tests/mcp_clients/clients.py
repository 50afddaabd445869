"""The independent clients, each with the same methods: that of the npm SDK, and that of the Python SDK in both eras."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

PATIENCE = 60.0
"""Seconds after which an answer is missed."""

NODE_MODULES = Path(os.environ.get("TMUXCTL_MCP_NODE") or Path(sys.prefix) / "mcp-node")
"""The folder with the npm SDK's node_modules, which `make nightly SUITES=mcp` fills."""

SERVER = (sys.executable, "-m", "tmuxctl", "mcp")


TOOLS = {
    *("pty_create", "pty_ask", "pty_exec", "pty_write", "pty_sendkey", "pty_wait"),
    *("pty_read", "pty_decide", "pty_list", "pty_resize", "pty_kill", "pty_list_keys"),
}


class Refused(Exception):
    """The server answered with an error of the protocol."""

    def __init__(self, code: int | None, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class Client(Protocol):
    """A connection to a server of its own. Results are JSON as it is sent; Refused is raised for an error of the protocol."""

    modern: bool
    """Whether there is no handshake: protocol 2026-07-28."""

    def begin(self, action: str, *given: Any) -> Future[Any]:
        """Begin what the npm SDK calls `action`; cancelling the future takes the request back."""

    def close(self) -> None:
        """End the connection, and with it the server."""


class NpmClient:
    """The client of npm's @modelcontextprotocol/sdk, in a process of node's."""

    modern = False

    def __init__(self, environment: Mapping[str, str] = {}) -> None:
        words = ["node", str(Path(__file__).with_name("npm_client.mjs")), str(NODE_MODULES), *SERVER]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        self.numbers = itertools.count(1)
        connected: Future[Any] = Future()
        self.wanted: dict[int, Future[Any]] = {0: connected}
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        connected.result(PATIENCE)

    def begin(self, action: str, *given: Any) -> Future[Any]:
        number = next(self.numbers)
        future: Future[Any] = Future()
        self.wanted[number] = future
        future.add_done_callback(lambda one: self._send({"cancel": number}) if one.cancelled() else None)
        self._send({"id": number, "do": action, "with": given})
        return future

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stdout.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            future = self.wanted.pop(message["id"])
            if future.set_running_or_notify_cancel():
                if error := message.get("error"):
                    future.set_exception(Refused(error["code"], error["message"]))
                else:
                    future.set_result(message["result"])
        for future in self.wanted.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(Refused(None, "the client ended"))


class PythonClient:
    """The client of the Python SDK, in threads of this process."""

    def __init__(self, *, modern: bool, environment: Mapping[str, str] = {}) -> None:
        mcp, threads = import_module("mcp"), import_module("anyio.from_thread")
        self.modern = modern
        server = mcp.StdioServerParameters(command=SERVER[0], args=list(SERVER[1:]), env={**os.environ, **environment})
        # a client that is told a version by name asks the server nothing about itself: `auto` asks, and takes the newest
        self.client: Any = mcp.Client(server, mode="auto" if modern else "legacy")
        self.portals = threads.start_blocking_portal()
        self.portal = self.portals.__enter__()
        self.connection = self.portal.wrap_async_context_manager(self.client)
        self.connection.__enter__()

    def begin(self, action: str, *given: Any) -> Future[Any]:
        future: Future[Any] = self.portal.start_task_soon(self._run, action, given)
        return future

    def close(self) -> None:
        try:
            self.connection.__exit__(None, None, None)
        finally:
            self.portals.__exit__(None, None, None)

    async def _run(self, action: str, given: Sequence[Any]) -> Any:
        try:
            return await self._act(action, given)
        except import_module("mcp.shared.exceptions").MCPError as error:
            raise Refused(error.code, error.message) from None

    async def _act(self, action: str, given: Sequence[Any]) -> Any:
        client = self.client
        if action == "describe":
            return {
                "protocol": client.protocol_version,
                "serverInfo": _to_json(client.server_info),
                "capabilities": _to_json(client.server_capabilities),
                "instructions": client.instructions,
            }
        if action == "callTool":
            progress: list[Any] = []

            async def keep(done: float, total: float | None, message: str | None) -> None:
                progress.append({"progress": done, "total": total, "message": message})

            name, arguments = given
            result = await client.call_tool(name, arguments, PATIENCE, progress_callback=keep)
            return {**_to_json(result), "progress": progress}
        names = {
            "listTools": "list_tools",
            "listResources": "list_resources",
            "listResourceTemplates": "list_resource_templates",
            "readResource": "read_resource",
            "listPrompts": "list_prompts",
            "getPrompt": "get_prompt",
            "ping": "send_ping",
        }
        return _to_json(await getattr(client, names[action])(*given))


def _to_json(value: Any) -> Any:
    return None if value is None else value.model_dump(mode="json", by_alias=True, exclude_none=True)


class Connection:
    """A client with what the tests do again and again."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.modern = client.modern

    def ask(self, action: str, *given: Any) -> Any:
        """The answer of the server to what the npm SDK calls `action`."""
        return self.client.begin(action, *given).result(PATIENCE)

    def begin(self, tool: str, /, **arguments: Any) -> Future[Any]:
        """A call of a tool that is under way."""
        return self.client.begin("callTool", tool, arguments)

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """The result of a tool, whether it failed or not."""
        return self.begin(tool, **arguments).result(PATIENCE)

    def fields(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The fields of the result of a tool that does not fail."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), text_of(result)
        fields: dict[str, Any] = result["structuredContent"]
        return fields

    def failure(self, tool: str, /, **arguments: Any) -> str:
        """The text with which a tool fails."""
        result = self.call(tool, **arguments)
        assert result.get("isError"), result
        return text_of(result)

    def screen(self, tool: str, /, **arguments: Any) -> str:
        """The screen that comes with a tool's result, which a model reads as text."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), text_of(result)
        return str(result["structuredContent"].get("screen") or text_of(result))


def text_of(result: Any) -> str:
    """The text of a tool's result."""
    return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
