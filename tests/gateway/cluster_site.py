"""A real cluster for tests: the command that runs each node, with a home of its own; on addresses of loopback, or each node in a
network of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.gateway_site import PATIENCE, until
from gateway.joined_host import environment_of

from tmuxctl.gateway.credentials import Credentials, read_credentials
from tmuxctl.gateway.server.monitoring import ask_server
from tools.ports import free_ports

TMUXCTL = (sys.executable, "-m", "tmuxctl", "--no-server")


class ClusterNode:
    """One node: its name, which is its address, its home, and the server that runs. `inside`: the words before each command."""

    def __init__(self, name: str, home: Path, inside: Sequence[str] = ()) -> None:
        self.name, self.home, self._inside = name, home, list(inside)
        self.environment = environment_of(home)
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A run of `tmuxctl gateway` there."""
        return subprocess.run(
            [*self._inside, *TMUXCTL, "gateway", *words],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def result(self, *words: str) -> dict[str, Any]:
        """What a command that succeeds prints with --json."""
        done = self.command(*words, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def start(self, *words: str) -> None:
        """Run `gateway up`, until it listens."""
        with open(self.home / "gateway.log", "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [*self._inside, *TMUXCTL, "gateway", "up", *words],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(lambda: "listening on" in self.read_log(begin) or self._is_over(), "it does not listen")

    def _is_over(self) -> bool:
        assert self.process
        assert self.process.poll() is None, self.read_log()
        return False

    def read_log(self, begin: int = 0) -> str:
        """What it wrote, from an offset on."""
        return (self.home / "gateway.log").read_bytes()[begin:].decode(errors="replace")

    def kill(self, number: int) -> None:
        """Send its server a signal: SIGSTOP is a cut that nothing tells of."""
        assert self.process
        os.kill(self.process.pid, number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, and wait for that."""
        if self.process:
            for one in (signal.SIGCONT, number):
                if self.process.poll() is None:
                    os.kill(self.process.pid, one)
            self.process.wait(PATIENCE)
            self.process = None

    def add(self, role: str, *words: str) -> Credentials:
        """A new host or client."""
        out = () if "--out" in words else ("--out", self._new_path())
        return read_credentials(self.result(f"add-{role}", *words, *out)["file"])

    def _new_path(self) -> str:
        return str(self.home / f"member-{len(list(self.home.iterdir()))}.json")


class ClusterSite:
    """Three nodes with these names, which are their addresses; the first has the keys."""

    def __init__(self, place: Path, names: Sequence[str], inside: Sequence[Sequence[str]] | None = None) -> None:
        # each has its own address, so all have the same ports
        port, websocket, cluster, leaf = free_ports(4)
        self.port, self.leaf_port = port, leaf
        self.ports = [f"--websocket-port={websocket}", f"--cluster-port={cluster}"]
        words = inside or [()] * len(names)
        self.nodes = [ClusterNode(name, place / f"node{number}", words[number]) for number, name in enumerate(names)]

    @property
    def first(self) -> ClusterNode:
        """The one with the keys."""
        return self.nodes[0]

    def start(self) -> None:
        """Run all three, until each has a copy of the events."""
        others = [f"--cluster={one.name}" for one in self.nodes[1:]]
        self.first.start(*self.listen(self.first), f"--name={self.first.name}", *self.ports, *others)
        for one in self.nodes[1:]:
            made = self.first.home / f"gateway-node-{one.name}.json"
            (one.home / "node.json").write_bytes(made.read_bytes())
            self.start_anew(one)
        until(self.is_whole, "the nodes do not find each other", 60)

    def start_anew(self, node: ClusterNode) -> None:
        """Run a node by its file."""
        node.start(*self.listen(node), "--node=node.json")

    def restart(self, node: ClusterNode) -> None:
        """Run a node again, as it was told before."""
        node.start()

    def list_routes(self, node: ClusterNode) -> list[str]:
        """The nodes that a node is connected to, as often as it is."""
        settings = json.loads((node.home / ".local/state/tmuxctl/gateway/server-settings.json").read_text())
        return [one["remote_name"] for one in ask_server(settings["monitor_port"], "/routez")["routes"]]

    def is_whole(self) -> bool:
        """Whether all nodes run, and each has all events."""
        done = self.first.command("status", "--json")
        if done.returncode:
            return False
        found = json.loads(done.stdout)
        copies = [copy for stream in found["streams"] for copy in stream["replicas"]]
        current = all(copy["current"] and not copy["away"] and not copy["lag"] for copy in copies)
        return bool(copies) and current and not any(node["away"] for node in found["nodes"])

    def leader(self) -> ClusterNode:
        """The node that decides the order of events."""
        (stream,) = self.first.result("status")["streams"]
        (found,) = (one for one in self.nodes if one.name == stream["leader"])
        return found

    def end(self) -> None:
        """End all."""
        for one in self.nodes:
            one.end()

    def listen(self, node: ClusterNode) -> list[str]:
        """What tells a node where to listen."""
        (monitor,) = free_ports(1)
        return [f"--listen={node.name}:{self.port}", f"--monitor-port={monitor}"]
