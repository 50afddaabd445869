"""When each line of a session's output was printed: known at some moments, and estimated between them."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tmuxctl.control.output import printed
from tmuxctl.control.output.moments import History
from tmuxctl.control.sessions import finding
from tmuxctl.operations import current
from tmuxctl.results import Output
from tmuxctl.terminal.tmux.journal import Journal
from tmuxctl.terminal.tmux.timeline import OutputTime
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.terminal.tmux.server import Pane


class TimeScale:
    """The time of each point in a session's output, in seconds of the wall clock: known at some offsets, and spread evenly
    between two of them. `known` is pairs of an offset and a time, by their offsets; `recorded` is when output came, as a
    recorder saw it: these times are among the known ones."""

    def __init__(self, known: Sequence[tuple[int, float]], recorded: Sequence[OutputTime] = ()) -> None:
        self._recorded = sorted((one.start, one.end) for one in recorded if one.start < one.end)
        self._offsets: list[int] = []
        self._times: list[float] = []
        for offset, at in known:
            # a clock that was set back, or a time in whole seconds
            at = max(at, self._times[-1]) if self._times else at
            self._offsets.append(offset)
            self._times.append(at)

    def next_known(self, offset: int, default: int) -> int:
        """The next offset behind this one whose time is known."""
        after = bisect_right(self._offsets, offset)
        return self._offsets[after] if after < len(self._offsets) else default

    def is_estimated(self, start: int, end: int) -> bool:
        """Whether the time of any output between two offsets is estimated: no recorder saw it come."""
        place = max(0, bisect_right(self._recorded, (start, sys.maxsize)) - 1)
        while start < end and place < len(self._recorded) and self._recorded[place][0] <= start:
            start, place = max(start, self._recorded[place][1]), place + 1
        return start < end

    def reached_at(self, offset: int) -> float:
        """The time at which the output had come to an offset; from then on until `time_at` nothing came."""
        before = bisect_left(self._offsets, offset)
        known = before < len(self._offsets) and self._offsets[before] == offset
        return self._times[before] if known else self.time_at(offset)[0]

    def time_at(self, offset: int) -> tuple[float, bool]:
        """The time at which the output went on from an offset, and whether it is known."""
        after = bisect_right(self._offsets, offset)
        if after and self._offsets[after - 1] == offset:
            return self._times[after - 1], True
        if not after or after == len(self._offsets):
            return self._times[0 if not after else -1], False
        begin, end = self._offsets[after - 1], self._offsets[after]
        seconds = self._times[after] - self._times[after - 1]
        at = self._times[after - 1] + (offset - begin) / (end - begin) * seconds
        return at, not self.is_estimated(offset, offset + 1)


def scale_of(history: History) -> TimeScale:
    """The time of each point in a session's output, as far as it is known."""
    known = [(point.offset, point.at) for point in history.list_known() if point.at is not None]
    return TimeScale(known, history.times)


def stamp_output(machine: Machine, pane: Pane, journal: Journal, start: int, *, follow: bool) -> Iterator[Output]:
    """The output from an offset on, each line behind its time of day; with `follow` until the program ends, with the time at
    which each new line came. A line is what a program ended with a newline, whatever else it drew."""
    history = History(machine, pane.id)
    scale = scale_of(history)
    offset, rest, position = start, b"", start
    for part in printed.read_parts(journal, start):
        missing, position = printed.count_missing(journal, part, position), part.end
        if part.truncated:
            offset, rest = part.start, b""
        *lines, rest = (rest + part.data).split(b"\n")
        rows = []
        for line in lines:
            rows.append(_stamp(printed.printed_text(line, pane), *scale.time_at(offset)))
            offset += len(line) + 1
        cursor = finding.cursor_at(pane, offset)
        yield Output(pane.name, "".join(rows), cursor, part.truncated, complete=not follow, missing_bytes=missing)
    if not follow:
        last = _stamp(printed.printed_text(rest, pane), *scale.time_at(offset)) if rest else ""
        yield Output(pane.name, last, finding.cursor_at(pane, offset + len(rest)))
        return
    for piece in printed.follow_output(machine, pane, journal, offset, False, current()):
        yield changed(
            piece, text=_stamp(piece.text.removesuffix("\n"), machine.clock.wall(), True) if piece.text else ""
        )


def _stamp(text: str, at: float, known: bool) -> str:
    """Lines behind the time of day in the local time zone, to the millisecond; `~` before a time that is estimated."""
    mark = f"{'' if known else '~'}{datetime.fromtimestamp(at):%H:%M:%S.%f}"[:-3]
    return "".join(f"{mark:>13} {line}\n" for line in text.split("\n"))
