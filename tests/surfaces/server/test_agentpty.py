"""AgentPTY's API at the root of the server, with a stand-in for Claude Code in real sessions."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from surfaces.server.agentpty_support import SCRIPT, PtyServer, prepare

from tmuxctl.errors import Usage
from tmuxctl.surfaces.adapters.agentpty import AgentPtySettings
from tools.agents.agentpty_examples import (
    ASK_AGAIN,
    ASK_FIRST,
    ASK_NAMED,
    ASK_WITH_COMMAND,
    DEBUG,
    DELETE,
    LIST,
    SHOW,
    START,
    START_DARING,
    START_WITH_COMMAND,
)

Until = Callable[[Callable[[], Any]], Any]
Serve = Callable[..., PtyServer]

REPLY = ["session_id", "event", "text", "prompt_submitted", "duration_seconds", "output_tokens", "returncode"]
HELLO = "You gave me 26 characters."
"""What the stand-in says to the first example."""


@pytest.fixture
def serve(place: Path) -> Iterator[Serve]:
    """Starts servers in a folder with the stand-in; they are ended behind the test."""
    servers: list[PtyServer] = []

    def start(*words: str, hooks: bool = False, port: int = 0, **variables: str) -> PtyServer:
        prepare(place, hooks=hooks)
        servers.append(PtyServer(place, *words, port=port, **variables))
        return servers[-1]

    yield start
    for one in servers:
        one.stop()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PtyServer]:
    """One server for all tests that start no session."""
    place = Path(subprocess.check_output(["mktemp", "-d", "/tmp/tc-XXXXXX"], text=True).strip())
    prepare(place)
    server = PtyServer(place, HOME=f"{place}", TMUX_TMPDIR=f"{place}", XDG_STATE_HOME=f"{place}", TMUXCTL_SOCKET="t")
    yield server
    for one in server.call("GET", "/sessions")["sessions"]:
        # a test that failed
        server.call("DELETE", f"/sessions/{one['session_id']}")
    server.stop()
    subprocess.run(["tmux", "-L", "t", "kill-server"], env={**os.environ, "TMUX_TMPDIR": f"{place}"}, check=False)
    shutil.rmtree(place)


def free_port() -> int:
    """AgentPTY's port, or none where something has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 8765))
        except OSError:
            return 0
    return 8765


@pytest.mark.night
def test_the_examples_of_agentpty_run_as_they_are_written(serve: Serve, needs: Callable[..., None]) -> None:
    needs("curl")
    server = serve(hooks=True, port=free_port())
    curl = server.curl
    first = curl(ASK_FIRST)
    assert list(first) == REPLY
    assert {**first, "session_id": 0, "duration_seconds": 0} == dict(
        zip(REPLY, [0, "stop", HELLO, True, 0, len(HELLO), None], strict=True)
    )
    again = curl(ASK_AGAIN.replace("c6e5...", first["session_id"]))
    assert (again["session_id"], again["text"]) == (first["session_id"], "You gave me 20 characters.")
    assert curl(ASK_WITH_COMMAND)["session_id"] == "sonnet-demo"
    assert curl(START)["session_id"] == "demo"
    assert curl(ASK_NAMED)["event"] == "stop"
    # in the text it comes after the example that has started a session of this id already
    assert curl(START_WITH_COMMAND)["error"]["reason"] == "exists"
    assert curl(DELETE.replace("demo", "sonnet-demo"))["closed"]
    assert curl(START_WITH_COMMAND)["command"] == ["claude", "--model", "sonnet"]
    assert curl(START_DARING)["command"][-1] == "--dangerously-skip-permissions"
    listed = {one["session_id"] for one in curl(LIST)["sessions"]}
    assert listed == {first["session_id"], "demo", "sonnet-demo", "local-automation"}
    shown, told = curl(SHOW), curl(DEBUG)
    assert (shown["alive"], shown["busy"], shown["needs_recovery"]) == (True, False, False)
    assert "What directory are you in?" in told["cleaned_tail"]
    assert "\x1b" in told["raw_tail"]
    assert "\x1b" not in told["cleaned_tail"]
    assert (told["last_turn_status"], told["last_turn_error"]) == ("stop", None)
    by_script = [one["event"] for one in told["recent_hook_events"] if "agentpty_session_id" in one["payload"]]
    assert by_script == ["UserPromptSubmit", "Stop"]
    assert len(told["recent_hook_events"]) == 4
    assert (closed := curl(DELETE)) == {"session_id": "demo", "closed": True, "returncode": closed["returncode"]}
    assert curl(SHOW)["error"]["code"] == "not_found"


