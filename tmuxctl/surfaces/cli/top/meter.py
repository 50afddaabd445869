"""What the processes of sessions take: processor time and memory of each whole tree, measured again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tmuxctl.surfaces.cli.top.pages import Load
from tmuxctl.terminal.processes.process import find_tree
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import Process


class Meter:
    """Measures trees of processes. `table` gives all processes there are: one look at it serves every session.

    A load is told as a share of at least so many `seconds`.
    """

    def __init__(self, table: Callable[[], list[Process]], seconds: float = TIMING.page.load_seconds) -> None:
        self._table, self._seconds = table, seconds
        self._psutil = _psutil()
        self._trees: dict[str, list[tuple[int, int]]] = {}
        self._known: dict[tuple[int, int], Any] = {}
        self._before: dict[str, float] = {}
        self._loads: dict[str, Load] = {}
        self._at = -seconds
        self._anew = True

    def measure(self, roots: Mapping[str, int], *, anew: bool) -> dict[str, Load]:
        """The load of each tree, by the id of the session whose first process is its root; of those that run.

        `anew`: look which processes there are; else those of the last time are measured. Where psutil is not to be had
        nothing is known.
        """
        now = time.monotonic()
        self._anew = self._anew or anew
        if self._psutil is None or now - self._at < self._seconds:
            return self._loads
        if self._anew or roots.keys() != self._trees.keys():
            self._anew = False
            self._trees = _trees(self._table(), roots)
            self._known = {row: self._known.get(row) for rows in self._trees.values() for row in rows}
        before, self._before, self._loads = self._before, {}, {}
        for session_id, rows in self._trees.items():
            seconds, memory = self._sum(rows)
            spent = max(0.0, seconds - before.get(session_id, seconds)) / (now - self._at)
            self._before[session_id] = seconds
            if rows:
                self._loads[session_id] = Load(spent * 100 if session_id in before else None, memory)
        self._at = now
        return self._loads

    def _sum(self, rows: Iterable[tuple[int, int]]) -> tuple[float, int]:
        """Seconds of processor time and bytes of memory of these processes, as far as they still run.

        Time of children that ended is with the process that waited for them: so none is lost between two measurements.
        """
        seconds, memory = 0.0, 0
        for row in rows:
            try:
                process = self._known[row] = self._known[row] or self._psutil.Process(row[0])
                times, size = process.cpu_times(), process.memory_info()
            except (self._psutil.Error, OSError):
                continue
            seconds += sum(times[:4])
            memory += size.rss
        return seconds, memory


def _trees(table: list[Process], roots: Mapping[str, int]) -> dict[str, list[tuple[int, int]]]:
    """The pid and start time of every process of each tree."""
    return {session_id: [(row.pid, row.started) for row in find_tree(table, pid)] for session_id, pid in roots.items()}


def _psutil() -> Any:
    """The package, or None in the one-file form, which cannot carry it."""
    try:
        import psutil
    except ImportError:
        return None
    return psutil
