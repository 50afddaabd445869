"""A folder of its own for what is measured: its own HOME, state and tmux server, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from tmuxctl.control import Control
from tools.processes import end_processes

HERE = Path(__file__).resolve().parent
TREE = HERE.parent
SOCKET = "measured"


class Row(NamedTuple):
    """One line of the table. `holds` is None where this machine does not let it be measured; `detail` is only printed."""

    what: str
    asked: str
    measured: str
    holds: bool | None
    detail: str = ""


def counted(what: str, wrong: Sequence[str], total: int) -> Row:
    """A row that asks for all of `total`; what was wrong is its detail."""
    asked, measured = f"{total} of {total}", f"{total - len(wrong)} of {total}"
    return Row(what, asked, measured, not wrong, "\n".join(wrong))


class Done(NamedTuple):
    """How one run of the command ended. `cpu` is user and system time in seconds, children included."""

    status: int
    stdout: bytes
    stderr: bytes
    elapsed: float
    cpu: float

    @property
    def error(self) -> dict[str, Any]:
        """The error object of the last line of standard error; empty if there is none."""
        with suppress(ValueError, IndexError, KeyError, TypeError):
            found = json.loads(self.stderr.splitlines()[-1])["error"]
            return dict(found)
        return {}


class Place:
    """Makes the folder, points the environment of this process at it, and takes everything back at the end."""

    def __init__(self) -> None:
        self.sockets = [SOCKET]
        self.mounted: list[Path] = []

    def __enter__(self) -> Place:
        self.folder = Path(tempfile.mkdtemp(prefix="tm-", dir="/tmp"))
        self.before, self.cwd = dict(os.environ), os.getcwd()
        for name in [name for name in os.environ if name.startswith(("TMUX", "XDG_", "PYTHONDONTWRITE"))]:
            del os.environ[name]
        for name in ("home", "state", "run", "work"):
            (self.folder / name).mkdir(mode=0o700)
        os.environ |= {
            "HOME": str(self.folder / "home"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "TMUX_TMPDIR": str(self.folder / "run"),
            "TMUXCTL_SOCKET": SOCKET,
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(TREE),
            "PATH": str(Path(sys.executable).parent) + ":" + self.before.get("PATH", os.defpath),
        }
        os.chdir(self.folder / "work")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for socket in self.sockets:
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True, timeout=10)
        end_processes(self.folder)
        os.chdir(self.cwd)
        os.environ.clear()
        os.environ.update(self.before)
        for mount in self.mounted:
            subprocess.run(["umount", str(mount)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def control(self) -> Control:
        """A service of this place that stays, as a server would hold it."""
        return Control(resident=True)

    def tmux(self, *words: str, socket: str = SOCKET) -> str:
        """What tmux itself says."""
        done = subprocess.run(["tmux", "-L", socket, *words], capture_output=True, text=True, timeout=20)
        return done.stdout

    def files_named(self, name: str) -> list[Path]:
        """Every file of this name here, and where a stray command would have made it: the server's folder and the tree."""
        found = [Path(top, name) for top, _, files in os.walk(self.folder) if name in files]
        return found + [path for path in (Path("/", name), Path("/tmp", name), TREE / name) if path.exists()]


def tmuxctl(*words: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
    """Run the command in a process of its own."""
    return process([sys.executable, "-m", "tmuxctl", *words], stdin=stdin, env=env)


def process(words: Sequence[str | bytes], *, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
    """Run a program to its end."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        began = time.perf_counter()
        child = subprocess.Popen(words, stdin=given, stdout=out, stderr=err, env=env)
        _, status, usage = os.wait4(child.pid, 0)
        elapsed = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Done(child.returncode, out.read(), err.read(), elapsed, usage.ru_utime + usage.ru_stime)


def interleaved(rounds: int, subjects: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The median of what each subject returns, all tried in turn in each round, each round beginning with another."""
    seen: dict[str, list[float]] = {name: [] for name in subjects}
    names = list(subjects)
    for number in range(rounds):
        for at in range(len(names)):
            name = names[(number + at) % len(names)]
            seen[name].append(subjects[name]())
    return {name: statistics.median(values) for name, values in seen.items()}


def timed(call: Callable[[], object]) -> Callable[[], float]:
    """A subject that returns how long the call took, in seconds."""

    def run() -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    return run


def until(condition: Callable[..., bool], seconds: float = 10.0, every: float = 0.01) -> bool:
    """Wait for a condition, tried `every` so many seconds; False if it did not come to hold."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True
