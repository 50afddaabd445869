"""The way of a client to a machine behind a gateway: a connection, a handshake with the key that is known of the machine, and a
channel, through which the records of calls go."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tmuxctl.config import config_folder
from tmuxctl.errors import Conflict, Denied, NotFound, Timeout, TmuxctlError, Unreachable, Usage
from tmuxctl.gateway import shared, subjects
from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.credentials import Credentials, read_credentials
from tmuxctl.gateway.direct.path import DirectPath, UsedChannel
from tmuxctl.gateway.messages import ABOUT, CLIENT_KEY, HOST_KEY, UNKNOWN_CHANNEL, parse_refusal, silent_error
from tmuxctl.machines import MachineEntry
from tmuxctl.parsed_file import ParsedFile
from tmuxctl.rpc.records import VERSION, Connect, Header, Receive, now
from tmuxctl.sealed.handshake import ClientHandshake
from tmuxctl.sealed.keys import KeyFiles, KeyPair, StaticKeys, check_public_key, fingerprint
from tmuxctl.sealed.records import Channel, RecordRefused
from tmuxctl.sealed.trust import KnownMachine, KnownMachines, known_machines
from tmuxctl.state_files import take_lock
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.untrusted import open_file
from tmuxctl.value import Value, changed
from tmuxctl.vocabulary import GatewayRole

ATTEMPTS = 3
"""How often a handshake is tried: the gateway may lose, or change, one of its messages."""


def connect_to(entry: MachineEntry) -> Connect:
    """What makes the carriers to a machine of machines.toml that has a `gateway`; nothing is reached yet."""
    path = DirectPath(entry.name) if entry.direct else None
    return lambda receive, lost: GatewayCarrier(entry, receive, lost, path=path)


def client_credentials_path() -> str:
    """The file with this user's credentials as a client: `~/.config/tmuxctl/gateway.json`."""
    return os.path.join(config_folder(), "gateway.json")


def read_client_credentials() -> Credentials:
    """The credentials of this user as a client. Raises as `read_credentials`, and Usage `bad_credentials` for those of a host."""
    return _client_credentials.read(client_credentials_path())


def _read_client_credentials(path: str) -> Credentials:
    try:
        found = read_credentials(path)
    except NotFound as error:
        hint = f"where the gateway is: tmuxctl gateway add-client; put its file here as {path}"
        raise NotFound(error.message, reason="no_credentials", hint=hint) from None
    return check_role(found, GatewayRole.CLIENT, path)


_client_credentials = ParsedFile(_read_client_credentials)


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
    known = known_machines().find(entry.name)
    if known is None:
        there = "`tmuxctl gateway pair CLIENT --credentials FILE` there"
        hint = f"pair with it: {there}, then here: tmuxctl machine pair {entry.name} {host}"
        raise NotFound(f"the key of machine {entry.name} is not known", reason="no_key", hint=hint)
    if known.host_id != host:
        raise Denied(
            f"machines.toml has host {host} for {entry.name}, and known_machines {known.host_id}",
            reason="key_changed",
            hint=f"pair with it again: tmuxctl machine pair {entry.name} {host}",
        )
    return known


class HostAbout(Value):
    """What a host says of itself to a paired client: its release of tmuxctl, what the client is called there and may, with which
    sessions; None for each that it does not tell. `seconds` is the way there and back."""

    release: str | None
    name: str | None
    rights: tuple[str, ...] | None
    sessions: tuple[str, ...] | None
    seconds: float | None


def ask_about(entry: MachineEntry, *, timing: GatewayTiming = TIMING.gateway) -> HostAbout:
    """Open a channel to a host, and ask what it says of itself; where it knows this client by an old key it is told the new one.
    Raises why no channel can be opened."""
    answers: queue.Queue[Header] = queue.Queue()
    carrier = GatewayCarrier(entry, lambda header, _: answers.put(header), lambda: None, timing=timing)
    try:
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            carrier.send({"v": VERSION, "type": ABOUT}, b"")
            with suppress(queue.Empty):
                return _parse_about(answers.get(timeout=timing.handshake_seconds), time.monotonic() - began)
    finally:
        carrier.close()
    # an earlier release has no answer
    return HostAbout(None, None, None, None, None)


