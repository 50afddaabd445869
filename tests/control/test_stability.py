"""When a state holds: what the looks at a program must have in common, given look by look."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from programs import SHELL
from reading.looks import KEYS, kernel, look, program, thread

from tmuxctl.control import Control
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.observation.observing import StabilityTracker
from tmuxctl.control.sessions import finding
from tmuxctl.evidence import Kernel, Look
from tmuxctl.model import State
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.timing import Clock
from tmuxctl.transport.base import Watch

pytestmark = pytest.mark.on("memory")


class Script(Observer):
    """An observer that sees these looks, one after the other."""

    def __init__(self, control: Control, looks: Sequence[Look]) -> None:
        super().__init__(control.machine, finding.find_session(control.machine, "s"), marked=False)
        self.script = list(looks)

    def observe(self, *, fresh: bool = False) -> Look:
        self.looks.append(self.script.pop(0))
        return self.looks[-1]


@pytest.fixture
def follow(control: Control) -> Callable[..., list[bool]]:
    """Whether the program is told to be idle at each of these looks."""
    control.new("s", SHELL)

    def following(*looks: Look, last_input: LastInput | None = None) -> list[bool]:
        tracker = StabilityTracker(control.machine, Script(control, looks), last_input)
        # a look is taken at the moment that it tells
        tracker.clock = Clock(monotonic=lambda: tracker.newest.at)
        return [tracker.observe() and tracker.verdict.state is State.IDLE for _ in looks]

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


def test_looks_from_before_an_input_was_taken_do_not_count(follow: Callable[..., list[bool]]) -> None:
    """Nothing shows that the input was taken, but for the time that has passed."""
    looks = [at_prompt(at, journal=100) for at in (10.0, 10.3, 10.36, 10.39)]
    assert follow(*looks, last_input=typed(10.0, 100)) == [False, False, False, True]


class Heard(Watch):
    """A watch that hears of something so many times, and counts how often it was waited for."""

    def __init__(self, times: int) -> None:
        self.times, self.waits = times, 0

    def wait(self, timeout: float) -> bool:
        self.waits += 1
        self.times -= 1
        return self.times >= 0

    def close(self) -> None: ...


def test_what_belongs_together_is_looked_at_once_and_output_without_end_now_and_then(control: Control) -> None:
    control.new("s", SHELL)
    tracker = StabilityTracker(control.machine, Script(control, [at_prompt(10.0)]), None)
    now = [tracker.clock.monotonic()]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    tracker.clock = Clock(monotonic=lambda: now[0], sleep=sleep)
    now[0] += 1.0
    assert tracker.sleep(Heard(3), 5.0)
    settle, pause = tracker.timing.settle_seconds, tracker.timing.pause_seconds
    assert slept == [pytest.approx(settle)]
    tracker.observe()
    slept.clear()
    assert tracker.sleep(Heard(3), 5.0)
    assert len(slept) == 3
    assert tracker.sleep(Heard(10**6), 5.0)
    assert sum(slept) == pytest.approx(pause)
    assert not tracker.sleep(Heard(0), 5.0)
