"""The rows of a terminal's grid: how their cells are written, moved and rewrapped, by tmux's rules.

The rules are those measured on tmux 3.3a; its grid.c is their description.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyte.screens import Char

from tmuxctl.widths import WIDTHS

BLANK = Char(" ")
PADDING = Char("")
"""The second column of a wide character."""


class GridRow:
    """Cells from the left; `used` of them were written, further ones hold a background at most.

    `wrapped`: the text goes on in the next row. `wide`: there may be padding.
    """

    __slots__ = ("cells", "used", "wide", "wrapped")

    def __init__(self, columns: int = 0, blank: Char = BLANK) -> None:
        self.cells: list[Char] = [] if blank is BLANK else [blank] * columns
        self.used = 0
        self.wrapped = False
        self.wide = False

    def text(self, columns: int) -> str:
        """What the row shows in `columns`, trailing blanks included as far as they were written."""
        return "".join([cell.data for cell in self.cells[: min(self.used, columns)]])

    def write(self, x: int, cells: list[Char]) -> None:
        """Put one-column cells at `x`, blanking a wide character that is cut in half."""
        if self.wide:
            self._blank_before(x)
            self.place(x, cells)
            self._blank_padding(x + len(cells))
        else:
            self.place(x, cells)

    def place(self, x: int, cells: list[Char]) -> None:
        """Put cells at `x` as they are."""
        end = x + len(cells)
        if x > len(self.cells):
            self._extend_to(x)
        self.cells[x:end] = cells
        if end > self.used:
            self.used = end

    def overwrite(self, x: int, width: int) -> None:
        """Blank the halves of wide characters that a cell of this width at `x` will leave."""
        cell = self.get(x)
        if not cell.data:
            start = x
            while start > 0 and not self.get(start).data:
                self.set(start, BLANK)
                start -= 1
            self.set(start, BLANK)
        if width != 1 or not cell.data or WIDTHS[cell.data[0]] != 1:
            self._blank_padding(x + width)

    def _blank_before(self, x: int) -> None:
        # tmux leaves a wide character in the first column alone when its second half is written over
        at = x
        last = BLANK
        while at > 0:
            last = self.get(at)
            if last.data:
                break
            self.set(at, BLANK)
            at -= 1
        if x and last.data and WIDTHS[last.data[0]] > 1:
            self.set(at, BLANK)

    def _blank_padding(self, x: int) -> None:
        while x < len(self.cells) and not self.cells[x].data:
            self.set(x, BLANK)
            x += 1

    def get(self, x: int) -> Char:
        """The cell at `x`; blank beyond the end."""
        return self.cells[x] if x < len(self.cells) else BLANK

    def set(self, x: int, cell: Char) -> None:
        """Put one cell as it is."""
        if x >= len(self.cells):
            self._extend_to(x + 1)
        self.cells[x] = cell
        if x >= self.used:
            self.used = x + 1

    def untouched(self, x: int, columns: int) -> bool:
        """Whether `x` is behind the cells that tmux has set apart: none, a quarter of the row, a half or all of it."""
        size = len(self.cells)
        return not size or x >= next((part for part in (columns // 4, columns // 2) if size <= part), columns)

    def clear(self, x: int, count: int, blank: Char) -> None:
        """Clear `count` cells from `x`; the row counts as written as far as before."""
        end = x + count
        if blank is BLANK:
            end = min(end, len(self.cells))
        else:
            self._extend_to(end)
        if end > x:
            self.cells[x:end] = [blank] * (end - x)

    def insert(self, x: int, count: int, columns: int, blank: Char) -> None:
        """Move the cells from `x` right by `count`. As many as fill the row change nothing: so tmux has it."""
        if x >= columns - 1:
            if x < columns:
                self.clear(x, 1, blank)
        else:
            self._move(x + count, x, columns - x - count, blank)

    def delete(self, x: int, count: int, columns: int, blank: Char) -> None:
        """Take `count` cells out at `x`; the rest moves left."""
        self._move(x, x + count, columns - x - count, blank)
        kept = columns - count
        self.clear(kept, x + count - kept, blank)

    def _move(self, to: int, start: int, count: int, blank: Char) -> None:
        if count <= 0:
            return
        self._extend_to(max(to, start) + count)
        cells = self.cells
        cells[to : to + count] = cells[start : start + count]
        self.used = max(self.used, to + count)
        first, last = (max(start, to + count), start + count) if start > to else (start, min(start + count, to))
        cells[first:last] = [blank] * (last - first)

    def _extend_to(self, length: int) -> None:
        missing = length - len(self.cells)
        if missing > 0:
            self.cells.extend([BLANK] * missing)


def cell_width(cell: Char) -> int:
    """Columns of a cell: 2 for a wide character, 0 for its padding."""
    return WIDTHS[cell.data[0]] if cell.data else 0


class Rewrap:
    """Rewraps rows to another width, as tmux does when a pane is resized.

    `rows` (taken over and consumed) are the scrolled-off ones and the visible ones; `scrolled` counts those which may
    come back into view. After `run`, `target` holds the new rows and `scrolled` the new count.
    """

    def __init__(self, rows: list[GridRow], columns: int, scrolled: int) -> None:
        self.rows = rows
        self.columns = columns
        self.scrolled = scrolled
        self.target: list[GridRow] = []
        self.consumed: set[int] = set()

    def run(self) -> None:
        for index, row in enumerate(self.rows):
            if index in self.consumed:
                continue
            width, fitting = self._measure(row)
            if width > self.columns:
                self._split(index, fitting)
                continue
            self.target.append(row)
            if width < self.columns and row.wrapped:
                self._join(index, width)

    def _measure(self, row: GridRow) -> tuple[int, int]:
        """The row's width in columns, and how many of its cells fit into the new one."""
        if not row.wide:
            return row.used, min(row.used, self.columns)
        width = fitting = 0
        for at, cell in enumerate(row.cells[: row.used]):
            columns = cell_width(cell)
            if not fitting and width + columns > self.columns:
                fitting = at
            width += columns
        return width, fitting

    def _split(self, index: int, fitting: int) -> None:
        row = self.rows[index]
        went_on = row.wrapped
        rest = row.cells[fitting : row.used]
        row.cells, row.used, row.wrapped = row.cells[:fitting], fitting, True
        self.target.append(row)
        before = len(self.target)
        width = self.columns
        for cell in rest:
            columns = cell_width(cell)
            if width + columns > self.columns or len(self.target) == before:
                self.target[-1].wrapped = True
                self.target.append(GridRow())
                self.target[-1].wide = row.wide
                width = 0
            width += columns
            self.target[-1].set(self.target[-1].used, cell)
        self.target[-1].wrapped = went_on
        if index <= self.scrolled:
            self.scrolled += len(self.target) - before
        if width < self.columns and went_on:
            self._join(index, width)

    def _join(self, index: int, width: int) -> None:
        """Fill the last row of the target, `width` columns wide so far, from the rows after `index`."""
        row = self.target[-1]
        to = len(self.target) - 1
        lines, cells_left, went_on = 0, 0, True
        while went_on and not cells_left and width < self.columns and index + 1 + lines < len(self.rows):
            source = self.rows[index + 1 + lines]
            went_on = source.wrapped
            if not source.used:
                if not went_on:
                    break
                lines += 1
                continue
            moved = 0
            while moved < source.used and width + cell_width(source.cells[moved]) <= self.columns:
                width += cell_width(source.cells[moved])
                row.set(row.used, source.cells[moved])
                moved += 1
            if not moved:
                break
            row.wide = row.wide or source.wide
            cells_left = source.used - moved
            lines += 1
            if cells_left:
                source.cells, source.used = source.cells[moved : source.used], cells_left
        if not lines:
            return
        if cells_left:
            lines -= 1
        elif not went_on:
            row.wrapped = False
        self.consumed.update(range(index + 1, index + 1 + lines))
        if self.scrolled > to + lines:
            self.scrolled -= lines
        elif self.scrolled > to:
            self.scrolled = to


def unwrap_position(rows: Sequence[GridRow], x: int, y: int) -> tuple[int | None, int]:
    """A cell's place (None: behind the text) and line, when rows that wrap count as one line."""
    offset = line = 0
    for row in rows[:y]:
        if row.wrapped:
            offset += row.used
        else:
            offset = 0
            line += 1
    return (None if x >= rows[y].used else offset + x), line


def rewrap_position(rows: Sequence[GridRow], offset: int | None, line: int) -> tuple[int, int]:
    """The column and row where `unwrap_position`'s answer is now."""
    y = 0
    while y < len(rows) - 1 and line:
        line -= not rows[y].wrapped
        y += 1
    while rows[y].wrapped and y < len(rows) - 1 and (offset is None or offset >= rows[y].used):
        if offset is not None:
            offset -= rows[y].used
        y += 1
    return (rows[y].used if offset is None else offset), y
