"""A recording: the size of a terminal, and what happened on it, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tmuxctl.value import Value

OUTPUT, INPUT, MARKER, RESIZE, EXIT = "o", "i", "m", "r", "x"
"""What an event is, as asciicast calls it: text for the terminal, what was typed, a named moment, another size as `COLSxROWS`,
an exit status."""


class CastEvent(NamedTuple):
    """Something that happened `at` so many seconds from the beginning."""

    at: float
    code: str
    data: str


class Recording(Value):
    """Events on a terminal of so many columns and rows. `events` begins them anew each time it is called.

    `began` is when it began, in seconds of the wall clock, None if unknown; `estimated`, whether some of the times are.
    """

    cols: int
    rows: int
    events: Callable[[], Iterator[CastEvent]]
    began: float | None = None
    title: str = ""
    command: str = ""
    estimated: bool = False


def pace(events: Iterable[CastEvent], *, idle_limit: float | None = None, speed: float = 1.0) -> Iterator[CastEvent]:
    """The events with no pause longer than `idle_limit` seconds, then `speed` times as fast."""
    before = at = 0.0
    for event in events:
        pause = max(0.0, event.at - before)
        at += (pause if idle_limit is None else min(pause, idle_limit)) / speed
        before = max(before, event.at)
        yield event._replace(at=at)
