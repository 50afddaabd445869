"""The four tools as such: each starts a program, types, and shows its screen. How they are asked is in recipes.py."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Protocol

import libtmux
import pexpect
import pyte
from place import until

from tmuxctl.control import Control

COLS, ROWS = 120, 40
SOCKETS = ("raw", "libtmux")
"""The tmux servers of the two that do not bring their own."""


class Tool(Protocol):
    """A program on a terminal."""

    enter: bytes
    """What its Enter types."""

    def start(self, name: str, command: tuple[str, ...], folder: Path) -> None: ...

    def join(self, name: str) -> None:
        """Find the program that another process started; RuntimeError if that cannot be done."""

    def type(self, text: bytes, *, enter: bool = True) -> None:
        """Type the text; raises whatever says that it was not typed."""

    def screen(self) -> str:
        """What is there now, as text."""

    def output(self) -> str:
        """All that is kept of what was printed, as text."""

    def close(self) -> None: ...


class Tmux:
    """tmux itself, one process a call."""

    enter = b"\r"

    def __init__(self, one_list: bool = False) -> None:
        self.one_list = one_list

    def run(self, *words: str | bytes, stdin: bytes | None = None) -> str:
        """What tmux says; RuntimeError if it failed."""
        done = subprocess.run(["tmux", "-L", "raw", *words], input=stdin, capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode(errors="replace")

    def start(self, name: str, command: tuple[str, ...], folder: Path) -> None:
        self.join(name)
        size = ("-x", str(COLS), "-y", str(ROWS))
        self.run("new-session", "-d", "-s", name, *size, "-c", str(folder), *command)

    def join(self, name: str) -> None:
        self.target = f"={name}:"

    def type(self, text: bytes, *, enter: bool = True) -> None:
        """Text and Enter, as two calls (what is found everywhere) or as one list."""
        words: list[str | bytes] = ["send-keys", "-t", self.target, "-l", "--", text]
        press = ["send-keys", "-t", self.target, "Enter"]
        if enter and self.one_list:
            self.run(*words, ";", *press)
            return
        self.run(*words)
        if enter:
            self.run(*press)

    def paste(self, text: bytes) -> None:
        """The other way to type: through a buffer, which must not be empty."""
        if not text:
            return
        self.run("load-buffer", "-b", "typed", "-", stdin=text)
        self.run("paste-buffer", "-d", "-r", "-b", "typed", "-t", self.target)

    def screen(self) -> str:
        return self.run("capture-pane", "-p", "-t", self.target)

    def output(self) -> str:
        return self.run("capture-pane", "-p", "-J", "-S", "-", "-t", self.target)

    def close(self) -> None:
        self.run("kill-session", "-t", self.target)


class Libtmux:
    """libtmux's own calls."""

    enter = b"\r"

    def __init__(self) -> None:
        self.server = libtmux.Server(socket_name="libtmux")

    def start(self, name: str, command: tuple[str, ...], folder: Path) -> None:
        session = self.server.new_session(
            name, x=COLS, y=ROWS, start_directory=folder, window_command=shlex.join(command)
        )
        self.pane = _active_pane(session)

    def join(self, name: str) -> None:
        self.pane = _active_pane(self.server.sessions.get(session_name=name))

    def type(self, text: bytes, *, enter: bool = True) -> None:
        self.pane.send_keys(os.fsdecode(text), literal=True, enter=enter)

    def paste(self, text: bytes) -> None:
        """The other way to type: through a file and a buffer, which must not be empty."""
        if not text:
            return
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            self.server.load_buffer(file.name, buffer_name="typed")
        self.pane.paste_buffer(buffer_name="typed", delete_after=True, linefeed_separator=True)

    def screen(self) -> str:
        return "\n".join(self.pane.capture_pane())

    def output(self) -> str:
        return "\n".join(self.pane.capture_pane(start="-", join_wrapped=True))

    def close(self) -> None:
        self.pane.session.kill()


class Pexpect:
    """pexpect, with pyte where a screen is wanted."""

    enter = b"\n"

    def start(self, name: str, command: tuple[str, ...], folder: Path) -> None:
        self.child = pexpect.spawn(command[0], list(command[1:]), cwd=folder, dimensions=(ROWS, COLS), timeout=10)
        self.drawn = pyte.Screen(COLS, ROWS)
        self.stream = pyte.ByteStream(self.drawn)

    def join(self, name: str) -> None:
        raise RuntimeError("its terminal belongs to the process that started it")

    def type(self, text: bytes, *, enter: bool = True) -> None:
        (self.child.sendline if enter else self.child.send)(text)

    def screen(self) -> str:
        """What is there now, drawn."""
        try:
            while True:
                # types-pexpect knows text only
                printed: Any = self.child.read_nonblocking(65536, 0)
                self.stream.feed(printed)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return "\n".join(self.drawn.display)

    output = screen

    def close(self) -> None:
        self.child.close(force=True)


class Tmuxctl:
    """tmuxctl from Python, in a process that stays."""

    enter = b"\r"

    def __init__(self, control: Control) -> None:
        self.control = control

    def start(self, name: str, command: tuple[str, ...], folder: Path) -> None:
        self.name = name
        self.control.new(name, command, cwd=str(folder), size=f"{COLS}x{ROWS}")

    def join(self, name: str) -> None:
        self.name = name

    def type(self, text: bytes, *, enter: bool = True) -> None:
        self.control.send(self.name, text, enter=enter, multiline=True)

    def screen(self) -> str:
        return self.control.screen(self.name).text

    def output(self) -> str:
        return self.control.read(self.name).text

    def close(self) -> None:
        self.control.kill((self.name,))


def _active_pane(session: libtmux.Session | None) -> libtmux.Pane:
    assert session
    assert session.active_pane
    return session.active_pane


def shows(tool: Tool, text: str, seconds: float = 20.0) -> bool:
    """Wait until the text stands on the screen."""
    return until(lambda: text in tool.screen(), seconds, 0.02)
