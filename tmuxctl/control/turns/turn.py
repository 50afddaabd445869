"""A turn: text given to a program that waits for it, the wait for its end, and the answer that came between."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.control.input import deciding, sending, submitting
from tmuxctl.control.observation import observing, wanting
from tmuxctl.control.observation.hook_events import ENDS
from tmuxctl.control.observation.observing import AGAIN_SECONDS, Observer, Steady, readers
from tmuxctl.control.output.agent_answer import Said, misfit, on_screen, remembered, said
from tmuxctl.control.sessions import finding
from tmuxctl.control.waiting.waits import Conditions, Waiter, asks
from tmuxctl.errors import Conflict, Exited, NotFound, TmuxctlError, Usage
from tmuxctl.evidence import Look
from tmuxctl.model import State
from tmuxctl.operations import current
from tmuxctl.reading.answers import drawn_answer, failure
from tmuxctl.reading.answers import printed_answer as answers
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.marks import marks
from tmuxctl.results import Answer, Output, Submitted, Wait
from tmuxctl.terminal.input import paste
from tmuxctl.terminal.input.paste import Input
from tmuxctl.terminal.tmux import lease, options
from tmuxctl.value import changed
from tmuxctl.vocabulary import Detail, EventKind, EvidenceKind, InputKind, WaitCondition

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.reading.state.judging import Verdict
    from tmuxctl.terminal.tmux.server import Pane

READY_SECONDS = 1.0
"""How long a program that is just finishing something is waited for before a turn is refused."""

STARTING_SECONDS = 10.0
"""How long a program that has only been started is waited for."""

STOP_SECONDS = 5.0
"""How long a turn that was interrupted may take to end."""

INTERRUPTS = 3
"""How often one is, where a question stands in between."""

RENEW_SECONDS = 4.0
"""So often a turn under way says that it still is."""

LINES_LIMIT = 500
"""Lines of one turn, where each is typed when the program is ready for it."""

UNBEGUN_SECONDS = 1.5
"""After so long in silence a program that was given a text and shows its prompt has had its turn, though nothing of it was
seen."""

SIGNED_SECONDS = 5.0
"""The same for one whose signs of work are known, and have not come: a loaded machine may take so long."""

UNSEEN_SECONDS = 10.0
"""After so long it has had it though it goes on printing, such as a clock: nobody knows of what."""

DECISIONS_LIMIT = 50
"""Questions answered by a policy in one turn."""

ANSWER_LIMIT = 8 << 20
"""Bytes of output an answer is made from; one that is cut there is not complete."""

WAITED = (WaitCondition.IDLE, WaitCondition.UNKNOWN)
"""What a turn ends in where the program neither asks nor has ended."""

PROMPT_BYTES = 1 << 16
"""So much of a row before an input is looked at: no prompt is longer."""


class Asked(NamedTuple):
    """What a turn was called with, beside its text."""

    timeout: float | None = None
    decide: Mapping[str, str] = {}
    raw: bool = False
    queue: bool = False
    interrupt: bool = False
    strict: bool = False


def ask(machine: Machine, session: str, text: bytes, asked: Asked) -> Answer:
    """Type a text, wait for the end of the turn, and return what the program wrote.

    Raises Conflict `busy` or `needs_recovery` if something is still running, DecisionNeeded if a question stands before
    the turn, Exited if the program has ended. A turn that ends in a question, an exit or a timeout is a result.
    """
    began = time.monotonic()
    limit = current().left(machine.settings.wait_ask_timeout if asked.timeout is None else asked.timeout)
    pane, given = finding.find_with_input(machine, session)
    if pane.dead:
        raise paste.ended(pane)
    turn = _Turn(machine, pane, Input.parse(given), asked, began, None if limit is None else began + limit)
    lines = [] if turn.pastes else _lines(text)
    try:
        turn.begin()
        turn.ready()
        return turn.paste(text) if turn.pastes else turn.take(lines)
    finally:
        turn.give_back()
        turn.end()


def _lines(text: bytes) -> list[bytes]:
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if len(lines) > LINES_LIMIT:
        raise Usage(
            f"a turn of {len(lines)} lines is too long (at most {LINES_LIMIT})",
            reason="too_large",
            hint="write it to a file, and let the program read it",
        )
    for line in lines:
        paste.check_text(line, canonical=False, bracketed=False, multiline=False)
    return lines


def text(given: bytes | None, file: str | None) -> bytes:
    """The text of a turn, given or in a file; one newline at its end is only the file's."""
    if (given is None) == (file is None):
        raise Usage("give a text or --file", reason="missing", hint="tmuxctl ask NAME TEXT")
    if file is None:
        return given or b""
    try:
        with open(os.path.expanduser(file), "rb") as handle:
            return handle.read(paste.SIZE_LIMIT + 1).removesuffix(b"\n")
    except OSError as error:
        raise Usage(f"{ascii(file)} cannot be read: {error.strerror}", reason="bad_file", hint="name a file") from None


