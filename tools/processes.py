"""Processes of this machine: those of a folder and their end, what one of them uses (proc(5)), and some that only compute."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 5.0
"""Seconds in which the processes of a folder are looked for again: one may start another while they are ended."""

LOOP = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit()
while True:
    pass
"""
"""A busy loop that ends with its parent."""


def find_processes(folder: Path) -> list[int]:
    """The other processes whose environment names this folder: of a folder with a random name, those that belong to its run."""
    pids = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if int(file.parent.name) != os.getpid() and str(folder).encode() in file.read_bytes():
                pids.append(int(file.parent.name))
    return pids


def end_processes(folder: Path) -> None:
    """Kill the processes whose environment names this folder, until there are none."""
    deadline = time.monotonic() + PATIENCE
    while (left := find_processes(folder)) and time.monotonic() < deadline:
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def cpu_seconds(pid: int, *, with_children: bool = False) -> float:
    """Seconds of processor time that a process has used; `with_children`, those of its ended children too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if with_children else 13])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """The bytes of memory that a process has resident."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many processes that only compute, each in a session of its own: the kernel gives a session one share."""
    command = [sys.executable, "-I", "-S", "-c", LOOP, str(os.getpid())]
    loops: list[subprocess.Popen[bytes]] = []
    try:
        loops.extend(subprocess.Popen(command, start_new_session=True) for _ in range(count))
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()
