"""Real agent programs find the skill that `tmuxctl skill install` put there, and tell their model of it.

python -m tools.agents.skill [claude codex gemini]

Each is asked once, without a person. The request that the local model gets must hold the description of the skill: not before it is
installed, then for the user, then for the project. Prints a line for each program; ends with 1 if a promise does not hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import yaml

from . import alone, installing, lab
from .model import Model
from .programs import ROOT

PATIENCE = 120.0
"""Seconds that one run of a program may take."""

HEADLESS: Mapping[str, Sequence[str]] = {
    "claude": ("-p", "--"),
    "codex": ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    "gemini": ("-p",),
}
"""The words before a prompt with which a program is asked once."""

STEPS = (
    ("nowhere", (), False),
    ("for the user", ("install",), True),
    ("nowhere any more", ("uninstall",), False),
    ("for the project", ("install", "--project"), True),
)
"""Where the skill is, what is done for that, and whether the program knows it then."""


def main() -> int:
    """Run the programs that were named, all by default; returns the exit status."""
    wanted = installing.install(sys.argv[1:] or list(HEADLESS), ["pinned"], print)
    alone.leave_the_network("tools.agents.skill")
    wrong = [f"{name} {version}: {told}" for name, version in wanted for told in drive(name, version)]
    for told in wrong:
        print(f"-- DOES NOT HOLD: {told}")
    return 1 if wrong else 0


def drive(program: str, version: str) -> list[str]:
    """All steps of one program; the promises that it breaks."""
    about = yaml.safe_load((ROOT / "tmuxctl/skill/SKILL.md").read_text().split("---\n")[1])
    model = Model()
    place = lab.make_place(program, version, f"skill-{os.getpid()}-{program}", model.port)
    environment = {**os.environ, "HOME": str(place.home)}
    try:
        wrong = []
        for number, (where, words, known) in enumerate(STEPS):
            if words:
                change = [sys.executable, "-m", "tmuxctl", "-q", "skill", *words, "--client", program, "--yes"]
                subprocess.run(change, env=environment, cwd=place.work, stdout=subprocess.DEVNULL, check=True)
            mark = f"fake:echo#skill-{number} hello"
            said = subprocess.run(
                [place.bin / program, *HEADLESS[program], mark],
                env=environment, cwd=place.work, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=PATIENCE, check=False,
            )  # fmt: skip
            asked = [body for body in model.bodies() if mark in body]
            # as it stands within JSON; a program may cut it
            told = any(json.dumps(about["description"])[1:100] in body for body in asked)
            if not asked or told != known:
                wrong.append(f"{where}: {len(asked)} requests, told of the skill: {told}; {said.stderr[-300:]}")
        print(f"-- {program} {version}: {len(STEPS)} runs, {len(wrong)} wrong", flush=True)
        return wrong
    finally:
        model.close()
        lab.remove(place)


if __name__ == "__main__":
    sys.exit(main())
