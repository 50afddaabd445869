"""What the kernel tells of a terminal: who is in its foreground, what runs below that, and what each thread waits for.

Linux tells it in /proc (proc(5)). `KernelFiles` is where the files come from: `LocalKernelFiles` reads this machine's,
`Snapshot` those that a shell elsewhere printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from tmuxctl.evidence import FULL, NONE, WCHAN, Kernel, Program, Thread, Tty
from tmuxctl.transport import calls
from tmuxctl.transport.base import Process
from tmuxctl.transport.proc import parse_table
from tmuxctl.value import Value

PROCESSES, THREADS, DEPTH = 64, 64, 3
"""How many processes of a terminal are told of, how many threads of each, and how many terminals one in the other."""

WALKED, PARENTS, LISTED = 512, 256, 1024
"""How many processes are looked through for them, how many threads of one for children, and how many for a reader."""

CONTROLLING = 5 << 8
"""The device number of /dev/tty (linux/Documentation/admin-guide/devices.txt)."""

EPOLL = "anon_inode:[eventpoll]"
INWARD = ("anon_inode:[eventfd]", "anon_inode:[signalfd]", "pipe:")
"""What descriptors lead to that a process itself writes to."""

EPOLL_SLEEP = ("ep_poll", "do_epoll")
"""What the places in the kernel begin with where a thread waits in epoll."""

WAITING = (b"wait_woken", b"n_tty_read", b"poll_sched", b"do_sys_poll", b"do_poll", b"do_select", b"core_sys_select",
           b"ep_poll", b"do_epoll", b"epoll_wait")  # fmt: skip
"""The same for all in which a thread may wait for a terminal."""


READ_PLACES = ("wait_woken", "n_tty_read")
"""Those in which it reads."""


class Device(Value):
    """A device by its number, and the number of the file system it was found in, None if unknown."""

    number: int
    where: int | None

    def same(self, other: Device) -> bool:
        """Whether both are one: terminals of two containers may have the same number."""
        return self.number == other.number and (self.where == other.where or self.where is None or other.where is None)


class KernelFiles(Protocol):
    """Where what the kernel tells is read. What is gone or refused is empty or None; nothing raises."""

    machine: str
    """uname(2)'s name of the machine's architecture."""

    def processes(self) -> list[int]:
        """Every process there is."""

    def stat(self, pid: int) -> bytes:
        """/proc/PID/stat."""

    def threads(self, pid: int) -> list[int]:
        """The threads of a process."""

    def children(self, pid: int, threads: list[int]) -> list[int] | None:
        """The children of these threads of a process; None where the kernel keeps no such list."""

    def read(self, pid: int, thread: int, name: str) -> bytes:
        """A file of a thread."""

    def links(self, pid: int) -> dict[int, str] | None:
        """Where the descriptors of a process lead to, some hundreds at most; None if that may not be known."""

    def link(self, pid: int, descriptor: int) -> str:
        """Where one descriptor leads to."""

    def device(self, pid: int, descriptor: int) -> Device | None:
        """Which device a descriptor is."""

    def about(self, pid: int, descriptor: int) -> bytes:
        """/proc/PID/fdinfo of a descriptor."""

    def memory(self, pid: int, address: int, size: int) -> bytes:
        """That much of a process's memory."""

    def terminal(self, path: str) -> Device | None:
        """Which device a path is."""

    def tty(self, path: str) -> Tty | None:
        """How the terminal there treats input."""

    def clock(self) -> int | None:
        """Clock ticks since boot."""


def read_kernel(files: KernelFiles, pid: int, path: str, level: str = FULL, *, beyond: bool = False) -> Kernel:
    """What is told of the terminal at `path`, whose first process is `pid`, up to `level`; with `beyond` also of processes
    that wait for it though they belong to no session of this terminal.

    Without programs where that process has ended, or has another terminal. Zombies are left out.
    """
    tty, device = files.tty(path), files.terminal(path)
    table = ProcessTree(files)
    root = table.row(pid)
    if root is None or root.ended or not root.tty or (device is not None and device.number != root.tty):
        return Kernel(tty, 0, ())
    table.read_descendants([pid])
    terminal = device or Device(root.tty, None)
    kernel = _read_terminal(files, table, root, terminal, tty, level, DEPTH)
    if beyond and level != NONE:
        kernel = kernel._replace(
            programs=(*kernel.programs, *_find_outside_readers(files, table, root, terminal, level))
        )
    return kernel._replace(clock=files.clock())


