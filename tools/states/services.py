"""Servers that scenarios talk to: each on loopback, with files of its own, ended by its process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PATIENCE = 20.0
"""Seconds a server may take until it answers."""


class Service(NamedTuple):
    """A server: the port that scenarios name, and how it is started in a folder (None if it cannot be here)."""

    port: int
    start: Callable[[Path], subprocess.Popen[bytes] | None]


class Running:
    """The servers that were started; the end of the block ends them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.told: dict[str, Path] = {}
        """The files with the process of each server that a list of scenarios tells how to start."""

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes.values()):
            # to postgres a fast shutdown, to the others the end
            process.send_signal(signal.SIGINT)
        for process in self.processes.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for file in self.told.values():
            with suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)

    def start(self, name: str) -> bool:
        """Start a server; False if it is not installed, its port is taken, or it does not answer."""
        service = SERVICES[name]
        if _taken(service.port):
            return False
        folder = self.folder / name
        folder.mkdir()
        process = service.start(folder)
        if process is None:
            return False
        self.processes[name] = process
        return _answers(service.port, process)

    def start_told(self, name: str, how: Mapping[str, str]) -> bool:
        """Start a server by commands of a shell, run in a folder of its own; False if it does not get ready."""
        folder = self.folder / "services" / name
        folder.mkdir(parents=True)
        if "stop" in how:
            self.told[name] = folder / how["stop"]
        deadline = time.monotonic() + PATIENCE
        _done(how["start"], folder)
        while not (ready := _done(how["ready"], folder)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return ready


def needed(text: str) -> list[str]:
    """The servers whose ports a scenario names."""
    return [name for name, service in SERVICES.items() if str(service.port) in text]


def _done(command: str, folder: Path) -> bool:
    """Whether a command of a shell was done well. What it leaves running has no output of ours to hold open."""
    return not subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ).returncode


def _taken(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if _taken(port):
            return True
        time.sleep(0.05)
    return False


def _started(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


SSHD = """\
ListenAddress 127.0.0.1
HostKey {0}/key
PidFile {0}/pid
UsePAM no
PasswordAuthentication yes
KbdInteractiveAuthentication no
PrintMotd no
PrintLastLog no
AllowUsers {1}
"""


def sshd(user: str) -> Service:
    """An ssh server that lets this user in by password."""

    def start(folder: Path) -> subprocess.Popen[bytes] | None:
        program = shutil.which("sshd")
        if program is None or os.getuid() != 0:
            return None
        # where sshd drops its rights to; the system's own service makes it at boot
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
        (folder / "config").write_text(SSHD.format(folder, user))
        return _started(folder, program, "-D", "-e", "-p", "22099", "-f", str(folder / "config"))

    return Service(22099, start)


def postgres(folder: Path) -> subprocess.Popen[bytes] | None:
    """A database server that trusts everybody here."""
    places = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    search = os.pathsep.join([*places, os.environ.get("PATH", "")])
    programs = shutil.which("initdb", path=search), shutil.which("postgres", path=search)
    if None in programs:
        return None
    initdb, program = (str(one) for one in programs)
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if user:
        shutil.chown(folder, "postgres")
    data = str(folder / "data")
    made = subprocess.run(
        [*user, initdb, "-D", data, "-A", "trust", "-U", "postgres", "-N", "--no-locale", "-E", "UTF8"],
        capture_output=True,
        cwd=folder,
        check=False,
    )
    if made.returncode:
        return None
    command = [program, "-D", data, "-p", "54399", "-h", "127.0.0.1", "-k", str(folder), "-F"]
    return _started(
        folder, *(["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if user else []), *command
    )


def redis(folder: Path) -> subprocess.Popen[bytes] | None:
    """A redis that keeps nothing."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    return _started(folder, program, "--port", "63799", "--bind", "127.0.0.1", "--save", "", "--dir", str(folder))


def hanging(folder: Path) -> subprocess.Popen[bytes] | None:
    """A server that takes every connection and never answers."""
    program = folder.parent / "fixtures" / "hang.py"
    return _started(folder, sys.executable, str(program)) if program.exists() else None


USER = "idleu"
"""The ordinary user whom scenarios name."""

SERVICES: Mapping[str, Service] = {
    "sshd": sshd(USER),
    "postgres": Service(54399, postgres),
    "redis": Service(63799, redis),
    "hang": Service(18099, hanging),
}
