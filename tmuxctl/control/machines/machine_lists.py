"""The sessions of all machines of machines.toml, kept fresh for who shows them: each machine is asked in a thread of its own, so
that one that does not answer holds up none of the others, and is asked once for all who read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping

from tmuxctl.control.machines.everywhere import to_problem
from tmuxctl.errors import TmuxctlError
from tmuxctl.machines import read_machines
from tmuxctl.model import Session
from tmuxctl.results import MachineProblem, Sessions
from tmuxctl.value import Value, changed

SESSIONS_MOST = 10_000
"""Sessions of one machine that are kept of what it tells."""


class MachineList(Value):
    """What a machine told last. `problem`: why it does not answer now; `is_known`: it has told its sessions once."""

    name: str
    sessions: tuple[Session, ...] = ()
    problem: MachineProblem | None = None
    is_known: bool = False


class ListPace(Value):
    """How often a machine is asked for its sessions, in seconds: where some of them are looked at (`seen`), where none is (`rare`),
    and after it did not answer (`again`); two lists are at least `least` apart."""

    seen: float
    rare: float
    again: float
    least: float = 1.0


class MachineLists:
    """The lists of all machines. `list_sessions` asks one for its sessions, by its name, until the event is set; `told` is called
    with a machine's name in that machine's thread, whenever it told something or could not be asked."""

    def __init__(
        self,
        list_sessions: Callable[[str, threading.Event], Sessions],
        told: Callable[[str], None],
        pace: ListPace,
    ) -> None:
        self._list_sessions, self._told, self._pace = list_sessions, told, pace
        self._lists: dict[str, MachineList] = {}
        self._pokes: dict[str, threading.Event] = {}
        self._overs: dict[str, threading.Event] = {}
        self._read_at = float("-inf")
        self._lock = threading.Lock()
        self.seen: Collection[str] = ()
        """The machines of which sessions are looked at now."""

    def renew(self) -> None:
        """Begin with the machines of machines.toml that are not asked yet, and end with those that are not in it any more. The file
        is read once in `rare` seconds. Raises Usage where it cannot be read."""
        now = time.monotonic()
        with self._lock:
            if now - self._read_at < self._pace.rare:
                return
            self._read_at = now
            names = read_machines()
            for name in self._overs.keys() - names.keys():
                self._end(name)
            for name in names:
                if name not in self._overs:
                    self._begin(name)

    @property
    def has_begun(self) -> bool:
        """Whether machines are asked."""
        return self._read_at > float("-inf")

    def stop(self) -> None:
        """Ask no more; the threads end on their own, and `renew` begins anew."""
        with self._lock:
            for name in list(self._overs):
                self._end(name)
            self._read_at = float("-inf")

    def all(self) -> Mapping[str, MachineList]:
        """What each machine told last, by its name."""
        with self._lock:
            return dict(self._lists)

    def poke(self, name: str = "") -> None:
        """Ask a machine again soon, or with no name all of them: something was done there."""
        for one, poked in list(self._pokes.items()):
            if name in ("", one):
                poked.set()

    def look_at(self, names: Collection[str]) -> None:
        """Say of which machines sessions are looked at now; one that is looked at anew is asked soon."""
        new, self.seen = set(names) - set(self.seen), frozenset(names)
        for name in new:
            self.poke(name)

    def _begin(self, name: str) -> None:
        over, poked = threading.Event(), threading.Event()
        self._overs[name], self._pokes[name], self._lists[name] = over, poked, MachineList(name)
        work = threading.Thread(target=self._follow, args=(name, over, poked), name="tmuxctl-machine", daemon=True)
        work.start()

    def _end(self, name: str) -> None:
        self._overs.pop(name).set()
        self._pokes.pop(name).set()
        del self._lists[name]

    def _follow(self, name: str, over: threading.Event, poked: threading.Event) -> None:
        """Ask a machine again and again until it is over."""
        while not over.is_set():
            poked.clear()
            try:
                sessions = self._list_sessions(name, over).sessions[:SESSIONS_MOST]
                self._note(name, over, MachineList(name, sessions, is_known=True))
            except (TmuxctlError, OSError) as error:
                problem = (
                    to_problem(name, error)
                    if isinstance(error, TmuxctlError)
                    else MachineProblem(name, "failed", str(error), "")
                )
                self._note(name, over, changed(self._lists.get(name, MachineList(name)), problem=problem))
            if over.is_set():
                return
            self._told(name)
            found = self._lists.get(name)
            pace = self._pace
            if found is not None and found.problem is not None:
                over.wait(pace.again)
                continue
            over.wait(pace.least)
            poked.wait(max(0.0, (pace.seen if name in self.seen else pace.rare) - pace.least))

    def _note(self, name: str, over: threading.Event, found: MachineList) -> None:
        with self._lock:
            if not over.is_set():
                self._lists[name] = found
