"""Screens of real agent programs whose true state is known: how many are judged right, by text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tmuxctl.evidence import NONE, Evidence, Look
from tmuxctl.model import Confidence, State
from tmuxctl.profile_files import library
from tmuxctl.program_profile import Profile
from tmuxctl.reading.state.judging import Verdict, judge
from tmuxctl.terminal.input.keys import tmux_keys

SCREENS = Path(__file__).resolve().parent / "labelled"
LABELS = SCREENS / "labels.yaml"

RIGHT = 0.95
"""The share of screens that has to be judged right."""

QUIET = 2.5
"""Seconds without output: long enough for any wait, too short for giving up."""


class Labelled(NamedTuple):
    """A screen and what is true of it: `busy`, `ready`, `exited`, or what kind of question it asks."""

    name: str
    program: str
    true: str
    look: Look


def labelled() -> Iterator[Labelled]:
    for label in yaml.safe_load(LABELS.read_text()):
        x, y = map(int, label["cursor"].split(","))
        dead = label.get("ended", False)
        look = Look(
            at=10.0,
            journal=1,
            quiet=QUIET,
            x=x,
            y=y,
            visible=True,
            alternate=label.get("alternate", False),
            cols=120,
            rows=40,
            title=label.get("title", ""),
            screen=(SCREENS / f"{label['screen']}.txt").read_text().rstrip("\n"),
            dead=dead,
            status=0 if dead else None,
            signal=None,
            mark=None,
            hook=None,
            kernel=None,
        )
        yield Labelled(label["screen"], label["program"], label["state"], look)


def profile(name: str) -> Profile:
    return library.load(name, keys=tmux_keys)


def judged(one: Labelled, looks: int, *, visible: bool, known: Profile | None) -> Verdict:
    seen = tuple(
        one.look._replace(at=one.look.at - back, quiet=QUIET - back, visible=visible)
        for back in range(looks - 1, -1, -1)
    )
    return judge(Evidence(looks=seen, proc=NONE, program=one.program, typed=True), known)


def right(one: Labelled, verdict: Verdict) -> bool:
    """Whether the state, and of a question its kind, is the true one."""
    kinds = {
        "approval": ("approval",),
        "question": ("choice", "question"),
        "dialog": ("approval", "trust", "choice", "confirm", "question"),
    }
    if one.true in kinds:
        return verdict.state is State.ASKING and verdict.kind in kinds[one.true]
    states = {"ready": State.IDLE, "busy": State.BUSY, "exited": State.EXITED}
    return verdict.state is states[one.true]


@pytest.mark.parametrize("looks", [1, 2])
@pytest.mark.parametrize("visible", [True, False], ids=["cursor", "hidden"])
def test_the_screens_of_agent_programs_are_judged_right(looks: int, visible: bool) -> None:
    screens = list(labelled())
    wrong, lies = [], []
    for one in screens:
        verdict = judged(one, looks, visible=visible, known=profile(one.program))
        told = f"{one.name}: {one.true}, taken for {verdict.state.value} {verdict.kind or ''} {verdict.detail or ''}"
        told = f"{told} ({verdict.by}, {verdict.confidence.value}): {verdict.why}"
        if not right(one, verdict):
            wrong.append(told)
        if verdict.state is State.IDLE and one.true != "ready" and verdict.confidence is not Confidence.GUESS:
            lies.append(told)
    print(f"\n{len(screens) - len(wrong)} of {len(screens)} right", *wrong, sep="\n")
    assert not lies, "\n".join(lies)
    assert len(screens) - len(wrong) >= RIGHT * len(screens), "\n".join(wrong)


def test_without_a_profile_none_of_them_is_called_idle_with_confidence_while_it_is_not() -> None:
    for one in labelled():
        verdict = judged(one, 2, visible=True, known=None)
        assert verdict.state is not State.IDLE or one.true == "ready" or verdict.confidence is Confidence.GUESS, (
            one.name,
            verdict,
        )


def test_every_question_of_theirs_has_options_with_keys_and_none_that_widens_is_the_default() -> None:
    for one in labelled():
        if one.true not in ("approval", "question", "dialog"):
            continue
        asking = judged(one, 1, visible=True, known=profile(one.program)).asking
        assert asking is not None, one.name
        assert all(option.keys for option in asking.options), one.name
        assert asking.kind == "question" or len(asking.options) > 1, (one.name, asking)
        assert not re.match("always", asking.default or ""), (one.name, asking)
        assert asking.kind != "trust" or asking.default is None, (one.name, asking)
        if asking.kind == "approval":
            ids = [option.id for option in asking.options]
            assert ids[0] == "allow", (one.name, asking)
            assert "deny" in ids, (one.name, asking)