@pytest.mark.night
def test_a_session_takes_one_message_at_a_time(serve: Serve, place: Path, until: Until) -> None:
    server = serve()
    server.call("POST", "/sessions", {"session_id": "demo"})
    first = server.begin("demo", "until open; say done")
    until(lambda: server.call("GET", "/sessions/demo")["busy"])
    assert server.ask("demo", "say no").error() == (409, "busy")
    assert server.call("POST", "/sessions/demo/ask", {"message": "say no"}).error() == (409, "busy")
    (place / "open").touch()
    assert first()["text"] == "done"
    assert server.ask("demo", "say yes")["text"] == "yes"


@pytest.mark.night
def test_a_session_that_is_being_started_has_its_first_turn(serve: Serve, place: Path, until: Until) -> None:
    server = serve()
    first = server.begin("demo", "until open; say done")
    until(lambda: server.call("GET", "/sessions/demo").status == 200)
    assert server.ask("demo", "say no").error() == (409, "busy")
    (place / "open").touch()
    assert first()["text"] == "done"


@pytest.mark.night
def test_a_turn_that_timed_out_needs_recovery_for_the_next_server_too(serve: Serve, place: Path, until: Until) -> None:
    server = serve()
    late = server.ask("demo", "until open; say late", timeout=2)
    assert (late["event"], late["prompt_submitted"], late["text"]) == ("timeout", True, "")
    assert server.ask("demo", "say no").error() == (409, "needs_recovery")
    (place / "open").touch()
    until(lambda: "late" in server.call("GET", "/sessions/demo/debug")["cleaned_tail"])
    until(lambda: not server.call("GET", "/sessions/demo")["busy"])
    server.stop()
    server = serve()
    # its program waits for the next message, and still it takes none
    assert server.ask("demo", "say no").error() == (409, "needs_recovery")
    assert server.call("POST", "/sessions/demo/ask", {"message": "say no"}).error() == (409, "needs_recovery")
    told = server.call("GET", "/sessions/demo/debug")
    assert (told["needs_recovery"], told["last_turn_status"]) == (True, "timeout")
    assert server.call("POST", "/sessions", {"session_id": "demo"})["needs_recovery"]
    assert server.call("DELETE", "/sessions/demo")["returncode"] is not None
    assert server.ask("demo", "say yes")["text"] == "yes"
    assert "no" not in (place / "agent.log").read_text()


