"""For every run of a program a home, a work tree and a command of its own; and which of its processes are left."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .installing import executable, lab
from .programs import PROGRAMS, ROOT

BASE = {"LANG": "C.UTF-8", "SHELL": "/bin/bash"}
PATH = "/usr/local/bin:/usr/bin:/bin"

HOOKS_BY_PERSON = ("gemini",)
"""Programs that take no hooks for one session: a person has them installed into the program's own settings."""


class Place(NamedTuple):
    """One program made ready for one run: its home, its work tree, and the folder whose `NAME` starts it."""

    program: str
    home: Path
    work: Path
    bin: Path

    @property
    def plain(self) -> tuple[str, ...]:
        """The command that starts it but takes no words and no environment: its hooks are left out."""
        return ("sh", str(self.bin.parent / f"run-{self.program}.sh"))


def make_place(program: str, version: str, run: str, port: int) -> Place:
    """A fresh home and work tree for a program, and the script `NAME` that starts it against the model on this port."""
    own = lab() / "runs" / run
    home, work, folder = own / "home", own / "proj", own / "bin"
    for new in (home, work, folder):
        new.mkdir(parents=True)
    known = {"{url}": f"http://127.0.0.1:{port}", "{home}": str(home), "{work}": str(work)}
    setup = PROGRAMS[program].setup
    for name, text in setup.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fill_in(text, known))
    make_repository(work)
    environment = {"HOME": str(home), **BASE, **setup.environment}
    words = [f"{name}={fill_in(value, known)}" for name, value in environment.items()]
    more = setup.newest_words if version == "newest" else ()
    words += [str(executable(program, version)), *(fill_in(word, known) for word in (*setup.words, *more))]
    own_environment = f'env -i TERM="$TERM" TMUXCTL_SESSION="$TMUXCTL_SESSION" PATH={PATH}'
    (own / f"run-{program}.sh").write_text(
        f"cd {shlex.quote(str(work))} && exec {own_environment} {shlex.join(words)}\n"
    )
    wrapper = folder / program
    # the session's environment and the words behind the program's own reach it: that is how it gets its hooks
    wrapper.write_text(f'#!/bin/sh\ncd {shlex.quote(str(work))} && exec env {shlex.join(words)} "$@"\n')
    wrapper.chmod(0o755)
    return Place(program, home, work, folder)


def fill_in(text: str, known: Mapping[str, str]) -> str:
    """The text with what is known in the places named for it."""
    for name, value in known.items():
        text = text.replace(name, value)
    return text


def make_repository(work: Path) -> None:
    """A git repository with one commit: Aider offers to make one where there is none."""
    git = ["git", "-C", str(work), "-c", "user.email=a@b.c", "-c", "user.name=t"]
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "init"], check=True)


def install_hooks(place: Place) -> None:
    """Have the program tell of its turns by hooks in its settings, as a person does it, where that is the only way."""
    if place.program in HOOKS_BY_PERSON:
        words = [sys.executable, "-m", "tmuxctl", "-q", "hooks", "install", place.program]
        subprocess.run(words, env={**os.environ, "HOME": str(place.home)}, cwd=ROOT, check=True, capture_output=True)


def processes(place: Place) -> list[str]:
    """The living processes of a program's run, by the folder of its own in their environment or words: `PID COMMAND`."""
    mark = f"{place.bin.parent}/".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            about, words = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        # the player itself, and the tmux server it started, have the folder in their PATH only
        environment = b"\0".join(line for line in about.split(b"\0") if not line.startswith(b"PATH="))
        if words and int(folder.name) != os.getpid() and (mark in environment or mark in words):
            found.append(f"{folder.name} {words.replace(bytes(1), b' ').decode(errors='replace').strip()[:160]}")
    return found


def remove(place: Place) -> None:
    """Take away a run's home and work tree; the installed programs stay."""
    shutil.rmtree(place.bin.parent, ignore_errors=True)
