"""A round trip in a process that stays: type, see the answer, take the screen; beside a bare pty and pexpect with pyte."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import termios
from contextlib import suppress
from typing import Any

import pexpect
import pyte
from place import Place, Row, interleaved, timed

ROUNDS = 100
BASH = ("bash", "--norc", "--noprofile")
COLS, ROWS = 120, 40
TYPED = b"echo m''ark"


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
    bare, expect = Bare(), Pexpect()
    with place.control() as control:
        control.new("warm", BASH, size=f"{COLS}x{ROWS}")

        def trip() -> None:
            control.send("warm", TYPED)
            assert control.wait("warm", text="mark", timeout=10).matched == "text"
            assert "mark" in control.screen("warm").text

        try:
            for one in (trip, bare.trip, expect.trip) * 3:
                one()
            seen = interleaved(ROUNDS, {"ours": timed(trip), "bare": timed(bare.trip), "pexpect": timed(expect.trip)})
        finally:
            bare.close()
            expect.close()
    ours = seen["ours"]
    return [_row(ours, seen["bare"], "a bare pty", 6.0), _row(ours, seen["pexpect"], "pexpect with pyte", 1.0)]


def _row(ours: float, other: float, name: str, limit: float) -> Row:
    measured = f"{ours / other:.2f} x ({ours * 1000:.2f} ms, {other * 1000:.2f} ms; medians of {ROUNDS})"
    return Row(
        f"type, see it, take the screen in a warm process, beside {name}",
        f"≤ {limit:.1f} x",
        measured,
        ours <= limit * other,
    )
