"""What a program says of a turn that failed, by the rules of its profile for errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.reading.text import patterns
from tmuxctl.vocabulary import Detail

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile

LONGEST = 30
"""Rows of one error that are told."""

COMPARED = 12
"""Characters, without blanks, that a row and the beginning of an error have in common where they are the same."""

SIGN = re.compile(r"\A\s*[^\w\s\[({<\"'][^\w\s\[({<\"']?\s+")
"""What a program draws at the edge before an error."""


class Failure(NamedTuple):
    """The error in the program's own words, its first row and the row behind its last."""

    text: str
    row: int
    end: int


def find_failure(rows: Sequence[str], profile: Profile, *, limited: bool = False) -> Failure | None:
    """The error in which a turn ended, on the rows that it wrote; None if no rule of detail `failed` fits there.

    `limited`: rules for a limit count too, since the state says that it is used up.
    """
    details = (Detail.FAILED, Detail.LIMITED) if limited else (Detail.FAILED,)
    rules = [rule for rule in profile.errors if rule.detail in details]
    kept = list(rows)
    while kept and not kept[-1].strip():
        kept.pop()
    match = patterns.find_match(rules, patterns.ScreenText(tuple(kept), y=len(kept) - 1)) if kept else None
    if match is None:
        return None
    first = len(kept) - match.region.count("\n") - 1 + match.region[: match.row_start].count("\n")
    words = []
    for row in kept[first : first + LONGEST]:
        if not row.strip():
            break
        words.append(row.strip())
    return Failure(SIGN.sub("", "\n".join(words)), first, first + len(words))


def remove_failure(text: str, error: str) -> str:
    """An answer read off the screen, without the error that the program told otherwise and what stands behind that."""
    lines, begin = text.split("\n"), _strip_sign(error)
    return "\n".join(takewhile(lambda line: not _begins_error(begin, _strip_sign(line)), lines)).strip("\n")


def _begins_error(error: str, line: str) -> bool:
    """Whether a row shows the beginning of an error, as far as it goes."""
    return bool(line) and len(line) >= min(COMPARED, len(error)) and (error.startswith(line) or line.startswith(error))


def _strip_sign(text: str) -> str:
    return "".join(SIGN.sub("", text).split())
