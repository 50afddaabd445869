"""Claude Code 2.1.330, which draws on the alternate screen: its questions, and its answers read off the screen."""

from __future__ import annotations

from pathlib import Path

from tmuxctl.control.observation.explaining import evidence_of_screen
from tmuxctl.profile_files import library
from tmuxctl.program_profile import Profile
from tmuxctl.reading.answers import drawn_answer
from tmuxctl.reading.state.judging import judge
from tmuxctl.terminal.input.keys import tmux_keys

SCREENS = Path(__file__).resolve().parents[1] / "screens" / "claude"


def claude() -> Profile:
    return library.load("claude", keys=tmux_keys)


def screen(name: str) -> str:
    return (SCREENS / f"newest-{name}.txt").read_text()


def answered(name: str, typed: str) -> drawn_answer.DrawnAnswer:
    return drawn_answer.read_answer([row.rstrip() for row in screen(name).rstrip("\n").split("\n")], typed, claude())


def test_the_tip_above_a_command_is_no_part_of_what_is_asked() -> None:
    asked = judge(evidence_of_screen(screen("asking-command"), cursor=(1, 21)), claude()).asking
    assert asked is not None
    assert asked.question == "Bash command Run a scripted command — touch made-r1 — Do you want to proceed?"


def test_the_option_that_switches_to_another_mode_is_not_the_one_that_allows() -> None:
    asked = judge(evidence_of_screen(screen("asking-command"), cursor=(1, 21)), claude()).asking
    assert asked is not None
    assert [(one.id, one.keys) for one in asked.options] == [
        ("allow", ("1",)),
        ("always", ("2",)),
        ("yes-and-switch-to-auto-m", ("3",)),
        ("deny", ("Escape",)),
    ]
    assert asked.default == "allow"


def test_trust_is_reached_by_the_arrows_from_the_marked_no() -> None:
    asked = judge(evidence_of_screen(screen("asking-trust"), cursor=(1, 12)), claude()).asking
    assert asked is not None
    assert {one.id: one.keys for one in asked.options} == {"deny": ("Enter",), "allow": ("Down", "Enter")}
    assert (asked.kind, asked.default, asked.risk) == ("trust", None, "high")


def test_what_it_says_before_a_command_is_no_part_of_the_answer() -> None:
    found = answered("idle-allowed", "fake:run#r2 touch made-r2")
    assert found.text.startswith("FAKE-BEGIN:run#r2\n")


def test_a_turn_that_failed_has_its_error_and_no_answer() -> None:
    found = answered("idle-failed", "fake:error#t5 429")
    assert found == drawn_answer.DrawnAnswer(
        "", False, signed=False, error="API Error: Request rejected (429) · fake_llm was asked for a 429"
    )


def test_what_it_tells_of_its_effort_above_the_input_is_no_part_of_the_answer() -> None:
    found = answered("idle-effort", "fake:echo#echo-0 the quick brown fox")
    assert found.text == "FAKE-BEGIN:echo#echo-0\n\nthe quick brown fox\n\nFAKE-END:echo#echo-0"
