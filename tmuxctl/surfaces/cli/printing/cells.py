"""Text in the cells of a terminal: how wide it is, how it is cut, and a time in as few cells as possible."""

from __future__ import annotations

from itertools import pairwise

from tmuxctl import widths
from tmuxctl.surfaces.cli.printing.output import unicode_out

UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def columns(text: str) -> int:
    """The columns a text takes, as tmux counts them; it holds no control characters."""
    return widths.columns(text)


def cut(text: str, size: int) -> str:
    """The text in at most so many columns; what is left out is shown by an ellipsis."""
    if columns(text) <= size:
        return text
    return (widths.first_columns(text, size - 1) + ("…" if unicode_out() else "~"))[: max(0, size)]


def fit(text: str, size: int, *, right: bool = False) -> str:
    """The text in exactly so many columns: cut, or with blanks behind it, or before it."""
    shown = cut(text, size)
    blanks = " " * (size - columns(shown))
    return blanks + shown if right else shown + blanks


def age(seconds: float) -> str:
    """A length of time in its largest unit: `12s`, `3m`, `2h`, `5d`."""
    whole = max(0, int(seconds))
    return next((f"{whole // size}{unit}" for size, unit in UNITS if whole >= size), "0s")


def length(seconds: float) -> str:
    """A length of time in its two largest units: `12s`, `3m20s`, `2h05m`."""
    whole = max(0, int(seconds))
    for (size, unit), (smaller, below) in pairwise(UNITS):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // smaller:02d}{below}"
    return f"{whole}s"
