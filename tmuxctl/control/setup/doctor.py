"""The checks of what tmuxctl needs, each with what to do if it fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tmuxctl.control.sessions import capacity, finding, records
from tmuxctl.errors import Failed, TmuxctlError
from tmuxctl.operations import current
from tmuxctl.results import Check, Doctor
from tmuxctl.terminal.processes import process
from tmuxctl.terminal.tmux import layout, options
from tmuxctl.transport import versions

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

OF_THIS_PROCESS = ("python", "settings", "terminal")
"""Checks of tmuxctl itself and of its caller's terminal, which say nothing of another machine."""

WITHOUT_SERVER = ("python", "tmux", "settings", "state folder", "room", "terminal")
"""Checks that ask no tmux server."""


def examine(machine: Machine, *, fix: bool = False) -> Doctor:
    """Every check, of another machine those that tell of it. One that cannot be made counts as failed, with its reason; `fix` ends
    what ended sessions left behind."""
    if fix:
        current().demand("kill", "doctor --fix")
    examinations: Mapping[str, Callable[[Machine], Iterator[Check]]] = {
        "python": _check_python,
        "tmux": _check_tmux,
        "settings": _check_settings,
        "state folder": _check_folders,
        "server": _check_server,
        "sessions": _check_sessions,
        "room": _check_room,
        "memory": _check_memory,
        "orphans": lambda machine: _check_orphans(machine, fix),
        "process table": _check_process_table,
        "terminal": _check_terminal,
    }
    checks: list[Check] = []
    causes: dict[str, str] = {}
    silent = False
    for name, examination in examinations.items():
        if machine.address and name in OF_THIS_PROCESS:
            continue
        if silent and name not in WITHOUT_SERVER:
            checks.append(Check(name, None, "unknown: tmux does not answer"))
            continue
        found, error = _run_check(machine, name, examination)
        if name == "tmux" and found[-1].ok is False:
            causes["no_tmux"] = name
        if error and (first := causes.setdefault(_cause_of(error), name)) != name:
            found[-1] = Check(name, None, f"not checked: see {first}")
        checks += found
        silent = silent or (error is not None and error.reason == "backend_timeout")
    return Doctor(all(check.ok is not False for check in checks), tuple(checks))


def _cause_of(error: TmuxctlError) -> str:
    """A text that is equal for two errors of the same cause."""
    return error.reason if error.reason == "no_tmux" else error.message


def _run_check(
    machine: Machine, name: str, examination: Callable[[Machine], Iterator[Check]]
) -> tuple[list[Check], TmuxctlError | None]:
    """The checks that an examination made, and the error that ended it, if one did."""
    found: list[Check] = []
    try:
        for check in examination(machine):
            found.append(check)
    except TmuxctlError as error:
        return [*found, Check(name, False, error.message, error.hint or None)], error
    return found, None


def _check_python(_machine: Machine) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", sys.version_info >= (3, 11), version, "tmuxctl needs Python 3.11 or later")


def _check_tmux(machine: Machine) -> Iterator[Check]:
    status, printed = machine.transport.shell('"$1" -V', machine.settings.tmux_binary)
    text = printed.decode(errors="replace").strip()
    name, _, version = text.partition(" ")
    if status or name != "tmux":
        yield Check("tmux", False, text or "not found", "apt install tmux, or brew install tmux")
        return
    ok, hint = _judge_version(version)
    yield Check("tmux", ok, text, hint)


def _judge_version(version: str) -> tuple[bool | None, str | None]:
    """Whether a version of tmux is good, None where that was never tried; and what to do about it."""
    number = versions.parse_version(version)
    if number and number < versions.OLDEST:
        return False, "tmuxctl needs tmux {}.{} or later".format(*versions.OLDEST)
    if versions.is_tried(version):
        return True, None
    tried = f"{versions.TRIED[0]} to {versions.TRIED[-1]}"
    return (
        None,
        f"tmuxctl was tried with {tried}, not with this version; try it: make nightly SUITES=tmux TMUX_BINARIES=PATH",
    )


def _check_settings(machine: Machine) -> Iterator[Check]:
    for name in machine.settings.unused():
        yield Check("settings", None, f"the setting {name} has no effect any more", f"tmuxctl config unset {name}")


def _check_folders(machine: Machine) -> Iterator[Check]:
    yield Check("state folder", True, machine.transport.home)


def _check_server(machine: Machine) -> Iterator[Check]:
    command = ("display-message", "-p", f"#{{pid}} #{{version}} #{{{options.CONFIG}}} #{{socket_path}}")
    try:
        reply = machine.transport.run([command]).decode(errors="replace").strip()
    except TmuxctlError as error:
        if error.reason != "no_server":
            raise
        yield Check("server", None, "not running; the first session starts it")
        return
    pid, version, ours, socket = (reply.split(" ", 3) + [""] * 4)[:4]
    found = f"pid {pid}, tmux {version}, socket {socket}"
    if not ours:
        hint = "it was started without tmuxctl: end it when its sessions are done (tmux -L tmuxctl kill-server)"
        yield Check("server", False, found, hint)
        return
    # the server's version may be another than that of the installed tmux
    ok, advice = _judge_version(version)
    yield Check("server", ok, found, advice)


