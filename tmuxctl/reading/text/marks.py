"""Finds shell marks (OSC 133) in a stretch of terminal output and says what lies between them. Pure functions.

A mark is `ESC ] 133 ; LETTER [; STATUS] [; key=value ...]` ended by BEL or `ESC \\` (FinalTerm's semantic prompts):
A before a prompt, B at its end, C before a command runs, D after it. Ours carry `tmuxctl=TOKEN`, so that a mark which
a command prints, or another shell integration, is told apart. Only the real ESC byte counts, never its echo as `^[`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 280
MARK = re.compile(rb"\x1b\]133;([A-D])((?:;[^\x00-\x1f\x7f]{0,256})?)(?:\x07|\x1b\\)")
CUT = re.compile(rb"\x1b(?:\](?:1(?:3(?:3(?:;(?:[A-D](?:;[^\x00-\x1f\x7f]{0,256})?\x1b?)?)?)?)?)?)?\Z")


class ShellMark(NamedTuple):
    """One mark: its letter, D's exit status, the offsets of its first byte and of the byte behind it, and its token."""

    letter: str
    status: int | None
    start: int
    end: int
    token: str | None


class MarkScan(NamedTuple):
    """The marks found, and the offset at which to go on once more bytes have come."""

    marks: list[ShellMark]
    resume: int


def find_marks(data: bytes, token: str | None = None) -> list[ShellMark]:
    """The whole marks in `data`, in order; with a token only those that carry it."""
    return scan_marks(data, token).marks


def find_last_mark(data: bytes, token: str) -> ShellMark | None:
    """The last of `find_marks`, without looking at those before it."""
    end = len(data)
    while (start := data.rfind(b"\x1b]133;", 0, end)) >= 0:
        match = MARK.match(data, start)
        if match and (mark := _parse_mark(match)).token == token:
            return mark
        end = start
    return None


def scan_marks(data: bytes, token: str | None = None, start: int = 0) -> MarkScan:
    """The whole marks that begin at or after `start`. A mark cut at the end of the data is left for the next call,
    which is given the grown data and `resume` as its start: no byte is searched twice but the cut mark's own."""
    found = [mark for mark in map(_parse_mark, MARK.finditer(data, start)) if token is None or mark.token == token]
    cut = CUT.search(data, max(start, len(data) - LONGEST))
    return MarkScan(found, cut.start() if cut else len(data))


def undo_newlines(data: bytes) -> bytes:
    r"""What a program wrote, from what came out of its terminal: the inverse of ONLCR (termios(3)), `\r\n` to `\n`.

    Exact as long as the program left output processing on (OPOST, ONLCR) and every byte came from it: ONLCR puts one
    CR before each LF, so `\r\n` arrives as `\r\r\n` and comes back as it was.
    """
    return data.replace(b"\r\n", b"\n")


def _parse_mark(match: re.Match[bytes]) -> ShellMark:
    """The mark a match stands for."""
    letter = match[1].decode()
    fields = match[2].decode("utf-8", "replace").split(";")[1:]
    token = next((field[8:] for field in fields if field.startswith("tmuxctl=")), None)
    status = int(fields[0]) if letter == "D" and fields and re.fullmatch(r"[0-9]{1,10}", fields[0]) else None
    return ShellMark(letter, status, match.start(), match.end(), token)
