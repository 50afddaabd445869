"""The answer of a program that is given texts in a composer: what it told of its turn, else what it drew.

A hook gives the exact words, the transcript too; the screen with its history is what is left where neither is to be had:
after an interrupt, an error, or with a program that tells nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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

ABOVE = drawn_answer.ABOVE
"""Rows above that of the input that are looked at."""

MISFITS = 3
"""After so many turns in a row without the sign of an answer the profile is taken not to fit."""

FAILED = "the program tells that the turn failed, and not why"


class TurnSpan(NamedTuple):
    """The time since an input was given, by the wall clock of the session's machine in seconds."""

    begin: float
    end: float

    @classmethod
    def since(cls, machine: Machine, pane: Pane, given: LastInput) -> TurnSpan:
        """It ends a while from now: what is newer was written before the clock was set back."""
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
    told = _told(machine, observer, given, ended) if profile.hooks else None
    if told and told.error is None:
        return told
    drawn = read_screen(machine, observer, given, limited=limited)
    if told and told.error is not None:
        error = told.error or drawn.error or FAILED
        text = failure.remove_failure(drawn.text, error) if drawn.fits else ""
        return told._replace(text=text, error=error)
    if not ended and not drawn.signed:
        # what it draws while it works, or left behind, is no answer
        return drawn._replace(text="")
    if drawn.error is None and not drawn.text.strip() and not drawn.signed:
        return drawn._replace(text="", complete=False, source=None, error=nothing_found(observer.pane.name, profile))
    return drawn


def misfit(profile: Profile, count: int) -> str | None:
    """What is said after so many turns in a row in which the sign of an answer was not found."""
    if count < MISFITS:
        return None
    return (
        f"the sign of an answer in profile {profile.name} was not found in {count} turns: is this another version? "
        f"tmuxctl profile check {profile.name}"
    )


def nothing_found(session: str, profile: Profile) -> str:
    """The error of a turn that ended, and of which no answer is to be seen."""
    return (
        f"no answer was found on the screen of {session}; look: tmuxctl screen {session}, "
        f"and whether its profile fits: tmuxctl profile check {profile.name}"
    )


def remembered(given: LastInput, history: int, pid: int) -> str:
    """What is kept of a turn's input as @tmuxctl_asked, so that its answer can be had later."""
    return f"{history}:{given.again(pid)}"


def last(machine: Machine, pane: Pane) -> Output | None:
    """The answer of the last turn so far, of a program with a composer; None if the last input was no turn's."""
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.terminal.input.paste import LastInput

    profile = profile_of(machine, pane)
    if profile is None or profile.submit.mode != "paste" or pane.dead:
        return None
    here = pane.target
    told = machine.transport.run(
        [("display-message", "-p", "-t", here, f"#{{{name}}}") for name in (options.ASKED, options.INPUT)]
    ).decode(errors="replace")
    asked, _, newest = told.rstrip("\n").partition("\n")
    history, _, text = asked.partition(":")
    given, later = LastInput.parse(text), LastInput.parse(newest)
    # keys may have answered its questions
    if given is None or later is None or (later.typed and later.id != given.id):
        return None
    watched = Observer(machine, pane)
    typed = GivenText(given, given.typed.decode("utf-8", "ignore"), int(history))
    found = find_agent_answer(machine, watched, typed, ended=False)
    text = found.text or (found.error or "" if found.source else "")
    return Output(
        pane.name, screens.strip_escapes(text), finding.cursor(pane, watched.journal.end()), False, found.complete
    )


