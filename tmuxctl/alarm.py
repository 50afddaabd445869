"""An alarm for work in the main thread that would not end by itself."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class TimeUp(BaseException):
    """The time is up. No Exception: the code that takes too long may catch all of those."""


def is_possible() -> bool:
    """True in a main thread whose alarm nobody uses and which would hear it: signals reach no other (signal(7))."""
    return (
        threading.current_thread() is threading.main_thread()
        and not signal.getitimer(signal.ITIMER_REAL)[0]
        and signal.getsignal(signal.SIGALRM) is not None
        and signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    )


def run_within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns; raises TimeUp if it takes longer. Only where an alarm is `possible`."""
    working = True

    def ring(_number: int, _frame: FrameType | None) -> None:
        if working:
            raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            return work()
        finally:
            # it rings once: from here on for nobody, so that the rest is done whole
            working = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
