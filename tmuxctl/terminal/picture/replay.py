"""Styled cells of a captured screen, and what a stretch of raw output drew: pyte behind our filter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from pyte.graphics import BG_AIXTERM, BG_ANSI, FG_AIXTERM, FG_ANSI
from pyte.screens import Char

from tmuxctl import widths
from tmuxctl.results import CursorPosition
from tmuxctl.terminal.picture.filter import OutputFilter
from tmuxctl.terminal.picture.grid import DIM, HIDDEN, Grid
from tmuxctl.terminal.picture.rows import GridRow, cell_width
from tmuxctl.terminal.picture.sgr import pyte_codes
from tmuxctl.terminal.tmux import screen

_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_TABLES = ((FG_ANSI, 30, ""), (BG_ANSI, 40, ""), (FG_AIXTERM, 90, "bright"), (BG_AIXTERM, 100, "bright"))
_NAMES = {table[first + at]: kind + name for table, first, kind in _TABLES for at, name in enumerate(_COLOURS)}
_NAMES["default"] = "default"
_STYLE = re.compile(r"\x1b\[([0-9:;]*)m")


class Cell(NamedTuple):
    """One cell: a character with what is combined with it, one or two columns wide.

    Colours are `default`, one of the sixteen names (`red`, `brightred`, ...) or `#rrggbb`. `underline` is its form: 0 none, 1
    single, 2 double, 3 curly, 4 dotted, 5 dashed. A `hidden` cell has a text that nobody sees.
    """

    text: str
    width: int
    bold: bool = False
    italic: bool = False
    underline: int = 0
    strikethrough: bool = False
    reverse: bool = False
    fg: str = "default"
    bg: str = "default"
    dim: bool = False
    hidden: bool = False


EMPTY = Cell(" ", 1)
UNKNOWN = Char(" ", fg="unknown")
"""A cell of which nothing is known; told from others by its identity."""


def styled_cells(captured: bytes, cols: int, tmux: widths.Version = None) -> list[list[Cell]]:
    """The styled cells of what `capture-pane -p -e` printed: each row's texts joined are tmux's text of that row.

    Rows are filled up to `cols` columns; a row that is longer (`-J`) stays whole. `tmux` is the version that drew them.
    """
    grid = Grid(max(cols, 1), 1, 0)
    return [_fill_row(list(_parse_row(row, grid, tmux)), cols) for row in screen.styled_rows(captured)]


def _parse_row(row: str, grid: Grid, tmux: widths.Version) -> Iterator[Cell]:
    for index, part in enumerate(_STYLE.split(row)):
        if index % 2:
            codes = pyte_codes(part.encode())
            if codes:
                grid.select_graphic_rendition(*codes)
            continue
        style = _cell_style(grid.cursor.attrs)
        for text, width in widths.cells(part, tmux):
            yield Cell(text, max(width, 1), *style)


@lru_cache(1024)
def _cell_style(char: Char) -> tuple[bool, bool, int, bool, bool, str, str, bool, bool]:
    """What a Cell tells of a pyte cell, beside its text and width."""
    colours = (_NAMES.get(char.fg) or f"#{char.fg}", _NAMES.get(char.bg) or f"#{char.bg}")
    own = int(char.blink)
    attributes = char.bold, char.italics, int(char.underscore), char.strikethrough, char.reverse
    return *attributes, *colours, bool(own & DIM), bool(own & HIDDEN)


def _fill_row(row: list[Cell], cols: int) -> list[Cell]:
    return row + [EMPTY] * (cols - sum(cell.width for cell in row))


class Replay:
    """Renders raw program output as tmux would have: feed it from a clean start, at the size the program had.

    `cols` and `rows` are the terminal's size in cells, `history` how many scrolled-off rows are kept. An unterminated
    control string is waited for without end, where tmux gives it up after five seconds.
    """

    def __init__(self, cols: int, rows: int, *, history: int = 20000) -> None:
        self._grid = Grid(cols, rows, history)
        self._filter = OutputFilter(self._grid)
        self._known: dict[int, tuple[list[Char], int, list[Cell]]] = {}

    def forget(self) -> None:
        """Nothing is known of what is shown, as when output is rendered from somewhere in its middle on: see `approximate`.

        The cursor is taken to be at the last row, where it is most often once a screen is full.
        """
        for row in self._grid.rows:
            row.cells, row.used = [UNKNOWN] * self._grid.columns, self._grid.columns
        self._grid.cursor.y = self._grid.lines - 1

    @property
    def approximate(self) -> bool:
        """Whether a part of what is shown is not known: it was drawn before the first byte that was fed."""
        return any(cell is UNKNOWN for row in self._grid.rows for cell in row.cells[: self._grid.columns])

    def feed(self, data: bytes) -> None:
        """Render the next bytes; sequences and characters may be cut anywhere between two feeds."""
        self._filter.feed(data)

    def resize(self, cols: int, rows: int) -> None:
        """The terminal has another size from here on; wrapped rows are rewrapped as tmux does it."""
        self._grid.resize(rows, cols)

    def lines(self) -> list[str]:
        """The visible rows without trailing blanks."""
        return self._grid.display

    def history(self) -> list[str]:
        """The rows that scrolled off, oldest first, without trailing blanks."""
        return [row.text(self._grid.columns).rstrip(" ") for row in self._grid.history]

    def text(self) -> str:
        """Everything from the oldest row on, wrapped rows joined, without trailing blanks and trailing empty lines."""
        parts: list[str] = []
        for row in (*self._grid.history, *self._grid.rows):
            text = row.text(self._grid.columns)
            parts.append(text if row.wrapped else text.rstrip(" ") + "\n")
        return "".join(parts).rstrip("\n")

    def cells(self) -> list[list[Cell]]:
        """The visible rows as styled cells, filled up to the width. A row that is as it was the last time, here or elsewhere on
        the screen, is the same list; none of them is to be changed."""
        columns, known = self._grid.columns, self._known
        self._known = {}
        for row in self._grid.rows:
            before = known.get(id(row))
            if before is None or before[0] != row.cells or before[1] != columns:
                before = [*row.cells], columns, _fill_row(list(_read_row(row, columns)), columns)
            self._known[id(row)] = before
        return [self._known[id(row)][2] for row in self._grid.rows]

    def capture(self) -> bytes:
        """The visible rows with their styles, as `capture-pane -p -e` prints them."""
        return "".join(f"{format_row(row)}\n" for row in self.cells()).encode()

    def draw(self, captured: bytes) -> None:
        """Show what `capture-pane -p -e -N` printed; the cursor is to be placed after that."""
        for number, row in enumerate(screen.styled_rows(captured)[: self._grid.lines], 1):
            self.feed(f"\x1b[{number};1H\x1b[2K{row}\x1b[0m".encode())

    @property
    def cursor(self) -> CursorPosition:
        """Where the cursor is; behind a full row `x` is the number of columns, as tmux tells it."""
        cursor = self._grid.cursor
        return CursorPosition(cursor.x, cursor.y, not cursor.hidden)

    @property
    def alternate(self) -> bool:
        """Whether the alternate screen is shown."""
        return self._grid.saved is not None


def format_row(row: Sequence[Cell], columns: int | None = None) -> str:
    """A row as text with SGR sequences (ECMA-48), which ends in a reset if a style is in effect; of the first `columns` only."""
    end = len(row)
    while end and row[end - 1] == EMPTY:
        end -= 1
    parts, style, used = list[str](), EMPTY, 0
    for cell in row[:end]:
        used += cell.width
        if columns is not None and used > columns:
            break
        now = cell._replace(text=" ", width=1)
        if now != style:
            parts.append(f"\x1b[{_style_codes(now)}m")
            style = now
        parts.append(cell.text)
    return "".join([*parts, "" if style == EMPTY else "\x1b[0m"])


_ATTRIBUTES = (("bold", 1), ("dim", 2), ("italic", 3), ("reverse", 7), ("hidden", 8), ("strikethrough", 9))


def _style_codes(style: Cell) -> str:
    """The parameters of an SGR that sets this style, whatever was in effect (ECMA-48, 8.3.117)."""
    codes = ["0", *(str(code) for name, code in _ATTRIBUTES if getattr(style, name))]
    if style.underline:
        codes.append("4" if style.underline == 1 else f"4:{style.underline}")
    for colour, base, bright, extended in ((style.fg, 30, 90, 38), (style.bg, 40, 100, 48)):
        name = colour.removeprefix("bright")
        if colour.startswith("#"):
            codes.append(f"{extended};2;{int(colour[1:3], 16)};{int(colour[3:5], 16)};{int(colour[5:7], 16)}")
        elif colour != "default":
            codes.append(str((base if name == colour else bright) + _COLOURS.index(name)))
    return ";".join(codes)


def _read_row(row: GridRow, columns: int) -> Iterator[Cell]:
    for char in row.cells[:columns]:
        if char is UNKNOWN:
            yield EMPTY
        elif char.data:
            yield Cell(char.data, cell_width(char), *_cell_style(char))