class ProcessTree:
    """The processes below a terminal's first one, read once."""

    def __init__(self, files: KernelFiles) -> None:
        self._files = files
        self.rows: dict[int, Process] = {}
        self.children: dict[int, list[int]] = {}

    def row(self, pid: int) -> Process | None:
        """One process, read if need be; None if there is none."""
        if pid not in self.rows and (found := _read_process(self._files, pid)):
            self.rows[pid] = found
        return self.rows.get(pid)

    def read_descendants(self, pids: Iterable[int]) -> None:
        """Take in these processes and all that descends from them, those nearest first."""
        wave = [row for pid in pids if (row := self.row(pid)) and pid not in self.children]
        while wave and len(self.rows) < WALKED:
            below: list[int] = []
            for row in wave:
                threads = [row.pid] if row.threads == 1 else self._files.threads(row.pid)[:PARENTS]
                pids_below = self._files.children(row.pid, threads)
                if pids_below is None:
                    self._read_all()
                    return
                self.children[row.pid] = pids_below
                below += pids_below
            wave = [row for pid in below[:WALKED] if (row := self.row(pid)) and pid not in self.children]

    def read_group(self, group: int, tty: int) -> None:
        """Take in the process group of this terminal wherever its processes hang, and what descends from them."""
        for pid in self._files.processes():
            if pid not in self.rows:
                row = _read_process(self._files, pid)
                if row and row.group == group and row.tty == tty:
                    self.rows[pid] = row
        self.read_descendants([row.pid for row in self.members(group, tty)])

    def members(self, group: int, tty: int) -> list[Process]:
        """The processes of a process group that have this terminal."""
        return [row for row in self.rows.values() if row.group == group and row.tty == tty]

    def _read_all(self) -> None:
        """Every process of the machine, each below its parent: where the kernel keeps no lists of children."""
        for pid in self._files.processes():
            self.row(pid)
        self.children = {pid: [] for pid in self.rows}
        for row in self.rows.values():
            self.children.get(row.parent, []).append(row.pid)


def _read_process(files: KernelFiles, pid: int) -> Process | None:
    """A process; None if there is none."""
    return next(iter(parse_table(files.stat(pid))), None)


def _read_terminal(
    files: KernelFiles, table: ProcessTree, root: Process, terminal: Device, tty: Tty | None, level: str, depth: int
) -> Kernel:
    group = root.foreground
    if not table.members(group, root.tty):
        table.read_group(group, root.tty)
    chosen = [
        (TerminalProcess(files, row, terminal), _in_foreground(row, root)) for row in _choose_processes(table, root)
    ]
    programs = tuple(program for process, in_foreground in chosen if (program := process.program(in_foreground, level)))
    inner = None
    if depth and level != NONE and (others := _find_other_terminals(table, root)):
        holders = [process for process, in_foreground in chosen if in_foreground] + [
            process for process, in_foreground in chosen if not in_foreground and not process.row.tty
        ]
        candidates = (_read_nested_pty(files, table, others, process, level, depth) for process in holders)
        inner = next((nested for nested in candidates if nested), None)
    return Kernel(tty, group, programs, inner)


def _find_outside_readers(
    files: KernelFiles, table: ProcessTree, root: Process, terminal: Device, level: str
) -> Iterator[Program]:
    """The processes of other sessions, and of no terminal, that wait for this terminal's input. One of its own session
    that is not in the foreground may not read: it would be stopped."""
    for pid in files.processes():
        if not files.read(pid, pid, "wchan").startswith(WAITING):
            continue
        row = table.rows.get(pid) or _read_process(files, pid)
        if row is None or row.ended or row.session == root.session or _in_foreground(row, root):
            continue
        program = TerminalProcess(files, row, terminal).program(False, level)
        if program and any(_waits_for_terminal(program, thread) for thread in program.threads):
            yield program


def _waits_for_terminal(program: Program, thread: Thread) -> bool:
    """Whether a thread waits for the terminal; where its call is not told, whether it reads one and this is its only kind."""
    return bool(program.holds) and thread.wchan.startswith(READ_PLACES) if thread.tty is None else thread.tty


def _in_foreground(row: Process, root: Process) -> bool:
    """Whether a process is in the foreground of the terminal that `root` has."""
    return row.group == root.foreground and row.tty == root.tty


