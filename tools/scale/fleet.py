"""Hundreds of hosts behind one real gateway: each has its own key, its own credentials and its own clients; only their tmux is
simulated (`simulated_hosts`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gateway.gateway_site import GatewaySite, until

from tmuxctl.gateway.credentials import Credentials, write_credentials
from tmuxctl.gateway.server.authority.members import Members
from tmuxctl.gateway.server.monitoring import ask_server
from tmuxctl.operations import RIGHTS
from tmuxctl.sealed.keys import KeyFiles, key_text
from tmuxctl.sealed.trust import AuthorizedClient, write_authorized_client
from tmuxctl.vocabulary import GatewayRole

STARTING_SECONDS = 180.0

BESIDE = ("nice", "-n", "19")
"""Begins the command of a process that stands for machines which have processors of their own: it takes no time from others."""


class Host(NamedTuple):
    """A simulated host: its name at the clients, its id at the gateway, its public key, and the folder of its files."""

    name: str
    id: str
    key: bytes
    folder: Path


class Client(NamedTuple):
    """A user's machine that knows all hosts: its home, and the environment of what runs there."""

    home: Path
    environment: dict[str, str]


class HostProcess:
    """A process that has some of the hosts; it takes commands as lines of JSON, and answers each with one. With `BESIDE` it is run
    only when nothing else wants the processor."""

    def __init__(self, hosts: list[Host], sessions: int, priority: tuple[str, ...] = ()) -> None:
        folders = [str(host.folder) for host in hosts]
        self.hosts = hosts
        self.log = hosts[0].folder / "process.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*priority, sys.executable, "-m", "tools.scale.simulated_hosts", str(sessions)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.tell(folders=folders)

    def tell(self, **command: Any) -> None:
        """Give it a command."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What it answers to the oldest command that has no answer yet."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        return dict(json.loads(line))

    def end(self) -> None:
        """End it, and all its hosts."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


class Fleet:
    """A gateway, its hosts with their processes, and clients that are paired with every host."""

    def __init__(self, site: GatewaySite, clients: list[Client], hosts: list[Host]) -> None:
        self.site, self.clients, self.hosts = site, clients, hosts
        self.processes: list[HostProcess] = []

    def start(self, processes: int, sessions: int) -> None:
        """Start all hosts in so many processes, until each is connected."""
        self.start_hosts([self.hosts[number::processes] for number in range(processes)], sessions)

    def start_hosts(self, groups: list[list[Host]], sessions: int, priority: tuple[str, ...] = ()) -> None:
        """Start each group of hosts in a process."""
        started = [HostProcess(group, sessions, priority) for group in groups]
        self.processes += started
        for one in started:
            assert one.answer()["connected"] == len(one.hosts)

    def end(self) -> None:
        """End every host."""
        for one in self.processes:
            one.end()
        self.processes.clear()

    def server_numbers(self) -> dict[str, Any]:
        """What the server says of itself."""
        return ask_server(self.site.files.read_settings().monitor_port, "/varz")

    def server_memory(self) -> int:
        """The bytes of memory that the server has."""
        return int(self.server_numbers()["mem"])


@contextmanager
def run_fleet(folder: Path, hosts: int, clients: int) -> Iterator[Fleet]:
    """A gateway that runs, with so many hosts, of which none is started yet, and clients. `folder` is made."""
    folder.mkdir(mode=0o700)
    site = GatewaySite(folder)
    site.start()
    with site.files.locked():
        # one command for each would take minutes
        credentials = [Members(site.files).add(GatewayRole.HOST, None) for _ in range(hosts)]
        members = [Members(site.files).add(GatewayRole.CLIENT, None) for _ in range(clients)]
    made = Fleet(site, [], [])
    try:
        keys = [_make_client(folder / f"client{number}", own) for number, own in enumerate(members)]
        made.clients += [client for client, _ in keys]
        authorized = "".join(
            write_authorized_client(AuthorizedClient(f"client{number}", key, RIGHTS, ("*",))) + "\n"
            for number, (_, key) in enumerate(keys)
        )
        made.hosts += [_make_host(folder, number, own, authorized) for number, own in enumerate(credentials)]
        for client in made.clients:
            _introduce(client, made.hosts)
        yield made
    finally:
        made.end()
        site.end()


def _make_client(home: Path, credentials: Credentials) -> tuple[Client, bytes]:
    for name in (".config/tmuxctl", ".local/state", "run"):
        (home / name).mkdir(mode=0o700, parents=True)
    home.chmod(0o700)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        "HOME": str(home),
        "TMUX_TMPDIR": str(home / "run"),
        "XDG_RUNTIME_DIR": str(home / "run"),
    }
    write_credentials(str(home / ".config/tmuxctl/gateway.json"), credentials)
    key = KeyFiles(str(home / ".local/state/tmuxctl/keys")).load().current.public
    return Client(home, environment), key


def _make_host(folder: Path, number: int, credentials: Credentials, authorized: str) -> Host:
    own = folder / "hosts" / f"{number:04}"
    own.mkdir(mode=0o700, parents=True)
    write_credentials(str(own / "host.json"), credentials)
    key = KeyFiles(str(own / "keys")).load().current.public
    (own / "authorized_clients").write_text(authorized)
    (own / "authorized_clients").chmod(0o600)
    return Host(f"h{number:04}", credentials.id, key, own)


def _introduce(client: Client, hosts: list[Host]) -> None:
    """Have a client know every host, as if it had paired with each."""
    config = client.home / ".config/tmuxctl"
    (config / "machines.toml").write_text("".join(f'[{one.name}]\ngateway = "{one.id}"\n' for one in hosts))
    (config / "known_machines").write_text("".join(f"{one.name} {one.id} {key_text(one.key)}\n" for one in hosts))
    for name in ("machines.toml", "known_machines"):
        (config / name).chmod(0o600)


def wait_for_connections(fleet: Fleet, number: int) -> None:
    """Until so many hosts and clients are connected, and no more."""
    until(lambda: fleet.site.count_connections() == number, "connections are missing", STARTING_SECONDS)
