"""Processes that search in place of this one: a pattern that goes astray in one of them holds up nobody here.

A worker does one search at a time. It is started when none is free, kept for the next search, and killed when it is late.
"""

from __future__ import annotations

import atexit
import os
import select
import struct
import sys
import threading
import time
from contextlib import suppress
from math import inf

from tmuxctl.control.waiting import search_worker
from tmuxctl.control.waiting.search_worker import ANSWER, MATCH, NOTHING, READY, REQUEST
from tmuxctl.timing import TIMING
from tmuxctl.transport.spawn import DEFAULT_SIGNALS

MOST = 32
"""Searches under way at once; more wait for one of them."""

KEPT = 2
"""Workers without work that stay; each takes some 10 MB."""

SIGKILL = 9
DEFAULTS = (2, 14, 15, *DEFAULT_SIGNALS)
"""SIGINT, SIGALRM and SIGTERM, too, do in a worker what they do by default."""


class Late(Exception):
    """The search did not end in time, or took too much memory."""


class Unavailable(Exception):
    """No worker can be started here."""


class _Gone(Exception):
    """The worker ended before it answered."""


class Query:
    """One search: what is to be found in what, from which place, by `re`'s rules."""

    def __init__(self, pattern: str, flags: int, text: str, start: int) -> None:
        self._flags, self._start = flags, start
        self._pattern, self._text = (one.encode("utf-8", "surrogatepass") for one in (pattern, text))

    def request(self, seconds: float) -> bytes:
        """The bytes that ask a worker, which ends itself if it takes longer."""
        sizes = len(self._pattern), len(self._text)
        return REQUEST.pack(self._flags, seconds, self._start, *sizes) + self._pattern + self._text


class Worker:
    """One process that searches, as its owner sees it; used by one thread at a time."""

    def __init__(self) -> None:
        """Raises Unavailable if it cannot be started."""
        command = _command()
        try:
            self._pid, self._to, self._from = _started(command)
        except OSError as error:
            raise Unavailable(f"{command[0]}: {error}") from None
        os.set_blocking(self._to, False)
        try:
            if self._read(len(READY), time.monotonic() + TIMING.search.worker_start_seconds) != READY:
                raise _Gone
        except (Late, _Gone):
            self.end()
            raise Unavailable(f"{command[0]} does not run the search worker") from None
        except BaseException:
            self.end()
            raise

    def alive(self) -> bool:
        """True unless it ended, which is to be seen at its output."""
        return not _ready(self._from, select.POLLIN, 0)

    def ask(self, query: Query, deadline: float) -> list[int] | None:
        """The spans of the match, if there is one. Raises Late at the deadline (monotonic seconds), _Gone."""
        self._write(query.request(max(0.0, deadline - time.monotonic()) + TIMING.search.worker_grace_seconds), deadline)
        word, count = ANSWER.unpack(self._read(ANSWER.size, deadline))
        if word == MATCH:
            return list(struct.unpack(f"<{count}i", self._read(4 * count, deadline)))
        if word != NOTHING:
            raise Late
        return None

    def _write(self, data: bytes, deadline: float) -> None:
        left = memoryview(data)
        while left:
            _wait(self._to, select.POLLOUT, deadline)
            try:
                left = left[os.write(self._to, left) :]
            except BlockingIOError:
                continue
            except OSError:
                raise _Gone from None

    def _read(self, size: int, deadline: float) -> bytes:
        data = b""
        while len(data) < size:
            _wait(self._from, select.POLLIN, deadline)
            part = os.read(self._from, size - len(data))
            if not part:
                raise _Gone
            data += part
        return data

    def end(self) -> None:
        """Kill it, and leave nothing of it."""
        self.let_go()
        self.kill()

    def let_go(self) -> None:
        """Close our ends of its pipes."""
        os.close(self._to)
        os.close(self._from)

    def kill(self) -> None:
        """End the process."""
        # where somebody else waited for it, its number may be another's by now
        with suppress(ChildProcessError, ProcessLookupError):
            if not os.waitpid(self._pid, os.WNOHANG)[0]:
                os.kill(self._pid, SIGKILL)
                os.waitpid(self._pid, 0)


