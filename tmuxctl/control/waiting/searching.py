"""Searches with a user's pattern that cannot hang anybody: neither the caller nor another thread of this process.

Python's `re` may need years for forty characters, and holds up every thread meanwhile. So a search runs here if its cost
is sure to be small, or, in the main thread, under an alarm; where others would wait too long for that, in a worker process.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import warnings
from contextlib import suppress
from math import inf
from typing import NamedTuple

from tmuxctl import alarm
from tmuxctl.errors import Timeout, Usage
from tmuxctl.search_cost import search_steps
from tmuxctl.timing import TIMING

FLAGS = re.MULTILINE
LONGEST = 10_000
"""Characters a pattern may have."""

SHORT_STEPS = 50_000_000
"""Steps that are over before anybody notices: 60 ms for the worst of 4,000 random patterns, below 1 ms for most."""

TOLERABLE_STEPS = 1_000_000_000
"""Steps that are put up with where there is neither an alarm nor a worker: about a second at worst."""

ALARM_HEARD = 20_000
"""Characters up to which an alarm comes in time: `re` listens at every 4,096th place only, and a place may cost as many
steps as there are characters."""

FOLDING = re.compile(r"\(\?[a-zA-Z]*i")
HEX = r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})"
RANGE_END = re.compile(rf"(?s)-(?=(?:\\(?:{HEX}|(N))|([^\\])))")
FOLDED = 2_000_000
"""Characters below the ends of an (?i) pattern's ranges: it looks at each when it compiles, 6 million a second."""


class Found(NamedTuple):
    """What a pattern matched."""

    text: str
    groups: tuple[str | None, ...]


class Search:
    """One pattern, and how to look for it without going astray."""

    def __init__(self, pattern: str, *, short_steps: int = SHORT_STEPS, flags: int = FLAGS) -> None:
        """`pattern` is a Python regular expression, read with these `flags` of `re`. Raises Usage for a bad one."""
        self.pattern, self.short_steps, self._flags = pattern, short_steps, flags
        if len(pattern) > LONGEST:
            raise _bad(pattern, f"it has {len(pattern)} characters, {LONGEST} are allowed")
        try:
            with warnings.catch_warnings():
                # what a later Python may read otherwise, as in `[[]`, is nothing for the user's terminal
                warnings.simplefilter("ignore")
                if FOLDING.search(pattern) and _folded(pattern) > FOLDED:
                    raise _bad(pattern, "it has too many wide ranges for (?i)")
                self._compiled = re.compile(pattern, flags)
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
        if self.is_short(text, start):
            return self.find_here(text, start)
        timing = TIMING.search
        left = inf if deadline is None else deadline - time.monotonic()
        seconds = max(timing.least_seconds, min(timing.longest_seconds, left))
        if len(text) - start <= ALARM_HEARD and alarm.is_possible():
            if threading.active_count() == 1:
                return self._alarmed(text, start, seconds)
            with suppress(Timeout):
                return self._alarmed(text, start, timing.shared_seconds)
        return self._elsewhere(text, start, seconds)

    def is_short(self, text: str, start: int = 0, *, in_line: bool = False) -> bool:
        """True if the search is over before anybody notices; `in_line` says that no match reaches beyond its line."""
        return search_steps(self.pattern, text, start, in_line=in_line) <= self.short_steps

    def find_here(self, text: str, start: int) -> Found | None:
        """The same without any limit."""
        found = self._compiled.search(text, start)
        return Found(found[0], found.groups()) if found else None

    def _alarmed(self, text: str, start: int, seconds: float) -> Found | None:
        try:
            return alarm.run_within(seconds, lambda: self.find_here(text, start))
        except (alarm.TimeUp, MemoryError):
            raise _late() from None

    def _elsewhere(self, text: str, start: int, seconds: float) -> Found | None:
        """Ask a worker process; where there can be none, do what is possible here."""
        from tmuxctl.control.waiting.search_pool import POOL, Late, Query, Unavailable

        # an anchor looks at the character before it, a lookbehind at any number of them
        before = 0 if "(?<" in self.pattern else max(0, start - 1)
        try:
            spans = POOL.search(Query(self.pattern, self._flags, text[before:], start - before), seconds)
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
        if alarm.is_possible():
            return self._alarmed(text, start, seconds)
        if search_steps(self.pattern, text, start) <= TOLERABLE_STEPS:
            return self.find_here(text, start)
        raise _late()


def close() -> None:
    """End the worker processes that wait for a search; the next that needs one starts it anew."""
    pool = sys.modules.get("tmuxctl.control.waiting.search_pool")
    if pool is not None:
        pool.POOL.close()


def _folded(pattern: str) -> int:
    """The characters below the ends of its ranges: never fewer than the ranges hold."""
    total = 0
    for *digits, named, plain in RANGE_END.findall(pattern):
        total += 0xFFFF if named else min(ord(plain) if plain else int("".join(digits), 16), 0xFFFF)
    return total


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
