"""When a state holds: what the looks at a program must have in common, given look by look."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from programs import SHELL
from reading.looks import KEYS, kernel, look, program, thread

from tmuxctl.control import Control
from tmuxctl.control.observation.observer import Glimpse, Observer
from tmuxctl.control.observation.observing import StabilityTracker
from tmuxctl.control.sessions import finding
from tmuxctl.evidence import Kernel, Look
from tmuxctl.model import Confidence, State
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.timing import Clock
from tmuxctl.transport.base import ThreadId, Watch

pytestmark = pytest.mark.on("memory")


class Script(Observer):
    """An observer that sees these looks, one after the other."""

    def __init__(self, control: Control, looks: Sequence[Look]) -> None:
        super().__init__(control.machine, finding.find_session(control.machine, "s"), marked=False)
        self.script = list(looks)

    def observe(self, *, fresh: bool = False) -> Look:
        self.looks.append(self.script.pop(0))
        return self.looks[-1]


class Time:
    """Goes on only where it is slept, and keeps how long."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def make_tracker(
    control: Control, observer: Observer, time: Time, last_input: LastInput | None = None
) -> StabilityTracker:
    machine = copy.copy(control.machine)
    machine.clock = Clock(monotonic=lambda: time.now, sleep=time.sleep)
    return StabilityTracker(machine, observer, last_input)


@pytest.fixture
def follow(control: Control) -> Callable[..., list[bool]]:
    """Whether the program is told to be idle at each of these looks."""
    control.new("s", SHELL)

    def following(*looks: Look, last_input: LastInput | None = None) -> list[bool]:
        time = Time(looks[0].at)
        tracker = make_tracker(control, Script(control, looks), time, last_input)
        found = []
        for one in looks:
            time.now = one.at
            found.append(tracker.observe() and tracker.verdict.state is State.IDLE)
        return found

    return following


def at_prompt(at: float, *, switches: int = 9, **known: object) -> Look:
    """A look at a program behind its prompt, which it printed just before 10.0."""
    return look(">>> ", waiting(switches), **{"at": at, "quiet": at - 9.999, **known})


def waiting(switches: int) -> Kernel:
    return kernel(program("python3", thread("pselect6", alone=True, switches=switches)), tty=KEYS)


def typed(at: float, offset: int) -> LastInput:
    return LastInput("x", offset, 0, 0, 80, 24, False, "editor", b"1+1\n", at)


def test_the_second_look_is_enough_if_it_saw_what_the_first_did(
    follow: Callable[..., list[bool]],
) -> None:
    assert follow(at_prompt(10.0), at_prompt(10.026)) == [False, True]


def test_a_look_too_soon_confirms_nothing(follow: Callable[..., list[bool]]) -> None:
    assert follow(at_prompt(10.0), at_prompt(10.021), at_prompt(10.03)) == [False, False, True]


def test_a_program_that_woke_meanwhile_is_looked_at_again(follow: Callable[..., list[bool]]) -> None:
    woken = [at_prompt(10.0), at_prompt(10.03, switches=10), at_prompt(10.06, switches=10)]
    assert follow(*woken) == [False, False, True]


def unread(at: float, count: int | None) -> Look:
    """A look at a program that waits behind its prompt, with so many typed bytes unread."""
    seen = at_prompt(at, journal=100)
    assert seen.kernel is not None
    return seen._replace(kernel=seen.kernel._replace(tty=KEYS._replace(unread=count)))


def test_time_is_no_evidence_that_an_input_was_read(follow: Callable[..., list[bool]]) -> None:
    """A shell on a loaded machine reads its Enter seconds later."""
    looks = [unread(at, 1) for at in (10.0, 10.4, 12.0, 15.0)]
    looks += [unread(at, 0) for at in (15.03, 15.06)]
    assert follow(*looks, last_input=typed(10.0, 100)) == [False, False, False, False, False, True]


def test_an_input_that_tmux_may_not_have_written_yet_was_not_read(control: Control) -> None:
    control.new("s", SHELL)
    looks, time = [unread(at, 0) for at in (10.0, 15.0, 15.03)], Time(10.0)
    observer = Script(control, looks)
    tracker = make_tracker(control, observer, time, typed(10.0, 100))
    observer.input_delivered = False
    stable = [tracker.observe()]
    observer.input_delivered = True
    for now in (15.0, 15.03):
        time.now = now
        stable.append(tracker.observe())
    assert stable == [False, False, True]
    assert tracker.verdict.state is State.IDLE


