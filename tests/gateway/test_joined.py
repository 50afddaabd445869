"""A machine behind a gateway, from `gateway up` on: a real nats-server, and a second process that serves with a home and a tmux
of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import list_pids, sweep
from gateway import rough_connection
from gateway.gateway_site import GatewaySite, connect, until
from gateway.joined_host import JoinedHost, become_client, command, remove_pairing

from tmuxctl.control import Control
from tmuxctl.control.machines import remote
from tmuxctl.errors import Conflict, Denied, NotFound, TmuxctlError, Unreachable
from tmuxctl.gateway import subjects
from tmuxctl.gateway.carrier import GatewayCarrier, client_credentials_path, read_client_credentials
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.gateway.host import GatewayHost, HostLimits, RateLimit
from tmuxctl.gateway.messages import ABOUT, PAIRING
from tmuxctl.gateway.pairing import let_client_in
from tmuxctl.gateway.server.authority import claims
from tmuxctl.gateway.server.authority.accounts import Accounts
from tmuxctl.machines import MachineEntry
from tmuxctl.rpc.records import Header, RemoteCall, pack_call
from tmuxctl.sealed import pairing
from tmuxctl.sealed.keys import KeyFiles, make_key_pair
from tmuxctl.sealed.trust import AuthorizedClient, AuthorizedClients, KnownMachine, KnownMachines
from tmuxctl.timing import TIMING, RpcTiming
from tmuxctl.value import changed

QUICK = changed(TIMING, rpc=RpcTiming(beat_seconds=0.2, gap_seconds=0.05, silence_seconds=20.0))

SECRET_TEXT = "the-typed-words"


@pytest.fixture
def host(gateway: GatewaySite, place: Path, needs: Callable[..., None]) -> Iterator[JoinedHost]:
    """A machine behind the gateway that serves; the test's own user is a client of the gateway."""
    needs("tmux")
    become_client(gateway)
    before = list_pids()
    made = JoinedHost(gateway, place / "there")
    made.start()
    yield made
    made.end()
    sweep(made.home, before)


@pytest.fixture
def thathost(host: JoinedHost) -> JoinedHost:
    """The same, paired by its code: `thathost` here."""
    done = host.pair("thathost")
    assert done.returncode == 0, done.stderr
    return host


@pytest.fixture
def here(thathost: JoinedHost) -> Iterator[Control]:
    """The operations of this machine, from which `thathost` is reached."""
    with Control(timing=QUICK) as made:
        yield made


