"""Reaches a machine through one POSIX sh at the other end of a pipe, with nothing of ours and no Python there.

Each call is a piece of script sent down the pipe; its answer is a line with an unguessable word and the exit status,
the sizes of what it wrote to standard output and error as `wc -c` tells them, then those bytes. Beyond POSIX the other
side uses `mktemp -d`, `head -c`, `readlink`, `stat -c` (GNU, BusyBox) or `stat -f` (BSD), and /proc where it is, with
`grep -s` over it and `dd` for the sets of descriptors that poll(2) and select(2) were given.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from tmuxctl.errors import Denied, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.evidence import FULL, NONE, PS, Kernel, Tty
from tmuxctl.operations import current
from tmuxctl.timing import TIMING
from tmuxctl.transport import base, segments
from tmuxctl.transport.ahead import AssumptionFailed, KnownSequences, RequestSequence, make_word
from tmuxctl.transport.base import (
    Command,
    File,
    Probe,
    Process,
    ProcessLoad,
    Quota,
    Resources,
    StartingPlace,
    Watched,
    shell_word,
)
from tmuxctl.transport.notify import PollingWatch
from tmuxctl.transport.proc import PS_COLUMNS, parse_ps, parse_table
from tmuxctl.transport.shell import (
    BAD_ANSWER,
    EXISTS,
    KIND,
    LATE,
    MISSING,
    MODE,
    OPEN,
    OTHER,
    OWNER,
    PRELUDE,
    STRANGE,
    UNMADE,
    Exchange,
    RemoteShell,
    format_call,
    format_data,
)
from tmuxctl.value import NamedTuple

if TYPE_CHECKING:
    from tmuxctl.transport.ps import ProcessList

PIECE = 4 * 1024 * 1024

GATHERED_MOST = 64
"""Of so many folders some files are read by one request."""

REST = "\0rest "
"""Begins the request for what a file has behind what is known of it."""

REST_BYTES = 256 * 1024
"""At most so much of it is asked for at once."""

REST_KEPT, GROWN_MOST = 512 * 1024, 64
"""About so many bytes of a file are kept, and of so many files."""

READ_MOST = 256 << 20
"""Bytes of one file that are read at once, though all of it was asked for."""

TICKS = 100
"""/proc/uptime tells hundredths of a second: proc_uptime(5)."""

TRIP = 0.1
"""Seconds there and back. What took longer waited for a connection, which says nothing of when the answer was given."""

COMPLAINT_MOST = 2000
"""Characters of a complaint that become a message."""

READING = frozenset(
    {"facts", "ready", "folder", "place", "piece", "gather", "settings", "probe", "room", "load", "marked", "peek"}
)
"""Functions over there that change nothing; and `ready` and `folder`, which make no folder twice."""

TMUX_READING = frozenset({"capture-pane", "display-message", "list-panes", "list-sessions", "show-options"})
"""Commands of tmux that change nothing and print what they tell: some of them only with `-p`."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

ENTRY = re.compile(rb"([0-9a-fA-F]{1,16}) (\d{1,20}) (-?\d{1,15}) ([^/]{0,64})/([^/]{0,1024})/\n")
"""A file as `look` prints it. Each part has a bound: without one a search through a million letters takes minutes."""


T = TypeVar("T")


OVER: Any = object()
"""Stands for the end of an iterator."""

LOST = frozenset(
    {"backend_timeout", "connection_lost", "no_answer", "no_machine", "no_route", "refused", "unknown_host"}
)
"""What is said of a machine that was reached before and may be again."""


class StartedScript(NamedTuple):
    """A script that was sent, and to which shell."""

    shell: RemoteShell
    exchange: Exchange


