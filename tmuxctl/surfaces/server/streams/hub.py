"""The changes of all sessions, seen once for everybody: the present state of each, and a list of what changed since."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tmuxctl.errors import TmuxctlError
from tmuxctl.model import State
from tmuxctl.operations import Call, Cancellation, under
from tmuxctl.timing import TIMING
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.control import Control
    from tmuxctl.results import Event

KEPT = 10_000
"""Changes that are kept for readers that come back."""

BEHIND = 2_000
"""Changes that a reader may be behind before it is dropped."""


ENDED = (State.EXITED, State.LOST)


class Change(Value):
    """A change of a session's state with its number in this server's life. `gone`: the session, which had ended, is not listed
    any more."""

    number: int
    event: Event
    gone: bool = False

    @property
    def name(self) -> str:
        """What the change is called as an event."""
        if self.gone:
            return "gone"
        return {State.ASKING: "asking", State.EXITED: "exited", State.LOST: "exited"}.get(
            self.event.state or State.UNKNOWN, "state"
        )


def key_of(event: Event) -> str:
    """What an event's session is known by: its id, with its machine before it. One of another machine that gives itself the id of
    a session here is another one."""
    machine = event.session.rpartition("/")[0]
    found = event.id or event.session.rpartition("/")[2]
    return f"{machine}/{found}" if machine else found


class Reader:
    """One that is told of changes. It is dropped when it is too far behind; `lost` is set then."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: deque[Change] = deque()
        self.woken = asyncio.Event()
        self.lost = False

    def tell(self, change: Change) -> None:
        """Hand over a change; from any thread."""
        if len(self.waiting) >= BEHIND:
            self.lost = True
        else:
            self.waiting.append(change)
        self.loop.call_soon_threadsafe(self.woken.set)

    async def changes(self) -> AsyncIterator[Change]:
        """The changes in order, until the reader is dropped."""
        while not self.lost:
            await self.woken.wait()
            self.woken.clear()
            while self.waiting:
                yield self.waiting.popleft()


class EventHub:
    """Watches all sessions in a thread of its own, for all readers."""

    def __init__(self, control: Control, *, all_machines: bool = False) -> None:
        self.control = control
        self.wanted = {"all_machines": True} if all_machines else {}
        """What is said of the sessions that are watched, and listed."""
        self.life = os.urandom(6).hex()
        """Names this life of the server: a number of another one means nothing here."""
        self.present: dict[str, Event] = {}
        self.changed: deque[Change] = deque(maxlen=KEPT)
        self.readers: set[Reader] = set()
        self.listeners: list[Callable[[Change], None]] = []
        """Called in the watching thread with each change."""
        self.number = 0
        self._asked_at = float("-inf")
        self._lock = threading.Lock()
        self._over = Cancellation()
        self._thread = threading.Thread(target=self._run, name="tmuxctl-events", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    @property
    def stopped(self) -> bool:
        """Whether it was ended."""
        return self._over.is_set()

    def stop(self) -> None:
        """End it; readers end too."""
        self._over.set()
        with self._lock:
            for reader in self.readers:
                reader.lost = True
                reader.loop.call_soon_threadsafe(reader.woken.set)

    def count_states(self) -> dict[str, int]:
        """How many sessions are in each state now."""
        found: dict[str, int] = {}
        for event in list(self.present.values()):
            state = event.state.value if event.state else State.UNKNOWN.value
            found[state] = found.get(state, 0) + 1
        return found

    @contextmanager
    def read(self, after: int | None) -> Iterator[tuple[list[Change], Reader]]:
        """A reader with what it is told first: the changes after this number if all of them are kept, else the present state
        of each session."""
        reader = Reader(asyncio.get_running_loop())
        with self._lock:
            first = self.changed[0].number if self.changed else self.number + 1
            if after is not None and first - 1 <= after <= self.number:
                begin = [change for change in self.changed if change.number > after]
            else:
                begin = [Change(self.number, event) for event in self.present.values()]
            self.readers.add(reader)
        try:
            yield begin, reader
        finally:
            with self._lock:
                self.readers.discard(reader)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with under(Call("", cancelled=self._over)):
                    for event in self.control.call("watch", self.wanted, cancelled=self._over):
                        # of a machine that cannot be followed its own list tells why
                        if not event.session.endswith("/"):
                            self._change(event)
            except (TmuxctlError, OSError):
                # no server yet, or it was lost: its sessions come with the next one; or no descriptor was left
                self._over.wait(TIMING.http.retry_seconds)
            if self._over.is_set():
                return

    def forget_gone(self) -> None:
        """Tell of the ended sessions that are not listed any more, and forget them. Other machines are asked seldom."""
        ended = {key: event for key, event in list(self.present.items()) if event.state in ENDED}
        far = any("/" in key for key in ended) and time.monotonic() - self._asked_at >= TIMING.http.rare_listing_seconds
        if not far:
            ended = {key: event for key, event in ended.items() if "/" not in key}
        if not ended:
            return
        told = self.control.call("ls", self.wanted if far else {})
        if far:
            self._asked_at = time.monotonic()
        listed = {session.lasting_address for session in told.sessions}
        silent = {one.machine for one in told.problems}
        for key, event in ended.items():
            if key not in listed and key.rpartition("/")[0] not in silent:
                self._change(event, gone=True)

    def _change(self, event: Event, *, gone: bool = False) -> None:
        key = key_of(event)
        with self._lock:
            before = self.present.get(key)
            if not gone and before is not None and _same(before, event):
                return
            if gone:
                self.present.pop(key, None)
            else:
                self.present[key] = event
            self.number += 1
            change = Change(self.number, event, gone)
            self.changed.append(change)
            for reader in self.readers:
                reader.tell(change)
        for listener in self.listeners:
            listener(change)


def _same(before: Event, event: Event) -> bool:
    names = ("session", "status", "wants", "exit_status", "signal")
    return all(getattr(before, name) == getattr(event, name) for name in names)


def parse_number(text: str | None, life: str) -> int | None:
    """The number in the id of an event of this life of the server; None for any other."""
    found, _, number = (text or "").partition("-")
    return int(number) if found == life and number.isdecimal() and len(number) < 16 else None
