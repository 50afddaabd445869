"""What a search costs at most, read off the words of its pattern: enough to tell what surely ends at once."""

from __future__ import annotations

import re
from math import inf, prod

UNKNOWN = re.compile(r"\)[*+?{]|\\[1-9]|\(\?(?:P=|\(|[a-zA-Z]*x)")
"""What this module does not look into: a repeated group, a group's text once more, a condition, (?x)."""

BEGINNING = re.compile(r"(\^?)((?:[^\\\[\](){}*+?|.^$]+(?![*+?{]))?)")
"""The plain text a pattern begins with, the character before a repetition left out: empty where it begins with anything else."""

COUNTS = re.compile(r"\{([0-9]*),?([0-9]*)\}")


def search_steps(pattern: str, text: str, start: int = 0, *, in_line: bool = False) -> float:
    """Steps that `re`, with MULTILINE, takes at most for this search; infinity where that cannot be told. `in_line` says that
    no match reaches beyond its line.

    Without a repeated group each repetition multiplies the ways to match by the length of the text, `?` and `|` by two.
    """
    if UNKNOWN.search(pattern):
        return inf
    length = len(text) - start + 1
    reach = max(map(len, text.split("\n"))) + 1 if in_line else length
    counts = (max(int(least or 0), int(most or reach)) for least, most in COUNTS.findall(pattern))
    ways: int = reach ** sum(map(pattern.count, "*+")) * 2 ** sum(map(pattern.count, "?|")) * prod(counts)
    places = length
    if "|" not in pattern:
        at_line, beginning = BEGINNING.match(pattern).groups()  # type: ignore[union-attr]
        places = 1 + text.count("\n" * len(at_line) + beginning, max(0, start - 1))
    return length + places * ways * len(pattern)
