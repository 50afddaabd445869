"""The table of a run of mutmut: for each module how many of its changes the tests noticed. `python -m tools.mutants`"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path("mutants")
SURVIVED, NO_TESTS = 0, 33
"""What mutmut keeps as a mutant's exit status where no test failed, and where no test reaches the function."""


class Score(NamedTuple):
    """What became of the mutants of one module."""

    module: str
    total: int
    tried: int
    survived: int
    untested: int


def read_scores(folder: Path) -> Iterator[Score]:
    """One score for each module of which at least one mutant was tried."""
    for path in sorted(folder.glob("**/*.py.meta")):
        statuses = [*json.loads(path.read_text())["exit_code_by_key"].values()]
        tried = [status for status in statuses if status is not None]
        if tried:
            module = str(path.relative_to(folder)).removesuffix(".py.meta")
            yield Score(module, len(statuses), len(tried), tried.count(SURVIVED), tried.count(NO_TESTS))


def main() -> None:
    """Print the table, and its sum."""
    scores = list(read_scores(FOLDER))
    if not scores:
        raise SystemExit("no change of the code was tried: build/mutants.log")
    print(f"{'module':<45} {'killed':>7} {'survived':>9} {'no test':>8} {'tried':>6} {'of':>6}")
    every = Score("all", *(sum(column) for column in zip(*(score[1:] for score in scores), strict=True)))
    for score in (*scores, every):
        killed = score.tried - score.survived - score.untested
        print(
            f"{score.module:<45} {killed:>7} {score.survived:>9} {score.untested:>8} {score.tried:>6} {score.total:>6}"
        )


if __name__ == "__main__":
    main()
