"""Changes of state as they happen: the one stream of events everything else uses."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from tmuxctl.control.lifecycle import listing
from tmuxctl.control.lifecycle.reach import reach
from tmuxctl.control.observation import wanting
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.observation.observing import StabilityTracker
from tmuxctl.control.sessions import finding, records, summaries
from tmuxctl.errors import Exited, NotFound, Unreachable
from tmuxctl.model import Confidence, State
from tmuxctl.operations import Call, Cancellation, current, under
from tmuxctl.reading.state.judging import Verdict
from tmuxctl.results import Event
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Watch
from tmuxctl.value import changed
from tmuxctl.vocabulary import EvidenceKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

GONE = frozenset({"lost", "no_server"})
"""Why a server is not reached that has died."""

MANY = 32
"""Who follows more sessions than this is told of each a little later: looks take half a millisecond each (measured)."""


def watch(machine: Machine, names: tuple[str, ...], state: str | None = None) -> Iterator[Event]:
    """The present state of each session, then every change; of all sessions, new ones too, if none is named. With `state`
    only changes to this state, or to wanting this (`prompt`, `input`).

    Ends when every named session has ended. A question that takes the place of another is a change.
    """
    places: dict[Machine, tuple[str, ...]] = {}
    for name in names:
        place, called = reach(machine, name)
        if place.remote is None:
            listing.show(place, called)
        else:
            place.remote.call("show", {"session": called}, called, address=place.address)
        places[place] = (*places.get(place, ()), called)
    events = _Watching(machine, places, current()).events()
    return events if state is None else (one for one in events if state in (one.state.value, one.wants))


class _Watching:
    """One thread for each session, and what they saw, in order. `places` are who drives those that are named; if none is,
    all are watched, adopted ones too, but for the one that the caller says it runs in: what it shows would be a change of that,
    and with a thread for each session it is slow to look at (20 % of a core, measured)."""

    def __init__(self, machine: Machine, places: Mapping[Machine, tuple[str, ...]], call: Call) -> None:
        self.machine, self.places, self.call = machine, places, call
        self.own = call.caller.session if call.caller else None
        self.adopted: dict[str, Machine] = {}
        self.over = threading.Event()
        self.seen: queue.Queue[Event | BaseException] = queue.Queue()
        self.threads: dict[str, threading.Thread] = {}
        self.watched: dict[str, _One] = {}
        self.stops: list[Callable[[], None]] = []

    def events(self) -> Iterator[Event]:
        """What the threads see, until there is nothing left to watch."""
        clock, pause, due = self.machine.clock, self.machine.timing.wait.sessions_seconds, 0.0
        try:
            while self.call.left(None) != 0.0:
                self.call.check()
                if clock.monotonic() >= due:
                    self._start()
                    due = clock.monotonic() + (2 * pause if len(self.watched) > MANY else pause)
                over = bool(self.places) and not any(thread.is_alive() for thread in self.threads.values())
                try:
                    found = self.seen.get(timeout=0.0 if over else self.call.left(max(0.0, due - clock.monotonic())))
                except queue.Empty:
                    if over:
                        return
                    continue
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            self.over.set()
            for stop in (*self.stops, *(one.stop for one in self.watched.values())):
                stop()

    def _start(self) -> None:
        """Begin with sessions that are not watched yet."""
        first = not self.threads
        for machine, names in (self.places or self._all()).items():
            if machine.remote is not None:
                self._start_elsewhere(machine, names)
                continue
            try:
                there = {outline.id: outline.name for outline in finding.list_outlines(machine)}
                wanted = {
                    key for key, name in there.items() if (name in names or key in names if names else key != self.own)
                }
                come = wanted - self.threads.keys()
                panes = finding.list_panes(machine) if first or come else []
            except Unreachable:
                if machine is self.machine:
                    raise
                # another server that does not answer keeps nobody from watching the rest
                continue
            gone = records.list_lost(machine, panes) if first else []
            for one in gone:
                if not names or one.name in names or one.id in names:
                    self.threads[one.id] = threading.Thread()
                    self.seen.put(
                        changed(_event(machine.address_of(one.name), _lost(one.state), one.cursor), id=one.id)
                    )
            for key in there.keys() & self.watched.keys():
                self.watched[key].note_name(there[key])
            for pane in panes:
                if pane.id in come:
                    self.watched[pane.id] = watched = _One(self, machine, pane)
                    self.threads[pane.id] = thread = threading.Thread(target=self._watch, args=(watched,), daemon=True)
                    thread.start()

    def _start_elsewhere(self, machine: Machine, names: tuple[str, ...]) -> None:
        """Have another machine's tmuxctl watch these."""
        key = f"{machine.address}/"
        if key in self.threads:
            return

        def follow() -> None:
            assert machine.remote
            over = Cancellation()
            self.stops.append(over.set)
            try:
                with under(changed(self.call, cancelled=over)):
                    for event in machine.remote.call("watch", {"session": names}, address=machine.address):
                        self.seen.put(event)
            except BaseException as error:
                if not self.over.is_set():
                    self.seen.put(error)

        self.threads[key] = thread = threading.Thread(target=follow, daemon=True)
        thread.start()

    def _all(self) -> dict[Machine, tuple[str, ...]]:
        """Who drives what there is by now."""
        if self.machine.transport.files(f"{self.machine.transport.home}/{layout.ADOPTED}"):
            from tmuxctl.control.lifecycle import adopting

            for name in adopting.list_names(self.machine):
                self.adopted[name] = self.adopted.get(name) or reach(self.machine, name)[0]
        return {self.machine: (), **dict.fromkeys(self.adopted.values(), ())}

    def _watch(self, one: _One) -> None:
        try:
            with under(changed(self.call, cancelled=self.over)):
                one.run()
        except BaseException as error:
            # a bug too is the consumer's: a thread that dies alone would leave a session silently unwatched
            if not self.over.is_set():
                self.seen.put(error)