def test_where_nothing_tells_whether_an_input_was_read_the_state_is_a_guess(control: Control) -> None:
    """As over ssh, where no command counts the bytes that are unread."""
    control.new("s", SHELL)
    looks, time = [unread(at, None) for at in (10.0, 12.9, 13.1, 13.2)], Time(10.0)
    tracker = make_tracker(control, Script(control, looks), time, typed(10.0, 100))
    verdicts = []
    for one in looks:
        time.now = one.at
        tracker.observe()
        verdicts.append(tracker.is_stable and tracker.verdict.state)
    assert verdicts[:2] == [False, False]
    assert verdicts[-1] is State.IDLE
    assert tracker.verdict.confidence is Confidence.GUESS


def test_looks_follow_an_input_at_growing_intervals_until_it_was_read(control: Control) -> None:
    control.new("s", SHELL)
    looks, time = [unread(10.0 + number, 1) for number in range(12)], Time(10.0)
    tracker, pauses = make_tracker(control, Script(control, looks), time, typed(10.0, 100)), []
    for one in looks:
        time.now = one.at
        tracker.observe()
        pauses.append(tracker.seconds_until_due())
    assert pauses[1:4] == pytest.approx([0.04, 0.08, 0.16])
    assert pauses[-1] == pytest.approx(1.0)


class Heard(Watch):
    """A watch that hears of something so many times, and counts how often it was waited for."""

    def __init__(self, times: int, *, tells_of_runs: bool = False) -> None:
        self.times, self.waits, self.tells_of_runs = times, 0, tells_of_runs
        self.longest, self.heeded, self.timer_seconds = 0.0, 0, 0.0

    def wait(
        self, timeout: float, *, output: bool = True, threads: Sequence[ThreadId] = (), timer_seconds: float = 0.0
    ) -> bool:
        self.waits += 1
        self.heeded += output
        self.timer_seconds = timer_seconds
        self.longest = max(self.longest, timeout)
        self.times -= 1
        return self.times >= 0

    def close(self) -> None: ...


def test_what_belongs_together_is_looked_at_once_and_output_without_end_now_and_then(control: Control) -> None:
    control.new("s", SHELL)
    time = Time(10.0)
    tracker, slept = make_tracker(control, Script(control, [at_prompt(10.0)]), time), time.slept
    settle, pause = tracker.timing.settle_seconds, tracker.timing.pause_seconds
    time.now += 1.0
    assert tracker.sleep(Heard(3), 5.0)
    assert slept == pytest.approx([settle] * 3)
    slept.clear()
    assert tracker.sleep(Heard(10**6), 5.0)
    assert sum(slept) == pytest.approx(pause)
    assert not tracker.sleep(Heard(0), 5.0)


def test_a_program_that_waits_for_its_terminal_is_looked_at_ever_more_seldom_where_its_reads_are_told(
    control: Control,
) -> None:
    control.new("s", SHELL)
    looks = [at_prompt(at) for at in (10.0, 10.03, 14.0, 99.0)]
    time = Time(10.0)
    tracker = make_tracker(control, Script(control, looks), time)
    longest = []
    for one in looks:
        time.now = one.at
        tracker.observe()
        told, untold = Heard(0, tells_of_runs=True), Heard(0)
        assert not tracker.rest(untold, 1.0)
        # how often its threads had run is counted before another look comes
        assert not tracker.rest(told, 1.0)
        assert told.longest < 0.1
        assert not tracker.rest(told, 1.0)
        assert untold.longest <= 1.0
        longest.append(told.longest)
    assert max(longest[:2]) < 0.1
    assert longest[2:] == pytest.approx([tracker.timing.resting_seconds] * 2)


def test_a_program_whose_threads_run_by_a_timer_is_looked_at_ever_more_seldom(control: Control) -> None:
    control.new("s", SHELL)
    time = Time(10.0)
    tracker = make_tracker(control, Script(control, [at_prompt(at) for at in (10.0, 10.03, 14.0)]), time)
    for at in (10.0, 10.03, 14.0):
        time.now = at
        tracker.observe()
        tracker.rest(Heard(0), 1.0)
    watch, passed = Heard(0, tells_of_runs=True), []
    for _ in range(7):
        tracker.rest(watch, 1.0)
        passed.append(watch.timer_seconds)
    assert passed == pytest.approx([0.0, 0.0, 1.0, 2.0, 4.0, 8.0, tracker.timing.timer_seconds])


