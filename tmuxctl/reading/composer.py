"""The place a program takes its next text in: whether it is empty, and whether it shows what was pasted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tmuxctl.evidence import Look
from tmuxctl.reading import patterns
from tmuxctl.reading.lazy import Pattern
from tmuxctl.reading.turn import squeezed

if TYPE_CHECKING:
    from tmuxctl.profile import Profile

FRAME = Pattern(r"^\s*[╭┌─━═▄▀▔▁╌┄-]{3,}")
"""A drawn line above or below a composer."""

LONGEST = 40
"""So many rows of a text that stands in a composer are looked through."""

TAIL = 16
"""So many of the last characters of a text tell that it is there."""


def empty(look: Look, profile: Profile) -> bool | None:
    """Whether nothing stands behind the prompt; None if there is no prompt to be seen. A hint that a program shows in an
    empty composer stands behind the cursor, and is no text."""
    end = _prompt_end(look.left.ljust(look.x), profile)
    if end is not None:
        return not look.left[end:].strip()
    rows = look.screen.split("\n")
    above = range(look.y - 1, max(-1, look.y - LONGEST), -1)
    return False if any(at < len(rows) and _prompt_end(rows[at], profile) is not None for at in above) else None


def prompted(look: Look, profile: Profile) -> bool:
    """Whether the cursor stands behind a prompt of the profile."""
    return _prompt_end(look.left.ljust(look.x), profile) is not None


def behind_prompt(row: str, profile: Profile) -> str:
    """What stands on a row behind the prompt it begins with, if it does, without blanks."""
    return squeezed(row[_prompt_end(row, profile) or 0 :])


def prompt_row(rows: Sequence[str], profile: Profile) -> int | None:
    """The last of these rows that begins with the prompt, and is no part of what stands behind it."""
    return next((at for at in range(len(rows) - 1, -1, -1) if _prompt_end(rows[at], profile) is not None), None)


def _prompt_end(row: str, profile: Profile) -> int | None:
    """How many characters of a row are the prompt it begins with."""
    for rule in profile.prompt:
        for text in (rule.begin, rule.re) if rule.where != "title" else ():
            pattern = patterns.compiled(text) if text else None
            # blanks at the end of a row are not kept: a pattern may want one, or none
            found = pattern and (pattern.match(row) or pattern.match(row + " ") or pattern.match(row.rstrip()))
            if found and found.end() and not FRAME.search(row):
                return min(found.end(), len(row))
    return None


def shows(look: Look, text: bytes) -> bool:
    """Whether the cursor stands right behind the end of the text."""
    tail = _tail(text)
    left = squeezed(look.left)
    return bool(tail) and (left.endswith(tail) or squeezed(_above(look) + look.left).endswith(tail))


def holds(look: Look, before: Look) -> bool:
    """Whether what stood left of the cursor before still stands near it: before it, or on the rows above, where Enter made
    a new line. That is the end of the text, or what a program shows for it (`[Pasted text +50 lines]`)."""
    tail = squeezed(before.left)[-TAIL:]
    return len(tail) > 1 and tail in squeezed(_above(look) + look.left)


def _above(look: Look) -> str:
    return "".join(look.screen.split("\n")[max(0, look.y - 2) : look.y])


def _tail(text: bytes) -> str:
    return squeezed(text.decode("utf-8", "ignore").rstrip().rpartition("\n")[2])[-TAIL:]
