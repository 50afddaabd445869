"""The end of a machine behind a gateway: it connects outward, takes handshakes of the clients that it knows, and has their calls
carried out.

Whatever comes may be hostile. Handshakes are limited for each client and altogether, channels for each client; what waits is
bounded by the subscriptions, and what is not authentic is dropped. A client that is taken out of `authorized_clients` has no more
calls carried out, and gets nothing more of those that are under way.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tmuxctl import __version__
from tmuxctl.access import CallerAccess, Note, ServiceAccess
from tmuxctl.errors import Denied, TmuxctlError, Usage
from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import CarriedMessage, Connection, Subscription
from tmuxctl.gateway.direct import host_end
from tmuxctl.gateway.direct.links import RECORD, Link
from tmuxctl.gateway.messages import (
    ABOUT,
    CLIENT_KEY,
    DIRECT_ANSWER,
    DIRECT_OFFER,
    DIRECT_PROBE,
    HOST_KEY,
    PAIRING,
    UNKNOWN_CHANNEL,
    pack_refusal,
)
from tmuxctl.rpc.records import VERSION, Header, Send, now
from tmuxctl.rpc.responder import Responder
from tmuxctl.rpc.result_room import ResultRoom
from tmuxctl.sealed.handshake import HostHandshake
from tmuxctl.sealed.keys import KeyFiles, check_public_key
from tmuxctl.sealed.records import HEADER_BYTES, ID_BYTES, Channel, OpenedRecord
from tmuxctl.sealed.trust import AuthorizedClients
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.value import Value, changed

if TYPE_CHECKING:
    from tmuxctl.control import Control
    from tmuxctl.gateway.credentials import Credentials
    from tmuxctl.operations import Operation

T = TypeVar("T")
R = TypeVar("R")


class HostLimits(Value):
    """How much clients may ask for: handshakes a second of one and of all, and answers to records of unknown channels, at once
    as many as in `burst_seconds`; channels of one; and of how many clients the handshakes are counted."""

    client_handshakes: float = 10.0
    handshakes: float = 100.0
    unknown: float = 100.0
    burst_seconds: float = 2.0
    channels: int = 64
    counted_clients: int = 1024


LIMITS = HostLimits()


class RateLimit:
    """Lets so many things a second through, and at once as many as come in `burst_seconds`."""

    def __init__(self, per_second: float, burst_seconds: float, clock: Callable[[], float]) -> None:
        self._per_second, self._most, self._clock = per_second, per_second * burst_seconds, clock
        self._left, self._then = self._most, clock()

    def take(self) -> bool:
        """Whether one more may pass now."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._then) * self._per_second)
        self._then = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class _OpenChannel(Value):
    """A channel, and whose it is: the id of the client at the gateway, and its static key; and the key of this host with which the
    client opened it."""

    channel: Channel
    client: str
    key: bytes
    began: float
    host_key: bytes


class _TakenRecord(Value):
    """A record of a client, its channel, and how the client is answered."""

    record: OpenedRecord
    found: _OpenChannel
    send: Send


