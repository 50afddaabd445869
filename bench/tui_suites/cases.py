"""Two hundred ways through the menu of examples/testing: keys, and what has to be shown then."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

MENU = [sys.executable, str(Path(__file__).resolve().parents[2] / "examples" / "testing" / "menu.py")]

SEQUENCES = {"Left": "\033OD", "Right": "\033OC", "Up": "\033OA", "Down": "\033OB", "Enter": "\r"}
"""Keys as tmux sends them in application mode; pyte does not draw all that is sent to an xterm or a Linux console."""


class Case(NamedTuple):
    """Keys, and a pattern that the screen matches then."""

    number: int
    keys: tuple[str, ...]
    shown: str

    def __str__(self) -> str:
        return str(self.number)


def _case(number: int) -> Case:
    steps = number % 11 - 5
    keys = ("Right",) * steps if steps > 0 else ("Left",) * -steps
    if number % 3 == 0:
        return Case(number, (*keys, "Down", "Enter"), r"Sound +off")
    return Case(number, (*keys, "Down", "Up"), rf"Volume .*\] +{50 + steps * 10}\b")


CASES = [_case(number) for number in range(200)]
