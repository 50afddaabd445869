"""The parts of compare.py: what is asked, who is asked, and one module for each thing that is measured."""

from __future__ import annotations

import os


def detail(text: str) -> None:
    """Print what went wrong, if that was asked for."""
    if os.environ.get("DETAIL"):
        print(f"   {text}", flush=True)
