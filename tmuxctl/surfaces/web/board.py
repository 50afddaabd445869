"""The board of all sessions behind the page's overview: kept once for all readers, and only while somebody reads it.

States and questions come from the server's events. Sessions are listed once a second by one exchange with tmux; of those that
printed since, the screens are captured, many in one exchange. Sessions of other machines come from one list for each machine; of
their screens only those are asked for that a reader has in view.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from tmuxctl.control.machines.machine_lists import ListPace, MachineList, MachineLists
from tmuxctl.control.sessions import finding
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import Session
from tmuxctl.operations import Call, under
from tmuxctl.surfaces.server.logs import format_time
from tmuxctl.surfaces.server.streams.sse import PING, format_event
from tmuxctl.surfaces.web.branches import Branches
from tmuxctl.surfaces.web.rows import Glance, RowWords, cut_line, last_line, make_row
from tmuxctl.terminal.panes.captures import Capture, capture_sessions
from tmuxctl.terminal.tmux.screen import plain_text
from tmuxctl.timing import TIMING
from tmuxctl.value import Value, changed

if TYPE_CHECKING:
    from tmuxctl.access import CallerAccess
    from tmuxctl.control import Control
    from tmuxctl.results import Event, Sessions
    from tmuxctl.surfaces.server.streams.hub import Change, EventHub
    from tmuxctl.terminal.tmux.server import Pane

CAPTURED_ROWS = 200
"""Rows of a screen, from its end, in which its last line is looked for."""

SEEN_MOST = 300
"""Sessions that one reader may have in view."""

ROWS_AT_ONCE = 400
"""Rows in one message to a reader: the first ones are drawn while the others are on their way."""


class BoardRow(Value):
    """A row as it was told last, and the number of the change that made it so."""

    name: str
    told: dict[str, Any]
    number: int


class KnownSession:
    """What the board knows of one session, and what its row was made of."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.pane: Pane | None = None
        self.glance = Glance()
        self.glanced = -1.0
        """The wall clock when its screen was captured."""
        self.glanced_active: str | None = None
        """When it had printed last, as its machine told, when its screen was asked for there."""
        self.glanced_again = False
        """Whether it was asked for twice since then."""
        self.state: tuple[object, ...] = ()
        self.since: str | None = None
        self.made_of: tuple[object, ...] = ()

    def has_printed(self) -> bool:
        """Whether its screen may have changed since it was captured: tmux tells the second of the last output."""
        return self.pane is not None and (self.glanced < 0 or self.pane.active >= int(self.glanced))


