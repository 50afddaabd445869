"""What clients of agentapi can rely on: its end-to-end flows, its refusals, its events, and files that are given to a session."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from surfaces.server.agentapi_support import PROGRAMS, ApiClient, ApiServer, await_true, start_scripted

GREETING = "Hello! I'm ready to help you. Please send me a message to echo back."
MESSAGE = "This is a test message."
ECHO = ({"answer": GREETING}, {"expect": MESSAGE, "answer": f"Echo: {MESSAGE}"})
QUESTION = "What is the answer to life, the universe, and everything?"
WELCOME = "Welcome! I'm an AI that enjoys pondering deep questions. Ask me anything!"
PONDERING = "Gosh, I'll need some time to think about that..."
THINKING = (
    {"think": 1, "answer": WELCOME},
    {"expect": QUESTION, "answer": PONDERING},
    {"think": 2, "answer": "42"},
)


@pytest.fixture
def serve(place: Path) -> Iterator[Callable[..., ApiServer]]:
    started: list[ApiServer] = []

    def start(*options: str) -> ApiServer:
        started.append(ApiServer(place, *options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def server(serve: Callable[..., ApiServer]) -> ApiServer:
    return serve()


# its own end-to-end test


@pytest.fixture(params=["root", "session"])
def at(request: pytest.FixtureRequest, serve: Callable[..., ApiServer]) -> tuple[ApiServer, ApiClient]:
    """A server, and a client that has another base URL, and nothing else that agentapi's has not."""
    if request.param == "root":
        server = serve("--no-token", "--agentapi", "fix")
        return server, ApiClient(server.port)
    server = serve("--no-token")
    return server, ApiClient(server.port, "/v1/sessions/fix/agentapi")


@pytest.mark.night
def test_its_basic_flow(at, place):
    server, client = at
    start_scripted(server, place, *ECHO)
    client.wait_stable()
    assert client.say(MESSAGE).json == {"ok": True}
    client.wait_stable()
    assert client.contents == [GREETING, MESSAGE, f"Echo: {MESSAGE}"]


@pytest.mark.night
def test_its_thinking_flow(at, place):
    server, client = at
    start_scripted(server, place, *THINKING)
    client.wait_stable()
    assert client.contents == [WELCOME]
    assert client.say(QUESTION).json == {"ok": True}
    assert client.status == "running"
    client.wait_stable()
    first, second, third = client.contents
    assert (first, second) == (WELCOME, QUESTION)
    assert [line.strip() for line in third.split("\n")] == [PONDERING, "42"]


@pytest.mark.night
def test_messages_are_numbered_and_have_a_role_and_a_time_and_no_blanks_around_them(server, place):
    start_scripted(server, place, *ECHO)
    client = server.below("fix")
    client.wait_stable()
    client.say(f"  {MESSAGE}\n")
    client.wait_stable()
    found = client.messages
    assert [(one["id"], one["role"]) for one in found] == [(0, "agent"), (1, "user"), (2, "agent")]
    assert [one["time"] for one in found] == sorted(one["time"] for one in found)
    assert all(one["time"].endswith("Z") for one in found)
    assert found[1]["content"] == MESSAGE
    assert client.get("/status").json == {"status": "stable", "agent_type": "custom", "transport": "pty"}


@pytest.mark.night
def test_a_program_that_reads_nothing_any_more_is_stable_at_its_prompt_and_takes_no_message(server, place):
    start_scripted(server, place, *ECHO)
    client = server.below("fix")
    client.wait_stable()
    client.say(MESSAGE)
    client.wait_stable()
    assert server.operate("GET", "/fix")["state"] == "busy"
    assert client.say("more").status == 500
    assert client.contents == [GREETING, MESSAGE, f"Echo: {MESSAGE}"]


@pytest.mark.night
def test_a_turn_is_not_lost_when_the_server_ends_in_it(serve, place):
    server = serve()
    start_scripted(
        server, place, {"answer": "Hello"}, {"expect": "one", "answer": "First."}, {"think": 4, "answer": "Last."}
    )
    client = server.below("fix")
    client.wait_stable()
    client.say("one")
    assert server.stop(signal.SIGTERM) == 0
    client = serve().below("fix")
    assert client.contents[:2] == ["Hello", "one"]
    await_true(lambda: client.contents[2].endswith("Last."))


@pytest.mark.night
def test_messages_are_there_after_the_server_was_started_again(serve, place):
    server = serve()
    start_scripted(server, place, *ECHO)
    server.below("fix").wait_stable()
    server.below("fix").say(MESSAGE)
    server.below("fix").wait_stable()
    assert server.stop(signal.SIGTERM) == 0
    assert serve().below("fix").contents == [GREETING, MESSAGE, f"Echo: {MESSAGE}"]


