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
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import Process, Transport

MARKER = b"TMUXCTL_SESSION="
"""In the environment at its start of every process that a session started, unless a program removed it."""

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
    """How many processes were ended, the pids of those that are still there, and `leftovers`: what may have been the
    session's and was left alone, because nothing proves it."""

    ended: int
    left: tuple[int, ...]
    leftovers: tuple[Process, ...] = ()


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
    found: dict[str, dict[int, Process]] = {target.id: {} for target in targets}
    children = _group_by_parent(table)
    sessions = {root.session: session_id for session_id, root in roots.items() if root.session == root.pid}
    for session_id, root in roots.items():
        found[session_id] |= {row.pid: row for row in _list_descendants(children, root)}
    for row in table:
        if row.session in sessions:
            found[sessions[row.session]][row.pid] = row
    for session_id, pids in cgroup.list_members(transport, {target.id: target.folder for target in targets}).items():
        found[session_id] |= {pid: rows[pid] for pid in pids if pid in rows}
    for session_id, marked in _find_marked(transport, targets).items():
        found[session_id] |= {row.pid: row for row in marked}
    terminals = {target.pane.tty: target.id for target in targets if target.pane and target.id in roots}
    for session_id, holders in _find_tty_holders(transport, rows, terminals, roots, found).items():
        found[session_id] |= {row.pid: row for row in holders}
    protected = _find_protected(transport, targets, rows, children, roots)
    return {
        session_id: [
            row for row in rows.values() if row.lives and row.pid not in protected.get(session_id, protected[""])
        ]
        for session_id, rows in found.items()
    }


def _find_protected(
    transport: Transport,
    targets: Sequence[SessionTarget],
    rows: Mapping[int, Process],
    children: Mapping[int, Sequence[Process]],
    roots: Mapping[str, Process],
) -> dict[str, set[int]]:
    """The pids that must not be ended with a session, by its id (`""`: with any): the tmux server with all it runs but that
    very session, even where the server was started from inside it; this process, and those it was started by."""
    protected: set[int] = set()
    pid = transport.pid or 0
    while pid > 1 and pid in rows and pid not in protected:
        protected.add(pid)
        pid = rows[pid].parent
    for server in _find_servers(targets) & rows.keys():
        protected |= {row.pid for row in _list_descendants(children, rows[server])}
    this_process = {pid for pid in protected if pid == transport.pid}
    found = {"": protected}
    for session_id, root in roots.items():
        found[session_id] = protected - {row.pid for row in _list_descendants(children, root)} | this_process
    return found


def _find_servers(targets: Sequence[SessionTarget]) -> set[int]:
    """The pids of the tmux servers of these sessions."""
    panes = (target.pane for target in targets)
    return {pane.server for pane in panes if pane} | {target.server for target in targets if target.server}


def _group_by_parent(table: Iterable[Process]) -> dict[int, list[Process]]:
    children: dict[int, list[Process]] = {}
    for row in table:
        children.setdefault(row.parent, []).append(row)
    return children


def _list_descendants(children: Mapping[int, Sequence[Process]], root: Process) -> list[Process]:
    descendants = [root]
    for row in descendants:
        descendants.extend(children.get(row.pid, ()))
    return descendants


def _find_roots(rows: Mapping[int, Process], targets: Sequence[SessionTarget]) -> dict[str, Process]:
    """The first process of each session's pane while it lives, by the session's id: a pid alone could be another one's."""
    panes = {target.id: target.pane for target in targets if target.pane and not target.pane.dead}
    rooted = ((session_id, rows.get(pane.pid), pane.server) for session_id, pane in panes.items())
    return {session_id: root for session_id, root, server in rooted if root and root.parent == server}


