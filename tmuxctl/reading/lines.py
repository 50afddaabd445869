"""A stretch of a program's output as the lines a person saw: pure, quick, without a terminal's bottom edge.

Not a screen (tmux has that): carriage returns, backspaces and erasures are carried out, rows the terminal wrapped are one
line again, and what scrolls away stays. Used where output after a point counts: `wait --text`, `read`, answers.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<csi>[0-?]*)(?P<middle>[ -/]*)(?P<final>[@-~])"
    r"|\x1b[\]PX^_](?:[^\x07\x1b\x9c]|\x1b(?!\\))*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b(?P<escape>[ -/]*[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)
"""ECMA-48: a run of text, a control sequence, a string (OSC DCS SOS PM APC), an escape sequence, a control character."""

UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x9c]*|[ -/]*)\Z")
LONGEST_SEQUENCE = 1 << 16
GRAPHICS = dict(zip(range(0x60, 0x7F), "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·", strict=True))
WIDE = re.compile(r"[^\x20-\u02ff]")


class _Saved(NamedTuple):
    rows: list[list[str]]
    wrapped: list[bool]
    touched: set[int]
    top: int
    x: int
    y: int


class Lines:
    """Feeds on raw output and gives it back as text. `x`, `y` are where the terminal's cursor stood at its beginning."""

    def __init__(self, cols: int, rows: int, *, x: int = 0, y: int = 0, keep: int = 20_000) -> None:
        self.cols, self.height, self._keep = max(2, cols), max(2, rows), keep
        self._rows: list[list[str]] = [[] for _ in range(y + 1)]
        self._wrapped = [False] * (y + 1)
        self._touched: set[int] = set()
        self._top, self._x, self._y = 0, x, y
        self._mark = (x, y)
        self._outer: _Saved | None = None
        self._dropped = self._graphics = False
        self._last = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    @property
    def alternate(self) -> bool:
        """True while the output is inside the alternate screen it switched to."""
        return self._outer is not None

    def touched(self) -> set[int]:
        """The rows of the present window (0 is its first) that were written to."""
        return {row - self._top for row in self._touched if row >= self._top}

    def text(self) -> str:
        """The lines written so far, wrapped rows joined, trailing blanks and untouched rows left out."""
        return self._text(0)

    def newest(self, count: int) -> tuple[str, bool]:
        """The last lines of the text, with at least so many characters; and whether they are all that were ever written."""
        first = len(self._rows)
        while first and (count > 0 or self._wrapped[first - 1]):
            first -= 1
            count -= len(self._rows[first]) + 1
        return self._text(first), not (first or self._dropped)

    def _text(self, first: int) -> str:
        parts: list[str] = []
        for index in range(first, len(self._rows)):
            continued = index > 0 and self._wrapped[index - 1]
            if index not in self._touched and not parts:
                continue
            line = "".join(self._rows[index])
            parts.append(line if continued or not parts else "\n" + line)
        return "\n".join(line.rstrip() for line in "".join(parts).split("\n")).rstrip("\n")

    def left(self, row: int = 0) -> str:
        """All that stands before the cursor, from a row on (counted from the first one fed), rows joined."""
        rows = [*self._rows[row : self._y], self._rows[self._y][: self._x]]
        return "".join("".join(cells) for cells in rows)

    def feed(self, data: bytes) -> None:
        """Go on with more output; a sequence or character may be cut anywhere."""
        text = self._rest + self._decode(data)
        at = 0
        for found in TOKEN.finditer(text):
            # an ESC no token takes is cut off here, or broken off by another: a terminal drops the latter's beginning too
            if found.start() != at and UNFINISHED.match(text, at):
                break
            at = found.end()
            kind = found.lastgroup
            if kind == "text":
                self._write(found["text"])
            elif kind == "control":
                self._control(found["control"])
            elif kind == "final":
                if not found["middle"]:
                    self._sequence(found["csi"], found["final"])
            elif kind == "escape":
                self._escape(found["escape"])
        self._rest = text[at:] if len(text) - at < LONGEST_SEQUENCE else ""
        self._trim()

    def _write(self, text: str) -> None:
        if self._graphics:
            text = text.translate(GRAPHICS)
        self._last = text[-1]
        if WIDE.search(text):
            for character in text:
                self._cell(character)
            return
        while text:
            if self._x >= self.cols:
                # a shell finds a line's end with blanks that run over the edge (zsh PROMPT_SP, fish): no long line
                self._wrap(joined=not text.isspace())
            piece = text[: self.cols - self._x]
            self._put(piece)
            text = text[len(piece) :]

    def _put(self, piece: str) -> None:
        row = self._row()
        if len(row) < self._x:
            row.extend(" " * (self._x - len(row)))
        row[self._x : self._x + len(piece)] = piece
        self._x += len(piece)

    def _cell(self, character: str) -> None:
        if unicodedata.combining(character) or character in "\u200d\ufe0e\ufe0f\u200b":
            row = self._row()
            if row and 0 < self._x <= len(row):
                at = self._x - 1
                row[at if row[at] or not at else at - 1] += character
            return
        width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if self._x + width > self.cols:
            self._wrap()
        row = self._row()
        if len(row) < self._x:
            row.extend(" " * (self._x - len(row)))
        row[self._x : self._x + width] = [character] + [""] * (width - 1)
        self._x += width

    def _row(self) -> list[str]:
        self._touched.add(self._y)
        return self._rows[self._y]

    def _wrap(self, *, joined: bool = True) -> None:
        self._wrapped[self._y] = joined
        self._x = 0
        self._down()

    def _down(self) -> None:
        self._y += 1
        if self._y == len(self._rows):
            self._rows.append([])
            self._wrapped.append(False)
        self._top = max(self._top, self._y - self.height + 1)

    def _go(self, y: int) -> None:
        self._y = min(max(y, self._top), self._top + self.height - 1)
        while self._y >= len(self._rows):
            self._rows.append([])
            self._wrapped.append(False)

    def _control(self, control: str) -> None:
        if control == "\r":
            self._x = 0
        elif control in "\n\v\f\x84\x85":
            if control == "\x85":
                self._x = 0
            self._touched.add(self._y)
            self._down()
        elif control == "\b":
            self._x = max(0, min(self._x, self.cols) - 1)
        elif control == "\t":
            self._x = min(self.cols - 1, (self._x // 8 + 1) * 8)
        elif control in "\x0e\x0f":
            self._graphics = control == "\x0e"
        elif control == "\x8d":
            self._go(self._y - 1)

    def _escape(self, escape: str) -> None:
        if escape == "7":
            self._mark = (self._x, self._y - self._top)
        elif escape == "8":
            self._x = self._mark[0]
            self._go(self._top + self._mark[1])
        elif escape == "M":
            self._go(self._y - 1)
        elif escape in ("D", "E"):
            self._control("\x85" if escape == "E" else "\n")
        elif escape in ("(0", "(B"):
            self._graphics = escape == "(0"
        elif escape == "c":
            self._fresh()

    def _sequence(self, csi: str, final: str) -> None:
        if csi.startswith("?"):
            if final in "hl" and {"47", "1047", "1049"} & set(csi[1:].split(";")):
                self._switch(final == "h")
            return
        if csi[:1] in ("<", "=", ">") or ":" in csi:
            return
        numbers = [int(part) if part.isdigit() else 0 for part in csi.split(";")]
        act = _SEQUENCES.get(final)
        if act:
            act(self, numbers[0], numbers)

    def _move(self, final: str, count: int) -> None:
        step = min(max(1, count), 10_000)
        if final in "AF":
            self._go(self._y - step)
        elif final in "BEe":
            self._go(self._y + step)
        elif final in "Ca":
            self._x = min(self.cols - 1, self._x + step)
        elif final == "D":
            self._x = max(0, min(self._x, self.cols - 1) - step)
        if final in "EF":
            self._x = 0

    def _column(self, count: int) -> None:
        self._x = min(self.cols, max(1, count)) - 1

    def _place(self, numbers: list[int]) -> None:
        self._go(self._top + max(1, numbers[0]) - 1)
        self._column(numbers[1] if len(numbers) > 1 else 1)

    def _erase_line(self, how: int) -> None:
        row = self._row()
        if how == 0:
            del row[self._x :]
            self._wrapped[self._y] = False
        elif how == 1:
            row[: self._x + 1] = " " * min(len(row), self._x + 1)
        else:
            row.clear()
            self._wrapped[self._y] = False

    def _erase_screen(self, how: int) -> None:
        if how == 2 or (how == 0 and self._y == self._top and self._x == 0 and self._touched):
            self._fresh()
            return
        if how == 0:
            self._erase_line(0)
            for y in range(self._y + 1, len(self._rows)):
                self._rows[y].clear()
                self._wrapped[y] = False

    def _fresh(self) -> None:
        """A cleared window: what stood in it stays above as lines already seen."""
        row = self._y - self._top
        self._top = len(self._rows)
        self._go(self._top + row)

    def _insert(self, count: int) -> None:
        row = self._row()
        if self._x < len(row):
            row[self._x : self._x] = " " * min(self.cols, max(1, count))
            del row[self.cols :]

    def _delete(self, count: int) -> None:
        del self._row()[self._x : self._x + max(1, count)]

    def _blank(self, count: int) -> None:
        row = self._row()
        end = min(len(row), self._x + max(1, count))
        row[self._x : end] = " " * max(0, end - self._x)

    def _repeat(self, count: int) -> None:
        if self._last:
            self._write(self._last * min(max(1, count), self.cols * self.height))

    def _switch(self, on: bool) -> None:
        if on and self._outer is None:
            self._outer = _Saved(self._rows, self._wrapped, self._touched, self._top, self._x, self._y)
            self._rows, self._wrapped, self._touched, self._top = [[]], [False], set(), 0
            self._go(self._outer.y - self._outer.top)
        elif not on and self._outer is not None:
            self._rows, self._wrapped, self._touched, self._top, self._x, self._y = self._outer
            self._outer = None

    def _trim(self) -> None:
        over = len(self._rows) - self._keep
        if over > self._keep // 4 and self._outer is None:
            over = min(over, self._top)
            self._dropped = True
            del self._rows[:over], self._wrapped[:over]
            self._top -= over
            self._y -= over
            self._touched = {row - over for row in self._touched if row >= over}


def _mover(final: str) -> Callable[[Lines, int, list[int]], None]:
    return lambda lines, count, _: lines._move(final, count)


_SEQUENCES: dict[str, Callable[[Lines, int, list[int]], None]] = {
    **{final: _mover(final) for final in "ABCDEFae"},
    "G": lambda lines, count, _: lines._column(count),
    "`": lambda lines, count, _: lines._column(count),
    "d": lambda lines, count, _: lines._go(lines._top + max(1, count) - 1),
    "H": lambda lines, _, numbers: lines._place(numbers),
    "f": lambda lines, _, numbers: lines._place(numbers),
    "J": lambda lines, count, _: lines._erase_screen(count),
    "K": lambda lines, count, _: lines._erase_line(count),
    "X": lambda lines, count, _: lines._blank(count),
    "P": lambda lines, count, _: lines._delete(count),
    "@": lambda lines, count, _: lines._insert(count),
    "b": lambda lines, count, _: lines._repeat(count),
    "s": lambda lines, *_: lines._escape("7"),
    "u": lambda lines, *_: lines._escape("8"),
}
