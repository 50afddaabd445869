"""`make weekly SUITES=scale`: what holds with hundreds of hosts and a thousand sessions. ARGS=small: fewer of each, in a minute.

`python -m tools.scale [small] [--write] [load] [everywhere] [sessions]` measures these subjects (default: all). `--write` puts the
rows into docs/measured.md. Exit status 1 if something does not hold.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent.parent
PATHS = [str(TREE), str(TREE / "tests"), str(TREE / "bench")]
sys.path[:0] = PATHS

import measure  # noqa: E402
from place import Place, Row  # noqa: E402

from tools.scale import everywhere, load, real_sessions  # noqa: E402

SUBJECTS: dict[str, Callable[[Place, bool], list[Row]]] = {
    "load": lambda place, small: load.measure(place, load.SMALL if small else load.LoadSize()),
    "everywhere": lambda place, small: everywhere.measure(place, hosts=50 if small else 500),
    "sessions": lambda place, small: real_sessions.measure(place, sessions=100 if small else 1000),
}


def main(words: list[str]) -> int:
    """Measure the subjects that the words name; the exit status."""
    small, write = "small" in words, "--write" in words
    names = [word for word in words if word in SUBJECTS] or list(SUBJECTS)
    if strange := set(words) - {*SUBJECTS, "small", "full", "--write"}:
        print(f"no subject {min(strange)!r}; there are: {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    rows = []
    for name in names:
        print(f"-- {name}", flush=True)
        with Place() as place:
            os.environ["PYTHONPATH"] = os.pathsep.join(PATHS)
            rows += SUBJECTS[name](place, small)
    print("\n" + measure.table(rows))
    if write:
        measure.write_rows(rows, whole=False)
    return 1 if any(row.holds is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