def _find_marked(transport: Transport, targets: Sequence[SessionTarget]) -> SessionProcesses:
    if len(targets) == 1:
        return {targets[0].id: transport.marked(targets[0].id)}
    found: SessionProcesses = {target.id: [] for target in targets}
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
    """Processes without a terminal of their own that have a session's as standard input, output or error, by that session.

    The session's first process must live before and after: as long as it does, no other terminal can get the same name.
    """
    if not terminals:
        return {}
    candidates: dict[str, str] = {}
    with suppress(TmuxctlError):
        for line in transport.shell(LIST_STREAMS)[1].decode(errors="replace").splitlines():
            link, _, path = line.partition(" -> ")
            stream = link.rpartition("/proc/")[2]
            row = rows.get(int(pid)) if (pid := stream.partition("/")[0]).isdecimal() else None
            session_id = terminals.get(path, "")
            if row and session_id and row.pid not in found[session_id] and row.tty in (0, roots[session_id].tty):
                candidates[stream] = path
        holders: SessionProcesses = {}
        words = [word for stream, path in candidates.items() for word in (path, stream)]
        for stream in transport.shell(SELECT_TTY_HOLDERS, *words)[1].decode().split() if words else ():
            row, session_id = rows[int(stream.partition("/")[0])], terminals[candidates[stream]]
            if not _has_other_marker(transport, row, session_id):
                holders.setdefault(session_id, []).append(row)
        # a zombie has its terminal no longer, and tmux may have given its name away
        living = _select_living(transport, [roots[session_id] for session_id in holders])
        return {session_id: found for session_id, found in holders.items() if roots[session_id] in living}
    return {}


def _has_other_marker(transport: Transport, row: Process, session_id: str) -> bool:
    """True for a process that carries the marker of another session."""
    with suppress(TmuxctlError, OSError):
        environment = transport.read(f"/proc/{row.pid}/environ").split(b"\0")
        return any(variable.startswith(MARKER) and variable != MARKER + session_id.encode() for variable in environment)
    return True


def end_processes(
    transport: Transport, targets: Sequence[SessionTarget], *, signal: str, grace: float
) -> dict[str, Ending]:
    """Signal the processes of these sessions, wait `grace` seconds, then KILL until none is left, for three seconds at most;
    how each session's ended, by its id.

    What may have escaped from a session without a control group is reported as `leftovers` and not ended.
    """
    groups = cgroup.find_groups(transport, {target.id: target.folder for target in targets})
    before = transport.processes() if len(groups) < len(targets) else []
    first = find_processes(transport, targets)
    owners = {(row.pid, row.started): session_id for session_id, rows in first.items() for row in rows}
    living = [row for rows in first.values() for row in rows]
    transport.signal(living, signal)
    if signal == "TERM":
        # the signal of a closing terminal: an interactive shell ignores TERM and ends on this one
        transport.signal(_find_ignoring_term(transport, living), "HUP")
    transport.signal(living, "CONT")
    living = _wait_for_end(transport, living, grace / 2)
    if signal == "TERM":
        # only now: it would cut off what ends in an orderly way on TERM
        transport.signal(living, "HUP")
    living = _wait_for_end(transport, living, grace / 2)
    deadline = time.monotonic() + TIMING.session.kill_seconds
    while living := _select_living(transport, [*living, *_find_new(transport, targets, owners)]):
        session_ids = {owners[row.pid, row.started] for row in living}
        # a group that holds a protected process is left to the signals
        mixed = _find_mixed_groups(transport, targets)
        cgroup.kill_groups(transport, [groups[name] for name in session_ids - mixed if name in groups])
        # a stopped process starts nothing new while the rest is looked for
        transport.signal(living, "STOP")
        living = _select_living(transport, [*living, *_find_new(transport, targets, owners)])
        transport.signal(living, "KILL")
        living = _wait_for_end(transport, living, 0.5)
        if time.monotonic() > deadline:
            break
    # found again: a session that was starting may have made its group meanwhile
    made = cgroup.find_groups(transport, {target.id: target.folder for target in targets})
    cgroup.remove_groups(transport, list(made.values()))
    unkilled = {(row.pid, row.started): owners[row.pid, row.started] for row in living}
    leftovers = _find_leftovers(transport, before, [target for target in targets if target.id not in groups])
    endings = {}
    for target in targets:
        left = tuple(pid for (pid, _), session_id in unkilled.items() if session_id == target.id)
        ended = sum(session_id == target.id for session_id in owners.values()) - len(left)
        endings[target.id] = Ending(ended, left, tuple(leftovers.get(target.id, ())))
    return endings


