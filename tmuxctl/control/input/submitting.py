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
from tmuxctl.terminal.input.paste import LastInput, OnceMark, Write
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

NOT_SHOWN = "the text did not appear"
NO_PROOF = "nothing shows that the program took it"


class QuestionAppeared(Exception):
    """A question stands where the text was to be taken; nothing was pressed into it."""


class SubmittedInput(NamedTuple):
    """What became of a text: the input it is remembered as, and what showed that it was taken."""

    input: LastInput
    submitted: Submitted


def send_to_input_box(machine: Machine, pane: Pane, write: Write, profile: Profile) -> Written | None:
    """Put a text into the composer of a program that is given texts so, and press Enter when it stands there; what becomes
    of it is not looked for. None if the program asks something: that takes keys.

    Raises Conflict `not_shown` or DecisionNeeded, with the text where it is and Enter not pressed, if the text does not
    show or a question comes in its place.
    """
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.control.observation.observing import StabilityTracker
    from tmuxctl.control.waiting.waits import asks

    observer = Observer(machine, pane)
    holder = machine.new_holder()
    with sending.hold_lease(machine, pane, holder):
        done = sending.count_parts_done(machine, pane, write.id)
        if done > 1:
            return Written(pane.name, "dup", write.id, len(write.data), finding.cursor_at(pane, observer.journal.end()))
        _, remembered = finding.find_with_input(machine, pane.name)
        tracker = StabilityTracker(machine, observer, LastInput.parse(remembered))
        tracker.observe()
        if observer.verdict().state is State.ASKING:
            return None
        renewed = [machine.clock.monotonic()]

        def renew() -> None:
            if machine.clock.monotonic() - renewed[0] > machine.timing.submission.renew_seconds:
                renewed[0] = machine.clock.monotonic()
                lease.take_lease(machine.io, holder, pane)

        submission = Submission(machine, tracker, profile, holder, renew)
        try:
            return submission.paste_and_press_enter(write, pasted=done > 0)
        except QuestionAppeared:
            raise asks(pane.name, observer.verdict()) from None


