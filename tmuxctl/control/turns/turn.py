"""A turn: text given to a program that waits for it, the wait for its end, and the answer that came between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl import milestones
from tmuxctl.control.caller_files import read_given_file
from tmuxctl.control.input import deciding, sending, submitting
from tmuxctl.control.observation import observing, wanting
from tmuxctl.control.observation.consumption import count_switches
from tmuxctl.control.observation.hook_events import ENDS
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.observation.observing import StabilityTracker
from tmuxctl.control.output.agent_answer import format_asked
from tmuxctl.control.sessions import finding
from tmuxctl.control.turns.turn_answer import (
    ANSWER_LIMIT,
    WAITED,
    EndedTurn,
    TurnCount,
    TurnInput,
    read_answer,
    shows_answer,
)
from tmuxctl.control.waiting.waits import Conditions, Waiter, asks
from tmuxctl.errors import Conflict, Exited, NotFound, TmuxctlError, Usage
from tmuxctl.model import State
from tmuxctl.operations import current
from tmuxctl.reading.answers import printed_answer as answers
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.marks import find_marks
from tmuxctl.results import Answer, Asking, Option, Output, Submitted, Wait
from tmuxctl.terminal.input import paste
from tmuxctl.terminal.input.paste import LastInput, OnceMark
from tmuxctl.terminal.tmux import layout, lease, options, timeline
from tmuxctl.terminal.tmux.journal import parse_cursor
from tmuxctl.terminal.tmux.pane_io import Comparison, Condition, FieldTest
from tmuxctl.value import changed
from tmuxctl.vocabulary import EventKind, EvidenceKind, InputKind, MomentKind, WaitCondition

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.reading.state.judging import Verdict
    from tmuxctl.terminal.tmux.server import Pane

INTERRUPTS = 3
"""How often one is, where a question stands in between."""

LINES_LIMIT = 500
"""Lines of one turn, where each is typed when the program is ready for it."""

DECISIONS_LIMIT = 50
"""Questions answered by a policy in one turn."""

SEEN = (options.INPUT, options.ASKER, options.TURN_ID, options.TURN, options.MISFITS)
"""What a turn asks of its session first."""

GIVEN_BEFORE = "given before"
"""What shows that a text was taken whose turn an earlier call began: Enter was pressed behind it."""

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
    choose: Callable[[Asking], str | bytes | None] | None = None
    """Answers questions that `decide` does not: with an option or a text, bytes for a secret, None for not at all."""
    mark: OnceMark | None = None
    """Lets only one of several processes give this text: Conflict `given` to the others."""
    id: str | None = None
    """Of a turn that may have begun before: it is not given again, and its end is waited for."""

    @property
    def patient(self) -> bool:
        """True if a program that is busy is waited for, or stopped."""
        return self.queue or self.interrupt


def has_candidates(machine: Machine) -> bool:
    """Whether sessions of this server were ever chosen from several programs, so that a turn may go to the next one."""
    return bool(machine.transport.files(f"{machine.transport.home}/{layout.CANDIDATES}"))


def ask(machine: Machine, session: str, text: bytes, asked: Asked, *, new: str | None = None) -> Answer:
    """Type a text, wait for the end of the turn, and return what the program wrote. `new` is the command that is started
    if there is no such session.

    Raises Conflict `busy` or `needs_recovery` if something is still running, DecisionNeeded if a question stands before
    the turn, Exited if the program has ended. A turn that ends in a question, an exit or a timeout is a result.
    """
    if new is not None:
        create(machine, session, new)
    began = machine.clock.monotonic()
    with _begin(machine, session, asked) as turn:
        typed, end = turn.give(text)
        count = turn.count(typed)
        end = end or turn.wait_for_end(typed)
        if end.timed_out:
            turn.note_timeout()
        answer = read_answer(EndedTurn(machine, turn.pane, turn.steady, typed, count, end, began, asked.raw))
        _note_turn(machine, turn.pane, typed, answer)
        milestones.reach("answered", turn.pane.name, answer.state)
        return answer


def give(machine: Machine, session: str, text: bytes, asked: Asked) -> Submitted:
    """Begin a turn as `ask` does, and leave the program to it: whether it took the text. Errors as `ask`."""
    with _begin(machine, session, asked) as turn:
        typed, _ = turn.give(text)
        turn.count(typed)
        return typed.taken or Submitted(True, "")


@contextmanager
def _begin(machine: Machine, session: str, asked: Asked) -> Iterator[_Turn]:
    """A turn of a session, whose leases are given back at the end of the block."""
    began = machine.clock.monotonic()
    limit = current().left(machine.settings.wait_ask_timeout if asked.timeout is None else asked.timeout)
    if asked.id is not None:
        sending.check_write_id(asked.id)
    pane, seen = finding.find_with_options(machine, session, SEEN)
    if pane.dead:
        raise paste.ended_error(pane)
    turn = _Turn(machine, pane, seen, asked, None if limit is None else began + limit)
    try:
        yield turn
    finally:
        turn.leases.stop_writing(turn.pane.name)
        turn.leases.end_turn(turn.pane.name)


def _note_turn(machine: Machine, pane: Pane, typed: TurnInput, answer: Answer) -> None:
    """Keep in the timeline from where to where the turn went, and its answer."""
    ended = machine.clock.wall()
    assert answer.cursor is not None
    kept = answer.answer[: timeline.ANSWER_LIMIT]
    moment = timeline.Moment(
        MomentKind.TURN,
        typed.first.offset,
        ended - answer.elapsed,
        timeline.shorten(typed.typed.decode("utf-8", "replace")),
        answer.turn,
        parse_cursor(answer.cursor).offset,
        ended,
        kept,
        answer.complete and len(kept) == len(answer.answer),
    )
    machine.io.open_timeline(pane).add(moment)


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
    return given or b"" if file is None else read_given_file(file).removesuffix(b"\n")


def create(machine: Machine, session: str, command: str) -> None:
    """Start the command in a session of this name if there is none."""
    import shlex

    from tmuxctl.control.lifecycle.creation import SessionRequest, new

    current().demand("create", "ask --new")

    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise Usage(f"--new: {error}", reason="bad_command", hint="--new 'sqlite3 shop.db'") from None
    observing.wait_until_ready(machine, new(machine, SessionRequest(name=session, command=words, if_exists="reuse")))


def answer_to(machine: Machine, session: str, holding: str) -> Output:
    """What a program wrote for the last input that holds this text; NotFound `no_input` if nothing kept does."""
    pane, remembered = finding.find_with_input(machine, session)
    wanted = holding.encode()
    watched = Observer(machine, pane)
    last = LastInput.parse(remembered)
    if last and wanted in last.typed:
        offset, prompt = last.offset, None
        given = answers.TypedInput(last.typed, last.x, last.y, last.cols, last.rows, last.echo, pane.tmux)
    else:
        kept = watched.journal.tail(ANSWER_LIMIT)
        at = kept.data.rfind(wanted) if wanted else -1
        if at < 0:
            raise NotFound(
                f"no input to {pane.name} contains {ascii(holding[:40])}",
                reason="no_input",
                hint=f"tmuxctl log {pane.name}",
            )
        line = max(kept.data.rfind(b"\n", 0, at) + 1, at - PROMPT_BYTES)
        from tmuxctl.control.output import printed

        offset, prompt = kept.start + at, printed.printed_text(kept.data[line:at], pane)
        given = answers.TypedInput(wanted, len(prompt), 0, pane.cols, pane.rows, "editor", pane.tmux)
        del kept
    part = watched.journal.read(offset, ANSWER_LIMIT)
    marks = find_marks(part.data, watched.mark_token) if watched.mark_token else []
    ends = [mark.end for mark in marks if mark.letter == "D"]
    data = part.data[: ends[0]] if ends else part.data
    found = answers.cut_answer(
        data, given, prompt_before=prompt, token=watched.mark_token or None, profile=watched.profile
    )
    text = found.text
    if prompt and prompt.strip() and not ends:
        # an earlier input's answer ends where its program was given the next
        text = text.partition("\n" + prompt.strip())[0]
    return Output(pane.name, text, finding.cursor_at(pane, part.end), part.truncated, found.complete)


class GivenTurn(NamedTuple):
    """What `paste.OnceMark` keeps of a turn with an id: how many of its lines were typed (1 of a text that is pasted), how many
    rows had scrolled away, and its first input, without its text."""

    lines: int
    history: int
    first: LastInput

    @classmethod
    def parse(cls, text: str) -> GivenTurn | None:
        """What was kept; None if nothing was, or another release kept it."""
        lines, history, kept = (*text.split(" ", 2), "", "")[:3]
        first = LastInput.parse(kept)
        if first is None or not (lines.isdecimal() and history.isdecimal()):
            return None
        return cls(int(lines), int(history), first)


class _Leases:
    """The leases of one turn: the one that keeps out other turns until it ends, and the one that lets it alone type."""

    def __init__(self, machine: Machine) -> None:
        self.io, self.timing, self.clock = machine.io, machine.timing.turn, machine.clock
        # two threads of one process are two askers
        self.holder = machine.new_holder()
        self.renewed = 0.0
        self._has_turn = self._writes = False

    def take_turn(self, pane: Pane) -> bool:
        """Take or renew the lease of the turn; False while another turn has it."""
        self.renewed = self.clock.monotonic()
        self._has_turn = lease.take_turn(self.io, self.holder, pane)
        return self._has_turn

    def begin_with(self, type_line: Callable[[dict[str, str]], LastInput]) -> LastInput | None:
        """Take the lease of the turn with its first line, for which the options are that say so; None if that is refused."""
        self.renewed, self._has_turn = self.clock.monotonic(), True
        try:
            return type_line(lease.lease_values(self.io, self.holder, options.ASKER))
        except Conflict as error:
            if error.reason != "leased":
                raise
        self._has_turn = False
        return None

    def values_to_write(self) -> dict[str, str]:
        """The options that keep others from typing, to be set with a line."""
        self._writes = True
        return lease.lease_values(self.io, self.holder)

    def keep_turn(self, pane: Pane, *, writing: bool = False) -> None:
        """Renew it where that is due, and with `writing` the other one too."""
        if self.clock.monotonic() - self.renewed > self.timing.renew_seconds:
            self.take_turn(pane)
            if writing:
                lease.take_lease(self.io, self.holder, pane)

    def start_writing(self, pane: Pane, fields: Sequence[str] = ()) -> Sequence[str] | None:
        """Keep others from typing, and tell the values of these fields; None while another writer does."""
        values = lease.take_lease_and_look(self.io, self.holder, pane, fields)
        self._writes = self._writes or values is not None
        return values

    def stop_writing(self, session: str) -> None:
        """Let others type again."""
        if self._writes:
            self._writes = False
            self._give_back(session, options.LEASE)

    def change_and_stop_writing(self, session: str, values: Mapping[str, str | None]) -> None:
        """Set options of the session, and let others type again."""
        lease.release_lease(self.io, self.holder, session, values=values)
        self._writes = False

    def stopped_writing(self) -> None:
        """Others may type again: that was done with the last line."""
        self._writes = False

    def end_turn(self, session: str) -> None:
        """Let another turn begin."""
        if self._has_turn:
            self._give_back(session, options.ASKER)

    def _give_back(self, session: str, name: str) -> None:
        with suppress(TmuxctlError), self.io.transport.without_answer():
            lease.release_lease(self.io, self.holder, session, name=name)


class _Turn:
    """One turn on its way."""

    def __init__(self, machine: Machine, pane: Pane, seen: Sequence[str], asked: Asked, deadline: float | None) -> None:
        given, self.asker, self.turn_id, *counted = seen
        """Who had the turn at first, and the id of the last turn that had one."""
        self.machine, self.pane, self.asked, self.deadline = machine, pane, asked, deadline
        self.timing, self.clock = machine.timing.turn, machine.clock
        self.steady = StabilityTracker(machine, Observer(machine, pane), LastInput.parse(given))
        self.steady.load_looks()
        self.leases = _Leases(machine)
        self.counted = counted
        """How many turns the session had before, and how many in a row without a sign of an answer, as its options say."""
        self.is_counted = False
        self.decided = 0
        self.answered = "", 0.0
        self.interrupted = False
        self.interrupts = 0
        self.pressed = 0.0

    @property
    def pastes(self) -> bool:
        """True if the program is given a text whole, in its composer."""
        profile = self.steady.observer.session_profile
        return profile is not None and profile.submit.mode == "paste"

    # before

    def begin(self) -> None:
        """Be the only turn of this session: wait for another one, stop it, or refuse, as asked."""
        pause, until = 0.05, self.clock.monotonic() + self.timing.stop_seconds
        while not self.leases.take_turn(self.pane):
            current().check()
            left = self._left()
            waited = self.clock.monotonic() - self.pressed
            if self.asked.interrupt and not self.interrupted and waited > self.timing.ready_seconds:
                self._interrupt()
            patient = self.asked.queue or (self.interrupts and self.clock.monotonic() < until)
            if not patient or (left is not None and left <= 0):
                raise Conflict(
                    f"another turn is under way in {self.pane.name}",
                    reason="busy",
                    hint="wait with --queue, or stop the other turn with --interrupt",
                )
            self.clock.sleep(pause)
            pause = min(0.5, pause * 1.5)
            self.pane = finding.find_session(self.machine, self.pane.name)
        # that was the other turn; what it left may still run
        self.interrupted = False
        if self.steady.observer.events:
            self.steady.observer.events.remove_old()

    def wait_until_ready(self) -> None:
        """Wait for the program to wait for the next thing, as long as that may reasonably be, else refuse."""
        began = self.clock.monotonic()
        with closing(self.machine.transport.watch(self.steady.observer.folders, self.pane.pid)) as watch:
            while not (self._may_type(self.clock.monotonic() - began) and self._alone()):
                self.leases.keep_turn(self.pane)
                # what the last interrupt came to is seen before there is another
                waited = self.clock.monotonic() - max(began, self.pressed)
                patient = self.steady.is_stable or waited > self.timing.ready_seconds
                if self.asked.interrupt and patient and not self.interrupted:
                    self._interrupt()
                current().check()
                left = self._left()
                if left is not None and left <= 0:
                    raise self._busy()
                self.steady.sleep(watch, 1.0 if left is None else min(left, 1.0))
        self.steady.keep_keyframe()

    def _alone(self) -> bool:
        """True once nobody else may type, and nobody did since this turn looked."""
        # the lease of the turn is held: nobody else counts meanwhile
        remembered, *self.counted = self._start_writing((options.INPUT, options.TURN, options.MISFITS))
        return sending.is_untouched(self.machine, self.steady, remembered)

    def _may_type(self, waited: float) -> bool:
        """True if the program takes a next input now; the errors say why it will not soon."""
        if not self._look():
            return False
        verdict = self.steady.verdict
        if verdict.state is State.IDLE:
            return self._may_type_idle(verdict, waited)
        if verdict.state is State.ASKING:
            if not self._decide(verdict) and (self.interrupted or not self.asked.interrupt):
                raise asks(self.pane.name, verdict)
            return False
        if (
            verdict.state is State.UNKNOWN
            and waited > self.timing.ready_seconds
            and not (self.pastes or self._recovering())
        ):
            return True
        if waited > self._patience(verdict) and not self.asked.patient:
            raise self._busy()
        return False

    def _patience(self, verdict: Verdict) -> float:
        """How long a program that works is waited for."""
        # who shows a prompt and no sign of work is only finishing something, however long a loaded machine takes for it
        finishing = self.pastes and verdict.by is EvidenceKind.KERNEL and self._shows_prompt()
        patient = verdict.state is State.STARTING or finishing
        return self.timing.starting_seconds if patient else self.timing.ready_seconds

    def _may_type_idle(self, verdict: Verdict, waited: float) -> bool:
        """Whether a program that waits takes the text, and not a command that it runs."""
        if not self._others_read(verdict):
            # what has told the end of its turn may still be drawing it
            drawn = not self.pastes or verdict.by is not EvidenceKind.HOOK or self._shows_prompt()
            return drawn or waited > self.timing.ready_seconds
        if waited > self.timing.ready_seconds and not self.asked.patient:
            raise wanting.not_at_prompt(self.pane.name, verdict)
        return False

    def _others_read(self, verdict: Verdict) -> bool:
        """Whether a text would go into what a command of a shell or a REPL reads, and not to the prompt."""
        own_input = self.pastes or verdict.kind in (InputKind.PROMPT, InputKind.CONTINUATION)
        return not own_input and wanting.has_prompt(self.steady.observer)

    def _shows_prompt(self) -> bool:
        observer = self.steady.observer
        rules = observer.profile.prompt if observer.profile else ()
        return patterns.find_match(rules, patterns.read_screen(self.steady.newest)) is not None

    def _look(self) -> bool:
        try:
            held = self.steady.observe()
        except NotFound:
            self.pane = self.steady.observer.pane = finding.find_session(self.machine, self.pane.id)
            return False
        self.pane = self.steady.observer.pane
        if self.pane.dead:
            raise paste.ended_error(self.pane)
        return held

    def _interrupt(self) -> None:
        # what only denied a question has not stopped the turn
        self.interrupts += 1
        self.pressed = self.clock.monotonic()
        self.interrupted = self.steady.verdict.state is not State.ASKING or self.interrupts >= INTERRUPTS
        watched = self.steady.observer
        pressed = sending.press_keys(self.machine, self.pane, watched.interrupt_keys, self.leases.holder, apart=True)
        if watched.looks:
            # what is seen from now on counts only once the program has taken the keys
            self.steady.note_input(pressed, count_switches(watched.looks[-1].kernel))

    def _busy(self) -> Conflict:
        name, keys = self.pane.name, " ".join(self.steady.observer.interrupt_keys)
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
        (recovery,) = self.machine.io.look(self.pane.name, (options.RECOVERY,)).values
        return self.steady.last_input is not None and recovery == self.steady.last_input.id

    # the turn

    def give(self, text: bytes) -> tuple[TurnInput, Wait | None]:
        """Give the text once the program is ready for it; and the end of the turn, if that came meanwhile."""
        lines = None if self.pastes else _lines(text)
        first = None if lines is None or self.asker or self._was_given() else self.type_at_once(lines)
        if first is None:
            self.begin()
            if self.asked.id is not None and (given := self._find_given()):
                return self._go_on(given, text, lines)
            self.wait_until_ready()
        return self.paste(text) if lines is None else self.type_lines(lines, [first] if first else [])

    @property
    def mark(self) -> OnceMark | None:
        """What lets this text be given once; None if it may be given by whoever asks."""
        if self.asked.id is None:
            return self.asked.mark
        return OnceMark(options.TURN_ID, self.turn_id, self.asked.id, options.TURN_PLACE)

    def _was_given(self) -> bool:
        """Whether this turn was given before, as far as was seen."""
        return self.asked.id is not None and self.turn_id == self.asked.id

    def _find_given(self) -> GivenTurn | None:
        """What is kept of this turn, if it was given before, by a caller that did not see its end."""
        self.turn_id, place = self.machine.io.look(self.pane.name, (options.TURN_ID, options.TURN_PLACE)).values
        return GivenTurn.parse(place) if self._was_given() else None

    def _go_on(self, given: GivenTurn, text: bytes, lines: list[bytes] | None) -> tuple[TurnInput, Wait | None]:
        """Go on with a turn that was given before: what was not typed is typed."""
        first = changed(given.first, typed=text if lines is None else lines[0])
        journal = self.steady.observer.journal
        begin = max(journal.start(), first.offset - PROMPT_BYTES)
        before = journal.read(begin, first.offset - begin).data
        from tmuxctl.control.output import printed

        prompt = printed.printed_text(before[before.rfind(b"\n") + 1 :], self.pane)
        self._look()
        if lines is None:
            return TurnInput(first, text, prompt, given.history, "", Submitted(True, GIVEN_BEFORE)), None
        return self.type_lines(lines, [first] * given.lines, prompt)

    def type_at_once(self, lines: list[bytes]) -> LastInput | None:
        """Begin the turn and type its first line, in one list, where the program waits for it by the first looks and nobody else
        was there since; None if that is not so, and then nothing was done."""
        if self.steady.observer.events or not self._waits():
            return None
        self.steady.keep_keyframe()
        io, holder = self.machine.io, self.leases.holder
        touched = {
            paste.TOUCHED: sending.touched_since(self.steady.last_input),
            f"{paste.TOUCHED}-lease": lease.held_by_other(io, holder, changed(self.pane, lease=""), options.ASKER),
            f"{paste.TOUCHED}-turn": (FieldTest(options.TURN, Comparison.DIFFERS, self.counted[0]),),
        }
        return self.leases.begin_with(lambda values: self._type_line(lines, None, 1, values, touched))

    def _waits(self) -> bool:
        """Whether the program waits for a text, by one look or by two."""
        if not self._look():
            if self.steady.verdict.state is not State.IDLE:
                return False
            self.clock.sleep(self.machine.timing.observation.pause_seconds)
            if not self._look():
                return False
        verdict = self.steady.verdict
        return verdict.state is State.IDLE and self._may_type_idle(verdict, 0.0)

    def _type_line(
        self,
        lines: list[bytes],
        first: LastInput | None,
        number: int,
        values: Mapping[str, str],
        against: Mapping[str, Condition] = paste.NO_CONDITIONS,
    ) -> LastInput:
        """Type one line; `first` is the input of the first one, None if it is this."""
        # the last one counts the turn, and lets others type again
        ends = self._next_count() | {options.LEASE: None} if number == len(lines) else self.leases.values_to_write()
        line, offset, holder, mark = lines[number - 1], self.steady.newest.journal, self.leases.holder, self.mark

        def keep(remembered: str) -> Mapping[str, str | None]:
            place = first.again(holder.pid) if first else remembered
            return mark.values(place, number, self.pane.history) if mark else lease.NO_VALUES

        if mark and first is None:
            against = {**against, **mark.was_set}
        return sending.type_line(self.machine, self.pane, line, offset, holder, {**values, **ends}, against, keep)

    def type_lines(
        self, lines: list[bytes], typed: Sequence[LastInput], prompt: str | None = None
    ) -> tuple[TurnInput, Wait | None]:
        """Type the lines, each when the program is ready for it; and the end of the turn, if it came before the last. `typed` has
        the first input for each line that was typed before; `prompt` is what stood left of the cursor then."""
        sent = list(typed)
        if prompt is None:
            # the look before the first key
            prompt = self.steady.newest.left
            if sent:
                self.steady.note_input(sent[0], count_switches(self.steady.newest.kernel))
        for number in range(len(sent) + 1, len(lines) + 1):
            end = self.wait_for_end(None) if sent else None
            if end and end.matched not in WAITED:
                return TurnInput(sent[0], b"\n".join([*lines[: len(sent)], b""]), prompt), end
            if sent:
                self._start_writing()
            kernel = self.steady.newest.kernel
            sent.append(self._type_line(lines, sent[0] if sent else None, number, {}))
            self.steady.note_input(sent[-1], count_switches(kernel))
        self.is_counted = True
        self.leases.stopped_writing()
        return TurnInput(sent[0], b"\n".join(lines), prompt), None

    def paste(self, text: bytes) -> tuple[TurnInput, Wait | None]:
        """Give the whole text at once, and see that it is taken; the state at this moment, if it is not."""
        prompt = self.steady.newest.left
        profile = self.steady.observer.session_profile
        assert profile is not None
        while True:
            history, screen = self.pane.history, self.steady.newest.screen
            try:
                first, taken = submitting.Submission(
                    self.machine,
                    self.steady,
                    profile,
                    self.leases.holder,
                    lambda: self.leases.keep_turn(self.pane, writing=True),
                    self.mark,
                ).submit(text.rstrip(b"\r\n"))
            except submitting.QuestionAppeared:
                self.leases.stop_writing(self.pane.name)
                # the question may be decided by policy, and then the text is given anew
                self.wait_until_ready()
                prompt = self.steady.newest.left
            else:
                typed = TurnInput(first, text, prompt, history, screen, taken)
                return typed, None if taken.ok else self._state_as_it_is()

    def _state_as_it_is(self) -> Wait:
        with Waiter(self.machine, self.pane, Conditions(exit=True), "screen", self.steady.last_input) as waiter:
            waiter.steady = self.steady
            return waiter.result(None, "the text was not taken")

    def _start_writing(self, fields: Sequence[str] = ()) -> Sequence[str]:
        while (values := self.leases.start_writing(self.pane, fields)) is None:
            current().check()
            if (left := self._left()) is not None and left <= 0:
                raise lease.leased_error(self.pane.name)
            self.clock.sleep(0.03)
            self.pane = finding.find_session(self.machine, self.pane.name)
        return values

    def wait_for_end(self, typed: TurnInput | None) -> Wait:
        """Wait until the program takes the next line; questions a policy decides are answered on the way.

        `typed` is all that a turn gives, None while lines of it are still to come.
        """
        # a composer's program has a prompt of its own: where that does not show, its turn is not over
        guess = not (self.asked.strict or self.pastes)
        while True:
            end = self._wait(Conditions(idle=True, asking=True, exit=True, unknown=guess))
            if end.matched is WaitCondition.IDLE and not self._has_begun(typed):
                if (left := self._left()) is not None and left <= 0:
                    return changed(end, matched=None, timed_out=True, why="timed out: nothing of the turn was seen")
                self.leases.keep_turn(self.pane)
                self.clock.sleep(self.machine.timing.observation.pause_seconds)
                continue
            if end.matched is not WaitCondition.ASKING or not self._decide(self.steady.verdict):
                return end

    def _has_begun(self, typed: TurnInput | None) -> bool:
        """Whether an idle program has had its turn: it was seen at work, told its end, or has been silent for long."""
        if typed is None or typed.taken is None or self.steady.was_busy:
            return True
        profile, hook = self.steady.observer.session_profile, self.steady.newest.hook
        # a program of lines listens only between its turns, one that draws its answers listens all the time
        told = hook is not None and hook.means == EventKind.ATTENTION
        seen = self.steady.not_reading or told or typed.taken.evidence == "kernel"
        if profile and profile.answer.begin is None and seen:
            return True
        ended = hook is not None and hook.means in ENDS
        return ended or self._was_silent() or shows_answer(self.machine, self.steady, typed)

    def _was_silent(self) -> bool:
        """Whether nothing was seen of a turn for so long that nothing will be."""
        look, profile = self.steady.newest, self.steady.observer.session_profile
        # a program that gets no processor has had no turn, however long ago that was typed
        waited = self.timing.unseen_seconds if self.steady.last_input is None else self.steady.seconds_since_consumed
        silent = min(waited, self.timing.unseen_seconds if look.quiet is None else look.quiet)
        signs = profile is not None and (profile.busy or profile.title_busy)
        needed = self.timing.signed_seconds if signs else self.timing.unbegun_seconds
        return silent > needed or waited >= self.timing.unseen_seconds

    def _wait(self, wanted: Conditions) -> Wait:
        given = self.steady.last_input
        with Waiter(self.machine, self.pane, wanted, "screen", given, steady=self.steady) as waiter:
            while True:
                left = self._left()
                try:
                    renew = self.timing.renew_seconds
                    end = waiter.until(renew if left is None else min(left, renew), anew=True)
                except Exited:
                    end = waiter.result(WaitCondition.EXIT, "exit")
                self.pane = waiter.pane
                left = self._left()
                if not end.timed_out or (left is not None and left <= 0):
                    return end
                self.leases.take_turn(self.pane)

    def _decide(self, verdict: Verdict) -> bool:
        """Answer a question by policy; False if none covers it."""
        option = deciding.choose_by_policy(verdict, self.asked.decide)
        chooses = option is None and verdict.asking is not None and self.asked.choose is not None
        if not (option or chooses) or self.decided >= DECISIONS_LIMIT:
            return False
        asked = verdict.asking.id if verdict.asking else ""
        if (
            asked == self.answered[0]
            and self.clock.monotonic() - self.answered[1] < self.machine.timing.input.question_gone_seconds
        ):
            # it was answered and still stands: pressed again, the key would go into what comes next
            self.clock.sleep(self.machine.timing.observation.pause_seconds)
            return True
        answer: str | bytes | None = None
        if option is None and verdict.asking and self.asked.choose:
            answer = self.asked.choose(verdict.asking)
            if answer is None:
                return False
        self.decided += 1
        if not self._alone():
            return True
        kernel = self.steady.newest.kernel
        self.answered = asked, self.clock.monotonic()
        self.steady.note_input(self._give(verdict.asking, option, answer), count_switches(kernel))
        return True

    def _give(self, asking: Asking | None, option: Option | None, answer: str | bytes | None) -> LastInput | None:
        """Press an option's keys, or give the answer of `choose` as `decide` does; the input that it was."""
        assert asking is not None
        if option is not None:
            return deciding.press_option(self.machine, self.pane, asking, option, self.leases.holder)
        from tmuxctl.control.output import printed

        text, secret = (None, answer) if isinstance(answer, bytes) else (answer, None)
        deciding.give_answer(self.machine, self.pane, asking, text, secret, self.leases.holder)
        return printed.read_last_input(self.machine, self.pane)

    def _left(self) -> float | None:
        return None if self.deadline is None else self.deadline - self.clock.monotonic()

    def count(self, typed: TurnInput) -> TurnCount:
        """Number the turn, take back what an earlier timeout noted, and let others type again, unless its last line did."""
        if not self.is_counted:
            asked = (
                format_asked(typed.first, typed.history, self.leases.holder.pid) if typed.taken is not None else None
            )
            values = self._next_count() | ({options.ASKED: asked} if asked else {})
            self.leases.change_and_stop_writing(self.pane.name, values)
        return TurnCount(self._count_before(options.TURN) + 1, self._count_before(options.MISFITS))

    def _next_count(self) -> dict[str, str | None]:
        return {options.TURN: str(self._count_before(options.TURN) + 1), options.RECOVERY: None}

    def _count_before(self, option: str) -> int:
        text = self.counted[(options.TURN, options.MISFITS).index(option)]
        return int(text) if text.isdecimal() else 0

    def note_timeout(self) -> None:
        """Note that the turn took too long, so that the next one waits for it to be over."""
        given = self.steady.last_input
        if given is None:
            return
        with suppress(TmuxctlError):
            self.machine.io.change(self.pane.name, {options.RECOVERY: given.id})
