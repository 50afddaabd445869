"""The place a program takes its next text in: whether it is empty, and whether it shows what was pasted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tmuxctl import widths
from tmuxctl.evidence import Look
from tmuxctl.reading.answers.transcripts import remove_blanks
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile

FRAME = Pattern(r"^\s*[╭┌─━═▄▀▔▁╌┄-]{3,}")
"""A drawn line above or below an input box."""

SIDES = Pattern(r"[│┃║]")
"""What is drawn beside the text of an input box."""

LONGEST, LONGEST_TEXT = 40, 1 << 14
"""Rows of an input box that are looked through, and bytes of a text that are looked for in it."""

NUMBERS = Pattern(r"\d+")

SCROLLED = 5
"""Rows from which on an input box may have more of its text above those it shows."""

TAIL = 16
"""Last characters of a text by which it is recognised."""


def is_empty(look: Look, profile: Profile) -> bool | None:
    """Whether nothing stands behind the prompt; None if there is no prompt to be seen. A hint that a program shows in an
    empty input box stands behind the cursor, and is no text. A cursor that is hidden counts unless it is parked at
    the edge (Claude hides it where it writes, others park it; measured)."""
    end = _find_prompt_end(look.left.ljust(look.x), profile)
    if end is not None:
        return not look.left[end:].strip()
    if not (look.visible or look.x):
        return None
    rows = look.screen.split("\n")
    above = range(look.y - 1, max(-1, look.y - LONGEST), -1)
    return False if any(at < len(rows) and _find_prompt_end(rows[at], profile) is not None for at in above) else None


def is_at_prompt(look: Look, profile: Profile) -> bool:
    """Whether the cursor stands behind a prompt of the profile."""
    return _find_prompt_end(look.left.ljust(look.x), profile) is not None


def read_prompt_sign(look: Look, profile: Profile) -> str:
    """The prompt of the input box that the cursor stands in, without blanks; empty if it is not to be seen."""
    rows = look.screen.split("\n")[: look.y + 1][-LONGEST:]
    at = find_prompt_row(rows, profile)
    return "" if at is None else remove_blanks(rows[at][: _find_prompt_end(rows[at], profile)])


def text_behind_prompt(row: str, profile: Profile) -> str:
    """What stands on a row behind the prompt it begins with, if it does, without blanks."""
    return remove_blanks(row[_find_prompt_end(row, profile) or 0 :])


def find_prompt_row(rows: Sequence[str], profile: Profile) -> int | None:
    """The last of these rows that begins with the prompt, and is no part of what stands behind it."""
    return next((at for at in range(len(rows) - 1, -1, -1) if _find_prompt_end(rows[at], profile) is not None), None)


def _find_prompt_end(row: str, profile: Profile) -> int | None:
    """How many characters of a row are the prompt it begins with."""
    for rule in profile.prompt:
        for text in (rule.begin, rule.re) if rule.where != "title" else ():
            pattern = patterns.compile_pattern(text) if text else None
            # blanks at the end of a row are not kept: a pattern may want one, or none
            found = pattern and (pattern.match(row) or pattern.match(row + " ") or pattern.match(row.rstrip()))
            if found and found.end() and not FRAME.search(row):
                return min(found.end(), len(row))
    return None


def find_continuation_end(row: str, profile: Profile) -> int | None:
    """How many characters of a row are the prompt for more of an input; None if it begins with none."""
    for rule in profile.continuation:
        pattern = patterns.compile_pattern(rule.re)
        if pattern and (found := pattern.match(row)):
            return found.end()
    return None


def shows_text(look: Look, text: bytes, profile: Profile) -> bool:
    """Whether the whole text stands left of the cursor; of one with more rows than the program shows, the last of them."""
    rows, whole = _count_rows_standing(look, _expected_text(text, look), profile)
    return whole or rows >= SCROLLED


def shows_part_of_text(look: Look, text: bytes, profile: Profile) -> bool:
    """Whether a part of the text stands there, and nothing else: the rest comes yet, or was lost."""
    wanted = _expected_text(text, look)
    behind = _read_behind_prompt(look, profile)
    if behind is not None:
        return behind in wanted and 0 < len(behind) < len(wanted)
    rows, whole = _count_rows_standing(look, wanted, profile)
    return not whole and 0 < rows < SCROLLED


def _expected_text(text: bytes, look: Look) -> str:
    """What is to stand on the rows of a text, without blanks and frames: its end, if it is long."""
    return _strip_sides(widths.bases(text[-LONGEST_TEXT:].decode("utf-8", "ignore"), look.tmux, drawn=False))


def _strip_sides(row: str) -> str:
    return remove_blanks(SIDES.sub("", row))


def _list_rows_upward(look: Look) -> Iterator[str]:
    """What stands left of the cursor, and the rows above that, by the first characters of their cells."""
    yield widths.bases(look.left, look.tmux)
    rows = look.screen.split("\n")
    above = range(min(look.y, len(rows)) - 1, max(-1, look.y - LONGEST), -1)
    yield from (widths.bases(rows[at], look.tmux) for at in above)


def _count_rows_standing(look: Look, wanted: str, profile: Profile) -> tuple[int, bool]:
    """How many rows up from the cursor are the end of a text, and whether all of it stands on them."""
    count = 0
    for row in _list_rows_upward(look):
        bare = _strip_sides(row[find_continuation_end(row, profile) or 0 :])
        if bare and wanted.endswith(bare):
            count, wanted = count + 1, wanted[: -len(bare)]
        elif bare:
            end = _find_prompt_end(row, profile)
            return count, end is not None and bool(wanted) and _strip_sides(row[end:]) == wanted
        if not wanted:
            return count, count > 0
    return count, False


def _read_behind_prompt(look: Look, profile: Profile) -> str | None:
    """All that stands from the prompt to the cursor; None if there is no prompt to be seen."""
    rows: list[str] = []
    for row in _list_rows_upward(look):
        end = _find_prompt_end(row, profile)
        rows.insert(0, _strip_sides(row[end or find_continuation_end(row, profile) or 0 :]))
        if end is not None:
            return "".join(rows)
    return None


def keeps_text(look: Look, before: Look) -> bool:
    """Whether what stood left of the cursor before still stands near it: before it, or on the rows above, where Enter made
    a new line. That is the end of the text, or what a program shows for it (`[Pasted text +50 lines]`)."""
    tail = remove_blanks(before.left)[-TAIL:]
    return len(tail) > 1 and tail in remove_blanks(_rows_above(look) + look.left)


def is_replaced(look: Look, before: Look, profile: Profile) -> bool:
    """Whether a program whose input box has no sign shows more than the text that it was given: the text is gone from where
    the cursor is, or a row has come that is no part of it. A row of which only numbers changed (a clock) is none."""
    if is_empty(look, profile) is not None or look.screen == before.screen:
        return False
    if not keeps_text(look, before):
        return look.left != before.left or look.y != before.y
    known = {_strip_numbers(row) for row in before.screen.split("\n")}
    text = "".join(known)
    return any(bare and bare not in text for bare in {_strip_numbers(row) for row in look.screen.split("\n")} - known)


def _strip_numbers(row: str) -> str:
    """The letters of a row, with what stands between them but blanks, frames and numbers."""
    return "" if FRAME.search(row) else NUMBERS.sub("", _strip_sides(row))


def _rows_above(look: Look) -> str:
    return "".join(look.screen.split("\n")[max(0, look.y - 2) : look.y])
