"""A terminal's rows, for programs that print plain lines: no wide characters, no colours, no full screen."""

from __future__ import annotations

import re

from memory.formats import Unknown

PIECE = re.compile(r"\x1b\]133;[^\x07]*\x07|\x1b\[\?2004[hl]|[\r\n\b\x07]|[^\x00-\x1f\x7f]+")


class Grid:
    """Rows of text with a cursor; what scrolls away goes to the history."""

    def __init__(self, cols: int, rows: int, limit: int) -> None:
        self.cols, self.height, self.limit = cols, rows, limit
        self.lines: list[str] = [""]
        self.wrapped: set[int] = set()
        self.x = 0
        self.y = 0
        self.bracketed = False

    @property
    def top(self) -> int:
        """The index of the first visible line."""
        return max(0, len(self.lines) - self.height)

    @property
    def history(self) -> int:
        return min(self.top, self.limit)

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            piece = PIECE.match(text, at)
            if piece is None:
                raise Unknown(f"output {text[at : at + 20]!r}")
            self._take(piece[0])
            at = piece.end()

    def _take(self, piece: str) -> None:
        if piece == "\r":
            self.x = 0
        elif piece == "\b":
            self.x = max(0, self.x - 1)
        elif piece == "\n":
            self._down()
        elif piece.startswith("\x1b[?2004"):
            self.bracketed = piece.endswith("h")
        elif piece[0] >= " ":
            self._print(piece)

    def _print(self, text: str) -> None:
        while text:
            if self.x == self.cols:
                self.wrapped.add(self.y)
                self.x = 0
                self._down()
            part, text = text[: self.cols - self.x], text[self.cols - self.x :]
            line = self.lines[self.y].ljust(self.x)
            self.lines[self.y] = line[: self.x] + part + line[self.x + len(part) :]
            self.x += len(part)

    def _down(self) -> None:
        self.y += 1
        if self.y == len(self.lines):
            self.lines.append("")

    def resize(self, cols: int, rows: int) -> None:
        if len(self.lines) > 1 and cols != self.cols and any(len(line) > cols for line in self.lines):
            raise Unknown("a narrower terminal would wrap its lines anew")
        self.cols, self.height = cols, rows

    def captured(self, first: int, behind: int, *, join: bool) -> str:
        """The lines from `first` up to `behind`, each with its newline; `join` makes one of wrapped ones."""
        shown = ""
        for index in range(first, behind):
            line = self.lines[index] if index < len(self.lines) else ""
            shown += line if join and index in self.wrapped else line.rstrip(" ") + "\n"
        return shown