def _check_sessions(machine: Machine) -> Iterator[Check]:
    panes = finding.list_panes(machine)
    living = [pane for pane in panes if not pane.dead]
    limit = machine.settings.limits_sessions
    few = len(living) < 0.8 * limit
    yield Check(
        "sessions",
        few,
        f"{len(living)} of {limit}, {len(panes) - len(living)} ended",
        None if few else "end some: tmuxctl kill NAME",
    )
    lost = records.list_lost(machine, panes)
    if lost:
        yield Check(
            "lost sessions",
            None,
            ", ".join(one.name for one in lost),
            "bring them back: tmuxctl restore; their output is kept: tmuxctl log NAME",
        )
    silent = [pane.name for pane in living if not pane.piped]
    if silent:
        yield Check(
            "journals", False, "not written: " + ", ".join(silent), "is the disk full? df -h " + machine.transport.home
        )


def _check_room(machine: Machine) -> Iterator[Check]:
    home = machine.transport.home
    room = machine.transport.room(home, records.server_pid(machine))
    try:
        capacity.check_room(room, home)
    except Failed as error:
        yield Check("room", False, error.message, error.hint)
        return
    parts = [f"{room.free >> 20} MiB free"] if room.free is not None else []
    quotas = (("pseudoterminals", room.ptys), ("the server's descriptors", room.descriptors))
    parts += [f"{what} {used.used} of {used.most}" for what, used in quotas if used]
    yield Check("room", True, ", ".join(parts) or "not available here")


ITSELF, EACH = 64 << 20, 1 << 20
"""The bytes a server may have for itself, and for each session's screens, beyond what it keeps of what scrolled away. It has
2 MB after thousands of turns of ten sessions (bench/soak.py); a flood, or a capture of a long history, may leave tens more."""

RESIDENT = r"""
sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null | grep . || ps -o rss= -p "$1"
"""


def _check_memory(machine: Machine) -> Iterator[Check]:
    """Whether the server has no more memory than its sessions explain. tmux keeps some of what clients ask for ever, such as
    each `if-shell` and, before 3.6, each screen a control client asks for; only a new server has less."""
    pid = records.server_pid(machine)
    if pid is None:
        yield Check("memory", None, "no server")
        return
    printed = machine.transport.run([("list-panes", "-a", "-F", "#{history_bytes}")]).split()
    history = sum(int(word) for word in printed)
    status, kilobytes = machine.transport.shell(RESIDENT, str(pid))
    if status or not kilobytes.strip().isdigit():
        yield Check("memory", None, "not available here")
        return
    resident = int(kilobytes) << 10
    text = f"the server has {resident / (1 << 20):.1f} MiB, {history / (1 << 20):.1f} MiB of them scrollback"
    # `history_bytes` does not count what malloc(3) adds to each row
    fine = resident <= ITSELF + EACH * len(printed) + 2 * history
    hint = f"a new server is small; when no program is needed any more: kill {pid}, then tmuxctl restore"
    yield Check("memory", fine, text, None if fine else hint)


def _check_orphans(machine: Machine, fix: bool) -> Iterator[Check]:
    """Processes that carry the mark of a session of this server that tmux does not know any more."""
    home = machine.transport.home
    living = {pane.id for pane in finding.list_panes(machine)}
    gone = {
        name: f"{home}/{place}/{name}"
        for place in (layout.SESSIONS, layout.ENDED_SESSIONS)
        for name in machine.transport.files(f"{home}/{place}")
    }
    left = [
        (row, session_id)
        for row, session_id in process.find_all_marked(machine.transport)
        if session_id in gone.keys() - living
    ]
    if not left:
        yield Check("orphans", True, "none")
        return
    names = ", ".join(f"{row.pid} ({row.name})" for row, _ in left[:20])
    if not fix:
        yield Check(
            "orphans",
            False,
            f"processes of sessions that are gone: {names}",
            "end them: tmuxctl doctor --fix",
        )
        return
    targets = [process.SessionTarget(one, gone[one]) for one in {one for _, one in left}]
    ends = process.end_processes(machine.transport, targets, signal="TERM", grace=2.0).values()
    still = [str(pid) for end in ends for pid in end.left]
    yield Check("orphans", not still, f"ended: {names}", f"could not be ended: {', '.join(still)}" if still else None)


def _check_process_table(machine: Machine) -> Iterator[Check]:
    panes = [pane for pane in finding.list_panes(machine) if not pane.dead][:1]
    where = None if machine.transport.shell("[ -r /proc/self/stat ]")[0] else "/proc"
    if not panes or where is None:
        yield Check("process table", True if where else None, where or "ps only: less is known about programs")
        return
    seen = bool(machine.transport.processes([panes[0].pid]))
    yield Check("process table", seen, where)


def _check_terminal(_machine: Machine) -> Iterator[Check]:
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    utf8 = "utf" in locale.lower()
    yield Check("locale", utf8 or None, locale or "not set", None if utf8 else "for attach: export LANG=C.UTF-8")
    yield from _check_inside_tmux()


def _check_inside_tmux() -> Iterator[Check]:
    """Whether this runs in a pane of a tmux server, and what that means."""
    server, _, _ = os.environ.get("TMUX", "").partition(",")
    pane = os.environ.get("TMUX_PANE", "")
    if not server:
        yield Check("inside tmux", None, "no")
        return
    socket = os.path.basename(server)
    prefix = "tmux:" if socket == "default" else f"tmux@{socket}:"
    told = f"yes: pane {pane} of server {socket}. tmuxctl's sessions are on a server of their own; attach opens tmux inside tmux"
    yield Check(
        "inside tmux",
        None,
        told,
        f"to see the panes of this server: tmuxctl ls --all-sockets; tmuxctl screen {prefix}{pane}",
    )
