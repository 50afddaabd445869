"""A recording played on this terminal. What is drawn are its screens, never the bytes of the recording: a file from elsewhere
may hold sequences that do more than draw."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from tmuxctl.control.recordings import frames
from tmuxctl.control.recordings.recording import Recording, pace
from tmuxctl.surfaces.cli.printing.output import clean
from tmuxctl.surfaces.cli.top.terminal import Terminal
from tmuxctl.terminal.picture.film import Frame
from tmuxctl.terminal.picture.replay import EMPTY, format_row
from tmuxctl.timing import TIMING

KEYS = "space pauses  . next  +/- speed  q quits"
FASTEST, SLOWEST = 100.0, 0.1


class Player:
    """Plays frames on a terminal; `speed` times as fast as they came."""

    def __init__(
        self, terminal: Terminal, recording: Recording, *, speed: float, idle_limit: float | None, colors: bool
    ) -> None:
        self.terminal, self.speed, self.colors = terminal, speed, colors
        self.frames: Iterator[Frame] = frames.list_frames(recording, pace(recording.events(), idle_limit=idle_limit))
        self.paused = False
        self.at = 0.0
        self.rows: list[str] = []
        self.marker = ""

    def run(self) -> None:
        """Play to the end, or until somebody quits; the last screen stays until a key is pressed."""
        for frame in self.frames:
            if not self._wait_for(frame.at):
                return
            self.marker = frame.marker or self.marker
            self._show(frame)
        self.paused = True
        self._show_line("end  ")
        while not self.terminal.pressed():
            pass

    def _wait_for(self, moment: float) -> bool:
        """Let the time pass until a moment of the recording; False if somebody quits."""
        before = time.monotonic()
        while self.at < moment or self.paused:
            left = (
                TIMING.page.clock_seconds
                if self.paused
                else min(TIMING.page.clock_seconds, (moment - self.at) / self.speed)
            )
            keys = self.terminal.pressed(max(0.0, left))
            now = time.monotonic()
            if not self.paused:
                self.at = min(moment, self.at + (now - before) * self.speed)
            before = now
            for key in keys:
                if key in ("q", "escape"):
                    return False
                if key == " ":
                    self.paused = not self.paused
                elif key == ".":
                    self.at = moment
                    self.paused = True
                    return True
                elif key in "+=":
                    self.speed = min(FASTEST, self.speed * 1.5)
                elif key == "-":
                    self.speed = max(SLOWEST, self.speed / 1.5)
            self._show_line("")
        return True

    def _show(self, frame: Frame) -> None:
        columns, lines = self.terminal.size
        rows = frame.rows[: lines - 1]
        plain = EMPTY._replace
        shown = rows if self.colors else [[plain(text=cell.text, width=cell.width) for cell in row] for row in rows]
        self.rows = [format_row(row, columns) for row in shown]
        self._show_line("")

    def _show_line(self, word: str) -> None:
        columns, lines = self.terminal.size
        blank = [""] * (lines - 1 - len(self.rows))
        clock = f"{int(self.at) // 60}:{int(self.at) % 60:02}"
        state = word or ("paused  " if self.paused else "")
        speed = "" if self.speed == 1 else f"{self.speed:.3g}x  "
        marker = f"{clean(self.marker)}  " if self.marker else ""
        self.terminal.show([*self.rows[: lines - 1], *blank, f"{state}{clock}  {speed}{marker}{KEYS}"[: columns - 1]])


def play(recording: Recording, *, speed: float, idle_limit: float | None, colors: bool) -> None:
    """Play a recording on the terminal of standard input and output."""
    with suppress(EOFError), Terminal(colors=colors) as terminal:
        Player(terminal, recording, speed=speed, idle_limit=idle_limit, colors=colors).run()
