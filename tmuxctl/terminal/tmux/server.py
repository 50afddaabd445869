"""What tmux knows: a session's facts, read in one query."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import NoneType
from typing import Any, TypeGuard

from tmuxctl.errors import NotFound
from tmuxctl.model import natural_key
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux.pane_io import PaneIO, field_format, session_target
from tmuxctl.timing import TIMING
from tmuxctl.transport.versions import parse_version
from tmuxctl.untrusted import fits, parse_json
from tmuxctl.value import Value, changed

MOMENT = r"[0-9]{1,15}(\.[0-9]{0,9})?"

SIZE_MOST = 10_000
"""Columns and rows that tmux gives a window at most: by what it tells of a pane, screens are made here."""

MAYBE = (str, NoneType)
FACTS = {"argv": [str], "cwd": MAYBE, "plugins": [str], "confined": bool, "profile": MAYBE, "marks": str}
"""The shape of what `launch.format_facts` writes into an option."""


def _is_one(value: str) -> bool:
    return value == "1"


def _read_whole(value: str) -> int:
    return int(value) if re.fullmatch("-?[0-9]{1,18}", value) else 0


def _read_size(value: str) -> int:
    return max(0, min(_read_whole(value), SIZE_MOST))


def _read_moment(value: str) -> float:
    return float(value) if re.fullmatch(MOMENT, value) else 0.0


def _read_spec(text: str) -> dict[str, Any]:
    """What `launch.format_facts` wrote; empty if another user of this tmux put something else there."""
    with suppress(ValueError):
        found: dict[str, Any] = parse_json(text or "{}")
        return found if fits(found, FACTS) else {}
    return {}


def signal_name(value: str) -> str:
    """A signal as POSIX names it, without SIG: tmux gives a number (3.3a) or a name."""
    if value.isdigit():
        import signal

        try:
            return signal.Signals(int(value)).name.removeprefix("SIG")
        except ValueError:
            return value
    return value.upper().removeprefix("SIG")


READERS: Mapping[str, Callable[[str], Any]] = {
    "session_name": str,
    options.ID: str,
    options.INCARNATION: str,
    options.CREATED: _read_moment,
    options.LEASE: str,
    options.LEASE_UNTIL: _read_moment,
    "session_attached": _read_whole,
    "session_activity": _read_whole,
    "window_activity": _read_whole,
    "pane_pid": _read_whole,
    "pane_tty": str,
    "pane_dead": _is_one,
    "pane_dead_status": lambda value: _read_whole(value) if value else None,
    "pane_dead_signal": lambda value: signal_name(value) if value else None,
    "pane_in_mode": lambda value: _read_whole(value) > 0,
    "pane_input_off": _is_one,
    "pane_pipe": _is_one,
    "cursor_x": _read_whole,
    "cursor_y": _read_whole,
    "cursor_flag": _is_one,
    "alternate_on": _is_one,
    "pane_width": _read_size,
    "pane_height": _read_size,
    "history_size": _read_whole,
    "pid": _read_whole,
    options.SPEC: _read_spec,
    options.TAGS: lambda value: tuple(value.split()),
    options.ENDED: str,
    "version": str,
    options.FORMAT: _read_whole,
}
"""How each fact of a `Pane` is read, in their order."""

FIELDS = tuple(READERS)

FORMAT = "\t".join(map(field_format, FIELDS))
"""Only numbers, names of ours, a device path, a version and our ASCII JSON: nothing a program chose can hold the tab."""


ENDING_STATES = frozenset("RDZX")
"""The states, as /proc tells them, of a process that is on its way out: it runs its last instructions, or waits to be reaped."""

CHANGING = (
    options.ID,
    "pane_dead",
    "pane_pipe",
    "cursor_x",
    "cursor_y",
    "cursor_flag",
    "alternate_on",
    "pane_width",
    "pane_height",
    "history_size",
)
"""What changes while a program lives: of a session known before no more is asked, for half the time."""


class Pane(Value):
    """One session's facts, from one instant. Times are seconds of the wall clock; `spec` is what `launch.format_facts` wrote."""

    name: str
    id: str
    incarnation: str
    created: float
    lease: str
    lease_until: float
    attached: int
    person_active: int
    active: int
    pid: int
    tty: str
    dead: bool
    status: int | None
    signal: str | None
    in_mode: bool
    input_off: bool
    piped: bool
    x: int
    y: int
    cursor_visible: bool
    alternate: bool
    cols: int
    rows: int
    history: int
    server: int
    spec: dict[str, Any]
    tags: tuple[str, ...]
    ended: str
    version: str
    """The server's, as it tells it: `3.3a`."""
    format: int
    """That of the session's files and options."""

    @property
    def tmux(self) -> tuple[int, int] | None:
        """Its major and minor number, None if it has none."""
        return parse_version(self.version)

    @property
    def target(self) -> str:
        """How tmux is told exactly this session's pane."""
        return session_target(self.name)


