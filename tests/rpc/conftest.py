"""What tests of calls by name share: a machine that carries operations out in a process of its own, with its own home and tmux."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from rpc import socket_carrier
from rpc.socket_carrier import Weather

from tmuxctl.control import Control
from tmuxctl.control.machines import remote
from tmuxctl.control.machines.remote import RemoteOperations
from tmuxctl.machines import MachineEntry
from tmuxctl.rpc.records import Connect
from tmuxctl.timing import TIMING, RpcTiming
from tmuxctl.value import changed

TESTS = Path(__file__).resolve().parent.parent

QUICK = RpcTiming(beat_seconds=0.2, gap_seconds=0.05, silence_seconds=4.0)


class Host:
    """A process that carries operations out, and its home."""

    def __init__(self, folder: Path, rights: str = "read,write,create,kill", sessions: str = "*") -> None:
        self.folder, self.words = folder, (rights, sessions)
        folder.mkdir(mode=0o700)
        self.path = f"{folder}/calls"
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Start it, once it listens."""
        named = {name: str(self.folder) for name in ("HOME", "TMUX_TMPDIR", "TMPDIR")}
        environment = {**os.environ, **named, "XDG_STATE_HOME": f"{self.folder}/state", "TMUXCTL_SOCKET": "there"}
        environment["PYTHONPATH"] = f"{TESTS}:{TESTS.parent}"
        words = [sys.executable, str(TESTS / "rpc/host.py"), self.path, *self.words]
        Path(self.path).unlink(missing_ok=True)
        self.process = subprocess.Popen(
            words, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == "listening\n"

    def kill(self) -> None:
        """End it as kill -9 does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout
            self.process.stdout.close()
            self.process = None


def operations_of(control: Control, name: str = "far") -> RemoteOperations:
    """The operations of a machine that was reached."""
    found = control.machine.reached[name].reach().remote
    assert isinstance(found, RemoteOperations)
    return found


@pytest.fixture
def start_host(
    place: Path, needs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Host]]:
    """Starts machines: one for each call, with the rights and the patterns of sessions of its caller."""
    needs("tmux")
    (place / "config/tmuxctl").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    hosts: list[Host] = []
    before = list_pids()

    def start(*words: str) -> Host:
        hosts.append(Host(place / f"host{len(hosts)}", *words))
        return hosts[-1]

    yield start
    for host in hosts:
        host.kill()
        sweep(host.folder, before)


@pytest.fixture
def host(start_host: Callable[..., Host]) -> Host:
    """A machine on which its caller may do everything."""
    return start_host()


@pytest.fixture
def weather() -> Weather:
    """How the carriers of `reach` treat records: as good ones do, unless the test says otherwise."""
    return Weather()


@pytest.fixture
def reach(place: Path, weather: Weather, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Control]]:
    """The operations of this machine, on which that of each host has a name: `reach(far=host)`."""
    made: list[Control] = []

    def reach_hosts(timing: RpcTiming = QUICK, **hosts: Host) -> Control:
        (place / "config/tmuxctl/machines.toml").write_text(
            "".join(f'[{name}]\ngateway = "{name}"\n' for name in hosts)
        )

        def connect_to(entry: MachineEntry) -> Connect:
            return weather.over(socket_carrier.connect_to(hosts[entry.name].path))

        monkeypatch.setitem(remote.CARRIERS, "gateway", connect_to)
        made.append(Control(timing=changed(TIMING, rpc=timing)))
        return made[-1]

    yield reach_hosts
    for control in made:
        control.close()


@pytest.fixture
def far(host: Host, reach: Callable[..., Control]) -> Control:
    """The operations of this machine, from which `far` is reached."""
    return reach(far=host)
