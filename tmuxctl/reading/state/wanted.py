"""What a program that waits wants: the next command at its prompt, or input to go on with what it does. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from tmuxctl.model import State
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile
    from tmuxctl.reading.state.situation import Verdict

PROMPT, INPUT = "prompt", "input"
"""Ready for the next command; something has to be typed before it goes on: a decision, a password, a line, a key."""

PROMPT_ENDS = Pattern(r"[^\w\s](?=\s|$)")
"""Where the prompt of a row may end, and what was typed behind it begin."""

PROMPTS_IN_ROW = 8


def find_wanted(verdict: Verdict, *, has_prompt: bool) -> str | None:
    """PROMPT, INPUT, or None of a program that waits for nothing, or of which that is not known.

    `has_prompt`: the session's own program has a prompt of its own, such as a shell or a REPL. A full screen is then one of
    a command that it runs, which has to be left first; else it is where the session's program takes its next command.
    """
    if verdict.state is State.ASKING:
        return INPUT
    if verdict.state is not State.IDLE:
        return None
    kind = verdict.kind
    if kind is InputKind.PROMPT or (kind and kind.traits.whole_screen and not has_prompt):
        return PROMPT
    return INPUT


def list_row_prompts(profile: Profile) -> list[re.Pattern[str]]:
    """The prompts of a profile that stand in a row of their own, and are found again in what was printed."""
    rules = [rule for rule in profile.prompt if rule.where in ("cursor-line", "last-line") and rule.title is None]
    found = [patterns.compile_pattern(rule.re) for rule in rules if rule.kind in (None, InputKind.PROMPT)]
    return [pattern for pattern in found if pattern is not None]


def shows_prompt(rows: Iterable[str], prompts: Sequence[re.Pattern[str]]) -> bool:
    """Whether one of these rows of output begins with one of the prompts, with or without what was typed behind it."""
    texts = (text for row in rows for text in _list_row_beginnings(row[: patterns.LONGEST_ROW]))
    return any(prompt.search(text) for text in texts for prompt in prompts)


def _list_row_beginnings(row: str) -> Iterable[str]:
    if row.strip():
        yield row
        yield from (row[: end.end()] for end in islice(PROMPT_ENDS.finditer(row), PROMPTS_IN_ROW))
