"""What a host recorded for this client, read from the gateway's stream: also while the host is away.

The stream may hold anything, in any order: whoever runs the gateway can put there what it likes. What is told was sealed by the
known key of the host for a key of this client; what is not later than the event before it, by the host's own numbers, is left out.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from tmuxctl.errors import Denied, Timeout, Unreachable, Usage
from tmuxctl.gateway import subjects
from tmuxctl.gateway.carrier import find_known, read_client_credentials
from tmuxctl.gateway.connection import MOST_MESSAGES, CarriedMessage, Connection, StoredEvent, Subscription
from tmuxctl.gateway.events.stored import EventContent, EventPlace, parse_content, unpack_event
from tmuxctl.machines import MachineEntry
from tmuxctl.model import parse_seconds
from tmuxctl.operations import current
from tmuxctl.results import MachineEvent
from tmuxctl.sealed.keys import KeyFiles
from tmuxctl.sealed.sealing import open_event
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.value import changed

MOST_READ = 20_000
"""Stored events that are read at once: twice what a gateway keeps of a host. One that has more makes them up."""

MOST_CHAINS = 1024
"""Chains whose positions are known at a time; the host has at most 256 at a time."""


class EventOrder:
    """Which events of a host are new, and how many are missing before each, by its own numbers.

    `complete`: the first event that comes is the first that was recorded; else nothing is known of what was before it.
    """

    def __init__(self, complete: bool) -> None:
        self._complete = complete
        self._last: EventPlace | None = None
        self._positions: OrderedDict[str, int] = OrderedDict()

    def is_new(self, place: EventPlace) -> bool:
        """Whether it is later than all that were taken."""
        return self._last is None or place > self._last

    def take(self, place: EventPlace, content: EventContent) -> int | None:
        """How many events are missing before this one, or are told by it to be lost; None if it is not new."""
        if not self.is_new(place):
            return None
        if self._last is not None and place[:2] != self._last[:2]:
            # another process recorded it, and counted from 1
            self._positions.clear()
            self._complete = True
        self._last = place
        if content.event is None:
            # whichever they were: they are not to be missed again
            self._positions.clear()
            self._complete = False
            return content.lost
        before = self._positions.pop(content.chain, 0 if self._complete else content.position - 1)
        self._positions[content.chain] = content.position
        if len(self._positions) > MOST_CHAINS:
            self._positions.popitem(last=False)
            self._complete = False
        return max(0, content.position - before - 1)


class EventReader:
    """Reads the events of a machine of machines.toml that has a `gateway`, in order, each once.

    `since` is the number of a stored event, after which it begins, or how many seconds ago; None: with the first that is kept.
    Raises as `find_known` and `read_client_credentials`, and where the gateway is not reached.
    """

    connection_class: type[Connection] = Connection

    def __init__(
        self, entry: MachineEntry, since: int | float | None = None, *, timing: GatewayTiming = TIMING.gateway
    ) -> None:
        known, credentials = find_known(entry), read_client_credentials()
        self._machine, self._host, self._host_key = entry.name, subjects.parse_id(known.host_id), known.key
        self._keys, self._timing = KeyFiles().load().all, timing
        after = since if isinstance(since, int) else None
        self._after, self._next = after, max(1, after or 1)
        self._begin = _ago(since) if isinstance(since, float) else ""
        self._order = EventOrder(complete=not after)
        self._connection = self.connection_class(credentials, timing)
        try:
            self._connection.wait_connected(timing.reach_seconds)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> EventReader:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    def read(self) -> Iterator[MachineEvent]:
        """What is stored now. Unreachable where the stream does not answer, or does not end."""
        left = MOST_READ
        while True:
            began = self._next
            batch = self._connection.read_events(began, host=self._host)
            # a batch is full unless it is the last
            left -= max(len(batch.events), 64)
            if left < 0:
                hint = "it makes events up, or belongs to another release: tmuxctl --version where the gateway is"
                raise Unreachable("the gateway's stream has no end", reason="bad_stream", hint=hint)
            for stored in batch.events:
                if stored.sequence >= self._next:
                    yield from self._tell(stored)
            if self._after:
                # nothing is stored from there on
                yield from self._tell_missing(self._after)
            current().check()
            if not batch.pending or self._next == began:
                return

    def follow(self) -> Iterator[MachineEvent]:
        """What is stored now and from now on, and whether the host is heard; without end, over any loss of the connection.

        Unreachable where the stream does not answer at the beginning, Denied whenever the gateway refuses this client."""
        feed = self._connection.subscribe(subjects.feed(self._host), of_stream=True)
        heart = _Heart(self._connection, self._host, self._machine, self._timing)
        read_at, fed = 0, False
        while True:
            current().check()
            opened = self._connection.opened
            if fed or read_at != opened:
                # what was stored without a connection came to no feed
                reading = self._read_on(again=read_at not in (0, opened))
                while True:
                    try:
                        told = next(reading, None)
                    except Unreachable:
                        if not read_at:
                            raise
                        break
                    if told is None:
                        read_at = opened
                        break
                    yield told
            yield from heart.look()
            fed = _drain(feed, self._timing.follow_seconds)
            if isinstance(self._connection.last_error, Denied):
                raise self._connection.last_error

    def _read_on(self, again: bool) -> Iterator[MachineEvent]:
        """What is stored and was not read. `again`: the gateway was connected anew, and may have a new stream, from 1 on."""
        if again and self._next > 1:
            found = self._connection.read_events(self._next - 1, host=self._host, most=1).events
            if not found or found[0].sequence != self._next - 1:
                # repeated events are left out by the numbers of the host
                self._next = 1
        yield from self.read()

    def _tell(self, stored: StoredEvent) -> Iterator[MachineEvent]:
        """What a stored event tells, and what is missing before it."""
        self._next = stored.sequence + 1
        found = self._open(stored.data)
        lost = self._order.take(*found) if found else None
        if self._after:
            if stored.sequence == self._after:
                # this one was told before; it says what follows it
                self._after = None
                return
            yield from self._tell_missing(stored.sequence)
        if found is None or lost is None:
            return
        content = found[1]
        if content.time < self._begin:
            return
        if lost:
            yield self._make(kind="lost", number=stored.sequence, time=content.time, lost=lost)
        if event := content.event:
            event = changed(event, session=f"{self._machine}/{event.session}")
            yield self._make(kind="state", number=stored.sequence, time=event.time, event=event)

    def _tell_missing(self, number: int) -> Iterator[MachineEvent]:
        """That the event from which on it was to be read is not kept: how many are missing is not known."""
        self._after = None
        yield self._make(kind="lost", number=number)

    def _open(self, data: bytes) -> tuple[EventPlace, EventContent] | None:
        """Which event it is, with its content; None for what the host did not seal for this client."""
        with suppress(Denied, Unreachable):
            place, sealed = unpack_event(data)
            stream = place.bind_stream(self._host)
            for keys in self._keys:
                with suppress(Denied):
                    content = open_event(keys, sealed, host_key=self._host_key, stream=stream, number=place.number)
                    return place, parse_content(content)
        return None

    def _make(self, **fields: object) -> MachineEvent:
        return MachineEvent(machine=self._machine, **fields)  # type: ignore[arg-type]


class _Heart:
    """Whether a host is heard, while the connection to the gateway stands. Anybody who carries messages can forge that it is."""

    def __init__(self, connection: Connection, host: str, machine: str, timing: GatewayTiming) -> None:
        self._connection, self._machine, self._timing = connection, machine, timing
        # other members can have the stream say there that it has stored something
        self._beats = connection.subscribe(
            subjects.heartbeat(host), first=lambda message: None if message.data else message
        )
        self._heard, self._opened, self._silent = time.monotonic(), 0, False

    def look(self) -> Iterator[MachineEvent]:
        """What changed since the last call: the host is silent, or heard again."""
        now, came = time.monotonic(), _drain(self._beats, 0.0)
        connected, opened = self._connection.connected.is_set(), self._connection.opened
        if came or not connected or opened != self._opened:
            self._heard, self._opened = now, opened
        silent = now - self._heard > self._timing.silent_seconds
        if came and self._silent:
            self._silent = False
            yield MachineEvent(kind="heard", machine=self._machine, time=_ago(0.0))
        elif silent and not self._silent:
            self._silent = True
            yield MachineEvent(kind="silent", machine=self._machine, time=_ago(0.0))


def _drain(messages: Subscription[CarriedMessage], seconds: float) -> bool:
    """Whether anything came; waits so many seconds for it. What waits is taken."""
    came = False
    with suppress(Timeout):
        for _ in range(MOST_MESSAGES):
            messages.next(0.0 if came else seconds)
            came = True
    return came


def parse_since(text: str) -> int | float:
    """The number of a stored event as an int, or a duration as float seconds. Usage `bad_since` for anything else."""
    if text.isdecimal() and text.isascii() and len(text) < 19:
        return int(text)
    with suppress(Usage):
        if (seconds := parse_seconds(text)) is not None:
            return seconds
    hint = "a number that this command printed, as 1042, or a time that passed since, as 10m, 2h"
    raise Usage(f"{ascii(text[:40])} is neither a number nor a duration", reason="bad_since", hint=hint)


def _ago(seconds: float) -> str:
    """The moment so long ago, as events have it."""
    moment = datetime.now(UTC) - timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