def _wait(descriptor: int, event: int, deadline: float) -> None:
    """Sleep until a pipe can be used; Late at the deadline."""
    if not _ready(descriptor, event, max(0.0, deadline - time.monotonic())):
        raise Late


def _ready(descriptor: int, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(seconds * 1000))


def _command() -> list[str]:
    """What starts a worker, wherever this package came from: the file system, or a zip."""
    if not sys.executable or getattr(sys, "frozen", False):
        raise Unavailable("there is no Python interpreter to run")
    path = search_worker.__file__ or ""
    python = [sys.executable, "-I", "-S"]
    if os.path.isfile(path):
        return [*python, path]
    try:
        return [*python, "-c", search_worker.__loader__.get_data(path).decode()]  # type: ignore[union-attr]
    except (AttributeError, OSError):
        raise Unavailable(f"there is no {path}") from None


def _started(command: list[str]) -> tuple[int, int, int]:
    """A new process's number, and our ends of its input and output."""
    stdin, to = _pipe()
    try:
        source, stdout = _pipe()
        try:
            return _spawn(command, stdin, stdout), to, source
        except BaseException:
            os.close(source)
            raise
        finally:
            os.close(stdout)
    except BaseException:
        os.close(to)
        raise
    finally:
        os.close(stdin)


def _pipe() -> tuple[int, int]:
    """A pipe whose numbers are no standard stream's, as they may be in a process that closed its own."""
    ends = os.pipe()
    if min(ends) > 2:
        return ends
    import fcntl

    first, second = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    for end in ends:
        os.close(end)
    return first, second


def _spawn(command: list[str], stdin: int, stdout: int) -> int:
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    # a group of its own: Ctrl-C at our terminal is not meant for it; and no alarm may be blocked or ignored
    return os.posix_spawn(
        command[0], command, os.environ, file_actions=actions, setpgroup=0, setsigdef=DEFAULTS, setsigmask=()
    )


class Pool:
    """The workers of this process. A forked child begins with none."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self.end)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST)
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._start_after = 0.0

    def search(self, query: Query, seconds: float) -> list[int] | None:
        """The spans of the match and its groups, if there is one. Raises Late after so many seconds, Unavailable.

        The time to start a worker does not count.
        """
        if not self._places.acquire(timeout=seconds):
            raise Late
        try:
            # somebody may have ended all that were kept: then once more, with a new one
            for _ in range(KEPT + 1):
                with suppress(_Gone):
                    return self._ask(query, seconds)
            raise Late
        finally:
            self._places.release()

    def _ask(self, query: Query, seconds: float) -> list[int] | None:
        worker = self._take()
        try:
            found = worker.ask(query, time.monotonic() + seconds)
        except BaseException:
            self._drop(worker)
            raise
        self._give_back(worker)
        return found

    def _take(self) -> Worker:
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return self._start()
            if worker.alive():
                return worker
            self._drop(worker)

    def _start(self) -> Worker:
        if time.monotonic() < self._start_after:
            raise Unavailable("no worker could be started a moment ago")
        try:
            worker = Worker()
        except Unavailable:
            self._start_after = time.monotonic() + TIMING.search.worker_retry_seconds
            raise
        with self._lock:
            self._all.add(worker)
        return worker

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            if len(self._idle) < KEPT and worker in self._all:
                self._idle.append(worker)
                return
        self._drop(worker)

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            known = worker in self._all
            self._all.discard(worker)
        if known:
            worker.end()

    def close(self) -> None:
        """End the workers that have no work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            self._drop(worker)

    def end(self) -> None:
        """Kill them all, for this process ends; a thread that is still in one may not lose its pipes."""
        self._start_after = inf
        self.close()
        for worker in list(self._all):
            worker.kill()

    def _forked(self) -> None:
        workers = self._all
        self._begin()
        for worker in workers:
            with suppress(OSError):
                worker.let_go()


POOL = Pool()
