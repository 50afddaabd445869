"""What docs/gateway.md tells a reader to do, on three machines: each has a home and a tmux of its own, and either all are on
loopback, or each has a network of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.gateway_site import until
from gateway.joined_host import environment_of
from gateway.three_networks import ADDRESSES, ThreeNetworks

from tools.ports import free_ports

PAGE = Path(__file__).resolve().parents[2] / "docs/gateway.md"

STEPS = (
    ("gateway", "tmuxctl gateway up --name gateway.example.org"),
    ("gateway", "tmuxctl gateway add-host build-box --out build-box.json"),
    ("gateway", "tmuxctl gateway add-client laptop --out laptop.json"),
    ("host", "tmuxctl serve --gateway build-box.json"),
    ("host", "tmuxctl gateway pair laptop --credentials build-box.json"),
    ("client", "install -d -m 700 ~/.config/tmuxctl"),
    ("client", "install -m 600 laptop.json ~/.config/tmuxctl/gateway.json"),
    ("client", "tmuxctl machine pair thathost k5wq7hl2mzt3ybvn"),
    ("client", "tmuxctl new thathost/sh -- sh"),
    ("client", "tmuxctl exec thathost/sh -- uname"),
    ("client", "tmuxctl machine events thathost"),
    ("client", "tmuxctl machine events thathost --since 1"),
)
"""On which machine each command of the page is typed."""

STAYING = ("gateway up", "serve", "gateway pair")
"""Commands that go on while the next ones are typed, in another terminal."""


class Reader:
    """Who follows the page: the machines, by their names, and what goes on at them."""

    def __init__(self, place: Path, networks: ThreeNetworks | None) -> None:
        self.networks = networks
        self.homes = {name: place / name for name in ("gateway", "host", "client")}
        self.environments = {name: environment_of(home) for name, home in self.homes.items()}
        port, websocket, monitor = free_ports(3)
        self.meant = {
            "--name gateway.example.org": f"--listen 127.0.0.1:{port} --websocket-port {websocket} --monitor-port {monitor}"
            if networks is None
            else " ".join(f"--name {there}" for there, _ in ADDRESSES.values()),
            "tmuxctl serve": "tmuxctl serve --listen unix",
            "tmuxctl ": f"{sys.executable} -m tmuxctl ",
        }
        self.going_on: list[subprocess.Popen[bytes]] = []
        self.code = ""

    def type(self, machine: str, command: str) -> str:
        """Type a command; what it has printed when it is over, or when it waits."""
        for shown, meant in self.meant.items():
            command = command.replace(shown, meant)
        log = self.homes[machine] / f"{len(list(self.homes[machine].iterdir()))}.log"
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [*(self.networks.inside(machine) if self.networks else ()), "sh", "-c", f"exec {command}"],
                cwd=self.homes[machine],
                env=self.environments[machine],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
            )
        self.going_on.append(process)
        assert process.stdin
        if not any(f"tmuxctl {one}" in command for one in STAYING):
            process.communicate(f"{self.code}\n".encode() if "machine pair" in command else b"", timeout=60)
            assert process.returncode == 0, log.read_text()
            return log.read_text()
        until(
            lambda: re.search("listening on|on the client", log.read_text()) or process.poll() is not None,
            "it is silent",
        )
        assert process.poll() is None, log.read_text()
        return log.read_text()

    def bring(self, name: str, machine: str) -> None:
        """Bring a file from the gateway to another machine."""
        copy = self.homes[machine] / name
        copy.write_bytes((self.homes["gateway"] / name).read_bytes())
        copy.chmod(0o600)


@pytest.fixture(params=["loopback", "three networks"])
def reader(request: pytest.FixtureRequest, place: Path, needs: Callable[..., None]) -> Iterator[Reader]:
    needs("tmux", "install")
    networks = None
    if request.param == "three networks":
        try:
            networks = ThreeNetworks()
        except OSError as error:
            pytest.skip(f"no network namespaces: {error}")
    before = list_pids()
    made = Reader(place, networks)
    yield made
    for process in reversed(made.going_on):
        process.terminate()
        process.wait(20)
    for home in made.homes.values():
        sweep(home, before)
    if networks:
        networks.close()


@pytest.mark.night
def test_the_steps_of_the_page(reader: Reader) -> None:
    assert re.findall(r"^\$ (.+)", PAGE.read_text(), re.MULTILINE) == [command for _, command in STEPS]
    if reader.networks:
        # not even a refusal comes back from a machine that cannot be reached
        script = f"import socket; socket.create_connection(('{ADDRESSES['host'][1]}', 22), 2)"
        words = [*reader.networks.inside("client"), sys.executable, "-c", script]
        assert "Refused" not in subprocess.run(words, capture_output=True, text=True, check=False).stderr
    told = ""
    for machine, command in STEPS:
        told = reader.type(machine, command)
        if command.endswith("-- uname"):
            assert told == "Linux\n"
        if command.endswith("machine events thathost"):
            # what happens is recorded a moment later
            until(lambda: "thathost/sh" in reader.type("client", "tmuxctl machine events thathost"), "nothing is told")
        if "add-host" in command:
            reader.bring("build-box.json", "host")
        if "add-client" in command:
            reader.bring("laptop.json", "client")
        if found := re.search(r"code: ([0-9-]+)\non the client: tmuxctl machine pair NAME ([a-z2-7]{16})\n", told):
            reader.code = found[1]
            reader.meant["k5wq7hl2mzt3ybvn"] = found[2]
    # the first event was told before
    assert not re.search("^ +1 ", told, re.MULTILINE)
