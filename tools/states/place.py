"""What scenarios need of a machine: a folder with their files, the programs, a user; and which of it is missing."""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tools.person import person
from tools.processes import end_processes
from tools.services import SYSTEM_PATH, Running
from tools.states import scenarios

ROOT = Path(__file__).resolve().parents[2]

PROGRAMS = (
    "apt-get bash curl dash dialog expect fish gdb git htop irb less lua5.4 man nano node passwd psql python3 redis-cli"
    " runuser script sqlite3 ssh su sudo tmux vim watch whiptail zsh"
)
"""Programs that a scenario may name anywhere in what is run or typed."""

USER, PASSWORD = "idleu", "secret123"
"""The ordinary user whom scenarios name."""

PORTS = {"sshd": 22099, "postgres": 54399, "redis": 63799, "hang": 18099}
"""The servers whose ports scenarios name."""

LIBRARIES = "IPython, textual, tqdm, prompt_toolkit, questionary"


@contextmanager
def alone() -> Iterator[None]:
    """Waits until no other run of this user's is on this machine: the ports and the user are the same for all."""
    path = f"/tmp/tmuxctl-states-{os.getuid()}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("-- waiting for another run to end", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def place(fixtures: Mapping[str, str]) -> Iterator[Path]:
    """A folder for a run that every user may enter, with the fixtures in `fixtures/`; removed behind it."""
    folder = Path(tempfile.mkdtemp(prefix="tcs-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        (folder / "fixtures").mkdir()
        for name, text in fixtures.items():
            (folder / "fixtures" / name).write_text(text)
        (folder / "work").mkdir()
        (folder / "work").chmod(0o1777)
        yield folder
    finally:
        # what scenarios left behind
        end_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def machine_behind_ssh(folder: Path) -> Iterator[tuple[str, ...]]:
    """This machine behind an sshd of its own, with no Python in the PATH there: the words that run a command on it."""
    sys.path.insert(0, str(ROOT / "tests"))
    from machines.ssh_server import SshServer, configure_ssh, end_all

    server = SshServer(folder, "far")
    configure_ssh(folder, [server])
    try:
        yield (str(folder / "bin/ssh"), "-T", "-o", "BatchMode=yes", server.name)
    finally:
        end_all(folder)


def user() -> AbstractContextManager[bool]:
    """The ordinary user, made if root may and removed behind it; gives whether there is one."""
    return person(USER, PASSWORD)


def environment(name: str | None) -> dict[str, str]:
    """What a scenario's player has in its environment, as that user or (None) as who we are."""
    there = pwd.getpwnam(name) if name else pwd.getpwuid(os.getuid())
    known = {key: os.environ[key] for key in ("LANG", "LC_ALL") if key in os.environ}
    about = {"USER": there.pw_name, "LOGNAME": there.pw_name, "SHELL": "/bin/bash", "PATH": SYSTEM_PATH}
    own = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "TMUXCTL_SOCKET": "s"}
    return {"LANG": "C.UTF-8", **known, **about, **own}


def placeholders(
    folder: Path, number: int, name: str | None, *, python: str | None = None, modules: str | None = None
) -> dict[str, str | None]:
    """What stands for what in a scenario that is played as that user or (None) as who we are; None for what is not here.

    `python` is one that has the libraries, `modules` a folder whose node_modules has them for node.
    """
    return {
        "F": str(folder / "fixtures"),
        "S": str(folder / "services"),
        "N": modules,
        "V": python or libraries_python(),
        "P313": new_python(own=name is None),
        "ID": f"{os.getpid()}-{number}",
    }


@cache
def libraries_python() -> str | None:
    """A Python that has the libraries which scenarios use, or None."""
    for path in (ROOT / ".venv/states/bin/python", Path(sys.executable)):
        if path.exists() and not subprocess.run([path, "-c", f"import {LIBRARIES}"], capture_output=True).returncode:
            return str(path)
    return None


@cache
def new_python(*, own: bool) -> str | None:
    """A Python of 3.13 or later, or None; `own`: one in our home will do, which is closed to others."""
    names = [name for minor in (15, 14, 13) if (name := shutil.which(f"python3.{minor}", path=SYSTEM_PATH))]
    kept = sorted(Path.home().glob(".pyenv/versions/3.1[3-9].*/bin/python3"))
    return next(iter([*names, *(map(str, kept) if own else ())]), None)


class Missing:
    """Says what a scenario lacks on this machine; starts the servers it needs."""

    def __init__(
        self,
        running: Running,
        *,
        has_user: bool,
        player: str,
        services: Mapping[str, Mapping[str, str]] | None = None,
        places: Mapping[str, str | None] | None = None,
    ) -> None:
        self.running, self.has_user, self.player = running, has_user, player
        self._told, self._places = services or {}, places or {}
        self._servers: dict[str, bool] = {}

    def of(self, written: Mapping[str, Any], places: Mapping[str, str | None]) -> list[str]:
        """What is not here, in words; empty if the scenario can be played."""
        text = scenarios.texts([written["run"], written["steps"], written.get("env", {}), written.get("setup", "")])
        words = set(re.findall(r"[\w.+-]+", text))
        lacks = [name for name in PROGRAMS.split() if name in words and not shutil.which(name, path=SYSTEM_PATH)]
        lacks += [name for name in written.get("needs", ()) if not _installed(name) and name not in lacks]
        first = str(written["run"]).split()[0]
        # what begins with a dot is made by the scenario's own setup
        if not first.startswith(("{", "./")) and not shutil.which(first, path=SYSTEM_PATH) and first not in lacks:
            lacks.append(first)
        if "{N}" in text and places["N"] is None:
            lacks.append("a folder with node_modules")
        if "{V}" in text and places["V"] is None:
            lacks.append(f"a Python with {LIBRARIES}")
        if "{P313}" in text and places["P313"] is None:
            lacks.append("a Python of 3.13 or later")
        if USER in words and not self.has_user:
            lacks.append(f"the user {USER}")
        if first in ("runuser", "apt-get") and self.player != "root":
            lacks.append("the rights of root")
        named = [name for name, port in PORTS.items() if str(port) in text]
        servers = [written["service"]] if "service" in written else named
        return lacks + [name for name in servers if not lacks and not self._server(name)]

    def _server(self, name: str) -> bool:
        if name not in self._servers:
            told = self._told.get(name)
            known = {key: text for key, text in self._places.items() if text is not None}
            self._servers[name] = (
                self.running.start_told(name, scenarios.filled(told, known))
                if told
                else self.running.start(name) is not None
            )
        return self._servers[name]


def _installed(name: str) -> bool:
    return shutil.which(name, path=SYSTEM_PATH) is not None
