"""What `tmuxctl top` shows, kept fresh: `ls` once a second, states from `watch` as they change, loads of processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.control.sessions import records
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import Session
from tmuxctl.surfaces.cli.top.meter import Meter
from tmuxctl.surfaces.cli.top.pages import Load, Row
from tmuxctl.terminal.tmux.journal import Journal, parse_cursor
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control import Control
    from tmuxctl.results import Event
    from tmuxctl.transport.base import Watch


class Feed:
    """All sessions, kept fresh by two threads. `ring` is called whenever there is something new to show."""

    def __init__(self, control: Control, ring: Callable[[], None]) -> None:
        self._control, self._ring, self._timing = control, ring, control.machine.timing.page
        self._meter = Meter(control.machine.transport.processes, self._timing.load_seconds)
        self._over, self._poked = threading.Event(), threading.Event()
        self._sessions: tuple[Session, ...] = ()
        self._told: dict[str, Event] = {}
        self._loads: Mapping[str, Load] = {}
        self._printed: Watch | None = None
        self._folders: list[str] = []
        self._deaf = False
        self._listed = float("-inf")
        self._failure: BaseException | None = None
        self.problem = ""
        """Why the table is not fresh; empty if it is."""

    def start(self) -> None:
        """List the sessions once, then go on in the background; raises TmuxctlError if they cannot be listed."""
        self._renew()
        for work in (self._list, self._watch):
            threading.Thread(target=self._guarded, args=(work,), daemon=True).start()

    def list_once(self) -> None:
        """List the sessions, and measure what they take, once; raises TmuxctlError if they cannot be listed."""
        self._sessions = self._control.call("ls", {}).sessions
        for _ in range(2):
            self._loads = self._meter.measure({one.id: one.pid for one in self._running() if one.pid}, anew=True)
            self._over.wait(self._timing.load_seconds)

    def close(self) -> None:
        """Stop looking; the threads end on their own."""
        self._over.set()
        self._poked.set()

    def poke(self) -> None:
        """List the sessions again soon: something was done to one."""
        self._poked.set()

    def rows(self) -> list[Row]:
        """The sessions as they are known now; raises what ended a thread, which is a bug."""
        if self._failure is not None:
            raise self._failure
        return [
            Row(_newest(one, self._told.get(one.incarnation or "")), self._loads.get(one.id)) for one in self._sessions
        ]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            if not self._over.is_set():
                self._failure = error
                self._ring()

    # the sessions

    def _list(self) -> None:
        while not self._over.is_set():
            if self._poked.wait(self._timing.table_seconds):
                self._over.wait(self._timing.together_seconds)
            try:
                self._renew()
                self.problem = ""
            except TmuxctlError as error:
                self.problem = error.message
            self._ring()

    def _renew(self) -> None:
        if stale := self._stale():
            before = set(self._told)
            self._sessions = self._control.call("ls", {}).sessions
            self._listed = time.monotonic()
            for gone in before - {one.incarnation for one in self._sessions}:
                del self._told[gone]
            self._listen()
        self._loads = self._meter.measure({one.id: one.pid for one in self._running() if one.pid}, anew=stale)

    def _stale(self) -> bool:
        """Whether anything may have changed since the sessions were listed."""
        poked = self._poked.is_set()
        self._poked.clear()
        printed = self._printed is not None and self._printed.wait(0.0)
        return poked or printed or self._deaf or time.monotonic() - self._listed >= self._timing.quiet_seconds

    def _listen(self) -> None:
        """Hear of everything the sessions print from now on."""
        folders = [
            Journal(self._control.machine.transport, records.session_folder(self._control.machine, one.id)).folder
            for one in self._running()
        ]
        if folders == self._folders and self._printed is not None:
            return
        if self._printed is not None:
            self._printed.close()
        self._folders, self._printed = folders, self._control.machine.transport.watch(folders)
        # of panes that were adopted nothing may tell when they print
        self._deaf = not all(map(self._control.machine.transport.files, folders))
        # what was printed between the list and this is seen by the next
        self._listed = float("-inf")

    def _running(self) -> list[Session]:
        return [one for one in self._sessions if not one.state.traits.over]

    # their states

    def _watch(self) -> None:
        while not self._over.is_set():
            with suppress(TmuxctlError):
                for event in self._control.call("watch", {}, cancelled=self._over):
                    self._hear(event)
            self._over.wait(self._timing.table_seconds)

    def _hear(self, event: Event) -> None:
        if event.cursor:
            self._told[parse_cursor(event.cursor).incarnation] = event
        self._poked.set()
        self._ring()


def _newest(one: Session, event: Event | None) -> Session:
    """A session in the state that `watch` told last: two looks agreed on it, where a list takes one."""
    if event is None or one.state.traits.over:
        return one
    status = changed(event.status, detail=one.detail, until=one.until)
    return changed(one, status=status, wants=event.wants, exit_status=event.exit_status, signal=event.signal)
