"""Turns that nothing tells the end of: they end all the same, and in time."""

from __future__ import annotations

from pathlib import Path

import pytest
from control.agent import Agent

from tmuxctl.control import Control
from tmuxctl.control.turns import turn
from tmuxctl.model import State

pytestmark = pytest.mark.on("tmux")

CLOCK = """\
#!/usr/bin/env python3
# A composer with a clock below it; what it is given it forgets without a word.
import os, threading, time, tty

tty.setraw(0)
text = b""

def draw():
    shown = text.replace(b"\\x1b[200~", b"").replace(b"\\x1b[201~", b"")
    below = b"\\xe2\\x94\\x80" * 20 + b"\\r\\n  %.1f" % time.monotonic()
    os.write(1, b"\\x1b[H\\x1b[J\\xe2\\x9d\\xaf " + shown + b"\\x1b7\\r\\n" + below + b"\\x1b8")

def tick():
    while True:
        draw()
        time.sleep(1)

os.write(1, b"\\x1b[?2004h")
threading.Thread(target=tick, daemon=True).start()
while True:
    text += os.read(0, 65536)
    text = b"" if text.endswith(b"\\r") else text
    draw()
"""


@pytest.fixture
def clock(control: Control, place: Path) -> Agent:
    program = place / "agent.py"
    program.write_text(CLOCK)
    program.chmod(0o755)
    return Agent(control, place, str(program)).start()


def test_a_turn_of_which_nothing_shows_ends_though_the_screen_moves_on(
    clock: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "UNSEEN_SECONDS", 3.0)
    found = clock.ask("/compact")
    assert (found.state, found.timed_out, found.submitted.ok) == (State.IDLE, False, True)
