"""Where a client's rights end: sessions of others, its own terminal, too much at once, and messages that are none."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.control import Control

Talk = Callable[..., Any]
CAT = {"command": ["cat"]}


def text_of(result: dict[str, Any]) -> str:
    """The text of an error."""
    assert result["isError"], result
    text: str = result["content"][0]["text"]
    return text


# Sessions of others


@pytest.mark.night
def test_a_session_of_another_client_is_not_replaced(talk: Talk) -> None:
    async def theirs(call: Any) -> None:
        await call("pty_create", name="theirs", **CAT)

    async def conversation(call: Any) -> None:
        await call("pty_create", name="own", **CAT)
        before = {one["name"]: one["pid"] for one in (await call("pty_list"))["sessions"]}
        assert (await call.fail("pty_create", name="theirs", if_exists="replace", **CAT)).startswith("denied: theirs")
        await call("pty_create", name="own", if_exists="replace", **CAT)
        after = {one["name"]: one["pid"] for one in (await call("pty_list"))["sessions"]}
        assert after["theirs"] == before["theirs"]
        assert after["own"] != before["own"]

    talk(theirs, TMUXCTL_MCP_OWNER="them")
    talk(conversation)


@pytest.mark.night
def test_a_session_of_another_client_that_has_ended_is_not_replaced_either(talk: Talk) -> None:
    async def theirs(call: Any) -> None:
        await call("pty_create", name="theirs", command=["sh", "-c", "echo kept"])
        await call("pty_wait", session_id="theirs", until="exit")

    async def conversation(call: Any) -> None:
        assert (await call.fail("pty_create", name="theirs", if_exists="reuse", **CAT)).startswith("denied: theirs")
        assert "kept" in (await call("pty_read", session_id="theirs"))["screen"]

    talk(theirs, TMUXCTL_MCP_OWNER="them")
    talk(conversation)


# The client's own terminal


@pytest.fixture(params=["a session", "a session, env -i", "a pane of another tmux", "an adopted pane"])
def within(request: pytest.FixtureRequest, control: Control, place: Path, lines: Any) -> Any:
    """A client whose server runs in a session, or in a pane of another tmux server; and what names that terminal there."""
    to_server, from_server = f"{place}/to", f"{place}/from"
    for path in (to_server, from_server):
        os.mkfifo(path)
    kept = ("PATH", "HOME", "TMUX_TMPDIR", "XDG_STATE_HOME", "TMUXCTL_SOCKET")
    short = [f"{name}={os.environ[name]}" for name in kept if name in os.environ]
    words = [sys.executable, "-m", "tmuxctl", "mcp"]
    if "env -i" in request.param or "pane" in request.param:
        words = ["env", "-i", *short, "TMUXCTL_MCP_TOOLS=all", *words]
    command = f"{shlex.join(words)} <{to_server} >{from_server}; exec sleep 1000"
    if "pane" in request.param:
        subprocess.run(["tmux", "-L", f"other{os.getpid()}", "new", "-d", "-s", "work", command], check=True)
        name = f"tmux@other{os.getpid()}:work"
        if "adopted" in request.param:
            name = control.adopt(name, "adopted").name
    else:
        name = control.new("me", ("sh", "-c", command), wait=False).name
    try:
        with open(to_server, "w") as writing, open(from_server) as reading:
            yield lines(writing, reading), name
    finally:
        if "pane" in request.param:
            subprocess.run(["tmux", "-L", f"other{os.getpid()}", "kill-server"], check=False)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_client_does_not_drive_the_terminal_that_it_runs_in(within: Any, control: Control) -> None:
    client, name = within
    for tool, more in (
        ("pty_write", {"input": "typed\\r"}),
        ("pty_sendkey", {"key": "a"}),
        ("pty_resize", {"cols": 90, "rows": 20}),
        ("pty_kill", {}),
    ):
        told = text_of(client.call(tool, session_id=name, **more))
        # a pane of another tmux is left alone anyway by what would change or end it
        if tool in ("pty_write", "pty_sendkey") or name == "me":
            assert told.startswith("denied: "), told
            assert "is the session that you run in" in told
    if name == "me":
        replaced = client.call("pty_create", name="me", if_exists="replace", **CAT)
        assert "the session that you run in" in text_of(replaced)
    assert "typed" not in control.screen(name).text


# Too much at once


@pytest.mark.night
def test_more_keys_than_tmux_presses_at_once_are_refused(client: Any) -> None:
    client.call("pty_create", name="c", **CAT)
    assert "1001 are more than 1000" in text_of(client.call("pty_sendkey", session_id="c", keys=["a"] * 1001))
    assert not client.call("pty_sendkey", session_id="c", keys=["a"] * 999 + ["enter"]).get("isError")
    waited = client.call("pty_wait", session_id="c", pattern="a{20}")
    assert waited["structuredContent"]["matched"] is True


@pytest.mark.night
def test_sessions_that_are_started_at_once_are_counted(
    place: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("PTYAI_MAX_SESSIONS", "2")
    client = request.getfixturevalue("client")
    for _ in range(6):
        client.begin("tools/call", {"name": "pty_create", "arguments": CAT})
    answers = [client.answer()["result"] for _ in range(6)]
    refused = [text_of(one) for one in answers if one.get("isError")]
    assert ["Maximum session limit (2) reached" in text for text in refused] == [True] * 4, refused


# Messages that are none


@pytest.mark.night
def test_half_a_surrogate_pair_is_replaced_and_answered(client: Any) -> None:
    client.call("pty_create", name="c", **CAT)
    arguments = '{"session_id": "c", "input": "half \\ud83d.\\\\r", "wait_for": "half .[.]"}'
    call = f'{{"name": "pty_write", "arguments": {arguments}}}'
    client.write(f'{{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {call}}}')
    answer = client.answer()
    assert (answer["id"], answer["result"]["structuredContent"]["match_text"]) == (77, "half \ufffd.")


@pytest.mark.night
@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        ("garbage", None, -32700),
        ("[" * 100_000, None, -32700),
        ("{}", None, -32600),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', None, -32600),
        ('{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": []}', 7, -32600),
        ('{"id": "seven", "method": "tools/list"}', "seven", -32600),
    ],
)
def test_what_is_no_message_is_answered_with_an_error(client: Any, line: str, number: Any, code: int) -> None:
    client.write(line)
    answer = client.answer()
    assert (answer["id"], answer["error"]["code"]) == (number, code)
    assert client.request("tools/list", {})["result"]["tools"]


# The end of the server


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("waits", [False, True], ids=("at rest", "in a wait"))
def test_a_signal_ends_the_server_and_no_session(
    server: subprocess.Popen[str], client: Any, control: Control, number: int, status: int, waits: bool
) -> None:
    client.call("pty_create", name="c", **CAT)
    if waits:
        waited = {"session_id": "c", "pattern": "never", "timeout_ms": 50_000}
        client.begin("tools/call", {"name": "pty_wait", "arguments": waited})
        # answered in another thread, after the wait was begun
        assert client.request("tools/list", {})["result"]
    server.send_signal(number)
    assert server.wait(20) == status
    assert control.show("c").state.value != "exited"


# What a reply says


def test_a_program_that_a_signal_ended_says_which(client: Any) -> None:
    client.call("pty_create", name="c", command=["sh", "-c", "read line; kill -SEGV $$"])
    client.call("pty_write", session_id="c", input="\\r")
    waited = client.call("pty_wait", session_id="c", until="exit", timeout_ms=20_000)["structuredContent"]
    assert (waited["exited"], waited["signal"], waited.get("exit_status")) == (True, "SEGV", None)


@pytest.mark.night
def test_of_several_sessions_those_that_ended_are_told_when_the_time_is_over(client: Any) -> None:
    client.call("pty_create", name="living", **CAT)
    client.call("pty_create", name="ended", command=["sh", "-c", "exit 3"])
    waited = client.call("pty_wait", session_id=["ended", "living"], pattern="never", timeout_ms=300)
    fields = waited["structuredContent"]
    assert (fields["timed_out"], fields["waiting"], fields["ended"]) == (True, ["living"], ["ended"])


def test_a_generation_past_the_end_of_the_output_is_refused(client: Any) -> None:
    client.call("pty_create", name="c", **CAT)
    told = text_of(client.call("pty_wait", session_id="c", pattern=".", since_generation=1_000_000))
    assert "past the end of what c printed" in told


def test_a_command_is_split_as_a_shell_does(client: Any) -> None:
    client.call("pty_create", name="c", command="echo a#b '#c d' e")
    waited = client.call("pty_wait", session_id="c", until="exit", timeout_ms=20_000)["structuredContent"]
    assert waited["screen"] == "a#b #c d e"


@pytest.mark.parametrize("profile", ["/etc/passwd", "./mine.yaml", "../mine", ""])
def test_a_profile_is_a_name_and_no_path(client: Any, profile: str) -> None:
    assert "is no name" in text_of(client.call("pty_create", name="c", profile=profile, **CAT))


def test_a_password_is_left_to_a_person_also_by_ask(client: Any) -> None:
    client.call(
        "pty_create", name="c", command=["sh", "-c", "printf 'Password: '; stty -echo; read secret; sleep 1000"]
    )
    client.call("pty_wait", session_id="c", until="asking", timeout_ms=20_000)
    told = text_of(client.call("pty_ask", session_id="c", text="hidden"))
    assert "tmuxctl attach c" in told
    assert "do not type it" in told
