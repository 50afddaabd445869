"""Tiny programs to drive, and how each is started. The machine in memory knows them too, by the names of their files."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

LINES = ("cat",)
"""Repeats each line."""

SHELL = ("sh",)
"""A shell without start-up files."""


def program(name: str, *arguments: str) -> tuple[str, ...]:
    """The argv of one of the programs in this folder."""
    return (PYTHON, "-I", "-S", str(HERE / f"{name}.py"), *arguments)


PYTHON = sys.executable
