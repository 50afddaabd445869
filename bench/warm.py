"""A round trip in a process that stays: type, see the answer, take the screen; beside a bare pty and pexpect with pyte. And what
a turn costs there."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import statistics
import struct
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pexpect
import pyte
from place import Place, Row, interleaved, timed

ROUNDS = 100
BASH = ("bash", "--norc", "--noprofile")
COLS, ROWS = 80, 24
TYPED = b"echo m''ark"
ASKS, WARMING = 60, 5
ASKED = (("bash", ("bash",), b"echo hi", 3.25), ("python", ("python3", "-q"), b"1 + 1", 5.65))
"""Half of what a turn took before: 6.5 and 11.3 ms on a quiet machine."""


class Bare:
    """bash on a pty, nothing between."""

    def __init__(self) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "tmux-256color"
            os.execvp(BASH[0], BASH)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))

    def trip(self) -> None:
        os.write(self.terminal, TYPED + b"\r")
        seen = b""
        while b"mark\r\n" not in seen:
            seen += os.read(self.terminal, 65536)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Pexpect:
    """bash under pexpect, drawn by pyte."""

    def __init__(self) -> None:
        env = {**os.environ, "TERM": "tmux-256color"}
        self.child = pexpect.spawn(BASH[0], list(BASH[1:]), dimensions=(ROWS, COLS), env=env, timeout=10)
        self.child.delaybeforesend = None
        self.screen = pyte.Screen(COLS, ROWS)
        self.stream = pyte.ByteStream(self.screen)

    def trip(self) -> None:
        self.child.sendline(TYPED)
        self.child.expect(b"mark")
        # types-pexpect knows text only
        printed: Any = self.child.before
        self.stream.feed(printed + self.child.after)
        assert any("mark" in row for row in self.screen.display)

    def close(self) -> None:
        self.child.close(force=True)


def measure(place: Place) -> list[Row]:
    """The loop in one operation, and in three calls."""
    bare, expect = Bare(), Pexpect()
    with place.control() as control:
        control.new("warm", BASH, size=f"{COLS}x{ROWS}")

        def one() -> None:
            done = control.send("warm", TYPED, wait_text="mark", screen=True, timeout=10)
            assert done.wait is not None
            assert done.wait.matched == "text"
            assert done.screen is not None
            assert "mark" in done.screen.text

        def three(*, state: bool = False) -> None:
            control.send("warm", TYPED)
            assert control.wait("warm", text="mark", timeout=10).matched == "text"
            assert "mark" in control.screen("warm", state=state).text

        # a call finds the processor's caches as the one before it left them: `one` comes behind the smallest
        calls: dict[str, Callable[[], object]] = {
            "expect": expect.trip,
            "bare": bare.trip,
            "one": one,
            "three": three,
            "judged": partial(three, state=True),
        }
        try:
            for call in [*calls.values()] * 3:
                call()
            seen = interleaved(ROUNDS, {name: timed(call) for name, call in calls.items()})
        finally:
            bare.close()
            expect.close()
    bash, pyte = ("a bare pty", seen["bare"]), ("pexpect with pyte", seen["expect"])
    return [
        _row("one operation", seen["one"], *bash, 5.0),
        _row("one operation", seen["one"], *pyte, 0.8),
        _row("three calls", seen["three"], *bash, 7.0),
        _row("three calls, the screen with its state", seen["judged"], *bash, None),
    ]


def _row(how: str, ours: float, name: str, other: float, limit: float | None) -> Row:
    measured = f"{ours / other:.2f} x ({ours * 1000:.2f} ms, {other * 1000:.2f} ms; medians of {ROUNDS})"
    return Row(
        f"type, see it, take the screen in a warm process, {how}, beside {name}",
        "no limit" if limit is None else f"≤ {limit:.1f} x",
        measured,
        None if limit is None else ours <= limit * other,
    )


def asking(place: Place) -> list[Row]:
    """CPU of this process for one turn."""
    with place.control() as control:
        rows = []
        for name, command, text, limit in ASKED:
            control.new(name, command)
            spent = [_cpu(partial(control.ask, name, text, timeout=20)) for _ in range(ASKS)][WARMING:]
            cost = statistics.median(spent) * 1000
            told = f"{cost:.2f} ms (median of {len(spent)})"
            rows.append(Row(f"CPU of a warm `ask` of {name}", f"≤ {limit:g} ms", told, cost <= limit))
    return rows


def _cpu(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began
