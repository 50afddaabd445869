"""What `ps` tells of terminals on machines without /proc (macOS, BSD), in the words of `probe`.

It tells who is in the foreground, who began whom, and how much processor time each used: neither threads nor what a process
waits for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tmuxctl.evidence import PS, Kernel, Program, Tty
from tmuxctl.transport import spawn
from tmuxctl.transport.probe import DEPTH, PROCESSES

COLUMNS = "pid=,ppid=,pgid=,tpgid=,state=,time=,tty=,ucomm="
"""ucomm is the name without its path. BusyBox' ps has no tpgid and prints nothing."""

ARGV = ("env", "LC_ALL=C", "COLUMNS=200", "ps", "-A", "-o", COLUMNS)

TIMEOUT = 2.0
"""Seconds that ps may take."""

FRESH = 0.25
"""Seconds for which a list of processes stands: ps takes 5 to 10 ms, which all sessions of a process share."""

NO_TERMINAL = ("?", "??", "-")


class ListedProcess(NamedTuple):
    """One line of ps: `cpu` is in hundredths of a second, `tty` the terminal's path, empty without one, and `foreground` the
    process group to which that terminal listens."""

    pid: int
    parent: int
    group: int
    foreground: int
    state: str
    cpu: int
    tty: str
    name: str


Table = dict[int, ListedProcess]


def parse(printed: str) -> Table:
    """The living processes that `ps -A -o COLUMNS` printed, by their ids."""
    table = {}
    for line in printed.splitlines():
        words = line.split(None, 7)
        try:
            pid, parent, group, foreground = map(int, words[:4])
            state, cpu, tty, name = words[4][0], parse_time(words[5]), words[6], words[7].strip()
        except (ValueError, IndexError):
            continue
        if state not in "ZX":
            path = "" if tty in NO_TERMINAL else f"/dev/{tty.removeprefix('/dev/')}"
            table[pid] = ListedProcess(pid, parent, group, foreground, state, cpu, path, name)
    return table


def parse_time(shown: str) -> int:
    """Processor time in hundredths of a second: `0:01.25`, `12:00:01`, `2-03:00:00`."""
    days, _, clock = shown.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + float(part)
    return round((int(days or 0) * 86400 + seconds) * 100)


class ProcessList:
    """The processes of a machine as ps printed them last, which all that look at it share for some seconds."""

    def __init__(self, seconds: float = FRESH) -> None:
        self.table: Table = {}
        self._seconds, self._until = seconds, 0.0
        self._lock = threading.Lock()

    def covers(self, pids: Iterable[int]) -> bool:
        """It may be used again for these processes: one that it lacks may have begun since."""
        return time.monotonic() < self._until and all(pid in self.table for pid in pids)

    def take(self, printed: str) -> Table:
        """What ps has just printed."""
        self.table, self._until = parse(printed), time.monotonic() + self._seconds
        return self.table

    def read(self, pids: Iterable[int], call: Callable[[], str]) -> Table:
        """The processes, these among them if they live, by a call of ps if need be."""
        with self._lock:
            return self.table if self.covers(pids) else self.take(call())


HERE = ProcessList()
"""Of this machine."""


def call_ps() -> str:
    """What ps prints on this machine; nothing if it cannot."""
    with suppress(spawn.SpawnTimeout, OSError):
        return spawn.run(ARGV, timeout=TIMEOUT).output.decode(errors="replace")
    return ""


def read_kernel(table: Table, pid: int, path: str, read_tty: Callable[[str], Tty | None], depth: int = DEPTH) -> Kernel:
    """What is told of the terminal at `path`, whose first process is `pid`; without programs if that is not in the table."""
    root = table.get(pid)
    tty = read_tty(path)
    if root is None or root.tty != path:
        return Kernel(tty, 0, ())
    chosen = _choose_processes(table, root)
    programs = tuple(_make_program(row, root) for row in chosen[:PROCESSES])
    return Kernel(tty, root.foreground, programs, _read_inner(table, chosen, root, read_tty, depth))


def _choose_processes(table: Table, root: ListedProcess) -> list[ListedProcess]:
    """The foreground and all that descends from it, but for the shell's jobs in the background."""
    children: dict[int, list[ListedProcess]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row)
    waiting = [row for row in table.values() if _in_foreground(row, root)]
    chosen: dict[int, ListedProcess] = {}
    while waiting:
        row = waiting.pop()
        if row.pid not in chosen and (row.tty != root.tty or row.group == root.foreground):
            chosen[row.pid] = row
            waiting += children.get(row.pid, ())
    return sorted(chosen.values(), key=lambda row: (not _in_foreground(row, root), row.pid))


def _in_foreground(row: ListedProcess, root: ListedProcess) -> bool:
    return row.group == root.foreground and row.tty == root.tty


def _make_program(row: ListedProcess, root: ListedProcess) -> Program:
    return Program(row.pid, row.parent, row.name, row.state, _in_foreground(row, root), row.cpu, 0, PS, None, None, ())


def _read_inner(
    table: Table,
    chosen: Sequence[ListedProcess],
    root: ListedProcess,
    read_tty: Callable[[str], Tty | None],
    depth: int,
) -> Kernel | None:
    """The terminal of a process that one of this terminal began there: script(1), sudo, expect."""
    for row in chosen if depth else ():
        holder = table.get(row.parent)
        if holder in chosen and holder is not None and holder.tty == root.tty and row.tty not in ("", root.tty):
            inner = read_kernel(table, row.pid, row.tty, read_tty, depth - 1)
            return inner._replace(via=holder.name, holder=holder.pid)
    return None
