"""What a pane without a journal printed, as far as its screen and scrollback still show it."""

from __future__ import annotations

import time

from tmuxctl.terminal.journal import Extent, Journal, Slice
from tmuxctl.terminal.server import Pane
from tmuxctl.transport.base import Transport

COLUMN, ROW = 1 << 12, 1 << 24
"""An offset is the place of the cursor, counted from the first row of the scrollback, and how often the screen has
changed since the cursor came there: it grows with all that happens."""

PLACE = "#{history_size} #{history_limit} #{cursor_y} #{cursor_x} #{alternate_on}"


class Shown(Journal):
    """Stands in for a journal by looks at the screen: redrawn text and what scrolled beyond the limit are lost."""

    streams = False

    def __init__(self, transport: Transport, pane: Pane, folder: str) -> None:
        super().__init__(transport, folder)
        self.pane, self.tmux = pane.target, transport
        self._seen = b""
        self._end = 0
        self._grown = 0.0

    def extent(self) -> Extent:
        """How far it came by now. When it last grew is known from the second look on."""
        seen = self._look()
        place = _offset(seen)
        if not self._seen:
            self._end = place
        elif seen != self._seen:
            self._end, self._grown = max(place, self._end + 1), time.time()
        self._seen = seen
        return Extent(0, self._end, False, self._grown)

    def _look(self) -> bytes:
        return self.tmux.run(
            [("display-message", "-p", "-t", self.pane, PLACE), ("capture-pane", "-p", "-t", self.pane)]
        )

    def read(self, offset: int, limit: int | None = None) -> Slice:
        """The rows from a place on, as lines; all that is shown where the screen was cleared since, or is an alternate one."""
        extent = self.extent()
        history, most, y, _, alternate = _place(self._seen)
        row, column = divmod(max(0, offset), ROW)
        column //= COLUMN
        cleared = row > history + y
        if alternate or cleared:
            row, column = history, 0
        grab = ("capture-pane", "-p", "-J", "-t", self.pane, "-S", str(row - history), "-E", str(y))
        rows = self.tmux.run([grab]).decode(errors="replace").rstrip("\n").split("\n")
        rows[0] = _behind(rows[0], column)
        data = "\r\n".join(line.rstrip() for line in rows).encode()
        return Slice(data[:limit], offset, extent.end, bool(cleared or alternate or history >= most))

    def tail(self, limit: int) -> Slice:
        """The last of what is shown."""
        return self.read(max(0, (_place(self._look())[0] - limit // 80) * ROW), limit)


def _place(seen: bytes) -> tuple[int, int, int, int, int]:
    history, most, y, x, alternate = (int(word or 0) for word in seen.split(b"\n", 1)[0].split(b" "))
    return history, most, y, x, alternate


def _offset(seen: bytes) -> int:
    history, _, y, x, _ = _place(seen)
    return (history + y) * ROW + x * COLUMN


def _behind(row: str, column: int) -> str:
    """A row's text from a column on."""
    from tmuxctl.terminal.width import WIDTHS

    at = 0
    for index, character in enumerate(row):
        if at >= column:
            return row[index:]
        at += max(0, WIDTHS[character])
    return ""
