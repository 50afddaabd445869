"""This machine's terminals and /proc, as `probe.KernelFiles`."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from tmuxctl.evidence import Tty
from tmuxctl.transport.base import ThreadId, Watched
from tmuxctl.transport.probe import Device

LINKS = 256
"""How many descriptors of a process are looked at."""


def read_tty(path: str) -> Tty | None:
    """How the terminal at `path` treats input, or None when it cannot be asked."""
    try:
        # never held open, never our controlling terminal: it would keep a program from seeing its end
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        # what was written to the master is on its way until a worker of the kernel has had the processor; poll(2) waits for that
        # where nothing else is there to read (n_tty_poll), and only then is what is unread counted whole
        readable = select.poll()
        readable.register(handle, select.POLLIN)
        is_readable = any(events & select.POLLIN for _, events in readable.poll(0))
        modes = termios.tcgetattr(handle)
        flags, letters = modes[3], modes[6]
        rows, columns = termios.tcgetwinsize(handle)
        return Tty(
            bool(flags & termios.ICANON),
            bool(flags & termios.ECHO),
            # the end of input (Ctrl-D) can be read and has no bytes
            max(_read_count(handle, termios.FIONREAD), is_readable),
            _read_count(handle, termios.TIOCOUTQ),
            _to_number(letters[termios.VMIN]),
            _to_number(letters[termios.VTIME]) / 10,
            (columns, rows),
        )
    except (OSError, termios.error):
        return None
    finally:
        os.close(handle)


def _to_number(letter: int | bytes) -> int:
    """One of termios' control characters as the number it is where a terminal takes no lines."""
    return letter if isinstance(letter, int) else letter[0]


def _read_count(handle: int, request: int) -> int:
    return int.from_bytes(fcntl.ioctl(handle, request, b"\0" * 4), sys.byteorder)


def read_runs(threads: Sequence[ThreadId]) -> list[bytes] | None:
    """How long each of these threads has run, in nanoseconds, and how often: changed each time that one woke (schedstat in
    linux/Documentation/scheduler/sched-stats.rst; the processor time in /proc/PID/stat is in hundredths of a second). None where
    that cannot be read, or one has ended."""
    runs = []
    try:
        for process, thread in threads:
            handle = os.open(f"/proc/{process}/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                runs.append(os.read(handle, 200))
            finally:
                os.close(handle)
    except OSError:
        return None
    return runs


def read_stamp(watched: Watched) -> object | None:
    """`Transport.stamp` of this machine. A thread that waits for a terminal wakes when its settings change, too
    (n_tty_set_termios)."""
    told: list[object] = [watched, read_runs(watched.threads)]
    if told[1] is None:
        return None
    try:
        for path in watched.files:
            status = os.stat(path)
            told.append((status.st_ino, status.st_size, status.st_mtime_ns))
    except OSError:
        return None
    return told


class LocalKernelFiles:
    """/proc of this machine."""

    def __init__(self) -> None:
        self.machine = os.uname().machine

    def processes(self) -> list[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]

    def stat(self, pid: int) -> bytes:
        return _read_file(f"/proc/{pid}/stat")

    def threads(self, pid: int) -> list[int]:
        try:
            return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        except OSError:
            return []

    def children(self, pid: int, threads: list[int]) -> list[int] | None:
        if not threads:
            return []
        lines = [_read_file(f"/proc/{pid}/task/{thread}/children", 65536) for thread in threads]
        pids = b" ".join(lines).split()
        # nothing read: no children, or a kernel without CONFIG_PROC_CHILDREN
        return [int(thread) for thread in pids] if pids or os.path.exists("/proc/thread-self/children") else None

    def read(self, pid: int, thread: int, name: str) -> bytes:
        return _read_file(f"/proc/{pid}/{name}" if thread == pid else f"/proc/{pid}/task/{thread}/{name}")

    def links(self, pid: int) -> dict[int, str] | None:
        try:
            with os.scandir(f"/proc/{pid}/fd") as entries:
                names = [entry.name for entry in islice(entries, LINKS)]
        except OSError:
            return None
        return {int(name): self.link(pid, int(name)) for name in names}

    def link(self, pid: int, descriptor: int) -> str:
        try:
            return os.readlink(f"/proc/{pid}/fd/{descriptor}")
        except OSError:
            return ""

    def device(self, pid: int, descriptor: int) -> Device | None:
        link = self.link(pid, descriptor)
        if not link:
            return None
        # no other is asked: a file on a server that does not answer would hold us up; a terminal in another mount
        # namespace may show as `/` or its bare number
        if not link.startswith("/dev/") and link.rpartition("/")[2].strip("0123456789"):
            return Device(0, None)
        return self.terminal(f"/proc/{pid}/fd/{descriptor}")

    def about(self, pid: int, descriptor: int) -> bytes:
        return _read_file(f"/proc/{pid}/fdinfo/{descriptor}", 65536)

    def memory(self, pid: int, address: int, size: int) -> bytes:
        with suppress(OSError, OverflowError), open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, address)
        return b""

    def terminal(self, path: str) -> Device | None:
        try:
            status = os.stat(path)
        except OSError:
            return None
        return Device(status.st_rdev if stat.S_ISCHR(status.st_mode) else 0, status.st_dev)

    def tty(self, path: str) -> Tty | None:
        return read_tty(path)

    def clock(self) -> int | None:
        # what proc(5) counts from, where it counts in hundredths as everywhere but on alpha
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 100)


def _read_file(path: str, size: int = 8192) -> bytes:
    """The first bytes of a file that the kernel makes as it is read; nothing if it cannot be."""
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        return file.read(size)
    return b""
