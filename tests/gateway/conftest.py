"""What tests of the gateway share: a server that runs, a host and a client."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import list_pids, sweep
from gateway.gateway_site import GatewaySite, connect
from gateway.joined_host import JoinedHost, become_client
from machines.ssh_server import SYSTEM_PATH, SshServer, configure_ssh, end_all

from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.server.running import find_server


@pytest.fixture
def site(place: Path) -> Iterator[GatewaySite]:
    """A machine on which no gateway runs yet."""
    made = GatewaySite(place)
    yield made
    made.end()


@pytest.fixture
def gateway(site: GatewaySite) -> GatewaySite:
    """A gateway that runs."""
    assert find_server()
    site.start()
    return site


class Pair(NamedTuple):
    """A host and a client, both connected."""

    gateway: GatewaySite
    host: Connection
    client: Connection


@pytest.fixture
def pair(gateway: GatewaySite) -> Iterator[Pair]:
    """A host and a client of a gateway."""
    with connect(gateway.add("host")) as host, connect(gateway.add("client")) as client:
        yield Pair(gateway, host, client)


@pytest.fixture
def other_host(pair: Pair) -> Iterator[Connection]:
    """Another host of the same gateway."""
    with connect(pair.gateway.add("host")) as made:
        yield made


@pytest.fixture
def nats_server() -> str:
    """The nats-server program."""
    return find_server().path or shutil.which("nats-server") or ""


class TwoWays:
    """One machine by both ways: its sshd, and its end at the gateway. Here it is `thathost`."""

    def __init__(self, ssh: SshServer, host: JoinedHost) -> None:
        self.ssh, self.host = ssh, host

    def ssh_comes_back(self) -> None:
        """Start its sshd again."""
        self.ssh.process = self.ssh.start()


@pytest.fixture
def ssh_place(place: Path, needs: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's own machine, with an ssh of its own."""
    needs("ssh", "tmux")
    if not shutil.which("sshd", path=SYSTEM_PATH):
        pytest.skip("sshd is not installed")
    (place / "run").mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))
    monkeypatch.setenv("PATH", f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}")
    yield place
    end_all(place)


@pytest.fixture
def behind_both(gateway: GatewaySite, ssh_place: Path) -> Iterator[TwoWays]:
    """A machine that serves behind the gateway, and has an sshd; nothing is known of it yet."""
    become_client(gateway)
    before = list_pids()
    server = SshServer(ssh_place, "box")
    configure_ssh(ssh_place, [server])
    host = JoinedHost(gateway, server.home)
    host.start()
    yield TwoWays(server, host)
    host.end()
    sweep(host.home, before)
