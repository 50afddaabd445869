"""Answers of agent programs: whole or told to be a part, never empty in silence, and a turn that failed is told as that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from control.agent import Agent

from tmuxctl import results
from tmuxctl.control import Control
from tmuxctl.model import State
from tmuxctl.surfaces.cli.printing import show
from tmuxctl.surfaces.cli.printing.output import Options
from tmuxctl.timing import Timing, TurnTiming

pytestmark = pytest.mark.on("tmux")

LINES = "\n".join(f"line {number} of many" for number in range(1, 61))


@pytest.fixture
def agent(control: Control, place: Path) -> Agent:
    (place / "lines").write_text(LINES)
    return Agent(control, place)


@pytest.fixture
def hasty(agent: Agent, another: Callable[..., Control]) -> None:
    """Signs of work that never come are waited for less long."""
    agent.control = another(timing=Timing(turn=TurnTiming(signed_seconds=2.0)))


# where it comes from


def test_the_programs_own_words_are_complete_on_the_alternate_screen_too(agent: Agent) -> None:
    agent.start("--alternate", tells=True)
    found = agent.ask("file lines")
    assert (found.answer, found.source, found.complete, found.truncated) == (LINES, "hook", True, False)


def test_a_transcript_is_complete_on_the_alternate_screen_too(agent: Agent) -> None:
    agent.start("--alternate", "--no-hook-text", tells=True)
    found = agent.ask("file lines")
    assert (found.answer, found.source, found.complete) == (LINES, "transcript", True)


def test_an_answer_read_off_the_alternate_screen_is_complete_if_its_beginning_is_there(agent: Agent) -> None:
    agent.start("--alternate")
    found = agent.ask("say hello")
    assert (found.answer, found.source, found.complete, found.error) == ("hello", "screen", True, None)


# where it is not found


def test_of_an_answer_longer_than_the_alternate_screen_the_visible_rows_are_given(agent: Agent) -> None:
    agent.start("--alternate")
    found = agent.ask("file lines")
    assert found.answer.splitlines()[-1] == "line 60 of many"
    assert found.answer.splitlines()[0].startswith("line ")
    assert (found.complete, found.error, results.exit_status(found)) == (False, None, 0)


def test_the_end_of_an_answer_that_came_at_once_and_fills_the_alternate_screen_is_not_waited_for(agent: Agent) -> None:
    # without the sign of an answer or of work on the screen a turn is taken to be over after 5 s
    agent.start("--alternate", "--no-title")
    found = agent.ask("file lines", timeout=4.0)
    assert (found.state, found.timed_out, found.complete) == (State.IDLE, False, False)


@pytest.mark.night
def test_an_answer_behind_another_sign_is_given_as_the_rows_that_show(agent: Agent, hasty: None) -> None:
    agent.start("--sign", "◆")
    found = agent.ask("say hello")
    assert (found.answer, found.complete, found.error) == ("◆ hello", False, None)


@pytest.mark.night
def test_a_profile_that_does_not_know_the_sign_of_an_answer_is_noticed_after_three_turns(
    agent: Agent, hasty: None
) -> None:
    agent.start("--sign", "◆")
    warnings = [agent.ask(f"say {word}").warning for word in ("one", "two", "three", "four")]
    assert warnings[:2] == [None, None]
    assert warnings[2] is not None
    assert "was not found in 3 turns: is this another version? tmuxctl profile check agent" in warnings[2]
    assert "in 4 turns" in str(warnings[3])


@pytest.mark.night
def test_a_sign_that_is_found_now_and_then_is_the_right_one(agent: Agent) -> None:
    agent.start()
    found = [agent.ask(words).warning for words in ("silent 0.2", "silent 0.2", "say hello", "silent 0.2")]
    assert found == [None] * 4


def test_a_program_that_shows_no_answer_at_all_is_told(agent: Agent) -> None:
    agent.start()
    found = agent.ask("silent 0.5")
    assert (found.answer, found.state, found.complete, found.source) == ("", State.IDLE, False, None)
    assert found.error is not None
    assert "no answer" in found.error
    assert "tmuxctl screen a" in found.error
    assert results.exit_status(found) == 1


def test_an_empty_answer_that_the_program_told_itself_is_one(agent: Agent) -> None:
    agent.start(tells=True)
    found = agent.ask("silent 0.5")
    assert (found.answer, found.complete, found.error, results.exit_status(found)) == ("", True, None, 0)


# a turn that failed


def test_a_turn_that_the_program_tells_to_have_failed_is_an_error(agent: Agent) -> None:
    agent.start(tells=True)
    found = agent.ask("fail 429 too many requests")
    assert (found.error, found.answer, found.state) == ("API Error: 429 too many requests", "", State.IDLE)
    assert (found.complete, found.source, results.exit_status(found)) == (False, "hook", 1)
    assert agent.ask("say hello").error is None


@pytest.mark.night
def test_a_turn_whose_error_stands_on_the_screen_is_an_error(agent: Agent) -> None:
    agent.start()
    found = agent.ask("fail 400 no such model")
    assert (found.error, found.answer, found.source) == ("API Error: 400 no such model", "", "screen")
    assert (found.complete, results.exit_status(found)) == (False, 1)
    # the error of the turn before is still on the screen
    assert (agent.ask("say hello").error, agent.ask("say hello").answer) == (None, "hello")


@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
def test_what_was_said_before_a_turn_failed_is_its_answer(agent: Agent, tells: bool) -> None:
    agent.start(tells=tells)
    found = agent.ask("say I begin.; fail 500 server error")
    assert (found.answer, found.error, found.complete) == ("I begin.", "API Error: 500 server error", False)


@pytest.mark.night
@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
def test_a_turn_that_came_to_its_limit_is_an_error(agent: Agent, tells: bool) -> None:
    agent.start(tells=tells)
    found = agent.ask("limit")
    assert (found.detail, found.answer, found.complete) == ("limited", "", False)
    assert found.error == "Usage limit reached · resets 3pm"
    assert results.exit_status(found) == 1


def test_an_error_that_an_answer_speaks_of_is_none(agent: Agent) -> None:
    agent.start(tells=True)
    found = agent.ask("say API Error: 400 is what it said")
    assert (found.answer, found.error) == ("API Error: 400 is what it said", None)


@pytest.fixture
def spare(control: Control, place: Path) -> str:
    """Another program that takes turns, by its profile."""
    folder = place / ".config/tmuxctl/profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spare.yaml").write_text(
        "schema: tmuxctl/profile@1\ncommand: [sh, -c, 'while printf \"spare> \"; read -r line; do echo took it; done']\n"
        "prompt: [{id: input, re: '^spare>', where: cursor-line, detail: agent}]\n"
    )
    return "spare"


@pytest.mark.night
@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
def test_a_turn_that_failed_is_taken_by_the_fallback(agent: Agent, spare: str, tells: bool) -> None:
    agent.start(tells=tells)
    found = agent.ask("fail 429 too many requests", fallback=(spare,))
    assert (found.answer, found.error, found.answered_by) == ("took it", None, "spare")
    assert [(one.profile, one.reason) for one in found.passed] == [("agent", "failed")]
    assert "429 too many requests" in found.passed[0].message


@pytest.mark.night
@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
@pytest.mark.parametrize("done", ["say I begin.", "tool make"])
def test_a_turn_that_failed_after_it_did_something_is_not_given_to_another(
    agent: Agent, spare: str, tells: bool, done: str
) -> None:
    agent.start(tells=tells)
    found = agent.ask(f"{done}; fail 500 server error", fallback=(spare,), decide=("approval=allow",))
    assert (found.error, found.answered_by, found.passed) == ("API Error: 500 server error", "agent", ())


def test_a_turn_of_which_nothing_was_found_is_not_given_to_another(agent: Agent, spare: str) -> None:
    agent.start()
    found = agent.ask("silent 0.5", fallback=(spare,))
    assert (found.answered_by, found.passed, results.exit_status(found)) == ("agent", (), 1)


def test_the_command_prints_what_came_before_and_the_error_apart(agent: Agent, capfd) -> None:
    agent.start()
    found = agent.ask("say I begin.; fail 500 server error")
    assert show.Printer(Options(quiet=True)).show(found) == 1
    told = capfd.readouterr()
    assert (told.out, told.err) == ("I begin.\n", "tmuxctl: a: API Error: 500 server error\n")
    assert show.Printer(Options(json=True)).show(found) == 1
    assert json.loads(capfd.readouterr().out)["error"] == "API Error: 500 server error"


def test_the_error_of_the_last_turn_can_be_read_again(agent: Agent) -> None:
    agent.start(tells=True)
    agent.ask("fail 400 no such model")
    again = agent.control.read(agent.name)
    assert (again.text, again.complete) == ("API Error: 400 no such model", False)
