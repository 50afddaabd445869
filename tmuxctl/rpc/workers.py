"""Threads that wait for more work: to start one takes longer than much of what is to be done (0.06 ms, and 0.3 ms where the
processor has slept, measured)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Workers:
    """Carries out work, each piece in a thread of its own; a thread without any waits so many seconds for the next. The threads are
    daemons: no process waits for them at its end."""

    def __init__(self, name: str, idle_seconds: float) -> None:
        self._name, self._idle_seconds = name, idle_seconds
        self._idle = 0
        """Threads that wait, without those to which work was given meanwhile."""
        self._given: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()

    def start(self, work: Callable[[], None]) -> None:
        """Have work carried out, which handles its own errors. RuntimeError where no more threads can be started."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._given.put(work)
                return
        threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True).start()

    def _run(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            with self._lock:
                self._idle += 1
            # what it held is let go while it waits
            work = None
            work = self._next()

    def _next(self) -> Callable[[], None] | None:
        try:
            return self._given.get(timeout=self._idle_seconds)
        except queue.Empty:
            pass
        with self._lock:
            if self._given.empty():
                self._idle -= 1
                return None
            # given just now
            return self._given.get()
