"""A pane of another tmux server, reached as if it were a session of ours.

What we would keep in options of the session stands in a file of ours, and nothing is done to the pane but that something is
typed into it. So callers need not know whose pane it is, and the other server stays as it is.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tmuxctl.errors import Conflict, Denied, NotFound, TmuxctlError, Usage
from tmuxctl.state_files import take_lock
from tmuxctl.terminal.panes.screen_journal import ScreenJournal
from tmuxctl.terminal.tmux import layout, options
from tmuxctl.terminal.tmux.journal import Journal
from tmuxctl.terminal.tmux.pane_io import READS_HISTORY, Changed, FieldQuery, PaneIO, Reasons, read_change
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.terminal.tmux.timeline import Timeline
from tmuxctl.timing import TIMING
from tmuxctl.transport import segments
from tmuxctl.transport.base import Command, GuardRefused, ThreadId, Transport, Watch, read_object
from tmuxctl.untrusted import to_record

LISTED = (
    "#{pane_id}",
    "#{pid}",
    "#{pane_pid}",
    "#{session_id}",
    "#{window_index}",
    "#{window_active}",
    "#{pane_index}",
    "#{pane_active}",
    "#{pane_pipe}",
    # anybody may set an option of this name to anything: only what is an id of ours counts
    f"#{{m/r:^[0-9a-f-]+$,#{{{options.ID}}}}}",
    # a window's name may hold tabs and newlines (`new-session -n`, up to 3.6): such a one is left out
    "#{?#{m/r:^[^[:cntrl:]]*$,#{window_name}},#{window_name},}",
    "#{session_name}",
)

TYPED_INTO = "#{&&:#{window_active},#{||:#{pane_active},#{pane_synchronized}}}"
"""A tmux condition: the keys of a person who is in this pane's session reach it."""

BEFORE, OF = f"{options.PREFIX}before", f"{options.PREFIX}of"
"""Kept with the options: the rows before the last input, and the incarnation whose offsets that input is told by."""

NAMESPACE = "5b1c6c0e-6f0c-4d43-9f5f-6f3b6a0f6b0a"


class ForeignPane(NamedTuple):
    """One pane of another server: which it is (`id` with the server's and its first process's pid and start), how a person
    names it, whether something reads along (`pane_pipe`), and whether it is a session that some tmuxctl started."""

    id: str
    server: int
    server_started: int
    pid: int
    started: int
    session_id: str
    session: str
    window: str
    window_active: bool
    pane: str
    active: bool
    piped: bool
    ours: bool
    window_name: str = ""

    @property
    def place(self) -> str:
        """SESSION:WINDOW.PANE"""
        return f"{self.session}:{self.window}.{self.pane}"

    @property
    def uuid(self) -> str:
        """What this very pane, with this very program, is called in files and cursors."""
        # 4 ms, and most commands do without
        from uuid import UUID, uuid5

        about = f"{self.server}.{self.server_started}.{self.id}.{self.pid}.{self.started}"
        return str(uuid5(UUID(NAMESPACE), about))


def list_panes(transport: Transport, *, timeout: float = 8.0) -> list[ForeignPane]:
    """The panes of a server. Unreachable `no_server` if there is none."""
    listing = ("list-panes", "-a", "-F", "\t".join(LISTED))
    rows = transport.run([listing], timeout=timeout).decode(errors="replace").split("\n")
    found = [values for row in rows if len(values := row.split("\t")) == len(LISTED)]
    # tmux 3.8 tells no pid of a pane without a program, earlier ones tell 0
    pids = [int(pid or 0) for values in found for pid in values[1:3]]
    start_times = {row.pid: row.started for row in transport.processes(pids)}
    return [
        ForeignPane(
            id=values[0],
            server=int(values[1]),
            server_started=start_times.get(int(values[1]), 0),
            pid=int(values[2] or 0),
            started=start_times.get(int(values[2] or 0), 0),
            session_id=values[3],
            session=values[11],
            window_name=values[10],
            window=values[4],
            window_active=values[5] == "1",
            pane=values[6],
            active=values[7] == "1",
            piped=values[8] == "1",
            ours=values[9] == "1",
        )
        for values in found
    ]