def _choose_processes(table: ProcessTree, root: Process) -> list[Process]:
    """The foreground and all that descends from it, but for the shell's jobs in the background; the oldest first."""
    chosen: dict[int, Process] = {}
    waiting = [row.pid for row in table.members(root.foreground, root.tty)]
    while waiting:
        pid = waiting.pop()
        row = table.rows.get(pid)
        if row is None or pid in chosen:
            continue
        if row.session != root.session or row.tty != root.tty or row.group == root.foreground:
            chosen[pid] = row
            waiting += table.children.get(pid, ())
    living = (row for row in chosen.values() if not row.ended)
    return sorted(living, key=lambda row: (not _in_foreground(row, root), row.started, row.pid))[:PROCESSES]


def _find_other_terminals(table: ProcessTree, outer: Process) -> dict[int, list[Process]]:
    """The living processes on other terminals, by the terminal's number."""
    found: dict[int, list[Process]] = {}
    for row in table.rows.values():
        # a terminal belongs to one session: with the outer session it is another container's of the same number
        if row.tty and row.session != outer.session and not row.ended:
            found.setdefault(row.tty, []).append(row)
    return found


def _read_nested_pty(
    files: KernelFiles,
    table: ProcessTree,
    others: dict[int, list[Process]],
    holder: TerminalProcess,
    level: str,
    depth: int,
) -> Kernel | None:
    """The terminal whose master a process holds, if there are processes on it."""
    masters = dict.fromkeys(holder.masters())
    for index in masters:
        number = 136 << 8 | index & 0xFF | (index & ~0xFF) << 12
        if living := others.get(number):
            root = min(living, key=lambda row: (row.pid != row.session, row.started, row.pid))
            # by way of the process: it may see other files than we do
            path = f"/proc/{root.pid}/root/dev/pts/{index}"
            device = files.terminal(path)
            is_same = device is not None and device.number == number
            tty = files.tty(path) if is_same else None
            terminal = device if device and is_same else Device(number, None)
            inner = _read_terminal(files, table, root, terminal, tty, level, depth - 1)
            return inner._replace(via=holder.row.name, holder=holder.row.pid, masters=len(masters))
    return None


