"""Evidence for tests of reading/, in few words: a screen with its cursor behind the last text, and who waits for what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tmuxctl.evidence import FULL, NONE, PS, WCHAN, Evidence, Kernel, LastMark, Look, Program, Thread, Tty, from_json

SEEN = Path(__file__).with_name("seen")
"""What was seen of real programs: the evidence of `explain --evidence --json`, one object a line."""

LINES = Tty(canonical=True, echo=True, unread=0)
KEYS = Tty(canonical=False, echo=False, unread=0)
SECRET = Tty(canonical=True, echo=False, unread=0)

STEP = 0.06
"""Seconds from look to look."""

PLACES = {"poll": "do_poll.constprop.0", "select": "do_select", "pselect6": "do_select", "epoll_wait": "do_epoll_wait"}


def thread(
    call: str, *, tty: bool | None = None, alone: bool = False, state: str = "S", id: int = 100, **known: Any
) -> Thread:
    """A thread in a system call; `read`, `poll` and so on wait for the terminal unless `tty` says otherwise."""
    waits = call in ("read", *PLACES) if tty is None else tty
    place = "wait_woken" if call == "read" else PLACES.get(call, f"do_{call}")
    return Thread(id, "R" if call == "running" else state, place, call, waits, alone, **known)


def program(name: str, *calls: str | Thread, **known: Any) -> Program:
    """A process in the foreground, its threads each in one system call."""
    pid = known.pop("pid", 100)
    threads = tuple(
        one if isinstance(one, Thread) else thread(one, id=pid + index) for index, one in enumerate(calls or ("read",))
    )
    fields: dict[str, Any] = {
        "pid": pid,
        "parent": 1,
        "name": name,
        "state": threads[0].state,
        "foreground": True,
        "cpu": 10,
        "started": 1000,
        "level": FULL,
        "sockets": 0,
        "holds": True,
        "threads": threads,
    }
    return Program(**{**fields, **known})


def kernel(*programs: Program, tty: Tty = LINES, inner: Kernel | None = None, **known: Any) -> Kernel:
    return Kernel(tty, programs[0].pid, programs, inner, **known)


def by_place(seen: Kernel) -> Kernel:
    """The same as an ordinary user under ptrace restrictions gets it: only where in the kernel each thread sleeps."""
    programs = tuple(
        one._replace(level=WCHAN, threads=tuple(t._replace(call=None, tty=None, alone=False) for t in one.threads))
        for one in seen.programs
    )
    return seen._replace(programs=programs)


def unreadable(name: str, *, tty: Tty = LINES, cpu: int = 10) -> Kernel:
    """A process of another user."""
    return kernel(program(name, Thread(100, "S"), level=NONE, sockets=None, holds=None, cpu=cpu), tty=tty)


def listed(*names: str, tty: Tty = LINES, **known: Any) -> Kernel:
    """The same as ps prints it: these programs in the foreground, each the child of the one before."""
    rows = (
        program(name, pid=100 + number, parent=99 + number, level=PS, started=0, sockets=None, holds=None, **known)
        for number, name in enumerate(names)
    )
    return kernel(*(row._replace(state=known.get("state", "S"), threads=()) for row in rows), tty=tty)


def look(screen: str = "", seen: Kernel | None = None, **known: Any) -> Look:
    """One look: the cursor behind the screen's last text, two seconds quiet, unless told otherwise."""
    rows = screen.split("\n")
    fields: dict[str, Any] = {
        "at": 10.0,
        "journal": 100,
        "quiet": 2.0,
        "x": len(rows[-1]),
        "y": len(rows) - 1,
        "visible": True,
        "alternate": False,
        "cols": 120,
        "rows": 40,
        "title": "",
        "screen": "\n".join(row.rstrip() for row in rows),
        "dead": False,
        "status": None,
        "signal": None,
        "mark": None,
        "hook": None,
        "kernel": seen,
    }
    return Look(**{**fields, **known})


def evidence(*looks: Look, **known: Any) -> Evidence:
    told = any(one.kernel and one.kernel.programs for one in looks)
    return Evidence(**{"looks": looks, "proc": FULL if told else NONE, **known})


def steady(
    screen: str = "", seen: Kernel | None = None, *, count: int = 40, about: dict[str, Any] | None = None, **known: Any
) -> Evidence:
    """The same look again and again, for as long as a window is."""
    last = look(screen, seen, **known)
    looks = (
        last._replace(
            at=last.at - STEP * back, quiet=None if last.quiet is None else max(0.0, last.quiet - STEP * back)
        )
        for back in reversed(range(count))
    )
    return evidence(*looks, **(about or {}))


def drawing(screen: str, seen: Kernel | None, *, every: float, seconds: float = 3.3, **known: Any) -> Evidence:
    """A program that prints something every so many seconds, watched all the time."""
    looks = []
    for number in range(round(seconds / STEP)):
        at = 10.0 + number * STEP
        printed = int(at / every)
        looks.append(look(screen, seen, **{**known, "at": at, "journal": 100 + printed, "quiet": at - printed * every}))
    return evidence(*looks)


def moving(screens: list[str], seen: Kernel | list[Kernel], *, every: float, **known: Any) -> Evidence:
    """A program that draws the next of these screens every so many seconds, up to now; `seen` may be one for each look."""
    looks = []
    count = round(every * len(screens) / STEP)
    for number in range(count):
        at = number * STEP
        drawn = int(at / every)
        kernel = seen[number % len(seen)] if isinstance(seen, list) else seen
        about = {**known, "at": 10.0 + at, "journal": 100 + drawn, "quiet": at - drawn * every}
        looks.append(look(screens[drawn], kernel, **about))
    return evidence(*looks)


def recorded(name: str) -> Evidence:
    """What was seen of a real program in some state."""
    return from_json(json.loads(line) for line in (SEEN / f"{name}.jsonl").read_text().splitlines())


def marked(letter: str, status: int | None = None) -> LastMark:
    return LastMark(letter, status, 50)