def result(*words: str) -> str:
    """What a command prints that succeeds."""
    done = command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def error_of(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """The error that a command with --json tells: its type and reason."""
    assert done.returncode
    found: dict[str, Any] = json.loads(done.stdout or done.stderr)["error"]
    return found["code"], found["reason"]


def reason(call: Callable[[], object]) -> str | None:
    """The reason of the error that a call ends with."""
    with pytest.raises(TmuxctlError) as found:
        call()
    return found.value.reason


@pytest.mark.night
def test_the_verbs_by_the_command_line(thathost: JoinedHost) -> None:
    told = result("new", "thathost/sh", "--", "sh")
    assert told.startswith("thathost/sh ")
    assert "tmuxctl screen thathost/sh" in told
    assert "attach" not in told
    assert result("exec", "thathost/sh", "--", "uname") == "Linux\n"
    assert result("ask", "thathost/sh", f"echo {SECRET_TEXT}") == f"{SECRET_TEXT}\n"
    assert SECRET_TEXT in result("screen", "thathost/sh")
    assert "thathost/sh" in result("ls", "thathost/")
    assert "thathost/sh" not in result("ls")
    assert f"thathost  gateway {thathost.id}" in result("machine", "ls")
    assert "sh" in thathost.command("ls").stdout
    assert result("kill", "thathost/sh") == "thathost/sh\n"
    assert thathost.command("ls", "--quiet").stdout == ""


@pytest.mark.night
def test_the_verbs_of_the_library_and_output_that_is_followed(here: Control) -> None:
    here.new("thathost/sh", ("sh",))
    followed = here.read("thathost/sh", follow=True)
    found: list[str] = []

    def follow() -> None:
        with suppress(TmuxctlError):
            found.extend(str(getattr(one, "text", one)) for one in followed)

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    assert here.ask("thathost/sh", b"echo one").text == "one"
    until(lambda: any("one" in one for one in found), "nothing followed")
    here.kill(("thathost/sh",))
    reader.join(20)
    assert not reader.is_alive()


@pytest.mark.night
def test_rights_and_patterns_are_decided_there(host: JoinedHost) -> None:
    assert host.command("new", "build-1", "--", "sh").returncode == 0
    assert host.command("new", "other", "--", "sh").returncode == 0
    done = host.pair("thathost", "--right", "read", "--only", "build-*")
    assert done.returncode == 0, done.stderr
    assert "read  build-*" in done.stdout
    assert "$" in result("screen", "thathost/build-1")
    assert error_of(command("send", "thathost/build-1", "x", "--json")) == ("denied", "right")
    assert error_of(command("screen", "thathost/other", "--json")) == ("not_found", "no_session")
    assert result("ls", "thathost/", "--quiet") == "thathost/build-1\n"


def test_calls_that_change_something_are_written_down_there(host: JoinedHost) -> None:
    assert host.pair("thathost", "--right", "read", "--right", "create", "--right", "write").returncode == 0
    result("new", "thathost/sh", "--", "sh")
    result("send", "thathost/sh", f"echo {SECRET_TEXT}")
    result("screen", "thathost/sh")
    assert command("kill", "thathost/sh").returncode
    log = (host.home / ".local/state/tmuxctl/serve/audit.log").read_text()
    rows = [json.loads(line) for line in log.splitlines()]
    told = [(row["by"], row["operation"], row["session"], row["result"]) for row in rows if row["by"] != "user 0"]
    assert told == [
        ("client tester", "new", "sh", "done"),
        ("client tester", "send", "sh", "done"),
        ("client tester", "kill", None, "right"),
    ]
    assert SECRET_TEXT not in log


@pytest.mark.night
def test_a_host_that_was_never_paired_with_is_not_reached(host: JoinedHost) -> None:
    assert error_of(command("screen", "thathost/sh", "--json"))[0] == "unreachable"
    Path(client_credentials_path()).with_name("machines.toml").write_text(f'[thathost]\ngateway = "{host.id}"\n')
    done = command("screen", "thathost/sh")
    assert done.returncode
    assert f"tmuxctl machine pair thathost {host.id}" in done.stderr


@pytest.mark.night
def test_a_client_that_the_host_does_not_know_is_refused(thathost: JoinedHost) -> None:
    thathost.authorized.write_text("")
    assert error_of(command("screen", "thathost/sh", "--json")) == ("denied", "unpaired")


@pytest.mark.night
def test_a_client_that_is_taken_out_is_refused_at_its_next_call(thathost: JoinedHost, here: Control) -> None:
    here.new("thathost/sh", ("sh",))
    followed = iter(here.read("thathost/sh", follow=True))
    thathost.authorized.write_text("# nobody\n")
    assert reason(lambda: here.send("thathost/sh", b"echo no")) == "unpaired"
    assert thathost.command("send", "sh", "echo more").returncode == 0

    def read_all() -> None:
        for _ in followed:
            pass

    assert reason(read_all) == "unpaired"
    assert "no" not in thathost.command("screen", "sh").stdout.split()


@pytest.mark.night
@pytest.mark.parametrize(
    ("granted", "kept", "refused"),
    [
        ("read,write,create,kill *", "read,write,create,kill web-*", "no_session"),
        ("read,write,create,kill *", "write *", "right"),
    ],
    ids=["patterns", "rights"],
)
def test_a_wait_tells_nothing_that_its_client_may_not_know_any_more(
    thathost: JoinedHost, here: Control, granted: str, kept: str, refused: str
) -> None:
    here.new("thathost/sh", ("sh",))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: reason(lambda: here.wait("thathost/sh", text="^secret", timeout=15)))
        here.send("thathost/sh", b"read go")
        entry = thathost.authorized.read_text()
        assert granted in entry
        thathost.authorized.write_text(entry.replace(granted, kept))
        assert thathost.command("send", "sh", "").returncode == 0
        assert thathost.command("send", "sh", "echo sec''ret").returncode == 0
        assert waiting.result(60) == refused


