"""A stretch of a program's output as the lines a person saw: pure, quick, without a terminal's bottom edge.

Not a screen (tmux has that): carriage returns, backspaces and erasures are carried out, rows the terminal wrapped are one
line again, and what scrolls away stays. Used where output after a point counts: `wait --text`, `read`, answers.

Rows that scrolled away cannot change any more and are kept as text, the newest of them only; or they are given away as
they come, so that output of any length takes the memory of one screen.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import dropwhile
from typing import Any, cast

from tmuxctl import widths

IGNORED = r"[\x00-\x07\x10-\x1a\x1c-\x1f\x7f-\x83\x86-\x8c\x8e-\x9f]"
TOKEN = re.compile(
    rf"(?P<text>[^\x00-\x1f\x7f-\x9f]++){IGNORED}*+"
    r"|\x1b\[(?P<csi>[0-?]*+)(?P<middle>[ -/]*+)(?P<final>[@-~])"
    r"|\x1b[\]PX^_](?:[^\x07\x1b\x9c]++|\x1b(?!\\))*+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b(?P<escape>[ -/]*+[0-OQ-WYZ\\`-~])"
    rf"|{IGNORED}++"
    r"|(?P<control>\n|[\x08\x09\x0b-\x0f\x84\x85\x8d]++\n?+)"
)
"""ECMA-48: a run of text, a control sequence, a string (OSC DCS SOS PM APC), an escape sequence, control characters. The
repetitions are possessive: one that may be given back is remembered step by step, which took gigabytes for a long string."""

UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+|[\]PX^_][^\x07\x9c]*+|[ -/]*+)\Z")
LONGEST_SEQUENCE = 1 << 16
"""Characters of an unfinished sequence that are kept. What follows them is skipped up to the sequence's end."""

ENDS = {"[": re.compile(r"[^ -?]"), **dict.fromkeys("]PX^_", re.compile(r"[\x07\x1b\x9c]"))}
END_OF_ESCAPE = re.compile(r"[^ -/]")
"""What ends a sequence that is too long, by the character behind its ESC. Another ESC breaks off a string so long."""

LONGEST_PARAMETERS = 64
"""Characters: tmux takes 63 bytes of parameters, and ignores a sequence that has more (input.c)."""

CELL_LENGTH = 32
"""Characters of one cell, with what combines; more are dropped. Text made for streams has 30 at most (UAX #15)."""

GRAPHICS = dict(zip(range(0x60, 0x7F), "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·", strict=True))
BEYOND = re.compile(r"[^\x20-\u02ff]")
NARROW = "\x20-\x7e\xa0-\u02ff\u0390-\u03a1\u03a3-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u2190-\u2319\u2500-\u25fc\ufffd"
"""What takes one column and combines with nothing, as far as it is worth knowing at once."""
WIDE = re.compile(f"[^{NARROW}]")
NARROW_OR_NOT = re.compile(f"[{NARROW}]+|[^{NARROW}]+")

JOINED = widths.FLAG_LETTERS | widths.SKIN_TONES | {widths.JOINER}
"""What stands behind, or in front of, characters in one cell though it has a width of its own."""

FEED = 1 << 18
"""Bytes decoded at once: a character outside Latin-1 takes up to four times as much decoded."""

SCROLLED = 256
"""Rows that scroll away before they are made text."""

BLOCK = 256
"""Rows that are counted at once."""

Row = str | list[str]
"""A text while each of its characters is a cell; else a list of cells, with an empty one behind each wide character."""


OF_SCREEN = ("_rows", "_wrapped", "_touched", "_done", "_done_wrapped", "_dropped", "_written", "_top", "_x", "_y")
"""What the lines know of one of the two screens: kept of the normal one while the other shows."""


