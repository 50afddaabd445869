"""Every piece of evidence in words, and the state it argues for by itself: what `explain` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tmuxctl.model import State
from tmuxctl.reading.evidence.tty_waits import NOBODY, POLLS, READS, RUNS, STOPPED
from tmuxctl.reading.state import input_kinds, screen_rules
from tmuxctl.reading.state.situation import Scene
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


def pieces(seen: Scene) -> Iterator[Piece]:
    """All of it, in the order of the rules."""
    yield _exit(seen)
    yield _hook(seen)
    yield _mark(seen)
    yield _asking(seen)
    yield _busy(seen)
    yield _prompt(seen)
    yield _kernel(seen)
    yield _activity(seen)
    yield _settle(seen)
    yield _title(seen)
    yield _tty(seen)


def _exit(seen: Scene) -> Piece:
    look = seen.look
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


def _hook(seen: Scene) -> Piece:
    hook = seen.look.hook
    if hook is None:
        return Piece(
            EvidenceKind.HOOK,
            "tells its turns, none yet" if seen.evidence.hooks else "it tells none of its turns",
            None,
            None,
        )
    argues = ARGUES.get(hook.means, State.BUSY)
    return Piece(EvidenceKind.HOOK, f"{hook.means} was the last it told", hook.age, argues)


def _mark(seen: Scene) -> Piece:
    mark = seen.look.mark
    if mark is None:
        return Piece(EvidenceKind.SHELL_MARK, "none yet" if seen.evidence.marks else "none is expected", None, None)
    words = {"A": "the prompt begins", "B": "the prompt is drawn", "C": "a command runs", "D": "a command has ended"}
    status = f" with status {mark.status}" if mark.status is not None else ""
    state = State.BUSY if mark.letter == "C" else State.IDLE
    return Piece(EvidenceKind.SHELL_MARK, f"{mark.letter}: {words.get(mark.letter, 'unknown')}{status}", None, state)


def _asking(seen: Scene) -> Piece:
    if match := screen_rules.asking_match(seen):
        return Piece(
            EvidenceKind.ASKING_MARK, f"rule {match.rule.id}: {_short(match.found[0])}", _age(seen), State.ASKING
        )
    if found := input_kinds.question(seen) or input_kinds.question_alone(seen):
        return Piece(EvidenceKind.ASKING_MARK, f"{found.kind}: {_short(found.question)}", _age(seen), State.ASKING)
    return Piece(EvidenceKind.ASKING_MARK, "no question on the screen", _age(seen), None)


def _busy(seen: Scene) -> Piece:
    if match := screen_rules.busy_match(seen):
        return Piece(EvidenceKind.BUSY_MARK, match[0], _age(seen), State.BUSY)
    if sign := patterns.busy_sign(seen.text):
        return Piece(EvidenceKind.BUSY_MARK, _short(sign), _age(seen), State.BUSY)
    return Piece(EvidenceKind.BUSY_MARK, "no busy sign at the bottom", _age(seen), None)


def _prompt(seen: Scene) -> Piece:
    left = seen.text.bare
    if rule := seen.prompt or seen.continuation:
        return Piece(
            EvidenceKind.PROMPT, f"rule {rule.rule.id}: {_short(left or rule.found[0])}", _age(seen), State.IDLE
        )
    if not left:
        return Piece(EvidenceKind.PROMPT, "nothing stands left of the cursor", _age(seen), None)
    like = patterns.ends_like_prompt(left) or patterns.typed_behind_prompt(left)
    return Piece(EvidenceKind.PROMPT, f"left of the cursor: {_short(left)}", _age(seen), State.IDLE if like else None)


def _kernel(seen: Scene) -> Piece:
    now = seen.now
    if now is None:
        return Piece(EvidenceKind.KERNEL, "it tells of no process here", None, None)
    names = ", ".join(dict.fromkeys(one.name for one in now.programs))
    level = "" if now.certain or now.waits else f" ({now.programs[0].level})"
    asleep = ", ".join(now.asleep[:3]) or "another place"
    words = {
        READS: f"{now.name} blocked in {now.call} on the terminal",
        POLLS: f"{now.opaque or now.name} {seen.how}",
        RUNS: f"{', '.join(now.running)} running, nobody waits for the terminal",
        NOBODY: f"{names} in {asleep}, nobody waits for the terminal",
        STOPPED: f"{names} stopped",
    }
    states = {
        READS: State.IDLE,
        POLLS: None if now.opaque else State.IDLE,
        RUNS: State.BUSY,
        NOBODY: State.BUSY,
        STOPPED: State.BUSY,
    }
    return Piece(
        EvidenceKind.KERNEL, words.get(now.word, f"{names} cannot be looked into") + level, 0.0, states.get(now.word)
    )


def _activity(seen: Scene) -> Piece:
    pace = seen.activity
    words = f"{pace.rate:.1f} updates a second"
    return Piece(EvidenceKind.ACTIVITY, words, _age(seen), State.BUSY if pace.animated or pace.beginning else None)


def _settle(seen: Scene) -> Piece:
    pace = seen.activity
    words = f"quiet for {'' if pace.told else 'at least '}{pace.quiet:.1f} s"
    return Piece(EvidenceKind.SETTLE, words, _age(seen), State.UNKNOWN if pace.quiet >= SETTLE_UNKNOWN else None)


def _title(seen: Scene) -> Piece:
    profile, title = seen.profile, seen.look.title
    state = None
    if profile is not None and patterns.fits(profile.title_busy, title):
        state = State.BUSY
    elif profile is not None and patterns.fits(profile.title_idle, title):
        state = State.IDLE
    return Piece("title", _short(title) if title else "none", None, state)


def _tty(seen: Scene) -> Piece:
    tty = seen.tty
    if tty is None:
        return Piece(EvidenceKind.TTY, "not to be asked", None, None)
    words = [
        "whole lines" if tty.canonical else "single keys",
        "echo on" if tty.echo else "echo off",
        f"{tty.unread} typed bytes unread" if tty.unread else "nothing unread",
    ]
    return Piece(
        EvidenceKind.TTY, ", ".join(words), 0.0, State.BUSY if tty.unread else State.ASKING if seen.secret else None
    )


def _age(seen: Scene) -> float | None:
    return round(seen.activity.quiet, 3) if seen.activity.told else None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."
