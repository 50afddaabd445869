"""What whoever runs a gateway tries with the messages that it carries, and what a machine that was paired with tries: a real
nats-server, a host and clients in processes of their own, and a relay between them that changes what the test wants changed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.gateway_site import GatewaySite, connect, until
from gateway.joined_host import JoinedHost, become_client, command
from gateway.operator_relay import OperatorRelay, Relayed, pass_on

from tmuxctl.control import Control
from tmuxctl.gateway import subjects
from tmuxctl.gateway.carrier import client_credentials_path, read_client_credentials
from tmuxctl.gateway.connection import Connection
from tmuxctl.sealed.handshake import ClientHandshake
from tmuxctl.sealed.keys import make_key_pair
from tmuxctl.sealed.trust import KnownMachines


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


@pytest.mark.parametrize("headers", [b"garbage", b"NATS/1.0 \r\n\xff: \xff\r\n\r\n"])
def test_headers_that_make_no_sense_end_the_connection_and_print_nothing(
    gateway: GatewaySite, operator: OperatorRelay, headers: bytes, capfd: pytest.CaptureFixture[str]
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
    assert capfd.readouterr().err == ""
