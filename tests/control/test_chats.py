"""Programs of other families than those we know: a few lines of a profile are all they need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from programs import HERE, program

from tmuxctl import errors
from tmuxctl.control import Control
from tmuxctl.model import State
from tmuxctl.profile_files import library

PROFILES = HERE / "profiles"


def profile(name: str) -> str:
    return str(PROFILES / f"{name}.yaml")


def talk(control: Control) -> None:
    control.new("t", program("talk"), profile=profile("talk"))


@pytest.mark.parametrize(("name", "lines"), [("talk", 12), ("shelf", 20)])
def test_a_program_is_a_few_lines(name: str, lines: int) -> None:
    assert len(Path(profile(name)).read_text().splitlines()) <= lines
    assert library.load(profile(name)).name == name


# A chat by lines


@pytest.mark.parametrize(
    "text",
    [
        "so",
        "slow tea, coffee, cake and water are what there is",
        "  indented/    more//after nothing",
        "x" * 400,
        "日本語 and ✳ and >>> and $",
        # what the program itself asks, told by its answer
        "you:/Run this? (yes/no)/you: not I",
    ],
)
@pytest.mark.on("tmux")
def test_a_chat_without_signs_is_answered_exactly(control: Control, text: str) -> None:
    talk(control)
    found = control.ask("t", f"say {text}".encode())
    assert found.answer.rstrip() == f"You said:\n{text}".replace("/", "\n")
    assert (found.state, found.complete, found.submitted.ok) == (State.IDLE, True, True)


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_a_chat_that_works_in_silence_is_busy(control: Control) -> None:
    talk(control)
    assert control.ask("t", b"silent 1").answer.rstrip() == "That was silent."
    control.send("t", b"silent 3600")
    seen = next(event for event in control.watch(("t",)) if event.state is State.BUSY)
    assert control.show("t").by == "kernel", seen
    with pytest.raises(errors.Conflict):
        control.ask("t", b"say now")


@pytest.mark.on("tmux", "pipe")
@pytest.mark.parametrize(("decision", "made", "said"), [("allow", True, "It ended with 0."), ("deny", False, "Then I")])
def test_what_a_chat_asks_is_decided(control: Control, place: Path, decision: str, made: bool, said: str) -> None:
    talk(control)
    file = place / "made"
    asked = control.ask("t", f"run touch {file}".encode())
    assert asked.state is State.ASKING
    assert asked.asking is not None
    assert (asked.asking.kind, [one.id for one in asked.asking.options]) == ("approval", ["allow", "deny"])
    assert asked.asking.question == "Run this? (yes/no)"
    # a text is no decision
    with pytest.raises(errors.DecisionNeeded):
        control.ask("t", b"yes")
    assert not file.exists()
    control.decide("t", decision)
    assert control.wait("t").matched == "idle"
    assert file.exists() is made
    assert said in control.screen("t").text


@pytest.mark.on("tmux")
def test_a_policy_decides_what_a_chat_asks(control: Control, place: Path) -> None:
    talk(control)
    found = control.ask("t", f"run touch {place}/made".encode(), decide=("approval=deny",))
    assert found.state is State.IDLE
    assert found.answer.rstrip().endswith("Then I do not.")
    assert not (place / "made").exists()


# A list on the whole screen


@pytest.fixture
def items(control: Control, place: Path, needs: Callable[..., None]) -> Path:
    file = place / "items"
    file.write_text("tea\ncake\nwater\n")
    control.new("m", program("shelf", str(file)), profile=profile("shelf"))
    return file


@pytest.mark.on("tmux", "pipe")
def test_a_list_is_idle_and_takes_keys(control: Control, items: Path) -> None:
    waited = control.wait("m")
    assert (waited.matched, waited.kind) == ("idle", "tui")
    control.keys("m", ("Down", "Enter"))
    asked = control.wait("m", asking=True)
    assert (asked.matched, asked.kind) == ("asking", "keys")
    assert control.screen("m").text.startswith("  This is cake.")
    control.decide("m", "back")
    assert control.wait("m").kind == "tui"
    control.keys("m", ("q",))
    assert control.wait("m", exit=True).exit_status == 0


@pytest.mark.on("tmux", "pipe")
@pytest.mark.parametrize(("decision", "left"), [("yes", "tea\nwater\n"), ("no", "tea\ncake\nwater\n")])
def test_a_list_asks_before_it_deletes(control: Control, items: Path, decision: str, left: str) -> None:
    control.wait("m")
    control.keys("m", ("Down", "d"))
    asked = control.wait("m", asking=True)
    assert asked.asking is not None
    assert (asked.asking.question, asked.asking.default, asked.asking.risk) == ("Delete cake?", "no", "high")
    control.decide("m", decision)
    assert control.wait("m").kind == "tui"
    assert items.read_text() == left
