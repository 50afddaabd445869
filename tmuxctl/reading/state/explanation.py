"""Every piece of evidence in words, and the state it argues for by itself: what `explain` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tmuxctl.model import State
from tmuxctl.reading.evidence.tty_waits import NOT_WAITING, POLLING, READING, RUNNING, STOPPED
from tmuxctl.reading.state import input_kinds, screen_rules
from tmuxctl.reading.state.situation import Situation
from tmuxctl.reading.state.waiting_rules import SETTLE_UNKNOWN
from tmuxctl.reading.text import patterns
from tmuxctl.vocabulary import EventKind, EvidenceKind

ARGUES: Mapping[str, State] = {
    EventKind.STOP: State.IDLE, EventKind.FAILURE: State.IDLE, EventKind.ASKING: State.ASKING
}  # fmt: skip
"""The state that an event of the program's hooks argues for; any other one says that it works."""


class Piece(NamedTuple):
    """One piece of evidence: what it is, what was seen, how many seconds ago, and the state it argues for, if for any."""

    source: str
    seen: str
    age: float | None
    state: State | None


def pieces(situation: Situation) -> Iterator[Piece]:
    """All of it, in the order of the rules."""
    yield _explain_exit(situation)
    yield _explain_hook(situation)
    yield _explain_mark(situation)
    yield _explain_question(situation)
    yield _explain_busy(situation)
    yield _explain_prompt(situation)
    yield _explain_kernel(situation)
    yield _explain_activity(situation)
    yield _explain_quiet(situation)
    yield _explain_title(situation)
    yield _explain_tty(situation)


def _explain_exit(situation: Situation) -> Piece:
    look = situation.look
    if not look.dead:
        return Piece(EvidenceKind.EXIT, "it lives", 0.0, None)
    how = (
        f"signal {look.signal}"
        if look.signal
        else f"status {look.status}"
        if look.status is not None
        else "not told how"
    )
    return Piece(EvidenceKind.EXIT, f"ended, {how}", 0.0, State.EXITED)


def _explain_hook(situation: Situation) -> Piece:
    hook = situation.look.hook
    if hook is None:
        return Piece(
            EvidenceKind.HOOK,
            "tells its turns, none yet" if situation.evidence.hooks else "it tells none of its turns",
            None,
            None,
        )
    argues = ARGUES.get(hook.means, State.BUSY)
    return Piece(EvidenceKind.HOOK, f"{hook.means} was the last it told", hook.age, argues)


def _explain_mark(situation: Situation) -> Piece:
    mark = situation.look.mark
    if mark is None:
        return Piece(
            EvidenceKind.SHELL_MARK, "none yet" if situation.evidence.marks else "none is expected", None, None
        )
    words = {"A": "the prompt begins", "B": "the prompt is drawn", "C": "a command runs", "D": "a command has ended"}
    status = f" with status {mark.status}" if mark.status is not None else ""
    state = State.BUSY if mark.letter == "C" else State.IDLE
    return Piece(EvidenceKind.SHELL_MARK, f"{mark.letter}: {words.get(mark.letter, 'unknown')}{status}", None, state)


def _explain_question(situation: Situation) -> Piece:
    if match := screen_rules.find_asking_match(situation):
        return Piece(
            EvidenceKind.ASKING_MARK,
            f"rule {match.rule.id}: {_shorten(match.found[0])}",
            _output_age(situation),
            State.ASKING,
        )
    if question := input_kinds.find_question(situation) or input_kinds.find_question_by_text(situation):
        return Piece(
            EvidenceKind.ASKING_MARK,
            f"{question.kind}: {_shorten(question.question)}",
            _output_age(situation),
            State.ASKING,
        )
    return Piece(EvidenceKind.ASKING_MARK, "no question on the screen", _output_age(situation), None)


