"""A real sshd on loopback, as this user: a machine without Python, with a home of its own and keys that only the test has."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tools.ports import free_ports

PROGRAMS = """
awk basename bash cat chmod chown cksum cp cut date dd df dirname env false find git getconf getent grep head id kill ln locale ls
mkdir mkfifo mktemp mv od printf ps pwd readlink rm rmdir sed seq setsid sh sleep sort stat stty sync tail tee test timeout
tmux touch tr true tty uname uniq wc xargs
"""
"""What the machine has: tmux, a shell, and what every system brings. Nothing of ours, and no Python."""

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SERVER = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
PrintLastLog no
AcceptEnv none
SetEnv HOME={home} PATH={programs} SHELL=/bin/sh TMUX_TMPDIR={home} PLACE_OF_TEST={folder}
ForceCommand {login} && exec sh -c "$SSH_ORIGINAL_COMMAND"
"""

CLIENT = """\
Host {name}
  HostName {address}
  Port {port}
  User {user}
  IdentityFile {folder}/client_key
  UserKnownHostsFile {folder}/known_hosts
"""

ALL_HOSTS = """\
Host *
  IdentitiesOnly yes
  IdentityAgent none
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
"""

PATIENCE = 20.0

STARTED: list[SshServer] = []
"""Servers that have to be ended: sshd writes its title over its environment, by which a test's processes are found otherwise."""


class SshServer:
    """One machine behind ssh, called `name` by the user's ssh configuration."""

    def __init__(
        self,
        place: Path,
        name: str,
        *,
        address: str = "127.0.0.1",
        inside: Sequence[str] = (),
        client: str = "",
        login: str = "cd",
    ) -> None:
        """`inside`: words before its command, which run it in another network; `address` is its own there. `client`: more lines of
        the user's configuration for it. `login`: what a shell does there before each command."""
        self.place, self.name, self.folder = place, name, place / "machines" / name
        self.address, self.inside = address, inside
        self.home, self.programs = self.folder / "home", self.folder / "bin"
        for folder in (self.home, self.programs):
            folder.mkdir(parents=True)
        for program in PROGRAMS.split():
            if found := shutil.which(program, path=SYSTEM_PATH) or shutil.which(program):
                (self.programs / program).symlink_to(found)
        for key in ("host_key", "client_key"):
            make_key(self.folder / key)
        shutil.copy(self.folder / "client_key.pub", self.folder / "authorized_keys")
        (self.port,) = free_ports(1)
        public = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[{address}]:{self.port} {public}")
        facts = {
            "port": self.port,
            "address": address,
            "folder": self.folder,
            "home": self.home,
            "programs": self.programs,
            "login": login,
        }
        (self.folder / "sshd_config").write_text(SERVER.format(**facts))
        self.client = CLIENT.format(name=name, user=getpass.getuser(), **facts) + client
        self.process = self.start()
        STARTED.append(self)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, and wait until it answers."""
        program = shutil.which("sshd", path=SYSTEM_PATH)
        assert program
        if os.getuid() == 0:
            # where sshd drops its rights to; the system's own service makes it at boot
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            before = log.tell()
            process = subprocess.Popen(
                [*self.inside, program, "-D", "-e", "-f", str(self.folder / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            assert process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "sshd does not answer"
            if b"Server listening" in (self.folder / "log").read_bytes()[before:]:
                return process
            time.sleep(0.02)

    def stop(self) -> None:
        """End the server; connections that are open stay."""
        self.process.terminate()
        self.process.wait(PATIENCE)

    def go_down(self) -> None:
        """End the server with its connections."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.stop()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                if child.name().startswith("sshd"):
                    child.kill()

    def script(self, program: str, text: str) -> None:
        """Put a script in the place of a program there."""
        path = self.programs / program
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)


def make_key(path: Path) -> None:
    """A key of its own, without a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def configure_ssh(place: Path, servers: Sequence[SshServer], more: str = "", *, control: str = "") -> None:
    """Write the user's ssh configuration, and put the system's ssh that reads it first in `place/bin`: ssh(1) takes the home of
    the user from the system's table, not from HOME. `control`: the socket of the connection that is shared, whatever else is
    said."""
    folder = place / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "config").write_text("".join(one.client for one in servers) + more + ALL_HOSTS)
    (folder / "config").chmod(0o600)
    wrapper = place / "bin" / "ssh"
    wrapper.parent.mkdir(exist_ok=True)
    ssh = shutil.which("ssh", path=SYSTEM_PATH)
    first = f"-F {folder}/config" + (f" -o ControlPath={control}" if control else "")
    wrapper.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{place}/ssh-calls\nexec {ssh} {first} "$@"\n')
    wrapper.chmod(0o755)


def end_all(place: Path) -> None:
    """End the connections that ssh keeps for later commands, then the servers with those that are left."""
    for control in (place / "run/tmuxctl/ssh").glob("*"):
        subprocess.run(["ssh", "-o", f"ControlPath={control}", "-O", "exit", "any"], capture_output=True, check=False)
    while STARTED:
        server = STARTED.pop()
        if server.process.poll() is None:
            server.go_down()
