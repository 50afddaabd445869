"""What a program printed, as exact text: escape sequences that only colour or switch are taken out, and nothing else.

Line by line, because nearly every line needs no terminal to be understood. A line that goes back over itself (a
progress bar) counts as it stood in the end, and only one that moves the cursor to other rows is rendered whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tmuxctl.reading.lines import Lines

STRING = re.compile(r"\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|(?=\x1b))")
"""Titles, links and other strings for the terminal; another ESC breaks one off, as in tmux."""

QUIET = re.compile(
    r"\x1b\[(?:[0-9;:]*m|[<=>?][0-9;:]*[ -/]*[@-~]|[0-9;]*[chlnqt]|[0-9;]*[ -/][@-~]|0?[KJ])"
    rf"|{STRING.pattern}|\x1b[=>\\]|\x1b[()*+][0-9A-Z]|\x1b%[@G]|[\x00-\x07\x0f\x10-\x1a\x1c-\x1f\x7f]"
)
"""What puts nothing on the line and moves nothing: colours, modes, questions to the terminal, titles, charsets, and
erasing to the right of text that was just written. (ECMA-48, xterm's control sequences.)"""

OPENING = re.compile(rf"(?:\r|\x1b\[(?:[12]?K|[01]?G)|{QUIET.pattern})+")
"""What at the beginning of a line changes nothing, though it would further on."""

AROUND = re.compile(
    r"\x1b\[(?:[0-9;]*[ABEFHLMSTdefrsu]|[123]J|\?(?:[0-9]+;)*(?:47|1047|1049)(?:;[0-9]+)*[hl])|\x1b(?:[78cDEM]|\(0)"
    r"|[\v\f\x0e\x84\x85\x8d]"
)
"""What takes the cursor to another row, another screen or another charset: such a stretch is rendered as a whole."""

RETURNS = re.compile(r"(?<!\r)\r+\n")
OVERWRITTEN = re.compile(r"[\r -~]*")

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Plain(NamedTuple):
    """The text, `\\n` between lines. `whole` is False for a stretch that ends in the alternate screen: there a program
    keeps what it shows to itself."""

    text: str
    whole: bool


def plain(data: bytes, cols: int, rows: int, *, y: int = 0) -> Plain:
    """What these bytes say on a terminal of this size, when they begin at the left edge of row `y`.

    Exact for every line without cursor movements: blanks, tabs and empty lines stay. A line that was written over is
    given as it stood in the end, without trailing blanks (they only wiped something out).
    """
    text = RETURNS.sub("\n", data.decode("utf-8", "replace"))
    if not CONTROL.search(text):
        return Plain(text, True)
    if AROUND.search(text):
        lines = Lines(cols, rows, y=min(y, rows - 1), keep=len(data) + rows)
        lines.feed(STRING.sub("", data.decode("utf-8", "replace")).encode())
        return Plain(lines.text(), not lines.alternate)
    bare = QUIET.sub("", text)
    if CONTROL.search(bare):
        bare = "\n".join([_line(line, cols, rows) for line in text.split("\n")])
    return Plain(bare, True)


def _line(line: str, cols: int, rows: int) -> str:
    """One line as it stood in the end."""
    if not CONTROL.search(line):
        return line
    line = line.rstrip("\r")
    opening = OPENING.match(line)
    bare = QUIET.sub("", line[opening.end() :] if opening else line)
    if not CONTROL.search(bare):
        return bare
    if OVERWRITTEN.fullmatch(line) and (parts := line.split("\r")) and max(map(len, parts)) <= cols:
        return _overwritten(parts)
    # Erasing counts here, as something may be to the right of the cursor by now.
    lines = Lines(cols, rows)
    lines.feed(STRING.sub("", line).encode())
    return lines.text()


def _overwritten(parts: list[str]) -> str:
    """What is left when each part was written over the ones before."""
    seen = ""
    for part in reversed(parts):
        if len(part) > len(seen):
            seen += part[len(seen) :]
    return seen.rstrip()
