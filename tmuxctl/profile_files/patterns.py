"""Regular expressions of a profile: they run on every look at a screen, so none may take for ever."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LENGTH_LIMIT = 1000

MANY = 64
"""Repetitions from which on a repeat counts as unbounded."""


def problem(pattern: str) -> str | None:
    """Why this pattern is refused, in words, or None.

    A repeat of a repeat (`(a+)+`) can take a time that doubles with every character of a screen.
    """
    from re import _parser

    if len(pattern) > LENGTH_LIMIT:
        return f"the pattern is longer than {LENGTH_LIMIT} characters"
    try:
        re.compile(pattern, re.MULTILINE)
        parsed = _parser.parse(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        return f"no regular expression: {error}"
    if _nested(parsed, inside=False):
        return "a repetition inside a repetition, as in (a+)+, can take for ever: write one of them with a limit"
    return None


def matches_nothing(pattern: str) -> bool:
    """True for a pattern that an empty line fulfils, and so nearly every screen."""
    return re.search(pattern, "", re.MULTILINE) is not None


def _nested(parsed: Any, *, inside: bool) -> bool:
    from re import _constants as kinds  # type: ignore[attr-defined]

    repeats = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
    for kind, argument in parsed:
        unbounded = kind in repeats and argument[1] >= MANY
        if unbounded and inside:
            return True
        if any(_nested(part, inside=inside or unbounded) for part in _parts(argument)):
            return True
    return False


def _parts(argument: Any) -> Iterator[Any]:
    """The patterns within one item of a parsed pattern, wherever its kind keeps them."""
    from re._parser import SubPattern  # type: ignore[import-not-found]

    if isinstance(argument, SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for one in argument:
            yield from _parts(one)
