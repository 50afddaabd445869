"""What a pane without a journal printed, as far as its screen and scrollback still show it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, NamedTuple, cast

from tmuxctl import widths
from tmuxctl.terminal.tmux.journal import Journal, JournalExtent, JournalSlice
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Transport
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.terminal.panes.foreign import ForeignTransport
    from tmuxctl.terminal.tmux.server import Pane
    from tmuxctl.transport.base import Transport

COLUMN, ROW = 1 << 12, 1 << 24
"""An offset is the place of the cursor, counted from the first row there ever was, and how often the screen has changed
since the cursor came there: it grows with all that happens."""

PLACE = "#{history_size} #{history_limit} #{cursor_y} #{cursor_x} #{alternate_on} #{pane_width}"

ACTIVITY = "#{?session_name,#{window_activity},0}"

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
    def parse(cls, printed: bytes) -> ScreenPosition:
        """What tmux makes of PLACE, in the first line."""
        return cls(*(int(word or 0) for word in printed.split(b"\n", 1)[0].split(b" ")))

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

    def __init__(self, transport: Transport, pane: Pane, folder: str) -> None:
        super().__init__(transport, folder)
        self.pane, self.tmux = pane.target, cast("ForeignTransport", transport)
        self._version = pane.tmux
        self._screen = b""
        self._position = ScreenPosition(0, 0, 0, 0, 0, 0)
        self._dropped_rows: int | None = 0
        self._end, self._read_end = 0, -1
        self._grown = 0.0

    def extent(self) -> JournalExtent:
        """How far it came by now. When it last grew is known from the second look on; at the first tmux tells it of the whole
        window, to the second."""
        screen = self._read_screen()
        if screen != self._screen:
            first = not self._screen
            self._screen, self._position = screen, ScreenPosition.parse(screen)
            self._dropped_rows = self._count_dropped()
            offset = (self._position.row + (self._dropped_rows or 0)) * ROW + self._position.x * COLUMN
            self._end = offset if first else max(offset, self._end + 1)
            self._grown = self._read_last_activity() if first else time.time()
            self.tmux.note_change(self._end, self._rows_before_cursor())
        return JournalExtent(0, self._end, False, self._grown)

    def _read_last_activity(self) -> float:
        """When the pane's window last printed, at the latest, by the wall clock; 0.0 if that was only just now."""
        printed = self.tmux.run([("display-message", "-p", "-t", self.pane, ACTIVITY)]).strip()
        latest = float(printed or 0) + 1.0
        return latest if 1.0 < latest <= time.time() - ACTIVITY_QUIET else 0.0

    def _read_screen(self) -> bytes:
        return self.tmux.run(
            [("display-message", "-p", "-t", self.pane, PLACE), ("capture-pane", "-p", "-t", self.pane)]
        )

    def _rows_before_cursor(self) -> str:
        """The rows up to the cursor, with what tells where they are looked for later."""
        position = self._position
        rows = self._screen.decode(errors="replace").split("\n")[1:][: position.y + 1][-ABOVE:]
        if not rows:
            return ""
        rows[-1] = widths.first_columns(rows[-1], position.x, self._version)
        return json.dumps([position.row, self._dropped_rows or 0, position.cols, rows])

    def _count_dropped(self) -> int | None:
        """How many rows were dropped by now; None if that cannot be told."""
        position = self._position
        if not position.full:
            return 0
        remembered = self.tmux.rows_before_input()
        if not remembered:
            return None
        try:
            row, dropped_before, cols, rows = parse_json(remembered)
        except (ValueError, TypeError):
            return None
        if position.alternate or cols != position.cols or position.dropped < ABOVE:
            return None
        starts = [start for start in range(row, -1, -position.dropped) if len(rows) - 1 <= start <= position.row]
        grabs = [self._capture_command(start - len(rows) + 1, start) for start in starts]
        printed = self.tmux.run([("display-message", "-p", "-t", self.pane, PLACE), *grabs]).decode(errors="replace")
        first, *lines = printed.split("\n")
        if ScreenPosition.parse(first.encode()).history != position.history:
            # the program goes on printing: the next look tells
            return self._dropped_rows
        blocks = [lines[index : index + len(rows)] for index in range(0, len(starts) * len(rows), len(rows))]
        alike = [
            # what was typed stands behind the prompt: a row without it is more likely the same prompt printed again
            (block[-1] == rows[-1], int(dropped_before + row - start))
            for start, block in zip(starts, blocks, strict=True)
            if block[:-1] == rows[:-1] and block[-1].startswith(rows[-1])
        ]
        return min(alike)[1] if alike else None

    def _capture_command(self, first: int, last: int, *options: str) -> tuple[str, ...]:
        """The command that prints rows, counted from the oldest that is kept."""
        top = self._position.history
        return ("capture-pane", "-p", *options, "-t", self.pane, "-S", str(first - top), "-E", str(last - top))

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
        rows = (
            self.tmux.run([self._capture_command(first, position.row, "-J")])
            .decode(errors="replace")
            .rstrip("\n")
            .split("\n")
        )
        rows[0] = rows[0].removeprefix(widths.first_columns(rows[0], column, self._version))
        data = "\r\n".join(line.rstrip() for line in rows).encode()
        return JournalSlice(data, offset, end, bool(lost or before_oldest))

    def tail(self, limit: int) -> JournalSlice:
        """The last of what is shown."""
        self.extent()
        first = max(0, self._position.history - limit // 80) + (self._dropped_rows or 0)
        return self.read(first * ROW, limit)
