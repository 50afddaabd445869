"""How a client and a host get a channel: one request, one reply, and the version of the protocol that both speak.

    request   format u8 | count u8 | version u8 ... | Noise IK message 1, payload: time u64
    reply     1 u8 | Noise IK message 2, payload: version u8
              0 u8 | count u8 | version u8 ...            (no common version; not authenticated)

The prologue has the offered versions and both ids, so that a reply can be read only if the host saw the offer that the client
made. The host's choice is in the encrypted payload. Noise's first message can be replayed (revision 34, section 7.7): it asks for
nothing, and the host takes each time of a client once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence

from tmuxctl.errors import Denied
from tmuxctl.sealed.keys import KeyPair, fingerprint
from tmuxctl.sealed.noise import REPLY_OVERHEAD, REQUEST_OVERHEAD, IkHandshake, NoiseFailed
from tmuxctl.sealed.records import CHANNEL_LIMITS, Channel, ChannelLimits
from tmuxctl.timing import TIMING, SealedTiming
from tmuxctl.value import Value

SPOKEN = (1,)
"""Versions of the protocol that this release speaks, the newest first: the present one and the one before."""

FORMAT = 1
"""The form of the request and reply themselves, which are the same for all versions."""

ACCEPTED, NO_COMMON_VERSION = 1, 0

MOST_VERSIONS = 8
MOST_ID = 64
"""Bytes of the id of a client or host."""

MOST_TIMES = 64
"""How many times of one client are remembered; one that is older than all of them is refused."""

HANDSHAKE_HINT = "try again; if it goes on, compare the fingerprints of the keys on both machines"

NANOSECONDS = 1_000_000_000


class AcceptedClient(Value):
    """What the host has after a handshake: the reply to send, the client's static key, the host's key that the client knows, and
    the channel."""

    reply: bytes
    client_key: bytes
    host_key: bytes
    channel: Channel


class ClientHandshake:
    """One handshake of a client: a request, then the host's reply to it.

    `host_key` is the static key that is known of the host, 32 bytes; the ids name both to the carrier, at most 64 characters of
    ASCII each. `clock` gives nanoseconds since 1970.
    """

    def __init__(
        self,
        keys: KeyPair,
        host_key: bytes,
        *,
        client_id: str,
        host_id: str,
        spoken: Sequence[int] = SPOKEN,
        clock: Callable[[], int] = time.time_ns,
        limits: ChannelLimits = CHANNEL_LIMITS,
    ) -> None:
        self._spoken = tuple(sorted(spoken, reverse=True))
        self._limits = limits
        self._noise: IkHandshake | None = IkHandshake(
            keys.private, host_key, _prologue(self._spoken, client_id, host_id)
        )
        try:
            message = self._noise.write(clock().to_bytes(8, "big"))
        except NoiseFailed:
            hint = "remove the host from known_machines and pair with it again"
            raise Denied("the known key of the host is no key of X25519", reason="bad_key", hint=hint) from None
        self.request = bytes((FORMAT, len(self._spoken), *self._spoken)) + message
        """What the host is to be sent."""

    def read_reply(self, reply: bytes) -> Channel:
        """The channel that the host's reply opens. Denied `protocol` if the host speaks no version of ours, `handshake` for a reply
        that the known host did not make of this request. One reply
        is read, whatever comes of it."""
        if reply[:1] == bytes((NO_COMMON_VERSION,)):
            raise _refuse_version(_parse_versions(reply[1:])[0], self._spoken, "the host")
        if reply[:1] != bytes((ACCEPTED,)) or len(reply) != 1 + REPLY_OVERHEAD + 1:
            raise _refuse("this is no reply to a handshake")
        noise, self._noise = self._noise, None
        if noise is None:
            raise _refuse("a reply to this request was read before")
        try:
            version = noise.read(reply[1:])[0]
        except NoiseFailed:
            raise Denied(
                "the reply was not made by the host that is known here, for this request",
                reason="handshake",
                hint=HANDSHAKE_HINT,
            ) from None
        if version not in self._spoken:
            raise _refuse_version((version,), self._spoken, "the host")
        return Channel(noise.split(), version=version, initiator=True, limits=self._limits)


class HostHandshake:
    """Answers the requests of all clients of a host.

    `keys` are the host's static keys, the present one first: a client that knows an older one is still answered. `is_authorized`
    says whether a client's static key is known. `clock` gives nanoseconds since 1970.
    """

    def __init__(
        self,
        keys: Sequence[KeyPair],
        *,
        host_id: str,
        is_authorized: Callable[[bytes], bool],
        spoken: Collection[int] = SPOKEN,
        clock: Callable[[], int] = time.time_ns,
        timing: SealedTiming = TIMING.sealed,
        limits: ChannelLimits = CHANNEL_LIMITS,
    ) -> None:
        self._keys = tuple(keys)
        self._host_id = host_id
        self._is_authorized = is_authorized
        self._spoken = tuple(sorted(spoken, reverse=True))
        self._clock = clock
        self._limits = limits
        self._times = RequestTimes(int(timing.clock_skew_seconds * NANOSECONDS))

    def use_keys(self, keys: Sequence[KeyPair]) -> None:
        """Answer with other static keys from now on, the present one first. Times that were taken stay so."""
        self._keys = tuple(keys)

    def answer(self, request: bytes, client_id: str) -> AcceptedClient:
        """The channel that a client's request asks for, and the reply to it.

        Denied: `protocol` (its detail `reply` may be sent to the client), `handshake` for what no client made for this host and
        these ids, `unpaired` for a client that is not authorized, `clock` for a time too far from ours, `replayed` for a request
        that was answered before. Nothing is remembered of a request that is refused.
        """
        if request[:1] != bytes((FORMAT,)):
            raise _refuse("this is no request for a handshake")
        offered, message = _parse_versions(request[1:])
        common = [version for version in self._spoken if version in offered]
        if not common:
            reply = bytes((NO_COMMON_VERSION, len(self._spoken), *self._spoken))
            raise _refuse_version(offered, self._spoken, "the client", reply=reply)
        if len(message) != REQUEST_OVERHEAD + 8:
            raise _refuse("this is no request for a handshake")
        try:
            prologue = _prologue(offered, client_id, self._host_id)
        except ValueError:
            raise _refuse("the client has an id that there cannot be") from None
        keys, noise, payload = self._read_message(message, prologue)
        client_key = noise.remote_key()
        if not self._is_authorized(client_key):
            raise Denied(
                f"no client with the key {fingerprint(client_key)} is authorized here",
                reason="unpaired",
                hint="pair it with this host first",
            )
        self._times.take(client_key, int.from_bytes(payload, "big"), self._clock())
        reply = bytes((ACCEPTED,)) + noise.write(bytes((common[0],)))
        channel = Channel(noise.split(), version=common[0], initiator=False, limits=self._limits)
        return AcceptedClient(reply, client_key, keys.public, channel)

    def _read_message(self, message: bytes, prologue: bytes) -> tuple[KeyPair, IkHandshake, bytes]:
        """Noise's first message, read with the key that it was made for."""
        for keys in self._keys:
            noise = IkHandshake(keys.private, None, prologue)
            try:
                return keys, noise, noise.read(message)
            except NoiseFailed:
                continue
        raise _refuse("the request was not made for this host's key, or was changed")