class Board:
    """The rows of all sessions, renewed by a thread of its own while somebody reads them."""

    def __init__(self, control: Control, hub: EventHub, words: RowWords) -> None:
        self.control, self.hub, self.words = control, hub, words
        self.rows: dict[str, BoardRow] = {}
        self.number = 0
        self.told_machines: dict[str, dict[str, Any]] = {}
        """What the page is told of each other machine."""
        self.listed = threading.Event()
        """Set once the sessions were listed since somebody reads."""
        self._readers: set[TileReader] = set()
        self._known: dict[str, KnownSession] = {}
        self._keys: frozenset[tuple[object, ...]] | None = None
        self._whole_at = float("-inf")
        self._changed_here = False
        self._lock = threading.Lock()
        self._poked = threading.Event()
        self._thread: threading.Thread | None = None
        self._branches = Branches(self._poked.set)
        pace = ListPace(
            seen=TIMING.http.seen_listing_seconds,
            rare=TIMING.http.rare_listing_seconds,
            again=control.machine.timing.machine.again_seconds,
            least=TIMING.http.listing_seconds,
        )
        self.machines = MachineLists(self._list_elsewhere, self._hear_machine, pace) if hub.wanted else None
        """The lists of other machines, where the board is of those too."""
        self._listed: dict[str, MachineList] = {}
        hub.listeners.append(self._hear_change)

    @contextmanager
    def read(self, access: CallerAccess) -> Iterator[TileReader]:
        """A reader, for as long as this holds."""
        reader = TileReader(self, access)
        with self._lock:
            self._readers.add(reader)
            if self._thread is None:
                self.listed.clear()
                self._thread = threading.Thread(target=self._run, name="tmuxctl-board", daemon=True)
                self._thread.start()
        try:
            yield reader
        finally:
            with self._lock:
                self._readers.discard(reader)
            self._poked.set()

    def snapshot(self) -> tuple[int, dict[str, BoardRow]]:
        """The number of the last change and the rows, whole in one moment. The rows are made anew by a change, never altered."""
        with self._lock:
            return self.number, self.rows

    def describe_machines(self) -> dict[str, dict[str, Any]]:
        """The other machines by name: what the page is told of each."""
        if self.machines is None:
            return {}
        return {
            name: {
                "name": name,
                "known": one.is_known,
                "problem": one.problem
                and {
                    "reason": one.problem.reason,
                    "message": cut_line(one.problem.message, self.words),
                    "hint": cut_line(one.problem.hint, self.words),
                },
            }
            for name, one in self._listed.items()
        }

    def knows_all(self) -> bool:
        """Whether the rows are of all other machines too: each told its sessions, or why it does not."""
        if self.machines is None:
            return True
        told = self.told_machines
        whole = self.machines.has_begun and told.keys() >= self.machines.all().keys()
        return whole and all(one["known"] or one["problem"] for one in told.values())

    def find_reader(self, reader: str) -> TileReader | None:
        """The reader with this id."""
        with self._lock:
            return next((one for one in self._readers if one.id == reader), None)

    def note_seen(self) -> None:
        """Readers have other sessions in view."""
        if self.machines is not None:
            seen = self._seen()
            self.machines.look_at({key.rpartition("/")[0] for key in seen if "/" in key})

    def _seen(self) -> frozenset[str]:
        with self._lock:
            return frozenset().union(*(reader.seen for reader in self._readers))

    def _run(self) -> None:
        timing, due = TIMING.http, float("-inf")
        while self._goes_on():
            self._poked.clear()
            # where tmux does not answer now, or no descriptor is left, the rows stay as they were
            with under(Call("")):
                if time.monotonic() >= due:
                    due = time.monotonic() + timing.listing_seconds
                    with suppress(TmuxctlError, OSError):
                        self._list()
                    self.listed.set()
                with suppress(TmuxctlError, OSError):
                    self._merge_elsewhere()
                self._renew()
            if self._poked.wait(max(0.0, due - time.monotonic())):
                # what changes together is told together
                time.sleep(timing.together_seconds)

    def _goes_on(self) -> bool:
        """Whether anybody still reads; without a reader the thread ends, and the next reader starts another."""
        with self._lock:
            if self._readers and not self.hub.stopped:
                return True
            self._thread = None
            self._branches.stop()
        if self.machines is not None:
            self.machines.stop()
        return False

    # what there is

    def _list(self) -> None:
        """Ask tmux for all sessions; whatever it cannot tell is asked for when one comes, goes or gets another name, and now and
        then."""
        machine = self.control.machine
        panes = {pane.id: pane for pane in finding.list_panes(machine)}
        keys = frozenset((pane.id, pane.incarnation, pane.name, pane.dead) for pane in panes.values())
        timing, age = TIMING.http, time.monotonic() - self._whole_at
        # a program that does something else now may be another one, with another profile
        changes = self._changed_here and age >= timing.whole_listing_seconds
        if keys != self._keys or changes or age >= timing.rare_listing_seconds:
            self._changed_here = False
            self._list_whole()
            self._keys = keys
        for key, known in self._known.items():
            if not known.session.machine and (pane := panes.get(key)) is not None and pane is not known.pane:
                known.session = _with_facts(known.session, pane)
                known.pane = pane
        self._glance_at([known for known in self._known.values() if known.has_printed()])

    def _list_whole(self) -> None:
        sessions = self.control.call("ls", {}).sessions
        before = self._known
        found = {key: known for key, known in before.items() if known.session.machine}
        for session in sessions:
            found[session.id] = known = before.get(session.id) or KnownSession(session)
            if (session.target is not None and session.active != known.session.active) or known.glanced < 0:
                self._glance_elsewhere(known, session)
            # its facts are told again from what tmux says now
            known.session, known.pane = session, None
        self._known = found
        self._whole_at = time.monotonic()
        self._branches.renew(session.cwd for session in sessions if session.cwd)

    def _glance_at(self, printed: list[KnownSession]) -> None:
        if not printed:
            return
        at = time.time()
        panes = [known.pane for known in printed if known.pane is not None]
        for known, capture in zip(printed, capture_sessions(self.control.machine.transport, panes), strict=True):
            known.glance, known.glanced = _parse_glance(capture), at

    def _glance_elsewhere(self, known: KnownSession, session: Session) -> None:
        """Look at the screen of a pane of another tmux server."""
        if session.target is None or session.state.traits.over:
            return
        known.glanced = time.time()
        self._glance_at_address(known, session.lasting_address)

    def _glance_at_address(self, known: KnownSession, address: str) -> None:
        try:
            screen = self.control.call("screen", {"session": address, "state": False})
        except TmuxctlError:
            return
        known.glance = Glance(screen.title, last_line(screen.text))

    # other machines

    def _list_elsewhere(self, name: str, over: threading.Event) -> Sessions:
        found: Sessions = self.control.call("ls", {"machine": name}, cancelled=over)
        return found

    def _hear_machine(self, name: str) -> None:
        """A machine told its sessions: look at the screens of those in view that printed; in that machine's thread."""
        seen = self._seen()
        self._poked.set()
        for key, known in list(self._known.items()):
            session = known.session
            is_again = session.active == known.glanced_active
            if session.machine == name and key in seen and not (is_again and known.glanced_again):
                # it may have printed more in the second that its machine told: it is looked at once more
                known.glanced_active, known.glanced_again = session.active, is_again
                self._glance_at_address(known, session.lasting_address)
                self._poked.set()

    def _hear_change(self, change: Change) -> None:
        """A state changed: of a session of another machine that is not known under this name the machine is asked."""
        self._poked.set()
        machine, _, name = change.event.session.rpartition("/")
        if not machine:
            self._changed_here = True
        elif self.machines is not None:
            known = self._known.get(f"{machine}/{change.event.id}")
            over = change.event.state is not None and change.event.state.traits.over
            if known is None or known.session.name != name or over != known.session.state.traits.over:
                self.machines.poke(machine)

    def _merge_elsewhere(self) -> None:
        """Take in what other machines told since the last time."""
        if self.machines is None:
            return
        self.machines.renew()
        before, self._listed = self._listed, dict(self.machines.all())
        if self._listed == before:
            return
        known = {
            key: one
            for key, one in self._known.items()
            if not one.session.machine
            or self._listed.get(one.session.machine) is before.get(one.session.machine) is not None
        }
        for name, found in self._listed.items():
            if found is before.get(name):
                continue
            for session in found.sessions:
                key = session.lasting_address
                known[key] = one = self._known.get(key) or KnownSession(session)
                one.session = session
        self._known = known

    # what is told of it

    def _renew(self) -> None:
        """Make the rows anew whose session, screen, state or branch has changed, and wake the readers if there are any."""
        present = self.hub.present
        made: dict[str, BoardRow] = {}
        number = self.number + 1
        for key, known in self._known.items():
            event = present.get(key)
            branch = None if known.session.machine else self._branches.find(known.session.cwd)
            made_of = (known.session, event, known.glance, branch)
            if key in self.rows and all(map(_is_same, made_of, known.made_of)):
                made[key] = self.rows[key]
                continue
            session = _newest(known.session, event)
            _note_state(known, session, event)
            row = make_row(session, self.words, known.glance, branch, known.since)
            known.made_of = made_of
            before = self.rows.get(key)
            made[key] = before if before and before.told == row else BoardRow(session.address, row, number)
        with self._lock:
            machines = self.describe_machines()
            same = made.keys() == self.rows.keys() and all(made[key] is self.rows[key] for key in made)
            if same and machines == self.told_machines and self.number:
                return
            self.rows, self.number, self.told_machines = made, number, machines
            for reader in self._readers:
                reader.wake()


