"""A pyte screen that draws and moves its cursor as tmux does.

The measure is tmux 3.3a: every rule here was compared with its grid (tests/terminal/streams); input.c and
screen-write.c of tmux describe them. pyte gives the cell, the cursor, the attributes, the modes and the tab stops.
"""

from __future__ import annotations

import re
from itertools import islice

from pyte import charsets
from pyte.modes import DECAWM, DECOM, DECTCEM, IRM
from pyte.screens import Char

from tmuxctl.terminal.picture.page import TerminalPage
from tmuxctl.terminal.picture.rows import BLANK, PADDING
from tmuxctl.terminal.picture.sgr import UNDERLINES
from tmuxctl.terminal.tmux.screen import LINE_DRAWING
from tmuxctl.widths import JOINER, REPLAYED, rules

RULES = rules(REPLAYED)
STYLES_KEPT = 512

DIM, HIDDEN = 1, 2
OWN_CODES = {2: (DIM, 0), 8: (HIDDEN, 0), 22: (0, DIM), 28: (0, HIDDEN)}
"""What of these bits a code of SGR (ECMA-48, 8.3.117) sets, and what it clears."""

_PLAIN_OR_NOT = re.compile(r"[ -~]+|[^ -~]+")


class Glyphs(dict[str, Char]):
    """Cells by character, all of one style."""

    def __init__(self, style: Char) -> None:
        super().__init__()
        self.style = style

    def __missing__(self, character: str) -> Char:
        self[character] = cell = self.style._replace(data=character)
        return cell