class PipeTransport:
    """A machine behind `argv`, a command that runs sh on its standard input: `("ssh", "HOST", "sh")`, or sh itself.

    The shell is started by the first call, and anew after one that timed out; a call that starts it takes at least
    `start_seconds` before it times out. `config` is the server's tmux.conf. `elsewhere`: programs start with the variables and
    in the folder of the shell, not of this process. `explain` makes of the end of the shell what it means.
    `known` is a file of ours in which is kept, for later processes, what operations ask of that machine.
    """

    def __init__(
        self,
        argv: Sequence[str] = ("sh",),
        *,
        machine: str | None = "pipe",
        socket: str = "tmuxctl",
        tmux: str = "tmux",
        config: bytes = b"",
        elsewhere: bool = False,
        start_seconds: float = 0.0,
        explain: Callable[[Unreachable], TmuxctlError] | None = None,
        known: str = "",
    ) -> None:
        self.machine = machine
        self.pid: int | None = None
        self.socket = socket
        self._argv = argv
        self._tmux = tmux
        self._config = config
        self._lock = threading.RLock()
        self._shell: RemoteShell | None = None
        self._serial = 0
        self._threads = threading.local()
        """`posts`: whether what changes something is not waited for in this thread, and `posted` the last that was not; `changed`:
        whether its operation has changed something, or only looks; `until`: how long it is patient; `sent`: when the last request
        that was answered was sent."""
        self._grown: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        """What is known of files that only grow: from which offset on, and their bytes."""
        self._posted: OrderedDict[str, StartedScript] = OrderedDict()
        """What was last written at the end of each file without waiting for it."""
        self._changes = 0
        """How many requests were sent that may have changed something."""
        self._sequences: KnownSequences[StartedScript] = KnownSequences(self._begin_ahead, lambda: self._changes, known)
        self._state_home = ""
        self._architecture = ""
        self._clock_bounds: tuple[float, float] | None = None
        self._listed: ProcessList | None = None
        """How far that machine's clock is ahead of ours, in seconds: at least and at most. None if it has no /proc."""
        self._home = ""
        self._elsewhere, self._start_seconds, self._explain = elsewhere, start_seconds, explain
        self._place: StartingPlace | None = None
        self._started = self._wall_offset = 0.0
        """When its clock began, by its time of day; and how far that is ahead of ours, as long as nothing tells the former."""

    def reach(self) -> None:
        """Start the shell there unless it runs; Unreachable where it does not answer within `start_seconds`. Nothing is changed."""
        if self._shell is None or self._shell.ended:
            self._try_script(":", None, False, self._start_seconds, True, None)

    @property
    def home(self) -> str:
        if not self._home:
            self._has_proc()
            self._call_function("ready", self.socket)
            self._home = f"{self._state_home}/tmuxctl/{self.socket}"
        return self._home

    def starting_place(self) -> StartingPlace:
        if not self._elsewhere:
            return base.read_own_place()
        if self._place is None:
            folder, descriptors, variables = self._call_function("place").split(b"\n", 2)
            self._place = StartingPlace(
                _parse_variables(variables), os.fsdecode(folder), int(descriptors) if descriptors.isdigit() else None
            )
        return self._place

    def word(self) -> str:
        sequence = self._sequences.current
        return sequence.make_word() if sequence else make_word()

    def carry_out(
        self, key: str, operation: Callable[[], T], patience: float | None = 0.0, *, changes: bool = True
    ) -> T:
        """Carry out an operation in this thread, of which `key` says what it is and of which session: what it asked last time is
        asked ahead."""
        self._threads.changed = not changes
        with self._be_patient(patience):
            result = self._sequences.carry_out(key, operation)
        # mypy knows no type that says: an iterator, if it is one
        return self._give_patiently(result) if isinstance(result, Iterator) else result  # type: ignore[return-value]

    @contextmanager
    def _be_patient(self, seconds: float | None) -> Iterator[None]:
        """Ask again, in this thread, what only looks and was not answered as the connection was lost: for so many seconds from now
        on, or if that is None for as long as it may take to come back."""
        before = getattr(self._threads, "until", 0.0)
        self._threads.until = None if seconds is None else time.monotonic() + seconds
        try:
            yield
        finally:
            self._threads.until = before

    def _give_patiently(self, results: Iterator[T]) -> Iterator[T]:
        try:
            while True:
                with self._be_patient(None):
                    one = next(results, OVER)
                if one is OVER:
                    return
                yield one
        finally:
            if isinstance(results, Generator):
                results.close()

    @contextmanager
    def without_answer(self) -> Iterator[None]:
        self._threads.posts = True
        try:
            yield
        finally:
            self._threads.posts = False

    def pause(self, seconds: float) -> bool:
        """An operation of this thread sleeps now: what was asked before tells nothing of what comes after. True if that was
        waited for already, as the shell there slept for it."""
        sequence = self._sequences.current
        behind = sequence.pause(seconds) if sequence else None
        if behind is None:
            return False
        with suppress(TmuxctlError):
            self._finish(behind, behind.exchange.seconds)
        return True

    # tmux

    def run(
        self, commands: Sequence[Command], *, buffer: tuple[str, bytes] | None = None, timeout: float = 8.0
    ) -> bytes:
        return self._run_or_revive(commands, buffer, timeout)

    def run_at_end(
        self,
        journal: str,
        commands: Sequence[Command],
        *,
        buffer: tuple[str, bytes] | None = None,
        timeout: float = 8.0,
    ) -> tuple[int, bytes]:
        end, _, printed = self._run_or_revive(commands, buffer, timeout, journal).partition(b"\n")
        return int(end), printed

    def _run_or_revive(
        self, commands: Sequence[Command], buffer: tuple[str, bytes] | None, timeout: float, journal: str | None = None
    ) -> bytes:
        deadline = time.monotonic() + timeout
        try:
            return self._run_list(commands, buffer, timeout, journal)
        except Unreachable as error:
            if error.reason != "no_server" or not self._revive_server(deadline):
                raise
        return self._run_list(commands, buffer, max(0.1, deadline - time.monotonic()), journal)

    def create(self, commands: Sequence[Command], *, timeout: float = 20.0) -> bytes:
        deadline = time.monotonic() + timeout
        try:
            return self.run(commands, timeout=timeout)
        except Unreachable as error:
            if error.reason != "no_server":
                raise
        with self._hold_start_lock(deadline):
            try:
                return self.run(commands, timeout=max(0.1, deadline - time.monotonic()))
            except Unreachable as error:
                if error.reason != "no_server":
                    raise
            return self._start_server(commands, max(0.1, deadline - time.monotonic()))

    def _run_list(
        self, commands: Sequence[Command], buffer: tuple[str, bytes] | None, timeout: float, journal: str | None = None
    ) -> bytes:
        if buffer:
            commands = [("load-buffer", "-b", buffer[0], "-"), *commands]
        body = format_call(
            "LC_ALL=C.UTF-8 " + shell_word(self._tmux), "-u", "-N", "-L", self.socket, *base.format_arguments(commands)
        )
        if journal is not None:
            body = format_call("end_of", journal) + " || exit\n" + body.replace(segments.END, "'\"$end\"'")
        reads = buffer is None and all(map(_only_reads, commands))
        data = buffer[1] if buffer else None
        return _check_status(*self._run_script(body, data=data, timeout=timeout, reads=reads))

    def _start_server(self, commands: Sequence[Command], timeout: float) -> bytes:
        """Start the server, write down which process it is, and run the list: its words would stay in ps for ever."""
        configuration = f"{self.home}/{base.TMUX_CONF}"
        self.put(configuration, self._config)
        stay = ("set-option", "-s", "exit-empty", "off")
        command = base.format_arguments([("start-server",), stay])
        body = format_call("start", self._tmux, "-u", "-f", configuration, "-L", self.socket, *command)
        _check_status(*self._run_script(body, private=True, timeout=timeout))
        with suppress(TmuxctlError):
            pid = self._run_list([("display-message", "-p", "#{pid}")], None, timeout).decode().strip()
            self.record_server(int(pid))
        return self._run_list(commands, None, timeout)

    def record_server(self, pid: int) -> None:
        self._run_script(format_call("record", self.home, str(pid)))

    def _revive_server(self, deadline: float) -> bool:
        """A server whose socket file was deleted makes it anew on SIGUSR1 (tmux(1)); True once it answers again."""
        self._has_proc()
        status, pid, _ = self._run_script(format_call("revive", f"{self._state_home}/tmuxctl/{self.socket}"))
        complaint = ""
        while status == 0:
            try:
                self._run_list([("display-message", "-p", "")], None, max(0.1, deadline - time.monotonic()))
                return True
            except Unreachable as error:
                # the last one has little time: that it ran out tells less than what tmux said before
                complaint = complaint if complaint and error.reason == "backend_timeout" else error.message
            if not any(row.lives for row in self.processes([int(pid)])):
                return False
            if time.monotonic() > deadline:
                raise base.unreachable_server_error(int(pid), complaint)
            time.sleep(0.02)
        return False

    @contextmanager
    def _hold_start_lock(self, deadline: float) -> Iterator[None]:
        path = f"{self.home}/create.lock"
        while (answer := self._run_script(format_call("lock", path)))[0]:
            if time.monotonic() > deadline:
                raise Unreachable("another process is starting the tmux server", reason="backend_timeout", hint="again")
            time.sleep(0.02)
        try:
            yield
        finally:
            with suppress(Unreachable):
                self._run_script(format_call("unlock", path, answer[1].decode()))

    # files

    def shell(self, script: str, *arguments: str, stdin: bytes = b"", timeout: float = 8.0) -> tuple[int, bytes]:
        body = 'umask "$before"; exec ' + format_call("sh", "-c", script, "sh", *arguments)
        return self._run_script(body, data=stdin or None, private=True, timeout=timeout)[:2]

    def put(self, path: str, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
        self._call_function("put", path, f"{mode:o}", os.urandom(6).hex(), "durable" if durable else "", data=data)

    def append(self, path: str, data: bytes) -> int:
        if size := self._call_function("append", path, data=data):
            return int(size)
        # it was not waited for; one before it may be answered by now
        before = self._posted.get(path)
        if before and not before.exchange.answer and not before.shell.ended:
            return 0
        self._posted[path] = self._threads.posted
        self._posted.move_to_end(path)
        while len(self._posted) > GROWN_MOST:
            self._posted.popitem(last=False)
        status, told, _ = (before and before.exchange.answer) or (1, b"", b"")
        return 0 if status else int(told)

    def make_folder(self, path: str) -> None:
        self._call_function("folder", path.rstrip("/"))

    def remove(self, path: str) -> None:
        if not path.rstrip("/"):
            raise Usage("refusing to remove everything", reason="bad_path")
        self._call_function("rm -rf --", path.rstrip("/"))

    def rename(self, path: str, to: str) -> None:
        self._call_function("move", path.rstrip("/"), to.rstrip("/"))

    def files(self, folder: str) -> dict[str, File]:
        listing = self._call_function(f"cd -- {shell_word(folder)} 2>/dev/null || exit 0; look * .* || :")
        entries = {}
        for kind, size, seconds, precise, name in ENTRY.findall(listing):
            if name not in (b".", b".."):
                # st_mode's file type, S_IFDIR: a folder
                entries[os.fsdecode(name)] = File(
                    0 if int(kind, 16) & 0o170000 == 0o040000 else int(size), _parse_time(seconds, precise)
                )
        return entries

    def names(self, folder: str) -> Collection[str]:
        return self.files(folder).keys()

    def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        pieces: list[bytes] = []
        received = 0
        while limit is None or received < limit:
            size = PIECE if limit is None else min(PIECE, limit - received)
            pieces.append(self._call_function("piece", path, str(offset + received + 1), str(size)))
            received += len(pieces[-1])
            if len(pieces[-1]) > size or received > READ_MOST:
                raise Unreachable("it tells more of a file than was asked for, or does not end", reason=BAD_ANSWER)
            if len(pieces[-1]) < size:
                break
        return b"".join(pieces)

    def read_all(self, folders: Sequence[str], names: Sequence[str], limit: int) -> dict[str, dict[str, bytes]]:
        found: dict[str, dict[str, bytes]] = {folder: {} for folder in folders}
        for at in range(0, len(folders), GATHERED_MOST):
            some, word = folders[at : at + GATHERED_MOST], self.word()
            told = self._call_function("gather", word, str(limit), " ".join(names), *some)
            # no file holds the word
            for part in told.split(b"\n%b " % word.encode())[1:]:
                about, _, data = part.partition(b"\n")
                number, _, name = about.decode().partition(" ")
                found[some[int(number)]][name] = data
        return found

    def read_grown(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        with self._lock:
            begin, known = self._grown.get(path, (offset, b""))
            if not begin <= offset <= begin + len(known):
                begin, known = offset, b""
            self._grown[path] = begin, known
        whole = False
        if limit is None or offset + limit > begin + len(known):
            begin, known, whole = self._read_rest(path, offset)
        found = known[offset - begin :][:limit] if begin <= offset else b""
        if limit is None and whole:
            return found
        if limit is None or (len(found) < limit and not whole):
            # there may be more than was asked for at once, or it was asked for from another place on
            found += self.read(path, offset + len(found), None if limit is None else limit - len(found))
        return found

    def _read_rest(self, path: str, offset: int) -> tuple[int, bytes, bool]:
        """Ask for what a file has behind what is known of it; from where on it is known then, the bytes, and whether those from
        `offset` on are all that there are."""
        status, told, complaint = self._run_script(REST + path, reads=True)
        if status:
            raise _script_error(status, _decode_complaint(complaint))
        first, _, more = told.partition(b"\n")
        start = int(first)
        with self._lock:
            begin, known = self._grown.get(path, (offset, b""))
            if begin <= start <= begin + len(known):
                known = max(known, known[: start - begin] + more, key=len)
            elif start <= offset:
                begin, known = start, more
            whole = begin <= offset and start <= begin + len(known) and len(more) < REST_BYTES
            if len(known) > REST_KEPT:
                dropped = max(0, min(len(known) - REST_KEPT, offset - begin))
                begin, known = begin + dropped, known[dropped:]
            self._grown[path] = begin, known
            self._grown.move_to_end(path)
            while len(self._grown) > GROWN_MOST:
                self._grown.popitem(last=False)
        return begin, known, whole

    def _ask_for_rest(self, path: str) -> str:
        """The script that prints what is not known yet of a file that grows."""
        begin, known = self._grown.get(path, (0, b""))
        return format_call("rest", path, str(begin + len(known)), str(REST_BYTES))

    # terminals and processes

    def tty(self, path: str) -> Tty | None:
        from tmuxctl.transport.snapshot import parse_stty

        body = format_call("settings", path)
        status, printed, _ = self._run_script(
            body, reads=True, holds=lambda shown: f'[ "$({body})" = {_quote(shown)} ]'
        )
        return None if status else parse_stty(printed)

    def probe(self, panes: Sequence[tuple[int, str]], *, level: str = FULL, beyond: bool = False) -> list[Probe]:
        from tmuxctl.transport import calls, probe, ps, snapshot

        # `beyond`: the shell there prints the processes of the terminals alone
        proc = self._has_proc() and level != PS
        asked = [word for pid, path in dict.fromkeys(panes) for word in (str(pid), path)]
        numbers = {name: str(number) for number, name in calls.load_call_names(self._architecture).items()}
        sets = [" ".join(numbers.get(name, "") for name in names) for names in (calls.POLLS, calls.SELECTS)]
        if self._listed is None:
            self._listed = ps.ProcessList()
        listed = level == NONE or self._listed.covers(pid for pid, _ in panes)
        how = level if proc else "tty" if listed else "ps"
        printed = self._call_function("probe", how, *sets, ps.COLUMNS, *asked)
        answered = time.monotonic()
        if how == "ps":
            self._listed.take(printed.rpartition(b"\nps\n")[2].decode(errors="replace"))
        files = snapshot.Snapshot(self._architecture, printed)
        now = ENTRY.match(printed)
        wall = _parse_time(now[3], now[4]) if now else time.time()
        ticks = files.clock()
        if ticks is not None:
            self._note_clock(ticks / TICKS, wall, answered)
        at = (self._threads.sent + answered) / 2 + self._clock_offset
        if ticks is not None:
            # what was sent ahead is older than it seems
            at = min(max(at, ticks / TICKS), (ticks + 1) / TICKS)
        probes = []
        for pid, path in panes:
            kernel: Kernel | None
            if proc:
                kernel = probe.read_kernel(files, pid, path, level)
            else:
                table = {} if level == NONE else self._listed.table
                kernel = ps.read_kernel(table, pid, path, files.tty)
                kernel = kernel if kernel.tty or kernel.programs else None
            probes.append(Probe(at, wall, kernel))
        return probes

    def stamp(self, watched: Watched) -> object | None:
        # asking would take as long as looking
        return None

    def processes(self, pids: Sequence[int] | None = None) -> list[Process]:
        if self._has_proc():
            if pids is None:
                return parse_table(self._call_function("cat /proc/[0-9]*/stat 2>/dev/null || :"))
            return parse_table(self._read_rows(pids)) if pids else []
        table = parse_ps(self._call_function("LC_ALL=C ps -A -o", PS_COLUMNS).decode(errors="replace"))
        return table if pids is None else [row for row in table if row.pid in pids]

    def _read_rows(self, pids: Sequence[int]) -> bytes:
        body = "cat " + " ".join(f"/proc/{int(pid)}/stat" for pid in pids) + " 2>/dev/null || :"

        def holds(shown: bytes) -> str:
            return f'[ "$({"; ".join(f"row {int(pid)}" for pid in pids)})" = {_quote(_name_rows(shown))} ]'

        return self._run_script(body, reads=True, holds=holds)[1]

    def room(self, folder: str, pid: int | None) -> Resources:
        free, nr, most, used, soft = self._call_function("room", folder, str(pid or "-")).decode().splitlines()
        return Resources(int(free) << 10 if free.isdigit() else None, _parse_quota(nr, most), _parse_quota(used, soft))

    def load(self, pid: int) -> ProcessLoad:
        words = self._call_function("load", str(pid)).split()
        page, ticks, processes, cpu, memory = (int(word) for word in words)
        return ProcessLoad(processes, memory * page, round(cpu / ticks, 2))

    def which(self, program: str, path: str, folder: str) -> bool:
        if "/" in program:
            script = f"cd {shell_word(folder)} && [ -x {shell_word(program)} ]"
        else:
            script = f"PATH={shell_word(path)}; command -v {shell_word(program)} >/dev/null"
        return self._run_script(f"( {script} )", reads=True)[0] == 0

    def marked(self, session_id: str) -> list[Process]:
        return parse_table(self._call_function("marked", session_id))

    def signal(self, processes: Sequence[Process], name: str) -> None:
        if not re.fullmatch(r"[A-Z][A-Z0-9]*", name):
            raise Usage(f"{name!r} is not a signal", reason="bad_signal", hint="TERM, KILL, INT, HUP, ...")
        rows = [row for row in processes if row.pid > 1]
        if self._has_proc():
            self._call_function("send", name, *(f"{row.pid}:{row.started}" for row in rows))
        else:
            living = {(row.pid, row.started) for row in self.processes()}
            self._call_function("send", name, *(f"{row.pid}:" for row in rows if (row.pid, row.started) in living))

    def watch(self, folders: Sequence[str], pid: int | None = None, *, terminal: str = "") -> PollingWatch:
        body = format_call("peek", str(pid or 0), *(folder.rstrip("/") for folder in folders))

        def look() -> tuple[bool, object]:
            _, shown, complaint = self._run_script(body, reads=True)
            ended = complaint.strip() == b"dead"
            return ended, b"" if ended else shown

        return PollingWatch(look, self.pause)

    def clock(self) -> float:
        self._has_proc()
        return time.monotonic() + self._clock_offset

    def wall(self) -> float:
        self._has_proc()
        if not self._elsewhere:
            return time.time()
        return self.clock() + self._started if self._clock_bounds else time.time() + self._wall_offset

    def close(self) -> None:
        self._sequences.save()
        with self._lock:
            if self._shell:
                # over a network its end takes a round trip, which nobody needs to wait for
                self._shell.close(0.0 if self._elsewhere else 2.0)
                self._shell = None

    # the pipe

    def _has_proc(self) -> bool:
        """Whether there is a /proc, after asking once for what stays the same over there."""
        if not self._state_home:
            sent = time.monotonic()
            uptime, self._architecture, now, state = (
                self._call_function("facts").decode(errors="surrogateescape").split("\n", 3)
            )
            answered = time.monotonic()
            told = ENTRY.match(f"{now}\n".encode(errors="surrogateescape"))
            wall = _parse_time(told[3], told[4]) if told else time.time()
            self._wall_offset = wall - (time.time() - (answered - sent) / 2)
            if uptime != "-":
                self._note_clock(float(uptime), wall, answered)
            self._state_home = state
        return self._clock_bounds is not None

    def _note_clock(self, uptime: float, wall: float, answered: float) -> None:
        """Take in what that machine's clock showed between the sending of the last request and its answer."""
        least, most = uptime - answered, uptime + 1 / TICKS - self._threads.sent
        if self._clock_bounds:
            known = max(least, self._clock_bounds[0]), min(most, self._clock_bounds[1])
            # where they exclude each other one of the clocks goes faster
            least, most = known if known[0] <= known[1] else (least, most)
        self._clock_bounds, self._started = (least, most), wall - uptime

    @property
    def _clock_offset(self) -> float:
        if self._clock_bounds is None:
            return 0.0
        least, most = self._clock_bounds
        return least + min(most - least, TRIP) / 2

    def _call_function(self, function: str, *arguments: str, data: bytes | None = None) -> bytes:
        """What one of the functions over there printed, or its failure as an error."""
        reads = function in READING or function.startswith(("cat ", "cd "))
        status, output, complaint = self._run_script(format_call(function, *arguments), data=data, reads=reads)
        if status == 0:
            return output
        raise _script_error(status, _decode_complaint(complaint))

    def _run_script(
        self,
        body: str,
        *,
        data: bytes | None = None,
        private: bool = False,
        timeout: float = 8.0,
        reads: bool = False,
        holds: Callable[[bytes], str] | None = None,
    ) -> tuple[int, bytes, bytes]:
        """Run `body` in a subshell there: exit status, output, complaint. `data` is its standard input and in `$T/d`.

        `private` gives it output files of its own: what it leaves running may go on writing to them. `reads`: it changes
        nothing, and may be sent before it is asked for. `holds` makes of an answer the condition that it would be given again:
        until something is changed, the answer of last time may then be assumed. What changes something is carried out within
        `timeout`, or not at all.
        """
        lost: float | None = None
        while True:
            try:
                return self._try_script(body, data, private, timeout, reads, holds)
            except Unreachable as error:
                if not (reads and getattr(self._threads, "changed", True)) or error.reason not in LOST:
                    raise
                if not self._state_home:
                    raise
                lost = lost or time.monotonic()
                until = getattr(self._threads, "until", 0.0)
                if time.monotonic() >= (lost + TIMING.machine.heal_seconds if until is None else until):
                    raise
                current().check()
                time.sleep(TIMING.machine.retry_seconds)

    def _try_script(
        self,
        body: str,
        data: bytes | None,
        private: bool,
        timeout: float,
        reads: bool,
        holds: Callable[[bytes], str] | None,
    ) -> tuple[int, bytes, bytes]:
        sequence = self._sequences.current
        if holds is not None and (known := self._sequences.assume(body)) is not None:
            assert sequence
            sequence.note(body, reads, assumable=True)
            sequence.assumed.append(holds(known))
            return 0, known, b""
        asked = body if reads else self._limit(body, sequence, timeout)
        began: StartedScript | None = None
        try:
            if sequence is None or (self._posts and not reads):
                # what nothing depends on makes no answer untrue that was asked for before
                began = self._begin(asked, data, private, reads, timeout)
                return self._answer(began, timeout, reads)
            began = sequence.take(body, reads, holds is not None)
            if began is not None and self._is_current(began):
                answer = self._finish(began, timeout)
            else:
                sent, renewed = sequence.renew_words(asked)
                began = self._begin(sent, data, private, reads, timeout)
                sequence.follow(body, reads, holds is not None)
                status, output, complaint = self._answer(began, timeout, reads)
                for word, new in renewed.items():
                    # where a program shows the word that it saw, it is none any more
                    output = output.replace(word.encode(), make_word().encode()).replace(new.encode(), word.encode())
                answer = status, output, complaint
        except Unreachable as error:
            if error.reason not in ("no_machine", BAD_ANSWER):
                raise
            if error.reason != BAD_ANSWER and began is not None and began.shell.has_answered:
                said = (error.message.strip().splitlines() or [""])[-1]
                hint = "try again; sessions there go on"
                raise Unreachable(f"the connection was lost: {said}", reason="connection_lost", hint=hint) from None
            raise self._explain(error) if self._explain else error from None
        if holds is not None and answer[0] == 0:
            self._sequences.keep_answer(body, answer[1])
        return answer

    def _limit(self, body: str, sequence: RequestSequence[StartedScript] | None, timeout: float) -> str:
        """A script that changes something, as it is carried out: in time, and where what was assumed holds."""
        self._has_proc()
        self._threads.changed = True
        now = self.clock() if self._clock_bounds else self.wall()
        conditions = [format_call("before", str(math.ceil(now + timeout) + 1))]
        if sequence and not self._posts:
            conditions += [f"{{ {condition} || exit {OTHER}; }}" for condition in sequence.assumed]
            sequence.assumes, sequence.assumed = False, []
        return "\n".join([*conditions, body])

    @property
    def _posts(self) -> bool:
        """Whether what changes something is not waited for in this thread."""
        return bool(getattr(self._threads, "posts", False))

    def _answer(self, began: StartedScript, timeout: float, reads: bool) -> tuple[int, bytes, bytes]:
        """The answer to a script that was sent just now; none of one that is not waited for."""
        if not reads and self._posts:
            self._threads.posted = began
            return 0, b"", b""
        answer = self._finish(began, timeout)
        if not reads and answer[0] == OTHER:
            raise AssumptionFailed
        if not reads and answer[0] == LATE:
            raise _timeout_error(self.machine, timeout)
        return answer

    def _begin(
        self, body: str, data: bytes | None = None, private: bool = False, reads: bool = True, timeout: float = 8.0
    ) -> StartedScript:
        """Send a script, and start the shell that it is for if there is none."""
        with self._lock:
            self._changes += not (reads or self._posts)
            self._serial += private
            nonce, serial = os.urandom(12).hex(), self._serial if private else 0
            starts = self._shell is None or self._shell.ended
            if self._shell is None or starts:
                self._end_shell()
                self._shell = RemoteShell(self._argv, PRELUDE.encode())
            if body.startswith(REST):
                body = self._ask_for_rest(body[len(REST) :])
            request = b"" if data is None else format_data(data)
            source = '"$T/d"' if data is not None else "/dev/null"
            # nothing that was typed stays on that machine's disk: it may have been a secret
            drop = 'rm -f "$T/d"; ' if data is not None else ""
            begin, target, reply = f"printf '\\n{nonce}<\\n'; ", "", "reply"
            if private:
                begin, target, reply = "", f'>"$T/o{serial}" ', "reply_from_files"
            call = f'{begin}( trap - PIPE; {body}\n) <{source} {target}2>"$T/e{serial}"; status=$?; {drop}'
            call += f"{reply} {nonce} $status {serial} </dev/null\n"
            request += call.encode(errors="surrogateescape")
            seconds = max(timeout, self._start_seconds) if starts else timeout
            return StartedScript(self._shell, self._shell.begin(request, nonce.encode(), seconds))

    def _begin_ahead(self, body: str, pause: float) -> StartedScript:
        """Send a script that was not asked for yet; the shell there sleeps before it."""
        if body.startswith(REST):
            body = self._ask_for_rest(body[len(REST) :])
        return self._begin(f"sleep {pause:.3f}\n{body}" if pause else body)

    def _is_current(self, began: StartedScript) -> bool:
        return began.shell is self._shell and not began.shell.ended

    def _finish(self, began: StartedScript, timeout: float) -> tuple[int, bytes, bytes]:
        """Wait for a script's answer. The shell is ended where that does not come in time; not for one that is behind others."""
        shell, exchange = began
        try:
            self._threads.sent = exchange.sent
            return shell.finish(exchange, max(timeout, exchange.seconds))
        except BaseException as error:
            if shell.is_stuck(exchange) or not isinstance(error, TimeoutError):
                self._drop(shell)
            if isinstance(error, TimeoutError):
                raise _timeout_error(self.machine, timeout) from None
            raise

    def _drop(self, shell: RemoteShell) -> None:
        """End a shell, which others may have replaced already."""
        with self._lock:
            if self._shell is shell:
                self._shell = None
        shell.end()

    def _end_shell(self) -> None:
        if self._shell:
            self._shell.end()
            self._shell = None


LOCALES = ("LC_CTYPE", "LANG")

CONNECTION = frozenset(
    {"SSH_CLIENT", "SSH_CONNECTION", "SSH_ORIGINAL_COMMAND", "SSH_TTY", "SHLVL", "PWD", "OLDPWD", "_"}
)
"""Variables that are true of the shell at the end of the pipe alone."""


def _parse_variables(printed: bytes) -> dict[str, str]:
    """The variables that programs start with, from what env(1) prints."""
    pairs = (os.fsdecode(one).partition("=") for one in printed.split(b"\0"))
    found = {name: value for name, equals, value in pairs if equals and name not in CONNECTION and NAME.fullmatch(name)}
    locale = next((found[name] for name in LOCALES if found.get(name)), "")
    if found.get("LC_ALL") == "C.UTF-8" and re.search(r"utf-?8$", locale, re.IGNORECASE):
        # the way there sets it, for a machine that names no locale of UTF-8
        del found["LC_ALL"]
    return found


def _parse_time(seconds: bytes, precise: bytes) -> float:
    """Seconds of the wall clock, with the fraction where stat(1) prints one."""
    fraction = re.search(rb"\.\d+", precise)
    return float(seconds + (fraction[0] if fraction else b""))


def _name_rows(table: bytes) -> bytes:
    """What of /proc/PID/stat says which process it is and who has its terminal, as `row` prints it there."""
    rows = []
    for line in table.splitlines():
        name, _, rest = line.rpartition(b")")
        fields = rest.split()
        if len(fields) > 19:
            rows.append(b" %b) %b %b" % (name, b" ".join(fields[2:6]), fields[19]))
    return b"\n".join(rows)


def _quote(printed: bytes) -> str:
    """What a command printed, as a word of the shell there, as `$(command)` gives it."""
    return shell_word(printed.decode(errors="surrogateescape").rstrip("\n"))


def _check_status(status: int, output: bytes, complaint: bytes) -> bytes:
    """What tmux printed, or its complaint as an error."""
    if status == 0:
        return output
    message = _decode_complaint(complaint)
    if status == 127:
        raise Unreachable("tmux is not installed there", reason="no_tmux", hint="apt install tmux; 3.2 or later")
    raise base.error_of_complaint(message)


def _decode_complaint(complaint: bytes) -> str:
    return complaint[:COMPLAINT_MOST].decode(errors="replace").strip()


def _only_reads(command: Command) -> bool:
    """Whether a command of tmux changes nothing."""
    if isinstance(command, base.Guard):
        return True
    verb = command[0]
    return verb in TMUX_READING and ("-p" in command or verb not in ("capture-pane", "display-message"))


def _script_error(status: int, complaint: str) -> TmuxctlError:
    if status == MISSING:
        return NotFound(f"no file {complaint}", reason="no_file")
    if status == OWNER:
        return Denied(
            f"{complaint} is not a folder that belongs to you",
            reason="bad_owner",
            hint=f"ls -ld {shell_word(complaint)}",
        )
    if status == UNMADE:
        hint = "use another folder for what is kept of sessions there: XDG_STATE_HOME=DIR"
        return Denied(complaint, reason="bad_folder", hint=hint)
    if status == MODE:
        return Denied(f"{complaint} is open to others", reason="bad_mode", hint=f"chmod 700 {shell_word(complaint)}")
    if status in (STRANGE, OPEN):
        owner, mode, path = (*complaint.split(" ", 2), "", "")[:3]
        word = shell_word(path)
        problem, hint = (
            f"belongs to user {owner}",
            f"use one of your own; or if you trust what is in it: chown -h $USER {word}",
        )
        if status == OPEN:
            problem, hint = "may be written by others", f"chmod go-w {word}"
        return Denied(f"{ascii(path)} {problem} (mode {mode})", reason="unsafe_file", hint=hint)
    if status == KIND:
        return Denied(complaint, reason="bad_file")
    if "No space left on device" in complaint or "Disk quota exceeded" in complaint:
        return Failed(f"no room to write there: {complaint}", reason="disk_full", hint="df -h ~")
    return Failed(complaint or f"the shell there failed ({status})", reason="exists" if status == EXISTS else "io")


def _timeout_error(machine: str | None, timeout: float) -> Unreachable:
    return Unreachable(
        f"no answer from {machine} within {timeout:g} s",
        reason="backend_timeout",
        hint="is its tmux server stopped, or the machine overloaded? tmuxctl doctor",
    )


def _parse_quota(used: str, most: str) -> Quota | None:
    return Quota(int(used), int(most)) if used.isdigit() and most.isdigit() else None
