"""A session's processes: found by descent, terminal, marker and control group, ended with certainty."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from tmuxctl.errors import TmuxctlError
from tmuxctl.terminal.processes import cgroup
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Process, Transport

POLL_SECONDS = 0.02

KILL_SECONDS = 3.0
"""How long processes are killed again and again, while new ones are found."""

MARKER = b"TMUXCTL_SESSION="
"""In the environment at its start of every process that a session started, unless somebody took it out."""

LIST_STREAMS = r"""ls -ln /proc/[0-9]*/fd/[012] 2>/dev/null; :"""
"""The standard input, output and error of every process, as links: `... /proc/PID/fd/0 -> /dev/pts/3`."""

SELECT_TTY_HOLDERS = r"""
terminal=
for one do
    case $one in /dev/*) terminal=$one ;; *) [ "/proc/$one" -ef "$terminal" ] && printf '%s\n' "$one" ;; esac
done; :
"""
"""Of `TERMINAL PID/fd/N .. TERMINAL ..` those that are that terminal: `-ef` compares device and inode, so that one of the
same name in a container is not taken for it."""

SELECT_LEFTOVERS = r"""
about() { cat "/proc/$1/sessionid" "/proc/$1/cgroup"; set -- $(ls -ldn "/proc/$1"); echo "$3"; }
{ like=$(about "$1"); shift
for one do
    [ -r "/proc/$one/environ" ] && [ "$(about "$one")" = "$like" ] || continue
    tr '\0' '\n' <"/proc/$one/environ" | grep -q '^TMUXCTL_SESSION=' || echo "$one"
done; } 2>/dev/null; :
"""
"""Of the processes `$2`.. those of the same login, control groups and user as `$1` that carry no session's marker."""


READ_IGNORED_SIGNALS = r"""
for one do
    while read -r name mask; do case $name in SigIgn:) printf '%s %s\n' "$one" "$mask"; break ;; esac; done <"/proc/$one/status"
done 2>/dev/null; :
"""
"""`PID MASK` for each process: the signals it ignores (proc(5), SigIgn)."""

TERM = 15

LIST_MARKED = r"""grep -azs '^TMUXCTL_SESSION=' /proc/[0-9]*/environ; :"""
MARKED_LINE = re.compile(rb"/proc/(\d+)/environ:TMUXCTL_SESSION=([0-9a-f-]{36})")
"""`/proc/PID/environ:TMUXCTL_SESSION=ID`, each ended by a NUL, for every process that carries a session's marker. What a
program put into its own variables may look like another's line, but never stand between two NULs as one."""


class Ending(NamedTuple):
    """How many processes were ended, the pids of those that are still there, and `strays`: what may have been the
    session's and was left alone, because nothing proves it."""

    ended: int
    left: tuple[int, ...]
    strays: tuple[Process, ...] = ()


def find_tree(table: Iterable[Process], root: int) -> list[Process]:
    """A process and all its descendants."""
    table = list(table)
    first = next((row for row in table if row.pid == root), None)
    return _list_descendants(_group_by_parent(table), first) if first else []


class SessionTarget(NamedTuple):
    """A session whose processes are meant: its id and folder, and its pane while tmux has one."""

    id: str
    folder: str
    pane: Pane | None = None
    server: int | None = None
    """The server of the others, where this one has no pane any more."""


SessionProcesses = dict[str, list[Process]]
"""Processes by the id of the session they belong to."""


def find_processes(transport: Transport, targets: Sequence[SessionTarget]) -> SessionProcesses:
    """Every process of these sessions that can be found: its tree, its terminal's session and those that hold that terminal,
    those that carry its marker, and where it has a control group, all in that. One look at the machine serves all."""
    table = transport.processes()
    rows = {row.pid: row for row in table}
    roots = _find_roots(rows, targets)
    found: dict[str, dict[int, Process]] = {one.id: {} for one in targets}
    children = _group_by_parent(table)
    sessions = {root.session: name for name, root in roots.items() if root.session == root.pid}
    for name, root in roots.items():
        found[name] |= {row.pid: row for row in _list_descendants(children, root)}
    for row in table:
        if row.session in sessions:
            found[sessions[row.session]][row.pid] = row
    for name, pids in cgroup.list_members(transport, {one.id: one.folder for one in targets}).items():
        found[name] |= {pid: rows[pid] for pid in pids if pid in rows}
    for name, marked in _find_marked(transport, targets).items():
        found[name] |= {row.pid: row for row in marked}
    terminals = {one.pane.tty: one.id for one in targets if one.pane and one.id in roots}
    for name, held in _find_tty_holders(transport, rows, terminals, roots, found).items():
        found[name] |= {row.pid: row for row in held}
    spared = _find_protected(transport, targets, rows, children, roots)
    return {
        name: [
            row for row in some.values() if row.state not in ("Z", "X") and row.pid not in spared.get(name, spared[""])
        ]
        for name, some in found.items()
    }


