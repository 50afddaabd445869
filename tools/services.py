"""Real servers for real clients: each on loopback, with files of its own, ended by the block that started it.

with Running(folder) as running:
    served = running.start("postgres")        # None if it is not installed here
    subprocess.run(["psql"], env=os.environ | served.environment)
"""

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

from tools.ports import free_ports

PATIENCE = 20.0
"""Seconds a server may take until it answers."""

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The system's own programs: a version manager's shims start slowly and are programs themselves."""


class Served(NamedTuple):
    """A server that answers: its port on 127.0.0.1, and the variables by which its clients find it."""

    port: int
    environment: Mapping[str, str]


class Running:
    """The servers that were started; the end of the block ends them.

    `ports` gives a server by name its port (a free one otherwise), `user` is whom sshd lets in.
    """

    def __init__(self, folder: Path, *, ports: Mapping[str, int] | None = None, user: str = "") -> None:
        self.folder, self.ports, self.user = folder, ports or {}, user
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.told: dict[str, Path] = {}
        """The files with the process of each server that a list of scenarios tells how to start."""

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        for name, process in reversed(self.processes.items()):
            process.send_signal(STOP.get(name, signal.SIGTERM))
        for process in self.processes.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for file in self.told.values():
            with suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)

    def start(self, name: str) -> Served | None:
        """Start a server; None if it is not installed, its port is taken, or it does not answer."""
        port = self.ports.get(name) or free_ports(1)[0]
        if _answers(port):
            return None
        folder = self.folder / name
        folder.mkdir()
        process = sshd(folder, port, self.user) if name == "sshd" else SERVERS[name](folder, port)
        if process is None:
            return None
        self.processes[name] = process
        variables = {key: value.format(port=port, folder=folder) for key, value in CLIENTS[name].items()}
        return Served(port, variables) if _ready(port, process) else None

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


def _done(command: str, folder: Path) -> bool:
    """Whether a command of a shell was done well. What it leaves running has no output of ours to hold open."""
    return not subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ).returncode


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _ready(port: int, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(port):
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


def sshd(folder: Path, port: int, user: str) -> subprocess.Popen[bytes] | None:
    """An ssh server that lets this user in by password."""
    program = shutil.which("sshd", path=SYSTEM_PATH)
    if program is None or os.getuid() != 0:
        return None
    # where sshd drops its rights to; the system's own service makes it at boot
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    (folder / "config").write_text(SSHD.format(folder, user))
    return _started(folder, program, "-D", "-e", "-p", str(port), "-f", str(folder / "config"))


def postgres(folder: Path, port: int) -> subprocess.Popen[bytes] | None:
    """A database server that trusts everybody here."""
    places = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    search = os.pathsep.join([*places, os.environ.get("PATH", "")])
    programs = shutil.which("initdb", path=search), shutil.which("postgres", path=search)
    if None in programs:
        return None
    initdb, program = (str(one) for one in programs)
    as_server = _owned(folder, "postgres")
    data = str(folder / "data")
    made = subprocess.run(
        [*as_server, initdb, "-D", data, "-A", "trust", "-U", "postgres", "-N", "--no-locale", "-E", "UTF8"],
        capture_output=True,
        cwd=folder,
        check=False,
    )
    if made.returncode:
        return None
    command = [program, "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
    return _started(folder, *as_server, *command)


def mariadb(folder: Path, port: int) -> subprocess.Popen[bytes] | None:
    """A database server with the user root, who has no password."""
    programs = (shutil.which(name, path=SYSTEM_PATH) for name in ("mariadb-install-db", "mariadbd"))
    install, program = programs
    if install is None or program is None:
        return None
    as_server = _owned(folder, "mysql")
    # the caller's folder for passing files may be closed to the server's user
    own = [f"--datadir={folder}/data", f"--tmpdir={folder}"]
    options = ["--no-defaults", *own, "--auth-root-authentication-method=normal", "--skip-test-db"]
    made = subprocess.run([*as_server, install, *options], capture_output=True, cwd=folder, check=False)
    if made.returncode:
        return None
    listen = [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket", f"--pid-file={folder}/pid"]
    # an old server starts with a small pool in a second, and a crash may cost it everything
    light = ["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]
    return _started(folder, *as_server, program, "--no-defaults", *own, *listen, *light)


def redis(folder: Path, port: int) -> subprocess.Popen[bytes] | None:
    """A redis that keeps nothing."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    return _started(folder, program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder))


def hanging(folder: Path, port: int) -> subprocess.Popen[bytes] | None:
    """A server that takes every connection and never answers."""
    return _started(folder, sys.executable, "-c", HANGING, str(port))


def ollama(folder: Path, port: int) -> subprocess.Popen[bytes] | None:
    """A model behind ollama's API, which answers as it is told; None where the tests are not."""
    if not MODEL.exists():
        return None
    return _started(folder, sys.executable, str(MODEL), str(port))


def _owned(folder: Path, user: str) -> list[str]:
    """Give a folder to a server's own user, as whom such a server wants to run, and how a command is run as that user."""
    if os.getuid() != 0:
        return []
    shutil.chown(folder, user)
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]


MODEL = Path(__file__).resolve().parents[1] / "tests" / "programs" / "ollama_model.py"

HANGING = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=50)
taken = []
while True:
    taken.append(server.accept())
"""

SERVERS: Mapping[str, Callable[[Path, int], subprocess.Popen[bytes] | None]] = {
    "postgres": postgres,
    "mariadb": mariadb,
    "redis": redis,
    "hang": hanging,
    "ollama": ollama,
}

STOP = {"postgres": signal.SIGINT, "redis": signal.SIGINT, "hang": signal.SIGINT}
"""What ends a server quickly, where it is not TERM."""

CLIENTS: Mapping[str, Mapping[str, str]] = {
    "sshd": {"SSH_PORT": "{port}", "SSH_HOST_KEY": "{folder}/key.pub"},
    "postgres": {"PGHOST": "127.0.0.1", "PGPORT": "{port}", "PGUSER": "postgres", "PGDATABASE": "postgres"},
    "mariadb": {"MYSQL_HOST": "127.0.0.1", "MYSQL_TCP_PORT": "{port}"},
    "redis": {"REDIS_PORT": "{port}"},
    "hang": {"HANG_PORT": "{port}"},
    "ollama": {"OLLAMA_HOST": "127.0.0.1:{port}"},
}
"""The variables by which a server's clients find it; REDIS_PORT, SSH_PORT and HANG_PORT are for command lines."""