def parse_pane(values: Sequence[str]) -> Pane | None:
    """A pane by the values of FIELDS; None if it is no session of ours."""
    if len(values) != len(FIELDS) or not values[1]:
        return None
    return Pane(*(read(value) for read, value in zip(READERS.values(), values, strict=True)))


def renew_pane(before: Pane, values: Sequence[str]) -> Pane | None:
    """A known session's facts with the values of CHANGING; None if it ended, is another one, or lost its journal's writer."""
    if values[:3] != [before.id, "0", "1"]:
        return None
    x, y, visible, alternate, cols, rows, history = [_read_whole(value) for value in values[3:]]
    cols, rows = min(cols, SIZE_MOST), min(rows, SIZE_MOST)
    return changed(
        before, x=x, y=y, cursor_visible=bool(visible), alternate=bool(alternate), cols=cols, rows=rows, history=history
    )


def read_pane(io: PaneIO, name: str, *, timeout: float = 8.0) -> Pane:
    """The facts of one session, or NotFound."""
    return require_pane(parse_with_status(io, io.look(name, FIELDS, timeout=timeout).values), name)


def read_pane_and_options(
    io: PaneIO, name: str, names: Sequence[str], before: Pane | None = None
) -> tuple[Pane, list[str]]:
    """The facts of one session with the values of these options, from one instant.

    With what was known of it `before` only the changes are asked for, and all if it is not that session any more.
    """
    values = io.look(name, (*names, *(CHANGING if before else FIELDS))).values
    pane = parse_facts(io, name, before, values[len(names) :])
    return (pane, values[: len(names)]) if pane else read_pane_and_options(io, name, names)


class NameOwner(Value):
    """Who has a name: whether its program has ended, and the session's id if it is one of ours."""

    dead: bool
    id: str


def list_names(io: PaneIO) -> dict[str, NameOwner]:
    """The names that are taken on the server."""
    rows = io.list_values(("pane_dead", options.ID, "session_name"))
    return {name: NameOwner(dead == "1", session_id) for dead, session_id, name in rows}


def list_panes(io: PaneIO) -> list[Pane]:
    """The facts of every session of ours, by name; hidden ones (`_...`) left out."""
    panes = _ask_statuses(io, _parse_panes(io), partial(_parse_panes, io))
    return sorted(
        (pane for pane in panes if pane and not pane.name.startswith("_")), key=lambda pane: natural_key(pane.name)
    )


def _parse_panes(io: PaneIO) -> list[Pane | None]:
    """The panes of the server; those that tmux tells the same of as the last time are the same values."""
    before = io.listed
    rows = list(map(tuple, io.list_values(FIELDS)))
    io.listed = {values: before[values] if values in before else parse_pane(values) for values in rows}
    return [io.listed[values] for values in rows]


def parse_facts(io: PaneIO, name: str, before: Pane | None, values: Sequence[str]) -> Pane | None:
    """A pane by the values of CHANGING, None if it is not any more what was known `before`; where nothing was, by those of
    FIELDS, or NotFound."""
    return renew_pane(before, values) if before else require_pane(parse_with_status(io, values), name)


def parse_with_status(io: PaneIO, values: Sequence[str]) -> Pane | None:
    """The pane by these values; a dead one's status is asked for as long as it can come."""
    pane = parse_pane(values)
    return (
        _ask_statuses(io, [pane], lambda: [parse_pane(io.look(pane.name, FIELDS).values) or pane])[0] if pane else None
    )


def _ask_statuses(io: PaneIO, panes: list[Pane | None], ask: Callable[[], list[Pane | None]]) -> list[Pane | None]:
    """The panes, asked for anew while a program's status is still to come.

    A pane is dead for tmux when its terminal is closed; the status comes when tmux reaps the process, some milliseconds
    later (longer on a busy machine), and 3.3a forgets it until it is nudged (measured). Once the process is gone, or if
    it sleeps on without a terminal, the last answer counts.
    """
    until = time.monotonic() + TIMING.tmux.status_seconds
    while ending := [pane.pid for pane in panes if _lacks_status(pane)]:
        io.nudge()
        to_come = any(row.state in ENDING_STATES for row in io.transport.processes(ending))
        panes = ask()
        if not to_come or time.monotonic() >= until:
            break
        time.sleep(TIMING.tmux.status_pause_seconds)
    return panes


def _lacks_status(pane: Pane | None) -> TypeGuard[Pane]:
    return bool(pane and pane.dead and pane.status is None and pane.signal is None)


def require_pane(pane: Pane | None, name: str) -> Pane:
    """The pane, or NotFound for what tmux answers with an empty line."""
    if pane is None:
        raise NotFound(f"no session {ascii(name)}", reason="no_session", hint="tmuxctl ls")
    return pane


def replaced_error(name: str) -> NotFound:
    """The error for a session whose name is another's by now."""
    return NotFound(f"session {name} has been replaced by another one", reason="replaced", hint="tmuxctl ls")