def create(machine: Machine, session: str, command: str) -> None:
    """Start the command in a session of this name if there is none."""
    import shlex

    from tmuxctl.control.lifecycle.creation import Wanted, new

    current().demand("create", "ask --new")

    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise Usage(f"--new: {error}", reason="bad_command", hint="--new 'sqlite3 shop.db'") from None
    observing.ready(machine, new(machine, Wanted(name=session, command=words, if_exists="reuse")))


def answer_to(machine: Machine, session: str, holding: str) -> Output:
    """What a program wrote for the last input that holds this text; NotFound `no_input` if nothing kept does."""
    pane, remembered = finding.find_with_input(machine, session)
    wanted = holding.encode()
    watched = Observer(machine, pane)
    last = Input.parse(remembered)
    if last and wanted in last.typed:
        offset, prompt = last.offset, None
        given = answers.Given(last.typed, last.x, last.y, last.cols, last.rows, last.echo, pane.tmux)
    else:
        kept = watched.journal.tail(ANSWER_LIMIT)
        at = kept.data.rfind(wanted) if wanted else -1
        if at < 0:
            raise NotFound(
                f"no input into {pane.name} holds {ascii(holding[:40])}", reason="no_input", hint="tmuxctl log"
            )
        line = max(kept.data.rfind(b"\n", 0, at) + 1, at - PROMPT_BYTES)
        from tmuxctl.control.output import printed

        offset, prompt = kept.start + at, printed.plain(kept.data[line:at], pane)
        given = answers.Given(wanted, len(prompt), 0, pane.cols, pane.rows, "editor", pane.tmux)
        del kept
    part = watched.journal.read(offset, ANSWER_LIMIT)
    ends = [mark.end for mark in marks(part.data, watched.token) if mark.letter == "D"] if watched.token else []
    data = part.data[: ends[0]] if ends else part.data
    found = answers.answer(data, given, prompt_before=prompt, token=watched.token or None, profile=watched.profile)
    text = found.text
    if prompt and prompt.strip() and not ends:
        # an earlier input's answer ends where its program was given the next
        text = text.partition("\n" + prompt.strip())[0]
    return Output(pane.name, text, finding.cursor(pane, part.end), part.truncated, found.complete)


