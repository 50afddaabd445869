"""Sessions of another machine over HTTP, MCP, the library and the page."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mcp
import pytest
from machines.conftest import tmuxctl
from served import HttpServer

import tmuxctl as library

MACHINE, SHELL = "box", "box%2Fsh"


@pytest.fixture(autouse=True)
def box(site: Path) -> Iterator[None]:
    """A machine that is reached by a command, with a shell."""
    (site / MACHINE).mkdir()
    words = f"env -u XDG_STATE_HOME HOME={site / MACHINE} sh"
    assert tmuxctl("machine", "add", MACHINE, "--command", words, "--tmux-socket", "inner").status == 0
    assert tmuxctl("new", "box/sh", "--", "bash", "--norc").status == 0
    assert tmuxctl("new", "here", "--", "cat").status == 0
    yield
    tmuxctl("kill", "box/sh", "here", "--signal", "KILL")


@pytest.mark.night
def test_a_path_has_the_address_with_its_slash_escaped(start_server: Callable[..., HttpServer]):
    server = start_server()
    shown = server.get(f"/v1/sessions/{SHELL}").json
    assert (shown["machine"], shown["name"]) == (MACHINE, "sh")
    ran = server.post(f"/v1/sessions/{SHELL}/exec", {"command": ["echo", "far"]}).json
    assert (ran["output"], ran["session"]) == ("far\n", "box/sh")
    assert "far" in server.screen(SHELL)
    assert server.post("/v1/sessions", {"name": "box/t", "command": ["cat"]}).json["machine"] == MACHINE
    listed = server.get("/v1/sessions?machine=box").json["sessions"]
    assert [one["name"] for one in listed] == ["sh", "t"]
    assert [one["name"] for one in server.get("/v1/sessions").json["sessions"]] == ["here"]
    assert [one["name"] for one in server.get("/v1/machines").json["machines"]] == [MACHINE]
    assert server.call("DELETE", "/v1/sessions/box%2Ft").status == 200
    for strange in ("..%2Fsh", "box%2F..%2Fsh", "%2Fetc%2Fpasswd", "box%252Fsh"):
        assert server.get(f"/v1/sessions/{strange}").status in (400, 404), strange


@pytest.mark.night
def test_a_token_of_this_machine_is_told_nothing_of_others(start_server: Callable[..., HttpServer]):
    token = tmuxctl("token", "new", "mine", "--right", "read", "--only", "h*", "--json").result["token"]
    far = tmuxctl("token", "new", "far", "--right", "read", "--only", "box/*", "--json").result["token"]
    server = start_server("--all-machines")
    assert server.get(f"/v1/sessions/{SHELL}", tcp=True, token=token).status == 404
    assert server.get(f"/v1/sessions/{SHELL}", tcp=True, token=far).status == 200
    assert server.get("/v1/sessions?all_machines=true", tcp=True, token=token).status == 403
    assert server.get("/v1/sessions/here", tcp=True, token=far).status == 404
    assert server.get("/v1/machines", tcp=True, token=token).json["machines"] == []
    assert [one["name"] for one in server.get("/v1/machines", tcp=True, token=far).json["machines"]] == [MACHINE]


@pytest.mark.night
def test_events_and_the_page_are_of_all_machines_if_they_shall(start_server: Callable[..., HttpServer]):
    server = start_server("--all-machines")
    events = server.events("/v1/events")
    told = {events.found.get(timeout=20)["data"]["session"] for _ in range(2)}  # type: ignore[index]
    assert told == {"here", "box/sh"}
    page = server.get("/?plain=1").text
    assert "box/sh" in page
    printed = server.events(f"/v1/sessions/{SHELL}/events")
    server.post(f"/v1/sessions/{SHELL}/send", {"text": "echo told-$((40+2))"})
    texts = ""
    while "told-42" not in texts:
        event: Any = printed.found.get(timeout=20)
        texts += event["data"].get("text") or ""


@pytest.mark.night
def test_the_library_drives_another_machine_under_plain_names():
    with library.Client(machine=MACHINE) as client:
        assert client.get("sh").ask("echo $((6*7))").text == "42"
        made = client.new("t", ["cat"])
        assert [one.name for one in client.list()] == ["sh", "t"]
        made.close()
    with library.Client() as client:
        assert client.get("box/sh").exec("echo far").output == "far\n"


@pytest.mark.night
def test_tools_take_and_give_addresses():
    server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "tmuxctl", "mcp"], env={**os.environ})

    async def talk() -> None:
        async with mcp.Client(server) as client:

            async def call(name: str, **arguments: Any) -> Any:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result.content
                return result.structured_content

            (listed,) = (await call("pty_list", machine=MACHINE))["sessions"]
            assert (listed["name"], listed["sessionId"].partition("/")[0]) == ("box/sh", MACHINE)
            written = await call("pty_write", session_id=listed["sessionId"], input="echo $((6*7))\r", wait_for="^42")
            assert "42" in written["screen"]

    asyncio.run(talk())