def test_a_program_that_prints_on_and_on_is_looked_at_ever_more_seldom_and_once_it_falls_silent(
    control: Control,
) -> None:
    control.new("s", SHELL)
    time = Time(10.0)
    busy = kernel(program("make", thread("running", alone=True, switches=9)), tty=KEYS)
    looks = [
        look("[1/9] building", busy, at=at, quiet=0.0, journal=int(at * 100)) for at in (10.0, 10.03, 11.0, 12.0, 13.0)
    ]
    tracker, slept = make_tracker(control, Script(control, looks), time), time.slept
    passed = []
    for one in looks:
        time.now = one.at
        tracker.observe()
        slept.clear()
        assert tracker.rest(Heard(10**6), 5.0)
        passed.append(sum(slept))
    assert (tracker.verdict.state, tracker.is_stable) == (State.STARTING, True)
    timing = tracker.timing
    assert passed[2:] == pytest.approx([2 * timing.silent_seconds, timing.working_seconds, timing.working_seconds])
    slept.clear()
    assert tracker.rest(Heard(3), 5.0)
    assert sum(slept) < timing.silent_seconds


def test_no_line_of_a_program_that_prints_on_and_on_wakes_who_only_follows_it(control: Control) -> None:
    control.new("s", SHELL)
    busy = kernel(program("make", thread("running", alone=True, switches=9)), tty=KEYS)
    looks = [
        look("[1/9] building", busy, at=at, quiet=0.0, journal=journal) for at, journal in ((10, 1), (11, 2), (12, 2))
    ]
    time = Time(10.0)
    tracker = make_tracker(control, Script(control, looks), time)
    heeded = []
    for one in looks:
        time.now = one.at
        tracker.observe()
        watch = Heard(0)
        tracker.rest(watch, 5.0)
        heeded.append((watch.waits > 0, watch.heeded))
    # the first look tells nothing yet; the last one found nothing new, so that the next line is worth a look
    assert heeded[1:] == [(True, 0), (True, 1)]


def test_who_follows_many_looks_half_as_often_at_work(control: Control) -> None:
    control.new("s", SHELL)
    busy = kernel(program("make", thread("running", alone=True, switches=9)), tty=KEYS)
    looks = [look("[1/9] building", busy, at=at, quiet=0.0, journal=int(at)) for at in (10, 13, 16, 19, 22)]
    looks += [at_prompt(at, journal=99) for at in (50, 51, 199)]
    time = Time(10.0)
    tracker, passed = make_tracker(control, Script(control, looks), time), []
    for one in looks:
        time.now = one.at
        tracker.observe()
        time.slept.clear()
        watch = Heard(10**6) if one.at < 30 else Heard(0, tells_of_runs=True)
        for _ in range(1 if one.at < 30 else 3):
            tracker.rest(watch, 5.0, rarity=2.0)
        passed.append(sum(time.slept) if one.at < 30 else watch.longest)
    timing = tracker.timing
    assert passed[4] == pytest.approx(2 * timing.working_seconds)
    assert passed[-1] == pytest.approx(timing.resting_seconds)


class Glimpsed(Script):
    """The same, with a glimpse before them."""

    glimpsed: Look
    glimpses = 0

    def glimpse(self) -> Glimpse:
        self.glimpses += 1
        return Glimpse(self.glimpsed.at, self.glimpsed.journal, self.glimpsed.quiet, self.glimpsed.kernel)


@pytest.fixture
def after_glimpse(control: Control) -> Callable[[Look, Look], tuple[bool, int]]:
    """Whether the program is told to be idle at a look behind output and a glimpse, and how many glimpses there were."""
    control.new("s", SHELL)

    def following(glimpsed: Look, look: Look) -> tuple[bool, int]:
        observer, time = Glimpsed(control, [look]), Time(glimpsed.at)
        observer.glimpsed = glimpsed
        tracker = make_tracker(control, observer, time)
        assert tracker.sleep(Heard(1), 5.0)
        time.now = look.at
        return tracker.observe() and tracker.verdict.state is State.IDLE, observer.glimpses

    return following


def test_a_glimpse_of_a_program_that_waits_is_confirmed_by_the_look_behind_it(
    after_glimpse: Callable[[Look, Look], tuple[bool, int]],
) -> None:
    assert after_glimpse(at_prompt(10.0), at_prompt(10.03)) == (True, 1)


