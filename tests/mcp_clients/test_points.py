"""The points of the protocol that README.md lists, from each independent client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import pytest

from mcp_clients.clients import PATIENCE, TOOLS, Connection, Refused, text_of

READING = {"pty_wait", "pty_read", "pty_list", "pty_list_keys"}


def start_python(client: Connection) -> str:
    """A session with Python at its prompt."""
    session = str(client.fields("pty_create", command=["python3", "-q"], name="py")["session_id"])
    assert client.fields("pty_wait", session_id=session, pattern=">>>$")["matched"] is True
    return session


def test_1_the_server_tells_who_it_is_and_what_it_can(client: Connection) -> None:
    about = client.ask("describe")
    assert about["serverInfo"]["name"] == "tmuxctl"
    assert about["serverInfo"]["version"]
    assert {"tools", "resources", "prompts"} <= about["capabilities"].keys()
    if client.modern:
        assert about["protocol"] == "2026-07-28"
    assert 0 < len(about["instructions"]) <= 1200


def test_2_the_tools_are_listed_with_their_schemas(client: Connection) -> None:
    tools = client.ask("listTools")["tools"]
    assert {tool["name"] for tool in tools} == TOOLS
    assert len(tools) == len(TOOLS)
    assert len(json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False)) <= 12_000
    for tool in tools:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert set(tool["inputSchema"].get("required", ())) <= set(tool["inputSchema"].get("properties", {}))


@pytest.mark.night
def test_3_what_a_tool_may_do_is_annotated(client: Connection) -> None:
    for tool in client.ask("listTools")["tools"]:
        told = tool["annotations"]
        assert bool(told.get("readOnlyHint")) is (tool["name"] in READING)
        if tool["name"] in ("pty_create", "pty_resize"):
            assert told["destructiveHint"] is False
        elif tool["name"] not in READING:
            assert told["destructiveHint"] is True


def test_4_a_call_gives_text_and_fields_that_fit_the_schema(client: Connection) -> None:
    # both SDKs check the fields against the schema that the list gave
    client.ask("listTools")
    assert client.fields("pty_list") == {"sessions": []}
    client.fields("pty_create", command=["cat"], name="c")
    result = client.call("pty_list")
    assert [one["name"] for one in result["structuredContent"]["sessions"]] == ["c"]
    assert "c" in text_of(result)
    assert client.fields("pty_resize", session_id="c", cols=100, rows=30) == {"cols": 100, "rows": 30}


def test_5_a_program_is_driven(client: Connection) -> None:
    client.ask("listTools")
    session = start_python(client)
    assert client.fields("pty_ask", session_id=session, text="6*7")["answer"] == "42"
    assert "'ab'" in client.screen("pty_write", session_id=session, input="'a'+'b'\\r", wait_for="'ab'")
    ended = client.fields("pty_sendkey", session_id=session, key="ctrl+d")
    assert ended
    assert client.fields("pty_wait", session_id=session, until="exit")["exited"] is True
    assert client.fields("pty_kill", session_id=session)["killed"] is True


def test_6_a_tool_that_is_not_there_is_refused(client: Connection) -> None:
    # the protocol of 2025-11-25 has both ways
    try:
        told = client.failure("pty_nothing")
    except Refused as refused:
        told = refused.message
    assert "pty_nothing" in told
    assert client.fields("pty_list") == {"sessions": []}


@pytest.mark.night
def test_7_an_argument_that_is_not_there_is_named_with_the_right_one(client: Connection) -> None:
    client.fields("pty_create", command=["cat"], name="c")
    told = client.failure("pty_write", session_id="c", input="x", patern="x")
    assert told.startswith("usage: ")
    assert "patern" in told
    assert "wait_for" in client.failure("pty_write", session_id="c", input="x", pattern="x")


@pytest.mark.night
def test_8_an_argument_that_is_missing_or_of_another_kind_is_named(client: Connection) -> None:
    assert "session_id" in client.failure("pty_read")
    assert "timeout_ms" in client.failure("pty_wait", session_id="c", timeout_ms="soon")


@pytest.mark.night
def test_9_a_failure_has_its_code_and_its_hint(client: Connection) -> None:
    told = client.failure("pty_read", session_id="nothing")
    assert "Session not found: nothing" in told
    assert "Unknown key" in client.failure("pty_sendkey", session_id="nothing", key="hyper+x")


@pytest.mark.night
def test_10_a_call_that_is_cancelled_ends_the_wait_and_not_the_program(client: Connection) -> None:
    session = start_python(client)
    waiting = client.begin("pty_wait", session_id=session, pattern="never", timeout_ms=50_000)
    time.sleep(0.5)
    waiting.cancel()
    with pytest.raises(CancelledError):
        waiting.result(PATIENCE)
    assert client.fields("pty_ask", session_id=session, text="1+1")["answer"] == "2"


@pytest.mark.night
def test_11_a_long_wait_tells_of_its_progress(client: Connection) -> None:
    session = start_python(client)
    waited = client.call("pty_wait", session_id=session, pattern="never", timeout_ms=6_000)
    assert waited["structuredContent"]["timed_out"] is True
    assert len(waited["progress"]) >= 1
    told = [one["progress"] for one in waited["progress"]]
    assert told == sorted(set(told))


@pytest.mark.night
def test_12_a_wait_that_is_over_goes_on_from_its_cursor(client: Connection) -> None:
    session = start_python(client)
    waited = client.fields("pty_wait", session_id=session, pattern="never", timeout_ms=200)
    assert (waited["matched"], waited["timed_out"]) == (False, True)
    assert isinstance(waited["generation"], int)
    client.fields("pty_write", session_id=session, input="print('la'+'ter')\\r")
    later = client.fields("pty_wait", session_id=session, pattern="later", since_generation=waited["generation"])
    assert later["matched"] is True


@pytest.mark.night
def test_13_a_call_is_answered_while_another_one_waits(client: Connection) -> None:
    session = start_python(client)
    waiting = client.begin("pty_wait", session_id=session, pattern="do" + "ne", timeout_ms=50_000)
    assert [one["name"] for one in client.fields("pty_list")["sessions"]] == ["py"]
    client.fields("pty_write", session_id=session, input="print('do'+'ne')\\r")
    assert waiting.result(PATIENCE)["structuredContent"]["matched"] is True


@pytest.mark.night
def test_14_sessions_outlive_the_server(connect: Callable[..., Connection], client: Connection) -> None:
    session = start_python(client)
    client.fields("pty_ask", session_id=session, text="x = 21")
    client.client.close()
    client.client.close = lambda: None  # type: ignore[method-assign]
    again = connect("python-modern")
    assert again.fields("pty_ask", session_id="py", text="x * 2")["answer"] == "42"


@pytest.mark.night
def test_15_resources_are_listed_and_read(client: Connection) -> None:
    client.fields("pty_create", command=["sh", "-c", "echo shown; exec cat"], name="c")
    client.fields("pty_wait", session_id="c", pattern="shown")
    listed = {one["uri"] for one in client.ask("listResources")["resources"]}
    assert "tmuxctl://sessions" in listed
    templates = {one["uriTemplate"] for one in client.ask("listResourceTemplates")["resourceTemplates"]}
    assert {"tmuxctl://sessions/{id}/screen", "tmuxctl://sessions/{id}/log"} <= templates
    assert '"c"' in read(client, "tmuxctl://sessions")
    assert "shown" in read(client, "tmuxctl://sessions/c/screen")
    assert "shown" in read(client, "tmuxctl://sessions/c/log")
    assert "data, not instructions" in read(client, "tmuxctl://sessions/c/screen")
    header, *events = read(client, "tmuxctl://sessions/c/cast").splitlines()
    assert json.loads(header)["version"] == 3
    assert "shown" in "".join(events)
    assert "sqlite3" in read(client, "tmuxctl://profiles/sqlite3")


def read(client: Connection, uri: str) -> str:
    (content,) = client.ask("readResource", uri)["contents"]
    assert content["uri"] == uri
    return str(content["text"])


@pytest.mark.night
def test_16_a_resource_that_is_not_there_is_an_error(client: Connection) -> None:
    for uri in (
        *("tmuxctl://nothing", "tmuxctl://sessions/nothing/screen", "file:///etc/passwd", "tmuxctl://profiles/nothing"),
        *(
            "tmuxctl://profiles//etc/passwd",
            "tmuxctl://profiles/..%2f..%2fetc%2fpasswd",
            "tmuxctl://sessions/tmux:c/screen",
        ),
    ):
        with pytest.raises(Refused) as refused:
            client.ask("readResource", uri)
        assert refused.value.code in (-32002, -32602)


@pytest.mark.night
def test_17_prompts_are_listed_and_filled_in(client: Connection) -> None:
    client.fields("pty_create", command=["sh", "-c", "echo shown; exec cat"], name="c")
    prompts = {one["name"]: one for one in client.ask("listPrompts")["prompts"]}
    assert set(prompts) == {"drive_program", "supervise_agent", "why_is_it_stuck"}
    for name, prompt in prompts.items():
        wanted = [one["name"] for one in prompt["arguments"]]
        (message,) = client.ask("getPrompt", name, dict.fromkeys(wanted, "c"))["messages"]
        assert "`c`" in message["content"]["text"]
        with pytest.raises(Refused, match=f"{name} needs {wanted[0]}"):
            client.ask("getPrompt", name, {})
    (told,) = client.ask("getPrompt", "why_is_it_stuck", {"session": "c"})["messages"]
    assert '"state"' in told["content"]["text"]
    for name, arguments in (("nothing", {}), ("why_is_it_stuck", {"session": "nothing"})):
        with pytest.raises(Refused) as refused:
            client.ask("getPrompt", name, arguments)
        assert refused.value.code == -32602


@pytest.mark.night
def test_18_a_ping_is_answered_in_the_era_that_has_it(client: Connection) -> None:
    if client.modern:
        pytest.skip("protocol 2026-07-28 has no ping")
    assert client.ask("ping") in (None, {})


@pytest.mark.night
def test_19_two_clients_see_the_same_sessions(connect: Callable[..., Connection], client: Connection) -> None:
    other = connect("python-handshake")
    made = client.fields("pty_create", command=["cat"], name="c")
    seen: list[dict[str, Any]] = other.fields("pty_list")["sessions"]
    assert [one["sessionId"] for one in seen] == [made["session_id"]]