@pytest.mark.night
def test_a_caller_that_goes_away_leaves_the_turn_to_end(serve: Serve, place: Path, until: Until) -> None:
    server = serve()
    server.call("POST", "/sessions", {"session_id": "demo"})
    body = json.dumps({"session_id": "demo", "message": "until open; say done"}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as caller:
        head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        caller.sendall(head.encode() + body)
        until(lambda: "submitted" in ((place / "agent.log").read_text() if (place / "agent.log").exists() else ""))
    until(lambda: server.call("GET", "/sessions/demo/debug")["last_turn_status"] == "failed")
    assert server.ask("demo", "say no").error() == (409, "busy")
    (place / "open").touch()
    until(lambda: not server.call("GET", "/sessions/demo")["busy"])
    assert server.ask("demo", "say yes")["text"] == "yes"


@pytest.mark.night
def test_what_a_turn_comes_to(serve: Serve) -> None:
    server = serve()
    failed = server.ask("demo", "fail 529 overloaded")
    assert (failed["event"], failed["text"]) == ("stop_failure", "API Error: 529 overloaded")
    told = server.call("GET", "/sessions/demo/debug")
    assert (told["last_turn_status"], told["last_turn_error"]) == ("stop_failure", "API Error: 529 overloaded")
    asking = server.ask("demo", "tool rm file; say done")
    assert (asking["event"], asking["prompt_submitted"], asking["returncode"]) == ("asking", True, None)
    assert "Run this command?" in asking["text"]
    assert server.ask("demo", "say no").error() == (409, "approval")
    assert server.call("GET", "/sessions/demo")["question"]["kind"] == "approval"
    server.call("DELETE", "/sessions/demo")
    exited = server.ask("demo", "exit 3")
    assert (exited["event"], exited["returncode"]) == ("exited", 3)
    shown = server.call("GET", "/sessions/demo")
    assert (shown["alive"], shown["returncode"]) == (False, 3)
    assert server.ask("demo", "say no").error() == (410, "exited")
    assert server.call("DELETE", "/sessions/demo")["returncode"] == 3
    assert server.ask("demo", "say yes")["text"] == "yes"


@pytest.mark.night
def test_a_command_is_for_a_new_session(serve: Serve) -> None:
    server = serve(AGENTPTY_COMMAND="claude --model opus")
    made = server.call("POST", "/sessions", {"session_id": "demo"})
    assert made["command"] == ["claude", "--model", "opus"]
    assert server.call("POST", "/sessions", {"session_id": "demo"})["id"] == made["id"]
    with_command = {"session_id": "demo", "command": ["claude"]}
    assert server.call("POST", "/sessions", with_command).error() == (409, "exists")
    assert server.call("POST", "/ask", {**with_command, "message": "say no"}).error() == (409, "exists")
    assert server.call("POST", "/ask", {"session_id": made["id"], "message": "say yes"})["session_id"] == "demo"
    named, unnamed = server.call("POST", "/sessions", {}), server.call("POST", "/sessions")
    assert len({named["session_id"], unnamed["session_id"], "demo"}) == 3
    assert server.call("POST", "/sessions", {"session_id": "x", "command": ["no-such-program"]}).status == 422


def test_a_session_that_is_not_there_is_started_by_ask_alone(started: PtyServer) -> None:
    server = started
    for method, path in (("GET", "gone"), ("GET", "gone/debug"), ("DELETE", "gone")):
        assert server.call(method, f"/sessions/{path}").error() == (404, "no_session")
    assert server.call("POST", "/sessions/gone/ask", {"message": "say no"}).error() == (404, "no_session")
    assert server.call("GET", "/sessions")["sessions"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"", 400),
        ({}, 400),
        ({"message": ""}, 400),
        ({"message": " \n"}, 400),
        ({"message": 1}, 400),
        ({"message": "a\0b"}, 400),
        ({"message": "say no", "timeout": "soon"}, 400),
        ({"message": "say no", "timeout": -1}, 400),
        ({"message": "say no", "timeout": True}, 400),
        ({"message": "say no", "timeout": [1]}, 400),
        ({"message": "say no", "command": "claude"}, 400),
        ({"message": "say no", "command": []}, 400),
        ({"message": "say no", "command": [1]}, 400),
        ({"message": "say no", "command": ["a\0b"]}, 400),
        ({"message": "say no", "session_id": 1}, 400),
        ({"message": "say no", "session_id": ""}, 400),
        ({"message": "say no", "session_id": "../x"}, 404),
        ({"message": "say no", "session_id": "a b"}, 400),
        ({"message": "say no", "session_id": "-x"}, 400),
        ({"message": "say no", "session_id": "x" * 64}, 400),
        ({"message": "say no", "env": {}}, 400),
        ({"mesage": "say no"}, 400),
    ],
    ids=str,
)
def test_a_body_that_is_wrong_starts_nothing(started: PtyServer, body: Any, status: int) -> None:
    reply = started.call("POST", "/ask", body)
    assert reply.status in (status, 400), reply.body
    assert set(json.loads(reply.body)["error"]) == {"code", "reason", "message", "hint", "exit", "details"}
    assert started.call("GET", "/sessions")["sessions"] == []


def hook_address(server: PtyServer, session: str) -> str:
    """The AGENTPTY_HOOK_URL that the program of a session has."""
    url: str = server.ask(session, "env AGENTPTY_HOOK_URL")["text"]
    return url


@pytest.mark.night
def test_a_program_gets_its_session_and_where_its_hooks_report(serve: Serve, place: Path) -> None:
    server = serve(
        ANTHROPIC_MODEL="m", ANTHROPIC_API_KEY="sk-ant-0123456789abcdef", OTHER="x", AGENTPTY_HOOK_EVENT="stop"
    )
    values = {
        name: server.ask("demo", f"env {name}")["text"]
        for name in ("AGENTPTY_SESSION_ID", "TMUXCTL_SESSION", "ANTHROPIC_MODEL", "OTHER", "AGENTPTY_HOOK_EVENT")
    }
    assert values == {
        "AGENTPTY_SESSION_ID": "demo",
        "TMUXCTL_SESSION": server.call("GET", "/sessions/demo")["id"],
        "ANTHROPIC_MODEL": "m",
        "OTHER": "-",
        "AGENTPTY_HOOK_EVENT": "stop",
    }
    address = urlsplit(hook_address(server, "demo"))
    assert (address.netloc, address.path) == (f"127.0.0.1:{server.port}", "/hooks/claude-stop")
    [key] = parse_qs(address.query)["key"]
    assert len(key) == 43
    # the key is in what the program was made to print here, and in nothing else that is kept
    written = [one for one in (place / "state").rglob("*") if one.is_file() and "journal" not in str(one)]
    kept = [one for one in written if one.name not in ("timeline", "last.json") and "events" not in str(one)]
    assert len(kept) > 3
    assert not [one for one in kept if key in one.read_text(errors="replace")]
    assert not [one for one in kept if "sk-ant-0123" in one.read_text(errors="replace")]


