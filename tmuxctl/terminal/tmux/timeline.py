"""When things happened in a session's output: a file with a line of JSON for each moment whose offset and time are known.

Whoever types, asks, answers or marks adds a line in one step (O_APPEND), so no lock is needed. The file tells how far the
journal had come at that time; between two known moments the time of a byte can only be estimated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from tmuxctl.errors import TmuxctlError
from tmuxctl.terminal.tmux import layout
from tmuxctl.transport.base import Transport
from tmuxctl.untrusted import fits, parse_json
from tmuxctl.value import Value
from tmuxctl.vocabulary import MomentKind

LIMIT = 4 << 20
"""Bytes that the file may have."""

TEXT_LIMIT = 400
"""Characters kept of what was typed, asked or noted."""

BOUNDS = {"offset": 10**15, "end": 10**15, "at": 10**11, "until": 10**11}
"""What a line's numbers stay below: an offset has 15 digits (`journal`), and a time is one that calendars have."""

MOST_COLUMNS, MOST_CELLS = 10_000, 1_000_000
"""A terminal in which a program can be drawn again has no more."""

ANSWER_LIMIT = 64 << 10
"""Characters kept of an answer."""

TIMES_LIMIT = 16 << 20
"""Bytes that a recorder's file may have: days of a program that prints now and then, an hour of one that never stops."""

OUTPUT_TIME = rb"(?m)^([0-9]{1,15}) ([0-9]{1,15}) ([0-9]{1,10}\.[0-9]{3})$"
"""A line of that file; compiled when it is first used, which quick commands never do."""

NUMBER = (int, float)
SHAPE = {
    "kind!": str,
    "offset!": int,
    "at!": NUMBER,
    "text": str,
    "turn": int,
    "end": int,
    "until": NUMBER,
    "answer": str,
    "whole": bool,
    "late": bool,
    "cols": int,
    "rows": int,
}

SIZE_SCRIPT = r"""# Adds to the timeline that the terminal has another size now: COLUMNS ROWS
LC_ALL=C umask 077
cd "${0%/*}" || exit 0
columns=$1 rows=$2 now=$(date +%s)
case $columns$rows in '' | *[!0-9]*) exit 0 ;; esac
set -- journal/seg.*
for segment; do :; done
[ -f "$segment" ] && [ ! -L timeline ] && { [ ! -e timeline ] || [ -f timeline ]; } || exit 0
offset=$((1${segment##*.} - 1000000000000000 + $(wc -c <"$segment")))
printf '{"kind": "size", "late": true, "offset": %d, "at": %d, "cols": %d, "rows": %d}\n' $offset $now $columns $rows >>timeline
"""
"""tmux runs it where a person's terminal gives the session another size (window-resized); without a journal it does nothing."""


class Moment(Value):
    """Something that happened when the output had come to `offset`, `at` this time in seconds of the wall clock.

    `text` is what was typed (nothing of a secret), asked or noted. A turn has its number, the offset and time of its
    end, and its answer; `whole` is False if the answer was longer or not complete. A size has its columns and rows; `late`
    says that the program may have drawn for it already: the offset was looked at some milliseconds after the change.
    """

    kind: MomentKind
    offset: int
    at: float
    text: str = ""
    turn: int = 0
    end: int = 0
    until: float = 0.0
    answer: str = ""
    whole: bool = True
    cols: int = 0
    rows: int = 0
    late: bool = False


class Timeline:
    """The moments of the session in `folder`; of more than `limit` bytes the older half is dropped."""

    def __init__(self, transport: Transport, folder: str, *, limit: int = LIMIT) -> None:
        self._transport, self._path, self._limit = transport, f"{folder}/{layout.TIMELINE}", limit

    def add(self, moment: Moment) -> None:
        """Keep a moment. What was done goes on without it where that fails: a full disk, files that are gone."""
        import json

        told = {name: value for name, value in moment.__dict__.items() if value != Moment._defaults.get(name)}
        line = json.dumps(told).encode() + b"\n"
        with suppress(TmuxctlError, OSError):
            with self._transport.without_answer():
                size = self._transport.append(self._path, line)
            if size > self._limit:
                self._shorten()

    def _shorten(self) -> None:
        """Drop the older half. A moment that another process adds meanwhile may be lost."""
        kept = self._transport.read(self._path)
        self._transport.put(self._path, kept[kept.find(b"\n", len(kept) // 2) + 1 :])

    def read(self) -> list[Moment]:
        """All moments that are kept, by their offsets; lines that are none are left out."""
        found = []
        with suppress(TmuxctlError, OSError):
            for line in self._transport.read(self._path, 0, self._limit * 2).splitlines():
                if moment := _parse_line(line):
                    found.append(moment)
        return sorted(found, key=lambda moment: moment.offset)


class OutputTime(Value):
    """The output grew from one offset to another at this time, in seconds of the wall clock; it did not grow since the time
    before if both are the same."""

    start: int
    end: int
    at: float


class OutputTimes:
    """When the output of the session in `folder` came, as a recorder kept it; of more than `limit` bytes the older half is
    dropped. A file with a line `START END AT` for each growth."""

    def __init__(self, transport: Transport, folder: str, *, limit: int = TIMES_LIMIT) -> None:
        self._transport, self.path, self._limit = transport, f"{folder}/{layout.OUTPUT_TIMES}", limit

    def add(self, time: OutputTime) -> None:
        """Keep a time. Raises what the transport raises."""
        if self._transport.append(self.path, b"%d %d %.3f\n" % (time.start, time.end, time.at)) > self._limit:
            kept = self._transport.read(self.path)
            self._transport.put(self.path, kept[kept.find(b"\n", len(kept) // 2) + 1 :])

    def read(self) -> list[OutputTime]:
        """All that are kept, in their order; lines that are none are left out."""
        kept = b""
        with suppress(TmuxctlError, OSError):
            kept = self._transport.read(self.path, 0, self._limit * 2)
        found = (OutputTime(int(start), int(end), float(at)) for start, end, at in re.findall(OUTPUT_TIME, kept))
        return sorted(
            (time for time in found if time.start <= time.end), key=lambda time: (time.start, time.end, time.at)
        )


def _parse_line(line: bytes) -> Moment | None:
    try:
        told = parse_json(line)
    except ValueError:
        return None
    kind = MomentKind.of(told.get("kind")) if fits(told, SHAPE) else None
    if kind is None or not all(0 <= told.get(name, 0) < most for name, most in BOUNDS.items()):
        return None
    if kind is MomentKind.SIZE and not is_size(told.get("cols", 0), told.get("rows", 0)):
        return None
    return Moment(**{**{name: told[name] for name in Moment._names if name in told}, "kind": kind})


def is_size(cols: int, rows: int) -> bool:
    """Whether so many columns and rows are those of a terminal that can be drawn."""
    return 0 < cols <= MOST_COLUMNS and 0 < rows <= MOST_COLUMNS and cols * rows <= MOST_CELLS


def shorten(text: str, limit: int = TEXT_LIMIT) -> str:
    """As much of a text as a moment keeps."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def size_at(moments: Sequence[Moment], offset: int, size: tuple[int, int]) -> tuple[int, int]:
    """Columns and rows of the terminal when the output had come to `offset`; `size` is what it is if nothing tells."""
    sizes = [moment for moment in moments if moment.kind is MomentKind.SIZE]
    before = [moment for moment in sizes if moment.offset <= offset]
    found = before[-1] if before else sizes[0] if sizes else None
    return (found.cols, found.rows) if found else size
