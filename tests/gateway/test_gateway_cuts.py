"""The way through a gateway is cut, silently and for a while, or the gateway ends: nothing is lost, doubled or left hanging."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.gateway_site import GatewaySite
from gateway.joined_host import JoinedHost, become_client
from machines.interrupted_writes import check_writes_and_output
from machines.relay import Relay

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError

pytestmark = pytest.mark.night

CUT_SECONDS = 20.0


@pytest.fixture
def relay(gateway: GatewaySite) -> Iterator[Relay]:
    """The way of the host to the gateway."""
    made = Relay(gateway.port)
    yield made
    made.cut.clear()
    made.close()


@pytest.fixture
def far(gateway: GatewaySite, relay: Relay, place: Path, needs: Callable[..., None]) -> Iterator[JoinedHost]:
    """A machine behind that way, paired as `thathost`."""
    needs("tmux")
    become_client(gateway)
    before = list_pids()
    host = JoinedHost(gateway, place / "there")
    credentials = host.home / "host.json"
    told = json.loads(credentials.read_text())
    told["urls"] = [url.replace(f":{gateway.port}", f":{relay.port}") for url in told["urls"]]
    credentials.write_text(json.dumps(told))
    host.start()
    done = host.pair("thathost")
    assert done.returncode == 0, done.stderr
    yield host
    relay.cut.clear()
    host.end()
    sweep(host.home, before)


@pytest.fixture
def here(far: JoinedHost) -> Iterator[Control]:
    """The operations of a process that stays."""
    with Control(resident=True) as made:
        yield made


def test_a_host_is_cut_off_in_the_middle_of_writes(far: JoinedHost, here: Control, relay: Relay) -> None:
    def interrupt() -> threading.Thread:
        relay.cut.set()
        healing = threading.Timer(CUT_SECONDS, relay.cut.clear)
        healing.start()
        return healing

    results = check_writes_and_output(here, "thathost", far.home / "taken", interrupt, lambda: Control(resident=True))
    print("not done at once:", [one for one in results if one != "done"])
    assert set(results) - {"done", "dup"}


def test_a_gateway_ends_in_the_middle_of_writes(far: JoinedHost, here: Control, gateway: GatewaySite) -> None:
    started: list[float] = []

    def interrupt() -> threading.Thread:
        gateway.end(signal.SIGKILL)

        def start() -> None:
            time.sleep(2.0)
            gateway.start()
            started.append(time.monotonic())
            while True:
                try:
                    here.screen("thathost/out")
                    break
                except TmuxctlError:
                    time.sleep(0.05)
            print(f"an answer {time.monotonic() - started[0]:.1f} s after the gateway was there again")

        healing = threading.Thread(target=start)
        healing.start()
        return healing

    results = check_writes_and_output(here, "thathost", far.home / "taken", interrupt, lambda: Control(resident=True))
    print("not done at once:", [one for one in results if one != "done"])
    assert started
