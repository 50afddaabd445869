"""Turns of real agent programs as the live suite recorded them: their states, and the answers read off what they drew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmuxctl.control.sessions.chosen_profile import choose_profile
from tmuxctl.evidence import FULL, NONE, WCHAN
from tmuxctl.reading.answers import drawn_answer as reading
from tools.agents.recording import Told, load
from tools.agents.truth import drawn, torn
from tools.agents.turn import Turn
from tools.states import score

RECORDINGS = sorted((Path(__file__).resolve().parent / "agents").glob("*.json.gz"))
PROGRAMS = {"claude", "codex", "gemini", "aider"}

RIGHT = 0.8
"""So many of the looks at a stretch of known state must be told right: an event loop works for a moment now and then."""


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.name.removesuffix(".json.gz"))
def told(request: pytest.FixtureRequest) -> Told:
    return load(request.param)


def test_every_program_is_recorded_at_work_waiting_and_asking() -> None:
    recorded = [load(path) for path in RECORDINGS]
    assert {one.program for one in recorded} == PROGRAMS
    for program in PROGRAMS:
        windows = [window.truth for one in recorded if one.program == program for window in one.seen.windows]
        assert {(one.state, one.kind) for one in windows} >= {
            ("working", None),
            ("input", "agent"),
            ("input", "approval"),
        }


@pytest.mark.parametrize("level", [FULL, WCHAN, NONE])
def test_a_program_is_never_called_ready_while_the_model_still_answers(told: Told, level: str) -> None:
    for window in score.judged(told.seen, level):
        false = [f"{one.look.at:.2f} s: {one.verdict}" for one in window.samples if one.false_idle]
        assert not false, "\n".join(false)


def test_the_state_of_a_turn_is_told_right(told: Told) -> None:
    for window in score.judged(told.seen):
        wrong = [f"{one.look.at:.2f} s: {one.verdict}" for one in window.samples if not one.told or one.kind is False]
        assert window.samples
        assert len(wrong) <= (1 - RIGHT) * len(window.samples), f"{window.window.truth}\n" + "\n".join(wrong)


def test_an_answer_is_read_off_the_screen_whole_and_without_what_is_around_it(told: Told) -> None:
    if told.wanted is None:
        pytest.skip("a question, no answer")
    profile = choose_profile(told.program, ())
    assert profile is not None
    for anchor in (told.anchor, None):
        found = reading.read_answer(told.rows, told.prompt, profile, anchor=anchor)
        turn = Turn(told.program, "screen", told.behaviour, 0, "", told.prompt, 0.0, 0.0)
        turn = turn._replace(answer=found.text, wanted=told.wanted)
        assert drawn(turn), found.text
        assert not torn(turn), found.text
        assert found.complete