def _parse_about(header: Header, seconds: float) -> HostAbout:
    """What a host told, as far as it makes sense; none of it is trusted with more than being shown."""
    words = {
        name: value[:200] if isinstance(value := header.get(name), str) and value.isprintable() else None
        for name in ("release", "name")
    }
    lists = {
        name: tuple(str(one)[:200] for one in value[:64] if str(one).isprintable())
        if isinstance(value := header.get(name), list)
        else None
        for name in ("rights", "sessions")
    }
    return HostAbout(words["release"], words["name"], lists["rights"], lists["sessions"], seconds)


class GatewayCarrier:
    """One channel to one machine, over the connection that all of a process share: `rpc.records.Carrier`."""

    connection_class: type[Connection] = Connection

    def __init__(
        self,
        entry: MachineEntry,
        receive: Receive,
        lost: Callable[[], None],
        *,
        timing: GatewayTiming = TIMING.gateway,
        path: DirectPath | None = None,
    ) -> None:
        known, credentials = find_known(entry), read_client_credentials()
        self._machine, self._host, self._own = entry.name, subjects.parse_id(known.host_id), credentials.id
        self._timing, self._known = timing, known
        self._receive, self._lost = receive, lost
        self._closing, self._telling = threading.Lock(), threading.Lock()
        self._shared = shared.join(credentials, timing, self.connection_class)
        self._connection, self._subject = self._shared.connection, None
        self._path, self._used = path, None
        try:
            self._wait_connected()
            self._channel = self._open_channel(KeyFiles().load())
        except BaseException:
            self.close()
            raise
        self.connected = now()
        output = shared.ChannelOutput(self._open_record, self._take_later)
        self._subject = self._shared.follow(self._host, self._channel.id.hex(), output)
        if path is not None:
            self._used = UsedChannel(self._channel.seal, self._open_direct_record, self._relay)
            path.attach(self._host, self._used)

    def send(self, header: Header, body: bytes) -> None:
        """Send a record; an error where the channel is over, or nearly, and where there is no connection."""
        if self._channel.is_worn:
            raise Unreachable("this channel has had its time", reason="channel_ended", hint="make another handshake")
        connected = self._connection.connected.is_set()
        if self._path is None or not self._path.send(header, body, connected=connected):
            self._relay(header, body)

    def close(self) -> None:
        """End the channel, and the connection if no other one needs it."""
        if self._closing.acquire(blocking=False):
            if self._path is not None:
                self._path.detach(self._used)
            self._shared.leave(self._subject)

    def _relay(self, header: Header, body: bytes) -> None:
        """Send a record through the gateway."""
        self._connection.publish(subjects.rpc(self._host, self._own), self._channel.seal(header, body))

    def _wait_connected(self) -> None:
        """Wait for the gateway; less long where there is a direct path, or may be one, by which a handshake can go."""
        if self._path is None:
            return self._connection.wait_connected(self._timing.reach_seconds)
        try:
            self._connection.wait_connected(0.0 if self._path.stands else TIMING.direct.late_seconds)
        except (Timeout, Unreachable):
            if not self._path.open(self._host):
                self._connection.wait_connected(self._timing.reach_seconds)

    def _open_channel(self, keys: StaticKeys) -> Channel:
        """A channel with this client's present key. A host that knows only the old one is told the new one first."""
        try:
            return self._shake_hands(keys.current)
        except Denied as error:
            if error.reason != "unpaired" or keys.old is None:
                raise
        self._tell_key(self._shake_hands(keys.old), keys.current.public)
        return self._shake_hands(keys.current)

    def _tell_key(self, channel: Channel, key: bytes) -> None:
        """Tell the host this client's new key, in a channel with the old one, until it says that it has it."""
        answers = self._connection.subscribe(subjects.output(self._host, self._own, channel.id.hex()))
        for _ in range(ATTEMPTS):
            self._connection.publish(
                subjects.rpc(self._host, self._own), channel.seal({"v": VERSION, "type": CLIENT_KEY}, key)
            )
            with suppress(Timeout, RecordRefused):
                answer = answers.next(self._timing.handshake_seconds).data
                # it drops what it had with the old key: the next handshake tells whether it took the new one
                if answer == UNKNOWN_CHANNEL or channel.open(answer).header.get("type") == CLIENT_KEY:
                    answers.close()
                    return
        raise silent_error(self._machine)

    def _shake_hands(self, keys: KeyPair) -> Channel:
        """The channel that a handshake with the known key opens, for a client with these keys."""
        error: TmuxctlError = silent_error(self._machine)
        for _ in range(ATTEMPTS):
            handshake = ClientHandshake(keys, self._known.key, client_id=self._own, host_id=self._host)
            try:
                reply = self._request(handshake.request)
                if refusal := parse_refusal(reply, self._machine):
                    raise refusal
                return handshake.read_reply(reply)
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

    def _request(self, request: bytes) -> bytes:
        """The reply to a handshake, through the gateway if that is there."""
        if self._path is not None and self._path.stands and not self._connection.connected.is_set():
            return self._path.request(self._own, request)
        found = self._connection.request(self._host, request, self._timing.handshake_seconds, handshake=True)
        return found.data

    def _open_direct_record(self, data: bytes) -> bool:
        """Take a record that came by the direct path; False for what is none. Only the host itself says that a channel is over."""
        try:
            record = self._channel.open(data)
        except RecordRefused as error:
            return error.reason in ("replayed", "too_old")
        if record.header.get("type") == HOST_KEY:
            # it tells it again with each record
            if record.body != self._known.key and self._telling.acquire(blocking=False):
                threading.Thread(target=self._take_told_key, args=(record.body,), name="host key", daemon=True).start()
        elif self._path is None or not self._path.heard(record.header, record.body):
            self._receive(record.header, record.body)
        return True

    def _take_told_key(self, key: bytes) -> None:
        try:
            self._take_host_key(key)
        finally:
            self._telling.release()

    def _open_record(self, data: bytes) -> bytes | None:
        """Give what a message has to the calls that wait; a new key, and that the channel is over, are left to `_take_later`."""
        if data == UNKNOWN_CHANNEL:
            return data
        try:
            record = self._channel.open(data)
        except RecordRefused:
            return None
        if record.header.get("type") == HOST_KEY:
            return record.body
        if self._path is None or not self._path.heard(record.header, record.body):
            self._receive(record.header, record.body)
        return None

    def _take_later(self, key: bytes) -> None:
        """Take what `_open_record` left."""
        if key == UNKNOWN_CHANNEL:
            self._lost()
        else:
            self._take_host_key(key)

    def _take_host_key(self, key: bytes) -> None:
        """Know the host by another key from now on, which it told in a channel that only the known one opens."""
        try:
            check_public_key(key)
        except Usage:
            return
        if key == self._known.key:
            return
        before, self._known = self._known, changed(self._known, key=key)
        try:
            KnownMachines().replace_key(self._machine, before.key, self._known)
        except NotFound:
            # another process was told the same
            return
        except (TmuxctlError, OSError) as error:
            # a full disk, too: the thread that is here serves the channels of all machines
            sys.stderr.write(f"tmuxctl: {self._machine} has a new key, which cannot be kept: {error}\n")
            return
        sys.stderr.write(
            f"tmuxctl: {self._machine} has a new key, as it says by the one before: {fingerprint(key)}; it is in known_machines\n"
        )
