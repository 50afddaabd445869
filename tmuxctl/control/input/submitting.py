"""Giving a text to a program that edits it in a composer: whole, once, and seen to be taken.

Such a program may show a dialog where the composer stood, need a moment for a pasted text before it takes Enter, or take
Enter for a new line (measured on real agent programs). So nothing is pressed that was not looked for first: the text has
to stand in the composer before Enter, and something has to show that it was taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.control.input import sending
from tmuxctl.control.observation.hook_events import ENDS
from tmuxctl.control.sessions import finding
from tmuxctl.errors import Conflict
from tmuxctl.evidence import Look
from tmuxctl.model import State
from tmuxctl.operations import current
from tmuxctl.reading.answers import input_box
from tmuxctl.reading.evidence import tty_waits
from tmuxctl.results import Submitted, Written
from tmuxctl.terminal.input import paste
from tmuxctl.terminal.input.keys import tmux_keys
from tmuxctl.terminal.input.paste import LastInput, Write
from tmuxctl.terminal.tmux import lease, options
from tmuxctl.terminal.tmux.lease import LeaseHolder
from tmuxctl.vocabulary import EventKind, EvidenceKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.observing import StabilityTracker
    from tmuxctl.program_profile import Profile
    from tmuxctl.reading.state.judging import Verdict
    from tmuxctl.terminal.tmux.server import Pane

TRIES = 2
"""How often a text is pasted that did not show whole, and Enter pressed of which nothing came."""

CLEARINGS, VAIN = 200, 2
"""How often a composer is cleared, as an editor clears one line at a time; and after how many times in vain no more."""

PROOFS = (EventKind.SUBMIT, *ENDS)
"""What a program tells of itself once it took a text. That it wants something, it may still tell of the turn before."""

NOT_SHOWN = "the text did not show"
NO_PROOF = "nothing shows that it was taken"


class QuestionAppeared(Exception):
    """A question stands where the text was to be taken; nothing was pressed into it."""


class SubmittedInput(NamedTuple):
    """What became of a text: the input it is remembered as, and what showed that it was taken."""

    input: LastInput
    submitted: Submitted


def send(machine: Machine, pane: Pane, write: Write, profile: Profile) -> Written | None:
    """Put a text into the composer of a program that is given texts so, and press Enter when it stands there; what becomes
    of it is not looked for. None if the program asks something: that takes keys.

    Raises Conflict `not_shown` or DecisionNeeded, with the text where it is and Enter not pressed, if the text does not
    show or a question comes in its place.
    """
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.control.observation.observing import StabilityTracker
    from tmuxctl.control.waiting.waits import asks

    observer = Observer(machine, pane)
    holder = lease.LeaseHolder.new()
    with sending.leased(machine, pane, holder):
        done = sending.parts_done(machine, pane, write.id)
        if done > 1:
            return Written(pane.name, "dup", write.id, len(write.data), finding.cursor(pane, observer.journal.end()))
        _, given = finding.find_with_input(machine, pane.name)
        steady = StabilityTracker(machine, observer, LastInput.parse(given))
        steady.observe()
        if observer.verdict().state is State.ASKING:
            return None
        taken = [machine.clock.monotonic()]

        def renew() -> None:
            if machine.clock.monotonic() - taken[0] > machine.timing.submission.renew_seconds:
                taken[0] = machine.clock.monotonic()
                lease.take_lease(machine.transport, holder, pane)

        submission = Submission(machine, steady, profile, holder, renew)
        try:
            return submission.type(write, pasted=done > 0)
        except QuestionAppeared:
            raise asks(pane.name, observer.verdict()) from None


class Submission:
    """One text on its way into a composer. `renew` keeps the lease; it is called often."""

    def __init__(
        self,
        machine: Machine,
        steady: StabilityTracker,
        profile: Profile,
        holder: LeaseHolder,
        renew: Callable[[], None],
    ) -> None:
        self.machine, self.steady, self.profile, self.holder, self.renew = machine, steady, profile, holder, renew
        self.timing, self.clock = machine.timing.submission, machine.clock
        self.manner = profile.submit
        self.look: Look = self._with_cursor(steady.newest)
        self.marked = False
        self.pressed = 0.0

    def give(self, text: bytes) -> SubmittedInput:
        """Paste the text, press Enter once it stands in the composer, and look for proof.

        Raises QuestionAppeared if a question comes in its place, Conflict `leftovers` if the composer cannot be emptied.
        """
        given: LastInput | None = None
        left = self._was_left()
        for _ in range(TRIES):
            if not self._clear(left=left) and given is None:
                raise self._leftovers()
            if given is not None and not input_box.is_empty(self.look, self.profile):
                # what may still stand there would be sent twice
                self._leave(given)
                return SubmittedInput(given, Submitted(False, NOT_SHOWN))
            before = self.look
            given = self._paste(text)
            # from here on what was seen before says nothing of what comes
            self.steady.note_input(given, None)
            if self._shown(text, before) or self.manner.verify != "echo":
                break
            left = True
            self._refuse_questions()
        else:
            assert given is not None
            if not self._clear(left=True):
                self._leave(given)
            return SubmittedInput(given, Submitted(False, NOT_SHOWN))
        shown = self.look
        self._refuse_questions()
        # a text may hold what looks like the program's own sign of work
        self.marked = self._verdict().by is EvidenceKind.BUSY_MARK
        for _ in range(TRIES):
            self._press(given)
            if evidence := self._proof(shown):
                return SubmittedInput(given, Submitted(True, evidence))
            self._look()
            if self._asks():
                # it came late, and of this text: given anew it would be there twice
                return SubmittedInput(given, Submitted(True, "asking"))
            if not input_box.keeps_text(self.look, shown):
                break
        else:
            self._leave(given)
        return SubmittedInput(given, Submitted(False, NO_PROOF))

    def type(self, write: Write, *, pasted: bool) -> Written:
        """Paste a text behind what stands in the composer, if it was not `pasted` before, and press Enter once it shows."""
        pane, before = self.steady.observer.pane, self.look
        given = self._paste(write.data, write.id)
        self.steady.note_input(given, None)
        if not pasted and not self._shown(write.data, before) and self.manner.verify == "echo":
            self._refuse_questions()
            raise Conflict(
                f"the text did not show in {pane.name}; Enter was not pressed",
                reason="not_shown",
                hint=f"look: tmuxctl screen {pane.name}; send it: tmuxctl keys {pane.name} Enter",
            )
        self._refuse_questions()
        enter = Write(write.id, keys=[(key,) for key in tmux_keys(self.manner.enter)], part=1)
        result = paste.carry_out(self.machine.transport, self.holder, pane, enter, given.again(self.holder.pid))
        return Written(pane.name, result, write.id, len(write.data), finding.cursor(pane, before.journal))

    # before

    def _was_left(self) -> bool:
        """Whether a text of an earlier turn was left in the composer, and nothing was typed since."""
        pane, given = self.steady.observer.pane, self.steady.last_input
        told = self.machine.transport.run([("display-message", "-p", "-t", pane.target, f"#{{{options.LEFT}}}")])
        return given is not None and told.decode(errors="replace").strip() == given.id

    def _leave(self, given: LastInput) -> None:
        """Note that this text may still stand in the composer."""
        pane = self.steady.observer.pane
        self.machine.transport.run([("set-option", "-t", pane.target, options.LEFT, given.id)])

    def _clear(self, *, left: bool) -> bool:
        """Empty the composer of what somebody left there, or the program put back after an interrupt; False if a text that
        was `left` there may still stand. Conflict `leftovers` if something stands there that cannot be cleared."""
        vain = cleared = 0
        for _ in range(CLEARINGS if self.manner.clear and self.profile.prompt else 0):
            empty = input_box.is_empty(self.look, self.profile)
            # a text of many lines may hide the prompt it begins behind: then a clear key that changes nothing tells
            if (empty and not (left and cleared + vain == 0)) or vain == (VAIN if empty is False else 1):
                break
            sending.press(self.machine, self.steady.observer.pane, self.manner.clear, self.holder, apart=True)
            changed = self._until(partial(self._changed, self.look), self.timing.cleared_seconds)
            vain, cleared = (0, cleared + 1) if changed else (vain + 1, cleared)
            # the first key may have opened a dialog
            self._refuse_questions()
        empty = input_box.is_empty(self.look, self.profile)
        if empty is False:
            raise self._leftovers()
        return not left or bool(empty or cleared)

    def _leftovers(self) -> Conflict:
        name, keys = self.steady.observer.pane.name, " ".join(self.manner.clear)
        return Conflict(
            f"what stands in the composer of {name} cannot be cleared",
            reason="leftovers",
            hint=f"look at it: tmuxctl screen {name}; and clear it: tmuxctl keys {name} {keys or 'C-u'}",
        )

    def _changed(self, was: Look) -> bool:
        return self.look.screen != was.screen

    def _paste(self, text: bytes, write_id: str | None = None) -> LastInput:
        self.renew()
        pane, newline = self.steady.observer.pane, self.manner.newline
        return sending.paste(
            self.machine, pane, text, self.look.journal, self.holder, newline=newline, write_id=write_id
        )

    def _shown(self, text: bytes, before: Look) -> bool:
        """Wait until the composer shows the text, or something in its place, and for the pause the profile asks for."""
        moved = [self.clock.monotonic(), self.look.journal]
        sign = input_box.read_prompt_sign(before, self.profile)

        def shows() -> bool:
            if self.look.journal != moved[1] or self._computes():
                moved[:] = self.clock.monotonic(), self.look.journal
            if self.look.screen == before.screen or input_box.read_prompt_sign(self.look, self.profile) not in (
                sign,
                "",
            ):
                return False
            if input_box.shows_text(self.look, text, self.profile):
                return True
            if input_box.shows_part_of_text(self.look, text, self.profile):
                return False
            still = self.clock.monotonic() - moved[0] >= self.timing.still_seconds
            return still and input_box.is_empty(self.look, self.profile) is not True

        found = False
        longest = self.clock.monotonic() + self.timing.longest_seconds
        while (
            not found
            and moved[0] + self.timing.shown_seconds > self.clock.monotonic()
            and self.clock.monotonic() < longest
        ):
            found = self._until(shows, self.timing.pause_seconds)
            if self.look.dead:
                return found
        # a program takes Enter that comes with a paste, or soon behind it, for a part of the text (Gemini, measured)
        self._until(lambda: not self._computes(), self.timing.shown_seconds)
        self._until(lambda: self._rested(moved), self.manner.delay + self.timing.lively_seconds)
        return found

    def _rested(self, moved: list[float]) -> bool:
        """Nothing was printed for as long as the profile asks for."""
        if self.look.journal != moved[1]:
            moved[:] = self.clock.monotonic(), self.look.journal
        return self.clock.monotonic() - moved[0] >= self.manner.delay and not self._printing()

    def _computes(self) -> bool:
        """The program is at work on what it was given: a long text takes a while until it shows."""
        now = tty_waits.assess_foreground(self.look.kernel)
        return now is not None and now.wait is tty_waits.RUNNING

    def _printing(self) -> bool:
        """The screen is older than the output."""
        return self.steady.observer.journal.end() != self.look.journal

    def _refuse_questions(self) -> None:
        self._look()
        if self._asks():
            raise QuestionAppeared

    def _asks(self) -> bool:
        return self._verdict().state is State.ASKING

    # Enter and after

    def _press(self, given: LastInput) -> None:
        self.renew()
        sending.press(self.machine, self.steady.observer.pane, self.manner.enter, self.holder, kept=given, apart=True)
        self.pressed = self.clock.monotonic()

    def _proof(self, shown: Look) -> str | None:
        """What shows that the text was taken, None if nothing does in time."""
        found: list[str] = []
        answering: list[float] = []

        def proved() -> bool:
            if evidence := self._evidence(shown):
                found.append(evidence)
            elif self.look.journal == shown.journal or not input_box.is_replaced(self.look, shown, self.profile):
                # a program may draw anew what it has on the screen, part by part
                answering.clear()
            else:
                answering.append(self.clock.monotonic())
                if answering[-1] - answering[0] >= self.timing.silent_seconds:
                    found.append("output")
            return bool(found)

        self._until(proved, self.timing.proof_seconds)
        return found[0] if found else None

    def _evidence(self, shown: Look) -> str | None:
        look = self.look
        if look.dead:
            return "exit"
        if look.hook is not None and look.hook.means in PROOFS:
            return "hook"
        verdict = self._verdict()
        if verdict.state is State.ASKING:
            return "asking"
        if verdict.by is EvidenceKind.SHELL_MARK and look.mark != shown.mark:
            return verdict.by
        if verdict.by is EvidenceKind.BUSY_MARK and not self.marked:
            return verdict.by
        moved = look.left != shown.left or look.y != shown.y
        if moved and input_box.is_empty(look, self.profile):
            return "prompt"
        if moved and self._works(verdict) and not input_box.is_at_prompt(look, self.profile):
            # a program that drew a new line for Enter seems to work for a moment, too; without a sign the text may only
            # be gone while it is drawn anew
            drawing = input_box.keeps_text(look, shown) or input_box.is_empty(shown, self.profile) is None
            quiet = min(look.quiet or 0.0, self.clock.monotonic() - self.pressed)
            return None if drawing and quiet < self.timing.silent_seconds else "kernel"
        return None

    def _works(self, verdict: Verdict) -> bool:
        return verdict.state is State.BUSY and verdict.by is EvidenceKind.KERNEL

    def _verdict(self) -> Verdict:
        return self.steady.observer.verdict()

    def _look(self) -> None:
        self.look = self._with_cursor(self.steady.observer.observe())

    def _with_cursor(self, look: Look) -> Look:
        """A look with the cursor that a program draws itself, hiding the terminal's somewhere else: on another row, or where
        it counts other columns than the terminal (Gemini behind joined emoji; both measured)."""
        place = None if look.visible else self.steady.observer.drawn_cursor()
        if place is None or (place[1] != look.y and input_box.is_at_prompt(look, self.profile)):
            return look
        return look._replace(x=place[0], y=place[1], visible=True)

    def _until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Look again and again until it holds, for at most so many seconds."""
        deadline = self.clock.monotonic() + seconds
        while True:
            current().check()
            self.renew()
            self._look()
            if holds():
                return True
            if self.look.dead or self.clock.monotonic() >= deadline:
                return False
            self.clock.sleep(self.timing.pause_seconds)
