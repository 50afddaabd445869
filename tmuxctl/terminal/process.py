"""A session's processes: found by descent, terminal, marker and control group, ended with certainty."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tmuxctl.errors import TmuxctlError
from tmuxctl.terminal import cgroup
from tmuxctl.terminal.server import Pane
from tmuxctl.transport.base import Process, Transport

POLL_SECONDS = 0.02

KILL_SECONDS = 3.0
"""How long processes are killed again and again, while new ones are found."""

MARKER = b"TMUXCTL_SESSION="
"""In the environment at its start of every process that a session started, unless somebody took it out."""

HOLDERS = r"""
for one in /proc/[0-9]*/fd/[012]; do [ "$one" -ef "$1" ] && printf '%s\n' "$one"; done 2>/dev/null; :
"""
"""The processes that have the terminal `$1` as standard input, output or error: `-ef` compares device and inode, so that a
terminal of the same name in a container is not taken for it."""

STRAYS = r"""
about() { cat "/proc/$1/sessionid" "/proc/$1/cgroup"; set -- $(ls -ldn "/proc/$1"); echo "$3"; }
{ like=$(about "$1"); shift
for one do
    [ -r "/proc/$one/environ" ] && [ "$(about "$one")" = "$like" ] || continue
    tr '\0' '\n' <"/proc/$one/environ" | grep -q '^TMUXCTL_SESSION=' || echo "$one"
done; } 2>/dev/null; :
"""
"""Of the processes `$2`.. those of the same login, control groups and user as `$1` that carry no session's marker."""


CARRIERS = r"""grep -azs '^TMUXCTL_SESSION=' /proc/[0-9]*/environ | tr '\0' '\n'; :"""
"""`/proc/PID/environ:TMUXCTL_SESSION=ID` for every process that carries a session's marker."""


class Ending(NamedTuple):
    """How many processes were ended, the pids of those that are still there, and `strays`: what may have been the
    session's and was left alone, because nothing proves it."""

    ended: int
    left: tuple[int, ...]
    strays: tuple[Process, ...] = ()


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


def belonging(transport: Transport, pane: Pane, folder: str = "") -> list[Process]:
    """Every process of a session that can be found: its tree, its terminal's session and those that hold that terminal,
    those that carry its marker, and where it has a control group of its own (`folder` tells), all in that."""
    table = transport.processes()
    root = _root(table, pane)
    found = {row.pid: row for row in tree(table, pane.pid)} if root else {}
    if root is not None:
        found |= {row.pid: row for row in table if row.session == root.session and root.session == root.pid}
        found |= {row.pid: row for row in _holders(transport, table, pane, root)}
    found |= {row.pid: row for row in transport.marked(pane.id)}
    members = set(cgroup.members(transport, folder, pane.id)) if folder else set()
    found |= {row.pid: row for row in table if row.pid in members}
    return [row for row in found.values() if row.state not in ("Z", "X")]


def _root(table: Sequence[Process], pane: Pane) -> Process | None:
    """The pane's first process while it lives: a pid alone could be another one's by now."""
    if pane.dead or not pane.pid:
        return None
    return next((row for row in table if row.pid == pane.pid and row.parent == pane.server), None)


def _holders(transport: Transport, table: Sequence[Process], pane: Pane, root: Process) -> list[Process]:
    """Those without a terminal of their own that have the session's as standard input, output or error.

    Asked before and after is whether the session's first process lives: as long as it does, nobody else's terminal can
    have got the same name.
    """
    with suppress(TmuxctlError):
        printed = transport.shell(HOLDERS, pane.tty)[1].decode(errors="replace")
        pids = {int(line.split("/")[2]) for line in printed.split()}
        pids -= {row.pid for row in table if row.tty not in (0, root.tty)}
        still = any(row.started == root.started for row in transport.processes([root.pid]))
        if pids and still:
            return [row for row in table if row.pid in pids and not _of_another(transport, row, pane.id)]
    return []


