"""`MemoryTransport`: everything a transport offers, with nothing behind it but dictionaries.

Its clock is the real one, which jumps ahead when all that a wait could see is a program asleep.
"""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import TypeVar

from memory import programs
from memory.formats import Unknown
from memory.tmux import FIRST_PID, Pane, Tmux
from tmuxctl.errors import NotFound
from tmuxctl.evidence import FULL, NONE, WCHAN, Kernel, Thread, Tty
from tmuxctl.evidence import Program as Running
from tmuxctl.transport import base, segments
from tmuxctl.transport.base import Command, File, Probe, Process, ProcessLoad, Resources, ThreadId, Watched

T = TypeVar("T")


class MemoryTransport:
    """A machine in memory. Several Controls may share one, as several processes share a tmux server."""

    machine: str | None = None
    pid: int | None = None
    socket = "memory"
    home = "/memory/tmuxctl"

    def __init__(self) -> None:
        self._lock = threading.Condition(threading.RLock())
        self._files: dict[str, bytearray] = {}
        self._times: dict[str, float] = {}
        self._folders: set[str] = {self.home}
        self._tmux: Tmux | None = None
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()
        self._ahead = 0.0
        self.changes = 0

    # what the machine's own parts use

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something when the machine's clock has gone on by so much."""
        heapq.heappush(self._due, (self.clock() + seconds, next(self._numbers), action))

    def changed(self) -> None:
        """Wake who watches."""
        self.changes += 1
        self._lock.notify_all()

    def carry_out(
        self, key: str, operation: Callable[[], T], patience: float | None = 0.0, *, changes: bool = True
    ) -> T:
        return operation()

    def without_answer(self) -> AbstractContextManager[None]:
        return nullcontext()

    def word(self) -> str:
        return os.urandom(8).hex()

    def append(self, path: str, data: bytes) -> int:
        self._files.setdefault(path, bytearray()).extend(data)
        self._times[path] = time.time() + self._ahead
        return len(self._files[path])

    def _settle(self) -> None:
        """Carry out what is due by now."""
        while self._due and self._due[0][0] <= self.clock():
            heapq.heappop(self._due)[2]()

    def sleep(self, seconds: float, seen: int) -> bool:
        """Let the machine go on until something changes, at most so long; True if something did since `seen`."""
        with self._lock:
            self._settle()
            if self.changes == seen and self._due and self._due[0][0] <= self.clock() + seconds:
                self._ahead += max(0.0, self._due[0][0] - self.clock())
                self._settle()
            if self.changes == seen:
                self._lock.wait(seconds)
            return self.changes != seen

    def kill_server(self) -> None:
        """The server dies, as by kill -9: its sessions are gone, their files are not."""
        with self._lock:
            self._tmux = None
            self.changed()

    # tmux

    def run(
        self, commands: Sequence[Command], *, buffer: tuple[str, bytes] | None = None, timeout: float = 10.0
    ) -> bytes:
        with self._lock:
            self._settle()
            if self._tmux is None:
                raise base.error_of_complaint("no server running on memory")
            if buffer:
                self._tmux.buffers[buffer[0]] = buffer[1]
            printed = self._tmux.run(commands)
            self._settle()
            return printed

    def run_at_end(
        self,
        journal: str,
        commands: Sequence[Command],
        *,
        buffer: tuple[str, bytes] | None = None,
        timeout: float = 8.0,
    ) -> tuple[int, bytes]:
        end = segments.find_end(self.files(journal))
        if end is None:
            raise NotFound(f"no journal in {journal}", reason="no_file")
        return end, self.run(segments.fill_in(commands, end), buffer=buffer, timeout=timeout)

    def create(self, commands: Sequence[Command], *, timeout: float = 20.0) -> bytes:
        with self._lock:
            self._tmux = self._tmux or Tmux(self)
        return self.run(commands)

    def shell(self, script: str, *arguments: str, stdin: bytes = b"", timeout: float = 10.0) -> tuple[int, bytes]:
        if "/proc/" in script:
            return 1, b""  # there is no /proc here
        raise Unknown(f"shell script {script!r}")

    # files

    def put(self, path: str, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
        with self._lock:
            if os.path.dirname(path) not in self._folders:
                raise NotFound(f"no folder for {path}", reason="no_file")
            self._files[path] = bytearray(data)
            self._times[path] = time.time() + self._ahead

    def make_folder(self, path: str) -> None:
        with self._lock:
            while len(path) > 1:
                self._folders.add(path)
                path = os.path.dirname(path)

    def remove(self, path: str) -> None:
        with self._lock:
            for one in [one for one in self._files if one == path or one.startswith(path + "/")]:
                del self._files[one]
            self._folders = {one for one in self._folders if one != path and not one.startswith(path + "/")}

    def rename(self, path: str, to: str) -> None:
        with self._lock:
            inside = len(path)
            moved = [one for one in (*self._files, *self._folders) if one == path or one.startswith(path + "/")]
            if not moved:
                raise FileNotFoundError(path)
            for one in moved:
                new = to + one[inside:]
                if one in self._folders:
                    self._folders = self._folders - {one} | {new}
                else:
                    self._files[new], self._times[new] = self._files.pop(one), self._times.pop(one)
            for pane in self._panes():
                if pane.journal.startswith(path + "/"):
                    pane.journal = to + pane.journal[inside:]

    def files(self, folder: str) -> dict[str, File]:
        with self._lock:
            self._settle()
            found = {
                os.path.basename(one): File(0, time.time()) for one in self._folders if os.path.dirname(one) == folder
            }
            for one, data in self._files.items():
                if os.path.dirname(one) == folder:
                    found[os.path.basename(one)] = File(len(data), self._times[one])
            return found

    def names(self, folder: str) -> Collection[str]:
        return self.files(folder).keys()

    def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        with self._lock:
            if path not in self._files:
                raise NotFound(f"no file {path}", reason="no_file")
            return bytes(self._files[path][offset : None if limit is None else offset + limit])

    read_grown = read

    def read_all(self, folders: Sequence[str], names: Sequence[str], limit: int) -> dict[str, dict[str, bytes]]:
        return base.read_each(self.read, folders, names, limit)

    # terminals and processes

    def _panes(self) -> list[Pane]:
        return list(self._tmux.panes.values()) if self._tmux else []

    def tty(self, path: str) -> Tty | None:
        with self._lock:
            for pane in self._panes():
                if pane.look("pane_tty") == path and pane.program and not pane.dead:
                    return Tty(pane.program.canonical, pane.program.echo, pane.program.unread)
            return None

    def stamp(self, watched: Watched) -> object | None:
        return None

    def probe(self, panes: Sequence[tuple[int, str]], *, level: str = FULL, beyond: bool = False) -> list[Probe]:
        with self._lock:
            self._settle()
            at, wall = self.clock(), time.time() + self._ahead
            return [Probe(at, wall, self._kernel(pid, path, level)) for pid, path in panes]

    def _kernel(self, pid: int, path: str, level: str) -> Kernel:
        tty = self.tty(path)
        pane = next((pane for pane in self._panes() if pane.pid == pid and pane.look("pane_tty") == path), None)
        if pane is None or pane.program is None or pane.dead:
            return Kernel(tty, 0, ())
        program = pane.program
        # the job may end while it is looked for
        row = self.processes([pid, pid + 1])[-1]
        if row.pid != pid:
            thread = Thread(row.pid, "S", "hrtimer_nanosleep", "clock_nanosleep", False, switches=1)
        elif program.canonical:
            thread = Thread(row.pid, "S", "wait_woken", "read", True, True, program.woken)
        else:
            thread = Thread(row.pid, "S", "poll_schedule_timeout", "poll", True, True, program.woken)
        if level != FULL:
            thread = thread._replace(wchan=thread.wchan if level == WCHAN else "", call=None, tty=None, alone=False)
        sockets, holds = (None, None) if level == NONE else (0, True)
        running = Running(
            row.pid, row.parent, row.name, row.state, True, 0, row.started, level, sockets, holds, (thread,)
        )
        return Kernel(tty, row.group, (running,))

    def processes(self, pids: Sequence[int] | None = None) -> list[Process]:
        with self._lock:
            self._settle()
            found = []
            for pane in self._panes():
                program = pane.program
                if program is None or pane.dead:
                    continue
                pid, first = pane.pid, pane.pid + bool(program.job)
                rows = [(pid, FIRST_PID, program.name), *([(pid + 1, pid, program.job)] if program.job else [])]
                for one, parent, name in rows:
                    found.append(Process(one, parent, one, pid, pane.number, first, "S", pane.number, name))
            return [row for row in found if pids is None or row.pid in pids]

    def record_server(self, pid: int) -> None:
        pass

    def starting_place(self) -> base.StartingPlace:
        return base.read_own_place()

    def room(self, folder: str, pid: int | None) -> Resources:
        return Resources()

    def load(self, pid: int) -> ProcessLoad:
        return ProcessLoad(1, 1 << 20, 0.5)

    def which(self, program: str, path: str, folder: str) -> bool:
        # the folders sessions start in are this machine's own
        if program.endswith("/."):
            return os.path.isdir(program)
        return programs.find([program]) is not None or os.path.basename(program).startswith("python")

    def marked(self, session_id: str) -> list[Process]:
        with self._lock:
            ours = [
                pane.pid for pane in self._panes() if pane.program and pane.program.env["TMUXCTL_SESSION"] == session_id
            ]
            return self.processes([pid + more for pid in ours for more in (0, 1)])

    def signal(self, processes: Sequence[Process], name: str) -> None:
        with self._lock:
            for row in processes:
                for pane in self._panes():
                    if pane.program and row.pid == pane.pid and name != "CONT":
                        pane.program.signal(name)

    def watch(self, folders: Sequence[str], pid: int | None = None, *, terminal: str = "") -> MemoryWatch:
        return MemoryWatch(self)

    def wall(self) -> float:
        return time.time()

    def clock(self) -> float:
        return time.monotonic() + self._ahead

    def close(self) -> None:
        pass


class MemoryWatch:
    """Wakes at every change of the machine."""

    tells_of_runs = False

    def __init__(self, machine: MemoryTransport) -> None:
        self._machine = machine
        self._seen = machine.changes

    def wait(
        self, timeout: float, *, output: bool = True, threads: Sequence[ThreadId] = (), timer_seconds: float = 0.0
    ) -> bool:
        changed = self._machine.sleep(timeout, self._seen)
        self._seen = self._machine.changes
        return changed

    def close(self) -> None:
        pass