@pytest.mark.night
def test_turns_of_other_callers_are_messages_too(server, place):
    start_scripted(server, place, *ECHO, {"expect": "more", "answer": "More."})
    client = server.below("fix")
    client.wait_stable()
    events = client.events()
    server.tmuxctl("ask", "fix", MESSAGE)
    events.next(lambda event: event["data"].get("message") == f"Echo: {MESSAGE}")
    assert client.contents == [GREETING, MESSAGE, f"Echo: {MESSAGE}"]
    events.close()


@pytest.mark.night
def test_an_agent_with_an_input_box_is_given_a_message_whole(server, place):
    server.new("fix", sys.executable, str(PROGRAMS / "agent.py"), profile=str(PROGRAMS / "agent.yaml"))
    client = server.below("fix")
    client.wait_stable()
    text = "say The end.\n\nThis line and the one\nbefore it belong to the same message. " + "x" * 500
    assert client.say(text).json == {"ok": True}
    client.wait_stable()
    assert client.contents[1:] == [text, "The end."]
    assert client.say("tool true; say Done").json == {"ok": True}
    client.wait_stable()
    assert "Run this command?" in client.contents[-1]
    assert "1. Yes" in client.contents[-1]
    client.say("1", "raw")
    await_true(lambda: client.contents[-1] == "Done")
    assert len(client.messages) == 5


@pytest.mark.night
def test_a_question_is_the_end_of_a_message_and_keys_answer_it(server, place):
    program = "while read -r line; do printf 'Remove it? [y/N] '; read -r answer; echo \"you said $answer\"; done"
    server.new("fix", "bash", "-c", program)
    client = server.below("fix")
    client.wait_stable()
    client.say("begin")
    client.wait_stable()
    assert client.contents[-1] == "Remove it? [y/N]"
    assert client.say("again").status == 500
    assert client.say("y\r", "raw").json == {"ok": True}
    await_true(lambda: client.contents[-1].endswith("you said y"))
    assert len(client.messages) == 3


# what it refuses


@pytest.mark.night
def test_a_message_is_refused_while_the_program_works(server, place):
    start_scripted(server, place, {"answer": "Hello"}, {"expect": "one", "think": 600, "answer": "never"})
    client = server.below("fix")
    client.wait_stable()
    assert client.say("one").json == {"ok": True}
    assert client.status == "running"
    reply = client.say("two")
    assert reply.status == 500
    assert "message can only be sent when the agent is waiting for user input" in reply.problem
    assert client.contents[:2] == ["Hello", "one"]


SHAPES = {
    b"": "no JSON object",
    b"[]": "no JSON object",
    b"[" * 100_000: "no JSON object",
    b'{"content": "a"}': "type",
    b'{"type": "user"}': "content",
    b'{"content": 7, "type": "user"}': "expected string",
    b'{"content": "a", "type": "other"}': "one of",
    b'{"content": "\\ud800", "type": "user"}': "surrogates",
    b'{"content": "a", "type": "user", "more": 1}': "unexpected",
}


@pytest.mark.night
def test_a_message_that_is_empty_or_of_another_shape_is_refused(server):
    server.new("fix", "cat")
    for content in ("", " ", "\n\t "):
        reply = server.below("fix").say(content)
        assert reply.status == 500
        assert "message must not be empty" in reply.problem
    for body, part in SHAPES.items():
        reply = server.below("fix").call("POST", "/message", body, Content_Type="application/json")
        assert reply.status == 422, body
        assert part in reply.problem
    assert len(server.below("fix").messages) == 1


def test_a_session_that_is_not_there_is_a_problem(server):
    for path in ("/status", "/messages", "/events", "/internal/screen"):
        reply = server.below("none").get(path)
        assert reply.status == 404
        assert "none" in reply.problem
    assert server.below("none").say("a").status == 404
    assert server.below("none").upload("a", b"a").status == 404


# keys


def test_raw_input_is_typed_as_it_is_and_is_no_message(server, place):
    server.new("fix", "sh", "-c", f"stty raw -echo; echo up; head -c 7 >{place}/got; exec cat")
    server.operate("POST", "/fix/wait", text="up", since="screen")
    assert server.below("fix").say("\x1b[A\x03\r\0", "raw").json == {"ok": True}
    assert server.below("fix").say("z", "raw").json == {"ok": True}
    await_true(lambda: (place / "got").exists() and (place / "got").stat().st_size == 7)
    assert (place / "got").read_bytes() == b"\x1b[A\x03\r\0z"
    assert [one["role"] for one in server.below("fix").messages] == ["agent"]


# events


