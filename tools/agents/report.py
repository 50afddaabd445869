"""The table of a run, and which of the promises hold."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from .turn import Turn

MEDIAN = {"hooks": 0.2, "screen": 0.5}
"""Seconds until the end of a turn is told, in the middle: with the program's hooks, and by its screen alone."""

COLUMNS = (
    "program", "version", "hooks", "turns", "all right", "submitted once", "byte-equal", "premature",
    "end delay median/max", "answers right", "undrawn", "whole", "failures told", "undecided", "denied run", "left",
)  # fmt: skip


def line(turn: Turn) -> str:
    """One turn, as it is told while the run goes on."""
    delay = "     -" if turn.delay is None else f"{turn.delay:6.2f}"
    about = f"{turn.program:7} {turn.version:9} {turn.mode:7} {turn.id:18} {turn.state:8}"
    about = f"{about} {turn.by or '-':12} {turn.source or '-':10} {delay}"
    return f"{about}  {'ok' if not turn.broken else '; '.join(turn.broken)}"


Key = tuple[str, str, str]
"""A program, the number of its version, and the mode."""


def _key(turn: Turn) -> Key:
    return turn.program, turn.version, turn.mode


def table(turns: Sequence[Turn], left: dict[Key, list[str]]) -> list[str]:
    """A row for each program and version, with its hooks and without."""
    keys = sorted({_key(one) for one in turns})
    rows = [COLUMNS, *(_row(key, [one for one in turns if _key(one) == key], left.get(key, [])) for key in keys)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in (rows[0], ["-" * width for width in widths], *rows[1:])
    ]


def _row(key: Key, turns: Sequence[Turn], left: Sequence[str]) -> tuple[str, ...]:
    def count(word: str) -> int:
        return sum(any(one.startswith(word) for one in turn.broken) for turn in turns)

    delays = delays_of(turns)
    return (
        key[0],
        key[1],
        "with" if key[2] == "hooks" else "without",
        str(len(turns)),
        str(sum(not one.broken for one in turns)),
        f"{len(turns) - count('submitted') - count('not submitted')}",
        f"{len(turns) - count('not equal') - count('not submitted')}",
        str(count("premature")),
        f"{median(delays):.2f} / {max(delays):.2f} s" if delays else "-",
        _answers(turns),
        str(sum(one.undrawn for one in turns)),
        _whole(turns),
        _failures(turns),
        str(count("undecided")),
        str(count("denied, and run")),
        str(len(left)),
    )


def delays_of(turns: Sequence[Turn]) -> list[float]:
    """How long the ends of these turns took to be told; told before the screen shows it is at once."""
    return [max(0.0, one.delay) for one in turns if one.delay is not None and not one.error]


def _answers(turns: Sequence[Turn]) -> str:
    """By source, how many answers are the model's text."""
    found = []
    for source in dict.fromkeys(one.source or "none" for one in turns if one.wanted is not None):
        those = [one for one in turns if one.wanted is not None and (one.source or "none") == source]
        wrong = sum(any(text.startswith(("answer", "code", "ended")) for text in one.broken) for one in those)
        found.append(f"{source} {len(those) - wrong}/{len(those)}")
    return ", ".join(found) or "-"


def _whole(turns: Sequence[Turn]) -> str:
    """By source, how many answers are told to be complete."""
    # without a policy what `ask` gave was the question
    asked = [one for one in turns if one.policy or one.shape not in ("allow", "deny")]
    those = [one for one in asked if one.wanted is not None and one.state == "idle" and one.source]
    sources = dict.fromkeys(one.source for one in those)
    return (
        ", ".join(
            f"{source} {sum(one.complete for one in those if one.source == source)}/{sum(one.source == source for one in those)}"
            for source in sources
        )
        or "-"
    )


def _failures(turns: Sequence[Turn]) -> str:
    """How many of the turns that failed are told to have failed."""
    those = [one for one in turns if one.shape == "failed"]
    return f"{sum(bool(one.failure) for one in those)}/{len(those)}" if those else "-"


def promises(turns: Sequence[Turn], left: dict[Key, list[str]]) -> list[str]:
    """What does not hold, in words."""
    found = [f"{' '.join(_key(one))} {one.id}: {text}" for one in turns for text in one.broken]
    for key in sorted({_key(one) for one in turns}):
        delays, most = delays_of([one for one in turns if _key(one) == key]), MEDIAN[key[2]]
        if delays and median(delays) > most:
            found.append(f"{' '.join(key)}: the end is told after {median(delays):.2f} s, in the middle, not {most} s")
    for key, those in left.items():
        found += [f"{' '.join(key)}: left behind by kill: {one}" for one in those]
    return found
