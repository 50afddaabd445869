"""What bench/measure.py does when it is told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MEASURE = Path(__file__).resolve().parent.parent / "bench" / "measure.py"
MANY = {"ONLY": "turns", "PROGRAMS": "bash", "LENGTHS": "2", "EACH": "500"}
"""Turns that take half an hour."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_turns_that_are_told_to_end_leave_nothing(
    number: signal.Signals, needs: Callable[..., None], until: Callable[..., Any]
) -> None:
    needs("bash", "tmux")
    measuring = subprocess.Popen(
        [sys.executable, str(MEASURE)],
        env=os.environ | MANY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        work = until(lambda: _begun(measuring.pid))
        measuring.send_signal(number)
        measuring.wait(timeout=60)
        assert measuring.returncode
        assert not work.parent.exists()
    finally:
        measuring.kill()
        measuring.wait()


def _begun(pid: int) -> Path | None:
    """The folder in which the commands run, once there is a tmux server beside it."""
    work = Path(os.readlink(f"/proc/{pid}/cwd"))
    return work if any(work.parent.glob("run/tmux-*/*")) else None
