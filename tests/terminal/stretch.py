"""A command's stretch of output, found in growing data: how the tests here look for a command's end."""

from __future__ import annotations

from typing import NamedTuple

from tmuxctl.reading.text.marks import scan_marks


class Stretch(NamedTuple):
    """A command's stretch of output so far; offsets are into the bytes given.

    `start` is the byte behind its C, or None; `end` the first byte of its D, or None while it runs; `status` what D
    said; `resume` is where to go on looking when more bytes have come.
    """

    start: int | None
    end: int | None
    status: int | None
    resume: int


def stretch(data: bytes, token: str, before: Stretch | None = None, *, session: str | None = None) -> Stretch:
    """Where the command with this token starts and ends in growing data: pass the last answer back with more bytes.

    Its last C counts. `session` is the token of the shell's own marks: their D ends a command that was broken off,
    whose own D then comes late or never. Costs only the bytes that are new. The exact output is
    `output(data[start:end])`.
    """
    if before and before.end is not None:
        return before
    begin = before.start if before else None
    found, resume = scan_marks(data, None, before.resume if before else 0)
    for mark in found:
        if mark.letter == "C" and mark.token == token:
            begin = mark.end
        elif mark.letter == "D" and begin is not None and mark.token in (token, session or token):
            return Stretch(begin, mark.start, mark.status, mark.end)
    return Stretch(begin, None, None, resume)
