"""A session's processes: found by descent, terminal and marker, ended with certainty."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from tmuxctl.terminal.server import Pane
from tmuxctl.transport.base import Process, Transport

POLL_SECONDS = 0.02


def tree(table: Iterable[Process], root: int) -> list[Process]:
    """A process and all its descendants."""
    children: dict[int, list[Process]] = {}
    found: list[Process] = []
    for row in table:
        children.setdefault(row.parent, []).append(row)
        if row.pid == root:
            found.append(row)
    for row in found:
        found.extend(children.get(row.pid, ()))
    return found


def belonging(transport: Transport, pane: Pane) -> list[Process]:
    """Every process of a session that can be found: its tree, its terminal's session, and those that carry its marker."""
    table = transport.processes()
    root = next((row for row in table if row.pid == pane.pid), None)
    found = {row.pid: row for row in tree(table, pane.pid)} if pane.pid and not pane.dead else {}
    if root is not None and not pane.dead:
        found |= {row.pid: row for row in table if row.session == root.session and root.session == root.pid}
    found |= {row.pid: row for row in transport.marked(pane.id)}
    return [row for row in found.values() if row.state not in ("Z", "X")]


def end_tree(transport: Transport, pane: Pane, *, signal: str, grace: float) -> tuple[int, list[int]]:
    """Signal the session's processes, wait `grace` seconds, then KILL until none is left, for three seconds at most.

    How many were ended, and the pids of those that are still there.
    """
    return _end(transport, lambda: belonging(transport, pane), signal, grace)


def end_marked(transport: Transport, session_id: str, *, signal: str, grace: float) -> tuple[int, list[int]]:
    """The same for what is left of a session whose tmux server is gone: the processes that carry its marker."""
    return _end(transport, lambda: transport.marked(session_id), signal, grace)


def _end(transport: Transport, find: Callable[[], list[Process]], signal: str, grace: float) -> tuple[int, list[int]]:
    first = find()
    seen = {(row.pid, row.started) for row in first}
    transport.signal(first, signal)
    if signal == "TERM":
        # what a closing terminal sends: an interactive shell ignores TERM and ends on this
        transport.signal(first, "HUP")
    transport.signal(first, "CONT")
    left = _wait(transport, first, grace)
    deadline = time.monotonic() + 3.0
    while left := _still(transport, [*left, *find()]):
        seen |= {(row.pid, row.started) for row in left}
        transport.signal(left, "KILL")
        left = _wait(transport, left, 0.5)
        if time.monotonic() > deadline:
            break
    return len(seen) - len(left), [row.pid for row in left]


def _wait(transport: Transport, rows: list[Process], seconds: float) -> list[Process]:
    deadline = time.monotonic() + seconds
    while (rows := _still(transport, rows)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return rows


def _still(transport: Transport, rows: list[Process]) -> list[Process]:
    """Those that are the same processes still: pid and start time, and no zombie."""
    if not rows:
        return []
    now = {(row.pid, row.started): row for row in transport.processes([row.pid for row in rows])}
    alive = {(row.pid, row.started) for row in now.values() if row.state not in ("Z", "X")}
    return list({row.pid: row for row in rows if (row.pid, row.started) in alive}.values())