@pytest.mark.night
def test_events_begin_with_all_that_there_is(server, place):
    start_scripted(server, place, *ECHO)
    client = server.below("fix")
    client.wait_stable()
    client.say(MESSAGE)
    client.wait_stable()
    events = client.events()
    first = [events.next() for _ in range(4)]
    assert [one["event"] for one in first] == ["message_update"] * 3 + ["status_change"]
    assert [one["data"].get("message") for one in first] == [GREETING, MESSAGE, f"Echo: {MESSAGE}", None]
    assert set(first[0]["data"]) == {"id", "role", "message", "time"}
    assert first[3]["data"] == {"status": "stable", "agent_type": "custom"}
    events.close()


@pytest.mark.night
def test_events_tell_a_message_as_it_grows(server, place):
    start_scripted(server, place, *THINKING)
    client = server.below("fix")
    client.wait_stable()
    events = client.events()
    client.say(QUESTION)
    events.next(lambda event: event["data"].get("status") == "running")
    events.next(lambda event: event["data"].get("id") == 2 and event["data"]["message"].startswith(PONDERING))
    last = events.next(lambda event: event["data"].get("message") == f"{PONDERING}\n42")
    assert last["data"]["role"] == "agent"
    events.next(lambda event: event["data"].get("status") == "stable")
    events.close()


@pytest.mark.night
def test_events_end_with_the_program(server, place):
    server.new("fix", "sh", "-c", "echo mark; read -r line; exit 3")
    client = server.below("fix")
    client.wait_stable()
    events, screens = client.events(), client.events("/internal/screen")
    screens.next(lambda event: "mark" in event["data"]["screen"])
    client.say("\r", "raw")
    last = events.rest()[-1]
    assert last["event"] == "agent_error"
    assert set(last["data"]) == {"message", "level", "time"}
    screens.rest()
    for path in ("/status", "/events", "/internal/screen"):
        assert client.get(path).status == 410
    assert client.say("a").status == 410
    assert client.messages


def test_the_screen_is_told_whenever_it_changes(server, place):
    server.new("fix", "cat")
    client = server.below("fix")
    events = client.events("/internal/screen")
    assert events.next()["event"] == "screen"
    client.say("mark", "raw")
    assert events.next(lambda event: "mark" in event["data"]["screen"])["data"] == {"screen": "mark"}
    events.close()


@pytest.mark.night
def test_the_server_stops_though_somebody_follows(serve, place):
    server = serve()
    server.new("fix", "cat")
    events, screens = server.below("fix").events(), server.below("fix").events("/internal/screen")
    events.next()
    screens.next()
    assert server.stop(signal.SIGTERM) == 0
    events.rest()
    screens.rest()


# files


@pytest.mark.night
def test_a_file_is_kept_below_the_session_and_goes_with_it(server, place):
    server.new("fix", "sh")
    data = os.urandom(3 << 20) + b"\r\n--limi\r\n"
    reply = server.below("fix").upload("notes.txt", data)
    assert reply.status == 200, reply.body
    assert reply.json["ok"] is True
    path = Path(reply.json["filePath"])
    assert path.name == "notes.txt"
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o777 == 0o600
    assert server.below("fix").upload("notes.txt", data).json == reply.json
    server.operate("DELETE", "/fix")
    assert not path.exists()


NAMES = {
    "../" * 4 + "etc/passwd": "passwd",
    "/etc/cron.d/x": "x",
    "..\\\\..\\\\x.exe": "x.exe",
    "a b.txt": "a b.txt",
    "..": None,
    ".": None,
    "": None,
    "a/": None,
    "-rf": None,
    "a\tb": None,
    "x" * 300: None,
}


@pytest.mark.night
def test_a_name_leads_nowhere_else(server, place):
    folder = Path(server.new("fix", "cat")["cwd"])
    for name, kept in NAMES.items():
        reply = server.below("fix").upload(name, b"data")
        if kept is None:
            assert reply.status == 422, name
            assert reply.problem
        else:
            path = Path(reply.json["filePath"])
            assert path.name == kept
            assert path.is_relative_to(place / "state")
            assert not list(folder.glob(kept))


@pytest.mark.night
def test_a_file_and_all_files_of_a_session_have_a_largest_size(server):
    server.new("fix", "cat")
    client = server.below("fix")
    first = Path(client.upload("large", b"x" * (10 << 20)).json["filePath"])
    for size in ((10 << 20) + 1, 12 << 20):
        reply = client.upload("larger", b"x" * size)
        assert reply.status == 400
        assert "10MB" in reply.problem
    os.truncate(first, 199 << 20)
    assert client.upload("second", b"x" * (1 << 20)).status == 200
    assert client.upload("third", b"x").status == 507
    os.truncate(first, 0)
    for number in range(198):
        (first.parent / str(number)).touch()
    assert client.upload("third", b"x").status == 507
    (first.parent / "0").unlink()
    assert client.upload("third", b"x").status == 200