@pytest.mark.parametrize("changed", [{"switches": 10}, {"journal": 104}])
def test_a_glimpse_confirms_nothing_if_something_happened_since(
    after_glimpse: Callable[[Look, Look], tuple[bool, int]], changed: dict[str, Any]
) -> None:
    assert after_glimpse(at_prompt(10.0), at_prompt(10.03, **changed)) == (False, 1)


def test_a_glimpse_of_a_program_that_read_and_read_again_confirms_nothing(
    after_glimpse: Callable[[Look, Look], tuple[bool, int]],
) -> None:
    reads = [
        look(screen, kernel(program("python3", thread("read", switches=switches))), at=at, quiet=at - 9.999)
        for screen, switches, at in (("$ ", 9, 10.0), ("$ ", 9, 10.03), ("$ ", 10, 10.03), ("$ work", 9, 10.03))
    ]
    assert after_glimpse(reads[0], reads[1]) == (True, 1)
    assert after_glimpse(reads[0], reads[2]) == (False, 1)
    # its prompt may still be on its way
    assert after_glimpse(reads[0], reads[3]) == (False, 1)


def test_a_glimpse_of_a_program_at_work_confirms_nothing(
    after_glimpse: Callable[[Look, Look], tuple[bool, int]],
) -> None:
    works = look(">>> ", kernel(program("python3", "running"), tty=KEYS), at=10.0)
    assert after_glimpse(works, at_prompt(10.03)) == (False, 1)
    unread = at_prompt(10.0)
    assert unread.kernel is not None
    unread = unread._replace(kernel=unread.kernel._replace(tty=KEYS._replace(unread=2)))
    assert after_glimpse(unread, at_prompt(10.03)) == (False, 1)


def test_output_that_comes_far_apart_is_glimpsed_at_as_soon_as_output_after_silence(control: Control) -> None:
    control.new("s", SHELL)

    def settled(apart: float) -> float:
        """How long the pause behind output is, where some was found so many seconds apart."""
        looks = [at_prompt(10.0 + number * apart, journal=100 + number) for number in range(5)]
        time = Time(10.0)
        tracker = make_tracker(control, Script(control, looks), time)
        for one in looks:
            time.now = one.at
            tracker.observe()
        time.slept.clear()
        assert tracker.sleep(Heard(1), 5.0)
        return time.slept[0]

    timing = control.machine.timing.observation
    assert settled(0.1) == pytest.approx(timing.settle_seconds)
    assert settled(0.03) == pytest.approx(timing.pause_seconds)


@pytest.mark.on("tmux")
def test_a_look_behind_a_glimpse_asks_tmux_only_for_what_was_printed_since(
    control: Control, until: Callable[[Callable[[], Any]], Any], place: Path
) -> None:
    script = f"echo before; until [ -e {place}/go ]; do sleep 0.02; done; echo since; read x"
    control.new("s", ("sh", "-c", f"read x; {script}"))
    control.send("s", b"x")
    assert control.wait("s", text="before").matched
    observer = Observer(control.machine, finding.find_session(control.machine, "s"))
    observer.capture_ahead(observer.glimpse())
    server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    os.kill(server, signal.SIGSTOP)
    try:
        assert "before" in observer.observe().screen
    finally:
        os.kill(server, signal.SIGCONT)
    (place / "go").touch()
    assert until(lambda: "since" in observer.observe().screen)
    observer.capture_ahead(observer.glimpse())
    control.send("s", b"x")
    assert until(lambda: observer.observe().dead)


def test_right_after_an_input_the_first_look_is_not_taken_before_the_program_prints(control: Control) -> None:
    control.new("s", SHELL)
    # it stays just now, however long the test takes
    clock = control.machine.transport.clock() + 60.0
    pane = finding.find_session(control.machine, "s")
    end = finding.open_journal(control.machine, pane).end()
    time = Time(clock)
    silent = make_tracker(control, Script(control, []), time, typed(clock, end))
    assert silent.may_skip()
    assert not silent.sleep(Heard(0), 5.0)
    time.now += 1.0
    assert not silent.may_skip()
    # what was printed before anything could be heard of it counts
    printed = make_tracker(control, Script(control, []), time, typed(clock, end - 1))
    assert printed.may_skip()
    assert printed.sleep(Heard(0), 5.0)
