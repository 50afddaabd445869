"""Records what is true of sessions and what is told of them, with the moments; a process of its own at real-time priority.

python -m tools.states.recorder FOLDER WATCH EVENTS     listens on FOLDER/recorder; reads what `tmuxctl watch --json` prints
from the descriptor WATCH and the server's events from EVENTS (-1: none); writes lines of JSON to standard output

A line has `at`, a moment of the monotonic clock in seconds, and one of `facts` or `kernel` (what the kernel tells of that
session, written when it has changed), `read` (the terminal that a program read), `told` (a surface, with what it told),
`ended` (a process that was to be watched), `gap` (seconds in which nothing was sampled), `lateness` (the last line).
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tmuxctl.reading.evidence.tty_waits import assess_foreground
from tmuxctl.transport import segments
from tmuxctl.transport.probe import read_kernel
from tmuxctl.transport.procfs import LocalKernelFiles, read_tty

TICK, LOOK = 0.01, 0.05
"""Seconds between two samples of the cheap facts, and between two full looks at the kernel."""

GAP = 0.05
"""Seconds after which a missing sample makes what was told then unscored."""

PRIORITY = 20
SOCKET = "recorder"
PR_SET_PDEATHSIG = 1
IN_ACCESS, IN_IGNORED = 0x1, 0x8000
EVENT = struct.Struct("iIII")
TTY = "/dev/tty"
"""The path under which the kernel reports reads by a program that opened its terminal by this name."""


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Reads:
    """Tells which terminals are read, by inotify: a watch of the folder /dev/pts tells nothing of them."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self.handle: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, str] = {}
        self._add(TTY)

    def find_terminals(self) -> None:
        """Watch the terminals that are new."""
        for name in os.listdir("/dev/pts"):
            if name.isdigit() and f"/dev/pts/{name}" not in self._paths.values():
                self._add(f"/dev/pts/{name}")

    def _add(self, path: str) -> None:
        descriptor = self._library.inotify_add_watch(self.handle, os.fsencode(path), IN_ACCESS)
        if descriptor >= 0:
            self._paths[descriptor] = path

    def take(self) -> Iterator[str]:
        """The paths of the terminals that were read."""
        events, offset = b"", 0
        with suppress(BlockingIOError):
            events = os.read(self.handle, 65536)
        while offset < len(events):
            descriptor, mask, _, length = EVENT.unpack_from(events, offset)
            offset += EVENT.size + length
            if mask & IN_IGNORED:
                self._paths.pop(descriptor, None)
            elif mask & IN_ACCESS and descriptor in self._paths:
                yield self._paths[descriptor]


class Sampled:
    """One session: where its facts are, and what was last written of it."""

    def __init__(self, name: str, pid: int, terminal: str, folder: str, *, beyond: bool) -> None:
        self.name, self.pid, self.terminal, self.journal = name, pid, terminal, f"{folder}/journal"
        self.beyond = beyond
        self.written: dict[str, Any] = {}
        self.files = LocalKernelFiles()

    def facts(self) -> dict[str, Any]:
        """What costs little: the journal's end, the foreground group, unread bytes, and how the group's leader is."""
        row = _read_stat(self.pid)
        if row is None or row[0] in "ZX":
            return {"gone": True}
        group = int(row[5])
        leader = row if group == self.pid else _read_stat(group)
        terminal = read_tty(self.terminal)
        return {
            "journal": self._journal_end(),
            "group": group,
            "unread": terminal.unread if terminal else None,
            "state": leader[0] if leader else "",
            "wchan": _read(f"/proc/{group}/wchan"),
        }

    def _journal_end(self) -> int:
        with suppress(OSError):
            if starts := segments.list_starts(os.listdir(self.journal)):
                return starts[-1] + os.stat(f"{self.journal}/{segments.segment_name(starts[-1])}").st_size
        return 0

    def kernel(self) -> dict[str, Any]:
        """What the innermost terminal's foreground waits for, in the product's words, and that terminal's number."""
        kernel = read_kernel(self.files, self.pid, self.terminal, beyond=self.beyond)
        while kernel.inner and kernel.inner.programs:
            kernel = kernel.inner
        assessed = assess_foreground(kernel)
        if assessed is None:
            return {"wait": "", "programs": []}
        row = _read_stat(kernel.programs[0].pid)
        return {
            "wait": assessed.wait.name.lower(),
            "alone": assessed.alone,
            "certain": assessed.certain,
            "waiter": f"{assessed.name} {assessed.call}" if assessed.waiters else "",
            "running": list(assessed.running),
            "sleeps": list(assessed.sleeps_in),
            "programs": [program.name for program in kernel.programs],
            "unread": kernel.tty.unread if kernel.tty else None,
            "terminal": f"/dev/pts/{int(row[4]) & 0xFF | (int(row[4]) >> 12) & 0xFFF00}" if row else self.terminal,
        }


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(4096).decode(errors="replace")
    except OSError:
        return ""