class Grid(TerminalPage):
    """A page that text and control functions can be written to. `last` is the character that REP repeats, if any."""

    def __init__(self, columns: int, lines: int, limit: int) -> None:
        self.glyphs: dict[Char, Glyphs] = {}
        self.joining = False
        self.last = ""
        super().__init__(columns, lines, limit)

    def reset(self) -> None:
        """RIS: everything but the alternate screen and the history."""
        super().reset()
        self.g1_charset = charsets.LAT1_MAP
        self.top, self.bottom = 0, self.lines - 1
        self.save_cursor()
        self.erase_in_display(2)

    # --- drawing

    def select_graphic_rendition(self, *attrs: int, **kwargs: object) -> None:
        """SGR, with what pyte's cells have no place for: `underscore` is the form of underline, `blink` holds DIM and HIDDEN."""
        rest: list[int] = []
        codes = iter(attrs)
        for code in codes:
            if code in (38, 48):
                kind = next(codes, 0)
                rest += [code, kind, *islice(codes, 3 if kind == 2 else 1)]
                continue
            if code in OWN_CODES or code > UNDERLINES:
                if rest:
                    super().select_graphic_rendition(*rest)
                    rest = []
                self._set_own(code)
            if code not in OWN_CODES or code == 22:
                rest += [code] if code < UNDERLINES else []
        if rest or not attrs:
            super().select_graphic_rendition(*rest)

    def _set_own(self, code: int) -> None:
        style = self.cursor.attrs
        if code > UNDERLINES:
            self.cursor.attrs = style._replace(underscore=code - UNDERLINES)  # type: ignore[arg-type]  # a number there
        else:
            set_bits, cleared = OWN_CODES[code]
            self.cursor.attrs = style._replace(blink=int(style.blink) & ~cleared | set_bits)  # type: ignore[arg-type]

    def draw(self, data: str) -> None:
        """Write printable text at the cursor."""
        drawing = (self.g1_charset if self.charset else self.g0_charset) is charsets.VT100_MAP
        if drawing or IRM in self.mode or DECAWM not in self.mode:
            for character in data:
                self._write_character(character.translate(LINE_DRAWING) if drawing else character)
        elif data.isascii():
            self._write_ascii(data)
        else:
            for run in _PLAIN_OR_NOT.findall(data):
                if run.isascii():
                    self._write_ascii(run)
                else:
                    self._write_unicode(run)

    def _write_ascii(self, text: str) -> None:
        """Write characters of one column each."""
        glyphs = self._find_glyphs()
        cells = [glyphs[character] for character in text]
        cursor, written = self.cursor, 0
        while written < len(cells):
            x = cursor.x
            if x >= self.columns:
                self._wrap_line()
                x = 0
            part = cells[written : written + self.columns - x]
            self.rows[cursor.y].write(x, part)
            cursor.x = x + len(part)
            written += len(part)

    def _find_glyphs(self) -> Glyphs:
        style = self.cursor.attrs
        found = self.glyphs.get(style)
        if found is None:
            if len(self.glyphs) >= STYLES_KEPT:
                self.glyphs.clear()
            self.glyphs[style] = found = Glyphs(style)
        return found

    def _write_unicode(self, text: str) -> None:
        """Write characters that are not ASCII: at once if all are of one width and fit, else one by one."""
        widths = {*map(RULES.width, text)}
        cursor = self.cursor
        row = self.rows[cursor.y]
        if not self.joining and widths == {1} and not row.wide and cursor.x + len(text) <= self.columns:
            self._write_ascii(text)
        elif not self.joining and widths == {2} and cursor.x + 2 * len(text) <= self.columns:
            glyphs = self._find_glyphs()
            row.overwrite(cursor.x, 2 * len(text))
            row.wide = True
            row.place(cursor.x, [cell for character in text for cell in (glyphs[character], PADDING)])
            cursor.x += 2 * len(text)
        else:
            for character in text:
                self._write_character(character)

    def _write_character(self, character: str) -> None:
        """Write one character of any width, or add it to the cell on the left."""
        width = RULES.width(character)
        if width < 0:
            return
        if character == JOINER:
            self.joining = True
            return
        if self.joining or not width:
            if self.joining:
                self._combine(JOINER)
            self.joining = False
            self._combine(character)
            return
        x, columns, wrapping = self.cursor.x, self.columns, DECAWM in self.mode
        if not wrapping and width > 1 and (width > columns or columns != x > columns - width):
            return
        if IRM in self.mode:
            self.rows[self.cursor.y].insert(x, width, columns, BLANK)
        if wrapping and x > columns - width:
            self._wrap_line()
            x = 0
        if x > columns - width:
            return
        row = self.rows[self.cursor.y]
        if row.wide or width > 1:
            row.overwrite(x, width)
        if width > 1:
            row.wide = True
            row.set(x + 1, PADDING)
        cell = self._find_glyphs()[character]
        # where nothing would change tmux writes nothing, and the row counts as not used there
        if IRM in self.mode or cell != BLANK or not row.untouched(x, columns):
            row.set(x, cell)
        self.cursor.x = min(x + width, columns if wrapping else columns - 1)

    def _combine(self, character: str) -> None:
        row = self.rows[self.cursor.y]
        x = self.cursor.x - 1
        while x >= 0 and not row.get(x).data:
            x -= 1
        if x >= 0:
            cell = row.get(x)
            if len((cell.data + character).encode()) <= RULES.cell_bytes:
                row.set(x, cell._replace(data=cell.data + character))

    def _wrap_line(self) -> None:
        self.rows[self.cursor.y].wrapped = True
        self._line_down(BLANK)
        self.cursor.x = 0

    def repeat(self, count: int) -> None:
        """REP: write the last character again, at most to the end of the row."""
        self.draw(self.last * min(count, self.columns - self.cursor.x))

    def alignment_display(self) -> None:
        """DECALN: fill the screen with E, reset the margins, cursor home."""
        for row in self.rows:
            for x in range(self.columns):
                row.set(x, Char("E"))
        self.top, self.bottom = 0, self.lines - 1
        self.cursor.x = self.cursor.y = 0

    # --- cursor, margins, tabs

    def cursor_up(self, count: int | None = None) -> None:
        limit = 0 if self.cursor.y < self.top else self.top
        self.cursor.y = max(self.cursor.y - (count or 1), limit)
        self._leave_margin()

    def cursor_down(self, count: int | None = None) -> None:
        limit = self.lines - 1 if self.cursor.y > self.bottom else self.bottom
        self.cursor.y = min(self.cursor.y + (count or 1), limit)
        self._leave_margin()

    def _leave_margin(self) -> None:
        if self.cursor.x == self.columns:
            self.cursor.x -= 1

    def cursor_up1(self, count: int | None = None) -> None:
        self.cursor.x = 0
        self.cursor_up(count)

    def cursor_down1(self, count: int | None = None) -> None:
        self.cursor.x = 0
        self.cursor_down(count)

    def cursor_forward(self, count: int | None = None) -> None:
        self.cursor.x = min(self.cursor.x + (count or 1), self.columns - 1)

    def cursor_back(self, count: int | None = None) -> None:
        self.cursor.x = max(self.cursor.x - (count or 1), 0)

    def backspace(self) -> None:
        """BS: left, and from the first column back to the row that wrapped into this one."""
        if self.cursor.x:
            self.cursor.x -= 1
        elif self.cursor.y and self.rows[self.cursor.y - 1].wrapped:
            self.cursor.y -= 1
            self.cursor.x = self.columns - 1

    def cursor_position(self, line: int | None = None, column: int | None = None) -> None:
        self.cursor_to_column(column)
        self.cursor_to_line(line)

    def cursor_to_column(self, column: int | None = None) -> None:
        self.cursor.x = min((column or 1) - 1, self.columns - 1)

    def cursor_to_line(self, line: int | None = None) -> None:
        y = (line or 1) - 1
        if DECOM in self.mode:
            y = self.bottom if y > self.bottom - self.top else y + self.top
        self.cursor.y = min(y, self.lines - 1)

    def set_margins(self, top: int | None = None, bottom: int | None = None) -> None:
        first = min((top or 1) - 1, self.lines - 1)
        last = min((bottom or self.lines) - 1, self.lines - 1)
        if first < last:
            self.top, self.bottom = first, last
            self.cursor.x = self.cursor.y = 0

    def tab(self) -> None:
        while self.cursor.x < self.columns - 1:
            self.cursor.x += 1
            if self.cursor.x in self.tabstops:
                break

    def back_tab(self, count: int) -> None:
        """CBT: back to the tab stop before the cursor, `count` times."""
        x = min(self.cursor.x, self.columns - 1)
        for _ in range(min(count, x)):
            x = max((stop for stop in self.tabstops if stop < x), default=0)
        self.cursor.x = x

    def set_tab_stop(self) -> None:
        if self.cursor.x < self.columns:
            super().set_tab_stop()

    def save_cursor(self) -> None:
        drawing = (self.charset, self.g0_charset, self.g1_charset)
        self.saved_cursor = (self.cursor.x, self.cursor.y, self.cursor.attrs, DECOM in self.mode, drawing)

    def restore_cursor(self) -> None:
        x, y, self.cursor.attrs, origin, drawing = self.saved_cursor
        self.charset, self.g0_charset, self.g1_charset = drawing
        self._switch_mode(DECOM, origin)
        self.cursor.x, self.cursor.y = min(x, self.columns - 1), min(y, self.lines - 1)

    # --- modes

    def set_mode(self, *modes: int, **kwargs: object) -> None:
        self._set_modes(True, bool(kwargs.get("private")), modes)

    def reset_mode(self, *modes: int, **kwargs: object) -> None:
        self._set_modes(False, bool(kwargs.get("private")), modes)

    def _set_modes(self, on: bool, private: bool, modes: tuple[int, ...]) -> None:
        for mode in modes:
            # pyte keeps private modes beside the others, shifted out of their way
            code = mode << 5
            if not private:
                if mode == IRM:
                    self._switch_mode(IRM, on)
            elif code in (DECAWM, DECOM):
                self._switch_mode(code, on)
                if code == DECOM:
                    self.cursor_position()
            elif code == DECTCEM:
                self.cursor.hidden = not on
            elif mode == 3:
                self.cursor_position()
                self.erase_in_display(2)
            elif mode in (47, 1047, 1049):
                (self.alternate_on if on else self.alternate_off)(mode == 1049)

    def _switch_mode(self, code: int, on: bool) -> None:
        if on:
            self.mode.add(code)
        else:
            self.mode.discard(code)
