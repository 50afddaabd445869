"""The direct path past a gateway: real hosts, a real nats-server, real links. It may be cut, end, or be lied on, and no call is
lost or done twice."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.direct_network import OneWire
from gateway.gateway_site import GatewaySite, until
from gateway.joined_host import TMUXCTL, JoinedHost, become_client, command
from gateway.lying_link import Liar, Meddler
from machines.interrupted_writes import check_writes_and_output
from machines.relay import Relay

from tmuxctl.control import Control
from tmuxctl.control.machines.ways import find_path
from tmuxctl.errors import Unreachable
from tmuxctl.gateway.direct import tcp, webrtc
from tmuxctl.gateway.direct.addresses import remember_addresses
from tmuxctl.machines import machines_path
from tmuxctl.timing import TIMING
from tmuxctl.value import changed
from tools.ports import free_ports

LINKS = ("webrtc", "tcp")


@pytest.fixture
def runtime(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "run").mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))


def wait_direct(here: Control, host: JoinedHost, link: str) -> None:
    """Ask the machine for something, until that goes by a direct path: who asks nothing is given none."""

    def ask() -> bool:
        here.ls("thathost/")
        return find_path("thathost") == link

    until(ask, f"no direct path\n{host.log}")


class Wired:
    """A machine one wire away, of which the gateway is on another way."""

    def __init__(self, host: JoinedHost, wire: OneWire, relay: Relay, link: str) -> None:
        self.host, self.wire, self.relay, self.link = host, wire, relay, link

    def start(self) -> None:
        direct = ("--direct", f"{self.wire.there}:8770") if self.link == "tcp" else ()
        self.host.start((*self.wire.inside(), *TMUXCTL), ("--gateway", "host.json", *direct))

    def wait_direct(self, here: Control) -> None:
        wait_direct(here, self.host, self.link)


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


@pytest.mark.night
def test_the_next_verb_after_a_cut(wired: Wired, here: Control) -> None:
    here.new("thathost/sh", ("sh",))
    wired.wait_direct(here)
    times, backs = [], []
    for number in range(int(os.environ.get("CUTS", "3"))):
        wired.wire.cut()
        began = time.monotonic()
        here.send("thathost/sh", f"echo {number}".encode())
        times.append(time.monotonic() - began)
        time.sleep(float(os.environ.get("CUT_SECONDS", "1")))
        wired.wire.heal()
        began = time.monotonic()
        wired.wait_direct(here)
        backs.append(time.monotonic() - began)
    print(f"next verb: median {statistics.median(times):.3f} s, worst {max(times):.3f} s")
    print(f"direct again: median {statistics.median(backs):.3f} s, worst {max(backs):.3f} s")
    assert min(times) > 0.3, "it was not cut"
    assert max(times) < 2.0


@pytest.mark.night
@pytest.mark.parametrize("wired", ["webrtc"], indirect=True)
def test_writes_and_output_while_it_is_cut_several_times(wired: Wired, here: Control) -> None:
    here.new("thathost/first", ("sh",))
    wired.wait_direct(here)

    healed = threading.Event()
    healed.set()

    def interrupt() -> threading.Thread:
        assert healed.wait(20)
        wired.wait_direct(here)
        healed.clear()
        wired.wire.cut()

        def heal() -> None:
            wired.wire.heal()
            healed.set()

        healing = threading.Timer(1.0, heal)
        healing.start()
        return healing

    taken = wired.host.home / "taken"
    results = check_writes_and_output(
        here, "thathost", taken, interrupt, lambda: Control(resident=True), cuts=3, lines=300
    )
    assert results == ["done"] * 200


@pytest.mark.night
def test_the_gateway_ends_while_it_stands(wired: Wired, here: Control, gateway: GatewaySite) -> None:
    here.new("thathost/sh", ("sh",))
    wired.wait_direct(here)
    followed: list[str] = []

    def follow() -> None:
        with suppress(Unreachable):
            for one in here.read("thathost/sh", follow=True):
                followed.append(str(getattr(one, "text", one)))

    threading.Thread(target=follow, daemon=True).start()
    gateway.end(signal.SIGKILL)
    for number in range(20):
        assert here.ask("thathost/sh", f"echo answer-{number}".encode()).text == f"answer-{number}"
    until(lambda: "answer-19" in "".join(followed), "the output is not followed any more")
    assert find_path("thathost") == wired.link


@pytest.mark.night
@pytest.mark.parametrize("wired", ["webrtc"], indirect=True)
def test_both_ways_are_lost(wired: Wired) -> None:
    impatient = changed(TIMING, rpc=changed(TIMING.rpc, silence_seconds=3.0))
    with Control(resident=True, timing=impatient) as here:
        here.new("thathost/sh", ("sh",))
        wired.wait_direct(here)
        wired.relay.cut.set()
        wired.wire.cut()
        with pytest.raises(Unreachable) as screen:
            here.screen("thathost/sh")
        assert screen.value.reason == "no_answer"
        with pytest.raises(Unreachable):
            here.send("thathost/sh", b"echo lost")
        wired.wire.heal()
        wired.relay.cut.clear()
        until(lambda: _is_there(here), "it does not come back", 40.0)


def _is_there(here: Control) -> bool:
    try:
        here.screen("thathost/sh")
        return True
    except Unreachable:
        return False


# on this machine alone


@pytest.fixture
def host(runtime: None, gateway: GatewaySite, place: Path, needs: Callable[..., None]) -> Iterator[JoinedHost]:
    """A machine behind the gateway, paired as `thathost`, that does not serve yet."""
    needs("tmux")
    become_client(gateway)
    before = list_pids()
    made = JoinedHost(gateway, place / "there")
    yield made
    made.end()
    sweep(made.home, before)


def _serve(host: JoinedHost, *words: str) -> None:
    host.start(gateway=("--gateway", "host.json", *words))
    done = host.pair("thathost")
    assert done.returncode == 0, done.stderr


def _ask_several(here: Control, count: int = 20) -> None:
    for number in range(count):
        assert here.ask("thathost/sh", f"echo answer-{number}".encode()).text == f"answer-{number}"


@pytest.mark.night
def test_a_host_is_found_again_without_the_gateway(host: JoinedHost, gateway: GatewaySite) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    _serve(host, "--direct", address)
    with Control(resident=True) as here:
        here.new("thathost/sh", ("sh",))
        wait_direct(here, host, "tcp")
        tested = json.loads(command("machine", "test", "thathost", "--json").stdout)
        assert {one["name"]: one["found"] for one in tested["checks"]}["path"] == "direct: over TCP"
        listed = json.loads(command("machine", "ls", "--json").stdout)["machines"]
        assert [one["direct"] for one in listed if one["name"] == "thathost"] == ["tcp"]
        assert "directly" in command("machine", "ls").stdout
    gateway.end(signal.SIGKILL)
    # of processes that never saw the gateway
    assert command("exec", "thathost/sh", "--", "echo", "one").stdout == "one\n"
    with Control(resident=True) as here:
        _ask_several(here, 3)
    host.end()
    done = command("screen", "thathost/sh", "--json")
    assert json.loads(done.stdout or done.stderr)["error"]["code"] == "unreachable"


@pytest.mark.night
@pytest.mark.parametrize("end", ["client", "host", "forbidden"])
def test_an_end_without_it(host: JoinedHost, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if end == "client":
        monkeypatch.setattr(webrtc, "is_installed", lambda: False)
    if end == "host":
        (host.home / "sitecustomize.py").write_text("import sys\nsys.modules['aiortc'] = None\n")
        host.environment["PYTHONPATH"] = str(host.home)
    port = free_ports(1)[0]
    _serve(host, *(("--direct", f"127.0.0.1:{port}") if end == "forbidden" else ()))
    if end == "forbidden":
        Path(machines_path()).write_text(f'[thathost]\ngateway = "{host.id}"\ndirect = false\n')
    with Control(resident=True) as here:
        here.new("thathost/sh", ("sh",))
        for _ in range(3):
            time.sleep(1.2)
            _ask_several(here, 3)
        assert find_path("thathost") is None


def test_who_asks_once_makes_no_path(host: JoinedHost) -> None:
    _serve(host)
    with Control(resident=True) as here:
        here.ls("thathost/")
        time.sleep(1.5)
        assert not [one.name for one in threading.enumerate() if one.name.startswith("direct path")]


@pytest.mark.night
def test_what_listens_at_the_remembered_address_is_another(host: JoinedHost) -> None:
    _serve(host, "--direct", "off")
    liar = Liar()
    remember_addresses("thathost", host.id, [f"127.0.0.1:{liar.port}"])
    with Control(resident=True) as here:
        here.new("thathost/sh", ("sh",))
        until(lambda: here.ls("thathost/") and liar.taken >= 2, "it is not tried")
        _ask_several(here)
        assert find_path("thathost") is None
    liar.close()


def test_records_are_repeated_and_garbage_comes_between(host: JoinedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_ports(1)[0]
    _serve(host, "--direct", f"127.0.0.1:{port}")
    meddler, connect = Meddler(port), tcp.connect
    monkeypatch.setattr(
        tcp, "connect", lambda _, *words, **named: connect(f"127.0.0.1:{meddler.port}", *words, **named)
    )
    taken = host.home / "taken"
    with Control(resident=True) as here:
        here.new("thathost/in", ("sh", "-c", f"cat >{taken}"))
        wait_direct(here, host, "tcp")
        for number in range(100):
            assert here.send("thathost/in", f"write {number}".encode()).result == "done"
        here.keys("thathost/in", ("C-d",))
        here.wait("thathost/in", exit=True)
    assert taken.read_text().split("\n") == [*(f"write {number}" for number in range(100)), ""]
    assert meddler.repeated > 20
    meddler.close()


@pytest.mark.night
def test_strangers_at_the_port(host: JoinedHost) -> None:
    port = free_ports(1)[0]
    _serve(host, "--direct", f"127.0.0.1:{port}")
    for bad in (b"\xff" * 100, b"\0\0\0\x05rabcd", b"\0\0\0\x00", b"\0\0\0\x50h" + b"a" * 79):
        with socket.create_connection(("127.0.0.1", port), 10) as one:
            one.sendall(bad)
            assert _is_ended(one)
    many = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(12)]
    assert all(_is_ended(one) for one in many[8:])
    assert not any(_has_ended(one) for one in many[:8])
    for one in many:
        one.close()
    with Control(resident=True) as here:
        here.new("thathost/sh", ("sh",))
        wait_direct(here, host, "tcp")
        _ask_several(here, 3)


def _has_ended(one: socket.socket) -> bool:
    """Whether the other side has closed it by now."""
    return bool(select.select([one], [], [], 0)[0])


def _is_ended(one: socket.socket) -> bool:
    one.settimeout(10)
    try:
        return one.recv(10) == b""
    except ConnectionError:
        return True
