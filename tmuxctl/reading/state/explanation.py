"""Every piece of evidence in words, and the state it argues for by itself: what `explain` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.evidence import Evidence
from tmuxctl.model import State
from tmuxctl.reading.evidence.tty_waits import NOT_WAITING, POLLING, READING, RUNNING, STOPPED
from tmuxctl.reading.state import input_kinds, screen_rules
from tmuxctl.reading.state.judging import decide
from tmuxctl.reading.state.situation import Situation, build_situation
from tmuxctl.reading.state.waiting_rules import SETTLE_UNKNOWN
from tmuxctl.reading.text import patterns
from tmuxctl.vocabulary import EventKind, EvidenceKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile

ARGUES: Mapping[str, State] = {
    EventKind.STOP: State.IDLE, EventKind.FAILURE: State.IDLE, EventKind.ASKING: State.ASKING
}  # fmt: skip
"""The state that an event of the program's hooks argues for; any other one says that it works."""


class Argument(NamedTuple):
    """One piece of evidence: what it is, what was seen, how many seconds ago, the state it argues for (None: for nothing),
    and whether the verdict rests on it."""

    source: str
    seen: str
    age: float | None
    state: State | None
    used: bool = False


def list_arguments(evidence: Evidence, profile: Profile | None = None) -> tuple[Argument, ...]:
    """Every piece of evidence and what it argues for, in the order of the rules."""
    situation = build_situation(evidence, profile)
    rule, verdict = decide(situation)
    arguments = (explain(situation) for explain in EXPLANATIONS)
    return tuple(argument._replace(used=argument.source in (rule, verdict.by)) for argument in arguments)


def _explain_exit(situation: Situation) -> Argument:
    look = situation.look
    if not look.dead:
        return Argument(EvidenceKind.EXIT, "the program runs", 0.0, None)
    status = "how is not known" if look.status is None else f"status {look.status}"
    how = f"signal {look.signal}" if look.signal else status
    return Argument(EvidenceKind.EXIT, f"ended, {how}", 0.0, State.EXITED)


def _explain_hook(situation: Situation) -> Argument:
    hook = situation.look.hook
    if hook is None:
        words = "its hooks report turns, none so far" if situation.evidence.hooks else "no hooks report its turns"
        return Argument(EvidenceKind.HOOK, words, None, None)
    argues = ARGUES.get(hook.means, State.BUSY)
    return Argument(EvidenceKind.HOOK, f"{hook.means} was its last report", hook.age, argues)


def _explain_mark(situation: Situation) -> Argument:
    mark = situation.look.mark
    if mark is None:
        expected = "none yet" if situation.evidence.marks else "the shell prints none"
        return Argument(EvidenceKind.SHELL_MARK, expected, None, None)
    words = {"A": "the prompt begins", "B": "the prompt is drawn", "C": "a command runs", "D": "a command has ended"}
    status = f" with status {mark.status}" if mark.status is not None else ""
    state = State.BUSY if mark.letter == "C" else State.IDLE
    return Argument(EvidenceKind.SHELL_MARK, f"{mark.letter}: {words.get(mark.letter, 'unknown')}{status}", None, state)


def _explain_question(situation: Situation) -> Argument:
    words = None
    if match := screen_rules.find_asking_match(situation):
        words = f"rule {match.rule.id}: {_shorten(match.found[0])}"
    elif question := input_kinds.find_question(situation) or input_kinds.find_question_by_text(situation):
        words = f"{question.kind}: {_shorten(question.question)}"
    state = State.ASKING if words else None
    return Argument(EvidenceKind.ASKING_MARK, words or "no question on the screen", _output_age(situation), state)


def _explain_busy(situation: Situation) -> Argument:
    if match := screen_rules.find_busy_match(situation):
        return Argument(EvidenceKind.BUSY_MARK, match[0], _output_age(situation), State.BUSY)
    if sign := patterns.find_busy_sign(situation.text):
        return Argument(EvidenceKind.BUSY_MARK, _shorten(sign), _output_age(situation), State.BUSY)
    return Argument(EvidenceKind.BUSY_MARK, "no busy sign at the bottom", _output_age(situation), None)


