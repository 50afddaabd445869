"""One job, done by commands and over MCP: a program is given a task, its question is decided, its answer is read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from tools import examples

WAYS = {
    "commands": ("sh", str(examples.EXAMPLES / "supervise.sh")),
    "mcp": (sys.executable, str(examples.EXAMPLES / "supervise_mcp.py")),
}

TOLD = ["It asked: Run wc -l notes.txt?", "It answered: notes.txt has 3 lines."]


@pytest.mark.night
@pytest.mark.timeout(320)
@pytest.mark.parametrize("words", WAYS.values(), ids=WAYS)
def test_a_supervised_program_is_asked_decided_for_and_ended(words: Sequence[str]):
    with examples._place() as place:
        variables = dict(examples._environment(place))
        done = subprocess.run(
            words, cwd=place / "work", env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=examples.PATIENCE, check=False,
        )  # fmt: skip
        listed = subprocess.run(["tmuxctl", "ls", "-q"], env=variables, capture_output=True, text=True, check=True)
        told = [line for line in done.stdout.splitlines() if line.startswith("It ")]
        assert (done.returncode, told, listed.stdout) == (0, TOLD, ""), done.stderr
