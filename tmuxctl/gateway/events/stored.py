"""An event as the stream keeps it: which one it is, for all to see, and what is sealed for clients.

    version u8 | series (8 bytes) | life u32 | number u64 | sealed event (`tmuxctl.sealed.sealing`)

Series, life and number are those of the spool: who opens the event authenticates them. They grow with every event of a host.
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any

from tmuxctl.errors import Denied, Unreachable
from tmuxctl.results import Event
from tmuxctl.rpc.encoding import decode, encode
from tmuxctl.sealed.sealing import HINT
from tmuxctl.untrusted import parse_json
from tmuxctl.value import NamedTuple, Value

VERSION = 1
_HEAD = struct.Struct(">B8sIQ")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_CHAIN = re.compile(r"[0-9a-f]{8}")
CONTENT_LIMIT = 64 << 10
MOST_NUMBER = 1 << 63


class EventPlace(NamedTuple):
    """Which event of a host it is: the series is that of a spool (16 hex digits), the life that of the process which recorded it.
    A later event of the same host is greater."""

    series: str
    life: int
    number: int

    def bind_stream(self, host: str) -> str:
        """The stream that is authenticated with the event, beside its number; `host` is the id at the gateway."""
        return f"{host} {self.series} {self.life}"


class EventContent(Value):
    """What is sealed: a change of state with its number, from 1, among those that were sealed for the same clients (`chain`), or
    how many events were lost before they were stored."""

    time: str
    event: Event | None = None
    chain: str = ""
    position: int = 0
    lost: int = 0


def pack_event(place: EventPlace, sealed: bytes) -> bytes:
    """The bytes of an event in the stream."""
    return _HEAD.pack(VERSION, bytes.fromhex(place.series), place.life, place.number) + sealed


def unpack_event(data: bytes) -> tuple[EventPlace, bytes]:
    """Which event it says that it is, and what is sealed in it. Denied `sealed` for bytes of another form."""
    if len(data) < _HEAD.size or data[0] != VERSION:
        raise Denied("this is no event of a version that is known here", reason="sealed", hint=HINT)
    _, series, life, number = _HEAD.unpack_from(data)
    return EventPlace(series.hex(), life, number), data[_HEAD.size :]


def write_content(content: EventContent) -> bytes:
    """The bytes that are sealed."""
    return json.dumps(encode(content), ensure_ascii=False, separators=(",", ":")).encode()


def parse_content(data: bytes) -> EventContent:
    """The content that `write_content` made. Unreachable `bad_answer` for what a host may not say."""
    try:
        found: EventContent = decode(EventContent, parse_json(data, limit=CONTENT_LIMIT))
    except ValueError:
        raise _bad() from None
    # a session of yet another machine is none that the host may tell of
    session = found.event.session if found.event else ""
    times = [found.time, *([found.event.time] if found.event else [])]
    whole = all(0 <= one < MOST_NUMBER for one in (found.position, found.lost))
    if "/" in session or not whole or not all(_TIME.fullmatch(one) for one in times):
        raise _bad()
    if found.event is None and not found.lost:
        raise _bad()
    if found.event is not None and (not _CHAIN.fullmatch(found.chain) or not found.position):
        raise _bad()
    return found


def _bad() -> Any:
    return Unreachable(
        "an event that makes no sense", reason="bad_answer", hint="does a tmuxctl of the same release run there?"
    )