def find_pane(panes: Sequence[ForeignPane], target: str) -> ForeignPane | None:
    """The pane a target names exactly: `%ID`, `SESSION`, `SESSION:WINDOW` or `SESSION:WINDOW.PANE`; the active window and
    pane where none is named. A window is named by its index or, where no index fits, by its name, as tmux does. None if
    there is none, Usage `ambiguous` if it names several."""
    if target.startswith("%"):
        return next((pane for pane in panes if pane.id == target), None)
    # compared whole: since tmux 3.7 a session's name may hold `:` and `.`
    matching = [pane for pane in panes if target in _list_targets(pane, pane.window)]
    matching = matching or [pane for pane in panes if target in _list_targets(pane, pane.window_name)]
    if len(matching) > 1:
        raise Usage(
            f"{ascii(target[:60])} names several panes",
            reason="ambiguous",
            hint=f"name one by its id: {', '.join(pane.id for pane in matching)}",
        )
    return matching[0] if matching else None


def _list_targets(pane: ForeignPane, window_name: str) -> Iterator[str]:
    """All that a person may write for a pane whose window is `called` so, but its id."""
    pane_parts = (f".{pane.pane}", *(("",) if pane.active else ()))
    window_parts = (window_name, *(("",) if pane.window_active else ()))
    for session in (pane.session, pane.session_id):
        yield from (f"{session}:{window}{part}" for window in window_parts for part in pane_parts)
        if pane.window_active and pane.active:
            yield session


