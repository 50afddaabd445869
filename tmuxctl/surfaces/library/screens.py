"""The screen of a session, as a value to look things up in."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from tmuxctl.results import CursorPosition
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.terminal.panes.captures import Capture
    from tmuxctl.terminal.picture.replay import Cell


class Place(Value):
    """Where a text stands on a screen: its row and the column of its first character, counted from 0, and the text itself."""

    row: int
    col: int
    text: str


class TerminalScreen:
    """What a person would see on one terminal at one moment; it does not change.

    `text` is all rows without blanks at their end, `rows` and `cols` the size in cells, `cursor` where the cursor is, `alt`
    whether a full-screen program draws (the alternate screen), `title` the terminal's title, and `position` the cursor of
    the output behind what is shown (`read(since=...)`).
    """

    def __init__(self, capture: Capture, position: str | None) -> None:
        from tmuxctl.terminal.tmux import screen

        pane = capture.pane
        self._capture = capture
        self.session: str = pane.name
        self.text: str = screen.plain_text(capture.rows)
        self.cols: int = pane.cols
        self.rows: int = pane.rows
        self.cursor = CursorPosition(pane.x, pane.y, pane.cursor_visible)
        self.alt: bool = pane.alternate
        self.title: str = capture.title
        self.position = position

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<screen of {self.session}, {self.cols}x{self.rows}: {ascii(self.text[-60:])}>"

    def __contains__(self, text: str) -> bool:
        return text in self.text

    @property
    def lines(self) -> list[str]:
        """The rows of `text`.

        >>> py.send("print('a'); print('b')").wait_for("b").found
        'b'
        >>> py.screen.lines[-3:]
        ['a', 'b', '>>>']
        """
        return self.text.split("\n")

    def find(self, text: str | re.Pattern[str]) -> Place | None:
        """Where a text, or the first match of a compiled pattern, begins; None if it is not on the screen. A column is a cell:
        a wide character takes two.

        >>> py.send("print('Save', 'Quit')").wait_for("Save Quit").found
        'Save Quit'
        >>> py.screen.find("Save Quit")
        Place(row=1, col=0, text='Save Quit')
        """
        return next(iter(self.find_all(text)), None)

    def find_all(self, text: str | re.Pattern[str]) -> list[Place]:
        """Every place of a text or a compiled pattern, from top to bottom; a match does not go over the end of a row.

        >>> py.send("print('one two one')").wait_for("^one").found
        'one'
        >>> [place.col for place in py.screen.find_all(re.compile("one"))][-2:]
        [0, 8]
        """
        from tmuxctl import widths

        pattern = re.compile(re.escape(text)) if isinstance(text, str) else text
        version = self._capture.pane.tmux
        return [
            Place(row, widths.columns(line[: found.start()], version), found[0])
            for row, line in enumerate(self.lines)
            for found in pattern.finditer(line)
            if found[0]
        ]

    @property
    def ansi(self) -> str:
        """The rows with their colours and attributes, as escape sequences (ECMA-48, SGR).

        >>> py.screen.ansi.splitlines()[-1]
        '>>>'
        """
        from tmuxctl.terminal.tmux import screen

        return screen.styled_text(self._capture.rows)

    @property
    def styles(self) -> list[str]:
        """Which cells have colours or attributes, in words: the row, the first and the last column, from 0, and the style. How
        the program came to draw them so makes no difference.

        >>> sh.send("ls --color=always -d /").wait_for("^/$").found
        '/'
        >>> sh.screen.styles
        ['1: 0-0 bold, blue']
        """
        from tmuxctl.terminal.picture import replay

        told = []
        for row, cells in enumerate(replay.styled_cells(self._capture.rows, self.cols, self._capture.pane.tmux)):
            at = 0
            for style, group in groupby(cells, _describe_style):
                first, at = at, at + sum(cell.width for cell in group)
                if style:
                    told.append(f"{row}: {first}-{at - 1} {style}")
        return told

    def svg(self) -> str:
        """The screen as a picture in SVG.

        >>> py.screen.svg().startswith("<svg")
        True
        """
        from tmuxctl.terminal.picture import render

        capture = self._capture
        return render.render_svg(capture.rows, self.cols, self.rows, self.title, capture.pane.tmux, self.cursor)

    def html(self) -> str:
        """The screen as an HTML page.

        >>> "<html" in py.screen.html()
        True
        """
        from tmuxctl.terminal.picture import render

        return render.render_html(self._capture.rows, self.cols, self.title, self._capture.pane.tmux, self.cursor)


def _describe_style(cell: Cell) -> str:
    """The style of a cell in words, as far as it shows there; empty for none."""
    flags = [name for name in ("underline", "strikethrough", "reverse") if getattr(cell, name)]
    colours = [] if cell.bg == "default" else [f"on {cell.bg}"]
    if cell.text.strip() or cell.reverse:
        flags = [name for name in ("bold", "italic") if getattr(cell, name)] + flags
        colours = ([] if cell.fg == "default" else [cell.fg]) + colours
    return ", ".join(flags + colours)
