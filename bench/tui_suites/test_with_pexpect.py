"""The same tests as test_with_tmuxctl.py, by pexpect, with pyte for the screen."""

from __future__ import annotations

import os
import re
import time
from typing import Any

import pexpect
import pyte
import pytest
from cases import CASES, MENU, SEQUENCES, Case


class Terminal:
    """A program on a pty, and what it drew."""

    def __init__(self) -> None:
        # curses believes these rather than the terminal
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        env = {**kept, "TERM": "tmux-256color"}
        self.child = pexpect.spawn(MENU[0], MENU[1:], dimensions=(12, 60), env=env, timeout=5)
        self.child.delaybeforesend = None
        self.screen = pyte.Screen(60, 12)
        self.stream = pyte.ByteStream(self.screen)

    def wait_for(self, pattern: str) -> None:
        deadline = time.monotonic() + 5
        while not re.search(pattern, "\n".join(self.screen.display)):
            assert time.monotonic() < deadline, "\n".join(self.screen.display)
            try:
                # types-pexpect knows text only
                printed: Any = self.child.read_nonblocking(65536, timeout=0.5)
                self.stream.feed(printed)
            except pexpect.TIMEOUT:
                continue


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_menu(case: Case) -> None:
    app = Terminal()
    app.wait_for("Settings")
    for key in case.keys:
        app.child.send(SEQUENCES[key])
    app.wait_for(case.shown)
    app.child.send("q")
    app.child.expect(pexpect.EOF)
    app.child.close()
    assert app.child.exitstatus == 0
