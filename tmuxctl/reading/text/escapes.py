"""What a program printed, as exact text: escape sequences that only colour or switch are taken out, and nothing else.

Line by line, because nearly every line needs no terminal to be understood. A line that goes back over itself (a
progress bar) counts as it stood in the end, and only one that moves the cursor to other rows is rendered whole.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from tmuxctl.reading.text.lines import FEED, Lines
from tmuxctl.widths import Version

STRING = re.compile(rb"\x1b[\]PX^_](?:[^\x07\x1b\xc2]++|\xc2(?!\x9c))*+(?:\x07|\x1b\\|\xc2\x9c|(?=\x1b))")
"""Titles, links and other strings for the terminal; another ESC breaks one off, as in tmux."""

QUIET = re.compile(
    rb"\x1b\[(?:[0-9;:]*m|[<=>?][0-9;:]*[ -/]*[@-~]|[0-9;]*[chlnqt]|[0-9;]*[ -/][@-~]|0?[KJ])|"
    + STRING.pattern
    + rb"|\x1b[=>\\]|\x1b[()*+][0-9A-Z]|\x1b%[@G]|[\x00-\x07\x0f\x10-\x1a\x1c-\x1f\x7f]"
)
"""What puts nothing on the line and moves nothing: colours, modes, questions to the terminal, titles, charsets, and
erasing to the right of text that was just written. (ECMA-48, xterm's control sequences.)"""

OPENING = re.compile(rb"(?:\r|\x1b\[(?:[12]?K|[01]?G)|" + QUIET.pattern + rb")++")
"""What at the beginning of a line changes nothing, though it would further on."""

AROUND = re.compile(
    rb"\x1b\[(?:[0-9;]*[ABEFHLMSTdefrsu]|[123]J|\?(?:[0-9]+;)*(?:47|1047|1049)(?:;[0-9]+)*[hl])|\x1b(?:[78cDEM]|\(0)"
    rb"|[\v\f\x0e]|\xc2[\x84\x85\x8d]"
)
"""What takes the cursor to another row, another screen or another charset: such a stretch is rendered as a whole."""

RETURNS = re.compile(rb"\r+\n")
OVERWRITTEN = re.compile(rb"[\r -~]*+")

TEXT = rb"[^\x00-\x08\x0b-\x1f\x7f\xc2]{1,4096}+|\xc2(?![\x80-\x9f])|\r++\n"
"""Bytes of text without a control character, C1 in UTF-8 included; and ends of lines."""
CLEAR = re.compile(rb"(?:" + TEXT + rb"){1,64}+")
BARE = re.compile(rb"(?:" + TEXT + rb"|" + QUIET.pattern + rb"){1,64}+")
"""A part of what can be taken as it is; and of what can once the quiet is taken out. A part at a time, because decoded
text takes up to four times its bytes, and what a substitution replaces is listed piece by piece."""

LONGEST = 8 << 20
"""Characters of the text; movements of the cursor can make much of it from few bytes."""


class PlainText(NamedTuple):
    """The text, `\n` between lines. `whole` is False for a stretch that ends in the alternate screen: there a program
    keeps what it shows to itself; and for a text that is longer than LONGEST and is cut off there."""

    text: str
    whole: bool


def strip_escapes(data: bytes, cols: int, rows: int, *, y: int = 0, tmux: Version = None) -> PlainText:
    """What these bytes say on a terminal of this size, when they begin at the left edge of row `y`.

    Exact for every line without cursor movements: blanks, tabs and empty lines stay. A line that was written over is
    given as it stood in the end, without trailing blanks (they only wiped something out). `tmux` is the version that draws it.
    """
    shown = None
    if AROUND.search(data):
        shown = _Rendering(cols, rows, y=min(y, rows - 1), tmux=tmux)
        pieces = shown.render(data)
    elif _is_bare(data, 0):
        pieces = _remove_quiet(data, 0)
    else:
        pieces = _line_by_line(data, cols, rows, tmux)
    text = ""
    for piece in pieces:
        # CPython lengthens a string in place that nothing else refers to: there is never a second one of this size
        text += piece
        if len(text) > LONGEST:
            return PlainText(text[:LONGEST], False)
    if shown and shown.lines.alternate:
        return PlainText(shown.lines.text(), False)
    return PlainText(text, True)


class _Rendering:
    """A stretch that goes about the screen, as text."""

    def __init__(self, cols: int, rows: int, *, y: int = 0, tmux: Version = None) -> None:
        self.pieces: list[str] = []
        self.lines = Lines(cols, rows, y=y, sink=self.pieces.append, tmux=tmux)

    def render(self, data: bytes) -> Iterator[str]:
        """The text as it leaves the screen; what is in the alternate screen at the end is left there."""
        for text in _decode_without_strings(data):
            self.lines.write(text)
            yield "".join(self.pieces)
            self.pieces.clear()
        if not self.lines.alternate:
            self.lines.finish()
            yield "".join(self.pieces)


def _decode_without_strings(data: bytes) -> Iterator[str]:
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    kept, at = bytearray(), 0
    for start, behind in chain((found.span() for found in STRING.finditer(data)), [(len(data), len(data))]):
        for begin in range(at, start, FEED):
            kept += data[begin : min(start, begin + FEED)]
            if len(kept) >= FEED:
                yield decode(bytes(kept))
                kept.clear()
        at = behind
    yield decode(bytes(kept), True)


def _is_bare(data: bytes, at: int) -> bool:
    """Whether nothing but text and what is quiet comes from here on."""
    while found := BARE.match(data, at):
        at = found.end()
    return at == len(data)


def _remove_quiet(data: bytes, at: int) -> Iterator[str]:
    """The same without the quiet."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    while found := BARE.match(data, at):
        at = found.end()
        # a string may end where another ESC breaks it off, which is in the next part
        text = QUIET.sub(b"", found[0] + b"\x1b")[:-1]
        yield decode(RETURNS.sub(b"\n", text))
    yield decode(b"", True)


def _line_by_line(data: bytes, cols: int, rows: int, tmux: Version) -> Iterator[str]:
    at = 0
    while at < len(data):
        clear = CLEAR.match(data, at)
        behind = data.rfind(b"\n", at, clear.end()) + 1 if clear else 0
        if behind:
            yield RETURNS.sub(b"\n", data[at:behind]).decode("utf-8", "replace")
            at = behind
            continue
        end = data.find(b"\n", at)
        yield from _render_line(data[at : end if end >= 0 else len(data)].rstrip(b"\r"), cols, rows, tmux)
        if end < 0:
            return
        yield "\n"
        at = end + 1


def _render_line(line: bytes, cols: int, rows: int, tmux: Version) -> Iterator[str]:
    """One line as it stood in the end."""
    opening = OPENING.match(line)
    begin = opening.end() if opening else 0
    if _is_bare(line, begin):
        yield from _remove_quiet(line, begin)
    elif OVERWRITTEN.fullmatch(line) and not _longer_than(cols).search(line):
        yield _apply_overwrites(line)
    else:
        # Erasing counts here, as something may be to the right of the cursor by now.
        yield from _Rendering(cols, rows, tmux=tmux).render(line)


@lru_cache(16)
def _longer_than(cols: int) -> re.Pattern[bytes]:
    return re.compile(rb"[^\r]{%d}" % (cols + 1))


def _apply_overwrites(line: bytes) -> str:
    """What is left when each part was written over the ones before."""
    shown, end = b"", len(line)
    while end >= 0:
        start = line.rfind(b"\r", 0, end) + 1
        shown += line[start + len(shown) : end]
        end = start - 1
    return shown.decode().rstrip()