class RequestTimes:
    """The times of requests that were answered, for each client: none is taken twice, in any order they come in.

    `skew` is how far a client's clock may be from ours, in nanoseconds. Of each client a bounded number is remembered. After a
    restart nothing is: a request that is replayed then, within `skew`, gets a channel that its sender cannot use.
    """

    def __init__(self, skew: int) -> None:
        self._skew = skew
        self._taken: dict[bytes, set[int]] = {}
        self._lock = threading.Lock()

    def take(self, client_key: bytes, sent: int, now: int) -> None:
        """Take a request that a client says it sent then, both in nanoseconds. Denied `clock`, `replayed`."""
        if abs(now - sent) > self._skew:
            seconds = round((sent - now) / NANOSECONDS)
            apart = f"{abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'}"
            hint = "set the clocks of both machines, as by NTP"
            raise Denied(
                f"the client's clock is {apart} this host's, or an old request was replayed", reason="clock", hint=hint
            )
        with self._lock:
            taken = self._taken.setdefault(client_key, set())
            # what is older than all that are remembered may have been forgotten
            if sent in taken or (len(taken) == MOST_TIMES and sent < min(taken)):
                raise Denied(
                    "this request was answered before, or is older than the last ones",
                    reason="replayed",
                    hint="make another handshake",
                )
            if len(taken) == MOST_TIMES:
                taken.remove(min(taken))
            taken.add(sent)


def _prologue(versions: Sequence[int], client_id: str, host_id: str) -> bytes:
    """What both sides must agree on: the offered versions, and who is the client and who the host."""
    parts = [bytes(versions), client_id.encode("ascii"), host_id.encode("ascii")]
    if any(not 0 < len(part) <= MOST_ID for part in parts):
        raise ValueError("an id has 1 to 64 characters")
    return b"tmuxctl channel" + bytes((FORMAT,)) + b"".join(bytes((len(part),)) + part for part in parts)


def _parse_versions(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """The versions that data begins with, and what follows them."""
    count = data[0] if data else 0
    versions, rest = tuple(data[1 : 1 + count]), data[1 + count :]
    if not 0 < count <= MOST_VERSIONS or len(versions) != count:
        raise _refuse("this is no message of a handshake")
    return versions, rest


def _refuse(message: str) -> Denied:
    return Denied(message, reason="handshake", hint=HANDSHAKE_HINT)


def _refuse_version(theirs: Sequence[int], ours: Sequence[int], who: str, **details: object) -> Denied:
    spoken, own = (", ".join(map(str, versions)) for versions in (theirs, ours))
    place = "here" if max(theirs) > max(ours) else f"on the machine of {who}"
    return Denied(
        f"{who} speaks version {spoken} of the protocol, this tmuxctl {own}",
        reason="protocol",
        hint=f"upgrade tmuxctl {place}",
        **details,
    )
