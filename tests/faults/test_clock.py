"""The clock of the wall is put an hour forward or back: no wait ends or lasts longer by that, and no lease."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.command import PATIENCE, Command, sleeps

from tmuxctl.control import Control

pytestmark = pytest.mark.on("tmux")

JUMP = """\
import os, time
real = time.time
def jumped():
    try:
        with open(os.environ["JUMP"]) as file:
            return real() + float(file.read() or 0)
    except OSError:
        return real()
time.time = jumped
time.time_ns = lambda: int(jumped() * 1e9)
"""
"""A `sitecustomize`: the wall's clock as a file says, while the process runs."""


@pytest.fixture
def jump(place: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Puts the clock of all commands that run."""
    folder = place / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(JUMP)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{os.environ['PYTHONPATH']}")
    monkeypatch.setenv("JUMP", str(place / "jump"))

    def jump(seconds: float) -> None:
        (place / "jump").write_text(str(seconds))

    return jump


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_a_wait_goes_on_until_what_it_waits_for(
    control: Control, jump: Callable[[float], None], until, seconds: float
) -> None:
    control.new("t", ("cat",))
    waiting = Command().start("wait", "t", "--text", "^needle$", "--timeout", "60s")
    until(lambda: sleeps(waiting))
    jump(seconds)
    # what it wakes for and looks at by the clock as it is now
    control.send("t", b"straw")
    assert control.wait("t", text="^straw$").matched
    assert waiting.poll() is None
    control.send("t", b"needle")
    assert '"matched":"text"' in waiting.communicate(timeout=PATIENCE)[0]


@pytest.mark.night
@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_a_wait_ends_in_its_own_time(control: Control, jump: Callable[[float], None], until, seconds: float) -> None:
    control.new("t", ("cat",))
    waiting = Command().start("wait", "t", "--text", "never", "--timeout", "2s")
    until(lambda: sleeps(waiting))
    jump(seconds)
    waiting.communicate(timeout=PATIENCE)
    assert waiting.returncode == 124


@pytest.mark.night
@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_commands_of_another_time_work(control: Control, jump: Callable[[float], None], seconds: float) -> None:
    """What one process wrote down with the one clock, another one reads with the other."""
    tmuxctl = Command()
    assert tmuxctl("new", "t", "--", "sh").reason == ""
    assert tmuxctl("ask", "t", "echo $((40+2))").said["answer"] == "42"
    jump(seconds)
    assert tmuxctl.states() == {"t": "idle"}
    assert tmuxctl("ask", "t", "echo $((40+3))").said["answer"] == "43"
    assert tmuxctl("exec", "t", "--", "echo 44").said["output"] == "44\n"
    assert tmuxctl("wait", "t").said["matched"] == "idle"
    assert tmuxctl("new", "u", "--", "cat").reason == ""
    assert tmuxctl("kill", "t", "u").reason == ""


def test_the_clock_of_these_tests_jumps(jump: Callable[[float], None]) -> None:
    code = "import time; print(time.time())"
    first = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
    jump(3600)
    second = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
    assert second - first > 3500