def _is_same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, str) and one == other)


def _with_facts(session: Session, pane: Pane) -> Session:
    """A session with what tmux tells of it now."""
    active = _format_second(pane.active)
    about = {"name": pane.name, "cols": pane.cols, "rows": pane.rows, "attached": pane.attached, "tags": pane.tags}
    if active == session.active and all(getattr(session, name) == value for name, value in about.items()):
        return session
    return changed(session, active=active, **about)


def _format_second(seconds: float) -> str | None:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) if seconds else None


def _newest(session: Session, event: Event | None) -> Session:
    """A session in the state that the server's events told last: two looks agreed on it, where a list takes one. One that was
    restored meanwhile is not the one that ended."""
    if event is None or session.state.traits.over or event.state is None or event.state.traits.over:
        return session
    status = changed(event.status, detail=session.detail, until=session.until)
    return changed(session, status=status, wants=event.wants, exit_status=event.exit_status, signal=event.signal)


def _note_state(known: KnownSession, session: Session, event: Event | None) -> None:
    """Note since when a session is in its state. Of the first one that is seen, its last output tells: it has stood since then."""
    state = (session.state, session.asking.id if session.asking else None)
    if state == known.state:
        return
    first, known.state = not known.state, state
    told = event.time if event and event.state is session.state else None
    known.since = (session.active or session.created) if first else (told or format_time())