@pytest.mark.night
def test_hooks_report_with_the_key_of_their_session_alone(serve: Serve, place: Path) -> None:
    server = serve()
    own, others = hook_address(server, "demo"), hook_address(server, "other")
    path = f"{urlsplit(own).path}?{urlsplit(own).query}"
    payload = {"hook_event_name": "Stop", "last_assistant_message": "forged"}
    before = server.call("GET", "/sessions/demo/debug")["recent_hook_events"]
    own_key, other_key = (parse_qs(urlsplit(one).query)["key"][0] for one in (own, others))
    refused = [
        server.call("POST", address, {**payload, "AGENTPTY_SESSION_ID": session})
        for address, session in (
            ("/hooks/claude-stop", "demo"),
            ("/hooks/claude-stop?key=", "demo"),
            (f"/hooks/claude-stop?key={other_key}", "demo"),
            (f"/hooks/claude-stop?key={own_key}", "other"),
            (f"/hooks/claude-stop?key={own_key[:-1]}", "demo"),
            (f"/hooks/claude-stop?key={own_key}", "gone"),
            (f"/hooks/claude-stop?key={own_key}", "../demo"),
            (f"/hooks/claude-stop?key={own_key}", "tmux:demo:0.0"),
            (f"/hooks/claude-stop?key={own_key}", ""),
        )
    ]
    assert {one.error() for one in refused} == {(403, "hook_key")}
    assert len({one.body for one in refused}) == 1, "what is told depends on whether there is such a session"
    for body in (b"", b"[]", b"nothing", b"[" * 100_000):
        assert server.call("POST", path, body).error() == (400, "bad_json")
    assert server.call("GET", "/sessions/demo/debug")["recent_hook_events"] == before
    assert server.call("POST", path, payload).body == b"{}"
    session_id = server.call("GET", "/sessions/demo")["id"]
    assert server.call("POST", path, {**payload, "TMUXCTL_SESSION": session_id, "n": 2}).status == 200
    assert server.call("POST", path.replace("claude-stop?", "claude-prompt-submit?"), {"n": 3}).status == 200
    after = server.call("GET", "/sessions/demo/debug")["recent_hook_events"]
    assert [(one["event"], one["payload"].get("n")) for one in after[len(before) :]] == [
        ("Stop", None), ("Stop", 2), ("UserPromptSubmit", 3),
    ]  # fmt: skip
    told = server.log.read_text()
    assert "/hooks/claude-stop" in told
    assert own_key not in told
    assert other_key not in told


@pytest.mark.night
def test_a_forged_end_decides_nothing_without_the_key_and_little_with_it(
    serve: Serve, place: Path, until: Until
) -> None:
    server = serve()
    own = hook_address(server, "demo")
    turn = server.begin("demo", "until open; say true")
    until(lambda: server.call("GET", "/sessions/demo")["busy"])
    forged = {"hook_event_name": "Stop", "AGENTPTY_SESSION_ID": "demo", "last_assistant_message": "forged"}
    assert server.call("POST", "/hooks/claude-stop?key=guess", forged).error() == (403, "hook_key")
    (place / "open").touch()
    assert turn()["text"] == "true"
    assert own


@pytest.mark.night
def test_the_script_reports_each_event_to_the_one_address_it_knows(serve: Serve, place: Path) -> None:
    server = serve()
    environment = {"AGENTPTY_HOOK_URL": hook_address(server, "demo"), "AGENTPTY_SESSION_ID": "demo"}
    for name in ("UserPromptSubmit", "Stop", "StopFailure"):
        told = json.dumps({"hook_event_name": name, "script": True})
        subprocess.run([sys.executable, str(SCRIPT)], env=environment, input=told, text=True, timeout=60, check=True)
    events = server.call("GET", "/sessions/demo/debug")["recent_hook_events"]
    assert [one["event"] for one in events if one["payload"].get("script")] == [
        "UserPromptSubmit",
        "Stop",
        "StopFailure",
    ]


