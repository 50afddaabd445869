"""What agentapi's messages leave out of a terminal: prompts, input boxes, and what a program draws again in each turn."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.results import Screen

FRAME = re.compile(r"[\s╭╮╰╯┌┐└┘│┃║─━═▔▁▀▄╌┄-]*")
"""A row with nothing on it but the frame of an input box."""

EVENT_BYTES = 100_000
"""Bytes of a message as JSON: agentapi's own client reads events of at most 128 KiB."""


class Begin(Value):
    """What stood on the screen before a text was typed: the rows above the cursor, and what stood left of it; how far the
    output had come."""

    rows: tuple[str, ...]
    left: str
    offset: int = 0

    @property
    def text(self) -> str:
        """What the program says, without its prompt or the input box that the cursor stands in."""
        rows = [*self.rows]
        while rows and FRAME.fullmatch(rows[-1]):
            rows.pop()
        return trim("\n".join(rows))


def begin_of(screen: Screen, offset: int = 0) -> Begin:
    """What stands on a screen above the cursor and left of it."""
    rows = screen.text.split("\n")
    x, y = screen.cursor.x, screen.cursor.y
    # blanks at the end of rows are not in the text
    return Begin(tuple(rows[:y]), rows[y][:x].ljust(x) if y < len(rows) else "", offset)


def remove_redrawn(text: str, begin: Begin, typed: str) -> str:
    """An answer without the rows that stood there before, and the text as it was typed behind them: programs that clear the
    screen write all of it again, some of them each time that anything changes. What stands behind the last time counts."""
    rows = [row.rstrip() for row in text.split("\n")]
    above = [row.rstrip() for row in begin.rows]
    for at in reversed(_find_echoes(rows, begin.left, typed)):
        # of the first time a part may have scrolled away
        before = rows[max(0, at - len(above)) : at]
        if before == above[len(above) - len(before) :] and (above or rows[0] == rows[at]):
            return "\n".join(rows[at + typed.count("\n") + 1 :])
    return text


def _find_echoes(rows: list[str], left: str, typed: str) -> list[int]:
    """The rows on which the typed text begins behind what stood left of it."""
    first = f"{left}{typed.partition(chr(10))[0]}".strip()
    return [at for at, row in enumerate(rows) if row.strip() == first] if typed.strip() else []


def remove_prompt(text: str, left: str) -> str:
    """A text without its last row, if that is the prompt that stood left of the cursor."""
    rows, _, last = text.rstrip().rpartition("\n")
    return rows if left.strip() and last.rstrip() == left.rstrip() else text


def may_be_redrawn(text: str, typed: str) -> bool:
    """Whether a row of an answer ends with what was typed, as one does that was drawn again."""
    first = typed.partition("\n")[0].strip()
    return bool(first) and any(row.rstrip().endswith(first) for row in text.split("\n"))


def trim(text: str) -> str:
    """A text without empty rows around it, and without blanks at the end of its rows; as much of it as an event holds."""
    text = "\n".join(row.rstrip() for row in text.split("\n")).strip("\n")
    # an escaped character takes six bytes, any other at most four
    if len(text) * 6 <= EVENT_BYTES or (size := _count_bytes(text)) <= EVENT_BYTES:
        return text
    while size > EVENT_BYTES - 8:
        text = text[: min(len(text) - 1, len(text) * (EVENT_BYTES - 8) // size)]
        size = _count_bytes(text)
    return text + "…"


def _count_bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))