@pytest.mark.night
def test_a_host_with_another_key_is_not_talked_to(thathost: JoinedHost) -> None:
    thathost.end()
    (key,) = thathost.home.glob(".local/state/tmuxctl/keys/static.json")
    key.unlink()
    thathost.start()
    assert error_of(command("screen", "thathost/sh", "--json")) == ("denied", "key_changed")
    done = thathost.pair("thathost", "--json")
    assert done.returncode
    assert "HAS CHANGED" in done.stderr
    remove_pairing("thathost")
    done = thathost.pair("thathost")
    assert done.returncode == 0, done.stderr
    assert "thathost/sh" in result("new", "thathost/sh", "--", "sh")


@pytest.mark.night
def test_a_wrong_code_pairs_nobody(host: JoinedHost) -> None:
    done = host.pair("thathost", code="000-000-000")
    assert done.returncode
    assert "the code was mistyped" in done.stderr
    assert not host.authorized.exists()
    assert KnownMachines().entries() == ()


@pytest.mark.night
def test_a_code_for_one_client_cannot_be_used_up_by_another(
    host: JoinedHost, gateway: GatewaySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = read_client_credentials().id
    other = gateway.add("client")
    guess = pairing.PairingClient("111-111-111", make_key_pair(), AuthorizedClient("other", bytes(32)))
    done = host.pair("thathost", "--client", own, before=lambda: send_guess(other, host.id, guess.first))
    assert done.returncode == 0, done.stderr


def send_guess(credentials: Credentials, host: str, first: bytes) -> None:
    """Begin a pairing as another client of the gateway; nothing answers it."""
    with connect(credentials) as made, pytest.raises(TmuxctlError):
        made.request(host, PAIRING + first, 1.0, handshake=True)


@pytest.mark.night
@pytest.mark.parametrize(("third", "reason_told"), [(b"x" * 60, "wrong_code"), (b"", "no_client")])
def test_the_client_that_has_used_up_a_code_is_named(gateway: GatewaySite, third: bytes, reason_told: str) -> None:
    host, other = gateway.add("host"), gateway.add("client")
    guess = pairing.PairingClient("111-111-111", make_key_pair(), AuthorizedClient("other", bytes(32)))
    used: list[str] = []

    def use_up() -> None:
        with connect(other) as made:
            made.request(host.id, PAIRING + guess.first, 20.0, handshake=True)
            if third:
                made.publish(subjects.handshake(host.id, other.id), PAIRING + third)
                made.flush()

    using = threading.Thread(target=use_up, daemon=True)
    seconds = 30.0 if third else 3.0
    with pytest.raises(TmuxctlError) as caught:
        let_client_in(
            host,
            "laptop",
            ("read",),
            ("*",),
            lambda code: using.start(),
            used=used.append,
            timing=changed(TIMING, sealed=changed(TIMING.sealed, pairing_seconds=seconds)),
        )
    using.join()
    assert caught.value.reason == reason_told
    assert f"client {other.id} has used up the code" in caught.value.message
    assert used == [other.id]


@pytest.mark.night
def test_pairing_with_what_does_not_wait_for_it(host: JoinedHost, gateway: GatewaySite) -> None:
    absent = gateway.add("host").id
    done = command("machine", "pair", "absent", absent, given="123-456-789\n")
    assert done.returncode == 7
    assert "tmuxctl gateway pair" in done.stderr


@pytest.mark.night
def test_one_process_is_a_host(thathost: JoinedHost) -> None:
    done = thathost.command("--socket", "second", "serve", "--listen", "unix", "--gateway", "host.json")
    assert done.returncode
    assert "another process serves" in done.stderr


@pytest.mark.night
def test_credentials_of_the_other_role_are_refused(host: JoinedHost) -> None:
    path = Path(client_credentials_path())
    served = host.command("serve", "--gateway", str(path))
    assert served.returncode == 2
    assert "is for a client" in served.stderr
    path.write_bytes((host.home / "host.json").read_bytes())
    assert "is for a host" in command("machine", "pair", "thathost", host.id, given="123-456-789\n").stderr


def add_spy(gateway: GatewaySite) -> Credentials:
    """A user of the gateway who may do everything, as the operator can make one."""
    (tenant,) = Accounts(gateway.files).tenants
    key = claims.sign_account_user(tenant.account, "spy", (">",), (">",))
    return changed(read_client_credentials(), id="a" * 16, seed=key.seed, jwt=key.claims)


@pytest.mark.night
def test_the_operator_sees_no_word_of_it(thathost: JoinedHost, gateway: GatewaySite) -> None:
    with connect(add_spy(gateway)) as spy:
        everything = spy.subscribe(">", of_stream=True, most_messages=1 << 16, most_bytes=1 << 28)
        assert "thathost/secretname" in result("new", "thathost/secretname", "--", "sh")
        assert result("ask", "thathost/secretname", f"echo {SECRET_TEXT}") == f"{SECRET_TEXT}\n"
        assert SECRET_TEXT in result("screen", "thathost/secretname")
        result("kill", "thathost/secretname")
        seen = []
        with suppress(TmuxctlError):
            while True:
                seen.append(everything.next(0.5))
    # it sees that there is something, between whom
    assert any(one.subject.startswith(f"tmc.{thathost.id}.rpc.") for one in seen)
    assert any(one.subject.startswith(f"tmc.{thathost.id}.output.") for one in seen)
    files = [path for path in Path(gateway.files.folder).rglob("*") if path.is_file()]
    assert files
    told = [one.subject.encode() + repr(one.headers).encode() + one.data for one in seen]
    for text in (*told, *(path.read_bytes() for path in files), gateway.log.encode()):
        for word in (SECRET_TEXT.encode(), b"secretname", b"thathost", b"uname", b"tester"):
            assert word not in text


@pytest.mark.night
def test_a_host_that_is_killed_is_unreachable_and_comes_back(thathost: JoinedHost, here: Control) -> None:
    here.new("thathost/sh", ("sh",))
    thathost.end(kill=True)
    with pytest.raises(Unreachable):
        here.screen("thathost/sh")
    assert error_of(command("screen", "thathost/sh", "--json")) == ("unreachable", "host_offline")
    thathost.start()
    assert here.ask("thathost/sh", b"echo again").text == "again"


@pytest.mark.night
def test_a_host_that_is_away_costs_its_own_row(thathost: JoinedHost) -> None:
    thathost.end()
    assert "tmuxctl: thathost: is not connected to the gateway" in command("ls", "--all-machines").stderr


@pytest.mark.night
def test_a_gateway_that_is_killed_comes_back(thathost: JoinedHost, here: Control, gateway: GatewaySite) -> None:
    here.new("thathost/sh", ("sh",))
    gateway.end(signal.SIGKILL)
    with pytest.raises(Unreachable):
        here.screen("thathost/sh")
    gateway.start()
    began = time.monotonic()

    def answers() -> bool:
        with suppress(Unreachable):
            return here.ask("thathost/sh", b"echo again").text == "again"
        return False

    until(answers, "no verb again", seconds=30.0)
    print(f"verbs again {time.monotonic() - began:.1f} s after the gateway")
    assert result("exec", "thathost/sh", "--", "uname") == "Linux\n"


@pytest.mark.night
def test_a_wait_outlives_the_gateway(thathost: JoinedHost, here: Control, gateway: GatewaySite) -> None:
    here.new("thathost/sh", ("sh",))
    found: list[object] = []

    def wait() -> None:
        found.append(here.wait("thathost/sh", text="^the end$", timeout=60.0))

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    gateway.end(signal.SIGKILL)
    gateway.start()
    assert thathost.command("send", "sh", "echo the end").returncode == 0
    waiter.join(60)
    assert found


@pytest.mark.night
def test_what_a_bad_gateway_brings_is_done_once(host: JoinedHost, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host.end()
    host.start((sys.executable, str(Path(__file__).with_name("rough_connection.py"))))
    done = None
    for _ in range(10):
        # a message of a pairing that gets lost ends it
        done = host.pair("thathost")
        if done.returncode == 0:
            break
    assert done is not None
    assert done.returncode == 0, done
    monkeypatch.setitem(
        remote.CARRIERS,
        "gateway",
        lambda entry: lambda receive, lost: rough_connection.RoughCarrier(entry, receive, lost),
    )
    rough_connection.RoughConnection.done.clear()
    counted = place / "counted"
    unknown = []
    with Control(timing=QUICK) as here:
        until(lambda: try_new(here), "no session")
        for number in range(20):
            try:
                here.ask("thathost/sh", f"echo {number} >>{counted}".encode(), timeout=30.0)
            except (Unreachable, Denied):
                unknown.append(str(number))
    lines = counted.read_text().split()
    assert len(lines) == len(set(lines))
    assert {*map(str, range(20))} - {*unknown} <= {*lines}
    # most went through
    assert len(unknown) < 10, unknown
    fates = rough_connection.RoughConnection.done
    assert all(fates[fate] for fate in ("lost", "repeated", "late", "changed")), fates
    assert "Traceback" not in host.log


def try_new(here: Control) -> bool:
    """Whether there is a session now."""
    with suppress(Unreachable, Denied):
        # there is one, where its answer got lost
        with suppress(Conflict):
            here.new("thathost/sh", ("sh",))
        return True
    return False


@pytest.mark.night
def test_what_strangers_send_ends_nothing(thathost: JoinedHost, gateway: GatewaySite) -> None:
    with connect(gateway.add("client")) as stranger:
        own = stranger.credentials.id
        for size in (0, 1, 24, 25, 45, 113, 4096, 1 << 20):
            for first in (b"\0", b"\1", b"\2", b"p", b"\xff"):
                data = (first + os.urandom(size))[:size]
                stranger.publish(subjects.handshake(thathost.id, own), data, subjects.reply(thathost.id, own, "x"))
                stranger.publish(subjects.handshake(thathost.id, own), data)
                stranger.publish(subjects.rpc(thathost.id, own), data)
        for _ in range(300):
            stranger.publish(subjects.handshake(thathost.id, own), b"\1\1\1" + os.urandom(104))
        stranger.flush()
        assert "thathost/sh" in result("new", "thathost/sh", "--", "sh")
    assert "Traceback" not in thathost.log


@pytest.fixture
def own_host(gateway: GatewaySite) -> Iterator[Callable[..., tuple[GatewayHost, MachineEntry]]]:
    """A host in the test's own process that knows the test's own user, with limits."""
    become_client(gateway)
    key = KeyFiles().load().current.public
    AuthorizedClients().add(AuthorizedClient("tester", key))
    made: list[GatewayHost] = []
    with Control() as here:

        def start(limits: HostLimits) -> tuple[GatewayHost, MachineEntry]:
            credentials = gateway.add("host")
            made.append(GatewayHost(here, credentials, limits=limits))
            made[-1].connection.wait_connected(20.0)
            KnownMachines().add(KnownMachine("thathost", credentials.id, key))
            return made[-1], MachineEntry("thathost", gateway=credentials.id)

        yield start
        for one in made:
            one.close()


@pytest.mark.night
def test_a_client_has_a_limited_number_of_channels(own_host: Callable[..., tuple[GatewayHost, MachineEntry]]) -> None:
    _, entry = own_host(HostLimits(channels=2))
    lost = [threading.Event() for _ in range(3)]
    answers: list[Header] = []
    carriers = [GatewayCarrier(entry, lambda header, body: answers.append(header), one.set) for one in lost]
    for carrier in carriers:
        carrier.send({"v": 1, "type": "more", "id": "a" * 16, "next": 0, "window": 1}, b"")
    assert lost[0].wait(20)
    until(lambda: len(answers) == 2, "the newer channels hold")
    assert not lost[1].is_set()
    assert not lost[2].is_set()
    for carrier in carriers:
        carrier.close()


def test_the_channels_of_a_process_share_a_connection(
    own_host: Callable[..., tuple[GatewayHost, MachineEntry]], gateway: GatewaySite
) -> None:
    _, entry = own_host(HostLimits())
    before = gateway.count_connections()
    answers: list[list[Header]] = [[], [], []]

    def open_carrier(number: int) -> GatewayCarrier:
        return GatewayCarrier(entry, lambda header, body: answers[number].append(header), lambda: None)

    carriers = [open_carrier(number) for number in range(3)]
    assert gateway.count_connections() == before + 1
    carriers[0].close()
    carriers[0].close()
    for carrier in carriers[1:]:
        carrier.send({"v": 1, "type": ABOUT}, b"")
    until(lambda: [len(one) for one in answers] == [0, 1, 1], "each channel has its own answer")
    carriers[1].close()
    carriers[2].send({"v": 1, "type": ABOUT}, b"")
    until(lambda: len(answers[2]) == 2, "it ended with another channel")
    carriers[2].close()
    until(lambda: gateway.count_connections() == before, "the last one leaves it open")


def test_a_new_key_that_cannot_be_kept_ends_nothing(
    own_host: Callable[..., tuple[GatewayHost, MachineEntry]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, entry = own_host(HostLimits())
    carrier = GatewayCarrier(entry, lambda *_: None, lambda: None)

    def fill(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(KnownMachines, "replace_key", fill)
    carrier._take_later(make_key_pair().public)
    carrier.close()
    assert "No space left" in capsys.readouterr().err


def test_a_call_that_was_first_sent_elsewhere_is_carried_out_by_a_host_that_is_older(
    own_host: Callable[..., tuple[GatewayHost, MachineEntry]],
) -> None:
    _, entry = own_host(HostLimits())
    answers: list[str] = []
    carrier = GatewayCarrier(entry, lambda header, body: answers.append(str(header["type"])), lambda: None)
    call = RemoteCall("ls", {}, {})
    header = {"v": 1, "type": "call", "id": "b" * 16, "part": 0, "parts": 1, "window": 1, "digest": call.digest}
    carrier.send({**header, "age": 0.01, "until": 10.0, "repeatable": False}, pack_call(call))
    until(lambda: answers, "no answer")
    carrier.close()
    assert answers[0] in ("taken", "reply")


def test_another_host_cannot_use_up_the_handshakes_of_a_client(
    own_host: Callable[..., tuple[GatewayHost, MachineEntry]], gateway: GatewaySite
) -> None:
    """The stream says where it is told to that an event is stored."""
    host, entry = own_host(HostLimits(client_handshakes=0.001, burst_seconds=1000.0))
    with connect(gateway.add("host")) as other:
        own = other.credentials.id
        for number in range(5):
            event = b"%d" % number
            other.publish(
                subjects.events(own), event, subjects.handshake(entry.gateway or "", read_client_credentials().id)
            )
        other.flush()
    until(lambda: host.refused["stream"] == 5, "they are not told apart")
    GatewayCarrier(entry, lambda *_: None, lambda: None).close()


@pytest.mark.night
def test_a_client_that_is_not_authorized_gets_no_channel(
    own_host: Callable[..., tuple[GatewayHost, MachineEntry]], until: Callable[[Callable[[], object]], object]
) -> None:
    host, entry = own_host(HostLimits())
    AuthorizedClients().remove("tester")
    assert reason(lambda: GatewayCarrier(entry, lambda *_: None, lambda: None)) == "unpaired"
    # the client may have its answer before that is counted
    until(lambda: host.refused["unpaired"])
    assert host.refused == {"unpaired": 1}


@pytest.mark.night
def test_a_client_has_a_limited_number_of_handshakes(own_host: Callable[..., tuple[GatewayHost, MachineEntry]]) -> None:
    host, entry = own_host(HostLimits(client_handshakes=1e-6, burst_seconds=2e6))
    with suppress(TmuxctlError):
        for _ in range(3):
            GatewayCarrier(
                entry,
                lambda header, body: None,
                lambda: None,
                timing=changed(TIMING.gateway, handshake_seconds=0.3),
            ).close()
    assert host.refused["too_many"] == 3


def test_a_rate_is_limited_and_recovers() -> None:
    now = [0.0]
    rate = RateLimit(10.0, 0.5, lambda: now[0])
    assert [rate.take() for _ in range(6)] == [True] * 5 + [False]
    now[0] = 0.2
    assert [rate.take() for _ in range(3)] == [True, True, False]
    now[0] = 9.0
    assert [rate.take() for _ in range(6)] == [True] * 5 + [False]


@pytest.mark.night
def test_a_machine_of_which_another_id_is_known_is_not_reached(
    own_host: Callable[..., tuple[GatewayHost, MachineEntry]],
) -> None:
    own_host(HostLimits())
    other = MachineEntry("thathost", gateway="b" * 16)
    assert reason(lambda: GatewayCarrier(other, lambda *_: None, lambda: None)) == "key_changed"
    with pytest.raises(NotFound):
        GatewayCarrier(MachineEntry("another", gateway="b" * 16), lambda *_: None, lambda: None)
