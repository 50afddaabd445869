"""The state of a session's program: observed, judged until it is stable, and kept for the next process that asks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from tmuxctl import evidence as evidences
from tmuxctl import milestones
from tmuxctl.control.machine import KeptLooks
from tmuxctl.control.observation import wanting
from tmuxctl.control.observation.consumption import count_switches, input_consumed
from tmuxctl.control.observation.observer import Glimpse, Observer
from tmuxctl.control.sessions import finding, summaries
from tmuxctl.control.sessions.finding import cursor_at
from tmuxctl.control.sessions.summaries import pane_detail, status_of, summarize
from tmuxctl.errors import TmuxctlError
from tmuxctl.evidence import Look
from tmuxctl.model import Confidence, Session, State
from tmuxctl.operations import current
from tmuxctl.reading.state.judging import Verdict
from tmuxctl.reading.text import patterns
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.panes import keyframes
from tmuxctl.terminal.panes.captures import Capture, capture_sessions
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.journal import JournalExtent
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.terminal.tmux.timeline import Moment, shorten
from tmuxctl.transport.base import Probe, ThreadId, Watch, read_object
from tmuxctl.untrusted import to_record
from tmuxctl.value import Value, changed
from tmuxctl.vocabulary import Detail, EvidenceKind, MomentKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


SETTLED = (State.IDLE, State.ASKING)
WORKING = (State.STARTING, State.BUSY)

PATIENCE = 4
"""The pause before the next look at a silent program is this fraction of its silence: a quarter."""

UNSEEN = Verdict(State.UNKNOWN, None, None, None, Confidence.GUESS, "not observed yet")

TAKING = Verdict(
    State.BUSY, None, Detail.SILENT, EvidenceKind.KERNEL, Confidence.LIKELY, "the program has not taken the input yet"
)

KEPT_LOOKS = 12
"""How many looks are kept for the next process."""

KEPT_SESSIONS = 256
"""Of how many sessions a process that stays keeps looks itself; of more it forgets all and begins anew."""


class ObservedState(Value):
    """A state, the look it was judged by, the name of the profile, None if it was judged without, and what is wanted."""

    verdict: Verdict
    look: Look
    pane: Pane
    profile: str | None
    wants: str | None = None


def observe(
    machine: Machine, pane: Pane, last_input: LastInput | None = None, *, moment: float | None = None
) -> ObservedState:
    """The state at this moment: looked at until two looks agree, for at most `moment` seconds (0: one look; as usual if None).

    What another process saw just before counts, and what is seen here is kept for the next.
    """
    tracker = StabilityTracker(machine, Observer(machine, pane), last_input)
    tracker.observe_until_stable(moment)
    return tracker.current_state()


def observe_many(machine: Machine, panes: Sequence[Pane]) -> dict[str, ObservedState]:
    """The states of many living sessions by one look at each, by id. A screen that was seen before and has not changed
    since is not asked for again."""
    observers = [Observer(machine, pane) for pane in panes]
    extents = [observer.journal.extent() for observer in observers]
    probes = machine.transport.probe([(pane.pid, pane.tty) for pane in panes])
    newest = [next(iter(load_looks(observer)[-1:]), None) for observer in observers]
    unchanged = {
        pane.id: Capture(pane, look.title, look.screen.encode(), b"", "-")
        for pane, extent, look in zip(panes, extents, newest, strict=True)
        if look and look.journal == extent.end and (look.cols, look.rows) == (pane.cols, pane.rows)
    }
    changed_panes = [pane for pane in panes if pane.id not in unchanged]
    taken = capture_sessions(machine.transport, changed_panes) if changed_panes else ()
    captured = unchanged | {capture.pane.id: capture for capture in taken}
    states = {}
    for pane, observer, extent, probe in zip(panes, observers, extents, probes, strict=True):
        if pane.id not in captured:
            continue
        verdict, look = _judge_one_look(machine, observer, extent, probe, captured[pane.id])
        if pane.id not in unchanged:
            save_looks(observer, verdict)
        wants = wanting.what_is_wanted(observer, verdict)
        states[pane.id] = ObservedState(verdict, look, observer.pane, observer.profile_name, wants)
    return states


def _judge_one_look(
    machine: Machine, observer: Observer, extent: JournalExtent, probe: Probe, capture: Capture
) -> tuple[Verdict, Look]:
    """The state by one look, whose parts were asked for elsewhere; what was just typed must have been taken here too."""
    tracker = StabilityTracker(machine, observer, LastInput.parse(capture.last_input))
    look = observer.add_look(extent, probe, capture)
    verdict = observer.verdict()
    return tracker.after_input(verdict, look), look


def observe_captured(machine: Machine, capture: Capture) -> Verdict:
    """The state by one look, around a screen that was captured just now."""
    observer = Observer(machine, capture.pane)
    extent = observer.journal.extent()
    probe = machine.transport.probe([(capture.pane.pid, capture.pane.tty)])[0]
    return _judge_one_look(machine, observer, extent, probe, capture)[0]


def wait_until_ready(machine: Machine, session: Session) -> Session:
    """A new session, with its state once its program waits, asks, has ended, or has been busy for two seconds."""
    pane, remembered = finding.find_with_input(machine, session.name)
    if pane.id != session.id:
        return session
    if pane.dead:
        return summaries.summarize(pane, session.cursor)
    tracker = StabilityTracker(machine, Observer(machine, pane), LastInput.parse(remembered))
    profile = tracker.observer.session_profile
    timing = machine.timing.observation
    patience = (profile and profile.start_timeout) or machine.settings.wait_timeout or timing.start_seconds
    began = machine.clock.monotonic()
    deadline = began + (current().left(patience) or 0.0)
    busy: float | None = None
    with closing(machine.transport.watch(tracker.observer.folders, pane.pid)) as watch:
        while not tracker.observe() or tracker.verdict.state not in (*SETTLED, State.EXITED):
            moment = machine.clock.monotonic()
            settled = tracker.verdict.state in SETTLED
            busy = None if settled or _is_starting(tracker) else busy or moment
            if moment > deadline or (busy and moment - busy > timing.start_busy_seconds):
                break
            current().check()
            tracker.sleep(watch, timing.start_busy_seconds / 4)
    tracker.save_looks()
    return session_with_state(tracker.current_state())


def _is_starting(tracker: StabilityTracker) -> bool:
    """Whether a program is only starting, and its profile knows how long that may take."""
    if not (tracker.observer.session_profile and tracker.observer.session_profile.start_timeout):
        return False
    # a program that has drawn nothing yet has not begun
    blank = not tracker.newest.screen.strip()
    return tracker.verdict.state is State.STARTING or (blank and tracker.verdict.state in (State.UNKNOWN, State.BUSY))


class StabilityTracker:
    """Decides when the state of a session is stable: the last input has been taken, and two looks in a row agree.

    A program that just got an input seems to wait until it begins to work on it: so after an input, waiting counts only
    once something shows that the input arrived.
    """

    def __init__(self, machine: Machine, observer: Observer, last_input: LastInput | None) -> None:
        self.timing, self.clock = machine.timing.observation, machine.clock
        self.machine, self.observer, self.last_input = machine, observer, last_input
        self.verdict = UNSEEN
        self.is_stable = False
        self.switches_before: dict[tuple[int, int], int] | None = None
        """How often each thread had slept before the input, where this process looked then."""
        self.was_busy = False
        """Since the last input the program was seen at work by its own sign."""
        self.not_reading = False
        """Since the last input two looks in a row found nothing that reads the terminal."""
        self.consumed_at: float | None = None
        """When the program was first seen to have read the last input, by the machine's monotonic clock in seconds."""
        self._input_taken = last_input is None
        self._looks_after_input = 0
        self._observed_at = self._output_at = self._input_at = machine.clock.monotonic()
        self._verdict_since = self._unmoved_since = self._observed_at
        self._settle_seconds = self.timing.settle_seconds
        self._working_seconds = self.timing.silent_seconds
        self._glimpsed: tuple[float, Glimpse] | None = None
        self._is_new = False
        """The newest look led to another verdict than the one before."""
        self._threads: tuple[ThreadId, ...] = ()
        self._rests, self._timer_seconds = False, 0.0
        self._is_input_new = last_input is not None and self._is_fresh(last_input)
        self._journal_end = last_input.offset if last_input and self._is_input_new else -1

    @property
    def newest(self) -> Look:
        """The newest look since the last input."""
        return self.observer.looks[-1]

    def observe(self) -> bool:
        """Take one look and judge; True if `verdict` is stable now."""
        earlier = self.observer.looks[-1] if self.observer.looks else None
        look = self.observer.observe()
        self._observed_at, self._is_input_new = self.clock.monotonic(), False
        self._looks_after_input += 1
        if earlier and self.is_stable and self._is_unchanged(earlier, look):
            return True
        goes_on = self._observed_at - self._output_at < self.timing.apart_seconds
        self._settle_seconds = (
            min(2 * self._settle_seconds, self.timing.pause_seconds)
            if look.journal != self._journal_end and goes_on
            else self.timing.settle_seconds
        )
        if look.journal != self._journal_end:
            # before the first look the program may have been silent for long, or for ever
            quiet = self.timing.lively_seconds if look.quiet is None else look.quiet
            silent = quiet if self._journal_end < 0 else 0.0
            self._journal_end, self._output_at = look.journal, self._observed_at - silent
        self._note_movement(earlier, look)
        before, self.verdict = self.verdict, self.observer.verdict()
        self.was_busy = self.was_busy or (
            self.verdict.state is State.BUSY and self.verdict.by is EvidenceKind.BUSY_MARK
        )
        self.not_reading = self.not_reading or self._confirmed_not_reading(before)
        self.verdict = self.after_input(self.verdict, look)
        milestones.reach("observed", self.observer.pane.name, self.verdict.state)
        self._is_new = not is_confirmed(before, self.verdict)
        if self.verdict is TAKING:
            self.is_stable = False
        elif is_certain(self.verdict):
            self.is_stable = True
        else:
            if self._is_new:
                self._verdict_since = self._observed_at
            # what is in flight between program, tmux and journal takes a moment to arrive, however many looks are taken
            since = self._verdict_since
            if self.verdict.state in SETTLED and patterns.ends_like_prompt(look.left):
                # two looks that saw the same agree, though only at the second enough time had passed for a verdict; what shows
                # no prompt may have printed one that is still on its way
                since = min(since, self._unmoved_since)
            self.is_stable = self._observed_at - since >= self.timing.confirm_seconds
        return self.is_stable

    def _note_movement(self, earlier: Look | None, look: Look) -> None:
        """Notice whether the input was taken, and since when nothing has happened: by this look, and by the glimpse that was
        had since the earlier one."""
        seen = [(self._observed_at, look)]
        if self._glimpsed and (glimpsed := self.observer.add_glimpse(self._glimpsed[1])):
            seen.insert(0, (self._glimpsed[0], glimpsed))
        self._glimpsed = None
        for moment, one in seen:
            taken_before = self._input_taken
            if not taken_before and self.input_consumed(one):
                self._input_taken, self.consumed_at = True, one.at
            if not (earlier and taken_before and evidences.is_unmoved(earlier, one)):
                self._unmoved_since = moment
            earlier = one

    def _confirmed_not_reading(self, before: Verdict) -> bool:
        """Whether two looks in a row found for certain that nothing reads the terminal."""
        pair = (before, self.verdict)
        return all(
            verdict.state is State.BUSY and verdict.by is EvidenceKind.KERNEL and verdict.confidence is Confidence.SURE
            for verdict in pair
        )

    def observe_until_stable(self, moment: float | None = None) -> None:
        """Observe until the state is stable, for at most `moment` seconds (0: once; as usual if None), and keep the
        looks for the next process."""
        self.load_looks()
        began, moment = self.clock.monotonic(), self.timing.moment_seconds if moment is None else moment
        while not self.observe() and self.clock.monotonic() - began < moment:
            self.clock.sleep(self.timing.pause_seconds)
        self.save_looks()

    def note_input(self, last_input: LastInput | None, switches_before: dict[tuple[int, int], int] | None) -> None:
        """Begin anew after an input: what was seen before it says nothing about what comes."""
        self.last_input, self.switches_before = last_input, switches_before
        self.observer.input_delivered = last_input is None
        # what was seen before an input says nothing about what comes after it
        self.observer.looks.clear()
        self.verdict, self.is_stable, self._input_taken = UNSEEN, False, last_input is None
        self.was_busy = self.not_reading = False
        self._glimpsed, self._is_input_new = None, last_input is not None
        self.consumed_at, self._looks_after_input = None, 0
        self._output_at = self._input_at = self.clock.monotonic()

    @property
    def seconds_since_consumed(self) -> float:
        """Seconds from the observation that first saw the last input read by the program to the newest one; where none saw that,
        from the moment at which it was told as a guess."""
        if self.last_input is None:
            return 0.0
        guessed = self.last_input.at + self.timing.unconfirmed_seconds
        elapsed: float = self.newest.at - (guessed if self.consumed_at is None else self.consumed_at)
        return max(0.0, elapsed)

    def note_activity(self) -> None:
        """Let the next looks follow soon: something happened, though perhaps nothing was printed."""
        self._output_at = self.clock.monotonic()

    def seconds_until_due(self) -> float:
        """Seconds until the next look is worth its cost if nothing happens before: few after activity, then ever more."""
        silent = self._observed_at - self._last_activity()
        changing = not self.is_stable and (self.verdict.state in SETTLED or self._is_new)
        # what surely works will print something as a rule: only a silent end is missed for a moment
        working = self.verdict.state is State.BUSY and self.verdict.confidence is Confidence.SURE and self.is_stable
        if not self._input_taken and self._looks_after_input and not changing:
            pause = self._pause_after_input()
        elif changing or (silent < self.timing.lively_seconds and not working):
            pause = self.timing.pause_seconds
        else:
            # the longer a computation has taken, the less a small delay in noticing its silent end matters
            pause = min(self.timing.rare_pause_seconds, max(self.timing.pause_seconds, silent / PATIENCE))
        latest = self._input_at if self._is_input_new else self._observed_at
        return max(0.0, latest + pause - self.clock.monotonic())

    def _pause_after_input(self) -> float:
        """Seconds to the next look after an input that nothing shows to have been read: few at first, then more."""
        doubled = self.timing.input_pause_seconds * (1 << min(self._looks_after_input, 30))
        pause = min(doubled, self.timing.rare_input_pause_seconds)
        if self.last_input is None or not self.observer.looks:
            return pause
        guessed: float = self.last_input.at + self.timing.unconfirmed_seconds - self.newest.at
        return min(pause, guessed) if guessed > 0 else pause

    def _last_activity(self) -> float:
        """When the program last printed, or got an input."""
        if not (self.last_input and self.observer.looks):
            return self._output_at
        return max(self._output_at, self.last_input.at - self.newest.at + self._observed_at)

    def may_skip(self) -> bool:
        """True if the next look is not due, and the program printed and reported nothing since the last one or has only just
        been given something: then `sleep` tells when to look."""
        if self.seconds_until_due() <= 0.001:
            return False
        events = self.observer.events
        quiet = self._is_input_new or self.observer.journal.end() == self._journal_end
        return quiet and not (events and events.has_news())

    def rest(self, watch: Watch, longest: float, *, rarity: float = 1.0) -> bool:
        """As `sleep`, for who only follows the state, of many sessions perhaps, and may be told of it a little later.

        A program that waits for its terminal goes on when it reads that, prints, or ends; whatever it does, a thread of it runs.
        Where all of that wakes us, looks are for what none of it shows. One that prints on and on is looked at when it falls
        silent, else ever more seldom. With `rarity` 2 the latter is half as often.
        """
        silent = self._observed_at - self._last_activity()
        if self.is_stable and self.verdict.state in WORKING:
            return self._rest_at_work(watch, longest, silent, rarity)
        self._working_seconds = self.timing.silent_seconds
        settled = self.is_stable and self._input_taken and self.verdict.state in SETTLED
        threads = tuple(count_switches(self.newest.kernel)) if settled and self.observer.looks else ()
        before, self._threads = self._threads, threads
        if not (watch.tells_of_runs and threads and threads == before and silent > longest):
            self._rests, self._timer_seconds = False, 0.0
            return self.sleep(watch, longest)
        if not self._rests:
            # how often they had run is counted before the observation that follows
            self._rests = True
            return watch.wait(0.0, threads=threads)
        if watch.wait(self.timing.resting_seconds, threads=threads, timer_seconds=self._timer_seconds):
            return True
        # a run that changed nothing may be of a timer, and the next one too
        self._timer_seconds = min(max(longest, 2 * self._timer_seconds), self.timing.timer_seconds)
        return False

    def _rest_at_work(self, watch: Watch, longest: float, silent: float, rarity: float) -> bool:
        clock, pause, end = self.clock, rarity * self.timing.silent_seconds, self._journal_end
        due = self._observed_at + min(self.timing.rare_pause_seconds, max(pause, silent / PATIENCE))
        # what the last look found may go on: each line of it would wake us for nothing
        if silent > 0.0 and not watch.wait(min(longest, max(0.0, due - clock.monotonic()))):
            return False
        latest = max(self._observed_at + self._working_seconds, clock.monotonic() + self._settle_seconds)
        self._working_seconds = min(2 * self._working_seconds, rarity * self.timing.working_seconds)
        step = pause
        while (left := latest - clock.monotonic()) > 0:
            if watch.wait(min(left, step), output=False):
                clock.sleep(min(left, self.timing.pause_seconds))
                continue
            before, extent = end, self.observer.journal.extent()
            if (end := extent.end) == before:
                return end != self._journal_end
            # until it will have been silent for long enough, if nothing more comes
            step = min(pause, max(self.timing.pause_seconds, extent.grown + pause - clock.wall()))
        return True

    def sleep(self, watch: Watch, longest: float) -> bool:
        """Sleep until a look is due, something happens or `longest` seconds have passed; True if something happened. What
        belongs together comes within a moment, and one look is enough for it."""
        began = self.clock.monotonic()
        answered = self._is_input_new and self.observer.journal.end() != self._journal_end
        if not answered and not watch.wait(min(longest, self.seconds_until_due())):
            return False
        self._is_input_new = False
        # a program that prints without end would cause looks without end
        flooded = self.is_stable and self._observed_at - self._input_at >= 1.0
        pause = self.timing.flood_pause_seconds if flooded else self.timing.pause_seconds
        # one that tells its end by itself needs no second look, and so no glimpse before the first
        tells = bool(self.observer.mark_token or self.observer.events)
        settle = self._settle_seconds
        soonest = self.clock.monotonic() + (settle if tells else self.timing.pause_seconds)
        latest = min(max(self._observed_at + pause, soonest), began + longest)
        while (left := latest - self.clock.monotonic()) > 0:
            self.clock.sleep(min(left, settle))
            if watch.wait(0.0):
                continue
            if tells or self._is_still(watch, latest, began + longest):
                break
            settle *= 2
        return True

    def _is_still(self, watch: Watch, latest: float, deadline: float) -> bool:
        """Have a glimpse and sleep on: if a program seems to wait, until a look can confirm it, else until `latest`. False if
        something happened meanwhile."""
        moment, glimpse = self.clock.monotonic(), self.observer.glimpse()
        if glimpse.waits:
            self._glimpsed = moment, glimpse
            self.observer.capture_ahead(glimpse)
            latest = min(moment + self.timing.confirm_seconds, deadline)
        return glimpse.ended or not watch.wait(max(0.0, latest - self.clock.monotonic()))

    def _is_fresh(self, last_input: LastInput) -> bool:
        """Whether the program was given something only just now, which it shows when it has it."""
        return last_input.echo != "none" and (
            self.observer.transport.clock() - last_input.at < self.timing.pause_seconds
        )

    def _is_unchanged(self, earlier: Look, look: Look) -> bool:
        """Nothing waited for the terminal, and since then not one thread has woken: there is nothing to judge anew."""
        if not (self.verdict.state is State.BUSY and self.verdict.confidence is Confidence.SURE):
            return False
        return look.journal == earlier.journal and evidences.without_clock(look.kernel) == evidences.without_clock(
            earlier.kernel
        )

    def after_input(self, verdict: Verdict, look: Look) -> Verdict:
        """What a verdict says where the last input may not have been read: a program that waits has then still to work on it."""
        if verdict.state not in SETTLED or self._input_taken or self.last_input is None:
            return verdict
        consumed = self.input_consumed(look)
        if consumed is None and look.at - self.last_input.at >= self.timing.unconfirmed_seconds:
            why = f"{verdict.why}; nothing shows whether it has read the last input"
            return changed(verdict, confidence=Confidence.GUESS, why=why)
        return verdict if consumed else TAKING

    def input_consumed(self, look: Look) -> bool | None:
        """Whether the program has read the last input, by this look; None if that cannot be told."""
        last_input = self.last_input
        if last_input is None or look.hook is not None or look.dead:
            return True
        return input_consumed(
            last_input,
            look.journal,
            look.kernel,
            look.mark,
            delivered=self.observer.input_delivered,
            alternate=look.alternate,
            shell_marks=self.observer.at_prompt(last_input.offset),
            switches_before=self.switches_before,
        )

    def load_looks(self) -> None:
        """Load the looks of the last seconds that another process kept, those it took after the last input."""
        input_at = self.last_input.at if self.last_input else 0.0
        clock = self.observer.transport.clock()
        looks = load_looks(self.observer)
        fresh = [look for look in looks if 0 <= clock - look.at < self.timing.window_seconds and look.at > input_at]
        self.observer.looks.extend(fresh)
        if fresh and clock - fresh[-1].at < self.timing.recent_seconds:
            self.verdict = self.observer.verdict()
            self._verdict_since -= clock - fresh[-1].at

    def current_state(self) -> ObservedState:
        """The newest verdict, with the look it was judged by."""
        observer = self.observer
        wants = wanting.what_is_wanted(observer, self.verdict)
        return ObservedState(self.verdict, self.newest, observer.pane, observer.profile_name, wants)

    def save_looks(self) -> None:
        """Keep the last looks in the session's folder, for the next process that asks; and of what was seen a question, and the
        screen of a quiet program now and then, so that they can be found again."""
        save_looks(self.observer, self.verdict)
        observer, asking = self.observer, self.verdict.asking
        if not (self.is_stable and observer.looks):
            return
        if asking and self.machine.questions.get(observer.pane.id) != asking.id:
            self.machine.questions[observer.pane.id] = asking.id
            moment = Moment(MomentKind.QUESTION, self.newest.journal, self.clock.wall(), shorten(asking.question))
            self.machine.io.open_timeline(observer.pane).add(moment)
        self.keep_keyframe()

    def keep_keyframe(self) -> None:
        """Keep the screen of a quiet program, if much was printed since that was last done."""
        observer = self.observer
        if not observer.pane.dead and (self.newest.quiet or 0.0) >= self.timing.keyframe_seconds:
            keyframes.keep(self.machine.io, observer.pane, observer.folder, self.newest.journal)


