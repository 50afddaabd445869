"""`make bench`: measures what tmuxctl promises and writes the table in docs/measured.md.

ONLY=name,name in the environment measures some; exit status 1 if something measured does not hold.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from place import TREE, Place, Row

SUBJECTS = {
    "exact": "exact.measure",
    "ends": "ends.measure",
    "exec": "commands.measure",
    "writers": "writers.measure",
    "text": "waiting.measure",
    "turns": "turns.measure",
    "sleeping": "waits.sleeping",
    "probe": "waits.probe",
    "already": "waits.already",
    "bombs": "waits.bombs",
    "flood": "flood.measure",
    "search": "searching.measure",
    "disk": "flood.disk",
    "hot": "cold.measure",
    "through": "through.measure",
    "onefile": "cold.one_file",
    "newshell": "cold.new_shell",
    "warm": "warm.measure",
    "asking": "warm.asking",
    "new": "many.new",
    "ls200": "many.ls200",
    "printing": "many.printing",
    "history": "many.history",
    "base": "footprint.measure",
    "bad": "bad.measure",
    "mcp": "mcp_server.measure",
    "library": "library.measure",
    "http": "http_server.measure",
    "far": "far.measure",
    "gateway": "through_gateway.measure",
    "mesh": "meshes.measure",
}
RATIOS = ("hot", "through", "onefile", "warm", "new", "ls200", "printing")
TABLE = re.compile(r"(<!-- measured -->\n).*?(<!-- /measured -->)", re.DOTALL)
HEAD = "| what | asked | measured | holds |\n|---|---|---|---|\n"


def main(names: Sequence[str] = (), *, write: bool = True) -> int:
    """Measure these subjects (default: ONLY, or all), print and write the table."""
    signal.signal(signal.SIGTERM, _stop)
    asked = os.environ.get("ONLY", "").replace(",", " ").split()
    names = asked or names or tuple(SUBJECTS)
    if strange := [name for name in names if name not in SUBJECTS]:
        print(f"no subject {strange[0]!r}; there are: {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    rows = [row for name in names for row in _measured(name)]
    print("\n" + table(rows))
    if write:
        write_rows(rows, whole=len(names) == len(SUBJECTS))
    return 1 if any(row.holds is False for row in rows) else 0


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(143)


def _measured(name: str) -> list[Row]:
    """One subject in a place of its own; a failure of the measurement is a row that does not hold."""
    module, _, function = SUBJECTS[name].partition(".")
    began = time.monotonic()
    print(f"-- {name}", flush=True)
    try:
        with Place() as place:
            rows: list[Row] = getattr(importlib.import_module(module), function)(place)
    except Exception as error:
        traceback.print_exc()
        rows = [Row(f"`{name}`", "measured", f"{type(error).__name__}: {error}"[:200], False)]
    for row in rows:
        print(f"   {_word(row.holds):3}  {row.what}: {row.measured} ({row.asked})", flush=True)
        if row.detail:
            print("        " + row.detail.replace("\n", "\n        "), flush=True)
    print(f"   {time.monotonic() - began:.1f} s", flush=True)
    return rows


def _word(holds: bool | None) -> str:
    return "–" if holds is None else "yes" if holds else "NO"


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [(row.what, row.asked, row.measured, _word(row.holds)) for row in rows]
    return HEAD + "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def write_rows(rows: Sequence[Row], *, whole: bool) -> None:
    """Put the rows into the table; unless all were measured, the others stay."""
    path = TREE / "docs" / "measured.md"
    text = path.read_text(encoding="utf-8")
    found = TABLE.search(text)
    if not found:
        print("docs/measured.md has no place for the table", file=sys.stderr)
        return
    fresh = {line.split(" | ")[0]: line for line in table(rows).splitlines()[2:]}
    old = {} if whole else {line.split(" | ")[0]: line for line in found[0].splitlines() if line.startswith("| ")}
    old.pop("| what", None)
    body = HEAD + "".join(line + "\n" for line in {**old, **fresh}.values())
    path.write_text(
        TABLE.sub(lambda match: match[1] + body + "\n" + _machine() + "\n" + match[2], text), encoding="utf-8"
    )


def _machine() -> str:
    tmux = subprocess.run(["tmux", "-V"], capture_output=True, text=True).stdout.strip()
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {tmux}, "
        f"Python {platform.python_version()}. Ratios are of medians, both sides taken in turn in one run."
    )


if __name__ == "__main__":
    sys.exit(main())