class ForeignIO(PaneIO):
    """One pane, by a transport to its server. What the session is called is `name`; `folder` holds what we remember of it;
    `spec` is what `show` says; with `journal` our own writer reads along."""

    def __init__(
        self, transport: Transport, pane: ForeignPane, name: str, folder: str, spec: Mapping[str, Any], *, journal: bool
    ) -> None:
        super().__init__(transport)
        self.pane, self.name, self.folder, self.journal = pane, name, folder, journal
        # the id is that of this server and first process alone: a pane with other ones is another pane
        is_same = f"#{{==:#{{pid}}.#{{pane_pid}},{pane.server}.{pane.pid}}}"
        self.formats = {
            options.ID: f"#{{?{is_same},{pane.uuid},}}",
            # a person who types into another pane does not disturb this one
            "session_activity": f"#{{?{TYPED_INTO},#{{session_activity}},0}}",
            # a mode is theirs, whether they look or not
            READS_HISTORY: "#{pane_in_mode}",
        }
        # an offset in a journal and a place on the screen are points of two kinds: no cursor is good for both
        self._incarnation = pane.uuid[:8] + (".1" if journal else ".0")
        self._fixed = {
            "session_name": name,
            # what reads along is theirs to end, and ours to start with `adopt` alone
            "pane_pipe": "1",
            options.INCARNATION: self._incarnation,
            options.CREATED: "0",
            options.SPEC: json.dumps({**spec, "journal": journal}),
        }
        self._options_file = f"{folder}/{layout.SESSIONS}/{pane.uuid}/{layout.PANE_OPTIONS}"
        self._places: dict[int, str] = {}
        self._changed = time.monotonic()

    def target(self, name: str) -> str:
        """The pane, which stays the same when it is moved or its session renamed."""
        return self.pane.id

    def read_known(self) -> Mapping[str, str]:
        """The options of ours, which stand in a file, and what is the same for every such pane."""
        values = dict.fromkeys(options.NAMES - {options.ID}, "") | self._load_options()
        return values | {options.INPUT_FACTS: values[options.INPUT][: options.FACTS_SIZE]} | self._fixed

    def list_values(self, fields: Sequence[str]) -> list[list[str]]:
        """The values of these fields for this pane."""
        return [self.look(self.name, fields).values]

    def change_and_look(
        self,
        name: str,
        values: Mapping[str, str | None],
        typing: Sequence[Command] = (),
        *,
        fields: Sequence[str] = (),
        buffer: tuple[str, bytes] | None = None,
        unless: Reasons | Callable[[], Reasons] | None = None,
        clear: Mapping[str, str] | None = None,
        journal: Journal | None = None,
        timeout: float = 8.0,
    ) -> Changed:
        """As of a session of ours, with its options in the file; no mode is left."""
        end = None if journal is None else journal.end()
        values = {option: value.replace(segments.END, str(end)) if value else value for option, value in values.items()}
        if self.pane.ours:
            raise own_session_error(self.name, self.transport.socket)
        self.make_folder()
        with hold_lock(f"{self.folder}/{layout.LOCK}", self.name):
            kept = self._load_options()
            changed = kept | {option: value or "" for option, value in values.items()}
            reasons = unless() if callable(unless) else unless
            commands: list[Command] = [self.make_guard(name, reasons)] if reasons else []
            if options.INPUT in values:
                commands.append(("display-message", "-p", "-t", self.pane.id, changed[options.INPUT]))
            if options.ACKNOWLEDGED in values:
                # a process that ends or times out from here on cannot know whether it was typed: it is never typed twice
                changed[options.ACKNOWLEDGED] = (
                    f"{kept.get(options.ACKNOWLEDGED, '')[-240:]} {values[options.ACKNOWLEDGED]}"
                )
                early = {
                    option: changed[option] for option in (options.ACKNOWLEDGED, options.INBOX) if option in values
                }
                self._save_options(kept | early)
            query = FieldQuery(self, fields) if fields else None
            if query:
                commands.append(query.command(self.pane.id))
            try:
                commands += [(verb, "-t", self.pane.id, *words) for verb, *words in typing]
                printed = self.transport.run(commands, buffer=buffer, timeout=timeout) if commands else b""
            except TmuxctlError as error:
                if options.ACKNOWLEDGED in values and error.reason != "backend_timeout":
                    self._save_options(kept)
                if not isinstance(error, GuardRefused):
                    raise
                return Changed(self.take_back(buffer, error, timeout), ())
            if options.INPUT in values:
                last_input, _, printed = printed.partition(b"\n")
                changed[options.INPUT] = last_input.decode()
                # the offset where the output stood (`paste.LastInput.remember`)
                changed[BEFORE] = self._places.get(int(changed[options.INPUT].split(":")[2]), "")
            found = read_change(query, printed)
            self._save_options(changed)
        return Changed(found.reasons, found.values, end)

    def open_journal(self, pane: Pane, folder: str) -> Journal:
        """Without a writer of ours, what the screen still shows."""
        return super().open_journal(pane, folder) if self.journal else ScreenJournal(self, pane, folder)

    def open_timeline(self, pane: Pane) -> Timeline:
        """In the folder of what we remember of it."""
        return Timeline(self.transport, f"{self.folder}/{layout.SESSIONS}/{self.pane.uuid}")

    def nudge(self) -> None:
        """Not here: no process is started on another's server."""

    def note_change(self, place: int, rows: str) -> None:
        """The screen changed: `rows` is what stands before the cursor, which is at `place`."""
        self._changed = time.monotonic()
        self._places = {**dict(list(self._places.items())[-8:]), place: rows}

    def seconds_unchanged(self) -> float:
        """For how many seconds nothing changed, as far as it was looked at."""
        return time.monotonic() - self._changed

    def rows_before_input(self) -> str:
        """What stood before the cursor when something was last typed; empty if that is not known."""
        return self._load_options().get(BEFORE, "")

    def _load_options(self) -> dict[str, str]:
        """Our options and their values. An input is told of by a point of the kind that counts now, or not at all."""
        kept: dict[str, str] = {}
        with suppress(NotFound, OSError, ValueError):
            found = read_object(self.transport, self._options_file)
            kept = {options.PREFIX + name: value for name, value in found.items() if isinstance(value, str)}
        if kept.pop(OF, None) != self._incarnation:
            kept.pop(options.INPUT, None)
        return kept

    def _save_options(self, values: Mapping[str, str]) -> None:
        kept = {option.removeprefix(options.PREFIX): value for option, value in values.items() if value}
        self.transport.put(self._options_file, to_record({**kept, "of": self._incarnation}))

    def make_folder(self) -> None:
        """Make the folder of what we remember of it."""
        above = os.path.dirname(self.folder)
        sessions = f"{self.folder}/{layout.SESSIONS}"
        for folder in (os.path.dirname(above), above, self.folder, sessions, f"{sessions}/{self.pane.uuid}"):
            self.transport.make_folder(folder)


