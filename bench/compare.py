"""tmuxctl beside tmux, libtmux and pexpect at the same jobs in one run, for docs/comparison.md: `make bench SUITES=compare`.

In the environment ONLY=name,name compares some, DETAIL=1 prints each turn that went wrong. Nothing here passes or fails.
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
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from compared.table import Line, body
from compared.tools import SOCKETS
from place import TREE, Place

SUBJECTS = ("asking", "questions", "typed_texts", "writers", "survival", "cost", "exits")
PAGE = TREE / "docs" / "comparison.md"
PART = re.compile(r"(<!-- compared -->\n).*?(<!-- /compared -->)", re.DOTALL)
PROGRAMS = ("bash", "sqlite3", "gdb", "psql")
"""Beside the Python that drives and is driven."""


def main() -> int:
    """Compare the subjects of ONLY, or all, print and write the tables."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    names = os.environ.get("ONLY", "").replace(",", " ").split() or SUBJECTS
    if strange := [name for name in names if name not in SUBJECTS]:
        print(f"no subject {strange[0]!r}; there are: {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    began = time.monotonic()
    found = {name: _compared(name) for name in names}
    print(f"-- {time.monotonic() - began:.0f} s in all")
    if failed := [name for name, lines in found.items() if not lines]:
        print(f"nothing written: {', '.join(failed)} could not be compared", file=sys.stderr)
        return 1
    _write([line for lines in found.values() for line in lines], whole=len(names) == len(SUBJECTS))
    return 0


def _compared(name: str) -> Sequence[Line]:
    """One subject, in a place of its own; nothing if that failed."""
    began = time.monotonic()
    print(f"-- {name}", flush=True)
    with Place() as place:
        place.sockets += SOCKETS
        # programs of pexpect find a terminal that understands nothing, as its users set it; tmux's have tmux's own
        os.environ["TERM"] = "dumb"
        try:
            lines: Sequence[Line] = importlib.import_module(f"compared.{name}").measure(place)
        except Exception:
            traceback.print_exc()
            return []
    for line in lines:
        print("   " + line.markdown(), flush=True)
    print(f"   {time.monotonic() - began:.0f} s", flush=True)
    return lines


def _write(lines: Sequence[Line], *, whole: bool) -> None:
    """Put the lines into the page; unless all were compared, the others stay."""
    text = PAGE.read_text(encoding="utf-8")
    found = PART.search(text)
    assert found, f"{PAGE.name} has no place for the tables"
    fresh = body(lines, "" if whole else found[0])
    PAGE.write_text(PART.sub(lambda match: f"{match[1]}{fresh}\n{_about()}\n{match[2]}", text), encoding="utf-8")


def _about() -> str:
    """When, where, and with which versions."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("libtmux", "pexpect", "pyte"))
    programs = ", ".join(found for name in PROGRAMS if (found := _version(name)))
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, tmuxctl {version('tmux-control-plane')}, {_said('tmux', '-V')}, {libraries}. "
        f"Driven: {programs}."
    )


def _version(name: str) -> str:
    """A program's name and version; empty if it is not installed."""
    found = re.search(r"\d+(?:\.\d+)+", _said(name, "--version"))
    return f"{name} {found[0]}" if found else ""


def _said(*words: str) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True).stdout.partition("\n")[0].strip()
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
