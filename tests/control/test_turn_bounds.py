"""Turns that nothing tells the end of: they end all the same, and in time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from control.agent import Agent

from tmuxctl.control import Control
from tmuxctl.model import State
from tmuxctl.timing import TIMING, Timing, TurnTiming

pytestmark = pytest.mark.on("tmux")

CLOCK = """\
#!/usr/bin/env python3
# A composer with a clock below it; what it is given it forgets without a word, or answers at once if told how.
import os, sys, threading, time, tty

tty.setraw(0)
PROMPT = b"\\xe2\\x9d\\xaf "
text, printed = b"", []

def bare():
    return text.replace(b"\\x1b[200~", b"").replace(b"\\x1b[201~", b"").rstrip(b"\\r")

def draw():
    rows = [*printed, PROMPT + bare() + b"\\x1b7", b"\\xe2\\x94\\x80" * 20, b"  %.1f" % time.monotonic()]
    os.write(1, b"\\x1b[H" + b"\\x1b[K\\r\\n".join(rows) + b"\\x1b[K\\x1b8")

def tick():
    while True:
        draw()
        time.sleep(1)

os.write(1, b"\\x1b[?2004h")
threading.Thread(target=tick, daemon=True).start()
while True:
    text += os.read(0, 65536)
    if text.endswith(b"\\r"):
        printed = [PROMPT + bare(), *(word.encode() for word in sys.argv[1:])] if sys.argv[1:] else []
        text = b""
    draw()
"""


@pytest.fixture
def clock(control: Control, place: Path) -> Agent:
    program = place / "agent.py"
    program.write_text(CLOCK)
    program.chmod(0o755)
    return Agent(control, place, str(program))


@pytest.mark.night
def test_a_turn_of_which_nothing_shows_ends_though_the_screen_moves_on(
    clock: Agent, another: Callable[..., Control]
) -> None:
    clock.control = another(timing=Timing(turn=TurnTiming(unseen_seconds=3.0)))
    found = clock.start().ask("/compact")
    assert (found.state, found.timed_out, found.submitted.ok) == (State.IDLE, False, True)


def test_a_quick_answer_ends_the_turn_where_no_sign_tells_that_it_is_one(clock: Agent) -> None:
    clock.start("hello", changed={"answer": "{until: '^(?:❯|─{10,})'}"})
    # in less time than a program may go on printing of which nothing else shows
    found = clock.ask("greet me", timeout=TIMING.turn.unseen_seconds - 1.0)
    assert (found.answer, found.state, found.timed_out) == ("hello", State.IDLE, False)