class Submission:
    """One text on its way into a composer. `renew` keeps the lease; it is called often. With a `mark` the text is submitted only
    while that is as it was; else Conflict `given`."""

    def __init__(
        self,
        machine: Machine,
        tracker: StabilityTracker,
        profile: Profile,
        holder: LeaseHolder,
        renew: Callable[[], None],
        mark: OnceMark | None = None,
    ) -> None:
        self.mark = mark
        self.machine, self.tracker, self.profile, self.holder, self.renew = machine, tracker, profile, holder, renew
        self.timing, self.clock = machine.timing.submission, machine.clock
        self.rules = profile.submit
        self.look: Look = self._with_cursor(tracker.newest)
        self.was_busy = False
        self.pressed_at = 0.0

    def submit(self, text: bytes) -> SubmittedInput:
        """Paste the text, press Enter once it stands in the composer, and look for proof.

        Raises QuestionAppeared if a question comes in its place, Conflict `leftovers` if the composer cannot be emptied, `draft` if
        a text with a mark would have it emptied of what a person writes.
        """
        last_input: LastInput | None = None
        left, pasted = self._has_left_text(), self._find_pasted()
        if not left and pasted is None:
            self._refuse_draft()
        for _ in range(TRIES):
            if pasted is None:
                if not self._clear_input_box(left=left) and last_input is None:
                    raise self._leftovers_error()
                if last_input is not None and not input_box.is_empty(self.look, self.profile):
                    # what may still stand there would be sent twice
                    self._note_left_text(last_input)
                    return SubmittedInput(last_input, Submitted(False, NOT_SHOWN))
            before = self.look
            last_input = pasted or self._paste(text, self.mark.new_id() if self.mark else None)
            pasted = None
            # from here on what was seen before says nothing of what comes
            self.tracker.note_input(last_input, None)
            if self._await_shown(text, before) or self.rules.verify != "echo":
                break
            left = True
            self._refuse_questions()
        else:
            assert last_input is not None
            if not self._clear_input_box(left=True):
                self._note_left_text(last_input)
            return SubmittedInput(last_input, Submitted(False, NOT_SHOWN))
        shown = self.look
        self._refuse_questions()
        # a text may hold what looks like the program's own sign of work
        self.was_busy = self._verdict().by is EvidenceKind.BUSY_MARK
        for _ in range(TRIES):
            self._press_enter(last_input)
            if evidence := self._await_proof(shown):
                return SubmittedInput(last_input, Submitted(True, evidence))
            self._observe()
            if self._is_asking():
                # it came late, and of this text: given anew it would be there twice
                return SubmittedInput(last_input, Submitted(True, "asking"))
            if not input_box.keeps_text(self.look, shown):
                break
        else:
            self._note_left_text(last_input)
        return SubmittedInput(last_input, Submitted(False, NO_PROOF))

    def paste_and_press_enter(self, write: Write, *, pasted: bool) -> Written:
        """Paste a text behind what stands in the composer, if it was not `pasted` before, and press Enter once it shows."""
        pane, before = self.tracker.observer.pane, self.look
        last_input = self._paste(write.data, write.id)
        self.tracker.note_input(last_input, None)
        if not pasted and not self._await_shown(write.data, before) and self.rules.verify == "echo":
            self._refuse_questions()
            raise Conflict(
                f"the text did not appear in {pane.name}; Enter was not pressed",
                reason="not_shown",
                hint=f"look: tmuxctl screen {pane.name}; send it: tmuxctl keys {pane.name} Enter",
            )
        self._refuse_questions()
        enter = Write(write.id, keys=[(key,) for key in tmux_keys(self.rules.enter)], part=1)
        done = paste.carry_out(self.machine.io, self.holder, pane, enter, last_input.again(self.holder.pid))
        return Written(pane.name, done.result, write.id, len(write.data), finding.cursor_at(pane, before.journal))

    # before

    def _has_left_text(self) -> bool:
        """Whether a text of an earlier turn was left in the composer, and nothing was typed since."""
        pane, last_input = self.tracker.observer.pane, self.tracker.last_input
        (left,) = self.machine.io.look(pane.name, (options.LEFT,)).values
        return last_input is not None and left == last_input.id

    def _find_pasted(self) -> LastInput | None:
        """The input in which another process pasted this very text, if it did not come to press Enter and nothing was typed since.
        The text may still be on its way to the screen."""
        last_input = self.tracker.last_input
        if last_input is None or self.mark is None or OnceMark.read_id(last_input.id) != self.mark.after:
            return None
        return last_input

    def _refuse_draft(self) -> None:
        """Conflict `draft` where a text that nobody waits for would take the place of what a person is writing."""
        pane = self.tracker.observer.pane
        if self.mark and pane.attached and input_box.is_empty(self.look, self.profile) is False:
            hint = f"send or clear it, or detach; read it: tmuxctl screen {pane.name}"
            raise Conflict(f"somebody is writing in the input box of {pane.name}", reason="draft", hint=hint)

    def _note_left_text(self, last_input: LastInput) -> None:
        """Note that this text may still stand in the composer."""
        pane = self.tracker.observer.pane
        self.machine.io.change(pane.name, {options.LEFT: last_input.id})

    def _clear_input_box(self, *, left: bool) -> bool:
        """Empty the composer of what somebody left there, or the program put back after an interrupt; False if a text that
        was `left` there may still stand. Conflict `leftovers` if something stands there that cannot be cleared."""
        unchanged = cleared = 0
        for _ in range(CLEARINGS if self.rules.clear and self.profile.prompt else 0):
            empty = input_box.is_empty(self.look, self.profile)
            # a text of many lines may hide the prompt it begins behind: then a clear key that changes nothing tells
            if (empty and not (left and cleared + unchanged == 0)) or unchanged == (VAIN if empty is False else 1):
                break
            sending.press_keys(self.machine, self.tracker.observer.pane, self.rules.clear, self.holder, apart=True)
            changed = self._observe_until(partial(self._has_changed, self.look), self.timing.cleared_seconds)
            unchanged, cleared = (0, cleared + 1) if changed else (unchanged + 1, cleared)
            # the first key may have opened a dialog
            self._refuse_questions()
        empty = input_box.is_empty(self.look, self.profile)
        if empty is False:
            raise self._leftovers_error()
        return not left or bool(empty or cleared)

    def _leftovers_error(self) -> Conflict:
        name, keys = self.tracker.observer.pane.name, " ".join(self.rules.clear)
        return Conflict(
            f"the input box of {name} cannot be cleared",
            reason="leftovers",
            hint=f"look at it: tmuxctl screen {name}; and clear it: tmuxctl keys {name} {keys or 'C-u'}",
        )

    def _has_changed(self, was: Look) -> bool:
        return self.look.screen != was.screen

    def _paste(self, text: bytes, write_id: str | None = None) -> LastInput:
        self.renew()
        pane, newline = self.tracker.observer.pane, self.rules.newline
        return sending.paste_text(
            self.machine,
            pane,
            text,
            self.look.journal,
            self.holder,
            newline=newline,
            write_id=write_id,
            mark=self.mark,
        )

    def _await_shown(self, text: bytes, before: Look) -> bool:
        """Wait until the composer shows the text, or something in its place, and for the pause the profile asks for."""
        activity = [self.clock.monotonic(), self.look.journal]
        sign = input_box.read_prompt_sign(before, self.profile)

        def shows() -> bool:
            if self.look.journal != activity[1] or self._is_computing():
                activity[:] = self.clock.monotonic(), self.look.journal
            if self.look.screen == before.screen or input_box.read_prompt_sign(self.look, self.profile) not in (
                sign,
                "",
            ):
                return False
            if input_box.shows_text(self.look, text, self.profile):
                return True
            if input_box.shows_part_of_text(self.look, text, self.profile):
                return False
            still = self.clock.monotonic() - activity[0] >= self.timing.still_seconds
            return still and input_box.is_empty(self.look, self.profile) is not True

        found = False
        longest = self.clock.monotonic() + self.timing.longest_seconds
        while (
            not found
            and activity[0] + self.timing.shown_seconds > self.clock.monotonic()
            and self.clock.monotonic() < longest
        ):
            found = self._observe_until(shows, self.timing.pause_seconds)
            if self.look.dead:
                return found
        # a program takes Enter that comes with a paste, or soon behind it, for a part of the text (Gemini, measured)
        self._observe_until(lambda: not self._is_computing(), self.timing.shown_seconds)
        self._observe_until(lambda: self._is_quiet(activity), self.rules.delay + self.timing.lively_seconds)
        return found

    def _is_quiet(self, activity: list[float]) -> bool:
        """Nothing was printed for as long as the profile asks for."""
        if self.look.journal != activity[1]:
            activity[:] = self.clock.monotonic(), self.look.journal
        return self.clock.monotonic() - activity[0] >= self.rules.delay and not self._is_printing()

    def _is_computing(self) -> bool:
        """The program is at work on what it was given: a long text takes a while until it shows."""
        now = tty_waits.assess_foreground(self.look.kernel)
        return now is not None and now.wait is tty_waits.RUNNING

    def _is_printing(self) -> bool:
        """The screen is older than the output."""
        return self.tracker.observer.journal.end() != self.look.journal

    def _refuse_questions(self) -> None:
        self._observe()
        if self._is_asking():
            raise QuestionAppeared

    def _is_asking(self) -> bool:
        return self._verdict().state is State.ASKING

    # Enter and after

    def _press_enter(self, last_input: LastInput) -> None:
        self.renew()
        sending.press_keys(
            self.machine,
            self.tracker.observer.pane,
            self.rules.enter,
            self.holder,
            continued=last_input,
            apart=True,
            mark=self.mark,
        )
        # pressed again, for a key that the program lost, it is the same text
        self.mark = None
        self.pressed_at = self.clock.monotonic()

    def _await_proof(self, shown: Look) -> str | None:
        """What shows that the text was taken, None if nothing does in time."""
        found: list[str] = []
        answering: list[float] = []

        def proved() -> bool:
            if evidence := self._find_proof(shown):
                found.append(evidence)
            elif self.look.journal == shown.journal or not input_box.is_replaced(self.look, shown, self.profile):
                # a program may draw anew what it has on the screen, part by part
                answering.clear()
            else:
                answering.append(self.clock.monotonic())
                if answering[-1] - answering[0] >= self.timing.silent_seconds:
                    found.append("output")
            return bool(found)

        self._observe_until(proved, self.timing.proof_seconds)
        return found[0] if found else None

    def _find_proof(self, shown: Look) -> str | None:
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
        if verdict.by is EvidenceKind.BUSY_MARK and not self.was_busy:
            return verdict.by
        moved = look.left != shown.left or look.y != shown.y
        if moved and input_box.is_empty(look, self.profile):
            return "prompt"
        if moved and self._is_busy(verdict) and not input_box.is_at_prompt(look, self.profile):
            # a program that drew a new line for Enter seems to work for a moment, too; without a sign the text may only
            # be gone while it is drawn anew
            drawing = input_box.keeps_text(look, shown) or input_box.is_empty(shown, self.profile) is None
            quiet = min(look.quiet or 0.0, self.clock.monotonic() - self.pressed_at)
            return None if drawing and quiet < self.timing.silent_seconds else "kernel"
        return None

    def _is_busy(self, verdict: Verdict) -> bool:
        return verdict.state is State.BUSY and verdict.by is EvidenceKind.KERNEL

    def _verdict(self) -> Verdict:
        return self.tracker.observer.verdict()

    def _observe(self) -> None:
        self.look = self._with_cursor(self.tracker.observer.observe())

    def _with_cursor(self, look: Look) -> Look:
        """A look with the cursor that a program draws itself, hiding the terminal's somewhere else: on another row, or where
        it counts other columns than the terminal (Gemini behind joined emoji; both measured)."""
        position = None if look.visible else self.tracker.observer.drawn_cursor()
        if position is None or (position[1] != look.y and input_box.is_at_prompt(look, self.profile)):
            return look
        return look._replace(x=position[0], y=position[1], visible=True)

    def _observe_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Look again and again until it holds, for at most so many seconds."""
        deadline = self.clock.monotonic() + seconds
        while True:
            current().check()
            self.renew()
            self._observe()
            if condition():
                return True
            if self.look.dead or self.clock.monotonic() >= deadline:
                return False
            self.clock.sleep(self.timing.pause_seconds)