class _One:
    """One session under watch."""

    def __init__(self, watching: _Watching, machine: Machine, pane: Pane) -> None:
        self.watching, self.machine, self.pane = watching, machine, pane
        self.listed = pane.name
        self.told: tuple[object, ...] | None = None
        self.last: Event | None = None
        self.watch: Watch | None = None

    def run(self) -> None:
        """Look and tell until the session has ended."""
        self.steady = StabilityTracker(self.machine, Observer(self.machine, self.pane), None)
        pid = None if self.pane.dead else self.pane.pid
        folders, transport = self.steady.observer.folders, self.machine.transport
        with closing(transport.watch(folders, pid, terminal=self.pane.tty)) as self.watch:
            self.steady.load_looks()
            while not self.watching.over.is_set():
                if not self._look():
                    return
                rarity = 2.0 if len(self.watching.watched) > MANY else 1.0
                if self.steady.rest(self.watch, self.machine.timing.wait.sessions_seconds, rarity=rarity):
                    self.steady.note_activity()

    def note_name(self, name: str) -> None:
        """Tell, from another thread, that the session is called this now: one that prints nothing is not looked for by its name."""
        if name == self.listed or self.last is None:
            return
        self.listed = name
        self.pane = self.steady.observer.pane = changed(self.steady.observer.pane, name=name)
        self._tell_event(changed(self.last, session=name, time=_now()))

    def stop(self) -> None:
        """Have `run` end at once, from another thread."""
        if self.watch:
            self.watch.close()

    def _look(self) -> bool:
        """Look once and tell what changed; False when there is nothing more to come."""
        try:
            held = self.steady.observe()
        except (NotFound, Exited):
            return self._gone()
        except Unreachable as error:
            # where the machine is not reached, nothing is known of the session
            return self._gone() if error.reason in GONE else True
        verdict = self.steady.verdict
        if held:
            self._tell(verdict)
        return verdict.state is not State.EXITED

    def _tell(self, verdict: Verdict) -> None:
        detail = None if verdict.detail and verdict.detail.traits.passing else verdict.detail
        about = (verdict.state, verdict.kind, detail, verdict.asking and verdict.asking.id)
        looks, pane = self.steady.observer.looks, self.steady.observer.pane
        if about == self.told and self.last and self.last.session == pane.name:
            return
        self.told = about
        self.steady.save_looks()
        cursor = finding.cursor_at(pane, looks[-1].journal) if looks else None
        event = _event(pane.name, verdict, cursor, wanting.what_is_wanted(self.steady.observer, verdict))
        self._tell_event(changed(event, attached=self._count_attached(), id=self.pane.id))

    def _tell_event(self, event: Event) -> None:
        self.last = event
        self.watching.seen.put(changed(event, session=self.machine.address_of(event.session)))

    def _count_attached(self) -> int:
        """How many terminals show the session now; none once it is gone."""
        with suppress(NotFound, Unreachable, Exited):
            return finding.find_session(self.machine, self.pane.id).attached
        return 0

    def _gone(self) -> bool:
        """Renamed, killed or lost: follow it, or tell its end."""
        try:
            self.pane = self.steady.observer.pane = finding.find_session(self.machine, self.pane.id)
            return True
        except (NotFound, Unreachable, Exited) as error:
            lost = error.reason in GONE
            if isinstance(error, Unreachable) and not lost:
                return True
        verdict = _lost(State.LOST if lost else State.EXITED)
        self._tell(verdict)
        return False


def _lost(state: State) -> Verdict:
    why = "its tmux server died" if state is State.LOST else "it was ended"
    return Verdict(state, None, None, EvidenceKind.EXIT if state is State.EXITED else None, Confidence.SURE, why)


def _event(name: str, verdict: Verdict, cursor: str | None, wants: str | None = None) -> Event:
    return Event(
        time=_now(),
        session=name,
        status=summaries.status_of(verdict),
        why=verdict.why,
        cursor=cursor,
        wants=wants,
        exit_status=verdict.status,
        signal=verdict.signal,
    )


def _now() -> str:
    """This moment, as ISO 8601 in UTC with milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
