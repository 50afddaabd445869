"""The changes of docs/changing.md, made in a copy of the tree as the page says, and checked as it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs import pages

PLACES = 3
"""Files of the product that a change may take."""

NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".*_cache")

CHANGES = [
    pytest.param(section, id=section.title)
    for page in pages.all_pages()
    if page.name == "docs/changing.md"
    for section in page.sections
    if any(isinstance(part, pages.Block) and part.language == "diff" for part in section.parts)
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return Path(shutil.copytree(pages.ROOT, tmp_path / "tree", ignore=NOT_COPIED))


def blocks(section: pages.Section, language: str) -> list[pages.Block]:
    return [part for part in section.parts if isinstance(part, pages.Block) and part.language == language]


def run(tree: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment |= {"PYTHONPATH": str(tree), "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    return subprocess.run(
        words, cwd=tree, env=environment, input=given, capture_output=True, text=True, timeout=600, check=False
    )


def changed_files(diff: pages.Block) -> list[str]:
    return [line.removeprefix("+++ b/") for line in diff.text.split("\n") if line.startswith("+++ b/")]


def test_the_page_has_its_six_changes():
    assert len(CHANGES) == 6


@pytest.mark.night
@pytest.mark.timeout(900)  # it runs tests of its own
@pytest.mark.parametrize("section", CHANGES)
def test_a_change_takes_the_places_that_the_page_names(section: pages.Section, tree: Path):
    files = [file for diff in blocks(section, "diff") for file in changed_files(diff)]
    assert len([file for file in files if file.startswith(("tmuxctl/", "plugins/", "profiles/"))]) <= PLACES
    for diff in blocks(section, "diff"):
        applied = run(tree, "git", "apply", "--unidiff-zero", "-", given=diff.text + "\n")
        assert applied.returncode == 0, f"line {diff.line} does not fit this tree: {applied.stderr}"
    commands = [step.command for block in blocks(section, "console") for step in pages.steps(block)]
    assert commands
    for command in commands:
        done = run(tree, sys.executable, *command.removeprefix("python ").split())
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
