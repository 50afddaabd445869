"""What `tmuxctl top` shows, kept fresh: what tmux knows once a second, states from `watch` as they change, all else from `ls`
where a state changed or a session came or went; loads of processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.control.sessions import finding
from tmuxctl.control.sessions.summaries import format_time
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import Session
from tmuxctl.operations import Call, Caller, under
from tmuxctl.surfaces.cli.top.meter import Meter
from tmuxctl.surfaces.cli.top.pages import Load, Row
from tmuxctl.terminal.tmux.journal import parse_cursor
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control import Control
    from tmuxctl.results import Event
    from tmuxctl.terminal.tmux.outlines import Outline


class Feed:
    """All sessions, kept fresh by two threads. `ring` is called whenever there is something new to show. The session with the
    id `own`, in which this is shown, is listed and not followed."""

    def __init__(
        self, control: Control, ring: Callable[[], None], own: str | None = None, *, all_machines: bool = False
    ) -> None:
        self._given = {"all_machines": True} if all_machines else {}
        self._control, self._ring, self._timing = control, ring, control.machine.timing.page
        self._caller = Caller(session=own)
        self._meter = Meter(control.machine.transport.load, self._timing.load_seconds)
        self._over, self._poked = threading.Event(), threading.Event()
        self._sessions: tuple[Session, ...] = ()
        self._told: dict[str, Event] = {}
        self._loads: Mapping[str, Load] = {}
        self._made: dict[str, tuple[Session, Event | None, Row]] = {}
        self._standing: frozenset[Outline] | None = None
        """What tmux told when the sessions were listed of those there were; not what changes all the time."""
        self._listed = float("-inf")
        self._stale = False
        """Whether a state changed since the sessions were listed: another program may run now, with another profile."""
        self._failure: BaseException | None = None
        self.shown: Collection[str] | None = None
        """The ids of the sessions whose loads are to be seen; None for all."""
        self.problem = ""
        """Why the table is not fresh; empty if it is."""

    def start(self) -> None:
        """List the sessions once, then go on in the background; raises TmuxctlError if they cannot be listed."""
        self._renew()
        for work in (self._list, self._watch):
            threading.Thread(target=self._guarded, args=(work,), daemon=True).start()

    def list_once(self) -> None:
        """List the sessions, and measure what they take, once; raises TmuxctlError if they cannot be listed."""
        self._sessions = self._control.call("ls", self._given).sessions
        for _ in range(2):
            self._measure()
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
        made = {one.id: self._make_row(one) for one in self._sessions}
        self._made = made
        return [row for _, _, row in made.values()]

    def _make_row(self, one: Session) -> tuple[Session, Event | None, Row]:
        """A session's row, and what it was made of: the same one where that is the same."""
        event, load, before = self._told.get(one.incarnation or ""), self._loads.get(one.id), self._made.get(one.id)
        if before and before[0] is one and before[1] is event and before[2].load == load:
            return before
        return one, event, Row(_newest(one, event), load)

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
        poked = self._poked.is_set()
        self._poked.clear()
        with under(Call("")):
            outlines = {one.id: one for one in finding.list_outlines(self._control.machine)}
        standing = frozenset(one._replace(attached=0, active=0) for one in outlines.values())
        age, timing = time.monotonic() - self._listed, self._timing
        # of the panes of another server its `ls` alone tells
        due = (
            timing.changed_seconds
            if self._stale or any(one.target or one.machine for one in self._sessions)
            else timing.rare_seconds
        )
        if poked or standing != self._standing or age >= due:
            # whatever comes while they are listed, or keeps them from it, is for the next time
            self._stale, self._standing = False, None
            before = set(self._told)
            self._sessions = self._control.call("ls", self._given).sessions
            self._listed, self._standing = time.monotonic(), standing
            for gone in before - {one.incarnation for one in self._sessions}:
                del self._told[gone]
        self._sessions = tuple(_with_facts(one, outlines.get(one.id)) for one in self._sessions)
        self._measure()

    def _measure(self) -> None:
        roots = {one.id: one.pid for one in self._sessions if one.pid and not one.machine and not one.state.traits.over}
        shown = self.shown
        self._loads = self._meter.measure(roots, lambda key: shown is None or key in shown)

    # their states

    def _watch(self) -> None:
        while not self._over.is_set():
            with suppress(TmuxctlError):
                for event in self._control.call("watch", self._given, cancelled=self._over, caller=self._caller):
                    self._hear(event)
            self._over.wait(self._timing.table_seconds)

    def _hear(self, event: Event) -> None:
        if event.cursor:
            incarnation = parse_cursor(event.cursor).incarnation
            self._told[incarnation], self._stale = event, True
        self._ring()


def _with_facts(one: Session, outline: Outline | None) -> Session:
    """A session with what tmux tells of it now."""
    if outline is None or (one.attached, one.active) == (outline.attached, active := format_time(outline.active)):
        return one
    return changed(one, attached=outline.attached, active=active)


def _newest(one: Session, event: Event | None) -> Session:
    """A session in the state that `watch` told last: two looks agreed on it, where a list takes one."""
    if event is None or one.state.traits.over:
        return one
    status = changed(event.status, detail=one.detail, until=one.until)
    return changed(one, status=status, wants=event.wants, exit_status=event.exit_status, signal=event.signal)
