"""tmuxctl as a command, run from wherever the fault is, and what there is to see of what it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from programs import HERE

from tmuxctl.model import Session

PATIENCE = 60.0
"""Seconds after which a command that should have said something is taken to hang."""


class Done(NamedTuple):
    """How a command ended: its exit status, what it printed, and how long it took."""

    status: int
    output: str
    errors: str
    seconds: float

    @property
    def said(self) -> dict[str, Any]:
        """The object it printed."""
        return dict(json.loads(self.output))

    @property
    def reason(self) -> str:
        """Why it failed, as its error object says; empty if it did not fail."""
        assert "Traceback" not in self.errors, self.errors
        if self.status == 0:
            return ""
        return str(json.loads(self.errors.splitlines()[-1])["error"]["reason"])


class Command:
    """`tmuxctl --json WORD...`, or as a person would give it (`plain`), by this Python, behind the words that bring it into
    a place (`nsenter`, `prlimit`)."""

    def __init__(self, *behind: str, plain: bool = False) -> None:
        self.behind, self.form = behind, () if plain else ("--json",)

    def argv(self, *words: str) -> list[str]:
        return [*self.behind, sys.executable, "-m", "tmuxctl", *self.form, *words]

    def __call__(self, *words: str, patience: float = PATIENCE) -> Done:
        began = time.monotonic()
        done = subprocess.run(self.argv(*words), capture_output=True, timeout=patience, stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode(), seconds)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The command, running."""
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(self.argv(*words), **pipes)

    def states(self) -> dict[str, str]:
        """Every session's state, as `ls` says."""
        done = self("ls")
        assert done.reason == ""
        return {one["name"]: one["state"] for one in done.said["sessions"]}


def sleeps(process: subprocess.Popen[str]) -> bool:
    """True once a command sleeps until something happens."""
    folder = Path(f"/proc/{process.pid}/fd")
    with suppress(OSError):
        return any("inotify" in os.readlink(one) for one in folder.iterdir())
    return False


def allow_sessions(place: Path, number: int) -> None:
    """Let the settings be no reason to refuse a session."""
    folder = place / ".config" / "tmuxctl"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f"[limits]\nsessions = {number}\n")


def crowd(number: int, *behind: str) -> tuple[int, str]:
    """How many sessions, at most `number`, could be created behind these words, and why no more."""
    done = subprocess.run(
        [*behind, sys.executable, str(HERE / "crowd.py"), str(number)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    return said["made"], said["reason"]


def marked(place: Path) -> dict[int, str]:
    """The living processes of sessions whose home is this place, and the ids of those sessions."""
    found: dict[int, str] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"HOME={place}".encode() in environment:
            mine = [one for one in environment if one.startswith(b"TMUXCTL_SESSION=")]
            found |= {int(name): one.decode().partition("=")[2] for one in mine}
    return found


def living(sessions: Iterable[Session]) -> list[str]:
    """The names of the sessions whose program runs."""
    return [one.name for one in sessions if one.state not in ("exited", "lost")]
