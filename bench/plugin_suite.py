"""A suite of 200 tests of a full-screen program by the pytest plugin, again and again, and once by pexpect with pyte.

python bench/plugin_suite.py 20
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

SUITES = Path(__file__).resolve().parent / "tui_suites"
WORKERS = "4"
COMPARED = 3
"""How many runs by pexpect the time is told of."""


def run(name: str, *words: str) -> tuple[float, str]:
    """Seconds of one run, and what pytest said at its end."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", WORKERS, *words, SUITES / name],
        capture_output=True, text=True, cwd=SUITES, check=False,
    )  # fmt: skip
    seconds = time.monotonic() - began
    last = re.findall(r"^(\d+ (?:passed|failed).*)$", done.stdout, re.MULTILINE)
    return seconds, last[-1] if last else f"status {done.returncode}\n{done.stdout}{done.stderr}"


def main() -> int:
    """Run it so many times; 1 if a test failed in one of them."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    ours, theirs, wrong = [], [], 0
    for number in range(rounds):
        seconds, said = run("test_with_tmuxctl.py")
        ours.append(seconds)
        wrong += "200 passed" not in said or "failed" in said
        print(f"{number + 1:3} tmuxctl {seconds:6.1f} s  {said}", flush=True)
        if number < COMPARED:
            seconds, said = run("test_with_pexpect.py")
            theirs.append(seconds)
            print(f"    pexpect {seconds:6.1f} s  {said}", flush=True)
    medians = statistics.median(ours[:COMPARED]), statistics.median(theirs)
    print(
        f"{wrong} of {rounds} runs with a failure; {medians[0]:.1f} s and {medians[1]:.1f} s: {medians[0] / medians[1]:.2f} x"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