def _parse_glance(capture: Capture) -> Glance:
    rows = capture.rows.rstrip(b"\n").split(b"\n")[-CAPTURED_ROWS:]
    for row in reversed(rows):
        if row.strip() and (text := plain_text(row)).strip():
            return Glance(capture.title, text)
    return Glance(capture.title, "")


class TileReader:
    """One reader of the board, on the server's loop. `seen` are the sessions that it has in view."""

    def __init__(self, board: Board, access: CallerAccess) -> None:
        self.board, self.access = board, access
        self.id = os.urandom(8).hex()
        self.loop = asyncio.get_running_loop()
        self.woken = asyncio.Event()
        self.number: int | None = None
        self.told: set[str] = set()
        self.told_machines: dict[str, dict[str, Any]] = {}
        self.seen: frozenset[str] = frozenset()

    def wake(self) -> None:
        """There is something new; from any thread."""
        self.loop.call_soon_threadsafe(self.woken.set)

    def look_at(self, keys: Iterable[str]) -> None:
        """Note which sessions it has in view, at most SEEN_MOST of those that it may know of."""
        self.seen = frozenset(islice((key for key in keys if key in self.told), SEEN_MOST))
        self.board.note_seen()

    def take(self) -> dict[str, Any] | None:
        """What changed since the last time, all rows the first time; None where nothing did, or nothing is known yet."""
        if not self.board.listed.is_set():
            return None
        self.woken.clear()
        number, rows = self.board.snapshot()
        meant = rows if self.access.unlimited else {k: row for k, row in rows.items() if self.access.means(row.name)}
        first, after = self.number is None, self.number or 0
        new = [row.told for key, row in meant.items() if first or row.number > after or key not in self.told]
        gone = sorted(self.told - meant.keys())
        known = {name: one for name, one in self.board.told_machines.items() if self.access.means_machine(name)}
        machines = [one for name, one in known.items() if one != self.told_machines.get(name)]
        lost = sorted(self.told_machines.keys() - known.keys())
        if not (first or new or gone or machines or lost):
            return None
        self.number, self.told, self.told_machines = number, set(meant), known
        asking = sum(bool(row.told["needs"]) for row in meant.values())
        found = {"all": first, "rows": new, "gone": gone, "asking": asking, "now": format_time()}
        return found | {"reader": self.id, "machines": machines, "machines_gone": lost}


def split_tiles(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a reader is told in messages of at most ROWS_AT_ONCE rows, who needs a person first; `more`: others follow at once."""
    rows = found["rows"]
    if len(rows) > ROWS_AT_ONCE:
        rows = sorted(rows, key=lambda row: (row["rank"], row["name"]))
    for begin in range(0, max(1, len(rows)), ROWS_AT_ONCE):
        part = {**found, "rows": rows[begin : begin + ROWS_AT_ONCE], "more": begin + ROWS_AT_ONCE < len(rows)}
        if begin:
            part |= {"all": False, "gone": [], "machines": [], "machines_gone": []}
        yield part


async def stream_tiles(board: Board, access: CallerAccess, holds: Callable[[], bool]) -> AsyncGenerator[str, None]:
    """All rows that the caller may know of, then those that change, as server-sent events, until `holds` says no."""
    timing = TIMING.http
    with board.read(access) as reader:
        told = time.monotonic()
        while holds() and not board.hub.stopped:
            if (found := reader.take()) is not None:
                told = time.monotonic()
                for part in split_tiles(found):
                    yield format_event("tiles", part)
                await asyncio.sleep(timing.tiles_seconds)
                continue
            if time.monotonic() - told >= timing.ping_seconds:
                told = time.monotonic()
                yield PING
            first = reader.number is None
            try:
                async with asyncio.timeout(timing.tiles_seconds / 10 if first else timing.follow_seconds):
                    await reader.woken.wait()
            except TimeoutError:
                continue


async def read_tiles(board: Board, access: CallerAccess, session: str = "") -> dict[str, Any]:
    """All rows that the caller may know of, once: those of machines that are slow are not waited for longer than by `ls`, and not
    where `session`, by its id or name, is among the others."""
    until = time.monotonic() + board.control.machine.timing.machine.all_seconds
    with board.read(access) as reader:
        while not board.hub.stopped and time.monotonic() < until and not board.knows_all():
            if any(session in (row.told["id"], row.told["name"]) for row in board.snapshot()[1].values()):
                break
            await asyncio.sleep(TIMING.http.tiles_seconds / 10)
        while (found := reader.take()) is None and not board.hub.stopped:
            await asyncio.sleep(TIMING.http.tiles_seconds / 10)
    return found or {"all": True, "rows": [], "gone": [], "asking": 0, "machines": [], "now": format_time()}