def _find_protected(
    transport: Transport,
    targets: Sequence[SessionTarget],
    rows: Mapping[int, Process],
    children: Mapping[int, Sequence[Process]],
    roots: Mapping[str, Process],
) -> dict[str, set[int]]:
    """What is nobody's to end, by the session (`""`: any): the tmux server with all it runs but that very session, even
    where the server was started from inside it; this process, and those it was started by."""
    ours: set[int] = set()
    pid = transport.pid or 0
    while pid > 1 and pid in rows and pid not in ours:
        ours.add(pid)
        pid = rows[pid].parent
    servers = {one.pane.server for one in targets if one.pane} | {one.server for one in targets if one.server}
    for server in servers & rows.keys():
        ours |= {row.pid for row in _list_descendants(children, rows[server])}
    own = {name: {row.pid for row in _list_descendants(children, root)} for name, root in roots.items()}
    mine = {pid for pid in ours if pid == transport.pid}
    return {"": ours} | {name: ours - pids | mine for name, pids in own.items()}


def _group_by_parent(table: Iterable[Process]) -> dict[int, list[Process]]:
    children: dict[int, list[Process]] = {}
    for row in table:
        children.setdefault(row.parent, []).append(row)
    return children


def _list_descendants(children: Mapping[int, Sequence[Process]], root: Process) -> list[Process]:
    found = [root]
    for row in found:
        found.extend(children.get(row.pid, ()))
    return found


def _find_roots(rows: Mapping[int, Process], targets: Sequence[SessionTarget]) -> dict[str, Process]:
    """The first process of each session's pane while it lives, by the session's id: a pid alone could be another one's."""
    panes = {one.id: one.pane for one in targets if one.pane and not one.pane.dead and one.pane.pid in rows}
    return {name: rows[pane.pid] for name, pane in panes.items() if rows[pane.pid].parent == pane.server}


def _find_marked(transport: Transport, targets: Sequence[SessionTarget]) -> SessionProcesses:
    if len(targets) == 1:
        return {targets[0].id: transport.marked(targets[0].id)}
    found: SessionProcesses = {one.id: [] for one in targets}
    for row, session_id in find_all_marked(transport):
        if session_id in found:
            found[session_id].append(row)
    return found


def _find_tty_holders(
    transport: Transport,
    rows: Mapping[int, Process],
    terminals: Mapping[str, str],
    roots: Mapping[str, Process],
    found: Mapping[str, Mapping[int, Process]],
) -> SessionProcesses:
    """Those without a terminal of their own that have a session's as standard input, output or error, by that session.

    Asked before and after is whether the session's first process lives: as long as it does, nobody else's terminal can
    have got the same name.
    """
    if not terminals:
        return {}
    asked: list[str] = []
    with suppress(TmuxctlError):
        for line in transport.shell(LIST_STREAMS)[1].decode(errors="replace").splitlines():
            link, _, path = line.partition(" -> ")
            place = link.rpartition("/proc/")[2]
            row = rows.get(int(pid)) if (pid := place.partition("/")[0]).isdecimal() else None
            name = terminals.get(path, "")
            if row and name and row.pid not in found[name] and row.tty in (0, roots[name].tty):
                asked += [path, place]
        held: SessionProcesses = {}
        for place in transport.shell(SELECT_TTY_HOLDERS, *asked)[1].decode().split() if asked else ():
            row = rows[int(place.partition("/")[0])]
            name = next(terminals[path] for path, one in zip(asked[::2], asked[1::2], strict=True) if one == place)
            if not _has_other_marker(transport, row, name):
                held.setdefault(name, []).append(row)
        still = {(row.pid, row.started) for row in transport.processes([roots[name].pid for name in held])}
        return {name: some for name, some in held.items() if (roots[name].pid, roots[name].started) in still}
    return {}


def _has_other_marker(transport: Transport, row: Process, session_id: str) -> bool:
    """True for a process that carries the marker of another session."""
    with suppress(TmuxctlError, OSError):
        environment = transport.read(f"/proc/{row.pid}/environ").split(b"\0")
        return any(one.startswith(MARKER) and one != MARKER + session_id.encode() for one in environment)
    return True