def _told(machine: Machine, observer: Observer, given: GivenText, ended: bool) -> AgentAnswer | None:
    if observer.events is None:
        return None
    since = TurnSpan.since(machine, observer.pane, given.input)
    timing = machine.timing.answer
    late = timing.late_seconds if ended and _tells(observer, since) else 0.0
    last = _end(machine, observer.events, since, given.text, late)
    path = _named(observer.events, since)
    hooks = observer.events.hooks
    text = last.event.text if last else None
    entry = None
    if ended and hooks.transcript is not None:
        entry = _transcript(
            machine, observer, path, given.text, timing.late_tokens_seconds if text is not None else 0.0
        )
    tokens = entry.tokens if entry else last.event.tokens if last else None
    if last is not None and last.event.means == EventKind.FAILURE:
        return AgentAnswer("", False, "hook", tokens=tokens, error=(text or "").strip())
    if text is not None:
        return AgentAnswer(text.rstrip("\n"), True, "hook", tokens=tokens)
    return AgentAnswer(entry.text.rstrip("\n"), True, "transcript", tokens=tokens) if entry else None


def _transcript(
    machine: Machine, observer: Observer, path: str | None, typed: str, patience: float
) -> TranscriptAnswer | None:
    """What the transcript says, for whose last entry it is waited so many seconds."""
    assert observer.events is not None
    assert observer.events.hooks.transcript is not None
    deadline = machine.clock.monotonic() + (patience if path else 0.0)
    while True:
        found = hook_events.find_transcript_entry(machine, observer.pane, observer.events.hooks.transcript, path, typed)
        if found or machine.clock.monotonic() >= deadline:
            return found
        machine.clock.sleep(machine.timing.answer.pause_seconds)


def _tells(observer: Observer, since: TurnSpan) -> bool:
    """Whether the program was heard to tell anything: of this turn, or where it tells only ends, at all or not yet."""
    assert observer.events is not None
    known = {told.means for told in observer.events.hooks.events}
    if not known & set(ENDS):
        return False
    return bool(observer.events.read_between(*since)) if "submit" in known else observer.has_hooks


def _end(
    machine: Machine, told: hook_events.HookEvents, since: TurnSpan, typed: str, patience: float
) -> RecordedEvent | None:
    """The event that told the end of this turn, for which it is waited so many seconds."""
    deadline = machine.clock.monotonic() + patience
    while True:
        happened = told.read_between(*since)
        ends = [
            one for one in happened if one.event.means in ENDS and hook_events.may_be_about(one.event, typed.encode())
        ]
        if ends or machine.clock.monotonic() >= deadline:
            return ends[-1] if ends else None
        machine.clock.sleep(machine.timing.answer.pause_seconds)


def _named(told: hook_events.HookEvents, since: TurnSpan) -> str | None:
    """The transcript that the newest event names."""
    paths = [path for one in told.read_between(*since) if (path := one.event.transcript)]
    return paths[-1] if paths else None


def read_screen(machine: Machine, observer: Observer, given: GivenText, *, limited: bool = False) -> AgentAnswer:
    """What stands in the terminal and its history from the row on which the text was given, each line that the terminal
    wrapped as one."""
    profile, name = observer.session_profile, observer.pane.name
    assert profile is not None
    try:
        pane = finding.find(machine, name)
        # rows that the history had no more room for, or that the program cleared, are gone: then only the echo tells
        since = pane.history - given.history
        reach = max(1, since - given.input.y + ABOVE) if since >= 0 else 0
        now = captures.capture_session(machine.transport, name, scrollback=reach, wide=True)
    except NotFound:
        return AgentAnswer("", False, "screen")
    rows = [
        *(screens.plain_text(now.scrollback).split("\n") if now.scrollback else []),
        *screens.plain_text(now.rows).split("\n"),
    ]
    # a screen of its own has no history: what stands on it is all there is, wherever its composer is
    known = since >= 0 and not now.pane.alternate
    anchor = _anchor(since, given.input.y, now.pane.history) if known else None
    found = drawn_answer.read_answer(rows, given.text, profile, anchor=anchor, limited=limited, tmux=now.pane.tmux)
    return AgentAnswer(found.text, found.complete, "screen", signed=found.signed, fits=found.fits, error=found.error)


def _anchor(since: int, y: int, history: int) -> int:
    """Which of the captured rows the text was given on, if so many have scrolled away since."""
    captured = min(history, max(1, since - y + ABOVE))
    return max(0, captured - since + y)