class _ClientAccess:
    """What the client with this key may, as `authorized_clients` has it at each call: `rpc.responder.CallAccess`."""

    def __init__(self, clients: AuthorizedClients, key: bytes, control: Control, write_down: Note | None) -> None:
        self._clients, self.key, self._control, self._write_down = clients, key, control, write_down

    @property
    def _access(self) -> ServiceAccess:
        found = self._clients.find_key(self.key)
        if found is None:
            raise _unpaired_error()
        access = CallerAccess(found.name, found.rights, found.sessions, remote=True, kind="client")
        return ServiceAccess(access, self._control, self._write_down)

    @property
    def rights(self) -> tuple[str, ...]:
        """The rights it has now; Denied `unpaired` if it is not authorized any more."""
        return self._access.rights

    def check(self, operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with which it may call the operation."""
        return self._access.check(operation, arguments)

    def select(self, result: Any) -> Any:
        """What of a result it may know."""
        return self._access.select(result)

    def check_followed(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """NotFound where it may not know any more what a call goes on to tell."""
        self._access.check_followed(operation, arguments)

    def note(self, call_id: str, operation: str, session: str | None, result: str) -> None:
        """Write down a call that changed something, or was denied."""
        self._access.note(call_id, operation, session, result)


class GatewayHost:
    """Carries out the operations of `control` for the clients in `authorized_clients`, until it is closed. `credentials` are those
    of a host. `write_down` is told of each call that changed something, or was denied. `direct` says whether clients may take a
    direct path: `on`, `off`, or HOST:PORT to listen there too (Failed `not_listening`). `refused` counts what was dropped, by its
    reason."""

    connection_class: type[Connection] = Connection

    def __init__(
        self,
        control: Control,
        credentials: Credentials,
        *,
        write_down: Note | None = None,
        direct: str = host_end.ON,
        limits: HostLimits = LIMITS,
        timing: GatewayTiming = TIMING.gateway,
        clock: Callable[[], float] = now,
    ) -> None:
        self._control, self._limits, self._timing, self._clock = control, limits, timing, clock
        self._own, self._began, self._write_down = credentials.id, now(), write_down
        self._clients = AuthorizedClients()
        self._key_files = KeyFiles()
        self._keys, self._keys_stamp = self._key_files.load(), self._key_files.stamp()
        self._told: set[bytes] = set()
        """The clients that were noted to know the present key."""
        self._handshake = HostHandshake(
            self._keys.all,
            host_id=credentials.id,
            is_authorized=lambda key: self._clients.find_key(key) is not None,
        )
        self.refused: Counter[str] = Counter()
        self._channels: OrderedDict[bytes, _OpenChannel] = OrderedDict()
        """By their ids, the one that was used last at the end."""
        self._responders: dict[bytes, Responder] = {}
        self._result_room = ResultRoom()
        self._rate, self._unknown_rate = self._new_rate(limits.handshakes), self._new_rate(limits.unknown)
        self._rates: OrderedDict[str, RateLimit] = OrderedDict()
        self._lock, self._handshaking = threading.Lock(), threading.Lock()
        self.direct = None if direct == host_end.OFF else self._open_direct(direct)
        self.connection = self.connection_class(credentials, timing)
        handshakes = self.connection.subscribe(subjects.handshake(self._own, subjects.ANY))
        self._start_to_follow("handshakes", handshakes, self._take_handshake)
        open_record = partial(self._take_safely, self._open_record)
        records = self.connection.subscribe(subjects.rpc(self._own, subjects.ANY), first=open_record)
        self._start_to_follow("records", records, self._take_record)

    def __enter__(self) -> GatewayHost:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and the calls that are under way."""
        with self._lock:
            responders, self._responders = list(self._responders.values()), {}
            self._channels.clear()
        for responder in responders:
            responder.close()
        if self.direct is not None:
            self.direct.close()
        self.connection.close()

    def _open_direct(self, setting: str) -> host_end.DirectEnd:
        address = None if setting == host_end.ON else setting
        return host_end.DirectEnd(
            self._open_direct_record, self._take_record, self._shake_hands_directly, address=address
        )

    def _start_to_follow(self, name: str, messages: Subscription[T], take: Callable[[T], None]) -> None:
        threading.Thread(target=self._follow, args=(messages, take), name=f"gateway {name}", daemon=True).start()

    def _follow(self, messages: Subscription[T], take: Callable[[T], None]) -> None:
        """Take what comes on a subject, until the connection is closed. No message ends it."""
        while True:
            try:
                message = messages.next()
            except TmuxctlError as error:
                if error.reason == "closed":
                    return
                self.refused["not_followed"] += 1
                if self.refused["not_followed"] == 1:
                    sys.stderr.write(f"tmuxctl: {error.message}\n")
                continue
            self._take_safely(take, message)

    def _take_safely(self, take: Callable[[T], R | None], message: T) -> R | None:
        """What `take` makes of a message; None where it fails, which is counted."""
        try:
            return take(message)
        except TmuxctlError as error:
            self.refused[error.reason or "error"] += 1
        except Exception:
            self.refused["internal"] += 1
            if self.refused["internal"] == 1:
                # a bug; the first tells enough, and whoever sends more could fill a disk
                traceback.print_exc()
        return None

    # handshakes

    def _take_handshake(self, message: CarriedMessage) -> None:
        client = _client_of(message)
        if message.data[:1] == PAIRING:
            # for `tmuxctl gateway pair`, if that runs
            return
        if message.data[:1] == b"{":
            # the stream says that it has stored an event: any host can have it say so here, in the place of a client
            self.refused["stream"] += 1
            return
        if not self._may_try(client):
            self.refused["too_many"] += 1
            return
        try:
            reply = self._answer_handshake(message.data, client)
        except TmuxctlError as error:
            refusal = pack_refusal(error)
            if refusal is not None:
                self.connection.respond(message, refusal)
            raise
        self.connection.respond(message, reply)

    def _answer_handshake(self, request: bytes, client: str) -> bytes:
        """The reply to a request; its channel can be used from now on."""
        with self._handshaking:
            self._read_keys()
            accepted = self._handshake.answer(request, client)
        now = self._clock()
        with self._lock:
            self._drop_channels(accepted.client_key, now)
            self._channels[accepted.channel.id] = _OpenChannel(
                accepted.channel, client, accepted.client_key, now, accepted.host_key
            )
        return accepted.reply

    def _shake_hands_directly(self, sender: str, client: str, request: bytes) -> bytes:
        """The reply to a request that came past the gateway from this address, which says that it is of this client."""
        if not subjects.is_id(client) or not self._may_try(sender):
            raise Denied("too many handshakes, or of no client", reason="too_many", hint="try again later")
        return self._answer_handshake(request, client)

    def _read_keys(self) -> None:
        """Take this host's keys anew where they were changed: by `tmuxctl gateway rotate-key`, as by hand."""
        stamp = self._key_files.stamp()
        if stamp != self._keys_stamp:
            self._keys, self._keys_stamp = self._key_files.load(), stamp
            self._handshake.use_keys(self._keys.all)
            self._told.clear()

    def _may_try(self, client: str) -> bool:
        """Whether this client, and all of them together, may make a handshake now."""
        with self._lock:
            rate = self._rates.pop(client, None) or self._new_rate(self._limits.client_handshakes)
            self._rates[client] = rate
            while len(self._rates) > self._limits.counted_clients:
                self._rates.popitem(last=False)
            return rate.take() and self._rate.take()

    def _new_rate(self, per_second: float) -> RateLimit:
        return RateLimit(per_second, self._limits.burst_seconds, self._clock)

    def _drop_channels(self, key: bytes, now: float) -> None:
        """Make room for one more channel of this client: what was never used goes first, then what was not used for longest."""
        for channel_id, one in list(self._channels.items()):
            if not one.channel.is_confirmed and now - one.began > self._timing.unconfirmed_seconds:
                del self._channels[channel_id]
        own = [channel_id for channel_id, one in self._channels.items() if one.key == key]
        # requests that are replayed open channels that are never used
        own.sort(key=lambda channel_id: self._channels[channel_id].channel.is_confirmed)
        for channel_id in own[: max(0, len(own) + 1 - self._limits.channels)]:
            del self._channels[channel_id]

    # records

    def _open_record(self, message: CarriedMessage) -> _TakenRecord | None:
        """Begin with the call that a message has; any other record is left to `_take_record`."""
        client, channel_id = _client_of(message), message.data[1 : 1 + ID_BYTES]
        if len(message.data) < HEADER_BYTES:
            self.refused["malformed"] += 1
            return None
        with self._lock:
            found = self._channels.get(channel_id)
        output = subjects.output(self._own, client, channel_id.hex())
        if found is None or found.client != client:
            self.refused["other_channel"] += 1
            if self._unknown_rate.take():
                self.connection.publish(output, UNKNOWN_CHANNEL)
            return None

        def send(header: Header, body: bytes) -> None:
            self.connection.publish(output, found.channel.seal(header, body))

        return self._begin_record(found, message.data, send)

    def _open_direct_record(self, link: Link, data: bytes) -> tuple[bytes, _TakenRecord | None]:
        """As `_open_record`, of a record that came by a direct path. What answers it goes back by that, or through the gateway
        where that is no use any more."""
        with self._lock:
            found = self._channels.get(data[1 : 1 + ID_BYTES])
        if found is None:
            # the client finds through the gateway, or by another handshake, that there is no such channel
            raise Denied("a record of no channel", reason="unknown_channel", hint="make another handshake")
        output = subjects.output(self._own, found.client, found.channel.id.hex())

        def send(header: Header, body: bytes) -> None:
            sealed = found.channel.seal(header, body)
            if not link.send(RECORD + sealed):
                self.connection.publish(output, sealed)

        return found.key, self._begin_record(found, data, send)

    def _begin_record(self, found: _OpenChannel, data: bytes, send: Send) -> _TakenRecord | None:
        channel_id = found.channel.id
        try:
            record = found.channel.open(data)
        except Denied as error:
            if error.reason == "channel_ended":
                with self._lock:
                    self._channels.pop(channel_id, None)
            raise
        with self._lock:
            if channel_id in self._channels:
                self._channels.move_to_end(channel_id)
        if self._keys.old is None:
            responder = self._find_responder(found.key)
            if responder.is_new(record.header, found.began):
                responder.receive(record.header, record.body, send, connected=found.began)
                return None
        return _TakenRecord(record, found, send)

    def _take_record(self, taken: _TakenRecord) -> None:
        record, found, send = taken.record, taken.found, taken.send
        if self._keys.old is not None:
            self._tell_key(found, send)
        kind = record.header.get("type")
        if kind == CLIENT_KEY:
            self._change_client_key(found.key, record.body)
            send({"v": VERSION, "type": CLIENT_KEY}, b"")
        elif kind == ABOUT:
            send(self._tell_about(found.key), b"")
        elif kind == DIRECT_PROBE:
            send({"v": VERSION, "type": DIRECT_PROBE, "number": record.header.get("number")}, b"")
        elif kind == DIRECT_OFFER:
            self._take_offer(found.key, record, send)
        else:
            self._find_responder(found.key).receive(record.header, record.body, send, connected=found.began)

    def _take_offer(self, key: bytes, record: OpenedRecord, send: Send) -> None:
        """Answer a client that asks for a direct path. Denied `unpaired` if it is not authorized any more."""
        if self._clients.find_key(key) is None:
            raise _unpaired_error()
        if self.direct is None:
            return
        told = {"v": VERSION, "type": DIRECT_ANSWER, "number": record.header.get("number")}
        self.direct.take_offer(key, record.body, lambda found, body: send({**told, "addresses": found}, body))

    def _tell_key(self, found: _OpenChannel, send: Send) -> None:
        """Tell a client this host's new key, with each record of it, as that may get lost: until it opens a channel with it."""
        if found.host_key != self._keys.current.public:
            send({"v": VERSION, "type": HOST_KEY}, self._keys.current.public)
        elif found.key not in self._told:
            self._told.add(found.key)
            self._key_files.note_told(found.key)

    def _change_client_key(self, old: bytes, new: bytes) -> None:
        """Know a client by its new key from now on, which it told in a channel with the old one. What it may, and its calls under
        way, stay. Denied `unpaired` if it is not authorized any more, Usage `bad_key` for what is no key, or another client's."""
        client = self._clients.find_key(old)
        if client is None:
            raise _unpaired_error()
        if self._clients.find_key(check_public_key(new)) is not None:
            raise Usage("this is no new key of a client", reason="bad_key", hint="pair it again")
        self._clients.replace_key(client.name, old, changed(client, key=new))
        with self._lock:
            for channel_id in [channel_id for channel_id, one in self._channels.items() if one.key == old]:
                # other processes of the client find by their next handshake that it has another key
                del self._channels[channel_id]
            responder = self._responders.pop(old, None)
            if responder is not None and isinstance(responder.access, _ClientAccess):
                responder.access.key = new
                self._responders[new] = responder

    def _tell_about(self, key: bytes) -> Header:
        """What a client is told of this host and of itself. Denied `unpaired` if it is not authorized any more."""
        client = self._clients.find_key(key)
        if client is None:
            raise _unpaired_error()
        return {
            "v": VERSION,
            "type": ABOUT,
            "release": __version__,
            "name": client.name,
            "rights": client.rights,
            "sessions": client.sessions,
        }

    def _find_responder(self, key: bytes) -> Responder:
        """What carries out the calls of a client. Where it is not authorized any more, later calls are refused, and it is told
        nothing more of those under way."""
        with self._lock:
            found = self._responders.get(key)
            if found is None:
                access = _ClientAccess(self._clients, key, self._control, self._write_down)
                found = Responder(self._control, access, room=self._result_room)
                # this process knows all calls since then, not only since the first of this client
                found.began = self._began
                self._responders[key] = found
        return found


def _client_of(message: CarriedMessage) -> str:
    """The id of the client that sent a message, as the gateway vouches for it; Denied `bad_subject` for what is none."""
    words = message.subject.split(".")
    if len(words) != 4 or not subjects.is_id(words[3]):
        raise Denied("a message on a subject of no client", reason="bad_subject")
    return words[3]


def _unpaired_error() -> Denied:
    hint = "pair again: `tmuxctl gateway pair CLIENT --credentials FILE` there, then here: tmuxctl machine pair NAME ID"
    return Denied("this client is not authorized any more", reason="unpaired", hint=hint)