def _explain_busy(situation: Situation) -> Piece:
    if match := screen_rules.find_busy_match(situation):
        return Piece(EvidenceKind.BUSY_MARK, match[0], _output_age(situation), State.BUSY)
    if sign := patterns.find_busy_sign(situation.text):
        return Piece(EvidenceKind.BUSY_MARK, _shorten(sign), _output_age(situation), State.BUSY)
    return Piece(EvidenceKind.BUSY_MARK, "no busy sign at the bottom", _output_age(situation), None)


def _explain_prompt(situation: Situation) -> Piece:
    left = situation.text.bare
    if rule := situation.prompt or situation.continuation:
        return Piece(
            EvidenceKind.PROMPT,
            f"rule {rule.rule.id}: {_shorten(left or rule.found[0])}",
            _output_age(situation),
            State.IDLE,
        )
    if not left:
        return Piece(EvidenceKind.PROMPT, "nothing stands left of the cursor", _output_age(situation), None)
    like = patterns.ends_like_prompt(left) or patterns.has_text_behind_prompt(left)
    return Piece(
        EvidenceKind.PROMPT,
        f"left of the cursor: {_shorten(left)}",
        _output_age(situation),
        State.IDLE if like else None,
    )


def _explain_kernel(situation: Situation) -> Piece:
    foreground = situation.foreground
    if foreground is None:
        return Piece(EvidenceKind.KERNEL, "it tells of no process here", None, None)
    names = ", ".join(dict.fromkeys(program.name for program in foreground.programs))
    level = "" if foreground.certain or foreground.waits else f" ({foreground.programs[0].level})"
    asleep = ", ".join(foreground.sleeps_in[:3]) or "another place"
    words = {
        READING: f"{foreground.name} blocked in {foreground.call} on the terminal",
        POLLING: f"{foreground.remote_wrapper or foreground.name} {situation.wait_description}",
        RUNNING: f"{', '.join(foreground.running)} running, nobody waits for the terminal",
        NOT_WAITING: f"{names} in {asleep}, nobody waits for the terminal",
        STOPPED: f"{names} stopped",
    }
    states = {
        READING: State.IDLE,
        POLLING: None if foreground.remote_wrapper else State.IDLE,
        RUNNING: State.BUSY,
        NOT_WAITING: State.BUSY,
        STOPPED: State.BUSY,
    }
    return Piece(
        EvidenceKind.KERNEL,
        words.get(foreground.wait, f"{names} cannot be looked into") + level,
        0.0,
        states.get(foreground.wait),
    )


def _explain_activity(situation: Situation) -> Piece:
    pace = situation.activity
    words = f"{pace.rate:.1f} updates a second"
    return Piece(
        EvidenceKind.ACTIVITY, words, _output_age(situation), State.BUSY if pace.animated or pace.beginning else None
    )


def _explain_quiet(situation: Situation) -> Piece:
    pace = situation.activity
    words = f"quiet for {'' if pace.quiet_known else 'at least '}{pace.quiet:.1f} s"
    return Piece(
        EvidenceKind.SETTLE, words, _output_age(situation), State.UNKNOWN if pace.quiet >= SETTLE_UNKNOWN else None
    )


def _explain_title(situation: Situation) -> Piece:
    profile, title = situation.profile, situation.look.title
    state = None
    if profile is not None and patterns.fits(profile.title_busy, title):
        state = State.BUSY
    elif profile is not None and patterns.fits(profile.title_idle, title):
        state = State.IDLE
    return Piece("title", _shorten(title) if title else "none", None, state)


def _explain_tty(situation: Situation) -> Piece:
    tty = situation.tty
    if tty is None:
        return Piece(EvidenceKind.TTY, "not to be asked", None, None)
    words = [
        "whole lines" if tty.canonical else "single keys",
        "echo on" if tty.echo else "echo off",
        f"{tty.unread} typed bytes unread" if tty.unread else "nothing unread",
    ]
    return Piece(
        EvidenceKind.TTY,
        ", ".join(words),
        0.0,
        State.BUSY if tty.unread else State.ASKING if situation.hides_input else None,
    )


def _output_age(situation: Situation) -> float | None:
    return round(situation.quiet, 3) if situation.quiet_known else None


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."
