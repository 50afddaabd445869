"""A pane of another tmux server, reached as if it were a session of ours.

Everything above asks a transport for a session's options, screen and input. This one answers for one pane of another
server: what we would keep in options of the session stands in a file of ours, and no command that changes anything but
the program's input is let through. So callers need not know whose pane it is, and the other server stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tmuxctl.errors import Conflict, Denied, NotFound, TmuxctlError, Usage
from tmuxctl.state_files import take_lock
from tmuxctl.terminal.tmux import layout, options
from tmuxctl.terminal.tmux.pane_io import FORMATS, READS_HISTORY, field_format
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import Command, Guard, Transport, Watch, read_object
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

SAFE = re.compile(r"[A-Za-z0-9 .:_-]*")
"""What a value may hold that stands in a tmux format as it is."""

TYPED_INTO = "#{&&:#{window_active},#{||:#{pane_active},#{pane_synchronized}}}"
"""A tmux condition: the keys of a person who is in this pane's session reach it."""

OPTION = re.compile(rf"#\{{(?:=(-?[0-9]+):)?{options.PREFIX}(\w+)\}}")

HARMLESS = ("display-message", "capture-pane", "paste-buffer", "delete-buffer", "send-keys")
"""Commands that leave a server's options, layout, modes and pipes as they are."""

LEFT_OUT = (("run-shell", "true"), ("copy-mode", "-q"))
"""Beginnings of commands that are of no use to a pane that is not ours: a nudge, and leaving a mode a person is in."""

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