@pytest.mark.night
def test_a_token_reaches_the_sessions_that_it_is_for(serve: Serve, place: Path) -> None:
    def tmuxctl(*words: str) -> str:
        return subprocess.check_output([sys.executable, "-m", "tmuxctl", *words], text=True, timeout=60).strip()

    every, some = tmuxctl("token", "new", "every"), tmuxctl("token", "new", "some", "--only", "my-*")
    reader = tmuxctl("token", "new", "reader", "--right", "read")
    server = serve("--log")
    tokens = {
        name: {"Authorization": f"Bearer {token}"}
        for name, token in (("every", every), ("some", some), ("reader", reader))
    }

    def call(who: str, method: str, path: str, body: Any = None) -> Any:
        return server.call(method, path, body, **tokens[who])

    assert server.call("GET", "/sessions").error() == (401, "no_token")
    assert call("every", "POST", "/ask", {"session_id": "their-1", "message": "say theirs"})["text"] == "theirs"
    assert call("some", "POST", "/ask", {"session_id": "my-1", "message": "say mine"})["text"] == "mine"
    for method, path, body in (
        ("GET", "/sessions/their-1", None),
        ("GET", "/sessions/their-1/debug", None),
        ("DELETE", "/sessions/their-1", None),
        ("POST", "/sessions/their-1/ask", {"message": "say no"}),
        ("POST", "/ask", {"session_id": "their-1", "message": "say no"}),
        ("POST", "/ask", {"session_id": "their-2", "message": "say no"}),
        ("POST", "/sessions", {"session_id": "their-1"}),
        ("POST", "/sessions", {"session_id": "their-2"}),
        ("POST", "/ask", {"message": "say no"}),
        ("GET", f"/sessions/{call('every', 'GET', '/sessions/their-1')['id']}", None),
    ):
        assert call("some", method, path, body).error() == (404, "no_session"), (method, path, body)
    assert [one["session_id"] for one in call("some", "GET", "/sessions")["sessions"]] == ["my-1"]
    assert len(call("reader", "GET", "/sessions")["sessions"]) == 2
    for method, path, body in (
        ("POST", "/ask", {"session_id": "my-1", "message": "say no"}),
        ("POST", "/ask", {"session_id": "new", "message": "say no"}),
        ("POST", "/sessions", {"session_id": "new"}),
        ("DELETE", "/sessions/my-1", None),
    ):
        assert call("reader", method, path, body).error() == (403, "right"), (method, path, body)


@pytest.mark.night
def test_a_folder_is_trusted_where_that_is_set(serve: Serve) -> None:
    server = serve()
    unset = {"session_id": "a", "message": "say no", "command": ["claude", "--untrusted"]}
    assert server.call("POST", "/ask", unset).error() == (409, "trust")
    server.stop()
    server = serve(AGENTPTY_AUTO_TRUST_WORKSPACE="true", AGENTPTY_ASK_TIMEOUT="25")
    reply = server.call("POST", "/ask", {**unset, "session_id": "b", "message": "say yes"})
    assert (reply["event"], reply["text"]) == ("stop", "yes")


def test_the_document_has_the_routes(started: PtyServer) -> None:
    paths = json.loads(started.call("GET", "/openapi.json").body)["paths"]
    assert {path: set(methods) for path, methods in paths.items() if path.split("/")[1] in ("ask", "sessions", "hooks")} == {
        "/ask": {"post"},
        "/sessions": {"get", "post"},
        "/sessions/{session_id}": {"get", "delete"},
        "/sessions/{session_id}/debug": {"get"},
        "/sessions/{session_id}/ask": {"post"},
        "/hooks/claude-stop": {"post"},
        "/hooks/claude-stop-failure": {"post"},
        "/hooks/claude-prompt-submit": {"post"},
    }  # fmt: skip
    assert b"/hooks/claude-stop" in started.call("GET", "/docs").body


def test_the_variables_of_agentpty() -> None:
    read = AgentPtySettings.read
    assert read({}) == AgentPtySettings(("claude",), None, False, "", "")
    given = {"AGENTPTY_COMMAND": "claude --model 'a b'", "AGENTPTY_ASK_TIMEOUT": "7.5"}
    assert read(given) == AgentPtySettings(("claude", "--model", "a b"), 7.5, False, "", "")
    assert [read({"AGENTPTY_AUTO_TRUST_WORKSPACE": word}).trusts for word in ("1", "True", "false", "0", "")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    for wrong in ({"AGENTPTY_COMMAND": "claude 'a"}, {"AGENTPTY_ASK_TIMEOUT": "soon"}):
        with pytest.raises(Usage, match=next(iter(wrong))):
            read(wrong)
