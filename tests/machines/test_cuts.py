"""The connection to a machine is cut, silently and for a while: nothing is lost, doubled or left hanging."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from machines.interrupted_writes import PATIENCE, check_writes_and_output
from machines.relay import Relay
from machines.ssh_server import SshServer, configure_ssh

from tmuxctl.control import Control
from tmuxctl.errors import Unreachable

pytestmark = pytest.mark.night

CUT_SECONDS = 20.0


@pytest.fixture
def relay(site: Path) -> Iterator[Relay]:
    """The way to web1."""
    server = SshServer(site, "web1")
    made = Relay(server.port)
    server.client = server.client.replace(f"Port {server.port}\n", f"Port {made.port}\n  HostKeyAlias web1-key\n")
    known = server.folder / "known_hosts"
    known.write_text(known.read_text().replace(f"[127.0.0.1]:{server.port}", "web1-key"))
    configure_ssh(site, [server])
    yield made
    made.cut.clear()
    made.close()


@pytest.fixture
def far(relay: Relay) -> Iterator[Control]:
    """The operations of a process that stays."""
    with Control(resident=True) as control:
        yield control


def test_of_200_writes_none_is_lost_or_doubled_and_output_is_whole(far: Control, relay: Relay, site: Path) -> None:
    def interrupt() -> threading.Thread:
        relay.cut.set()
        healing = threading.Timer(CUT_SECONDS, relay.cut.clear)
        healing.start()
        return healing

    taken = site / "machines/web1/home/taken"
    results = check_writes_and_output(far, "web1", taken, interrupt, lambda: Control(resident=True))
    assert "unknown" in results, [one for one in results if one != "done"]


def test_a_wait_goes_on_after_the_connection_is_back(far: Control, relay: Relay) -> None:
    far.new("web1/job", ("sh", "-c", "sleep 12; echo finished; sleep 60"))
    relay.cut.set()
    threading.Timer(14.0, relay.cut.clear).start()
    assert far.wait("web1/job", text="finished", timeout=PATIENCE).matched == "text"


def test_a_wait_ends_at_its_own_timeout_while_the_machine_is_away(far: Control, relay: Relay) -> None:
    far.new("web1/job", ("sh", "-c", "sleep 60"))
    relay.cut.set()
    began = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        far.wait("web1/job", text="never", timeout=3.0)
    assert caught.value.details["machine"] == "web1"
    # within the time of one more try to reach it
    assert time.monotonic() - began < 40
    with suppress(Unreachable):
        relay.cut.clear()
