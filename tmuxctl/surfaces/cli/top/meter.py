"""What the processes of sessions take: processor time and memory of each whole tree, measured again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tmuxctl.surfaces.cli.top.pages import Load
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import ProcessLoad


class Meter:
    """Measures trees of processes. `load` tells what the tree below a process takes.

    A load is told as a share of at least so many `seconds`.
    """

    def __init__(self, load: Callable[[int], ProcessLoad], seconds: float = TIMING.page.load_seconds) -> None:
        self._load, self._seconds = load, seconds
        self._before: dict[str, tuple[float, float]] = {}
        """When each session was measured last, and the processor time it had taken."""
        self._loads: dict[str, Load] = {}

    def measure(self, roots: Mapping[str, int], shown: Callable[[str], bool] = lambda key: True) -> Mapping[str, Load]:
        """The load of each tree, by the id of the session whose first process is its root; of those that run. Only what is
        `shown` is measured anew. Where it is not to be had nothing is known."""
        for gone in self._before.keys() - roots.keys():
            del self._before[gone]
            self._loads.pop(gone, None)
        for key, root in roots.items():
            now = time.monotonic()
            at, seconds = self._before.get(key, (now, 0.0))
            if key in self._before and (now - at < self._seconds or not shown(key)):
                continue
            try:
                found = self._load(root)
            except ImportError:
                return {}
            # time of children that ended is with the process that waited for them: none is lost between two measurements
            spent = max(0.0, found.cpu - seconds) / (now - at) * 100 if key in self._before else None
            self._before[key] = now, found.cpu
            self._loads[key] = Load(spent, found.memory)
            if not found.processes:
                del self._before[key], self._loads[key]
        return dict(self._loads)
