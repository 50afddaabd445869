"""The connection to a machine is cut, silently and for a while: nothing is lost, doubled or left hanging."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from machines.relay import Relay
from machines.ssh_server import SshServer, configure_ssh

from tmuxctl.control import Control
from tmuxctl.errors import Unreachable

WRITES, CUT_SECONDS, PATIENCE = 200, 20.0, 90.0


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
    taken = site / "machines/web1/home/taken"
    far.new("web1/in", ("sh", "-c", f"cat >{taken}"))
    far.new("web1/out", ("sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i + 1)); sleep 0.02; done"))
    followed: list[str] = []

    def follow() -> None:
        with Control(resident=True) as control:
            found = control.read("web1/out", follow=True, since=control.log("web1/out", tail=0).cursor)
            assert isinstance(found, Iterator)
            for piece in found:
                followed.append(piece.text)

    follower = threading.Thread(target=follow)
    follower.start()
    while not followed:
        assert follower.is_alive()
        time.sleep(0.01)
    results: list[str] = []
    for number in range(WRITES):
        if number == WRITES // 2:
            relay.cut.set()
            healing = threading.Timer(CUT_SECONDS, relay.cut.clear)
            healing.start()
        results.append(write(far, number))
        deadline = time.monotonic() + PATIENCE
        while results[-1] not in ("done", "dup"):
            assert time.monotonic() < deadline
            results.append(write(far, number))
    healing.join()
    assert "unknown" in results, [one for one in results if one != "done"]
    far.keys("web1/in", ("C-d",))
    far.wait("web1/in", exit=True, timeout=PATIENCE)
    assert taken.read_text().split("\n") == [*(f"write {number}" for number in range(WRITES)), ""]
    follower.join(PATIENCE)
    assert not follower.is_alive()
    lines = "".join(followed).split("\n")
    assert lines[-2:] == ["line 1999", ""]
    first = int(lines[0].split()[1])
    assert lines[:-1] == [f"line {number}" for number in range(first, 2000)]


def write(control: Control, number: int) -> str:
    """Write a line under an id of its own: `done`, `dup`, `unknown`, or why the machine was not reached."""
    try:
        return control.send("web1/in", f"write {number}".encode(), id=f"write{number:08d}").result
    except Unreachable as error:
        return "unknown" if error.reason == "outcome_unknown" else error.reason


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