class RowJoiner:
    """Puts a text together from rows, one after the other, and gives it to `sink` as it grows: wrapped rows joined,
    trailing blanks and untouched rows before the first left out, and no newline at the end."""

    def __init__(self, sink: Callable[[str], object]) -> None:
        self._sink = sink
        self._begun = False
        self._newlines = 0
        self._blanks: list[str] = []

    def add(self, row: str | None, *, joined: bool) -> None:
        """The next row; None is one that was never written to. `joined`: it goes on with the line before."""
        if row is None:
            if not self._begun:
                return
            row = ""
        if self._begun and not joined:
            self._newlines += 1
            self._blanks.clear()
        self._begun = True
        text = row.rstrip()
        if text:
            self._give_held()
            self._sink(text)
        if len(text) < len(row):
            blanks = row[len(text) :]
            # of rows of blanks without end only one is kept
            self._blanks.append(self._blanks[-1] if self._blanks and self._blanks[-1] == blanks else blanks)

    def forget_blank_rows(self) -> None:
        """Leave out empty rows that came last."""
        self._newlines = 0
        self._blanks.clear()

    def _give_held(self) -> None:
        if self._newlines:
            self._sink("\n" * self._newlines)
            self._newlines = 0
        for blanks in self._blanks:
            self._sink(blanks)
        self._blanks.clear()


