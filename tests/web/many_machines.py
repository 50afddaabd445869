"""Many machines with sessions that are only told of: `many_machines.py FOLDER MACHINES SESSIONS`, the sessions on each machine.

They are listened for at the sockets `m00`, `m01`, ... of the folder, and speak the records of calls by name as a host behind a
gateway does. A line `MACHINE NUMBER STATE [TEXT]` on standard input changes a session, `MACHINE NUMBER lie ID` has it lie; each
such line is answered with one, as each start is.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from rpc.host import serve

from tmuxctl.access import CallerAccess, ServiceAccess
from tmuxctl.control import Control
from tmuxctl.model import Asking, Option, Session, State, Status
from tmuxctl.results import CursorPosition, Event, Screen, Sessions
from tmuxctl.rpc.responder import Responder
from tmuxctl.value import changed
from tmuxctl.vocabulary import InputKind

STATES = (State.IDLE, State.IDLE, State.BUSY, State.IDLE, State.EXITED)


class Simulated(Control):
    """The operations of a machine that has nothing but a list of sessions."""

    def __init__(self, number: int, count: int) -> None:
        self.prefix = f"{number:02x}"
        self.sessions = [self._make(one) for one in range(count)]
        self.title = ""
        self.watchers: list[queue.SimpleQueue[Event]] = []

    def _make(self, number: int) -> Session:
        state = STATES[number % len(STATES)]
        return Session(
            name=f"job-{number:03d}",
            id=f"{self.prefix}{number:04x}ab-0000-4000-8000-0123456789ab",
            incarnation=f"{self.prefix}{number:04x}",
            status=Status(state),
            wants="prompt" if state is State.IDLE else None,
            profile="bash",
            argv=("bash", "-c", f"make -C build target-{number}"),
            cwd=f"/srv/work/project-{number % 7}",
            cols=120,
            rows=40,
            pid=1000 + number,
            exit_status=0 if state is State.EXITED else None,
            created=now(),
            active=now(),
            tags=("nightly",) if number % 10 == 0 else (),
        )

    def change(self, number: int, state: State, text: str) -> None:
        """Have a session be in another state, and tell who watches."""
        asking = None
        if state is State.ASKING:
            options = (Option("yes", "yes", ("y", "Enter")), Option("no", "no", ("n", "Enter")))
            asking = Asking(InputKind.CONFIRM, os.urandom(4).hex(), text, options)
        status = Status(state, asking=asking)
        wants = "input" if asking else None
        self.sessions[number] = one = changed(self.sessions[number], status=status, wants=wants, active=now())
        for watcher in list(self.watchers):
            watcher.put(event_of(one))

    def lie(self, number: int, other_id: str) -> None:
        """Have a session say that it is another one, and hold what no honest machine tells."""
        evil = "<img src=x onerror=window.caught=1>\x1b]52;c;aGF4\x07\u202e"
        asking = Asking(InputKind.CONFIRM, "q1", evil * 1000, (Option("yes", evil * 1000, ("y",)),))
        self.title = evil * 1000
        self.sessions[number] = one = changed(
            self.sessions[number],
            id=other_id,
            status=Status(State.ASKING, asking=asking),
            wants="input",
            profile="<b>bash</b>",
            argv=(evil,) * 100,
            cwd=f"/{evil * 50}",
            tags=("a",) * 1000,
            active=now(),
        )
        for watcher in list(self.watchers):
            watcher.put(event_of(one))

    def call(self, name: str, arguments: Any, *, cancelled: threading.Event | None = None, **_: Any) -> Any:
        if name == "ls":
            return Sessions(tuple(self.sessions))
        if name == "watch":
            return self._watch(cancelled or threading.Event())
        found = next(one for one in self.sessions if arguments["session"] in (one.name, one.id))
        if name == "screen":
            at = CursorPosition(0, 1, True)
            return Screen(found.name, f"last line of {found.name}", 120, 40, at, False, self.title, None, None, None)
        return found

    def _watch(self, cancelled: threading.Event) -> Iterator[Event]:
        watcher: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.watchers.append(watcher)
        yield from map(event_of, self.sessions)
        while not cancelled.is_set():
            try:
                yield watcher.get(timeout=0.5)
            except queue.Empty:
                continue


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def event_of(one: Session) -> Event:
    return Event(
        time=now(),
        session=one.name,
        status=one.status,
        cursor=f"c1:{one.incarnation}:0",
        wants=one.wants,
        exit_status=one.exit_status,
        id=one.id,
    )


def listen(path: str, machine: Simulated) -> None:
    """Serve a machine at a socket, in threads of its own."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    responder = Responder(machine, ServiceAccess(CallerAccess(), machine))

    def accept() -> None:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=serve, args=(responder, connection), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def main() -> None:
    folder, machines, sessions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found = {f"m{number:02d}": Simulated(number, sessions) for number in range(machines)}
    for name, machine in found.items():
        listen(os.path.join(folder, name), machine)
    print("listening", flush=True)
    for line in sys.stdin:
        name, number, state, *text = line.split(maxsplit=3)
        told = "".join(text).strip()
        if state == "lie":
            found[name].lie(int(number), told)
        else:
            found[name].change(int(number), State.of(state) or State.UNKNOWN, told or "Go on?")
        print("changed", flush=True)


if __name__ == "__main__":
    main()
