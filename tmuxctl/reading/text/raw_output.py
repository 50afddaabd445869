"""What can be told of raw output without drawing it: nearly all of much output only goes on where the cursor stands."""

from __future__ import annotations

import re

COLOURS = re.compile(rb"\x1b\[(?:[0-9;:]*m|0?K)")
"""Sequences that leave a line as it is where nothing stands behind the cursor: colours, and erasing to the right."""

UNFINISHED = re.compile(rb"\x1b(?:\[[0-9;:]*)?\Z")
"""One of those, cut off at the end of what came so far."""

PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\r\n"
HIGH = bytes(range(0x80, 0x100))

DRAWN = re.compile(
    "[^\xa0-\u02ff\u0390-\u03a1\u03a3-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u2190-\u2319\u2500-\u25fc"
    "\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60\ufffd]"
)
"""Characters beyond ASCII that may be joined with others, or left out. The others are sure to take a place of their own."""

TAB = 8


def text_of(data: bytes, cols: int) -> bytes | None:
    r"""The text of output on a terminal of so many columns, colours taken out and lines ended by `\r\n`, if that is all it does
    from the beginning of a line on: None where it may move the cursor to where something stands. A character or a colour may
    be cut off at its end."""
    if b"\x1b" in data:
        data = COLOURS.sub(b"", data)
        if b"\x1b" in data:
            data = UNFINISHED.sub(b"", data)
    other = data.translate(None, PRINTABLE)
    if other and (other.translate(None, HIGH) or DRAWN.search(other.decode(errors="replace"))):
        return None
    data = data.rstrip(b"\r")
    lines = data.count(b"\n")
    if data.count(b"\r") != lines or data.count(b"\r\n") != lines:
        data = re.sub(rb"\r+\n", b"\r\n", data)
        if data.count(b"\r") != data.count(b"\r\n") or data.count(b"\n") != data.count(b"\r\n"):
            return None
    if b"\t" in data:
        tabbed = (line for line in data.split(b"\n") if b"\t" in line)
        # a tab never goes beyond the edge: text may stand on other text behind it
        if max(len(line) + TAB * line.count(b"\t") for line in tabbed) >= cols:
            return None
    return data
