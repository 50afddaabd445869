"""Where the real programs are: installed once, and for every run a home, a work tree and a command of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# a work tree of its own may lie a folder deeper than the repository
SHARED = next((one / "shared" for one in ROOT.parents if (one / "shared/fake_llm").is_dir()), ROOT.parent / "shared")
CLIS = SHARED / "clis"
FAKE = SHARED / "fake_llm"

PROGRAMS = ("claude", "codex", "gemini", "aider")

NEEDS = (
    "install.sh and command.sh in {clis}, fake_llm.py in {fake}: the live suite drives real programs against that local "
    "model, and neither is a part of this repository"
)

RETRIES: dict[str, tuple[tuple[str, str], ...]] = {
    "claude": (("CLAUDE_CODE_MAX_RETRIES=1", "CLAUDE_CODE_MAX_RETRIES=4"),),
    "codex": (
        ("request_max_retries = 1", "request_max_retries = 4"),
        ("stream_max_retries = 1", "stream_max_retries = 2"),
    ),
}
"""What is changed in what command.sh seeds: a program that gives up after one attempt recovers from nothing."""


HOOKS_BY_PERSON = ("gemini",)
"""Programs that take no hooks for one session: a person has them installed into the program's own settings."""


class Missing(Exception):
    """Something the live suite needs is not there."""


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


def lab() -> Path:
    """The folder with the installed programs: $LAB, else one in the user's cache (Codex refuses a home in /tmp)."""
    given = os.environ.get("LAB")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "tmuxctl-lab"


def check() -> None:
    """Raise Missing unless the local model and the installer are there."""
    if not (CLIS / "install.sh").exists() or not (FAKE / "fake_llm.py").exists():
        raise Missing(NEEDS.format(clis=CLIS, fake=FAKE))


def executable(program: str) -> Path:
    """Where the installed program is, or would be."""
    if program == "aider":
        return lab() / "venv/aider/bin/aider"
    return lab() / "npm" / program / "node_modules/.bin" / program


def install(programs: Sequence[str], say: Callable[[str], None]) -> None:
    """Install what is not yet there, once, into a folder of its own: this alone needs the network."""
    for name in programs:
        if executable(name).exists():
            continue
        say(f"-- installing {name} into {lab()} (some minutes, once)")
        done = subprocess.run(
            ["bash", str(CLIS / "install.sh"), name],
            env={**os.environ, "LAB": str(lab())},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not executable(name).exists():
            raise Missing(f"{name} cannot be installed: {(done.stderr or done.stdout).strip()[-1000:]}")


def seeded(program: str, run: str, port: int) -> Place:
    """A fresh home and work tree for a program, and the script `NAME` that starts it against the model on this port."""
    own = lab() / "runs" / run
    own.mkdir(parents=True)
    for shared in ("npm", "venv"):
        (own / shared).symlink_to(lab() / shared)
    made = subprocess.run(
        ["bash", str(CLIS / "command.sh"), program],
        env={**os.environ, "LAB": str(own), "PORT": str(port)},
        capture_output=True,
        text=True,
        check=True,
    )
    script = Path(made.stdout.strip())
    patient(program, own, script)
    folder = own / "bin"
    folder.mkdir()
    wrapper = folder / program
    # the session's environment and the words behind the program's own reach it: that is how it gets its hooks
    command = re.sub(r"\benv -i\b", "env", script.read_text().rstrip("\n"), count=1)
    wrapper.write_text("#!/bin/sh\n" + re.sub(r" PATH=\S+", "", command, count=1) + ' "$@"\n')
    wrapper.chmod(0o755)
    return Place(program, own / "home" / program, own / "proj" / program, folder)


def patient(program: str, own: Path, script: Path) -> None:
    """Let the program try again as often as its makers let it, more than the once that command.sh asks for."""
    for path in (script, own / "home" / program / ".codex" / "config.toml"):
        if path.exists():
            text = path.read_text()
            for old, new in RETRIES.get(program, ()):
                text = text.replace(old, new)
            path.write_text(text)


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
