"""Pairing through a gateway, by a code that one side shows and a person types at the other: `sealed.pairing` over its subjects."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tmuxctl.errors import Conflict, Denied, Timeout, TmuxctlError, Unreachable
from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import CarriedMessage, Connection, Subscription
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.gateway.messages import PAIRING
from tmuxctl.machines import check_machine_name
from tmuxctl.sealed.keys import KeyFiles
from tmuxctl.sealed.pairing import SPAKE_BYTES, PairingClient, PairingHost, make_code
from tmuxctl.sealed.trust import AuthorizedClient, AuthorizedClients, KnownMachine, KnownMachines, check_grant
from tmuxctl.state_files import take_lock
from tmuxctl.timing import TIMING, Timing
from tmuxctl.value import changed

AGAIN = "begin again, with a new code; with --client ID no other client than the one with this id can use it up"


def let_client_in(
    credentials: Credentials,
    name: str,
    rights: tuple[str, ...],
    sessions: tuple[str, ...],
    show: Callable[[str], None],
    *,
    client: str | None = None,
    used: Callable[[str], None] = lambda client: None,
    timing: Timing = TIMING,
) -> AuthorizedClient:
    """Take one client into `authorized_clients`, as `name`, with these rights and patterns of sessions. `show` is given the code,
    once a client can use it; with the id of a `client` no other can, as the gateway vouches for who sends. Usage `bad_id`.
    `used` is given the id of the client that begins with the code, which is spent then.

    Timeout `no_client` if none has paired within the time of a code; Denied `wrong_code` and others of `sealed.pairing` for a guess
    that was wrong: both name the client that has used up the code. Conflict `exists` for a name that another client has, `busy`
    while another pairing waits for its client: each would take what is meant for the other, and spoil both codes.
    """
    check_machine_name(name)
    check_grant(rights, sessions)
    sender = subjects.ANY if client is None else subjects.parse_id(client)
    clients = AuthorizedClients()
    code = make_code()
    pairing = PairingHost(code, KeyFiles().load().current, host_id=credentials.id, name=own_name())
    ends = time.monotonic() + timing.sealed.pairing_seconds
    with _only_pairing(), Connection(credentials, timing.gateway) as connection:
        connection.wait_connected(timing.gateway.reach_seconds)
        messages = connection.subscribe(subjects.handshake(credentials.id, sender))
        show(code)
        first = _next(messages, ends, _is_first, "the code was not used")
        user = _user_of(first)
        try:
            connection.respond(first, pairing.answer(first.data[1:]))
            used(user)
            missing = f"client {user} has used up the code, and has not gone on: it was mistyped there"
            third = _next(messages, ends, lambda one: one.subject == first.subject and one.data != first.data, missing)
            wish = pairing.read_client(third.data[1:])
        except Denied as error:
            message = f"client {user} has used up the code: {error.message}"
            raise Denied(message, reason=error.reason, hint=AGAIN) from None
        let_in = AuthorizedClient(name, wish.key, rights, sessions)
        clients.put(let_in)
        connection.respond(third, pairing.grant(rights, sessions))
        connection.flush()
    return let_in


@contextmanager
def _only_pairing() -> Iterator[None]:
    """Keep other processes of this user from letting a client in meanwhile; Conflict `busy`."""
    path = os.path.join(KeyFiles().folder, "pairing.lock")
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    hint = "wait until its client has paired, or end it there by Ctrl-C"
    try:
        take_lock(handle, 0.0, lambda: Conflict("another `tmuxctl gateway pair` waits", reason="busy", hint=hint))
        yield
    finally:
        os.close(handle)


def pair_with(
    credentials: Credentials, host: str, name: str, ask_code: Callable[[], str], *, timing: Timing = TIMING
) -> tuple[KnownMachine, AuthorizedClient]:
    """Learn the key of a host, put it into `known_machines` as `name`, and be known there; what is known of it, and what it grants.

    `ask_code` gives the code that the host shows. A host that is known by this key may have another id than before.
    Unreachable `host_offline`, `no_answer`; Denied `wrong_code`, `key_changed` where `name` is known by another key, and others of
    `sealed.pairing`.
    """
    subjects.parse_id(host)
    check_machine_name(name)
    known_machines = KnownMachines()
    with Connection(credentials, timing.gateway) as connection:
        connection.wait_connected(timing.gateway.reach_seconds)
        pairing = PairingClient(ask_code(), KeyFiles().load().current, AuthorizedClient(own_name(), bytes(32)))
        third = pairing.read_host(_ask(connection, host, pairing.first, timing.gateway.pairing_seconds))
        told, granted = pairing.read_grant(_ask(connection, host, third, timing.gateway.pairing_seconds))
    if told.host_id != host:
        raise Denied(
            f"host {told.host_id} has answered in the place of {host}",
            reason="wrong_host",
            hint="give the id that the host shows with the code",
        )
    found = changed(told, name=name)
    known_machines.put(found)
    return found, granted


def _ask(connection: Connection, host: str, message: bytes, seconds: float) -> bytes:
    """What the host answers to a message of the pairing."""
    hint = "does `tmuxctl gateway pair` wait there? A code is good for one attempt"
    try:
        return connection.request(host, PAIRING + message, seconds, handshake=True).data
    except Timeout:
        raise Unreachable(f"host {host} does not answer", reason="no_answer", hint=hint) from None
    except TmuxctlError as error:
        if error.reason != "host_offline":
            raise
        raise Unreachable(error.message, reason="host_offline", hint=hint) from None


def _next(
    messages: Subscription[CarriedMessage], ends: float, fits: Callable[[CarriedMessage], bool], missing: str
) -> CarriedMessage:
    """The next message of a pairing that fits; Timeout `no_client` if none comes, which says what that means."""
    while True:
        try:
            message = messages.next(max(0.0, ends - time.monotonic()))
        except Timeout:
            raise Timeout(f"no client has paired: {missing}", reason="no_client", hint=AGAIN) from None
        if message.data[:1] == PAIRING and fits(message):
            return message


def _is_first(message: CarriedMessage) -> bool:
    """Whether it may be the first message of a client."""
    return len(message.data) == 2 + SPAKE_BYTES and subjects.is_id(_user_of(message))


def _user_of(message: CarriedMessage) -> str:
    """The id of the client that sent a message, as the gateway vouches for it."""
    return message.subject.rpartition(".")[2]


def own_name() -> str:
    """What this machine proposes to be called."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", platform.node().partition(".")[0])[:64].lstrip("._-")
    return name or "machine"