def _explain_prompt(situation: Situation) -> Argument:
    left = situation.text.bare
    if rule := situation.prompt or situation.continuation:
        words = f"rule {rule.rule.id}: {_shorten(left or rule.found[0])}"
        return Argument(EvidenceKind.PROMPT, words, _output_age(situation), State.IDLE)
    if not left:
        return Argument(EvidenceKind.PROMPT, "there is no text left of the cursor", _output_age(situation), None)
    state = State.IDLE if patterns.ends_like_prompt(left) or patterns.has_text_behind_prompt(left) else None
    return Argument(EvidenceKind.PROMPT, f"left of the cursor: {_shorten(left)}", _output_age(situation), state)


def _explain_kernel(situation: Situation) -> Argument:
    foreground = situation.foreground
    if foreground is None:
        return Argument(EvidenceKind.KERNEL, "it shows no process here", None, None)
    names = ", ".join(dict.fromkeys(program.name for program in foreground.programs))
    level = "" if foreground.certain or foreground.waits else f" ({foreground.programs[0].level})"
    asleep = ", ".join(foreground.sleeps_in[:3]) or "another place"
    words = {
        READING: f"{foreground.name} blocked in {foreground.call} on the terminal",
        POLLING: f"{foreground.remote_wrapper or foreground.name} {situation.wait_description}",
        RUNNING: f"{', '.join(foreground.running)} running, no process waits for the terminal",
        NOT_WAITING: f"{names} in {asleep}, no process waits for the terminal",
        STOPPED: f"{names} stopped",
    }
    states = {
        READING: State.IDLE,
        POLLING: None if foreground.remote_wrapper else State.IDLE,
        RUNNING: State.BUSY,
        NOT_WAITING: State.BUSY,
        STOPPED: State.BUSY,
    }
    untold = f"{names} in the foreground" if foreground.by_ps else f"{names} cannot be inspected"
    shown = words.get(foreground.wait, untold) + level
    return Argument(EvidenceKind.KERNEL, shown, 0.0, states.get(foreground.wait))


def _explain_activity(situation: Situation) -> Argument:
    pace = situation.activity
    words = f"{pace.rate:.1f} updates a second"
    state = State.BUSY if pace.animated or pace.beginning else None
    return Argument(EvidenceKind.ACTIVITY, words, _output_age(situation), state)


def _explain_quiet(situation: Situation) -> Argument:
    pace = situation.activity
    words = f"quiet for {'' if pace.quiet_known else 'at least '}{pace.quiet:.1f} s"
    state = State.UNKNOWN if pace.quiet >= SETTLE_UNKNOWN else None
    return Argument(EvidenceKind.SETTLE, words, _output_age(situation), state)


def _explain_title(situation: Situation) -> Argument:
    profile, title = situation.profile, situation.look.title
    state = None
    if profile is not None and patterns.fits(profile.title_busy, title):
        state = State.BUSY
    elif profile is not None and patterns.fits(profile.title_idle, title):
        state = State.IDLE
    return Argument("title", _shorten(title) if title else "none", None, state)


def _explain_tty(situation: Situation) -> Argument:
    tty = situation.tty
    if tty is None:
        return Argument(EvidenceKind.TTY, "cannot be read", None, None)
    words = [
        "whole lines" if tty.canonical else "single keys",
        "echo on" if tty.echo else "echo off",
        _describe_unread(tty.unread),
    ]
    state = State.BUSY if tty.unread else State.ASKING if situation.hides_input else None
    return Argument(EvidenceKind.TTY, ", ".join(words), 0.0, state)


def _describe_unread(unread: int | None) -> str:
    if unread is None:
        return "unread bytes are not counted"
    return f"{unread} typed bytes unread" if unread else "nothing unread"


def _output_age(situation: Situation) -> float | None:
    return round(situation.quiet, 3) if situation.quiet_known else None


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


EXPLANATIONS = (
    _explain_exit,
    _explain_hook,
    _explain_mark,
    _explain_question,
    _explain_busy,
    _explain_prompt,
    _explain_kernel,
    _explain_activity,
    _explain_quiet,
    _explain_title,
    _explain_tty,
)
