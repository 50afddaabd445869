"""The answer of a turn that has ended: what the program wrote between the input and the end, and how sure that is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.control.observation.consumption import count_switches
from tmuxctl.control.observation.observing import StabilityTracker
from tmuxctl.control.output.agent_answer import AgentAnswer, GivenText, find_agent_answer, misfit_note, read_screen
from tmuxctl.control.sessions import finding
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import State
from tmuxctl.reading.answers import drawn_answer, failure
from tmuxctl.reading.answers import printed_answer as answers
from tmuxctl.results import Answer, Submitted, Wait
from tmuxctl.terminal.tmux import options
from tmuxctl.vocabulary import Detail, InputKind, WaitCondition

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.terminal.input.paste import LastInput
    from tmuxctl.terminal.tmux.server import Pane

ANSWER_LIMIT = 8 << 20
"""Bytes of output an answer is made from; one that is cut there is not complete."""

WAITED = (WaitCondition.IDLE, WaitCondition.UNKNOWN)
"""What a turn ends in where the program neither asks nor has ended."""


class TurnInput(NamedTuple):
    """What a turn gave to a program: its first input, all its text, and what stood left of the cursor before.

    Of a program with an input box also how many rows had scrolled away, its screen, and whether the text was taken; `taken`
    is None of a program that is typed lines.
    """

    first: LastInput
    typed: bytes
    prompt: str | None
    history: int = 0
    screen: str = ""
    taken: Submitted | None = None

    @property
    def given_text(self) -> GivenText:
        return GivenText(self.first, self.typed.decode("utf-8", "replace"), self.history)


class TurnCount(NamedTuple):
    """The number of a turn in its session, and after how many in a row no sign of an answer had been found before it."""

    number: int
    misfits: int


class EndedTurn(NamedTuple):
    """A turn from its beginning (monotonic) to its end. `raw`: its answer is to have all that was drawn."""

    machine: Machine
    pane: Pane
    steady: StabilityTracker
    given: TurnInput
    counted: TurnCount
    end: Wait
    began: float
    raw: bool

    @property
    def waits(self) -> bool:
        """True if the program waits now, and no question stands."""
        return self.end.matched in WAITED


def read_answer(turn: EndedTurn) -> Answer:
    """The answer, with what is known of the turn's input and end."""
    end, journal, first = turn.end, turn.steady.observer.journal, turn.given.first
    extent = journal.extent()
    stop = extent.end
    part = journal.read(first.offset, min(ANSWER_LIMIT, max(0, stop - first.offset)))
    found = _find_answer(turn, part.data, cut=part.truncated or part.end < stop or extent.stopped)
    return Answer(
        session=turn.pane.name,
        answer=found.text,
        status=end.status,
        turn=turn.counted.number,
        submitted=turn.given.taken or _find_sign_of_input(turn.steady, first),
        complete=found.complete and turn.waits and end.kind is not InputKind.CONTINUATION,
        elapsed=round(turn.machine.clock.monotonic() - turn.began, 3),
        cursor=finding.cursor_at(turn.pane, stop),
        truncated=found.cut,
        exit_status=end.exit_status if end.matched is WaitCondition.EXIT else found.status,
        signal=end.signal,
        usage={"output_tokens": found.tokens},
        answered_by=turn.pane.spec.get("profile"),
        source=found.source,
        timed_out=end.timed_out,
        error=found.error,
        warning=_count_misfits(turn, found) if end.matched is WaitCondition.IDLE else None,
    )


def shows_answer(machine: Machine, steady: StabilityTracker, given: TurnInput) -> bool:
    """Whether an answer has begun to stand on the screen, which the last look saw as it is now."""
    observer, look = steady.observer, steady.newest
    if observer.session_profile is None or observer.journal.end() != look.journal:
        return False
    if look.alternate and observer.session_profile.answer.begin is None:
        # a screen of its own is drawn anew as a whole: nothing tells an answer there
        return False
    found = read_screen(machine, observer, given.given_text)
    if look.alternate and not found.signed and not found.complete:
        return drawn_answer.is_screen_replaced(given.screen, look.screen, given.given_text.text)
    return found.signed and bool(found.text.strip() or found.error)


def _find_answer(turn: EndedTurn, printed: bytes, *, cut: bool) -> AgentAnswer:
    """The answer: of a program with a composer what it told or drew, else what it printed. `cut`: more was printed."""
    given, end = turn.given, turn.end
    if given.taken is None:
        found = _find_printed(turn, printed, cut=cut)
        return _without_error(turn, found) if end.matched is WaitCondition.IDLE and not turn.raw else found
    ended, limited = turn.waits and given.taken.ok, end.detail == Detail.LIMITED
    told = find_agent_answer(turn.machine, turn.steady.observer, given.given_text, ended=ended, limited=limited)
    return _find_printed(turn, printed, cut=cut)._replace(error=told.error) if turn.raw else told


def _find_printed(turn: EndedTurn, printed: bytes, *, cut: bool) -> AgentAnswer:
    """What was printed since the first line was typed."""
    observer, first, end = turn.steady.observer, turn.given.first, turn.end
    found = answers.cut_answer(
        printed,
        answers.TypedInput(turn.given.typed, first.x, first.y, first.cols, first.rows, first.echo, turn.pane.tmux),
        prompt_before=turn.given.prompt,
        token=observer.mark_token if observer.at_prompt(first.offset) else None,
        profile=observer.profile,
        end=answers.TurnEnd(end.kind, end.detail) if end.state in (State.IDLE, State.ASKING) else None,
        raw=turn.raw,
    )
    # of the alternate screen only what changed on it is known
    return AgentAnswer(found.text, found.complete and not (cut or first.alternate), found.source, found.status, cut=cut)


def _without_error(turn: EndedTurn, found: AgentAnswer) -> AgentAnswer:
    """What a program of lines printed, or what of it came before the error in which its turn ended."""
    profile, limited = turn.steady.observer.profile, turn.steady.verdict.detail == Detail.LIMITED
    rows = found.text.split("\n")
    error = failure.find_failure(rows, profile, limited=limited) if profile else None
    if error is None:
        return found
    return found._replace(text="\n".join(rows[: error.row]).strip("\n"), complete=False, error=error.text)


def _find_sign_of_input(steady: StabilityTracker, first: LastInput) -> Submitted:
    """What shows that a program of lines has read what was typed."""
    look = steady.observer.looks[-1] if steady.observer.looks else None
    if steady.observer.at_prompt(first.offset) and look and look.mark and look.mark.offset >= first.offset:
        return Submitted(True, "shell-mark")
    if steady.observer.journal.end() > first.offset:
        return Submitted(True, "output")
    if steady.switches_before is not None and look and count_switches(look.kernel) != steady.switches_before:
        return Submitted(True, "kernel")
    return Submitted(False, "nothing shows that the program took it")


def _count_misfits(turn: EndedTurn, found: AgentAnswer) -> str | None:
    """Count the turns in a row whose answer was looked for on the screen and has no sign that the profile names; what is
    to be said of that."""
    profile, before = turn.steady.observer.session_profile, turn.counted.misfits
    if turn.given.taken is None or profile is None or found.source not in ("screen", None) or turn.raw:
        return None
    count = 0 if found.fits else before + 1
    if count != before:
        with suppress(TmuxctlError):
            turn.machine.io.change(turn.pane.name, {options.MISFITS: str(count)})
    return misfit_note(profile, count)
