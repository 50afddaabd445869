"""Much output without drawing it: what surely does not hold the text that is waited for is only kept, and little of it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.reading.text.echo import typed_lines
from tmuxctl.reading.text.literals import required_texts, stays_in_line
from tmuxctl.reading.text.raw_output import text_of

if TYPE_CHECKING:
    from tmuxctl.control.waiting.searching import Search
    from tmuxctl.reading.text.lines import Lines

CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes within a character of UTF-8."""


class TakenOutput(NamedTuple):
    """Output as it came, with the characters of text in it behind its first end of a line."""

    data: bytes
    characters: int


class Skimmer:
    """Takes output in which no match can be, as long as it only adds to the lines that were searched.

    What it says is sure in one direction: what it does not take is drawn and searched.
    """

    def __init__(self, search: Search, window: int) -> None:
        """`window` is how many characters of the newest output a match may reach back into."""
        self.search, self.window = search, window
        pattern = search.pattern.removeprefix("(?i)")
        self._folds = pattern != search.pattern
        needs = [[text.encode() for text in texts] for texts in required_texts(pattern)]
        if self._folds:
            needs = [[text.lower() for text in texts] for texts in needs if all(text.isascii() for text in texts)]
        self._required = needs
        self._in_line = stays_in_line(pattern)
        self._absent: list[list[bytes]] = []
        """What of that is not in the window."""
        self._line: bytes | None = None
        """The line that is not ended yet; None where nothing can be taken."""
        self._cols = 0
        self._typed: list[bytes] = []
        self._searches = False
        self._parts: deque[TakenOutput] = deque()
        self._kept, self._cut = 0, False

    def begin(self, lines: Lines, searched: str, typed: bytes | None) -> None:
        """Go on behind what was drawn and searched without a match. `searched` is the newest of that, the echo not cut out;
        `typed` is what is cut out of it, None if other text was searched, too (a screen)."""
        self._line = None
        if lines.cols * lines.height > self.window or not (self._required or self._in_line):
            return
        self._absent = self._required
        window = searched.encode("utf-8", "surrogatepass") + b"\n"
        self._typed = [bare.encode() for bare in typed_lines(typed or b"")]
        # what is cut out of a line that ends with what was typed is not any more once others have left the window
        fixed = self._in_line and typed is not None and not self._shows_typed(window)
        self._absent = self._required if fixed else self._find_absent(window)
        if self._required and not self._absent:
            return
        line = lines.unfinished_line(self.window)
        # empty lines at the end count only once something stands behind them: nothing is taken that might match one
        self._line = line if line is None or self._required else b"\r\n" + line
        self._cols, self._searches = lines.cols, fixed

    def take(self, data: bytes) -> bool:
        """Keep this output if the pattern surely matches nowhere in it; False if it has to be drawn."""
        if self._line is None or len(self._line) > self.window:
            return False
        whole = self._line + data
        text = text_of(whole, self._cols)
        if text is None or self._may_match(text, whole):
            self._line = None
            return False
        first = data.find(b"\n") + 1
        self._parts.append(TakenOutput(data, max(0, _count_characters(text) - len(self._line) - first) if first else 0))
        self._kept += self._parts[-1].characters
        self._line = whole[whole.rfind(b"\n") + 1 :]
        while len(self._parts) > 1 and self._kept - self._parts[0].characters >= self.window:
            self._kept -= self._parts.popleft().characters
            self._cut = True
        return True

    def _may_match(self, text: bytes, whole: bytes) -> bool:
        if absent := self._find_absent(text):
            # a match may begin in the lines before where it is not known to stay in one
            self._absent = self._required if self._searches else absent
            return False
        return not self._searches or self._matches(text, whole)

    def _find_absent(self, text: bytes) -> list[list[bytes]]:
        """What every match needs and is neither here nor, where that counts, in the window."""
        if self._folds:
            if not text.isascii():
                return []
            text = text.lower()
        # a tab shows as blanks
        parts = (lambda needed: max(needed.split(b" "), key=len)) if b"\t" in text else bytes
        return [texts for texts in self._absent if not any(parts(needed) in text for needed in texts)]

    def _matches(self, text: bytes, whole: bytes) -> bool:
        """Search lines that are drawn as they came; True, too, of others, and where the search might take long."""
        as_it_came = text.isascii() and b"\x1b" not in whole and b"\t" not in text and b" \r\n" not in text
        line = self._line or b""
        # where the part before ends with blanks beyond the edge, a line may end too
        if not as_it_came or (line.endswith(b" ") and len(line) > self._cols) or self._shows_typed(text):
            return True
        lines = "\n" + text.decode("ascii").replace("\r\n", "\n").rstrip(" \n")
        return not self.search.is_short(lines, 1, in_line=True) or self.search.find_here(lines, 1) is not None

    def _shows_typed(self, text: bytes) -> bool:
        """True if a line ends with what was typed, blanks aside."""
        bare = text.translate(None, b" \t\r") if self._typed else b""
        return any(typed + b"\n" in bare or bare.endswith(typed) for typed in self._typed)

    def give_back(self, lines: Lines) -> None:
        """Draw what was taken, as far as it is kept: no less than a window."""
        while self._parts:
            data = self._parts.popleft().data
            if self._cut:
                # where its first line began is not kept
                data, self._cut = b"\r\n" + data[data.find(b"\n") + 1 :], False
            lines.feed(data)
        self._kept, self._line = 0, None


def _count_characters(text: bytes) -> int:
    r"""Characters of text at least, an end of a line being one of them."""
    ascii_bytes = text if text.isascii() else text.translate(None, CONTINUATION)
    return len(ascii_bytes) - text.count(b"\r")
