"""When something first stood on a session's screen: looked at every 20 ms through a connection of its own."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from contextlib import suppress

STEP = 0.02
"""Seconds between two looks."""

MARK = re.compile(r"FAKE-(?:BEGIN|END):[A-Za-z0-9_-]+(?:#[A-Za-z0-9_.-]+)?")


class Sampler:
    """Looks at one session's screen, and remembers when each of the model's marks was first on it.

    A client in control mode, attached to a session of its own: nobody is at the terminal that is looked at.
    """

    def __init__(self, socket: str, session: str) -> None:
        self.session = session
        self.seen: dict[str, float] = {}
        self.screen = ""
        self.looks = 0
        self.worst = 0.0
        """The longest time between two looks, in seconds."""
        self.changed = threading.Condition()
        self.ended = threading.Event()
        self.process = subprocess.Popen(
            [
                "tmux",
                "-L",
                socket,
                "-C",
                "new-session",
                "-s",
                f"sampler-{id(self)}",
                "-x",
                "20",
                "-y",
                "5",
                "sleep 86400",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with suppress(BrokenPipeError, ValueError, OSError):
            self._reply()  # to new-session
            last = time.monotonic()
            while not self.ended.wait(STEP) and self.process.stdin:
                self.process.stdin.write(f"capture-pane -p -J -t ={self.session}:\n")
                self.process.stdin.flush()
                text = self._reply()
                if text is None:
                    return
                self._note(text)
                now = time.monotonic()
                self.worst, last = max(self.worst, now - last), now

    def _reply(self) -> str | None:
        """The next command's output; None at the end."""
        assert self.process.stdout
        lines: list[str] | None = None
        for line in self.process.stdout:
            if lines is None:
                lines = [] if line.startswith("%begin") else None
            elif line.startswith(("%end", "%error")):
                return "".join(lines)
            else:
                lines.append(line)
        return None

    def _note(self, text: str) -> None:
        now = time.time()
        with self.changed:
            self.screen = text
            self.looks += 1
            for mark in MARK.findall(text):
                self.seen.setdefault(mark, now)
            self.changed.notify_all()

    def wait(self, mark: str, timeout: float) -> float | None:
        """When this mark was first on the screen, waited for at most so long."""
        with self.changed:
            self.changed.wait_for(lambda: mark in self.seen, timeout)
            return self.seen.get(mark)

    def settled(self, words: str, timeout: float) -> bool:
        """True once these words stand on the screen."""
        with self.changed:
            return self.changed.wait_for(lambda: words in self.screen, timeout)

    def close(self) -> None:
        self.ended.set()
        with suppress(OSError, subprocess.TimeoutExpired):
            assert self.process.stdin
            # the connection's own session goes with it
            self.process.stdin.write("kill-session\n")
            self.process.stdin.flush()
            self.process.wait(2.0)
        self.process.terminate()
        self.process.wait()
        self.thread.join(2.0)
