"""What `tmuxctl top` shows, kept fresh: what tmux knows once a second, states from `watch` as they change, all else from `ls`
where a state changed or a session came or went, of each machine by itself; loads of processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.control.machines.machine_lists import ListPace, MachineLists
from tmuxctl.control.sessions import finding
from tmuxctl.control.sessions.summaries import format_time
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import Session, State
from tmuxctl.operations import Call, Caller, under
from tmuxctl.surfaces.cli.top.meter import Meter
from tmuxctl.surfaces.cli.top.pages import Load, Row
from tmuxctl.terminal.tmux.journal import parse_cursor
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control import Control
    from tmuxctl.results import Event, MachineProblem, Sessions
    from tmuxctl.terminal.tmux.outlines import Outline


class Feed:
    """All sessions, kept fresh by two threads. `ring` is called whenever there is something new to show. The session with the
    id `own`, in which this is shown, is listed and not followed."""

    def __init__(
        self, control: Control, ring: Callable[[], None], own: str | None = None, *, all_machines: bool = False
    ) -> None:
        self._given = {"all_machines": True} if all_machines else {}
        self._control, self._ring, self._timing = control, ring, control.machine.timing.page
        pace = ListPace(
            seen=self._timing.changed_seconds,
            rare=self._timing.rare_seconds,
            again=control.machine.timing.machine.again_seconds,
        )
        self._machines = MachineLists(self._list_elsewhere, lambda name: ring(), pace) if all_machines else None
        self._caller = Caller(session=own)
        self._meter = Meter(control.machine.transport.load, self._timing.load_seconds)
        self._over, self._poked = threading.Event(), threading.Event()
        self._sessions: tuple[Session, ...] = ()
        self._told: dict[tuple[str, str], Event] = {}
        """What `watch` told last of each session, by its machine and its incarnation."""
        self._loads: Mapping[str, Load] = {}
        self._made: dict[str, tuple[Session, Event | None, Row]] = {}
        self._standing: frozenset[Outline] | None = None
        """What tmux told when the sessions were listed of those there were; not what changes all the time."""
        self._listed = float("-inf")
        self._stale = False
        """Whether a state changed since the sessions were listed: another program may run now, with another profile."""
        self._failure: BaseException | None = None
        self.shown: Collection[str] | None = None
        """The lasting addresses of the sessions whose loads are to be seen; None for all."""
        self.problems: tuple[MachineProblem, ...] = ()
        """The machines that do not answer, and why."""
        self.problem = ""
        """Why the table is not fresh; empty if it is."""

    def start(self) -> None:
        """List the sessions once, then go on in the background; raises TmuxctlError if they cannot be listed."""
        self._renew()
        for work in (self._list, self._watch):
            threading.Thread(target=self._guarded, args=(work,), daemon=True).start()

    def list_once(self) -> None:
        """List the sessions, and measure what they take, once; raises TmuxctlError if they cannot be listed."""
        found = self._control.call("ls", self._given)
        self._sessions, self.problems = found.sessions, found.problems
        for _ in range(2):
            self._measure()
            self._over.wait(self._timing.load_seconds)

    def close(self) -> None:
        """Stop looking; the threads end on their own."""
        self._over.set()
        self._poked.set()
        if self._machines is not None:
            self._machines.stop()

    def poke(self) -> None:
        """List the sessions again soon: something was done to one."""
        self._poked.set()
        if self._machines is not None:
            self._machines.poke()

    def look_at(self, shown: Collection[str] | None) -> None:
        """Note the lasting addresses of the sessions that are to be seen, as `shown`."""
        self.shown = shown
        if self._machines is not None:
            self._machines.look_at({key.rpartition("/")[0] for key in shown or () if "/" in key})

    def rows(self) -> list[Row]:
        """The sessions as they are known now; raises what ended a thread, which is a bug."""
        if self._failure is not None:
            raise self._failure
        made = {one.lasting_address: self._make_row(one) for one in (*self._sessions, *self._take_elsewhere())}
        self._made = made
        return [row for _, _, row in made.values()]

    def _list_elsewhere(self, name: str, over: threading.Event) -> Sessions:
        found: Sessions = self._control.call("ls", {"machine": name}, cancelled=over)
        return found

    def _take_elsewhere(self) -> Iterator[Session]:
        """The sessions of other machines, as these told them last."""
        if self._machines is None:
            return
        lists = self._machines.all().values()
        self.problems = tuple(one.problem for one in lists if one.problem) if lists else self.problems
        for one in lists:
            yield from one.sessions

    def _make_row(self, one: Session) -> tuple[Session, Event | None, Row]:
        """A session's row, and what it was made of: the same one where that is the same."""
        key = one.lasting_address
        event, load = self._told.get((one.machine or "", one.incarnation or "")), self._loads.get(key)
        before = self._made.get(key)
        if before is not None and before[0] is one and before[1] is event and before[2].load == load:
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
            timing.changed_seconds if self._stale or any(one.target for one in self._sessions) else timing.rare_seconds
        )
        if poked or standing != self._standing or age >= due:
            # whatever comes while they are listed, or keeps them from it, is for the next time
            self._stale, self._standing = False, None
            before = {key for key in self._told if not key[0]}
            self._sessions = self._control.call("ls", {}).sessions
            self._listed, self._standing = time.monotonic(), standing
            for gone in before - {("", one.incarnation) for one in self._sessions}:
                del self._told[gone]
        if self._machines is not None:
            self._machines.renew()
            self._forget_elsewhere()
        self._sessions = tuple(_with_facts(one, outlines.get(one.id)) for one in self._sessions)
        self._measure()

    def _forget_elsewhere(self) -> None:
        """Forget what was told of sessions that their machine does not list any more."""
        assert self._machines is not None
        lists = self._machines.all()
        known = {(name, one.incarnation) for name, found in lists.items() for one in found.sessions}
        answered = {name for name, found in lists.items() if found.is_known}
        for key in list(self._told):
            if key[0] in answered and key not in known and self._told[key].state in (State.EXITED, State.LOST):
                del self._told[key]

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
        machine = event.session.rpartition("/")[0]
        if event.cursor:
            key = machine, parse_cursor(event.cursor).incarnation
            if machine and self._machines is not None and self._is_news(key, event):
                self._machines.poke(machine)
            self._told[key] = event
            self._stale = self._stale or not machine
        self._ring()

    def _is_news(self, key: tuple[str, str], event: Event) -> bool:
        """Whether a session of another machine came, ended or got another name."""
        before = self._told.get(key)
        over = event.state is not None and event.state.traits.over
        return before is None or before.session != event.session or over


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
