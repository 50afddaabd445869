"""Searches with a user's pattern that cannot hang anybody: neither the caller nor another thread of this process.

Python's `re` may need years for forty characters, and holds up every thread meanwhile. So a search runs here only if it
is sure to be short. Another one runs under an alarm if this thread is the process's only one, else in a worker process.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import warnings
from math import inf
from typing import NamedTuple

from tmuxctl.effort import Bound
from tmuxctl.errors import Timeout, Usage

FLAGS = re.MULTILINE
SEARCH_SECONDS = 5.0
LEAST_SECONDS = 0.05
LONGEST = 10_000
"""Characters a pattern may have."""

ANALYSED = 1_000
"""Longer patterns are not looked into: doing so would take as long as what it saves."""

SHORT_STEPS = 500_000
"""Steps that are over before anybody notices: 10 ms at worst."""

TOLERABLE_STEPS = 50_000_000
"""Steps that are put up with where there is neither an alarm nor a worker: about a second at worst."""

MEASURED = 20_000
"""Characters of which the lines are measured, for a closer bound."""

ALARM_HEARD = 20_000
"""Characters up to which an alarm comes in time: `re` listens at every 4,096th place only, and a place may cost as many
steps as there are characters."""

FOLDED = 500_000
"""Characters of the ranges of an (?i) pattern: it looks at each when it compiles, 6 million a second."""


class Found(NamedTuple):
    """What a pattern matched."""

    text: str
    groups: tuple[str | None, ...]


class Search:
    """One pattern, and how to look for it without going astray."""

    def __init__(self, pattern: str) -> None:
        """`pattern` is a Python regular expression, read with MULTILINE. Raises Usage for a bad one."""
        self.pattern = pattern
        if len(pattern) > LONGEST:
            raise _bad(pattern, f"it has {len(pattern)} characters, {LONGEST} are allowed")
        try:
            with warnings.catch_warnings():
                # what a later Python may read otherwise, as in `[[]`, is nothing for the user's terminal
                warnings.simplefilter("ignore")
                self._bound = _bound(pattern)
                self._compiled = re.compile(pattern, FLAGS)
        except RecursionError:
            raise _bad(pattern, "too many groups within groups") from None
        except (re.error, OverflowError, MemoryError, ValueError) as error:
            raise _bad(pattern, str(error)) from None

    def find(self, text: str, *, start: int = 0, deadline: float | None = None) -> Found | None:
        """The first match that begins at `start` or later; what is before is context, as in `re.Pattern.search`.

        Raises Timeout (`pattern_timeout`) after five seconds, or at the deadline (monotonic seconds) if that is sooner;
        but a search has 50 ms.
        """
        start = min(start, len(text))
        if self._steps(text, start) <= SHORT_STEPS:
            return self._here(text, start)
        left = SEARCH_SECONDS if deadline is None else min(SEARCH_SECONDS, deadline - time.monotonic())
        seconds = max(LEAST_SECONDS, left)
        alone = threading.active_count() == 1 and len(text) - start <= ALARM_HEARD
        if alone and _alarm_possible():
            return self._alarmed(text, start, seconds)
        return self._elsewhere(text, start, seconds)

    def _steps(self, text: str, start: int) -> float:
        """The steps a search takes at most."""
        if self._bound is None:
            return inf
        steps = self._bound.steps(text, start, lines=False)
        if steps > SHORT_STEPS and len(text) - start <= MEASURED:
            return self._bound.steps(text, start, lines=True)
        return steps

    def _here(self, text: str, start: int) -> Found | None:
        found = self._compiled.search(text, start)
        return Found(found[0], found.groups()) if found else None

    def _alarmed(self, text: str, start: int, seconds: float) -> Found | None:
        from tmuxctl import alarm

        try:
            return alarm.within(seconds, lambda: self._here(text, start))
        except (alarm.Rang, MemoryError):
            raise _late() from None

    def _elsewhere(self, text: str, start: int, seconds: float) -> Found | None:
        """Ask a worker process; where there can be none, do what is possible here."""
        from tmuxctl.control.waiting.search_pool import POOL, Late, Query, Unavailable

        # an anchor looks at the character before it, a lookbehind at any number of them
        before = 0 if "(?<" in self.pattern else max(0, start - 1)
        try:
            spans = POOL.search(Query(self.pattern, FLAGS, text[before:], start - before), seconds)
        except Late:
            raise _late() from None
        except Unavailable:
            return self._without_worker(text, start, seconds)
        if spans is None:
            return None
        whole, *groups = (
            text[before + first : before + end] if first >= 0 else None
            for first, end in zip(spans[::2], spans[1::2], strict=True)
        )
        return Found(whole or "", tuple(groups))

    def _without_worker(self, text: str, start: int, seconds: float) -> Found | None:
        if _alarm_possible():
            return self._alarmed(text, start, seconds)
        if self._steps(text, start) <= TOLERABLE_STEPS:
            return self._here(text, start)
        raise _late()


def _alarm_possible() -> bool:
    from tmuxctl import alarm

    return alarm.possible()


def close() -> None:
    """End the worker processes that wait for a search; the next that needs one starts it anew."""
    pool = sys.modules.get("tmuxctl.control.waiting.search_pool")
    if pool is not None:
        pool.POOL.close()


def _bound(pattern: str) -> Bound | None:
    """What is known of its steps; None if it is too long to look into. Raises Usage if compiling it would take long."""
    bound = Bound(pattern, FLAGS)
    if bound.folded > FOLDED:
        raise _bad(pattern, "it has too many wide ranges for (?i)")
    return bound if len(pattern) <= ANALYSED else None


def _bad(pattern: str, why: str) -> Usage:
    return Usage(
        f"{ascii(pattern[:60])} is not a valid pattern: {why}",
        reason="bad_pattern",
        hint="it is a Python regular expression",
    )


def _late() -> Timeout:
    return Timeout(
        "the pattern takes too long on this output",
        reason="pattern_timeout",
        hint="make it simpler: no repetition inside a repetition",
    )
