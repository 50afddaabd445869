"""The answer of a program with an input box: what its hooks reported of the turn, else what it drew.

A hook gives the exact words, the transcript too. The screen with its history is read where there is neither: after an
interrupt, an error, or with a program without hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tmuxctl.control.observation import hook_events
from tmuxctl.control.observation.hook_events import ENDS, RecordedEvent
from tmuxctl.control.sessions import finding
from tmuxctl.control.sessions.kept_profile import profile_of
from tmuxctl.errors import NotFound
from tmuxctl.reading.answers import drawn_answer, failure
from tmuxctl.results import Output
from tmuxctl.terminal.panes import captures
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.vocabulary import EventKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.program_profile import Profile
    from tmuxctl.reading.answers.transcripts import TranscriptAnswer
    from tmuxctl.terminal.input.paste import LastInput
    from tmuxctl.terminal.tmux.server import Pane

T = TypeVar("T")

ABOVE = drawn_answer.ABOVE
"""Rows above that of the input that are looked at."""

MISFITS = 3
"""How many turns in a row without the sign of an answer show that the profile does not fit."""

FAILED = "the program reports that the turn failed, but not why"


class TurnSpan(NamedTuple):
    """The time since an input was given, by the wall clock of the session's machine in seconds."""

    begin: float
    end: float

    @classmethod
    def since(cls, machine: Machine, pane: Pane, given: LastInput) -> TurnSpan:
        """The span from an input to AHEAD_SECONDS from now: a newer file was written before the clock was set back."""
        now = machine.transport.probe([(pane.pid, pane.tty)])[0]
        return cls(now.wall - (now.at - given.at), now.wall + machine.timing.events.ahead_seconds)


class AgentAnswer(NamedTuple):
    """An answer: `source` is hook, transcript, marks or screen, None if none was found; `status` a shell command's, `tokens`
    None if nobody told. `signed` is False where the sign of an answer that the profile names was not found, `fits` where that
    of an action was not found either; `error` is why the turn failed, None if it did not; `cut`: more was printed than it is
    made from."""

    text: str
    complete: bool
    source: str | None
    status: int | None = None
    tokens: int | None = None
    signed: bool = True
    fits: bool = True
    error: str | None = None
    cut: bool = False


class GivenText(NamedTuple):
    """A text that was given to a program with an input box: its input, all of it, and how many rows had scrolled away."""

    input: LastInput
    text: str
    history: int


def find_agent_answer(
    machine: Machine, observer: Observer, given: GivenText, *, ended: bool, limited: bool = False
) -> AgentAnswer:
    """The answer to a text. `ended`: the turn came to its end, so that what the program tells of it may be waited for;
    `limited`: its state says that a limit is used up."""
    profile = observer.session_profile
    assert profile is not None
    from_hooks = _answer_from_hooks(machine, observer, given, ended) if profile.hooks else None
    if from_hooks and from_hooks.error is None:
        return from_hooks
    on_screen = read_screen(machine, observer, given, limited=limited)
    if from_hooks and from_hooks.error is not None:
        error = from_hooks.error or on_screen.error or FAILED
        text = failure.remove_failure(on_screen.text, error) if on_screen.fits else ""
        return from_hooks._replace(text=text, error=error)
    if not ended and not on_screen.signed:
        # what a program draws while it works, or has left on the screen, is no answer
        return on_screen._replace(text="")
    if on_screen.error is None and not on_screen.text.strip() and not on_screen.signed:
        return on_screen._replace(
            text="", complete=False, source=None, error=describe_missing_answer(observer.pane.name, profile)
        )
    return on_screen


def misfit_note(profile: Profile, count: int) -> str | None:
    """What the user is told after `count` turns in a row without the sign of an answer; None if they are few."""
    if count < MISFITS:
        return None
    return (
        f"the sign of an answer in profile {profile.name} was not found in {count} turns: is this another version? "
        f"tmuxctl profile check {profile.name}"
    )


def describe_missing_answer(session: str, profile: Profile) -> str:
    """The error of a turn that ended, and of which no answer is on the screen."""
    return (
        f"no answer was found on the screen of {session}; look at it: tmuxctl screen {session}; "
        f"check its profile: tmuxctl profile check {profile.name}"
    )


def format_asked(last_input: LastInput, history: int, pid: int) -> str:
    """What is kept of a turn's input as @tmuxctl_asked, so that its answer can be had later."""
    return f"{history}:{last_input.again(pid)}"


def read_last_answer(machine: Machine, pane: Pane) -> Output | None:
    """The answer of the last turn so far, of a program with an input box; None if the last input was no turn's."""
    from tmuxctl.terminal.input.paste import LastInput

    if not _has_input_box(machine, pane):
        return None
    asked, newest = machine.io.look(pane.name, (options.ASKED, options.INPUT)).values
    asked_input, newest_input = LastInput.parse(asked.partition(":")[2]), LastInput.parse(newest)
    # an input without text is keys, which may have answered questions of the same turn
    if asked_input is None or newest_input is None or (newest_input.typed and newest_input.id != asked_input.id):
        return None
    return _read_so_far(machine, pane, asked)


def read_turn_so_far(machine: Machine, pane: Pane) -> Output | None:
    """The answer of the last turn so far, of a program with an input box, whatever was typed since; None if there was none."""
    if not _has_input_box(machine, pane):
        return None
    return _read_so_far(machine, pane, *machine.io.look(pane.name, (options.ASKED,)).values)


