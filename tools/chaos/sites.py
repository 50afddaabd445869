"""The three machines of a run: this one, one behind sshd, one behind a gateway; and the faults that are made to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from conftest import SOCKET, start_command_server
from gateway.gateway_site import GatewaySite, until
from gateway.joined_host import TMUXCTL, JoinedHost, become_client
from machines.relay import Relay
from machines.ssh_server import SshServer, configure_ssh, end_all

from tools.chaos.schedule import Fault

ROOT = Path(__file__).resolve().parents[2]

DISK_BYTES = 256 << 20
"""Room for what is kept of the sessions that end in an hour."""


class Machine(NamedTuple):
    """A machine: how names of its sessions begin, its home, its tmux socket, and its folder of state."""

    prefix: str
    home: Path
    socket: str
    state: Path

    def tmux_pid(self) -> int | None:
        """The process of its tmux server, if that runs and answers."""
        words = ["tmux", "-L", self.socket, "display-message", "-p", "#{pid}"]
        environment = {**os.environ, "TMUX_TMPDIR": str(self.home)}
        with suppress(subprocess.SubprocessError, ValueError):
            return int(subprocess.run(words, env=environment, capture_output=True, timeout=3).stdout)
        return None


class Sites:
    """The machines, and what is between them."""

    def __init__(self, place: Path) -> None:
        self.place, self.records = place, place / "records"
        self.records.mkdir()
        # before anything is kept there
        self.disks = [one for one in (place / "state",) if mount_disk(one)]
        folder = place / "site"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(Path(__file__).with_name("clock.py").read_text())
        os.environ.update(PYTHONPATH=f"{folder}:{ROOT}:{ROOT / 'tests'}", JUMP=str(place / "jump"))
        (place / "run").mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(place / "run")
        os.environ["PATH"] = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.ssh = SshServer(place, "box")
        self.ssh_relay = Relay(self.ssh.port)
        port, known = self.ssh.port, self.ssh.folder / "known_hosts"
        self.ssh.client = self.ssh.client.replace(
            f"Port {port}\n", f"Port {self.ssh_relay.port}\n  HostKeyAlias box-key\n"
        )
        known.write_text(known.read_text().replace(f"[127.0.0.1]:{port}", "box-key"))
        configure_ssh(place, [self.ssh])
        self.gateway = GatewaySite(place)
        self.gateway.start()
        self.gateway_relay = Relay(self.gateway.port)
        become_client(self.gateway)
        self.host = JoinedHost(self.gateway, place / "there")
        self.machines = {
            "here": Machine("", place, SOCKET, place / "state"),
            "ssh": Machine("box/", self.ssh.home, SOCKET, self.ssh.home / ".local/state"),
            "gateway": Machine("thathost/", self.host.home, "there", self.host.home / ".local/state"),
        }
        self.disks += [one.state for one in self.machines.values() if one.prefix and mount_disk(one.state)]
        credentials = self.host.home / "host.json"
        told = json.loads(credentials.read_text())
        told["urls"] = [url.replace(f":{self.gateway.port}", f":{self.gateway_relay.port}") for url in told["urls"]]
        credentials.write_text(json.dumps(told))
        self.host.start()
        done = self.host.pair("thathost")
        assert done.returncode == 0, done.stderr
        self.command_server = start_command_server()

    def close(self) -> None:
        """End what is no session."""
        self.command_server.kill()
        self.command_server.wait()
        for relay in (self.ssh_relay, self.gateway_relay):
            relay.cut.clear()
        self.host.end()
        end_all(self.place)
        self.gateway.end()
        for relay in (self.ssh_relay, self.gateway_relay):
            relay.close()

    def list_files(self) -> list[str]:
        """The files that are left of sessions, once all were ended and what is kept of them was pruned."""
        left: list[Path] = []
        for machine in self.machines.values():
            own = {"HOME": machine.home, "TMUX_TMPDIR": machine.home, "XDG_STATE_HOME": machine.state}
            environment = {**os.environ, **{name: str(path) for name, path in own.items()}}
            words = [*TMUXCTL, "--no-server", "--socket", machine.socket, "prune"]
            subprocess.run(words, env=environment, check=True, capture_output=True)
            folder = machine.state / "tmuxctl" / machine.socket
            left += [one for name in ("sessions", "ended") for one in (folder / name).rglob("*")]
            left += [one for pattern in ("*.new", "*.held", "create.lock") for one in folder.glob(pattern)]
        return [str(one.relative_to(self.place)) for one in left]

    def begin(self, fault: Fault) -> Callable[[], None] | None:
        """Make a fault; returns what ends it, and nothing where it cannot be made now."""
        made: Callable[[Fault], Callable[[], None] | None] = getattr(self, f"_{fault.kind}")
        return made(fault)

    def _cut_ssh(self, fault: Fault) -> Callable[[], None]:
        self.ssh_relay.cut.set()
        return self.ssh_relay.cut.clear

    def _cut_gateway(self, fault: Fault) -> Callable[[], None]:
        self.gateway_relay.cut.set()
        return self.gateway_relay.cut.clear

    def _kill_gateway(self, fault: Fault) -> Callable[[], None]:
        self.gateway.end(signal.SIGKILL)
        return lambda: until(self._tries_gateway, "the gateway does not come up", 100.0)

    def _tries_gateway(self) -> bool:
        """Start the gateway; like the host it is started again where it cannot begin."""
        try:
            self.gateway.start()
        except AssertionError:
            self.gateway.end(signal.SIGKILL)
            return False
        return True

    def _kill_host(self, fault: Fault) -> Callable[[], None]:
        self.host.end(kill=True)
        return self._start_host

    def _start_host(self) -> None:
        """Start the host, and again where it cannot begin, as on a full disk: a service manager does so too. It may take longer
        than tests allow, as when the gateway is away."""
        until(self._tries_to_serve, "the host does not serve", 100.0)

    def _tries_to_serve(self) -> bool:
        process = self.host.process
        if process is None or process.poll() is not None:
            with suppress(AssertionError):
                self.host.start()
        return "listening on" in self.host.log

    def _kill_ssh_connections(self, fault: Fault) -> Callable[[], None]:
        for child in psutil.Process(self.ssh.process.pid).children():
            with suppress(psutil.NoSuchProcess):
                child.kill()
        return _nothing

    def _kill_ssh_masters(self, fault: Fault) -> Callable[[], None]:
        mine = f"{self.place}/.ssh/config"
        for one in psutil.process_iter():
            with suppress(psutil.Error):
                if one.name() == "ssh" and mine in one.cmdline():
                    one.kill()
        return _nothing

    def _kill_command_server(self, fault: Fault) -> Callable[[], None]:
        self.command_server.kill()
        self.command_server.wait()
        self.command_server = start_command_server()
        return _nothing

    def _kill_tmux(self, fault: Fault) -> Callable[[], None] | None:
        pid = self.machines[fault.machine].tmux_pid()
        if pid is None:
            return None
        os.kill(pid, signal.SIGKILL)
        return _nothing

    def _kill_program(self, fault: Fault) -> Callable[[], None] | None:
        file = self.records / f"{fault.machine}-library.pid"
        with suppress(OSError, ValueError):
            os.kill(int(file.read_text()), signal.SIGKILL)
            return _nothing
        return None

    def _stop_tmux(self, fault: Fault) -> Callable[[], None] | None:
        return _stop(self.machines[fault.machine].tmux_pid())

    def _stop_host(self, fault: Fault) -> Callable[[], None] | None:
        return _stop(self.host.process.pid if self.host.process else None)

    def _stop_gateway(self, fault: Fault) -> Callable[[], None] | None:
        return _stop(self.gateway.process.pid if self.gateway.process else None)

    def _fill_disk(self, fault: Fault) -> Callable[[], None] | None:
        state = self.machines[fault.machine].state
        if state not in self.disks:
            return None
        filler = state / "filler"
        with filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 10, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        return lambda: filler.unlink(missing_ok=True)

    def _jump_clock(self, fault: Fault) -> Callable[[], None]:
        file = self.place / "jump"
        file.write_text(str(fault.amount))
        return lambda: file.unlink(missing_ok=True)


def _nothing() -> None:
    pass


def _stop(pid: int | None) -> Callable[[], None] | None:
    if not pid:
        return None
    try:
        process = psutil.Process(pid)
        process.suspend()
    except psutil.NoSuchProcess:
        return None

    def go_on() -> None:
        # psutil looks whether it is the same process still
        with suppress(psutil.NoSuchProcess):
            process.resume()

    return go_on


def mount_disk(folder: Path) -> bool:
    """Put a small file system there, in this process's own mount namespace; false where that is not possible."""
    if os.environ.get("CHAOS_MOUNTS") != "own":
        return False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=700", "disk", str(folder)]
    return subprocess.run(words, capture_output=True).returncode == 0


def unmount(place: Path) -> list[str]:
    """Remove the small disks, once all processes are over; what could not be removed."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    done = [
        (one, subprocess.run(["umount", one], capture_output=True)) for one in mounts if one.startswith(f"{place}/")
    ]
    return [f"mount {one}: {ran.stderr.decode().strip()}" for one, ran in done if ran.returncode]


@contextmanager
def sites(place: Path) -> Iterator[Sites]:
    """The machines, for as long as it takes."""
    made = Sites(place)
    try:
        yield made
    finally:
        made.close()