class _Turn:
    """One turn on its way."""

    def __init__(
        self, machine: Machine, pane: Pane, given: Input | None, asked: Asked, began: float, deadline: float | None
    ) -> None:
        self.machine, self.pane, self.asked = machine, pane, asked
        self.began, self.deadline = began, deadline
        self.steady = Steady(machine, Observer(machine, pane), given)
        self.steady.recall()
        self.first: Input | None = None
        self.taken: Submitted | None = None
        self.history = pane.history
        self.prompt: str | None = None
        self.typed, self.before = b"", ""
        self.number = self.misfits = 0
        self.decided = 0
        self.answered = "", 0.0
        self.leased = self.begun = self.interrupted = False
        self.interrupts = 0
        self.pressed = self.renewed = 0.0
        # two threads of one process are two askers
        self.holder = lease.Holder.new()

    @property
    def pastes(self) -> bool:
        """True if the program is given a text whole, in its composer."""
        profile = self.steady.observer.own
        return profile is not None and profile.submit.mode == "paste"

    # before

    def begin(self) -> None:
        """Be the only turn of this session: wait for another one, stop it, or refuse, as asked."""
        pause, until = 0.05, time.monotonic() + STOP_SECONDS
        while not self._renew():
            current().check()
            left = self._left()
            if self.asked.interrupt and not self.interrupted and time.monotonic() - self.pressed > READY_SECONDS:
                self._interrupt()
            patient = self.asked.queue or (self.interrupts and time.monotonic() < until)
            if not patient or (left is not None and left <= 0):
                raise Conflict(
                    f"another turn is under way in {self.pane.name}",
                    reason="busy",
                    hint="wait for yours with --queue, or stop the other with --interrupt",
                )
            time.sleep(pause)
            pause = min(0.5, pause * 1.5)
            self.pane = finding.find(self.machine, self.pane.name)
        # that was the other turn; what it left may still run
        self.interrupted = False
        if self.steady.observer.events:
            self.steady.observer.events.tidy()

    def _renew(self) -> bool:
        self.renewed = time.monotonic()
        self.begun = lease.take_turn(self.machine.transport, self.holder, self.pane)
        return self.begun

    def end(self) -> None:
        """Let another turn begin."""
        if self.begun:
            with suppress(TmuxctlError):
                lease.give_back(self.machine.transport, self.holder, self.pane.name, name=options.ASKER)

    def ready(self) -> None:
        """Wait for the program to wait for the next thing, as long as that may reasonably be, else refuse."""
        watch = self.machine.transport.watch(self.steady.observer.folders, self.pane.pid)
        began = time.monotonic()
        try:
            while not (self._may_type(time.monotonic() - began) and self._alone()):
                if time.monotonic() - self.renewed > RENEW_SECONDS:
                    self._renew()
                # what the last interrupt came to is seen before there is another
                patient = self.steady.holds or time.monotonic() - max(began, self.pressed) > READY_SECONDS
                if self.asked.interrupt and patient and not self.interrupted:
                    self._interrupt()
                current().check()
                left = self._left()
                if left is not None and left <= 0:
                    raise self._busy()
                watch.wait(min(self.steady.due(), 1.0 if left is None else left, 1.0))
                time.sleep(self.steady.rested())
        finally:
            watch.close()
        # what the turn begins from: the look before the first key
        self.prompt = self.steady.observer.looks[-1].left

    def _alone(self) -> bool:
        """True once nobody else may type, and nobody did since this turn looked."""
        self._lease()
        return sending.untouched(self.machine, self.steady)

    def _may_type(self, waited: float) -> bool:
        """True if the program takes a next input now; the errors say why it will not soon."""
        held = self._look()
        verdict = self.steady.verdict
        if not held:
            return False
        if verdict.state is State.IDLE and self._others_read(verdict):
            if waited > READY_SECONDS and not (self.asked.queue or self.asked.interrupt):
                raise wanting.not_at_prompt(self.pane.name, verdict)
            return False
        if verdict.state is State.IDLE:
            # what has told the end of its turn may still be drawing it
            return (
                not self.pastes or verdict.by is not EvidenceKind.HOOK or self._shows_prompt() or waited > READY_SECONDS
            )
        if verdict.state is State.UNKNOWN and waited > READY_SECONDS and not (self.pastes or self._recovering()):
            return True
        if verdict.state is State.ASKING:
            if not self._decide(verdict) and (self.interrupted or not self.asked.interrupt):
                raise asks(self.pane.name, verdict)
            return False
        # who shows a prompt and no sign of work is only finishing something, however long a loaded machine takes for it
        finishing = self.pastes and verdict.by is EvidenceKind.KERNEL and self._shows_prompt()
        patience = STARTING_SECONDS if verdict.state is State.STARTING or finishing else READY_SECONDS
        if waited > patience and not (self.asked.queue or self.asked.interrupt):
            raise self._busy()
        return False

    def _others_read(self, verdict: Verdict) -> bool:
        """Whether a text would go into what a command of a shell or a REPL reads, and not to the prompt."""
        own_input = self.pastes or verdict.kind in (InputKind.PROMPT, InputKind.CONTINUATION)
        return not own_input and wanting.has_prompt(self.steady.observer)

    def _shows_prompt(self) -> bool:
        observer = self.steady.observer
        rules = observer.profile.prompt if observer.profile else ()
        return patterns.first(rules, patterns.text(observer.looks[-1])) is not None

    def _look(self) -> bool:
        try:
            held = self.steady.look()
        except NotFound:
            self.pane = self.steady.observer.pane = finding.find(self.machine, self.pane.id)
            return False
        self.pane = self.steady.observer.pane
        if self.pane.dead:
            raise paste.ended(self.pane)
        return held

    def _interrupt(self) -> None:
        # what only denied a question has not stopped the turn
        self.interrupts += 1
        self.pressed = time.monotonic()
        self.interrupted = self.steady.verdict.state is not State.ASKING or self.interrupts >= INTERRUPTS
        watched = self.steady.observer
        pressed = sending.press(self.machine, self.pane, watched.interrupt, self.holder, apart=True)
        if watched.looks:
            # what is seen from now on counts only once the program has taken the keys
            self.steady.typed(pressed, readers(watched.looks[-1].kernel))

    def _busy(self) -> Conflict:
        name, keys = self.pane.name, " ".join(self.steady.observer.interrupt)
        if self._recovering():
            return Conflict(
                f"an earlier turn in {name} took too long and is still running",
                reason="needs_recovery",
                hint=f"tmuxctl wait {name}; or end it with --interrupt, or: tmuxctl keys {name} {keys}",
            )
        return Conflict(
            f"{name} is {self.steady.verdict.state.value}: {self.steady.verdict.why}",
            reason="busy",
            hint=f"tmuxctl wait {name}; or wait for your turn with --queue; or stop what runs with --interrupt",
        )

    def _recovering(self) -> bool:
        """True if the turn that took too long was the last that was given: nobody typed since, and it was not seen to end."""
        told = self.machine.transport.run(
            [("display-message", "-p", "-t", self.pane.target, f"#{{{options.RECOVERY}}}")]
        )
        return self.steady.given is not None and told.decode(errors="replace").strip() == self.steady.given.id

    # the turn

    def take(self, lines: list[bytes]) -> Answer:
        """Type the lines, each when the program is ready for it, and wait for the end."""
        end: Wait | None = None
        for index, line in enumerate(lines):
            self._lease()
            last = index == len(lines) - 1
            self._type(line, last=last)
            if not last and (end := self._end()).matched not in WAITED:
                break
            end = None
        self._count()
        self.give_back()
        return self._answer(end or self._end())

    def paste(self, text: bytes) -> Answer:
        """Give the whole text at once, see that it is taken, and wait for the end."""
        while self.taken is None:
            self._lease()
            self.history = self.pane.history
            self.before = self.steady.observer.looks[-1].screen
            try:
                self.first, self.taken = self._submission().give(text.rstrip(b"\r\n"))
            except submitting.Asks:
                self.give_back()
                # the question may be decided by policy, and then the text is given anew
                self.ready()
        self.typed = text
        self._count()
        self.give_back()
        return self._answer(self._end() if self.taken.ok else self._as_it_is())

    def _as_it_is(self) -> Wait:
        """The state at this moment."""
        with Waiter(self.machine, self.pane, Conditions(exit=True), "screen", self.steady.given) as waiter:
            waiter.steady = self.steady
            return waiter.result(None, "the text was not taken")

    def _submission(self) -> submitting.Submission:
        profile = self.steady.observer.own
        assert profile is not None
        return submitting.Submission(self.machine, self.steady, profile, self.holder, self._renew_lease)

    def _renew_lease(self) -> None:
        if time.monotonic() - self.renewed > RENEW_SECONDS:
            self._renew()
            lease.take(self.machine.transport, self.holder, self.pane)

    def _lease(self) -> None:
        while not lease.take(self.machine.transport, self.holder, self.pane):
            current().check()
            if (left := self._left()) is not None and left <= 0:
                raise lease.held(self.pane.name)
            time.sleep(0.03)
            self.pane = finding.find(self.machine, self.pane.name)
        self.leased = True

    def give_back(self) -> None:
        """Let others type again."""
        if self.leased:
            self.leased = False
            with suppress(TmuxctlError):
                lease.give_back(self.machine.transport, self.holder, self.pane.name)

    def _type(self, line: bytes, *, last: bool) -> None:
        observer = self.steady.observer
        look = observer.looks[-1]
        sent = sending.line(self.machine, self.pane, line, look.journal, self.holder)
        self.first = self.first or sent
        self.typed += line if last else line + b"\n"
        self.steady.typed(sent, readers(look.kernel))

    def _end(self) -> Wait:
        """Wait until the program takes the next line; questions a policy decides are answered on the way."""
        while True:
            # a composer's program has a prompt of its own: where that does not show, its turn is not over
            guess = not (self.asked.strict or self.pastes)
            end = self._wait(Conditions(idle=True, asking=True, exit=True, unknown=guess))
            if end.matched is WaitCondition.IDLE and not self._begun():
                if (left := self._left()) is not None and left <= 0:
                    return changed(end, matched=None, timed_out=True, why="timeout: nothing of the turn was seen")
                if time.monotonic() - self.renewed > RENEW_SECONDS:
                    self._renew()
                time.sleep(AGAIN_SECONDS)
                continue
            if end.matched is not WaitCondition.ASKING or not self._decide(self.steady.verdict):
                return end

    def _begun(self) -> bool:
        """Whether an idle program has had its turn: it was seen at work, told its end, or has been silent for long."""
        if not self.pastes or self.steady.worked:
            return True
        profile = self.steady.observer.own
        # a program of lines listens only between its turns, one that draws its answers listens all the time
        look = self.steady.observer.looks[-1]
        told = look.hook is not None and look.hook.means == EventKind.ATTENTION
        seen = self.steady.deaf or told or (self.taken is not None and self.taken.evidence == "kernel")
        if profile and profile.answer.begin is None and seen:
            return True
        ended = look.hook is not None and look.hook.means in ENDS
        given = self.steady.given
        waited = UNSEEN_SECONDS if given is None else look.at - given.at
        silent = min(waited, UNSEEN_SECONDS if look.quiet is None else look.quiet)
        signs = profile is not None and (profile.busy or profile.title_busy)
        return (
            ended
            or silent > (SIGNED_SECONDS if signs else UNBEGUN_SECONDS)
            or waited >= UNSEEN_SECONDS
            or self._answering()
        )

    def _answering(self) -> bool:
        """Whether an answer has begun to stand on the screen, which the last look saw as it is now."""
        observer = self.steady.observer
        look = observer.looks[-1]
        if self.first is None or observer.own is None or observer.journal.end() != look.journal:
            return False
        if look.alternate and observer.own.answer.begin is None:
            # a screen of its own is drawn anew as a whole: nothing tells an answer there
            return False
        typed = self.typed.decode("utf-8", "replace")
        found = on_screen(self.machine, observer, observer.own, self.first, typed, self.history)
        if look.alternate and not found.signed and not found.complete:
            return drawn_answer.replaced(self.before, look.screen, typed)
        return found.signed and bool(found.text.strip() or found.error)

    def _wait(self, wanted: Conditions) -> Wait:
        given = self.steady.given
        with Waiter(self.machine, self.pane, wanted, "screen", given, steady=self.steady) as waiter:
            while True:
                left = self._left()
                try:
                    end = waiter.until(RENEW_SECONDS if left is None else min(left, RENEW_SECONDS), anew=True)
                except Exited:
                    end = waiter.result(WaitCondition.EXIT, "exit")
                self.pane = waiter.pane
                left = self._left()
                if not end.timed_out or (left is not None and left <= 0):
                    return end
                self._renew()

    def _decide(self, verdict: Verdict) -> bool:
        """Answer a question by policy; False if none covers it."""
        option = deciding.by_policy(verdict, self.asked.decide)
        if option is None or self.decided >= DECISIONS_LIMIT:
            return False
        asked = verdict.asking.id if verdict.asking else ""
        if asked == self.answered[0] and time.monotonic() - self.answered[1] < deciding.GONE_SECONDS:
            # it was answered and still stands: pressed again, the key would go into what comes next
            time.sleep(AGAIN_SECONDS)
            return True
        self.decided += 1
        if not self._alone():
            return True
        kernel = self.steady.observer.looks[-1].kernel
        self.answered = asked, time.monotonic()
        self.steady.typed(sending.press(self.machine, self.pane, option.keys, self.holder), readers(kernel))
        return True

    def _left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    def _count(self) -> None:
        """Number the turn, and take back what an earlier timeout noted."""
        here, counted = self.pane.target, f"#{{e|+|:0#{{{options.TURN}}},1}}"
        told = self.machine.transport.run(
            [
                ("display-message", "-p", "-t", here, counted),
                ("display-message", "-p", "-t", here, f"0#{{{options.MISFITS}}}"),
                ("set-option", "-F", "-t", here, options.TURN, counted),
                ("set-option", "-u", "-t", here, options.RECOVERY),
                *([("set-option", "-t", here, options.ASKED, self._remembered())] if self.pastes else []),
            ]
        )
        number, misfits = (*told.split(), b"", b"")[:2]
        self.number, self.misfits = int(number or 0), int(misfits or 0)

    def _remembered(self) -> str:
        assert self.first is not None
        return remembered(self.first, self.history, self.holder.pid)

    # after

    def _answer(self, end: Wait) -> Answer:
        first = self.first
        assert first is not None
        looks = self.steady.observer.looks
        stop = self.steady.observer.journal.end()
        part = self.steady.observer.journal.read(first.offset, min(ANSWER_LIMIT, max(0, stop - first.offset)))
        cut = part.truncated or part.end < stop
        found = self._said(part.data, cut, end)
        if end.timed_out:
            self._note_timeout()
        return Answer(
            session=self.pane.name,
            answer=found.text,
            status=end.status,
            turn=self.number,
            submitted=self.taken or self._submitted(looks[-1] if looks else None),
            complete=found.complete and end.matched in WAITED and end.kind is not InputKind.CONTINUATION,
            elapsed=round(time.monotonic() - self.began, 3),
            cursor=finding.cursor(self.pane, stop),
            truncated=found.cut,
            exit_status=end.exit_status if end.matched is WaitCondition.EXIT else found.status,
            signal=end.signal,
            usage={"output_tokens": found.tokens},
            answered_by=self.pane.spec.get("profile"),
            source=found.source,
            timed_out=end.timed_out,
            error=found.error,
            warning=self._misfit(found) if end.matched is WaitCondition.IDLE else None,
        )

    def _misfit(self, found: Said) -> str | None:
        """Count the turns in a row whose answer was looked for on the screen and has no sign that the profile names; what is
        to be said of that."""
        profile = self.steady.observer.own
        if not self.pastes or profile is None or found.source not in ("screen", None) or self.asked.raw:
            return None
        count = 0 if found.fits else self.misfits + 1
        if count != self.misfits:
            with suppress(TmuxctlError):
                self.machine.transport.run([("set-option", "-t", self.pane.target, options.MISFITS, str(count))])
        return misfit(profile, count)

    def _said(self, printed: bytes, cut: bool, end: Wait) -> Said:
        """The answer: of a program with a composer what it told or drew, else what it printed. `cut`: more was printed."""
        if not self.pastes:
            found = self._printed(printed, cut, end)
            return self._failed(found) if end.matched is WaitCondition.IDLE and not self.asked.raw else found
        observer, first = self.steady.observer, self.first
        assert first is not None
        assert observer.own is not None
        typed = self.typed.decode("utf-8", "replace")
        told = said(
            self.machine,
            observer,
            observer.own,
            first,
            typed,
            history=self.history,
            ended=end.matched in WAITED and (self.taken is None or self.taken.ok),
            limited=end.detail == Detail.LIMITED,
        )
        return self._printed(printed, cut, end)._replace(error=told.error) if self.asked.raw else told

    def _failed(self, found: Said) -> Said:
        """What a program of lines printed, or what of it came before the error in which its turn ended."""
        profile = self.steady.observer.profile
        rows = found.text.split("\n")
        error = failure.found(rows, profile, limited=self.steady.verdict.detail == Detail.LIMITED) if profile else None
        if error is None:
            return found
        return found._replace(text="\n".join(rows[: error.row]).strip("\n"), complete=False, error=error.text)

    def _printed(self, printed: bytes, cut: bool, end: Wait) -> Said:
        """What was printed since the first line was typed."""
        observer, first = self.steady.observer, self.first
        assert first is not None
        found = answers.answer(
            printed,
            answers.Given(self.typed, first.x, first.y, first.cols, first.rows, first.echo, self.pane.tmux),
            prompt_before=self.prompt,
            token=observer.token if observer.at_prompt(first.offset) else None,
            profile=observer.profile,
            end=answers.End(end.kind, end.detail) if end.state in (State.IDLE, State.ASKING) else None,
            raw=self.asked.raw,
        )
        # of the alternate screen only what changed on it is known
        return Said(found.text, found.complete and not (cut or first.alternate), found.source, found.status, cut=cut)

    def _submitted(self, look: Look | None) -> Submitted:
        first = self.first
        assert first is not None
        if self.steady.observer.at_prompt(first.offset) and look and look.mark and look.mark.offset >= first.offset:
            return Submitted(True, "shell-mark")
        if self.steady.observer.journal.end() > first.offset:
            return Submitted(True, "output")
        if self.steady.readers is not None and look and readers(look.kernel) != self.steady.readers:
            return Submitted(True, "kernel")
        return Submitted(False, "nothing shows that it was taken")

    def _note_timeout(self) -> None:
        given = self.steady.given
        if given is None:
            return
        with suppress(TmuxctlError):
            self.machine.transport.run([("set-option", "-t", self.pane.target, options.RECOVERY, given.id)])
