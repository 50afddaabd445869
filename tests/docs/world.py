"""A reader's machine for one section of a page: an empty home, a folder, a shell, and a terminal for what needs one."""

from __future__ import annotations

import json
import os
import re
import selectors
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from docs.pages import COMMENT

SHELL = """
_status=0
while IFS= read -r _step; do
    (exit "$_status")
    . "$_step" </dev/null >"$_step.out" 2>&1
    _status=$?
    echo "$_status"
done
"""
"""Does each file it is told of as if it had been typed, and says with which status it ended."""

PATIENCE = 60.0
"""Seconds that one command may take."""


class Left(NamedTuple):
    """How a person leaves a command that has the terminal: by these keys, once it draws the whole screen, or printed.

    `statuses` are what it may end with then: no failure.
    """

    keys: tuple[str, ...]
    full_screen: bool = True
    statuses: tuple[int, ...] = (0,)


AT_TERMINAL: Mapping[str, Left] = {
    "tmuxctl attach ": Left(("C-b", "d")),
    "tmuxctl top": Left(("q",)),
    "tmuxctl play ": Left(("q",)),
    "tmuxctl status --follow": Left(("C-c",), full_screen=False, statuses=(130,)),
    "tmuxctl machine events thathost --follow": Left(("C-c",), full_screen=False, statuses=(130,)),
    "tmuxctl watch": Left(("C-c",), full_screen=False, statuses=(130,)),
    "tmuxctl serve": Left(("C-c",), full_screen=False),
    # what it prints may be seen before the process has become nats-server
    "tmuxctl gateway up": Left(("C-c",), full_screen=False, statuses=(0, 130)),
    "tmuxctl gateway pair": Left(("C-c",), full_screen=False, statuses=(130,)),
}
"""What is typed at a terminal, unless its output goes elsewhere, and how it is left."""

LOOK = ("display-message", "-p", "#{alternate_on}", ";", "capture-pane", "-p", "-J")
"""Whether a program draws the whole screen, and the screen."""


class Ran(NamedTuple):
    """A command's status, None if it did not end, and all that it printed."""

    status: int | None
    output: str


class World:
    """A machine for one section. It is in `place`, whose owner ends what goes on in it."""

    def __init__(self, place: Path) -> None:
        self.place, self.home, self.numbers = place, place / "home", iter(range(1, 10_000))
        self.here = self.home / "work"
        for folder in (self.here, place / "steps"):
            folder.mkdir(parents=True)
        self.environment = _environment(self.home)
        pipe = subprocess.PIPE
        self.shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", SHELL], cwd=self.here, env=self.environment, stdin=pipe, stdout=pipe
        )

    def close(self) -> None:
        """End the shell; what it started goes on."""
        self.shell.kill()
        self.shell.communicate()

    def run(self, command: str, seen: Callable[[str], bool] = bool) -> Ran:
        """Type a command and wait for its end: into the shell, or at a terminal if it is one for a person.

        A terminal is left once what it shows is to be `seen`.
        """
        for beginning, left in AT_TERMINAL.items():
            if (
                command.startswith(beginning)
                and not re.search("--once|--show-token", command)
                and not re.search("[|>&;\n]", COMMENT.sub("", command))
            ):
                return self._run_at_terminal(command, left, seen)
        return self._run(command)

    def set(self, variables: Mapping[str, str]) -> None:
        """Export variables, as the machine of a reader has them."""
        for name, value in variables.items():
            self._run(f"export {name}={shlex.quote(value)}")

    def file(self, name: str, text: str) -> Path:
        """A file beside those of the section, as a reader would have saved it."""
        path = self.place / "steps" / str(next(self.numbers)) / name
        path.parent.mkdir()
        path.write_text(text + "\n")
        return path

    def path(self, written: str) -> Path:
        """The path that is meant by one in a page."""
        return self.here / written.replace("~", str(self.home), 1)

    def screens(self) -> Iterator[str]:
        """The screens of all sessions, for a person who asks what went wrong."""
        listed = self._ask("tmuxctl", "ls", "--json")
        for one in json.loads(listed).get("sessions", ()) if listed.startswith("{") else ():
            yield f"--- {one['name']} {one['state']}: {one['argv']}\n{self._ask('tmuxctl', 'screen', one['name'])}"

    def _ask(self, *words: str) -> str:
        asked = subprocess.run(
            words, cwd=self.here, env=self.environment, capture_output=True, text=True, errors="replace", check=False
        )
        return (asked.stdout or asked.stderr).rstrip()

    def _run(self, command: str) -> Ran:
        step = self.file("step", command)
        assert self.shell.stdin
        assert self.shell.stdout
        self.shell.stdin.write(f"{step}\n".encode())
        self.shell.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.shell.stdout, selectors.EVENT_READ)
            said = self.shell.stdout.readline() if selector.select(PATIENCE) else b""
        output = Path(f"{step}.out")
        return Ran(int(said) if said else None, output.read_text(errors="replace") if output.exists() else "")

    def _run_at_terminal(self, command: str, left: Left, seen: Callable[[str], bool]) -> Ran:
        """Typed at a terminal; once all that is to be seen is there, the keys are pressed with which a person leaves."""
        step = self.file("step", command)
        assert self.shell.stdin
        assert self.shell.stdout
        status, tmux = Path(f"{step}.status"), ("tmux", "-L", f"person-{step.parent.name}", "-f", "/dev/null")
        # a key that interrupts the command reaches this shell too
        typed = f"trap : INT; . {step}; echo $? >{status}"
        self._run(f"{shlex.join(tmux)} new-session -d -x 120 -y 40 bash --norc -c {shlex.quote(typed)}")
        shown, left_it, deadline = "", False, time.monotonic() + PATIENCE
        while not _said(status) and time.monotonic() < deadline:
            drawn, _, text = self._ask(*tmux, *LOOK).partition("\n")
            if not left_it and text.strip() and (drawn == "1" or not left.full_screen):
                shown, left_it = text, seen(text) or time.monotonic() > deadline - PATIENCE / 2
            if left_it:
                self._ask(*tmux, "send-keys", *left.keys)
            time.sleep(0.05)
        self._ask(*tmux, "kill-server")
        ended = int(_said(status)) if _said(status) else None
        return Ran(0 if left_it and ended in left.statuses else ended, shown)


def _said(status: Path) -> str:
    return status.read_text().strip() if status.exists() else ""


def _environment(home: Path) -> dict[str, str]:
    """What a reader's shell has, with the installed command first; the server's socket is in a folder of its own."""
    gone = ("TMUXCTL_SOCKET", "TMUXCTL_TIMEOUT", "XDG_STATE_HOME", "PS1", "TMUX", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if name not in gone and not name.startswith("PYTEST")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    runtime = home.parent / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    own = {"HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
    return {**kept, **own, "PATH": path, "SHELL": "/bin/bash", "TERM": "xterm-256color"}
