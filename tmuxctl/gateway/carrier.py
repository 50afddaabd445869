"""The way of a client to a machine behind a gateway: a connection, a handshake with the key that is known of the machine, and a
channel, through which the records of calls go."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tmuxctl.config import config_folder
from tmuxctl.errors import Conflict, Denied, NotFound, Timeout, TmuxctlError, Unreachable, Usage
from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import Connection, Subscription
from tmuxctl.gateway.credentials import Credentials, read_credentials
from tmuxctl.gateway.messages import UNKNOWN_CHANNEL, parse_refusal, silent_error
from tmuxctl.machines import MachineEntry
from tmuxctl.rpc.records import Connect, Header, Receive
from tmuxctl.sealed.handshake import ClientHandshake
from tmuxctl.sealed.keys import KeyFiles
from tmuxctl.sealed.records import Channel, RecordRefused
from tmuxctl.sealed.trust import KnownMachine, KnownMachines
from tmuxctl.state_files import take_lock
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.untrusted import open_file
from tmuxctl.vocabulary import GatewayRole

ATTEMPTS = 3
"""How often a handshake is tried: the gateway may lose, or change, one of its messages."""


def connect_to(entry: MachineEntry) -> Connect:
    """What makes the carriers to a machine of machines.toml that has a `gateway`; nothing is reached yet."""
    return lambda receive, lost: GatewayCarrier(entry, receive, lost)


def client_credentials_path() -> str:
    """The file with this user's credentials as a client: `~/.config/tmuxctl/gateway.json`."""
    return os.path.join(config_folder(), "gateway.json")


def read_client_credentials() -> Credentials:
    """The credentials of this user as a client. Raises as `read_credentials`, and Usage `bad_credentials` for those of a host."""
    path = client_credentials_path()
    try:
        found = read_credentials(path)
    except NotFound as error:
        hint = f"where the gateway is: tmuxctl gateway add-client; put its file here as {path}"
        raise NotFound(error.message, reason="no_credentials", hint=hint) from None
    return check_role(found, GatewayRole.CLIENT, path)


def check_role(found: Credentials, role: GatewayRole, path: str) -> Credentials:
    """The credentials themselves; Usage `bad_credentials` if they are of the other role."""
    if found.role is not role:
        hint = f"where the gateway is: tmuxctl gateway add-{role.value}"
        raise Usage(f"{ascii(path)} is for a {found.role.value}", reason="bad_credentials", hint=hint)
    return found


@contextmanager
def only_user(path: str) -> Iterator[None]:
    """Keep other processes from being this host: two would answer each client. Conflict `busy` where one is. `path` is the file of
    its credentials."""
    handle = open_file(path)
    try:
        hint = "end the other `tmuxctl serve`, or give this one a file of its own: tmuxctl gateway add-host"
        take_lock(handle, 0.0, lambda: Conflict(f"another process serves with {ascii(path)}", reason="busy", hint=hint))
        yield
    finally:
        os.close(handle)


def find_known(entry: MachineEntry) -> KnownMachine:
    """What is known of the machine of an entry. NotFound `no_key` for one that this user never paired with, Denied `key_changed`
    for an entry that leads to another host than the known one."""
    host = entry.gateway or ""
    known = KnownMachines().find(entry.name)
    if known is None:
        there = "`tmuxctl gateway pair CLIENT --credentials FILE` there"
        hint = f"pair with it: {there}, then here: tmuxctl machine pair {entry.name} {host}"
        raise NotFound(f"the key of machine {entry.name} is not known", reason="no_key", hint=hint)
    if known.host_id != host:
        raise Denied(
            f"machines.toml has host {host} for {entry.name}, and known_machines {known.host_id}",
            reason="key_changed",
            hint=f"remove the line of {entry.name} from ~/.config/tmuxctl/known_machines and pair again",
        )
    return known


class GatewayCarrier:
    """One channel to one machine, over a connection of its own: `rpc.records.Carrier`."""

    connection_class: type[Connection] = Connection

    def __init__(
        self,
        entry: MachineEntry,
        receive: Receive,
        lost: Callable[[], None],
        *,
        timing: GatewayTiming = TIMING.gateway,
    ) -> None:
        known, credentials = find_known(entry), read_client_credentials()
        self._machine, self._host, self._own = entry.name, subjects.parse_id(known.host_id), credentials.id
        self._timing = timing
        self._connection = self.connection_class(credentials, timing)
        try:
            self._connection.wait_connected(timing.reach_seconds)
            self._channel = self._shake_hands(known)
            answers = subjects.output(self._host, self._own, self._channel.id.hex())
            self._answers = self._connection.subscribe(answers)
        except BaseException:
            self._connection.close()
            raise
        self._reader = threading.Thread(
            target=self._read, args=(self._answers, receive, lost), name=f"gateway-{entry.name}", daemon=True
        )
        self._reader.start()

    def send(self, header: Header, body: bytes) -> None:
        """Send a record; an error where the channel is over, or nearly, and where there is no connection."""
        if self._channel.is_worn:
            raise Unreachable("this channel has had its time", reason="channel_ended", hint="make another handshake")
        self._connection.publish(subjects.rpc(self._host, self._own), self._channel.seal(header, body))

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _shake_hands(self, known: KnownMachine) -> Channel:
        """The channel that a handshake with the known key opens."""
        error: TmuxctlError = silent_error(self._machine)
        keys = KeyFiles().load().current
        for _ in range(ATTEMPTS):
            handshake = ClientHandshake(keys, known.key, client_id=self._own, host_id=self._host)
            try:
                reply = self._connection.request(
                    self._host, handshake.request, self._timing.handshake_seconds, handshake=True
                )
                if refusal := parse_refusal(reply.data, self._machine):
                    raise refusal
                return handshake.read_reply(reply.data)
            except Timeout:
                error = silent_error(self._machine)
            except Denied as refused:
                if refused.reason not in ("handshake", "key_changed"):
                    raise
                error = refused
            except Unreachable as unreachable:
                if unreachable.reason == "host_offline":
                    raise Unreachable(
                        f"{self._machine} is not connected to the gateway",
                        reason="host_offline",
                        hint="does `tmuxctl serve --gateway FILE` run there?",
                        machine=self._machine,
                    ) from None
                # a handshake changes nothing there
                raise Unreachable(
                    f"{self._machine}: the connection to the gateway was lost",
                    reason="gateway_unreachable",
                    hint="it is opened again by the next call",
                ) from None
        raise error

    def _read(self, answers: Subscription, receive: Receive, lost: Callable[[], None]) -> None:
        while True:
            try:
                message = answers.next()
            except TmuxctlError:
                lost()
                return
            if message.data == UNKNOWN_CHANNEL:
                lost()
                return
            try:
                record = self._channel.open(message.data)
            except RecordRefused:
                continue
            receive(record.header, record.body)
