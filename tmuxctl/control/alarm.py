"""A pattern's deadline: a search that goes astray ends as an error, not as a hung process."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType

from tmuxctl.errors import Timeout

SEARCH_SECONDS = 5.0


REPEATS = re.compile(r"[*+{]")


def searching(pattern: str, deadline: float | None) -> AbstractContextManager[None]:
    """A guard for a search with this pattern; one that repeats nothing cannot go astray and needs none."""
    return _guarded(deadline) if REPEATS.search(pattern) else nullcontext()


@contextmanager
def _guarded(deadline: float | None) -> Iterator[None]:
    """Interrupt the search inside after five seconds, or at the deadline (monotonic seconds) if that is sooner.

    Only the main thread can be interrupted (signal(7)); in others the size of the text bounds the search.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return
    left = SEARCH_SECONDS if deadline is None else min(SEARCH_SECONDS, max(0.05, deadline - time.monotonic()))
    before = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, left)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Timeout(
        "the pattern takes too long on this output",
        reason="pattern_timeout",
        hint="make it simpler: no repetition inside a repetition",
    )