class ForeignTransport:
    """The transport to the server of a pane, with the folder of this one pane, and without a way to change the server."""

    def __init__(self, io: ForeignIO) -> None:
        self.io, self.inner = io, io.transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def home(self) -> str:
        """Where the files of this one session are; made when something is first written there."""
        return self.io.folder

    def put(self, path: str, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
        """As every transport; the folder is made with its first file."""
        try:
            self.inner.put(path, data, mode=mode, durable=durable)
        except FileNotFoundError:
            self.io.make_folder()
            self.inner.put(path, data, mode=mode, durable=durable)

    def run(
        self, commands: Sequence[Command], *, buffer: tuple[str, bytes] | None = None, timeout: float = 8.0
    ) -> bytes:
        """Questions alone. Denied `foreign` for all else: the pane itself is reached through its `ForeignIO`."""
        for command in commands:
            if command[0] != "display-message":
                raise Denied(
                    f"{self.io.name} is a pane of another tmux server: {command[0]} would change it",
                    reason="foreign",
                    hint="this needs a session that tmuxctl started: tmuxctl new",
                )
        return self.inner.run(commands, timeout=timeout)

    create = run

    def watch(self, folders: Sequence[str], pid: int | None = None, *, terminal: str = "") -> Watch:
        """As every transport; without a journal it wakes often, for nothing tells of output."""
        if self.io.journal:
            return self.inner.watch(folders, pid, terminal=terminal)
        return _ForeignWatch(self.inner.watch([], pid, terminal=terminal), self.io)


@contextmanager
def hold_lock(path: str, name: str) -> Iterator[None]:
    """Hold a lock file, which its process's end gives back. Conflict `leased` if another process does for WAIT_SECONDS."""
    from tmuxctl.transport.local import explain_write_errors

    with explain_write_errors(path):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        take_lock(
            lock,
            TIMING.tmux.foreign_lock_seconds,
            lambda: _lock_error(name, os.pread(lock, 20, 0).decode()),
            pause=0.005,
        )
        with explain_write_errors(path):
            # the holder's pid, for the message of a process that times out
            os.pwrite(lock, b"%-19d" % os.getpid(), 0)
        yield
    finally:
        os.close(lock)


def _lock_error(name: str, pid: str) -> Conflict:
    who = f"process {pid.strip() or 'unknown'}"
    return Conflict(
        f"another tmuxctl ({who}) has been writing to {name} for {TIMING.tmux.foreign_lock_seconds:g} s",
        reason="leased",
        hint=f"is that process stopped? ps -p {pid.strip()}" if pid.strip() else "try again in a moment",
    )


def own_session_error(name: str, socket: str) -> Conflict:
    """The error for writing to a session of a tmuxctl as if it were a foreign pane."""
    return Conflict(
        f"{name} is a session of tmuxctl's own",
        reason="ours",
        hint=f"use it by its name: tmuxctl --socket {socket} ls",
    )


class _ForeignWatch:
    """A wake-up by time, because nothing tells of output: the rarer, the longer nothing changes."""

    tells_of_runs = False

    def __init__(self, watch: Watch, pane: ForeignIO) -> None:
        self._watch, self._pane = watch, pane

    def wait(
        self, timeout: float, *, output: bool = True, threads: Sequence[ThreadId] = (), timer_seconds: float = 0.0
    ) -> bool:
        """Sleep for a moment only; something may always have changed."""
        pause = min(
            TIMING.tmux.foreign_rare_pause_seconds,
            max(TIMING.tmux.foreign_pause_seconds, self._pane.seconds_unchanged() / 10),
        )
        self._watch.wait(min(timeout, pause))
        return True

    def close(self) -> None:
        """Give the wake-up back."""
        self._watch.close()
