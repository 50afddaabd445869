"""All machines of machines.toml together with this one: they are asked in threads, so that one that does not answer costs what it
would have told and nothing else."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tmuxctl import machines
from tmuxctl.control.machines import addresses, reaching
from tmuxctl.errors import Timeout, TmuxctlError
from tmuxctl.model import State, Status
from tmuxctl.operations import Cancellation, current, under
from tmuxctl.results import Event, MachineProblem, Sessions
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

SLOTS = 32
"""How many machines are asked at once, while some answer: each thread that waits for Python's lock wakes up every 5 ms, and with
hundreds of them little else is done."""


def list_sessions(machine: Machine, look: Callable[[Machine], Sessions]) -> Sessions:
    """The sessions of this machine and of all of machines.toml, and what is wrong with those that told nothing in time."""
    names, call = list(machines.read_machines()), current()
    limit = machine.timing.machine.all_seconds
    found: dict[str, Sessions | TmuxctlError] = {}
    over, not_asked, threads = threading.Event(), deque(names), list[threading.Thread]()

    def ask() -> None:
        with under(changed(call, cancelled=over)):
            while not over.is_set():
                try:
                    name = not_asked.popleft()
                except IndexError:
                    return
                try:
                    found[name] = _on(machine, name, look)
                except TmuxctlError as error:
                    found[name] = error

    def start() -> None:
        threads.append(threading.Thread(target=ask, daemon=True))
        threads[-1].start()

    deadline, answered = time.monotonic() + limit, 0
    try:
        for _ in names[:SLOTS]:
            start()
        while not_asked and len(threads) < len(names) and time.monotonic() < deadline:
            time.sleep(machine.timing.machine.slot_seconds)
            if len(found) == answered:
                start()
            answered = len(found)
        here = look(machine)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
    finally:
        over.set()
    late = Timeout(
        f"no answer within {limit:g} s", reason="no_answer", hint="is it switched on, and the network there?"
    )
    ends = [(name, found.get(name, late)) for name in names]
    return Sessions(
        (*here.sessions, *(one for _, end in ends if isinstance(end, Sessions) for one in end.sessions)),
        tuple(to_problem(name, end) for name, end in ends if isinstance(end, TmuxctlError)),
    )


def _on(machine: Machine, name: str, look: Callable[[Machine], Any]) -> Any:
    """What this look at another machine gives, with addresses for names."""
    place = reaching.reach_machine(machine, name)
    return place.transport.carry_out("look", lambda: addresses.carry_out(name, lambda: look(place)), changes=False)


def to_problem(name: str, error: TmuxctlError) -> MachineProblem:
    """Why the machine `name` told nothing, of the error that says so."""
    message = error.message.removeprefix(f"{name}: ").removeprefix(f"{name} ")
    return MachineProblem(name, error.reason, message, error.hint)


def watch(machine: Machine, look: Callable[[Machine], Iterator[Event]]) -> Iterator[Event]:
    """What `look` tells of this machine and of all of machines.toml, as it comes. Where a machine cannot be reached, that is told
    under its name with a slash (`web1/`), once for each reason, and each of its sessions is told to be unknown; once it can be,
    they are told anew."""
    told: queue.Queue[Event | BaseException] = queue.Queue()
    call, over = current(), Cancellation()

    def follow_here() -> None:
        try:
            with under(changed(call, cancelled=over)):
                for event in look(machine):
                    told.put(event)
        except BaseException as error:
            told.put(error)

    def follow(name: str) -> None:
        last: dict[str, Event] = {}
        reason = ""
        while not over.is_set():
            try:
                with under(changed(call, cancelled=over)):
                    for event in _on(machine, name, look):
                        last[event.session], reason = event, ""
                        told.put(event)
            except TmuxctlError as error:
                if reason != error.reason:
                    reason = error.reason
                    told.put(_describe_problem(name, error))
                for event in last.values():
                    told.put(_lose_sight(event, error))
                last.clear()
            except BaseException as error:
                told.put(error)
                return
            over.wait(machine.timing.machine.again_seconds)

    works = [follow_here, *((lambda name=name: follow(name)) for name in machines.read_machines())]
    for work in works:
        threading.Thread(target=work, daemon=True).start()
    try:
        while call.left(None) != 0.0:
            call.check()
            try:
                found = told.get(timeout=call.left(1.0))
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        over.set()


def _describe_problem(name: str, error: TmuxctlError) -> Event:
    now = time.time()
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    return Event(at, f"{name}/", Status(State.UNKNOWN, detail=error.reason), why=error.message)


def _lose_sight(event: Event, error: TmuxctlError) -> Event:
    """The last that was told of a session, as nobody knows any more what it does."""
    status = changed(event.status, state=State.UNKNOWN, kind=None, detail="unreachable", asking=None, until=None)
    return changed(event, status=status, why=error.message, wants=None)