def save_looks(observer: Observer, verdict: Verdict) -> None:
    """Keep the last looks and their verdict in the session's folder, for the next process that asks. A process that stays has
    them itself, and writes them only now and then: replacing a small file takes as long as two looks (measured)."""
    pane, looks = observer.pane, tuple(observer.looks)[-KEPT_LOOKS:]
    if observer.kept is not None:
        now, before = observer.transport.clock(), observer.kept.get(pane.id)
        if len(observer.kept) > KEPT_SESSIONS:
            observer.kept.clear()
        if before and before.are_written(pane.incarnation, verdict.state, now - observer.timing.written_seconds):
            observer.kept[pane.id] = changed(before, looks=looks)
            return
        observer.kept[pane.id] = KeptLooks(pane.incarnation, looks, verdict.state, now)
    record = {
        "incarnation": pane.incarnation,
        "state": verdict.state.value,
        "looks": list(evidences.differences(looks)),
    }
    with suppress(TmuxctlError, OSError), observer.transport.without_answer():
        observer.transport.put(f"{observer.folder}/{layout.LAST}", to_record(record))


def load_looks(observer: Observer) -> list[Look]:
    """The looks that this process or another one kept of this life of the session, oldest first, however old."""
    kept = observer.kept.get(observer.pane.id) if observer.kept else None
    oldest = observer.transport.clock() - observer.timing.window_seconds
    if kept and kept.looks and kept.incarnation == observer.pane.incarnation and kept.looks[-1].at > oldest:
        return [look for look in kept.looks if not look.dead]
    try:
        record = read_object(observer.transport, f"{observer.folder}/{layout.LAST}")
        if record["incarnation"] != observer.pane.incarnation:
            return []
        looks = [look for look in evidences.looks(record["looks"]) if not look.dead]
        return looks if all(map(_is_valid, looks)) else []
    except (TmuxctlError, OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return []


def _is_valid(look: Look) -> bool:
    """Whether a look that was read from a file has values of the right types."""
    numbers = (look.at, look.journal, look.x, look.y, look.cols, look.rows)
    texts = (look.screen, look.title)
    return all(isinstance(number, (int, float)) for number in numbers) and all(isinstance(text, str) for text in texts)


def is_certain(verdict: Verdict) -> bool:
    """True if one look is enough: the program has ended, a shell has marked its prompt, or the program's hooks tell."""
    return verdict.state in (State.EXITED, State.LOST) or (
        verdict.by in (EvidenceKind.SHELL_MARK, EvidenceKind.HOOK) and verdict.confidence is Confidence.SURE
    )


def is_confirmed(earlier: Verdict, later: Verdict) -> bool:
    """True if two verdicts say the same, so that the second confirms the first."""
    ids = [verdict.asking.id if verdict.asking else None for verdict in (earlier, later)]
    return earlier.state == later.state and earlier.kind == later.kind and ids[0] == ids[1]


def session_with_state(observed: ObservedState) -> Session:
    """What is known of a session, with its state."""
    return changed(
        summarize(observed.pane, cursor_at(observed.pane, observed.look.journal)),
        status=status_of(observed.verdict, detail=pane_detail(observed.pane)),
        profile=observed.profile,
        wants=observed.wants,
    )
