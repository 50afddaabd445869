"""Regular expressions of a profile: they run on every look at a screen, so none may take for ever."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

from tmuxctl import alarm
from tmuxctl.search_cost import BEGINNING, search_steps
from tmuxctl.timing import TIMING

LENGTH_LIMIT = 1000

STEPS_LIMIT = 1_000_000_000
"""Steps on a row that need no trial: at most about a second, and far above what such a pattern takes on a real one."""

ROW = "x" * 120
"""What patterns are measured by: a full row, for nearly all patterns stay on theirs."""

LENGTHS = (*range(4, 65, 4), len(ROW))
"""Characters of the rows tried where no alarm can end a search: what doubles with each of them is seen before it takes long."""


def find_problem(pattern: str) -> str | None:
    """Why this pattern is refused, in words, or None.

    `(a+)+` or `(a|a)*b` can take a time that doubles with every character of a screen.
    """
    if len(pattern) > LENGTH_LIMIT:
        return f"the pattern is longer than {LENGTH_LIMIT} characters"
    try:
        re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    if search_steps(pattern, ROW) > STEPS_LIMIT and _takes_long(pattern):
        return (
            "it can take too long on a screen: it repeats a repetition, or repeats the same characters twice in a row"
        )
    return None


def _split_pattern(pattern: str) -> Iterator[str]:
    """The pattern, and the rest of it behind its plain beginning and from each group on: a row of one character gets there."""
    starts = {0, BEGINNING.match(pattern).end(), *(place.start() for place in re.finditer(r"\(", pattern))}  # type: ignore[union-attr]
    for start in sorted(starts):
        part = pattern[start:]
        try:
            re.compile(part, re.MULTILINE)
        except re.error as error:
            # the parenthesis that closes a group which began before
            part = part[: error.pos or 0]
        yield part


def _takes_long(pattern: str) -> bool:
    """Whether it takes long to find that a row of one character fits in none of the ways of a part."""
    alarmed = alarm.is_possible()
    lengths = LENGTHS[-1:] if alarmed else LENGTHS

    def trial() -> bool:
        return any(_is_slow(part, lengths) for part in _split_pattern(pattern))

    began = time.thread_time()
    while True:
        try:
            return alarm.run_within(TIMING.profile.trial_seconds, trial) if alarmed else trial()
        except alarm.TimeUp:
            # on a busy machine it may have had no processor
            if time.thread_time() - began > TIMING.profile.trial_seconds / 2:
                return True


def _is_slow(part: str, lengths: Sequence[int]) -> bool:
    try:
        search = re.compile(f"(?:{part})(?!)", re.MULTILINE).search
    except re.error:
        # a part is not always whole
        return False
    for character in sorted({*part, *"x0 "}):
        for length in lengths:
            began = time.thread_time()
            search(character * length)
            if time.thread_time() - began > TIMING.profile.search_seconds:
                return True
    return False


def matches_empty_line(pattern: str) -> bool:
    """True for a pattern that an empty line fulfils, and so nearly every screen."""
    return re.search(pattern, "", re.MULTILINE) is not None