@pytest.mark.night
def test_links_that_a_program_has_put_there_are_not_followed(server, place):
    server.new("fix", "cat")
    outside = place / "outside"
    outside.mkdir(mode=0o700)
    (outside / "kept").write_text("before")
    first = Path(server.below("fix").upload("kept", b"data").json["filePath"])
    uploads = first.parent.parent
    first.unlink()
    for link, target, status in (
        (first, outside / "kept", 200),
        (first.parent, outside, 403),
        (uploads, outside, 403),
    ):
        link.symlink_to(target)
        assert server.below("fix").upload("kept", b"data").status == status
        (first if status == 200 else link).unlink()
        if link != uploads:
            link.parent.rmdir()
    assert (outside / "kept").read_text() == "before"
    assert [one.name for one in outside.iterdir()] == ["kept"]


FORMS = {
    b"": "multipart/form-data; boundary=limit",
    b"--limit--\r\n": "multipart/form-data; boundary=limit",
    b"no form": "multipart/form-data",
    b"file=a": "application/x-www-form-urlencoded",
    b"{}": "application/json",
}


@pytest.mark.night
def test_a_form_without_a_file_is_refused(server):
    server.new("fix", "cat")
    for body, kind in FORMS.items():
        reply = server.below("fix").call("POST", "/upload", body, Content_Type=kind)
        assert reply.status == 422, body
        assert reply.problem
    assert server.below("fix").upload("a", b"a", field="other").status == 422


# who may


@pytest.mark.night
def test_rights_and_sessions_of_a_token_hold(serve, place):
    server = serve("--agentapi", "fix")
    for name in ("fix", "other"):
        server.new(name, "cat")
    look = server.tmuxctl("token", "new", "look", "--right", "read")["token"]
    other = server.tmuxctl("token", "new", "other", "--only", "oth*")["token"]
    for base in ("", "/v1/sessions/fix/agentapi"):
        client = ApiClient(server.port, base)
        assert client.get("/status").status == 401
        client = ApiClient(server.port, base, look)
        assert client.get("/status").status == client.get("/messages").status == 200
        refused = [client.say("a"), client.say("a", "raw"), client.upload("a", b"a")]
        assert [reply.status for reply in refused] == [403] * 3
        assert "right to write" in refused[0].problem
        client = ApiClient(server.port, base, other)
        refused = [
            client.get("/messages"),
            client.get("/events"),
            client.get("/internal/screen"),
            client.say("a", "raw"),
        ]
        assert [reply.status for reply in [*refused, client.upload("a", b"a")]] == [404] * 5
    assert ApiClient(server.port, "/v1/sessions/other/agentapi", other).say("a", "raw").status == 200
    assert server.operate("GET", "/fix/screen")["text"] == ""


@pytest.mark.night
def test_events_end_when_their_token_is_revoked(serve, place):
    server = serve("--agentapi", "fix")
    server.new("fix", "cat")
    token = server.tmuxctl("token", "new", "look", "--right", "read")["token"]
    client = ApiClient(server.port, "", token)
    events, screens = client.events(), client.events("/internal/screen")
    events.next()
    screens.next()
    server.tmuxctl("token", "revoke", "look")
    events.rest()
    screens.rest()


@pytest.mark.night
def test_the_other_routes_stay_as_they_are(serve, place):
    server = serve("--no-token", "--agentapi", "fix")
    client = ApiClient(server.port)
    assert client.get("/status").status == 404
    start_scripted(server, place, *ECHO)
    assert client.get("/status").status == 200
    for path, part in (
        ("/healthz", b"ok"),
        ("/metrics", b"tmuxctl_sessions"),
        ("/docs", b"/agentapi/message"),
        ("/v1/sessions", b"fix"),
        ("/v1/sessions/fix/screen", b"Hello!"),
    ):
        reply = client.get(path)
        assert (reply.status, part in reply.body) == (200, True), path
    paths = client.get("/openapi.json").json["paths"]
    assert {"/message", "/v1/sessions/{id}/agentapi/message", "/v1/sessions"} <= paths.keys()
    assert "/internal/screen" not in paths
    described = paths["/message"]["post"]
    assert sorted(described["requestBody"]["content"]["application/json"]["schema"]["required"]) == ["content", "type"]
    assert "application/problem+json" in described["responses"]["default"]["content"]
    assert client.get("/nothing").json["error"]["reason"] == "no_path"
