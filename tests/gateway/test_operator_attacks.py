"""What whoever runs a gateway tries with the messages that it carries, and what a machine that was paired with tries: a real
nats-server, a host and clients in processes of their own, and a relay between them that changes what the test wants changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.gateway_site import GatewaySite, connect, until
from gateway.joined_host import JoinedHost, become_client, command, remove_pairing
from gateway.lying_host import WORD
from gateway.operator_relay import OperatorRelay, Relayed, pass_on

from tmuxctl.control import Control
from tmuxctl.gateway import subjects
from tmuxctl.gateway.carrier import client_credentials_path, read_client_credentials
from tmuxctl.gateway.connection import EVENT_BYTES, Connection
from tmuxctl.gateway.events import reading
from tmuxctl.sealed.handshake import ClientHandshake
from tmuxctl.sealed.keys import make_key_pair
from tmuxctl.sealed.trust import KnownMachines
from tmuxctl.timing import TIMING
from tmuxctl.value import changed


@pytest.fixture
def operator(gateway: GatewaySite, needs: Callable[..., None]) -> Iterator[OperatorRelay]:
    """The operator of the gateway; who goes by its relay is said by the test."""
    needs("tmux")
    become_client(gateway)
    made = OperatorRelay(gateway)
    yield made
    made.end()


@pytest.fixture
def thathost(gateway: GatewaySite, operator: OperatorRelay, place: Path) -> Iterator[JoinedHost]:
    """A machine whose connection goes by the operator, paired; `thathost` here."""
    before = list_pids()
    made = JoinedHost(gateway, place / "there")
    operator.divert(made.home / "host.json")
    made.start()
    done = made.pair("thathost")
    assert done.returncode == 0, done.stderr
    yield made
    made.end()
    sweep(made.home, before)


def run(*words: str) -> str:
    """What a command prints that succeeds."""
    done = command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_output(message: Relayed) -> bool:
    """Whether a host sends it to a client, inside a channel."""
    return message.up and ".output." in message.subject


def is_record(message: Relayed) -> bool:
    """Whether a client sent it to a host, inside a channel."""
    return not message.up and ".rpc." in message.subject


def answer_reads(host: str, data: Callable[[int], bytes]) -> Callable[[Relayed], list[Relayed]]:
    """A hook that answers each reading of events with one that the operator made up, and that there are more."""
    asked: list[int] = []

    def hook(message: Relayed) -> list[Relayed]:
        if message.up and message.subject == subjects.READ:
            asked.append(json.loads(message.data)["seq"])
        if message.up or ".inbox." not in message.subject:
            return [message]
        if not message.headers.startswith(b"NATS/1.0 "):
            # a real event
            return []
        number = asked[-1]
        told = f"NATS/1.0\r\nNats-Sequence: {number}\r\nNats-Subject: tmc.{host}.events\r\n\r\n".encode()
        end = b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 9\r\n\r\n"
        return [message._replace(headers=told, data=data(number)), message._replace(headers=end, data=b"")]

    return hook


def test_events_without_an_end_are_not_read_for_ever(thathost: JoinedHost, operator: OperatorRelay) -> None:
    operator.divert(Path(client_credentials_path()))
    operator.hook = answer_reads(thathost.id, lambda number: os.urandom(100))
    done = command("machine", "events", "thathost")
    assert done.returncode == 7, done
    assert "has no end" in done.stderr


@pytest.mark.night
def test_events_that_are_too_large_are_not_kept(thathost: JoinedHost, operator: OperatorRelay) -> None:
    operator.divert(Path(client_credentials_path()))
    operator.hook = answer_reads(thathost.id, lambda number: bytes(EVENT_BYTES + 1))
    done = command("machine", "events", "thathost")
    assert done.returncode == 7, done
    assert "the gateway's stream answered" in done.stderr


@pytest.mark.night
@pytest.mark.parametrize("headers", [b"garbage", b"NATS/1.0 \r\n\xff: \xff\r\n\r\n"])
def test_headers_that_make_no_sense_end_the_connection_and_print_nothing(
    gateway: GatewaySite, operator: OperatorRelay, headers: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    operator.divert(Path(client_credentials_path()))
    with connect(gateway.add("host")) as host, connect(read_client_credentials()) as client:
        heartbeats = client.subscribe(subjects.heartbeat(host.credentials.id))
        operator.hook = lambda message: [message._replace(headers=headers, data=b"")] if not message.up else [message]
        host.publish(subjects.heartbeat(host.credentials.id), b"")
        until(lambda: client.opened == 2, "the connection is not opened again")
        operator.hook = pass_on
        host.publish(subjects.heartbeat(host.credentials.id), b"again")
        assert heartbeats.next(20).data == b"again"
    # what is logged goes to standard error
    assert not caplog.records


@pytest.mark.night
def test_a_host_whose_subscription_was_refused_once_comes_back(thathost: JoinedHost, operator: OperatorRelay) -> None:
    run("new", "thathost/sh", "--", "sh")
    operator.say(f"-ERR 'Permissions Violation for Subscription to \"tmc.{thathost.id}.rpc.*\"'\r\n".encode())
    until(lambda: command("screen", "thathost/sh").returncode == 0, "no call is answered any more", seconds=30.0)


def have_stream_answer(member: Connection, host: str, subject: str) -> None:
    """Have the gateway put a stored event of a host on a subject that this client of the gateway may not publish."""
    wanted = {"seq": 1, "batch": 50, "next_by_subj": subjects.events(host)}
    member.publish(subjects.READ, json.dumps(wanted).encode(), subject)


@pytest.mark.night
def test_a_member_cannot_shut_out_another(thathost: JoinedHost, gateway: GatewaySite) -> None:
    run("new", "thathost/sh", "--", "sh")
    until(lambda: command("machine", "events", "thathost").stdout, "no event is stored")
    others = subjects.handshake(thathost.id, read_client_credentials().id)
    over = threading.Event()
    with connect(gateway.add("client")) as stranger:

        def flood() -> None:
            while not over.wait(0.01):
                have_stream_answer(stranger, thathost.id, others)

        sender = threading.Thread(target=flood, daemon=True)
        sender.start()
        done = [command("screen", "thathost/sh") for _ in range(5)]
        over.set()
        sender.join(20)
    assert [one.returncode for one in done] == [0] * 5, done[-1].stderr


def test_a_heartbeat_is_the_hosts_own(gateway: GatewaySite, operator: OperatorRelay) -> None:
    timing = changed(TIMING.gateway, silent_seconds=1.0)
    with (
        connect(gateway.add("host")) as host,
        connect(read_client_credentials()) as client,
        connect(gateway.add("client")) as stranger,
        connect(gateway.add("host")) as evil,
    ):
        own = host.credentials.id
        host.publish_event(b"anything", "1")
        heart = reading._Heart(client, own, "far", timing)  # what `machine events --follow` asks
        told: list[str] = []

        def is_silent() -> bool:
            have_stream_answer(stranger, own, subjects.heartbeat(own))
            evil.publish(subjects.events(evil.credentials.id), b"x", subjects.heartbeat(own))
            told.extend(one.kind for one in heart.look())
            return "silent" in told

        until(is_silent, "another's answers count as heartbeats")
        host.publish(subjects.heartbeat(own), b"")
        until(lambda: "heard" in (one.kind for one in heart.look()), "the host is not heard")


@pytest.mark.night
def test_a_pairing_for_one_client_is_not_ended_by_another_host(thathost: JoinedHost, gateway: GatewaySite) -> None:
    own = read_client_credentials().id
    remove_pairing("thathost")
    with connect(gateway.add("host")) as evil:

        def spoil() -> None:
            evil.publish_event(b"p" + os.urandom(34), "1")
            evil.publish(subjects.last(evil.credentials.id), b"", subjects.handshake(thathost.id, own))
            evil.flush()

        done = thathost.pair("thathost", "--client", own, before=spoil)
    assert done.returncode == 0, done.stderr


@pytest.mark.night
def test_two_pairings_at_a_time_do_not_spoil_each_other(thathost: JoinedHost) -> None:
    second: list[subprocess.CompletedProcess[str]] = []
    remove_pairing("thathost")
    words = ("gateway", "pair", "second", "--credentials", "host.json")
    done = thathost.pair("thathost", before=lambda: second.append(thathost.command(*words)))
    assert done.returncode == 0, done.stderr
    assert second[0].returncode == 4, second
    assert "another `tmuxctl gateway pair` waits" in second[0].stderr


@pytest.mark.night
@pytest.mark.parametrize("words", [("screen",), ("log",), ("read",), ("ask",)])
def test_what_a_lying_host_shows_does_not_steer_the_terminal(thathost: JoinedHost, words: tuple[str, ...]) -> None:
    thathost.end()
    thathost.start((sys.executable, str(Path(__file__).with_name("lying_host.py"))))
    run("new", "thathost/sh", "--", "sh")
    run("send", "thathost/sh", f"echo {WORD}")
    name, *options = words
    given = [f"echo {WORD}"] if name == "ask" else []
    told = run(name, "thathost/sh", *options, *given)
    assert "]52;c;aGk=" in told
    assert not any(character in told for character in "\x1b\x07\x9b\r")


@pytest.mark.night
def test_a_call_that_is_held_back_over_a_restart_is_done_once(
    thathost: JoinedHost, operator: OperatorRelay, place: Path
) -> None:
    run("new", "thathost/sh", "--", "sh")
    counted = place / "counted"
    channels: list[bytes] = []
    restarted = threading.Event()

    def hook(message: Relayed) -> list[Relayed]:
        """Before the restart no answer arrives; the record with which the client repeats its call behind it comes late."""
        channel = message.data[1:17]
        if not restarted.is_set():
            if is_record(message) and channel not in channels:
                channels.append(channel)
            return [] if is_output(message) else [message]
        if not is_record(message) or channel in channels[:1]:
            return [message]
        if channel not in channels:
            channels.append(channel)
            return [message._replace(delay=3.0)]
        return []

    operator.hook = hook
    done: list[subprocess.CompletedProcess[str]] = []
    words = ("exec", "thathost/sh", "--", "sh", "-c", f"echo x >>{counted}")
    caller = threading.Thread(target=lambda: done.append(command(*words)), daemon=True)
    caller.start()
    until(lambda: counted.exists() and counted.read_text(), "it is not carried out")
    thathost.end(kill=True)
    restarted.set()
    thathost.start()
    caller.join(90)
    assert done
    assert counted.read_text().split() == ["x"], done


@pytest.mark.night
def test_a_call_that_was_given_up_is_not_done_later(thathost: JoinedHost, operator: OperatorRelay, place: Path) -> None:
    run("new", "thathost/sh", "--", "sh")
    late = place / "late"
    held: list[Relayed] = []

    def hold(message: Relayed) -> list[Relayed]:
        if not is_record(message):
            return [message]
        held.append(message)
        return []

    operator.hook = hold
    done = command("exec", "thathost/sh", "--timeout", "3", "--", "sh", "-c", f"echo x >>{late}")
    assert "it is not known whether that was done" in done.stderr
    call = held[0]

    def let_go(message: Relayed) -> list[Relayed]:
        """The call arrives before the next one, which is that of another process."""
        operator.hook = pass_on
        return [call, message]

    operator.hook = let_go
    # a session carries out one command after the other
    run("exec", "thathost/sh", "--", "true")
    assert not late.exists()


def drop_first_output() -> Callable[[Relayed], list[Relayed]]:
    """A hook that loses the first record that a host sends in each channel: the one that tells its new key."""
    channels: set[str] = set()

    def hook(message: Relayed) -> list[Relayed]:
        if not is_output(message) or message.subject in channels:
            return [message]
        channels.add(message.subject)
        return []

    return hook


@pytest.mark.night
def test_a_client_counts_as_told_of_a_new_key_once_it_uses_it(thathost: JoinedHost, operator: OperatorRelay) -> None:
    run("new", "thathost/sh", "--", "sh")
    assert thathost.command("gateway", "rotate-key").returncode == 0
    operator.hook = drop_first_output()
    assert command("wait", "thathost/sh", "--text", "never", "--timeout", "3").returncode == 124
    forgotten = thathost.command("gateway", "forget-key")
    assert "may know only the old key: tester" in forgotten.stderr
    operator.hook = pass_on
    run("screen", "thathost/sh")


def test_a_channel_from_before_a_new_key_says_nothing_of_who_knows_it(
    thathost: JoinedHost, gateway: GatewaySite
) -> None:
    known = KnownMachines().find("thathost")
    assert known
    run("new", "thathost/sh", "--", "sh")
    with Control() as here, connect(gateway.add("client")) as stranger:
        here.screen("thathost/sh")
        assert thathost.command("gateway", "rotate-key").returncode == 0
        own = stranger.credentials.id
        request = ClientHandshake(make_key_pair(), known.key, client_id=own, host_id=thathost.id).request
        # the host takes its new key with the next handshake, whoever makes it
        assert stranger.request(thathost.id, request, 20.0, handshake=True).data.endswith(b"unpaired")
        here.screen("thathost/sh")
        assert "may know only the old key" in thathost.command("gateway", "clients").stdout
        # it is told there, and uses the new key with its next channel
        until(lambda: KnownMachines().find("thathost") != known, "it is not told")
        run("screen", "thathost/sh")
        assert "may know only the old key" not in thathost.command("gateway", "clients").stdout
