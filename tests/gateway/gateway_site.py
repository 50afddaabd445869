"""A real gateway for tests: the command that runs it, in a place of its own, on free ports of loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tmuxctl.errors import TmuxctlError
from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.credentials import Credentials, read_credentials
from tmuxctl.gateway.server import status
from tmuxctl.gateway.server.monitoring import ask_server
from tmuxctl.gateway.server.settings import GatewayFiles
from tools.ports import free_ports

PATIENCE = 20.0


def until(holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """What `holds` says, once that is something."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


class GatewaySite:
    """The gateway of a test, and the machine that it is on."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.environment: dict[str, str] | None = None
        """What commands are given, if not what the test has."""
        self.port, self.websocket_port, self.monitor_port = free_ports(3)
        self.files = GatewayFiles()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the server wrote."""
        return (self.place / "gateway.log").read_text()

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A run of `tmuxctl gateway`."""
        argv = [sys.executable, "-m", "tmuxctl", "--no-server", "gateway", *words]
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def result(self, *words: str) -> dict[str, Any]:
        """What a command that succeeds prints with --json."""
        done = self.command(*words, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def start(self, *words: str) -> None:
        """Run `gateway up`, until it answers."""
        given = words or (
            f"--listen=127.0.0.1:{self.port}",
            f"--websocket-port={self.websocket_port}",
            f"--monitor-port={self.monitor_port}",
        )
        with open(self.place / "gateway.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tmuxctl", "gateway", "up", *given],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._answers, f"the gateway does not come up:\n{self.log}")

    def _answers(self) -> bool:
        assert self.process
        assert self.process.poll() is None, f"the gateway ended ({self.process.returncode}):\n{self.log[-1500:]}"
        try:
            # the monitoring port answers before the others are open
            healthy = ask_server(self.files.read_settings().monitor_port, "/healthz").get("status") == "ok"
            found = status.look(self.files)
            # the stream is made once the server answers
            return healthy and found.process == self.process.pid and bool(found.streams)
        except TmuxctlError:
            return False

    def count_connections(self) -> int:
        """How many hosts and clients are connected."""
        return int(ask_server(self.files.read_settings().monitor_port, "/connz")["num_connections"])

    def end(self, number: int = signal.SIGTERM) -> None:
        """Send the server a signal that ends it, and wait for that."""
        if self.process:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
            self.process = None

    def add(self, role: str, *words: str) -> Credentials:
        """A new host or client."""
        return read_credentials(self.result(f"add-{role}", *words)["file"])


def connect(credentials: Credentials, kind: type[Connection] = Connection) -> Connection:
    """A connection that stands."""
    made = kind(credentials)
    try:
        made.wait_connected(PATIENCE)
    except BaseException:
        made.close()
        raise
    return made