def _find_mixed_groups(transport: Transport, targets: Sequence[SessionTarget]) -> set[str]:
    """The sessions whose groups hold a server, or this process."""
    protected = _find_servers(targets) | {transport.pid}
    members = cgroup.list_members(transport, {target.id: target.folder for target in targets})
    return {session_id for session_id, pids in members.items() if protected.intersection(pids)}


def _find_ignoring_term(transport: Transport, rows: Sequence[Process]) -> list[Process]:
    """Those that ignore TERM; all, where that cannot be asked."""
    with suppress(TmuxctlError):
        printed = transport.shell(READ_IGNORED_SIGNALS, *(str(row.pid) for row in rows))[1].decode().split()
        ignored = {int(pid): int(mask, 16) for pid, mask in zip(printed[::2], printed[1::2], strict=True)}
        if ignored:
            return [row for row in rows if ignored.get(row.pid, 0) >> (TERM - 1) & 1]
    return list(rows)


def _find_new(
    transport: Transport, targets: Sequence[SessionTarget], owners: dict[tuple[int, int], str]
) -> list[Process]:
    """The processes of the sessions by now; who owns each is added to `owners`."""
    found = find_processes(transport, targets)
    for session_id, rows in found.items():
        owners |= {(row.pid, row.started): session_id for row in rows}
    return [row for rows in found.values() for row in rows]


def find_all_marked(transport: Transport) -> list[tuple[Process, str]]:
    """Every process that carries the marker of a session, of whichever server, with that session's id."""
    session_ids = {}
    for line in transport.shell(LIST_MARKED)[1].split(b"\0"):
        if match := MARKED_LINE.fullmatch(line):
            session_ids[int(match[1])] = match[2].decode()
    rows = transport.processes(list(session_ids))
    return [(row, session_ids[row.pid]) for row in rows if row.lives]


def _find_leftovers(
    transport: Transport, before: Sequence[Process], targets: Sequence[SessionTarget]
) -> SessionProcesses:
    """Processes that may be these sessions', without their marker: started while one ran, with the server's own parent, of
    the same user, control group and login as the server. A daemon that a user started meanwhile looks the same, so they are
    reported and not touched, each with the session that was started last before it.

    `before` is the process table from when the sessions still ran.
    """
    servers = {target.pane.server for target in targets if target.pane}
    server = next((row for row in before if row.pid in servers), None)
    roots = _find_roots({row.pid: row for row in before}, targets)
    if server is None or not roots:
        return {}
    first = min(root.started for root in roots.values())
    later = (row for row in transport.processes() if row.lives and row.started >= first)
    candidates = [row for row in later if row.parent == server.parent and not row.name.startswith("tmux")]
    candidates = [row for row in candidates if row.pid != server.pid]
    leftovers: SessionProcesses = {}
    with suppress(TmuxctlError):
        asked = [str(row.pid) for row in (server, *candidates)]
        pids = transport.shell(SELECT_LEFTOVERS, *asked)[1].decode().split() if candidates else ()
        for row in candidates:
            if str(row.pid) in pids:
                newest = max((root.started, name) for name, root in roots.items() if root.started <= row.started)
                leftovers.setdefault(newest[1], []).append(row)
    return leftovers


def _wait_for_end(transport: Transport, rows: list[Process], seconds: float) -> list[Process]:
    deadline = time.monotonic() + seconds
    while (rows := _select_living(transport, rows)) and time.monotonic() < deadline:
        time.sleep(TIMING.session.kill_pause_seconds)
    return rows


def _select_living(transport: Transport, rows: list[Process]) -> list[Process]:
    """Those that are the same processes still: pid and start time, and no zombie."""
    if not rows:
        return []
    now = {(row.pid, row.started): row for row in transport.processes([row.pid for row in rows])}
    alive = {(row.pid, row.started) for row in now.values() if row.lives}
    return list({row.pid: row for row in rows if (row.pid, row.started) in alive}.values())
