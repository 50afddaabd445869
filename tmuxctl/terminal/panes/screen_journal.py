"""What a pane without a journal printed, as far as its screen and scrollback still show it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl import widths
from tmuxctl.terminal.tmux.journal import Journal, JournalExtent, JournalSlice
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.terminal.panes.foreign import ForeignIO
    from tmuxctl.terminal.tmux.pane_io import Looked
    from tmuxctl.terminal.tmux.server import Pane

COLUMN, ROW = 1 << 12, 1 << 24
"""An offset is the place of the cursor, counted from the first row there ever was, and how often the screen has changed
since the cursor came there: it grows with all that happens."""

PLACE = ("history_size", "history_limit", "cursor_y", "cursor_x", "alternate_on", "pane_width")

ACTIVITY_QUIET = 1.0
"""Seconds of quiet from which tmux's whole seconds tell it."""

ABOVE = 6
"""How many rows, up to the cursor's, identify its place after rows above them were dropped."""


class ScreenPosition(NamedTuple):
    """Where the cursor stands: `history` rows of at most `most` are scrolled away, it is in row `y` of those that show."""

    history: int
    most: int
    y: int
    x: int
    alternate: int
    cols: int

    @classmethod
    def parse(cls, values: Sequence[str]) -> ScreenPosition:
        """By the values of PLACE."""
        return cls(*(int(value or 0) for value in values))

    @property
    def row(self) -> int:
        """The cursor's row, counted from the oldest that is kept."""
        return self.history + self.y

    @property
    def dropped(self) -> int:
        """How many rows tmux drops at once when its history is full (grid_collect_history)."""
        return max(1, self.most // 10)

    @property
    def full(self) -> bool:
        """True if rows may have been dropped: the history is full, or as full as it is after that."""
        return self.history >= self.most - self.dropped


class ScreenJournal(Journal):
    """Stands in for a journal by looks at the screen: redrawn text and what scrolled beyond the limit are lost.

    tmux does not tell how many rows it dropped, but drops the same number each time: so the rows that stood before the
    last input are looked for where they can be by now, and are the measure. Where they are not found, nothing is known
    of earlier places, and reading gives what is visible, as `truncated`.
    """

    streams = False

    def __init__(self, io: ForeignIO, pane: Pane, folder: str) -> None:
        super().__init__(io.transport, folder)
        self.io, self.name = io, pane.name
        self._version = pane.tmux
        self._screen: Looked | None = None
        self._position = ScreenPosition(0, 0, 0, 0, 0, 0)
        self._dropped_rows: int | None = 0
        self._end, self._read_end = 0, -1
        self._grown = 0.0

    def extent(self) -> JournalExtent:
        """How far it came by now. When it last grew is known from the second look on; at the first tmux tells it of the whole
        window, to the second."""
        screen = self.io.look(self.name, PLACE, [()])
        if screen != self._screen:
            first = not self._screen
            self._screen, self._position = screen, ScreenPosition.parse(screen.values)
            self._dropped_rows = self._count_dropped()
            offset = (self._position.row + (self._dropped_rows or 0)) * ROW + self._position.x * COLUMN
            self._end = offset if first else max(offset, self._end + 1)
            self._grown = self._read_last_activity() if first else time.time()
            self.io.note_change(self._end, self._rows_before_cursor(screen.captures[0]))
        return JournalExtent(0, self._end, False, self._grown)

    def _read_last_activity(self) -> float:
        """When the pane's window last printed, at the latest, by the wall clock; 0.0 if that was only just now."""
        (active,) = self.io.look(self.name, ("window_activity",)).values
        latest = float(active or 0) + 1.0
        return latest if 1.0 < latest <= time.time() - ACTIVITY_QUIET else 0.0

    def _rows_before_cursor(self, screen: bytes) -> str:
        """The rows up to the cursor, with what tells where they are looked for later."""
        position = self._position
        rows = screen.decode(errors="replace").split("\n")[: position.y + 1][-ABOVE:]
        rows[-1] = widths.first_columns(rows[-1], position.x, self._version)
        return json.dumps([position.row, self._dropped_rows or 0, position.cols, rows])

    def _count_dropped(self) -> int | None:
        """How many rows were dropped by now; None if that cannot be told."""
        position = self._position
        if not position.full:
            return 0
        remembered = self.io.rows_before_input()
        if not remembered:
            return None
        try:
            row, dropped_before, cols, rows = parse_json(remembered)
        except (ValueError, TypeError):
            return None
        if position.alternate or cols != position.cols or position.dropped < ABOVE:
            return None
        starts = [start for start in range(row, -1, -position.dropped) if len(rows) - 1 <= start <= position.row]
        values, captures = self.io.look(
            self.name, PLACE, [self._rows_between(start - len(rows) + 1, start) for start in starts]
        )
        if ScreenPosition.parse(values).history != position.history:
            # the program goes on printing: the next look tells
            return self._dropped_rows
        blocks = [capture.decode(errors="replace").split("\n")[: len(rows)] for capture in captures]
        alike = [
            # what was typed stands behind the prompt: a row without it is more likely the same prompt printed again
            (block[-1] == rows[-1], int(dropped_before + row - start))
            for start, block in zip(starts, blocks, strict=True)
            if block[:-1] == rows[:-1] and block[-1].startswith(rows[-1])
        ]
        return min(alike)[1] if alike else None

    def _rows_between(self, first: int, last: int) -> tuple[str, ...]:
        """The flags that capture rows, counted from the oldest that is kept."""
        top = self._position.history
        return ("-S", str(first - top), "-E", str(last - top))

    def read(self, offset: int, limit: int | None = None) -> JournalSlice:
        """The rows from a place on, as lines; all that is visible where that place is not known any more, or the screen is
        an alternate one. `limit` is of no use: an offset counts no bytes, and what is shown is not much."""
        end = self.extent().end
        if offset == end == self._read_end:
            return JournalSlice(b"", offset, end, False)
        self._read_end = end
        position = self._position
        # rows may have been dropped and the screen look as before
        self._dropped_rows = self._count_dropped()
        row, column = divmod(max(0, offset), ROW)
        row -= self._dropped_rows or 0
        before_oldest = row < 0 or (row == 0 and position.full)
        lost = position.alternate or row > position.row or (position.full and self._dropped_rows is None and offset > 0)
        first, column = (position.history, 0) if lost else (max(0, row), 0 if before_oldest else column // COLUMN)
        (captured,) = self.io.look(self.name, (), [("-J", *self._rows_between(first, position.row))]).captures
        rows = captured.decode(errors="replace").rstrip("\n").split("\n")
        rows[0] = rows[0].removeprefix(widths.first_columns(rows[0], column, self._version))
        data = "\r\n".join(line.rstrip() for line in rows).encode()
        return JournalSlice(data, offset, end, bool(lost or before_oldest))

    def tail(self, limit: int) -> JournalSlice:
        """The last of what is shown."""
        self.extent()
        first = max(0, self._position.history - limit // 80) + (self._dropped_rows or 0)
        return self.read(first * ROW, limit)