class ForeignTransport:
    """Reaches one pane through `inner`, a transport to its server. What the session is called is `name`; `folder` holds
    what we remember of it; `spec` is what `show` says; with `journal` our own writer reads along."""

    def __init__(
        self, inner: Transport, pane: ForeignPane, name: str, folder: str, spec: Mapping[str, Any], *, journal: bool
    ) -> None:
        self.inner, self.pane, self.name, self.folder, self.journal = inner, pane, name, folder, journal
        # the id is that of this server and first process alone: a pane with other ones is another pane
        is_same = f"#{{==:#{{pid}}.#{{pane_pid}},{pane.server}.{pane.pid}}}"
        self._fixed_values = {
            f"#{{{options.ID}}}": f"#{{?{is_same},{pane.uuid},}}",
            "#{session_name}": "@NAME@",
            # a person who types into another pane does not disturb this one
            field_format("session_activity"): f"#{{?{TYPED_INTO},#{{session_activity}},0}}",
            # a mode is theirs, whether they look or not
            FORMATS[READS_HISTORY]: "#{pane_in_mode}",
            # what reads along is theirs to end, and ours to start with `adopt` alone
            "#{pane_pipe}": "1",
        }
        # an offset in a journal and a place on the screen are points of two kinds: no cursor is good for both
        incarnation = pane.uuid[:8] + (".1" if journal else ".0")
        about = {"incarnation": incarnation, "created": "0", "spec": json.dumps({**spec, "journal": journal})}
        self._about = {name: value.replace("\n", " ") for name, value in about.items()}
        self._places: dict[int, str] = {}
        self._changed = time.monotonic()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def home(self) -> str:
        """Where the files of this one session are; made when something is first written there."""
        return self.folder

    def put(self, path: str, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
        """As every transport; the folder is made with its first file."""
        try:
            self.inner.put(path, data, mode=mode, durable=durable)
        except FileNotFoundError:
            self._make_folder()
            self.inner.put(path, data, mode=mode, durable=durable)

    def create(self, commands: Sequence[Command], *, timeout: float = 20.0) -> bytes:
        """Denied: nothing is created on another's server."""
        raise self._denied("new-session")

    def watch(self, folders: Sequence[str], pid: int | None = None, *, terminal: str = "") -> Watch:
        """As every transport; without a journal it wakes often, for nothing tells of output."""
        if self.journal:
            return self.inner.watch(folders, pid, terminal=terminal)
        return _ForeignWatch(self.inner.watch([], pid, terminal=terminal), self)

    def note_change(self, place: int, rows: str) -> None:
        """The screen changed: `rows` is what stands before the cursor, which is at `place`."""
        self._changed = time.monotonic()
        self._places = {**dict(list(self._places.items())[-8:]), place: rows}

    def seconds_unchanged(self) -> float:
        """For how many seconds nothing changed, as far as it was looked at."""
        return time.monotonic() - self._changed

    def rows_before_input(self) -> str:
        """What stood before the cursor when something was last typed; empty if that is not known."""
        return self._load_options().get("before", "")

    def run(
        self, commands: Sequence[Command], *, buffer: tuple[str, bytes] | None = None, timeout: float = 8.0
    ) -> bytes:
        """As every transport, for this pane alone. Denied `foreign` for what would change more than its input."""
        self._refuse_changes(commands)
        if not _sets_options(commands):
            return self._run(commands, buffer, timeout)
        if self.pane.ours:
            raise own_session_error(self.name, self.inner.socket)
        self._make_folder()
        with hold_lock(f"{self.folder}/{layout.LOCK}", self.name):
            return self._run(commands, buffer, timeout)

    def _refuse_changes(self, commands: Sequence[Command]) -> None:
        for command in commands:
            harmless = isinstance(command, Guard) or command[0] in HARMLESS or command[:2] in LEFT_OUT
            if not (harmless or _lists_panes(command) or _find_option_set(command)):
                raise self._denied(command[0])

    def _run(self, commands: Sequence[Command], buffer: tuple[str, bytes] | None, timeout: float) -> bytes:
        translated = _TranslatedList(self._load_options(), self._fixed_values, self.name, self.pane.id)
        list_here = translated.translate_list(commands)
        if not list_here:
            return b""
        ids = [command[-1].split()[-1] for command in commands if _find_option_set(command) == "ack"]
        if ids:
            # a process that ends or times out from here on cannot know whether it was typed: record it before, never type it twice
            self._save_options({**translated.kept, "ack": f"{translated.kept.get('ack', '')} {ids[-1]}"})
        try:
            printed = self.inner.run(list_here, buffer=buffer, timeout=timeout)
        except TmuxctlError as error:
            if ids and error.reason != "backend_timeout":
                self._save_options(translated.kept)
            raise
        rest, changed = translated.read_output(printed)
        if "input" in changed:
            changed["before"] = self._places.get(_read_offset(changed["input"]), "")
        if changed or ids:
            self._save_options({**translated.kept, **changed})
        return rest

    def _load_options(self) -> dict[str, str]:
        """Our options and their values. An input is told of by a point of the kind that counts now, or not at all."""
        kept: dict[str, str] = {}
        with suppress(NotFound, OSError, ValueError):
            found = read_object(self.inner, self._options_file)
            kept = {name: value for name, value in found.items() if isinstance(value, str)}
        if kept.pop("of", None) != self._about["incarnation"]:
            kept.pop("input", None)
        return {**kept, **self._about}

    def _save_options(self, values: Mapping[str, str]) -> None:
        kept = {name: value for name, value in values.items() if value and name not in self._about}
        self.put(self._options_file, to_record({**kept, "of": self._about["incarnation"]}))

    @property
    def _options_file(self) -> str:
        return f"{self.folder}/{layout.SESSIONS}/{self.pane.uuid}/{layout.PANE_OPTIONS}"

    def _make_folder(self) -> None:
        above = os.path.dirname(self.folder)
        sessions = f"{self.folder}/{layout.SESSIONS}"
        for folder in (os.path.dirname(above), above, self.folder, sessions, f"{sessions}/{self.pane.uuid}"):
            self.inner.make_folder(folder)

    def _denied(self, verb: str) -> TmuxctlError:
        return Denied(
            f"{self.name} is a pane of somebody else's tmux: {verb} would change it",
            reason="foreign",
            hint="only a session that tmuxctl started can do this: tmuxctl new",
        )


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


def _read_offset(remembered: str) -> int:
    """Where the output stood when an input was given (`paste.LastInput.remember`)."""
    return int(remembered.split(":")[2])


def _find_option_set(command: Command) -> str | None:
    """The option of ours that a command sets, without its prefix; None for every other command."""
    option_names = [word for word in command if word.startswith(options.PREFIX)] if command[0] == "set-option" else []
    return option_names[0].removeprefix(options.PREFIX) if option_names else None


def _sets_options(commands: Sequence[Command]) -> bool:
    return any(_find_option_set(command) for command in commands)


def _lists_panes(command: Command) -> bool:
    return command[:2] == ("list-panes", "-a")


class _TranslatedList:
    """One command list as it is said to another's server: our options stand in it as the values they have, and those it
    sets are printed, marked by a word that no program can guess."""

    def __init__(self, kept: Mapping[str, str], fixed: Mapping[str, str], name: str, pane: str) -> None:
        self.kept, self.fixed, self.pane = kept, fixed, pane
        self.mark = os.urandom(8).hex()
        self.target = f"={name}:"
        self.shown = {f"{self.mark}=name": name}

    def translate_list(self, commands: Sequence[Command]) -> list[Command]:
        """The list for this pane."""
        return [self._translate(command) for command in commands if command[:2] not in LEFT_OUT]

    def _translate(self, command: Command) -> Command:
        if isinstance(command, Guard):
            return Guard(self.pane, self._substitute(command.condition), self._substitute(command.answer))
        if _lists_panes(command):
            return ("display-message", "-p", "-t", self.pane, self._substitute(command[-1]))
        if name := _find_option_set(command):
            value = "" if "-u" in command else self._substitute(command[-1])
            return ("display-message", "-p", "-t", self.pane, f"{self.mark} {name} {value}")
        return tuple(self.pane if word == self.target else self._substitute(word) for word in command)

    def _substitute(self, word: str) -> str:
        for placeholder, replacement in self.fixed.items():
            word = word.replace(placeholder, replacement.replace("@NAME@", f"{self.mark}=name"))
        return OPTION.sub(self._format_value, word)

    def _format_value(self, found: re.Match[str]) -> str:
        value = self.kept.get(found[2], "")
        if found[1]:
            size = int(found[1])
            value = value[:size] if size > 0 else value[size:]
        if SAFE.fullmatch(value):
            return value
        # tmux would interpret it: it is put in after tmux has printed the rest
        self.shown[f"{self.mark}={found[2]}"] = value
        return f"{self.mark}={found[2]}"

    def read_output(self, printed: bytes) -> tuple[bytes, dict[str, str]]:
        """What was printed, and the options that were set."""
        changed: dict[str, str] = {}
        rest = []
        for line in printed.split(b"\n"):
            if line.startswith(f"{self.mark} ".encode()):
                _, name, value = line.decode().split(" ", 2)
                changed[name] = value
            else:
                rest.append(line)
        output = b"\n".join(rest)
        for mark, value in self.shown.items():
            output = output.replace(mark.encode(), value.encode())
        return output, changed


class _ForeignWatch:
    """A wake-up by time, because nothing tells of output: the rarer, the longer nothing changes."""

    def __init__(self, watch: Watch, pane: ForeignTransport) -> None:
        self._watch, self._pane = watch, pane

    def wait(self, timeout: float) -> bool:
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
