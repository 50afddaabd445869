"""The direct path past a gateway: real hosts, a real nats-server, real links. It may be cut, end, or be lied on, and no call is lost
or done twice."""

from __future__ import annotations

import json
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.direct_network import OneWire
from gateway.gateway_site import GatewaySite, until
from gateway.joined_host import TMUXCTL, JoinedHost, become_client
from machines.interrupted_writes import check_writes_and_output
from machines.relay import Relay

from tmuxctl.control import Control
from tmuxctl.control.machines.ways import find_path
from tmuxctl.errors import Unreachable

LINKS = ("webrtc", "tcp")


@pytest.fixture
def runtime(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "run").mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))


class Wired:
    """A machine one wire away, of which the gateway is on another way."""

    def __init__(self, host: JoinedHost, wire: OneWire, relay: Relay, link: str) -> None:
        self.host, self.wire, self.relay, self.link = host, wire, relay, link

    def start(self) -> None:
        direct = ("--direct", f"{self.wire.there}:8770") if self.link == "tcp" else ()
        self.host.start((*self.wire.inside(), *TMUXCTL), ("--gateway", "host.json", *direct))

    def wait_direct(self) -> None:
        until(lambda: find_path("thathost") == self.link, f"no direct path\n{self.host.log}")


@pytest.fixture(params=LINKS)
def wired(
    request: pytest.FixtureRequest, runtime: None, gateway: GatewaySite, place: Path, needs: Callable[..., None]
) -> Iterator[Wired]:
    """Such a machine that serves, paired as `thathost`."""
    needs("tmux")
    try:
        wire = OneWire()
    except OSError as error:
        pytest.skip(f"no networks of its own: {error}")
    become_client(gateway)
    before = list_pids()
    host = JoinedHost(gateway, place / "there")
    relay = Relay(gateway.port, wire.listen())
    credentials = host.home / "host.json"
    told = json.loads(credentials.read_text())
    told["urls"] = [url.replace(f":{gateway.port}", f":{relay.port}") for url in told["urls"]]
    # the command that pairs runs on this side
    (host.home / "here.json").write_text(credentials.read_text())
    (host.home / "here.json").chmod(0o600)
    credentials.write_text(json.dumps(told))
    made = Wired(host, wire, relay, request.param)
    try:
        made.start()
        done = host.pair("thathost", credentials=("--credentials", "here.json"))
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        relay.cut.clear()
        host.end()
        relay.close()
        wire.close()
        sweep(host.home, before)


@pytest.fixture
def here(wired: Wired) -> Iterator[Control]:
    """The operations of a process that stays."""
    with Control(resident=True) as made:
        yield made


def test_the_next_verb_after_a_cut(wired: Wired, here: Control) -> None:
    here.new("thathost/sh", ("sh",))
    wired.wait_direct()
    times, backs = [], []
    for number in range(5):
        wired.wire.cut()
        began = time.monotonic()
        here.send("thathost/sh", f"echo {number}".encode())
        times.append(time.monotonic() - began)
        time.sleep(1.0)
        wired.wire.heal()
        began = time.monotonic()
        wired.wait_direct()
        backs.append(time.monotonic() - began)
    print(f"next verb: median {statistics.median(times):.3f} s, worst {max(times):.3f} s")
    print(f"direct again: median {statistics.median(backs):.3f} s, worst {max(backs):.3f} s")
    assert min(times) > 0.3, "it was not cut"
    assert max(times) < 2.0
