"""The page a terminal draws on: rows that scroll, are cleared, go aside for the alternate screen and change size.

The measure is tmux 3.3a, as for grid.py; screen.c and grid-view.c of tmux describe the rules.
"""

from __future__ import annotations

from typing import NamedTuple

import pyte
from pyte.screens import Char

from tmuxctl.terminal.picture.rows import BLANK, GridRow, Rewrap, rewrap_position, unwrap_position


class SavedScreen(NamedTuple):
    """The screen behind the alternate one."""

    rows: list[GridRow]
    columns: int
    lines: int


class TerminalPage(pyte.Screen):
    """The visible `rows` and those that scrolled off (`history`, at most `limit`), with a cursor and margins."""

    def __init__(self, columns: int, lines: int, limit: int) -> None:
        self.limit = limit
        self.history: list[GridRow] = []
        self.scrolled = 0
        self.saved: SavedScreen | None = None
        self.saved_place: tuple[int, int] | None = None
        self.saved_style = BLANK
        self.rows = [GridRow() for _ in range(lines)]
        self.top, self.bottom = 0, lines - 1
        super().__init__(columns, lines)

    @property
    def display(self) -> list[str]:
        return [row.text(self.columns).rstrip(" ") for row in self.rows]

    @property
    def blank(self) -> Char:
        """What clearing leaves: a blank of the background in effect."""
        background = self.cursor.attrs.bg
        return BLANK if background == "default" else Char(" ", bg=background)

    # --- scrolling

    def index(self) -> None:
        self._line_down(self.blank)

    def linefeed(self) -> None:
        self._line_down(self.blank)

    def next_line(self) -> None:
        """NEL: the start of the next line."""
        self.cursor.x = 0
        self._line_down(self.blank)

    def reverse_index(self) -> None:
        if self.cursor.y == self.top:
            self._scroll_down(self.blank)
        elif self.cursor.y > 0:
            self.cursor.y -= 1

    def _line_down(self, blank: Char) -> None:
        if self.cursor.y == self.bottom:
            self._scroll_up(blank)
        elif self.cursor.y < self.lines - 1:
            self.cursor.y += 1

    def scroll_up(self, count: int) -> None:
        """SU: the rows between the margins go up, the topmost into the history."""
        for _ in range(min(count, self.bottom - self.top + 1)):
            self._scroll_up(self.blank)

    def scroll_down(self, count: int) -> None:
        """SD: the rows between the margins go down."""
        for _ in range(min(count, self.bottom - self.top + 1)):
            self._scroll_down(self.blank)

    def _scroll_up(self, blank: Char) -> None:
        if self.saved:
            self._move_rows(self.top, self.top + 1, self.bottom - self.top, blank)
            return
        self._append_history(self.rows.pop(self.top))
        self.rows.insert(self.bottom, GridRow(self.columns, blank))

    def _scroll_down(self, blank: Char) -> None:
        self._move_rows(self.top + 1, self.top, self.bottom - self.top, blank)

    def _append_history(self, row: GridRow) -> None:
        if not self.limit:
            return
        if len(self.history) >= self.limit:
            del self.history[: max(1, self.limit // 10)]
            self.scrolled = min(self.scrolled, len(self.history))
        self.history.append(row)
        self.scrolled += 1

    def insert_lines(self, count: int | None = None) -> None:
        y, wanted, blank = self.cursor.y, count or 1, self.blank
        if not self.top <= y <= self.bottom:
            wanted = min(wanted, self.lines - y)
            self._move_rows(y + wanted, y, self.lines - y - wanted, blank)
            return
        wanted = min(wanted, self.bottom + 1 - y)
        kept = self.bottom + 1 - y - wanted
        self._move_rows(y + wanted, y, kept, blank)
        self._clear_rows(y + kept, wanted - kept, blank)

    def delete_lines(self, count: int | None = None) -> None:
        y, wanted, blank = self.cursor.y, count or 1, self.blank
        if not self.top <= y <= self.bottom:
            wanted = min(wanted, self.lines - y)
            self._move_rows(y, y + wanted, self.lines - y - wanted, blank)
            self._clear_rows(self.lines - wanted, y + 2 * wanted - self.lines, blank)
            return
        wanted = min(wanted, self.bottom + 1 - y)
        kept = self.bottom + 1 - y - wanted
        self._move_rows(y, y + wanted, kept, blank)
        self._clear_rows(y + kept, wanted - kept, blank)

    def _move_rows(self, to: int, start: int, count: int, blank: Char) -> None:
        if count <= 0:
            return
        self._end_line(to - 1)
        self.rows[to : to + count] = self.rows[start : start + count]
        for y in range(start, start + count):
            if not to <= y < to + count:
                self.rows[y] = GridRow(self.columns, blank)
        if not to <= start < to + count:
            self._end_line(start - 1)

    def _clear_rows(self, y: int, count: int, blank: Char) -> None:
        if count:
            for at in range(y, y + count):
                self.rows[at] = GridRow(self.columns, blank)
            self._end_line(y - 1)

    def _end_line(self, y: int) -> None:
        """The row's text no longer goes on in the next row."""
        if y >= 0:
            self.rows[y].wrapped = False
        elif self.history:
            self.history[-1].wrapped = False

    # --- clearing and moving cells

    def insert_characters(self, count: int | None = None) -> None:
        if self.cursor.x < self.columns:
            wanted = min(count or 1, self.columns - self.cursor.x)
            self.rows[self.cursor.y].insert(self.cursor.x, wanted, self.columns, self.blank)

    def delete_characters(self, count: int | None = None) -> None:
        if self.cursor.x < self.columns:
            wanted = min(count or 1, self.columns - self.cursor.x)
            if wanted == self.columns:
                self._clear_cells(0, wanted)
            else:
                self.rows[self.cursor.y].delete(self.cursor.x, wanted, self.columns, self.blank)

    def erase_characters(self, count: int | None = None) -> None:
        if self.cursor.x < self.columns:
            self._clear_cells(self.cursor.x, min(count or 1, self.columns - self.cursor.x))

    def _clear_cells(self, x: int, count: int) -> None:
        if count == self.columns:
            self._clear_rows(self.cursor.y, 1, self.blank)
        else:
            self.rows[self.cursor.y].clear(x, count, self.blank)

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        x, cells = self.cursor.x, self.rows[self.cursor.y].cells
        if how == 2 or (how == 0 and x == 0) or (how == 1 and x >= self.columns - 1):
            if cells or self.blank is not BLANK:
                self._clear_cells(0, self.columns)
        elif how == 1:
            self._clear_cells(0, x + 1)
        elif how == 0 and x < self.columns:
            self._clear_cells(x, self.columns - x)

    def erase_in_display(self, how: int = 0, *args: object, **kwargs: object) -> None:
        x, y, lines = self.cursor.x, self.cursor.y, self.lines
        if how == 2 or (how == 0 and x == y == 0):
            if self.saved:
                self._clear_rows(0, lines, self.blank)
            else:
                self._clear_into_history()
        elif how == 0:
            if x < self.columns:
                self._clear_cells(x, self.columns - x)
            self._clear_rows(y + 1, lines - y - 1, self.blank)
        elif how == 1:
            self._clear_rows(0, y, self.blank)
            self._clear_cells(0, min(x + 1, self.columns))
        elif how == 3:
            self.history.clear()
            self.scrolled = 0

    def _clear_into_history(self) -> None:
        written = max((y + 1 for y, row in enumerate(self.rows) if row.used), default=0)
        for row in self.rows[:written]:
            self._append_history(row)
        self.rows = [GridRow(self.columns, self.blank) for _ in range(self.lines)]
        if not written:
            self._end_line(-1)
        else:
            self.scrolled = 0

    # --- the alternate screen, size

    def alternate_on(self, with_cursor: bool) -> None:
        """Show an empty screen without history; the cursor stays where it is."""
        if self.saved:
            return
        if with_cursor:
            self.saved_place = self.cursor.x, self.cursor.y
        self.saved_style = self.cursor.attrs
        self.saved = SavedScreen(self.rows, self.columns, self.lines)
        self.rows = [GridRow() for _ in range(self.lines)]
        self._end_line(-1)

    def alternate_off(self, with_cursor: bool) -> None:
        """Back to the screen behind; with 1049 the cursor goes back too, even when that screen is shown already."""
        columns, lines, saved = self.columns, self.lines, self.saved
        if saved:
            self._resize(saved.columns, saved.lines, rewrap=True)
        if with_cursor and self.saved_place:
            self.cursor.x, self.cursor.y = self.saved_place
            self.cursor.attrs = self.saved_style
        if saved:
            self.rows = saved.rows
            self.saved = None
            self._resize(columns, lines, rewrap=True)
        self.cursor.x = min(self.cursor.x, self.columns - 1)
        self.cursor.y = min(self.cursor.y, self.lines - 1)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        self._resize(columns or self.columns, lines or self.lines, rewrap=not self.saved)

    def _resize(self, columns: int, lines: int, rewrap: bool) -> None:
        rewrap = rewrap and columns != self.columns
        if columns != self.columns:
            self.columns = columns
            self.tabstops = set(range(8, columns, 8))
        y = len(self.history) + self.cursor.y
        if lines < self.lines:
            y -= self._shrink(self.lines - lines)
        elif lines > self.lines:
            self._grow(lines - self.lines)
        if lines != self.lines:
            self.lines, self.top, self.bottom = lines, 0, lines - 1
        x = self.cursor.x
        if rewrap:
            x, y = self._rewrap(x, y)
        inside = y >= len(self.history)
        self.cursor.x, self.cursor.y = (x, y - len(self.history)) if inside else (0, 0)

    def _shrink(self, count: int) -> int:
        """Take rows away below the cursor, then at the top; how many rows vanished above the cursor."""
        below = min(self.lines - 1 - self.cursor.y, count)
        if below:
            del self.rows[-below:]
            self._end_line(len(self.rows) - 1)
        top_rows, self.rows = self.rows[: count - below], self.rows[count - below :]
        if self.saved:
            if top_rows:
                self._end_line(-1)
            return len(top_rows)
        self.history += top_rows
        self.scrolled += len(top_rows)
        return 0

    def _grow(self, count: int) -> None:
        back = 0 if self.saved else min(self.scrolled, count)
        if back:
            self.rows[:0] = self.history[-back:]
            del self.history[-back:]
            self.scrolled -= back
        self.rows += [GridRow() for _ in range(count - back)]

    def _rewrap(self, x: int, y: int) -> tuple[int, int]:
        rows = self.history + self.rows
        offset, line = unwrap_position(rows, x, y)
        rewrap = Rewrap(rows, self.columns, self.scrolled)
        rewrap.run()
        missing = self.lines - len(rewrap.target)
        rows = rewrap.target + [GridRow() for _ in range(missing)]
        self.history, self.rows = rows[: -self.lines], rows[-self.lines :]
        self.scrolled = min(rewrap.scrolled, len(self.history))
        return rewrap_position(rows, offset, line)
