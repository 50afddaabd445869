"""Plays the conversations of examples/: each in an empty home, with the servers it asks for, again and again under load.

    python -m tools.examples                      every one once
    python -m tools.examples gdb ssh --times 20 --load 2

A script says what it needs in comments of its first lines: `# needs: gdb gcc` (programs), `# service: postgres` (a server,
found by its variables), `# root` (it has to be run by root). SSH_USER and SSH_PASSWORD are of whom sshd lets in.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tools.person import person
from tools.processes import busy_loops, end_processes
from tools.services import Running

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

PASSWORD = "Corr3ct-horse!"

PATIENCE = 300.0
"""Seconds one example may take."""

KEPT = re.compile("PATH|LANG|LC_.*|VIRTUAL_ENV|PYTHONDONTWRITEBYTECODE")
"""What an example has of the caller's environment."""


class Example(NamedTuple):
    """One script, and what its head says it needs."""

    path: Path
    needs: tuple[str, ...]
    service: str | None
    root: bool

    @property
    def name(self) -> str:
        """The file's name without `.sh`."""
        return self.path.stem

    def lacks(self) -> str | None:
        """What this machine has not got for it, or None."""
        missing = [name for name in self.needs if not shutil.which(name)]
        if missing:
            return f"{', '.join(missing)} not installed"
        return "only root can do this" if self.root and os.getuid() else None


class Played(NamedTuple):
    """How one play ended: its status (None: not in time), all that was printed, and how many seconds it took. With a
    session left behind it is none of success."""

    status: int | None
    output: str
    seconds: float
    left: str

    @property
    def ok(self) -> bool:
        """True if it did what it says, and cleaned up."""
        return self.status == 0 and not self.left


def examples(names: Sequence[str] = ()) -> list[Example]:
    """Those examples, or all."""
    paths = [EXAMPLES / f"{name}.sh" for name in names] or sorted(EXAMPLES.glob("*.sh"))
    return [_example(path) for path in paths]


def _example(path: Path) -> Example:
    head = path.read_text().partition("\nset ")[0]
    needs = re.findall(r"^# needs: (.+)$", head, re.MULTILINE)
    service = re.search(r"^# service: (\w+)$", head, re.MULTILINE)
    return Example(path, tuple(needs[0].split()) if needs else (), service and service[1], "\n# root" in head)


def play(one: Example) -> Played | None:
    """Run a script in a home and a folder of its own; None if its server cannot be started here."""
    with ExitStack() as stack:
        place = stack.enter_context(_place())
        user = f"tce{os.getpid()}"
        variables = dict(_environment(place))
        if one.service == "sshd":
            stack.enter_context(person(user, PASSWORD))
            variables |= {"SSH_USER": user, "SSH_PASSWORD": PASSWORD}
        if one.service:
            served = stack.enter_context(Running(place, user=user)).start(one.service)
            if served is None:
                return None
            variables |= served.environment
        began = time.monotonic()
        status, output = _run(one.path, place / "work", variables)
        listed = subprocess.run(["tmuxctl", "ls", "-q"], env=variables, capture_output=True, text=True, check=False)
        return Played(status, output, time.monotonic() - began, listed.stdout.strip())


def _run(script: Path, folder: Path, variables: dict[str, str]) -> tuple[int | None, str]:
    # a file, not a pipe: what the script leaves running may hold it open
    with (folder.parent / "output").open("wb") as output:
        running = subprocess.Popen(
            ["sh", str(script)], cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            status: int | None = running.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            status = None
            running.kill()
            running.wait()
    return status, (folder.parent / "output").read_text(errors="replace")


def _environment(place: Path) -> Iterator[tuple[str, str]]:
    yield from ((name, value) for name, value in os.environ.items() if KEPT.fullmatch(name))
    yield "PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name in ("HOME", "TMUX_TMPDIR", "TMPDIR"):
        yield name, str(place)
    yield from (("SHELL", "/bin/bash"), ("TERM", "xterm-256color"), ("USER", os.environ.get("USER", "root")))


@contextmanager
def _place() -> Iterator[Path]:
    """An empty home with a folder `work`, which servers of other users may enter; what was started in it is ended."""
    place = Path(tempfile.mkdtemp(prefix="tce-", dir="/tmp"))
    try:
        place.chmod(0o755)
        (place / "work").mkdir()
        yield place
    finally:
        end_processes(place)
        shutil.rmtree(place, ignore_errors=True)


def main() -> int:
    """Play them, print a line for each, and what went wrong; 1 if anything did."""
    parser = argparse.ArgumentParser(description="Play the conversations of examples/.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    parser.add_argument("--times", type=int, default=1, help="how often each, in a row")
    parser.add_argument("--load", type=int, default=0, help="so many processes compute meanwhile")
    given = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    wrong = 0
    with busy_loops(given.load):
        for one in examples(given.names):
            if lacks := one.lacks():
                print(f"{one.name:20} not played: {lacks}")
                continue
            played = [found for _ in range(given.times) if (found := _told(one))]
            good = sum(found.ok for found in played)
            wrong += good < given.times
            longest = max((found.seconds for found in played), default=0.0)
            print(f"{one.name:20} {good} of {given.times}, at most {longest:.1f} s", flush=True)
    return 1 if wrong else 0


def _stop(number: int, _frame: object) -> None:
    """Leave by a signal as by an error, so that everything is cleaned up; a second one does not hinder that."""
    for again in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(again, signal.SIG_IGN)
    sys.exit(128 + number)


def _told(one: Example) -> Played | None:
    found = play(one)
    if found and not found.ok:
        why = "did not end" if found.status is None else f"status {found.status}"
        print(f"--- {one.name}: {why}{f', left {found.left}' if found.left else ''}\n{found.output}---", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