def end_processes(
    transport: Transport, targets: Sequence[SessionTarget], *, signal: str, grace: float
) -> dict[str, Ending]:
    """Signal the processes of these sessions, wait `grace` seconds, then KILL until none is left, for three seconds at most;
    how each session's ended, by its id.

    What may have got away from a session without a control group is told, and left alone.
    """
    groups = cgroup.find_groups(transport, {one.id: one.folder for one in targets})
    table = transport.processes() if len(groups) < len(targets) else []
    first = find_processes(transport, targets)
    owner = {(row.pid, row.started): name for name, rows in first.items() for row in rows}
    left = [row for rows in first.values() for row in rows]
    transport.signal(left, signal)
    if signal == "TERM":
        # what a closing terminal sends: an interactive shell ignores TERM and ends on this
        transport.signal(_find_ignoring_term(transport, left), "HUP")
    transport.signal(left, "CONT")
    left = _wait_for_end(transport, left, grace / 2)
    if signal == "TERM":
        # only now: it would cut off what ends in an orderly way on TERM
        transport.signal(left, "HUP")
    left = _wait_for_end(transport, left, grace / 2)
    deadline = time.monotonic() + KILL_SECONDS
    while left := _select_living(transport, [*left, *_find_new(transport, targets, owner)]):
        names = {owner[row.pid, row.started] for row in left}
        # one that holds what is not to be ended is left to the signals
        mixed = _find_mixed_groups(transport, targets)
        cgroup.kill_groups(transport, [groups[name] for name in names if name in groups and name not in mixed])
        # what stands still starts nothing new while the rest is looked for
        transport.signal(left, "STOP")
        left = _select_living(transport, [*left, *_find_new(transport, targets, owner)])
        transport.signal(left, "KILL")
        left = _wait_for_end(transport, left, 0.5)
        if time.monotonic() > deadline:
            break
    cgroup.remove_groups(transport, list(groups.values()))
    escaped = {(row.pid, row.started): owner[row.pid, row.started] for row in left}
    strays = _find_leftovers(transport, table, [one for one in targets if one.id not in groups])
    return {
        one.id: Ending(
            sum(name == one.id for name in owner.values()) - sum(name == one.id for name in escaped.values()),
            tuple(pid for (pid, _), name in escaped.items() if name == one.id),
            tuple(strays.get(one.id, ())),
        )
        for one in targets
    }


def _find_mixed_groups(transport: Transport, targets: Sequence[SessionTarget]) -> set[str]:
    """The sessions whose groups hold a server, or this process."""
    kept = {one.pane.server for one in targets if one.pane} | {one.server for one in targets} | {transport.pid}
    members = cgroup.list_members(transport, {one.id: one.folder for one in targets})
    return {name for name, pids in members.items() if kept.intersection(pids)}


def _find_ignoring_term(transport: Transport, rows: Sequence[Process]) -> list[Process]:
    """Those that ignore TERM; all, where that cannot be asked."""
    with suppress(TmuxctlError):
        printed = transport.shell(READ_IGNORED_SIGNALS, *(str(row.pid) for row in rows))[1].decode().split()
        ignored = {int(pid): int(mask, 16) for pid, mask in zip(printed[::2], printed[1::2], strict=True)}
        if ignored:
            return [row for row in rows if ignored.get(row.pid, 0) >> (TERM - 1) & 1]
    return list(rows)


def _find_new(
    transport: Transport, targets: Sequence[SessionTarget], owner: dict[tuple[int, int], str]
) -> list[Process]:
    """What there is of the sessions now, written down in `owner`."""
    found = find_processes(transport, targets)
    for name, rows in found.items():
        owner |= {(row.pid, row.started): name for row in rows}
    return [row for rows in found.values() for row in rows]


def find_all_marked(transport: Transport) -> list[tuple[Process, str]]:
    """Every process that carries the marker of a session, of whichever server, with that session's id."""
    found = {}
    for line in transport.shell(LIST_MARKED)[1].split(b"\0"):
        if told := MARKED_LINE.fullmatch(line):
            found[int(told[1])] = told[2].decode()
    rows = transport.processes(list(found))
    return [(row, found[row.pid]) for row in rows if row.state not in ("Z", "X")]


def _find_leftovers(
    transport: Transport, before: Sequence[Process], targets: Sequence[SessionTarget]
) -> SessionProcesses:
    """Processes that may be these sessions', without their marker: started while one ran, left to whom the server itself was
    left, of the same user, control group and login as the server. A daemon that somebody started meanwhile looks the same,
    so they are told and not touched; each of the session that was started last before it.

    `before` is the process table from when the sessions still ran.
    """
    servers = {one.pane.server for one in targets if one.pane}
    server = next((row for row in before if row.pid in servers), None)
    roots = _find_roots({row.pid: row for row in before}, targets)
    if server is None or not roots:
        return {}
    first = min(root.started for root in roots.values())
    late = [
        row
        for row in transport.processes()
        if row.parent == server.parent and row.started >= first and row.state not in ("Z", "X")
    ]
    late = [row for row in late if row.pid != server.pid and not row.name.startswith("tmux")]
    found: SessionProcesses = {}
    with suppress(TmuxctlError):
        pids = (
            transport.shell(SELECT_LEFTOVERS, *(str(row.pid) for row in (server, *late)))[1].decode().split()
            if late
            else ()
        )
        for row in late:
            if str(row.pid) in pids:
                name = max((one.started, name) for name, one in roots.items() if one.started <= row.started)[1]
                found.setdefault(name, []).append(row)
    return found


def _wait_for_end(transport: Transport, rows: list[Process], seconds: float) -> list[Process]:
    deadline = time.monotonic() + seconds
    while (rows := _select_living(transport, rows)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return rows


def _select_living(transport: Transport, rows: list[Process]) -> list[Process]:
    """Those that are the same processes still: pid and start time, and no zombie."""
    if not rows:
        return []
    now = {(row.pid, row.started): row for row in transport.processes([row.pid for row in rows])}
    alive = {(row.pid, row.started) for row in now.values() if row.state not in ("Z", "X")}
    return list({row.pid: row for row in rows if (row.pid, row.started) in alive}.values())