class TerminalProcess:
    """One process seen from one terminal (the `calls.ProcessView` of its threads)."""

    def __init__(self, files: KernelFiles, row: Process, terminal: Device) -> None:
        self._files = files
        self.row = row
        self._terminal = terminal
        self._owner: int | None = None
        self._known_links: tuple[dict[int, str] | None] | None = None

    # what calls.py asks

    def terminal(self, descriptor: int) -> bool | None:
        device = self._files.device(self.owner, descriptor)
        if device is None:
            return None
        if device.number == CONTROLLING:
            return self.row.tty == self._terminal.number
        return device.same(self._terminal)

    def watched(self, descriptor: int) -> list[tuple[int, int]] | None:
        if self._files.link(self.owner, descriptor) != EPOLL:
            return None
        lines = (line.split() for line in self._files.about(self.owner, descriptor).splitlines())
        return [(int(words[1]), int(words[3], 16)) for words in lines if len(words) > 3 and words[0] == b"tfd:"]

    def inward(self, descriptor: int) -> bool:
        return self._files.link(self.owner, descriptor).startswith(INWARD)

    def memory(self, address: int, size: int) -> bytes:
        return self._files.memory(self.owner, address, size)

    @property
    def owner(self) -> int:
        """The thread that has the process's descriptors and memory: where the first one has ended, another."""
        if self._owner is None:
            ended = self.row.state in "ZX" and self.row.threads > 1
            living = [thread for thread in self._files.threads(self.row.pid) if thread != self.row.pid] if ended else []
            self._owner = next((thread for thread in living if self._files.links(thread)), self.row.pid)
        return self._owner

    # what is told

    def program(self, foreground: bool, level: str) -> Program | None:
        """The process with its threads; None if it ended meanwhile."""
        row = self.row
        ids = [row.pid] if row.threads == 1 else self._select_threads(self._files.threads(row.pid))
        pairs = [pair for thread_id in ids if (pair := self._read_thread(thread_id, level))]
        if not pairs:
            return None
        # where one thread's call is told, a thread without has ended meanwhile
        with_call = [(thread, wait) for thread, wait in pairs if wait]
        threads = [thread for thread, _ in with_call or pairs]
        sockets = holds = None
        if level != NONE:
            if foreground or not with_call or any(thread.tty is None for thread in threads):
                sockets, holds = self._count_sockets(), self._holds_terminal()
            if not all(wait.readable for _, wait in with_call):
                level = WCHAN
            elif not with_call:
                level = self._level_without_calls(threads)
            threads = list(self._add_epoll_waits(threads))
        about = (row.pid, row.parent, row.name, row.state, foreground, row.cpu, row.started)
        return Program(*about, level, sockets, holds, tuple(threads))

    def masters(self) -> Iterator[int]:
        """The numbers of the terminals whose masters it holds."""
        for descriptor, link in (self._read_links() or {}).items():
            if link.endswith("/ptmx"):
                for line in self._files.about(self.owner, descriptor).splitlines():
                    if line.startswith(b"tty-index:"):
                        yield int(line.split()[1])

    def _read_thread(self, thread: int, level: str) -> tuple[Thread, calls.ThreadWait | None] | None:
        """A thread, and what it waits for where the kernel tells; None if it ended meanwhile."""
        pid = self.row.pid
        status = self._files.read(pid, thread, "status")
        state = _find_status_field(status, b"State:")
        if not state:
            return None
        evidence = Thread(thread, state, switches=int(_find_status_field(status, b"voluntary_ctxt_switches:") or 0))
        if level == NONE:
            return evidence, None
        wchan = self._files.read(pid, thread, "wchan").strip().decode(errors="replace")
        evidence = evidence._replace(wchan="" if wchan == "0" else wchan)
        line = self._files.read(pid, thread, "syscall") if level == FULL else b""
        if not line:
            return evidence, None
        wait = calls.parse_wait(line, self, self._files.machine)
        if state in "TtZX" or (wait.call is None and wchan.startswith("io_")):
            # stopped or ended, or a worker of io_uring without work: whatever it was in, it waits for no input
            wait = calls.ThreadWait(wait.call, False, readable=wait.readable)
        return evidence._replace(
            call=wait.call, tty=wait.tty, alone=wait.alone, timeout=wait.timeout, inward=wait.inward
        ), wait

    def _select_threads(self, threads: list[int]) -> list[int]:
        """The threads that are told of: the main one, those that sleep where reading sleeps, then by number."""
        main = self.row.pid
        if len(threads) <= THREADS:
            return sorted(threads, key=lambda thread: (thread != main, thread))
        places = {thread: self._files.read(main, thread, "wchan").strip() for thread in sorted(threads)[:LISTED]}
        return sorted(places, key=lambda thread: (thread != main, not places[thread].startswith(WAITING), thread))[
            :THREADS
        ]

    def _level_without_calls(self, threads: list[Thread]) -> str:
        """The level of a process whose calls are not told."""
        if any(thread.wchan for thread in threads):
            return WCHAN
        # what runs sleeps nowhere, and who may see a process's descriptors may see where it sleeps
        running = all(thread.state == "R" for thread in threads)
        return WCHAN if running and self._read_links() is not None else NONE

    def _add_epoll_waits(self, threads: list[Thread]) -> Iterator[Thread]:
        """The threads, with what the process's epoll descriptors tell of those that sleep in epoll without a call."""
        sleeping = [one for one in threads if one.call is None and one.wchan.startswith(EPOLL_SLEEP)]
        descriptors = [one for one, link in (self._read_links() or {}).items() if link == EPOLL] if sleeping else []
        waits = {calls.epoll_awaits_terminal(one, self) for one in descriptors}
        # which of several it waits for is not known; that none of them has the terminal may be
        tty = waits.pop() if len(descriptors) == 1 or waits == {False} else None
        for one in threads:
            yield one._replace(tty=tty) if one in sleeping else one

    def _count_sockets(self) -> int | None:
        links = self._read_links()
        return None if links is None else sum(link.startswith("socket:") for link in links.values())

    def _holds_terminal(self) -> bool | None:
        """Whether it has the terminal open."""
        links = self._read_links()
        if links is None:
            return None
        distinct = {link: descriptor for descriptor, link in links.items()}
        return any(self.terminal(descriptor) for descriptor in distinct.values())

    def _read_links(self) -> dict[int, str] | None:
        if self._known_links is None:
            self._known_links = (self._files.links(self.owner),)
        return self._known_links[0]


def _find_status_field(status: bytes, name: bytes) -> str:
    """The first word behind a name in /proc/PID/status."""
    start = status.find(b"\n" + name)
    words = status[start + 1 + len(name) : start + 64 + len(name)].split(None, 1) if start >= 0 else ()
    return words[0].decode() if words else ""
