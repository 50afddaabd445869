"""What a program that waits wants: the next command at its prompt, or input for what it does already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, PYTHON

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, DecisionNeeded, Exited
from tmuxctl.model import State

BASH, REPL = ("bash", "--norc"), (PYTHON, "-q")

COMMANDS = {
    "a line read by the shell itself": (BASH, "read -p 'Token: ' token", "line"),
    "a line read by a program": (BASH, "cat", "line"),
    "a line read in a REPL": (REPL, "name = input('name? ')", "line"),
    "a line read by a shell without marks": (("sh",), "read token", "line"),
    "the rest of a command": (BASH, "for i in 1 2", "continuation"),
}
"""What a session runs, what is typed there, and the kind of input that it then wants."""


@pytest.fixture(params=COMMANDS)
def wanting(request: pytest.FixtureRequest, control: Control) -> str:
    """A session `s` in which a command wants input; the kind of it."""
    argv, text, kind = COMMANDS[request.param]
    control.new("s", argv)
    control.send("s", text.encode())
    assert control.wait("s", input=True).kind == kind
    return kind


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_wait_for_the_prompt_and_one_for_input_tell_done_from_wants_something(control: Control, wanting: str) -> None:
    found = control.wait("s")
    assert (found.matched, found.wants, found.state) == ("idle", "input", State.IDLE)
    assert control.wait("s", input=True).matched == "input"
    assert control.wait("s", prompt=True, input=True).matched == "input"
    with pytest.raises(DecisionNeeded) as told:
        control.wait("s", prompt=True)
    assert told.value.reason == wanting
    assert "tmuxctl send s TEXT" in str(told.value.hint)
    control.keys("s", ("C-c",))
    found = control.wait("s", prompt=True)
    assert (found.matched, found.kind, found.wants) == ("prompt", "prompt", "prompt")
    assert control.wait("s", input=True, timeout=0.3).timed_out
    assert control.wait("s", input=True, now=True).matched is None


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_question_and_a_password_are_wanted_input(control: Control) -> None:
    for question, kind in (("read -p 'Go on? [y/N] ' word", "confirm"), ("read -s -p 'Password: ' word", "password")):
        control.new("s", BASH, if_exists="replace")
        control.send("s", question.encode())
        found = control.wait("s", input=True)
        assert (found.matched, found.kind, found.wants) == ("input", kind, "input")
        assert control.wait("s", input=True, asking=True).matched == "asking"
        with pytest.raises(DecisionNeeded) as told:
            control.wait("s", prompt=True)
        assert told.value.reason == kind


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_that_ends_wants_nothing(control: Control) -> None:
    for prompt in (True, False):
        control.new("s", ("sh", "-c", "read word"), if_exists="replace")
        assert control.wait("s", input=True).matched
        control.send("s", b"go")
        if not prompt:
            control.wait("s", exit=True)
        with pytest.raises(Exited):
            control.wait("s", prompt=prompt, input=not prompt)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_of_several_sessions_the_first_that_wants_input_is_found(control: Control, place: Path) -> None:
    control.new("at-prompt", BASH)
    control.new("at-work", ("sleep", "600"), wait=False)
    control.new("wants", ("sh", "-c", "until [ -e go ]; do sleep 0.05; done; printf 'Token: '; read token"), wait=False)
    assert control.wait(any=("at-prompt", "at-work", "wants"), input=True, timeout=0.3).ok is False
    (place / "go").touch()
    found = control.wait(any=("at-prompt", "at-work", "wants"), input=True)
    assert [(one.session, one.matched) for one in found.waits] == [("wants", "input")]


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_whole_screen_is_input_for_a_command_and_the_prompt_of_its_own_session(
    control: Control, needs: Callable[..., None], place: Path
) -> None:
    needs("vim")
    control.new("own", ("vim", "-u", "NONE", "a"))
    assert control.wait("own", prompt=True).kind == "editor"
    control.new("shell", BASH)
    control.send("shell", b"vim -u NONE b")
    assert control.wait("shell", input=True).kind == "editor"
    with pytest.raises(Conflict):
        control.ask("shell", b"echo hi")
    assert "echo" not in control.screen("shell").text


@pytest.mark.on("tmux")
def test_the_list_shows_who_wants_input(control: Control) -> None:
    control.new("shell", BASH)
    control.new("token", ("sh", "-c", "printf 'Token: '; read token"))
    assert control.wait("token", input=True).matched
    found = {one.name: (one.state, one.kind, one.wants) for one in control.ls().sessions}
    assert found == {"shell": (State.IDLE, "prompt", "prompt"), "token": (State.IDLE, "line", "input")}
    assert [one.name for one in control.ls(state="input").sessions] == ["token"]
    assert [one.name for one in control.ls(state="prompt").sessions] == ["shell"]


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_watch_tells_when_input_is_wanted(control: Control, place: Path) -> None:
    script = "printf 'Token: '; read token; until [ -e go ]; do sleep 0.05; done; printf 'Again: '; read token"
    control.new("s", ("sh", "-c", script), wait=False)
    events: Any = control.watch(("s",), state="input")
    found = next(events)
    events.close()
    assert (found.state, found.kind, found.wants) == (State.IDLE, "line", "input")
    events = control.watch(("s",))
    assert next(events).wants == "input"
    control.send("s", b"one")
    # what is wanted once more is told again, as the watch saw the work between
    assert next(event.state for event in events if event.wants is None) is State.BUSY
    (place / "go").touch()
    found = next(event for event in events if event.wants == "input")
    assert found.kind == "line"
    assert "Again" in (found.why or "")
    events.close()


@pytest.mark.night
@pytest.mark.on("tmux")
def test_ask_is_refused_while_a_command_reads_a_line(control: Control, wanting: str) -> None:
    if wanting == "continuation":
        pytest.skip("the next line of a command goes to the prompt")
    before = control.screen("s").text
    with pytest.raises(Conflict) as refused:
        control.ask("s", b"exit")
    assert refused.value.reason == "line"
    assert "tmuxctl send s TEXT" in str(refused.value.hint)
    assert control.screen("s").text == before


@pytest.mark.night
@pytest.mark.on("tmux")
def test_ask_waits_for_the_prompt_or_stops_the_command_if_told_to(control: Control) -> None:
    control.new("s", BASH)
    control.send("s", b"cat")
    assert control.wait("s", input=True).matched
    assert control.ask("s", b"echo stopped", interrupt=True).answer == "stopped"
    control.send("s", b"read -p 'Token: ' token")
    assert control.wait("s", input=True).matched
    with pytest.raises(Conflict):
        control.ask("s", b"echo late", queue=True, timeout=0.5)
    control.send("s", b"abc")
    assert control.ask("s", b"echo $token", queue=True).answer == "abc"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_that_only_reads_lines_is_asked_as_before(control: Control, place: Path) -> None:
    control.new("cat", LINES)
    assert control.ask("cat", b"hello").answer == "hello"
    assert control.ask("cat", b"again").answer == "again"
    (place / "names.py").write_text("while True: print('hi', input('name? '))")
    control.new("script", (PYTHON, "names.py"))
    assert control.ask("script", b"Ada").answer.startswith("hi Ada")
    assert control.ask("script", b"Ann").answer.startswith("hi Ann")


@pytest.mark.on("tmux")
def test_where_a_line_is_read_decide_says_how_to_send_it(control: Control) -> None:
    control.new("py", REPL)
    control.send("py", b"input('name? ')")
    assert control.wait("py", input=True).matched
    with pytest.raises(Conflict) as told:
        control.decide("py")
    assert told.value.hint == "send it a line: tmuxctl send py TEXT"


@pytest.mark.on("tmux")
def test_the_question_for_a_password_is_its_own_row(control: Control) -> None:
    control.new("s", ("sh", "-c", "echo 'a=y b=N'; stty -echo; printf 'Password: '; read word"))
    assert control.wait("s", asking=True).matched
    assert control.decide("s").asked.question == "Password:"
