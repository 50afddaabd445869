"""The table of a run, and which of the promises hold."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from .turn import Turn

MEDIAN = {"hooks": 0.2, "screen": 0.5}
"""Seconds until the end of a turn is told, in the middle: with the program's hooks, and by its screen alone."""

COLUMNS = (
    "program", "hooks", "turns", "submitted once", "byte-equal", "premature", "end delay median/max", "answers right",
    "undecided", "denied run", "left",
)  # fmt: skip


def line(turn: Turn) -> str:
    """One turn, as it is told while the run goes on."""
    delay = "     -" if turn.delay is None else f"{turn.delay:6.2f}"
    about = f"{turn.program:7} {turn.mode:7} {turn.id:18} {turn.state:8} {turn.by or '-':12} {turn.source or '-':10} {delay}"
    return f"{about}  {'ok' if not turn.broken else '; '.join(turn.broken)}"


def table(turns: Sequence[Turn], left: dict[tuple[str, str], list[str]]) -> list[str]:
    """A row for each program, with its hooks and without."""
    keys = list(dict.fromkeys((one.program, one.mode) for one in turns))
    rows = [
        COLUMNS,
        *(_row(key, [one for one in turns if (one.program, one.mode) == key], left.get(key, [])) for key in keys),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in (rows[0], ["-" * width for width in widths], *rows[1:])
    ]


def _row(key: tuple[str, str], turns: Sequence[Turn], left: Sequence[str]) -> tuple[str, ...]:
    def count(word: str) -> int:
        return sum(any(one.startswith(word) for one in turn.broken) for turn in turns)

    delays = delays_of(turns)
    return (
        key[0],
        "with" if key[1] == "hooks" else "without",
        str(len(turns)),
        f"{len(turns) - count('submitted') - count('not submitted')}",
        f"{len(turns) - count('not equal') - count('not submitted')}",
        str(count("premature")),
        f"{median(delays):.2f} / {max(delays):.2f} s" if delays else "-",
        _answers(turns),
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


def promises(turns: Sequence[Turn], left: dict[tuple[str, str], list[str]]) -> list[str]:
    """What does not hold, in words."""
    found = [f"{one.program} {one.mode} {one.id}: {text}" for one in turns for text in one.broken]
    for program, mode in dict.fromkeys((one.program, one.mode) for one in turns):
        delays = delays_of([one for one in turns if (one.program, one.mode) == (program, mode)])
        if delays and median(delays) > MEDIAN[mode]:
            found.append(
                f"{program} {mode}: the end is told after {median(delays):.2f} s, in the middle, not {MEDIAN[mode]} s"
            )
    for (program, mode), those in left.items():
        found += [f"{program} {mode}: left behind by kill: {one}" for one in those]
    return found
