"""What a host's sessions do, recorded for the clients that may know of it: sealed, kept on disk, and published to the stream.

An event is sealed for each client in `authorized_clients`, as that is when it happens, which has the right to read and whose
patterns mean its session. Where there is none, it is not stored.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from datetime import UTC, datetime

from tmuxctl.access import CallerAccess
from tmuxctl.errors import TmuxctlError
from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.events.stored import EventContent, EventPlace, pack_event, unpack_event, write_content
from tmuxctl.gateway.spool import EventPublisher, Spool, SpooledEvent
from tmuxctl.results import Event
from tmuxctl.sealed.keys import KeyFiles, make_key_pair
from tmuxctl.sealed.sealing import seal_event
from tmuxctl.sealed.trust import AuthorizedClients
from tmuxctl.state_files import state_home
from tmuxctl.timing import TIMING, GatewayTiming

MOST_CHAINS = 256
"""Sets of clients whose events are counted; what was counted of the one that was not used for longest is forgotten."""


def spool_folder(host: str) -> str:
    """Where a host keeps events until they are stored: in this user's state folder."""
    return os.path.join(state_home(), "tmuxctl", "gateway-events", host)


class EventRecorder:
    """Records events of the host whose connection this is, and says every two seconds that it is there, until it is closed.

    `spool` is closed with it; by default it is this host's own, with what the process before it did not publish. Raises as `Spool`.
    """

    def __init__(
        self, connection: Connection, *, spool: Spool | None = None, timing: GatewayTiming = TIMING.gateway
    ) -> None:
        self._connection, self._timing = connection, timing
        self._host, self._clients, self._key_files = connection.credentials.id, AuthorizedClients(), KeyFiles()
        self._chains: OrderedDict[tuple[bytes, ...], tuple[str, int]] = OrderedDict()
        """By the keys that events were sealed for, the name of the chain and how many it has."""
        self._lock = threading.Lock()
        self._failed = False
        self._over = threading.Event()
        self._spool = spool or Spool(spool_folder(self._host))
        self._publisher = EventPublisher(connection, self._spool, self._make_gap, timing)
        self._beats = threading.Thread(target=self._beat, name="gateway heartbeats", daemon=True)
        self._beats.start()

    def record(self, event: Event) -> None:
        """Keep an event for those who may know of it. It never raises: that an event cannot be kept is told on standard error, and
        its readers learn that one is missing."""
        if "/" in event.session:
            # of another machine, which has a tmuxctl or clients of its own
            return
        try:
            self._keep(event)
            self._failed = False
        except (TmuxctlError, OSError, ValueError) as error:
            if not self._failed:
                sys.stderr.write(f"tmuxctl: an event was not kept: {error}\n")
            self._failed = True

    def close(self) -> None:
        """Record and publish no more. What is not stored yet is published by the next process."""
        self._over.set()
        self._publisher.close()
        self._beats.join()
        with self._lock:
            self._spool.close()

    def _keep(self, event: Event) -> None:
        readers = self._find_readers(event.session)
        with self._lock:
            if not readers or self._over.is_set():
                return
            chain, count = self._chains.pop(readers, (secrets.token_hex(4), 0))
            # counted before it is kept: where that fails, its readers see that one is missing
            self._chains[readers] = chain, count + 1
            if len(self._chains) > MOST_CHAINS:
                self._chains.popitem(last=False)
            place = EventPlace(self._spool.name, self._spool.life, self._spool.newest + 1)
            content = EventContent(time=event.time, event=event, chain=chain, position=count + 1)
            self._spool.append(self._seal(readers, content, place))

    def _find_readers(self, session: str | None) -> tuple[bytes, ...]:
        """The keys of the clients that may know of the session of this name; with None of those that may read anything."""
        return tuple(
            client.key
            for client in self._clients.entries()
            if "read" in client.rights
            and (
                session is None or CallerAccess(client.name, client.rights, client.sessions, remote=True).means(session)
            )
        )

    def _seal(self, readers: tuple[bytes, ...], content: EventContent, place: EventPlace) -> bytes:
        stream = place.bind_stream(self._host)
        # read each time: it may have been changed meanwhile
        key = self._key_files.load().current
        sealed = seal_event(readers, write_content(content), host=key, stream=stream, number=place.number)
        return pack_event(place, sealed)

    def _make_gap(self, gap: SpooledEvent) -> bytes:
        """What is stored in the place of events that found no room: their number, for all who may read."""
        life = unpack_event(gap.data)[0].life if gap.data else self._spool.life
        content = EventContent(time=_now(), lost=gap.lost)
        readers = self._find_readers(None) or (make_key_pair().public,)
        return self._seal(readers, content, EventPlace(self._spool.name, life, gap.number))

    def _beat(self) -> None:
        while True:
            with suppress(TmuxctlError):
                # without a connection there is none to tell
                self._connection.publish(subjects.heartbeat(self._host), b"")
            if self._over.wait(self._timing.heartbeat_seconds):
                return


def _now() -> str:
    """This moment, as events have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