def _read_stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None if there is no such process."""
    text = _read(f"/proc/{pid}/stat")
    return text.rpartition(")")[2].split() if text else None


class Recorder:
    """Samples the sessions it is told of, and stamps what comes in."""

    def __init__(self, folder: Path, watch: int, events: int) -> None:
        self.reads, self.sessions, self.over = Reads(), dict[str, Sampled](), False
        self.lateness: list[float] = []
        self.poll = select.epoll()
        self.handlers: dict[int, Callable[[int], None]] = {}
        self.partial: dict[int, bytes] = {}
        self.orders = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.orders.bind(str(folder / SOCKET))
        os.chmod(folder / SOCKET, 0o777)
        self._listen(self.orders.fileno(), self._take_order)
        self._listen(self.reads.handle, self._take_reads)
        for surface, handle in (("watch", watch), ("events", events)):
            if handle >= 0:
                self._listen(handle, lambda handle, surface=surface: self._take_told(handle, surface))  # type: ignore[misc]

    def _listen(self, handle: int, handler: Callable[[int], None]) -> None:
        os.set_blocking(handle, False)
        self.handlers[handle] = handler
        self.poll.register(handle, select.EPOLLIN)

    def _forget(self, handle: int) -> None:
        self.poll.unregister(handle)
        del self.handlers[handle]

    def run(self) -> None:
        """Record until told to stop."""
        due = flush = look = time.monotonic()
        before = due
        while not self.over:
            for handle, _ in self.poll.poll(max(0.0, due - time.monotonic())):
                if handle in self.handlers:
                    self.handlers[handle](handle)
            now = time.monotonic()
            if now < due:
                continue
            self.lateness.append(now - due)
            if now - before > GAP:
                _write({"at": now, "gap": now - before})
            before, full = now, now >= look
            self._sample(full)
            if full:
                look = now + LOOK
                self.reads.find_terminals()
            if now > flush + 1.0:
                sys.stdout.flush()
                flush = now
            due = max(due + TICK, now)
        _write({"at": time.monotonic(), "lateness": _summarize(self.lateness)})
        sys.stdout.flush()

    def _sample(self, full: bool) -> None:
        for session in self.sessions.values():
            found = {"facts": session.facts()}
            if full and "gone" not in found["facts"]:
                found["kernel"] = session.kernel()
            for kind, values in found.items():
                if session.written.get(kind) != values:
                    session.written[kind] = values
                    _write({"at": time.monotonic(), "session": session.name, kind: values})

    def _take_order(self, handle: int) -> None:
        order = json.loads(self.orders.recv(65536))
        if "session" in order:
            name = order["session"]
            place = (order["pid"], order["terminal"], order["folder"])
            self.sessions[name] = Sampled(name, *place, beyond=order["beyond"])
            self.reads.find_terminals()
        elif "leave" in order:
            self.sessions.pop(order["leave"], None)
        elif "process" in order:
            with suppress(OSError):
                handle = os.pidfd_open(order["process"])
                self._listen(handle, lambda handle, pid=order["process"]: self._take_end(handle, pid))  # type: ignore[misc]
        else:
            self.over = True

    def _take_reads(self, handle: int) -> None:
        for path in self.reads.take():
            _write({"at": time.monotonic(), "read": path})

    def _take_end(self, handle: int, pid: int) -> None:
        _write({"at": time.monotonic(), "ended": pid})
        self._forget(handle)
        os.close(handle)

    def _take_told(self, handle: int, surface: str) -> None:
        now, new = time.monotonic(), os.read(handle, 65536)
        if not new:
            self._forget(handle)
            _write({"at": now, "told": surface, "over": True})
        *lines, self.partial[handle] = (self.partial.get(handle, b"") + new).split(b"\n")
        for line in lines:
            data = line.removeprefix(b"data:").strip()
            # what is no event are the header and the other lines of server-sent events
            if data.startswith(b"{") and "state" in (event := json.loads(data)):
                about = {name: event.get(name) for name in ("session", "state", "kind", "by", "confidence", "why")}
                _write({"at": now, "told": surface, **about})


def _write(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")


def _summarize(lateness: list[float]) -> dict[str, float | str]:
    several = sorted(lateness) or [0.0]
    policy = "real-time" if os.sched_getscheduler(0) == os.SCHED_FIFO else "ordinary"
    p99 = several[len(several) * 99 // 100]
    return {"priority": policy, "samples": len(several), "p99": p99, "max": several[-1], "cpu": time.process_time()}


def main() -> int:
    """Record as the arguments say; returns the exit status."""
    end_with_parent()
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    recorder = Recorder(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    # a collection of everything that was imported would be a gap
    gc.freeze()
    gc.disable()
    recorder.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