class Lines:
    """Feeds on raw output and gives it back as text. `x`, `y` are where the terminal's cursor stood at its beginning; `tmux`
    is the version that joins its characters, None if unknown.

    Of the rows that scrolled away the newest `keep` are kept. With a `sink` none are, but those of the alternate screen:
    their text goes there as they leave, and what is left by `finish`.
    """

    def __init__(
        self,
        cols: int,
        rows: int,
        *,
        x: int = 0,
        y: int = 0,
        keep: int = 20_000,
        sink: Callable[[str], object] | None = None,
        tmux: widths.Version = None,
    ) -> None:
        self._rules = widths.rules(tmux)
        self.cols, self.height, self._keep = max(2, cols), max(2, rows), keep
        self._rows: list[Row] = [""] * (y + 1)
        self._wrapped = [False] * (y + 1)
        self._touched = [False] * (y + 1)
        self._done: list[str | None] = []
        """Rows that scrolled away; None was never written to."""
        self._done_wrapped: list[bool] = []
        self._top, self._x, self._y = 0, x, y
        self._mark = (x, y)
        self._outer: dict[str, Any] | None = None
        self._dropped = self._written = self._graphics = False
        self._last = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._skips: re.Pattern[str] | None = None
        self._joiner = RowJoiner(sink) if sink else None
        self._joined = False

    @property
    def alternate(self) -> bool:
        """True while the output is inside the alternate screen it switched to."""
        return self._outer is not None

    @property
    def column(self) -> int:
        """Where the cursor stands in its row, from 0 on."""
        return self._x

    def touched(self) -> set[int]:
        """The rows of the present window (0 is its first) that were written to."""
        return {row for row, touched in enumerate(self._touched[self._top :]) if touched}

    def text(self) -> str:
        """The lines written so far, wrapped rows joined, trailing blanks and untouched rows left out."""
        return self._text(0)

    def newest(self, count: int) -> tuple[str, bool]:
        """The last lines of the text, with at least `count` characters; and whether they are all that were ever written."""
        first = len(self._done) + len(self._rows)
        if first * (self.cols + 1) < count:
            first = 0
        while first and (count > 0 or self._goes_on(first - 1)):
            size = self._count_block(first) if count > 0 else 0
            if size and size < count:
                first -= BLOCK
                count -= size
                continue
            first -= 1
            count -= len(self._row_text(first) or "") + 1
        return self._text(first), not (first or self._dropped)

    def left(self, row: int = 0) -> str:
        """All that stands before the cursor, from a row on (counted from the first one that is kept), rows joined."""
        rows = [self._row_text(at) or "" for at in range(row, len(self._done) + self._y)]
        return "".join([*rows, *self._rows[self._y][: self._x]])

    def unfinished_line(self, most: int) -> bytes | None:
        """The line, of `most` characters, at whose end the cursor stands, as output would have written it, with what is cut off
        of a character or sequence; None where more text is not simply added to it."""
        row = self._rows[self._y]
        if self.alternate or self._graphics or self._skips or self._y < len(self._rows) - 1 or len(row) > self._x:
            return None
        first = at = len(self._done) + self._y
        while first and self._goes_on(first - 1):
            first -= 1
        if (at - first) * self.cols > most:
            return None
        begun = "".join(self._row_text(before) or "" for before in range(first, at))
        text = begun + "".join(row) + " " * (self._x - len(row)) + self._rest
        pending, _ = self._decode.__self__.getstate()  # type: ignore[attr-defined]
        return text.encode("utf-8", "surrogatepass") + bytes(pending)

    def finish(self) -> None:
        """Give the sink what has not left yet: in the alternate screen what was before it, then what it shows."""
        inner: list[tuple[str | None, bool]] = []
        if self._outer is not None:
            count = len(self._done) + len(self._rows)
            inner = [(self._row_text(at), at > 0 and self._goes_on(at - 1)) for at in range(count)]
            self._switch_screen(False)
        self._scroll_off(len(self._rows))
        if self._joiner:
            if inner:
                self._joiner.forget_blank_rows()
            for text, joined in dropwhile(lambda row: row[0] is None, inner):
                self._joiner.add(text, joined=joined)

    def go_on(self, before: Lines) -> Lines:
        """Take over a character or sequence that was cut at the end of other lines' output."""
        self._decode, self._rest, self._skips = before._decode, before._rest, before._skips
        return self

    def _count_block(self, behind: int) -> int:
        """The characters of the block of rows before this one, ends of rows among them; 0 if not all of it scrolled away."""
        block = self._done[behind - BLOCK : behind] if BLOCK <= behind <= len(self._done) else []
        return 0 if None in block else sum(map(len, cast("list[str]", block))) + len(block)

    def _text(self, first: int) -> str:
        parts: list[str] = []
        joiner = RowJoiner(parts.append)
        last = len(self._done)
        # what stands before the first row that was written to is left out: the cursor may have been far down
        while first < last and self._done[first] is None:
            first += 1
        if first >= last and True in self._touched[first - last :]:
            first = last + self._touched.index(True, first - last)
        if None not in self._done[first:] and not any(self._done_wrapped[max(0, first - 1) :]):
            # lines of one row each, up to the last that is not blank
            while last > first and not cast("str", self._done[last - 1]).strip():
                last -= 1
            if last > first:
                joiner.add("\n".join(map(str.rstrip, cast("list[str]", self._done[first:last]))), joined=False)
                first = last
        for at in range(first, len(self._done) + len(self._rows)):
            joiner.add(self._row_text(at), joined=at > 0 and self._goes_on(at - 1))
        return "".join(parts)

    def _row_text(self, at: int) -> str | None:
        """A row's text, counted from the first one that is kept; None if it was never written to."""
        done = len(self._done)
        if at < done:
            return self._done[at]
        return "".join(self._rows[at - done]) if self._touched[at - done] else None

    def _goes_on(self, at: int) -> bool:
        """Whether a row's line goes on in the next one."""
        done = len(self._done)
        return self._done_wrapped[at] if at < done else self._wrapped[at - done]

    def feed(self, data: bytes) -> None:
        """Go on with more output; a sequence or character may be cut anywhere."""
        for start in range(0, len(data), FEED):
            self.write(self._decode(data[start : start + FEED]))

    def write(self, text: str) -> None:
        """The same with output that is decoded already."""
        text = self._rest + (self._skip_sequence(text) if self._skips else text)
        at = 0
        while at < len(text):
            found = TOKEN.match(text, at)
            if not found:
                # an ESC is cut off here, or broken off by another: a terminal drops the latter's beginning too
                if UNFINISHED.match(text, at):
                    break
                at += 1
                continue
            at = found.end()
            kind = found.lastgroup
            if kind == "text":
                self._write(found["text"])
            elif kind == "control":
                for control in found["control"]:
                    self._do_control(control)
                if found["control"][-1] == "\n":
                    at = self._write_plain_lines(text, at)
            elif kind == "final":
                if not found["middle"] and found.end("csi") - found.start("csi") <= LONGEST_PARAMETERS:
                    self._do_sequence(found["csi"], found["final"])
            elif kind == "escape":
                self._do_escape(found["escape"])
        self._rest = text[at:]
        if len(self._rest) >= LONGEST_SEQUENCE:
            self._skips, self._rest = ENDS.get(self._rest[1], END_OF_ESCAPE), ""
        if self._top:
            self._scroll_off(self._top)

    def _skip_sequence(self, text: str) -> str:
        """What comes behind the end of the sequence that is skipped."""
        assert self._skips is not None
        found = self._skips.search(text)
        if not found:
            return ""
        self._skips = None
        return text[found.start() if found[0] == "\x1b" else found.end() :]

    def _write_plain_lines(self, text: str, at: int) -> int:
        """Write lines that need no more than a row each, at once where nothing stands yet; where to go on."""
        if self._x or self._graphics or self._y != len(self._rows) - 1 or self._rows[-1]:
            return at
        found = _compile_plain_lines(self.cols).match(text, at)
        if not found:
            return at
        rows = found[0].replace("\r", "").split("\n")
        self._last = found[0].rstrip("\r\n")[-1:] or self._last
        self._rows[-1:] = rows
        self._touched[-1:] = [True] * (len(rows) - 1) + [False]
        self._wrapped += [False] * (len(rows) - 1)
        self._written = True
        self._y = len(self._rows) - 1
        self._top = max(self._top, self._y - self.height + 1)
        return found.end()

    def _write(self, text: str) -> None:
        if self._graphics:
            text = text.translate(GRAPHICS)
        self._last = text[-1]
        if not WIDE.search(text):
            self._write_narrow(text, joined=not text.isascii() and BEYOND.search(text) is not None)
            return
        for part in NARROW_OR_NOT.findall(text):
            if not WIDE.match(part):
                self._write_narrow(part, joined=True)
            elif JOINED.isdisjoint(part) and {*map(self._rules.width, part)} == {2}:
                self._write_wide(part)
            else:
                for character in part:
                    self._write_cell(character)

    def _write_narrow(self, text: str, *, joined: bool = False) -> None:
        """Write characters of one column each."""
        if len(text) <= self.cols - self._x:
            self._put_piece(text)
            return
        # a shell finds a line's end with blanks that run over the edge (zsh PROMPT_SP, fish): no long line
        size = len(text) if joined else len(text.rstrip())
        at = 0
        while at < len(text):
            if self._x >= self.cols:
                self._wrap_row(joined=at < size)
            piece = text[at : at + self.cols - self._x]
            self._put_piece(piece)
            at += len(piece)

    def _put_piece(self, piece: str) -> None:
        row, x = self._touch_row(), self._x
        self._x = end = x + len(piece)
        if isinstance(row, list):
            row.extend(" " * (x - len(row)))
            row[x:end] = piece
        elif x >= len(row):
            self._rows[self._y] = row.ljust(x) + piece
        else:
            self._rows[self._y] = row[:x] + piece + row[end:]

    def _write_wide(self, text: str) -> None:
        """Write characters of two columns each."""
        while text:
            room = (self.cols - self._x) // 2
            if not room:
                self._wrap_row()
                continue
            cells = [cell for character in text[:room] for cell in (character, "")]
            row, x = self._row_cells(), self._x
            row.extend(" " * (x - len(row)))
            self._x = x + len(cells)
            row[x : self._x] = cells
            text = text[room:]

    def _write_cell(self, character: str) -> None:
        """Write a character of any width, or add it to the cell before."""
        width = self._rules.width(character)
        if self._combine_with_cell(character) or width <= 0:
            return
        if width == 1:
            self._write_narrow(character, joined=True)
        else:
            self._write_wide(character)

    def _combine_with_cell(self, character: str) -> bool:
        """Add a character to the cell before the cursor, if it belongs there. Where that cell is full tmux up to 3.3 draws
        nothing; the text has it all the same."""
        row = self._row_cells()
        if not row or not 0 < self._x <= len(row):
            return False
        at = self._x - 1
        at = at if row[at] or not at else at - 1
        columns = self._rules.joined(row[at], self._x - at, character)
        if columns is None and not self._rules.leaves_out(row[at], character):
            return False
        if len(row[at]) < CELL_LENGTH:
            row[at] += character
        if columns == 2 and self._x - at == 1 and self._x < self.cols:
            row[self._x : self._x + 1] = [""]
            self._x += 1
        return True

    def _touch_row(self) -> Row:
        self._touched[self._y] = self._written = True
        return self._rows[self._y]

    def _row_cells(self) -> list[str]:
        """The cursor's row as cells."""
        row = self._touch_row()
        if isinstance(row, str):
            self._rows[self._y] = row = list(row)
        return row

    def _wrap_row(self, *, joined: bool = True) -> None:
        self._wrapped[self._y] = joined
        self._x = 0
        self._move_down()

    def _move_down(self) -> None:
        self._y += 1
        if self._y == len(self._rows):
            self._add_row()
        if self._y - self._top >= self.height:
            self._top = self._y - self.height + 1
            if self._top > SCROLLED:
                self._scroll_off(self._top)

    def _move_to_row(self, y: int) -> None:
        self._y = min(max(y, self._top), self._top + self.height - 1)
        while self._y >= len(self._rows):
            self._add_row()

    def _add_row(self) -> None:
        self._rows.append("")
        self._wrapped.append(False)
        self._touched.append(False)

    def _scroll_off(self, count: int) -> None:
        """Make text of the first `count` rows, above which the cursor cannot go any more."""
        for row, wrapped, touched in zip(self._rows[:count], self._wrapped, self._touched, strict=False):
            text = "".join(row) if touched else None
            if self._joiner and self._outer is None:
                self._joiner.add(text, joined=self._joined)
                self._joined = wrapped
            else:
                self._done.append(text)
                self._done_wrapped.append(wrapped)
        del self._rows[:count], self._wrapped[:count], self._touched[:count]
        self._top -= count
        self._y -= count
        over = len(self._done) + len(self._rows) - self._keep
        if over > self._keep // 4:
            self._dropped = True
            del self._done[:over], self._done_wrapped[:over]

    def _do_control(self, control: str) -> None:
        if control == "\r":
            self._x = 0
        elif control in "\n\v\f\x84\x85":
            if control == "\x85":
                self._x = 0
            self._touch_row()
            self._move_down()
        elif control == "\b":
            self._x = max(0, min(self._x, self.cols) - 1)
        elif control == "\t":
            self._x = min(self.cols - 1, (self._x // 8 + 1) * 8)
        elif control in "\x0e\x0f":
            self._graphics = control == "\x0e"
        elif control == "\x8d":
            self._move_to_row(self._y - 1)

    def _do_escape(self, escape: str) -> None:
        if escape == "7":
            self._mark = (self._x, self._y - self._top)
        elif escape == "8":
            self._x = self._mark[0]
            self._move_to_row(self._top + self._mark[1])
        elif escape == "M":
            self._move_to_row(self._y - 1)
        elif escape in ("D", "E"):
            self._do_control("\x85" if escape == "E" else "\n")
        elif escape in ("(0", "(B"):
            self._graphics = escape == "(0"
        elif escape == "c":
            self._clear_window()

    def _do_sequence(self, csi: str, final: str) -> None:
        if csi.startswith("?"):
            if final in "hl" and {"47", "1047", "1049"} & set(csi[1:].split(";")):
                self._switch_screen(final == "h")
            return
        if csi[:1] in ("<", "=", ">") or ":" in csi:
            return
        numbers = [int(part) if part.isdigit() else 0 for part in csi.split(";")]
        act = _SEQUENCES.get(final)
        if act:
            act(self, numbers[0], numbers)

    def _move_cursor(self, final: str, count: int) -> None:
        step = min(max(1, count), 10_000)
        if final in "AF":
            self._move_to_row(self._y - step)
        elif final in "BEe":
            self._move_to_row(self._y + step)
        elif final in "Ca":
            self._x = min(self.cols - 1, self._x + step)
        elif final == "D":
            self._x = max(0, min(self._x, self.cols - 1) - step)
        if final in "EF":
            self._x = 0

    def _move_to_column(self, count: int) -> None:
        self._x = min(self.cols, max(1, count)) - 1

    def _move_to(self, numbers: list[int]) -> None:
        self._move_to_row(self._top + max(1, numbers[0]) - 1)
        self._move_to_column(numbers[1] if len(numbers) > 1 else 1)

    def _erase_line(self, how: int) -> None:
        row = self._touch_row()
        if how == 0:
            self._rows[self._y] = row[: self._x]
            self._wrapped[self._y] = False
        elif how == 1:
            self._overwrite_cells(0, min(len(row), self._x + 1))
        else:
            self._rows[self._y] = ""
            self._wrapped[self._y] = False

    def _overwrite_cells(self, start: int, end: int) -> None:
        """Put blanks on cells of the cursor's row."""
        row, blanks = self._touch_row(), " " * (end - start)
        if isinstance(row, list):
            row[start:end] = blanks
        else:
            self._rows[self._y] = row[:start] + blanks + row[end:]

    def _erase_screen(self, how: int) -> None:
        if how == 2 or (how == 0 and self._y == self._top and self._x == 0 and self._written):
            self._clear_window()
            return
        if how == 0:
            self._erase_line(0)
            for y in range(self._y + 1, len(self._rows)):
                self._rows[y] = ""
                self._wrapped[y] = False

    def _clear_window(self) -> None:
        """A cleared window: what stood in it stays above as lines already seen."""
        row = self._y - self._top
        self._top = len(self._rows)
        self._move_to_row(self._top + row)
        if self._top > SCROLLED:
            self._scroll_off(self._top)

    def _insert_blanks(self, count: int) -> None:
        row, x = self._touch_row(), self._x
        if x < len(row):
            blanks = " " * min(self.cols, max(1, count))
            if isinstance(row, list):
                row[x:x] = blanks
                del row[self.cols :]
            else:
                self._rows[self._y] = (row[:x] + blanks + row[x:])[: self.cols]

    def _delete_cells(self, count: int) -> None:
        row, behind = self._touch_row(), self._x + max(1, count)
        if isinstance(row, list):
            del row[self._x : behind]
        else:
            self._rows[self._y] = row[: self._x] + row[behind:]

    def _blank_cells(self, count: int) -> None:
        end = min(len(self._touch_row()), self._x + max(1, count))
        if end > self._x:
            self._overwrite_cells(self._x, end)

    def _repeat_last(self, count: int) -> None:
        # tmux repeats to the end of the row at most
        if self._last and self._x < self.cols:
            self._write(self._last * min(max(1, count), self.cols - self._x))

    def _switch_screen(self, on: bool) -> None:
        if on and self._outer is None:
            self._outer, row = {name: getattr(self, name) for name in OF_SCREEN}, self._y - self._top
            self._rows, self._wrapped, self._touched, self._done, self._done_wrapped = [""], [False], [False], [], []
            self._dropped, self._written, self._top = False, False, 0
            self._move_to_row(row)
        elif not on and self._outer is not None:
            vars(self).update(self._outer)
            self._outer = None


@lru_cache(16)
def _compile_plain_lines(cols: int) -> re.Pattern[str]:
    """Lines of nothing but narrow characters, none longer than a row."""
    return re.compile(rf"(?:\n|[{NARROW}]{{0,{cols}}}+\r++\n)++")


def _make_mover(final: str) -> Callable[[Lines, int, list[int]], None]:
    return lambda lines, count, _: lines._move_cursor(final, count)


_SEQUENCES: dict[str, Callable[[Lines, int, list[int]], None]] = {
    **{final: _make_mover(final) for final in "ABCDEFae"},
    "G": lambda lines, count, _: lines._move_to_column(count),
    "`": lambda lines, count, _: lines._move_to_column(count),
    "d": lambda lines, count, _: lines._move_to_row(lines._top + max(1, count) - 1),
    "H": lambda lines, _, numbers: lines._move_to(numbers),
    "f": lambda lines, _, numbers: lines._move_to(numbers),
    "J": lambda lines, count, _: lines._erase_screen(count),
    "K": lambda lines, count, _: lines._erase_line(count),
    "X": lambda lines, count, _: lines._blank_cells(count),
    "P": lambda lines, count, _: lines._delete_cells(count),
    "@": lambda lines, count, _: lines._insert_blanks(count),
    "b": lambda lines, count, _: lines._repeat_last(count),
    "s": lambda lines, *_: lines._do_escape("7"),
    "u": lambda lines, *_: lines._do_escape("8"),
}
