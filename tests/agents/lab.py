"""For every run of a program a home, a work tree and a command of its own; and which of its processes are left."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .programs import CLIS, PROGRAMS, ROOT, executable, lab, prefix

RETRIES: dict[str, tuple[tuple[str, str], ...]] = {
    "claude": (("CLAUDE_CODE_MAX_RETRIES=1", "CLAUDE_CODE_MAX_RETRIES=4"),),
    "codex": (
        ("request_max_retries = 1", "request_max_retries = 4"),
        ("stream_max_retries = 1", "stream_max_retries = 2"),
    ),
}
"""What is changed in what command.sh seeds: a program that gives up after one attempt recovers from nothing."""

SEEDED = {"codex": ".codex/config.toml"}
"""Where that stands in a program's home, if not in its command."""


NEWEST = {"claude": ((".bin/claude", ".bin/claude --permission-mode manual"),)}
"""What is changed where the newest version is started: Claude Code 2.1.330 starts in a mode that asks before no command."""


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


def seeded(program: str, version: str, run: str, port: int) -> Place:
    """A fresh home and work tree for a program, and the script `NAME` that starts it against the model on this port."""
    own = lab() / "runs" / run
    own.mkdir(parents=True)
    if PROGRAMS[program].guest:
        return _guest(program, version, own, port)
    for shared in ("npm", "venv"):
        (own / shared).symlink_to(prefix(version) / shared)
    made = subprocess.run(
        ["bash", str(CLIS / "command.sh"), program],
        env={**os.environ, "LAB": str(own), "PORT": str(port)},
        capture_output=True,
        text=True,
        check=True,
    )
    script = Path(made.stdout.strip())
    patient(program, own, script)
    if version == "newest":
        script.write_text(replaced(script.read_text(), NEWEST.get(program, ())))
    folder = own / "bin"
    folder.mkdir()
    wrapper = folder / program
    # the session's environment and the words behind the program's own reach it: that is how it gets its hooks
    command = re.sub(r"\benv -i\b", "env", script.read_text().rstrip("\n"), count=1)
    wrapper.write_text("#!/bin/sh\n" + re.sub(r" PATH=\S+", "", command, count=1) + ' "$@"\n')
    wrapper.chmod(0o755)
    return Place(program, own / "home" / program, own / "proj" / program, folder)


def _guest(program: str, version: str, own: Path, port: int) -> Place:
    """The same for a program without a shipped profile: what its profile gives it of an environment does reach it."""
    guest = PROGRAMS[program].guest
    assert guest
    home, work, folder = own / "home", own / "proj", own / "bin"
    for one in (home, work, folder):
        one.mkdir()
    known = {"{url}": f"http://127.0.0.1:{port}", "{home}": str(home)}

    def filled(text: str) -> str:
        for name, value in known.items():
            text = text.replace(name, value)
        return text

    for name, text in guest.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(filled(text))
    git = ["git", "-C", str(work), "-c", "user.email=a@b.c", "-c", "user.name=t"]
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "init"], check=True)
    environment = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/bash", **guest.environment}
    words = [f"{name}={value}" for name, value in environment.items()]
    words += [str(executable(program, version)), *map(filled, guest.words)]
    script = own / f"run-{program}.sh"
    script.write_text(f"cd {shlex.quote(str(work))} && exec env -u TMUXCTL_EVENTS {shlex.join(words)}\n")
    wrapper = folder / program
    wrapper.write_text(f'#!/bin/sh\nexec env {shlex.join(words)} "$@"\n')
    wrapper.chmod(0o755)
    return Place(program, home, work, folder)


def patient(program: str, own: Path, script: Path) -> None:
    """Let the program try again as often as its makers let it, more than the once that command.sh asks for."""
    path = own / "home" / program / SEEDED[program] if program in SEEDED else script
    path.write_text(replaced(path.read_text(), RETRIES.get(program, ())))


def replaced(text: str, changes: Sequence[tuple[str, str]]) -> str:
    """The text with the first of each pair replaced by the second."""
    for old, new in changes:
        text = text.replace(old, new)
    return text


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
