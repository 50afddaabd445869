"""What goes through a channel: records that are encrypted one by one, so that the carrier may lose, repeat and reorder them.

    version u8 | channel id (16 bytes) | counter u64 | ChaCha20-Poly1305 of: length u32 | JSON object | bytes

The first 25 bytes are authenticated with the rest. The counter is the nonce, as Noise's ChaChaPoly has it (revision 34, section
12.3); numbers are big-endian elsewhere. A carrier learns the length of a record: nothing is padded.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tmuxctl.errors import Denied
from tmuxctl.sealed.noise import SplitKeys
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value

ID_BYTES, HEADER_BYTES, TAG_BYTES = 16, 25, 16

MOST_JSON = MOST_BODY = 64 << 10
"""Bytes of the JSON object and of the raw bytes that one record may hold; what is longer is sent in several."""

MOST_RECORD = HEADER_BYTES + 4 + MOST_JSON + MOST_BODY + TAG_BYTES

WINDOW = 1024
"""How far a record may be behind the newest one that was read."""


class ChannelLimits(Value):
    """After how many records of one direction, and how many seconds, a channel ends; and how much longer a record that was under
    way is read."""

    records: int = 1 << 24
    seconds: float = TIMING.sealed.channel_seconds
    grace_seconds: float = TIMING.sealed.grace_seconds


CHANNEL_LIMITS = ChannelLimits()


class RecordRefused(Denied):
    """A record that is to be dropped. `reason`: `malformed`, `other_channel`, `replayed`, `too_old`, `forged`, or `channel_ended`
    for one that comes after the channel's end, or cannot be sent any more."""


class OpenedRecord(Value):
    """What was in a record."""

    header: Mapping[str, Any]
    body: bytes
    counter: int


class ReplayWindow:
    """Which counters were read: the newest one and the WINDOW - 1 below it, one bit each (RFC 4303, section 3.4.3)."""

    def __init__(self) -> None:
        self._newest = -1
        self._read = 0

    def refuse_known(self, counter: int) -> None:
        """RecordRefused `replayed` or `too_old` for a counter that was read, or may have been."""
        behind = self._newest - counter
        if behind >= WINDOW:
            raise RecordRefused(f"record {counter} is {behind} behind the newest one", reason="too_old")
        if behind >= 0 and self._read >> behind & 1:
            raise RecordRefused(f"record {counter} was read before", reason="replayed")

    def add(self, counter: int) -> None:
        """Remember that a counter was read."""
        if counter > self._newest:
            ahead = counter - self._newest
            self._read = (self._read << ahead) & ((1 << WINDOW) - 1) if ahead < WINDOW else 0
            self._newest = counter
        self._read |= 1 << (self._newest - counter)


class Channel:
    """One end of a channel, for any number of threads of one process: a counter is used once.

    `version` is that of the protocol; `clock` gives seconds.
    """

    def __init__(
        self,
        keys: SplitKeys,
        *,
        version: int,
        initiator: bool,
        limits: ChannelLimits = CHANNEL_LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = keys.handshake_hash[:ID_BYTES]
        """What both ends call the channel, and no other channel is called: 16 bytes."""
        self.version = version
        self.is_confirmed = initiator
        """Whether the other side has shown that it lives: a host knows that with the first record it reads, not before."""
        self._prefix = bytes((version,)) + self.id
        self._send, self._receive = ChaCha20Poly1305(keys.send), ChaCha20Poly1305(keys.receive)
        self._window = ReplayWindow()
        self._next = 0
        self._limits, self._clock = limits, clock
        self._began = clock()
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def is_worn(self) -> bool:
        """Whether three quarters of the channel's records or time are over: time for another handshake."""
        age = self._clock() - self._began
        return self._next >= self._limits.records * 3 // 4 or age >= self._limits.seconds * 0.75

    def seal(self, header: Mapping[str, Any], body: bytes = b"") -> bytes:
        """A record with a JSON object of at most MOST_JSON bytes and at most MOST_BODY raw bytes.

        ValueError for more than that, or for what is no JSON; RecordRefused `channel_ended` once the channel is over, and in a
        process that was forked from the one that has the channel.
        """
        text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
        if len(text) > MOST_JSON or len(body) > MOST_BODY:
            raise ValueError(f"a record holds {MOST_JSON} bytes of JSON and {MOST_BODY} others at most")
        with self._lock:
            counter = self._next
            over = self._clock() - self._began >= self._limits.seconds or counter >= self._limits.records
            # a nonce must not be used twice, and both processes would have the same
            if over or os.getpid() != self._process:
                raise RecordRefused("the channel is over", reason="channel_ended", hint="make another handshake")
            self._next += 1
        head = self._prefix + counter.to_bytes(8, "big")
        return head + self._send.encrypt(_nonce(counter), len(text).to_bytes(4, "big") + text + body, head)

    def open(self, record: bytes) -> OpenedRecord:
        """What is in a record of the other side. RecordRefused for any other bytes, which change nothing: no counter counts as
        read."""
        if not HEADER_BYTES + 4 + TAG_BYTES <= len(record) <= MOST_RECORD:
            raise RecordRefused(f"a record has no {len(record)} bytes", reason="malformed")
        head = record[:HEADER_BYTES]
        if not head.startswith(self._prefix):
            raise RecordRefused("a record of another channel", reason="other_channel")
        counter = int.from_bytes(head[-8:], "big")
        late = self._clock() - self._began >= self._limits.seconds + self._limits.grace_seconds
        if late or counter >= self._limits.records:
            raise RecordRefused("the channel is over", reason="channel_ended", hint="make another handshake")
        with self._lock:
            self._window.refuse_known(counter)
        try:
            text = self._receive.decrypt(_nonce(counter), record[HEADER_BYTES:], head)
        except InvalidTag:
            raise RecordRefused(f"record {counter} was not made by the other side", reason="forged") from None
        found = _parse_record(text, counter)
        with self._lock:
            # another thread may have read the same record meanwhile
            self._window.refuse_known(counter)
            self._window.add(counter)
            self.is_confirmed = True
        return found


def _nonce(counter: int) -> bytes:
    return bytes(4) + counter.to_bytes(8, "little")


def _parse_record(text: bytes, counter: int) -> OpenedRecord:
    """What the decrypted text of a record says; RecordRefused `malformed`."""
    length = int.from_bytes(text[:4], "big")
    if length > min(MOST_JSON, len(text) - 4) or len(text) - 4 - length > MOST_BODY:
        raise RecordRefused(f"record {counter} has lengths that do not fit", reason="malformed")
    try:
        header = parse_json(text[4 : 4 + length], limit=MOST_JSON, parse_constant=_refuse_constant)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise RecordRefused(f"record {counter} holds no JSON object", reason="malformed")
    return OpenedRecord(header, text[4 + length :], counter)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