def _read_so_far(machine: Machine, pane: Pane, asked: str) -> Output | None:
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.terminal.input.paste import LastInput

    history, _, text = asked.partition(":")
    asked_input = LastInput.parse(text)
    if asked_input is None:
        return None
    observer = Observer(machine, pane)
    typed = GivenText(asked_input, asked_input.typed.decode("utf-8", "ignore"), int(history))
    found = find_agent_answer(machine, observer, typed, ended=False)
    text = screens.strip_escapes(found.text or (found.error or "" if found.source else ""))
    return Output(pane.name, text, finding.cursor_at(pane, observer.journal.end()), False, found.complete)


def _has_input_box(machine: Machine, pane: Pane) -> bool:
    profile = profile_of(machine, pane)
    return profile is not None and profile.submit.mode == "paste" and not pane.dead


def _answer_from_hooks(machine: Machine, observer: Observer, given: GivenText, ended: bool) -> AgentAnswer | None:
    if observer.events is None:
        return None
    span = TurnSpan.since(machine, observer.pane, given.input)
    timing = machine.timing.answer
    late = timing.late_seconds if ended and _reports_turns(observer, span) else 0.0
    turn_end = _await_turn_end(machine, observer.events, span, given.text, late)
    path = _named_transcript(observer.events, span)
    hooks = observer.events.hooks
    text = turn_end.event.text if turn_end else None
    entry = None
    if ended and hooks.transcript is not None:
        entry = _await_transcript(
            machine, observer, path, given.text, timing.late_tokens_seconds if text is not None else 0.0
        )
    tokens = entry.tokens if entry else turn_end.event.tokens if turn_end else None
    if turn_end is not None and turn_end.event.means == EventKind.FAILURE:
        return AgentAnswer("", False, "hook", tokens=tokens, error=(text or "").strip())
    if text is not None:
        return AgentAnswer(text.rstrip("\n"), True, "hook", tokens=tokens)
    return AgentAnswer(entry.text.rstrip("\n"), True, "transcript", tokens=tokens) if entry else None


def _await_transcript(
    machine: Machine, observer: Observer, path: str | None, typed: str, patience: float
) -> TranscriptAnswer | None:
    """The entry of the transcript; waits at most `patience` seconds for it."""
    assert observer.events is not None
    assert observer.events.hooks.transcript is not None
    transcript = observer.events.hooks.transcript
    find = partial(hook_events.find_transcript_entry, machine, observer.pane, transcript, path, typed)
    return _await_found(machine, find, patience if path else 0.0)


def _await_found(machine: Machine, find: Callable[[], T | None], patience: float) -> T | None:
    """What is found within so many seconds."""
    deadline = machine.clock.monotonic() + patience
    while (found := find()) is None and machine.clock.monotonic() < deadline:
        machine.clock.sleep(machine.timing.answer.pause_seconds)
    return found


def _reports_turns(observer: Observer, span: TurnSpan) -> bool:
    """Whether an end of this turn can be expected: its hooks reported an event of it, or report ends only and are there."""
    assert observer.events is not None
    kinds = {rule.means for rule in observer.events.hooks.events}
    if not kinds & set(ENDS):
        return False
    return bool(observer.events.read_between(*span)) if "submit" in kinds else observer.has_hooks


def _await_turn_end(
    machine: Machine, events: hook_events.HookEvents, span: TurnSpan, typed: str, patience: float
) -> RecordedEvent | None:
    """The event that reports the end of this turn; waits at most `patience` seconds for it."""

    def find() -> RecordedEvent | None:
        ends = (one for one in reversed(events.read_between(*span)) if one.event.means in ENDS)
        return next((one for one in ends if hook_events.may_be_about(one.event, typed.encode())), None)

    return _await_found(machine, find, patience)


def _named_transcript(events: hook_events.HookEvents, span: TurnSpan) -> str | None:
    """The transcript that the newest event names."""
    paths = [path for recorded in events.read_between(*span) if (path := recorded.event.transcript)]
    return paths[-1] if paths else None


def read_screen(machine: Machine, observer: Observer, given: GivenText, *, limited: bool = False) -> AgentAnswer:
    """The answer on the screen and in its history, from the row on which the text was given; a line that the terminal
    wrapped counts as one."""
    profile, name = observer.session_profile, observer.pane.name
    assert profile is not None
    try:
        pane = finding.find_session(machine, name)
        # where rows are gone, as the history was full or was cleared, only the echo shows where the answer begins
        scrolled = -1 if _may_be_cut(machine, pane) else pane.history - given.history
        reach = max(1, scrolled - given.input.y + ABOVE) if scrolled >= 0 else 0
        capture = captures.capture_session(machine.io, name, scrollback=reach, wide=True)
    except NotFound:
        return AgentAnswer("", False, "screen")
    rows = [
        *(screens.plain_text(capture.scrollback).split("\n") if capture.scrollback else []),
        *screens.plain_text(capture.rows).split("\n"),
    ]
    # the alternate screen has no history: the answer is anywhere on it
    anchored = scrolled >= 0 and not capture.pane.alternate
    anchor = _row_of_input(scrolled, given.input.y, capture.pane.history) if anchored else None
    found = drawn_answer.read_answer(rows, given.text, profile, anchor=anchor, limited=limited, tmux=capture.pane.tmux)
    return AgentAnswer(found.text, found.complete, "screen", signed=found.signed, fits=found.fits, error=found.error)


def _may_be_cut(machine: Machine, pane: Pane) -> bool:
    """Whether rows may have left the history for good: tmux drops its oldest tenth each time that it is full."""
    limit = int(machine.io.look(pane.name, ("history_limit",)).values[0] or 0)
    return pane.history >= limit - max(1, limit // 10)


def _row_of_input(scrolled: int, y: int, history: int) -> int:
    """The index of the captured row on which the text was given; `scrolled` rows have scrolled away since."""
    captured = min(history, max(1, scrolled - y + ABOVE))
    return max(0, captured - scrolled + y)
