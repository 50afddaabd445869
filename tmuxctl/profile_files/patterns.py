"""Regular expressions of a profile: they run on every look at a screen, so none may take for ever."""

from __future__ import annotations

import re

LENGTH_LIMIT = 1000

STEPS_LIMIT = 1_000_000_000
"""Steps of a search that are put up with at most, by a bound that is far above what most patterns need."""

ROW = "x" * 120
"""What patterns are measured by: a full row, for nearly all patterns stay on theirs."""


def problem(pattern: str) -> str | None:
    """Why this pattern is refused, in words, or None.

    `(a+)+` or `(a|a)*b` can take a time that doubles with every character of a screen.
    """
    from tmuxctl.effort import Bound

    if len(pattern) > LENGTH_LIMIT:
        return f"the pattern is longer than {LENGTH_LIMIT} characters"
    try:
        re.compile(pattern, re.MULTILINE)
        bound = Bound(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        return f"no regular expression: {error}"
    if bound.steps(ROW, 0, lines=True) > STEPS_LIMIT:
        return "it can take too long on a screen: no repetition inside or beside another of the same characters"
    return None


def matches_nothing(pattern: str) -> bool:
    """True for a pattern that an empty line fulfils, and so nearly every screen."""
    return re.search(pattern, "", re.MULTILINE) is not None