def _of_another(transport: Transport, row: Process, session_id: str) -> bool:
    """True for a process that carries the marker of another session."""
    with suppress(TmuxctlError, OSError):
        environment = transport.read(f"/proc/{row.pid}/environ").split(b"\0")
        return any(one.startswith(MARKER) and one != MARKER + session_id.encode() for one in environment)
    return True


def end_tree(transport: Transport, pane: Pane, folder: str = "", *, signal: str, grace: float) -> Ending:
    """Signal the session's processes, wait `grace` seconds, then KILL until none is left, for three seconds at most.

    Where the session has no control group of its own, what may have got away from all other ways to find it is told.
    """
    group = cgroup.path(transport, folder, pane.id) if folder else ""
    table = [] if group else transport.processes()
    ended = _end(transport, lambda: belonging(transport, pane, folder), group, signal, grace)
    root = _root(table, pane)
    return ended._replace(strays=tuple(_strays(transport, pane, root))) if root else ended


def end_marked(transport: Transport, session_id: str, folder: str = "", *, signal: str, grace: float) -> Ending:
    """The same for what is left of a session whose tmux server is gone."""
    group = cgroup.path(transport, folder, session_id) if folder else ""
    return _end(transport, lambda: remaining(transport, session_id, folder), group, signal, grace)


def remaining(transport: Transport, session_id: str, folder: str = "") -> list[Process]:
    """What is left of a session without a terminal: the processes with its marker, and those in its control group."""
    found = {row.pid: row for row in transport.marked(session_id)}
    if folder and (members := cgroup.members(transport, folder, session_id)):
        found |= {row.pid: row for row in transport.processes(members)}
    return [row for row in found.values() if row.state not in ("Z", "X")]


def carriers(transport: Transport) -> list[tuple[Process, str]]:
    """Every process that carries the marker of a session, of whichever server, with that session's id."""
    found = {}
    for line in transport.shell(CARRIERS)[1].decode(errors="replace").splitlines():
        place, _, session_id = line.partition(":" + MARKER.decode())
        if place.startswith("/proc/") and session_id:
            found[int(place.split("/")[2])] = session_id
    rows = transport.processes(list(found))
    return [(row, found[row.pid]) for row in rows if row.state not in ("Z", "X")]


def _strays(transport: Transport, pane: Pane, root: Process) -> list[Process]:
    """Processes that may be the session's, without its marker: started while it ran, left to whom the server itself was
    left, of the same user, control group and login as the server. A daemon that somebody started meanwhile looks the same,
    so they are told and not touched."""
    table = transport.processes()
    server = next((row for row in table if row.pid == pane.server), None)
    if server is None:
        return []
    late = [
        row
        for row in table
        if row.parent == server.parent and row.started >= root.started and row.state not in ("Z", "X")
    ]
    late = [row for row in late if row.pid != server.pid and not row.name.startswith("tmux")]
    if not late:
        return []
    with suppress(TmuxctlError):
        pids = transport.shell(STRAYS, *(str(row.pid) for row in (server, *late)))[1].decode().split()
        return [row for row in late if str(row.pid) in pids]
    return []


def _end(transport: Transport, find: Callable[[], list[Process]], group: str, signal: str, grace: float) -> Ending:
    first = find()
    seen = {(row.pid, row.started) for row in first}
    transport.signal(first, signal)
    if signal == "TERM":
        # what a closing terminal sends: an interactive shell ignores TERM and ends on this
        transport.signal(first, "HUP")
    transport.signal(first, "CONT")
    left = _wait(transport, first, grace)
    deadline = time.monotonic() + KILL_SECONDS
    while left := _still(transport, [*left, *find()]):
        if group:
            cgroup.kill(transport, group)
        # what stands still starts nothing new while the rest is looked for
        transport.signal(left, "STOP")
        left = _still(transport, [*left, *find()])
        seen |= {(row.pid, row.started) for row in left}
        transport.signal(left, "KILL")
        left = _wait(transport, left, 0.5)
        if time.monotonic() > deadline:
            break
    if group:
        cgroup.remove(transport, group)
    return Ending(len(seen) - len(left), tuple(row.pid for row in left))


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
