"""A clone needs nothing beside it: no file of the tree names a path outside it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CLIMB = re.compile(r"(?<![\w/.})])(?:\.\./)+(?:\.\.(?![\w.]))?")
"""A path that begins with a way up; what stands behind a variable or a link is relative to that."""

ABOVE = re.compile(r"\bROOT\.parents?\b")
"""How a test or a tool would go above the tree."""

MEANT = {
    "tests/docs/test_links.py": "a link that leads out is one that must be found",
    "tests/test_standing_alone.py": "the ways out that this test must see",
}
"""Files that lead outside, and why they may."""


def tree() -> Iterator[Path]:
    """The files of the tree: those that git has or would take, in a release all."""
    if not (ROOT / ".git").exists():
        yield from (path for path in ROOT.rglob("*") if path.is_file() or path.is_symlink())
        return
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    yield from (path for name in set(listed.split("\0")) if name and os.path.lexists(path := ROOT / name))


def outside(name: str, text: str) -> list[str]:
    """What of a file's text leads above the tree; `name` is the file's own place in it."""
    depth = name.count("/")
    climbs = [found[0] for found in CLIMB.finditer(text) if found[0].count("..") > depth]
    return climbs + [found[0] for found in ABOVE.finditer(text) if name.endswith(".py")]


@pytest.mark.night
def test_no_file_leads_outside_the_tree() -> None:
    found = {}
    for path in tree():
        name = path.relative_to(ROOT).as_posix()
        if path.is_symlink():
            assert path.resolve().is_relative_to(ROOT), name
        elif leading := outside(name, path.read_text(errors="replace")):
            found[name] = leading
    assert found.keys() == MEANT.keys(), found


@pytest.mark.parametrize(
    ("name", "text", "leading"),
    [
        ("README.md", "see ../shared/facts.md", ["../"]),
        ("docs/tasks.md", "[all](../README.md) and ../../shared", ["../../"]),
        ("tools/agents/lab.py", 'ROOT.parent / "shared"', ["ROOT.parent"]),
        ("Makefile", "include ..", []),
        ("README.md", "the folder $(pwd)/../tests, an ellipsis.../and so on", []),
        ("tests/control/test_reach.py", "cd ../..", []),
    ],
)
def test_a_way_out_is_seen(name: str, text: str, leading: list[str]) -> None:
    assert outside(name, text) == leading
