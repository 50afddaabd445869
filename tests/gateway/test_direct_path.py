"""The direct path past a gateway: real hosts, a real nats-server, real links. It may be cut, end, or be lied on, and no call is lost
or done twice."""

from __future__ import annotations

import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.gateway_site import GatewaySite, until
from gateway.joined_host import JoinedHost, become_client, command
from machines.interrupted_writes import check_writes_and_output
from machines.relay import Relay

from tmuxctl.control import Control
from tmuxctl.control.machines.ways import find_path


@pytest.fixture
def joined(gateway: GatewaySite, place: Path, needs: Callable[..., None], monkeypatch) -> Iterator[JoinedHost]:
    """A machine behind the gateway, paired as `thathost`, that answers to offers."""
    needs("tmux")
    (place / "run").mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))
    become_client(gateway)
    before = list_pids()
    host = JoinedHost(gateway, place / "there")
    host.start()
    done = host.pair("thathost")
    assert done.returncode == 0, done.stderr
    yield host
    host.end()
    sweep(host.home, before)


@pytest.fixture
def here(joined: JoinedHost) -> Iterator[Control]:
    """The operations of a process that stays."""
    with Control(resident=True) as made:
        yield made


def test_webrtc(joined: JoinedHost, here: Control, gateway: GatewaySite) -> None:
    here.new("thathost/sh", ("sh",))
    until(lambda: find_path("thathost") == "webrtc", f"no direct path {joined.log}")
    assert here.ask("thathost/sh", b"echo one").text == "one"
    gateway.end(signal.SIGKILL)
    assert here.ask("thathost/sh", b"echo two").text == "two"
    assert find_path("thathost") == "webrtc"
