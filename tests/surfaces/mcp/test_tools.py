"""What a model can rely on: waits, questions, errors in ptyai's words, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

Talk = Callable[..., Any]

SH = {"command": ["sh"], "env": {"PS1": "$ "}}


@pytest.mark.night
def test_a_wait_for_a_text_is_not_ended_by_silence_nor_by_the_echo(talk: Talk) -> None:
    async def conversation(call: Any) -> None:
        await call("pty_create", name="one", **SH)
        found = await call(
            "pty_write", session_id="one", input="sleep 1; echo do''ne\\r", wait_for="done", timeout_ms=20000
        )
        assert (found["matched"], found["timed_out"]) == (True, False)
        late = await call("pty_write", session_id="one", input="echo x\\r", wait_for="never", timeout_ms=300)
        assert (late["matched"], late["timed_out"], late["exited"]) == (False, True, False)
        assert late["cursor"]
        # given, silence ends it as it did with ptyai
        silent = await call("pty_wait", session_id="one", pattern="never", settle_ms=100, timeout_ms=20000)
        assert (silent["matched"], silent["timed_out"], silent["settled"]) == (False, False, True)

    talk(conversation)


@pytest.mark.night
def test_a_wait_goes_on_from_a_generation(talk: Talk) -> None:
    async def conversation(call: Any) -> None:
        await call("pty_create", name="one", **SH)
        first = await call("pty_write", session_id="one", input="echo to''ken\\r", wait_for="^token")
        again = {"session_id": "one", "pattern": "^token", "since_generation": first["generation"]}
        assert not (await call("pty_wait", **again, timeout_ms=300))["matched"]
        await call("pty_write", session_id="one", input="echo to''ken\\r")
        assert (await call("pty_wait", **again))["matched"]

    talk(conversation)


def test_of_several_sessions_the_first_that_holds_is_named(talk: Talk) -> None:
    async def conversation(call: Any) -> None:
        for name in ("one", "two"):
            await call("pty_create", name=name, **SH)
            await call("pty_write", session_id=name, input="read x\\r")
        await call("pty_write", session_id="two", input="exit 3\\r")
        await call("pty_write", session_id="two", input="exit 3\\r")
        ended = await call("pty_wait", session_id=["one", "two"], until="exit", timeout_ms=20000)
        assert (ended["session_id"], ended["matched"], ended["exited"], ended["exit_status"]) == ("two", True, True, 3)

    talk(conversation)


@pytest.mark.night
def test_a_question_comes_with_its_options_and_is_decided(talk: Talk, place: Path) -> None:
    async def conversation(call: Any) -> None:
        await call("pty_create", name="one", **SH)
        (place / "file").touch()
        asked = await call("pty_exec", session_id="one", command="rm -i file", timeout_ms=20000)
        assert asked["asking"]["kind"] == "confirm"
        assert {"yes", "no"} <= {option["id"] for option in asked["asking"]["options"]}
        decided = await call("pty_decide", session_id="one", option="yes", timeout_ms=20000)
        assert (decided["option"], decided["state"]) == ("yes", "idle")
        assert not (place / "file").exists()

    talk(conversation)


def test_exec_gives_the_exact_output_and_status_and_ask_the_answer(talk: Talk) -> None:
    async def conversation(call: Any) -> None:
        await call("pty_create", name="one", **SH)
        ran = await call("pty_exec", session_id="one", command="printf 'a\\nb'; exit_with() { return 7; }; exit_with")
        assert (ran["output"], ran["exit_status"], ran["timed_out"]) == ("a\nb", 7, False)
        await call("pty_create", name="py", command=f"{sys.executable} -q")
        answered = await call("pty_ask", session_id="py", text="6 * 7")
        assert (answered["answer"], answered["state"]) == ("42", "idle")

    talk(conversation)


@pytest.mark.night
def test_the_exit_status_is_told_and_the_session_survives_the_server(talk: Talk) -> None:
    async def begin(call: Any) -> Any:
        return await call("pty_create", name="one", **SH)

    async def go_on(call: Any) -> None:
        ended = await call("pty_write", session_id="one", input="exit 5\\r", wait_for="never", timeout_ms=20000)
        assert (ended["matched"], ended["exited"], ended["exit_status"]) == (False, True, 5)
        assert "Session one has exited" in await call.fail("pty_write", session_id="one", input="x")

    talk(begin)
    talk(go_on)


@pytest.mark.night
def test_errors_have_the_words_that_clients_of_ptyai_know(talk: Talk) -> None:
    async def conversation(call: Any) -> None:
        await call("pty_create", name="one", **SH)
        assert (await call.fail("pty_read", session_id="gone")).startswith("Session not found: gone\nnot_found: ")
        unknown = 'Unknown key: "ctl+c". Use pty_list_keys to see valid key names.\nusage: '
        assert (await call.fail("pty_sendkey", session_id="one", key="ctl+c")).startswith(unknown)
        neither = await call.fail("pty_sendkey", session_id="one")
        assert neither.startswith("Either key or keys must be provided.")
        misspelt = await call.fail("pty_write", session_id="one", input="x", pattern="y")
        assert "pty_write does not take 'pattern'. wait_for" in misspelt
        full = await call.fail("pty_create", **SH)
        assert full.startswith("Maximum session limit (1) reached. Kill an existing session first.")

    talk(conversation, PTYAI_MAX_SESSIONS="1")


@pytest.mark.night
def test_a_client_ends_only_what_it_started_unless_it_may(talk: Talk) -> None:
    async def begin(call: Any) -> None:
        await call("pty_create", name="one", **SH)

    async def other(call: Any) -> None:
        assert "denied: one was not started by you" in await call.fail("pty_kill", session_id="one")

    async def trusted(call: Any) -> None:
        assert (await call("pty_kill", session_id="one"))["killed"]

    async def reader(call: Any) -> None:
        names = {tool.name for tool in (await call.client.list_tools()).tools}
        assert names == {"pty_wait", "pty_read", "pty_list", "pty_list_keys"}
        assert "no tool 'pty_write'" in await call.fail("pty_write", session_id="one", input="x")

    talk(begin, TMUXCTL_MCP_OWNER="first")
    talk(reader, TMUXCTL_MCP_TOOLS="read")
    talk(other, TMUXCTL_MCP_OWNER="second")
    talk(trusted, TMUXCTL_MCP_OWNER="second", TMUXCTL_MCP_TOOLS="all")


@pytest.mark.night
def test_a_client_neither_ends_nor_types_into_the_session_it_runs_in(talk: Talk) -> None:
    made: dict[str, Any] = {}

    async def begin(call: Any) -> None:
        made.update(await call("pty_create", name="one", **SH))

    async def inside(call: Any) -> None:
        for name, more in (("pty_kill", {}), ("pty_write", {"input": "x"}), ("pty_sendkey", {"key": "enter"})):
            for session in ("one", made["session_id"]):
                assert "the session that you run in" in await call.fail(name, session_id=session, **more)

    talk(begin)
    talk(inside, TMUXCTL_SESSION=made.get("session_id", "none"), TMUXCTL_MCP_TOOLS="all")


def test_a_password_is_left_to_a_person(talk: Talk) -> None:
    async def conversation(call: Any) -> None:
        program = "import getpass; getpass.getpass('Password: ')"
        made = await call("pty_create", name="one", command=[sys.executable, "-c", program])
        assert made["asking"]["kind"] == "password"
        assert "tmuxctl decide one" in made["asking"]["answer"]
        assert "a person types it" in await call.fail("pty_write", session_id="one", input="secret\\r")
        assert "a person types it" in await call.fail("pty_decide", session_id="one", option="secret")

    talk(conversation)


def test_the_defaults_of_ptyai_hold_where_they_are_set(talk: Talk) -> None:
    async def conversation(call: Any) -> None:
        made = await call("pty_create", name="one")
        assert (made["shell"], made["cols"], made["rows"]) == ("/bin/cat", 90, 20)

    talk(conversation, PTYAI_DEFAULT_SHELL="/bin/cat", PTYAI_DEFAULT_COLS="90", PTYAI_DEFAULT_ROWS="20")


@pytest.mark.night
def test_only_what_this_client_left_idle_is_ended_where_it_says_so(talk: Callable[..., Any], place: Path) -> None:
    async def others(call: Any) -> None:
        await call("pty_create", name="theirs", command=["cat"])

    async def conversation(call: Any) -> None:
        await call("pty_create", name="quiet", command=["cat"])
        await call("pty_create", name="printing", command=["sh", "-c", "while sleep 0.2; do echo; done"])
        while "quiet" in (names := {one["name"] for one in (await call("pty_list"))["sessions"]}):
            await anyio.sleep(0.1)
        assert names == {"theirs", "printing"}

    talk(others, TMUXCTL_MCP_OWNER="them")
    talk(conversation, PTYAI_IDLE_TIMEOUT_MS="3000")
