"""Ending sessions: the whole process tree, verified; what stays readable afterwards, and removing that too."""

from __future__ import annotations

import signal as signals
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tmuxctl.control.lifecycle.reach import by_machine, reach
from tmuxctl.control.sessions import finding, records, summaries
from tmuxctl.errors import Exited, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import SessionSpec, parse_size
from tmuxctl.operations import current
from tmuxctl.results import End, Killed, Pruned, Stray, Sync, Synced
from tmuxctl.terminal.processes import cgroup, process
from tmuxctl.terminal.processes.process import Ending, SessionTarget
from tmuxctl.terminal.tmux import layout, options, server
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Command, Guard, GuardRefused
from tmuxctl.untrusted import NewerFormat, to_record
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.model import Session, SessionSpec

AT_ONCE = 50
"""How many sessions tmux is told to end in one list, which has to fit into one message."""


def kill(
    machine: Machine, names: Sequence[str], *, everything: bool, signal: str, grace: float, force: bool = False
) -> Killed:
    """End sessions by name, or all. An unknown name is an error before anything is ended, and so is a pane of another tmux
    without `force`, with which plugins also remove what they would keep."""
    word = signal.upper().removeprefix("SIG")
    if f"SIG{word}" not in signals.Signals.__members__:
        raise Usage(
            f"{ascii(signal[:20])} is not a valid signal", reason="bad_signal", hint="TERM, INT, HUP, KILL, ..."
        )
    if everything == bool(names):
        raise Usage("name the sessions to kill, or give --all", reason="missing", hint="tmuxctl ls")
    elsewhere: dict[Machine, list[str]] = {}
    if everything:
        panes = finding.list_panes(machine)
        meant = {machine: _Meant(panes, records.list_lost(machine, panes), [])}
    else:
        try:
            places = by_machine(machine, names)
            elsewhere = {place: there for place, there in places.items() if place.remote is not None}
            meant = {place: _find_named(place, there, force) for place, there in places.items() if place.remote is None}
            _find_elsewhere(elsewhere)
        except TmuxctlError as error:
            error.message += "; nothing was killed" if len(names) > 1 else ""
            raise
    for place, found in meant.items():
        _check_readable(place, found.lost)
    ended: list[End] = []
    for place, found in meant.items():
        there = end_sessions(place, found.panes, signal=word, grace=grace, force=force)
        there += [_end_foreign(other, pane, word, grace) for other, pane in found.foreign]
        there += end_lost(place, found.lost, signal=word, grace=grace, force=force)
        ended += [changed(one, session=place.address_of(one.session)) for one in there]
    for place, called in elsewhere.items():
        wanted = {"session": called, "signal": signal, "grace": grace, "force": force}
        assert place.remote
        ended += place.remote.call("kill", wanted, address=place.address).killed
    return Killed(tuple(ended))


def _find_elsewhere(places: Mapping[Machine, Sequence[str]]) -> None:
    """Raise for a session that is not there, before anything is ended; of a single one its machine tells that itself."""
    for place, names in places.items():
        for name in names if len(places) > 1 or len(names) > 1 else ():
            assert place.remote
            place.remote.call("show", {"session": name}, name, address=place.address)


class _Meant(NamedTuple):
    """What of one machine is to be ended: sessions that run, lost ones, and panes of other tmux servers."""

    panes: list[Pane]
    lost: list[Session]
    foreign: list[tuple[Machine, Pane]]


def _find_named(machine: Machine, names: Sequence[str], force: bool) -> _Meant:
    """What is to be ended, by name: sessions that run, lost ones, and with `force` panes of other servers."""
    panes: list[Pane] = []
    lost: list[Session] = []
    listed: list[Session] | None = None
    foreign_panes: list[tuple[Machine, Pane]] = []
    for name in dict.fromkeys(names):
        pane_machine, pane_name = reach(machine, name)
        if pane_machine is not machine:
            foreign_panes.append((pane_machine, finding.find_session(pane_machine, pane_name)))
            continue
        try:
            panes.append(finding.find_session(machine, name, whole=False))
        except (Unreachable, Exited) as error:
            if error.reason not in finding.GONE:
                raise
            listed = records.list_lost(machine, []) if listed is None else listed
            known = {one.id for one in lost}
            lost += [one for one in listed if name in (one.name, one.id) and one.id not in known]
    if foreign_panes and not force:
        from tmuxctl.control.lifecycle import adopting

        raise adopting.foreign_error(foreign_panes[0][1].name)
    return _Meant(list({pane.id: pane for pane in panes}.values()), lost, foreign_panes)


def _end_foreign(machine: Machine, pane: Pane, signal: str, grace: float) -> End:
    """End the programs of a pane of another server; the pane itself is left to its tmux."""
    refuse_caller(machine, pane)
    (ending,) = process.end_processes(
        machine.transport, [SessionTarget(pane.id, "", pane)], signal=signal, grace=grace
    ).values()
    return _build_end(pane.name, pane.id, ending)


def end_sessions(
    machine: Machine, panes: Sequence[Pane], *, signal: str = "TERM", grace: float = 3.0, force: bool = False
) -> list[End]:
    """End these sessions' processes, all at once, then the sessions, and keep their ended records. This process may run in
    one of them: it lives until all is done."""
    _check_readable(machine, panes)
    for pane in panes:
        refuse_caller(machine, pane)
    with _ignore_hangup(machine.transport.pid is not None):
        return _end_all(machine, panes, signal, grace, force)


def refuse_caller(machine: Machine, pane: Pane) -> None:
    """Denied where the caller may not end this session: it runs in there, or somebody else started it."""
    if caller := current().caller:
        if machine.transport.pid is not None:
            caller.refuse_own(pane.name, pane.id, pane.pid)
        caller.refuse_owner(pane.name, pane.spec.get("owner"))


def _check_readable(machine: Machine, ending: Sequence[Pane | Session]) -> None:
    """NewerFormat for a session of a later release: what its plugins made for it could not be cleaned up."""
    for session in ending:
        records.read_spec(machine, session.id)


@contextmanager
def _ignore_hangup(is_local: bool) -> Iterator[None]:
    """Let this process survive the end of its own terminal meanwhile. A process that it starts later is hung up as usual."""
    if not is_local or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signals.signal(signals.SIGHUP, signals.SIG_IGN)
    try:
        yield
    finally:
        signals.signal(signals.SIGHUP, before or signals.SIG_DFL)


def _end_all(machine: Machine, panes: Sequence[Pane], signal: str, grace: float, force: bool) -> list[End]:
    transport = machine.transport
    targets = [SessionTarget(pane.id, records.session_folder(machine, pane.id), pane) for pane in panes]
    endings = process.end_processes(transport, targets, signal=signal, grace=grace) if targets else {}
    last = _await_exit_facts(machine, panes)
    screens = _capture_screens(machine, panes)
    for pane in last:
        # before the session goes: a process that waits for it reads here how it ended
        about = {"exit_status": pane.status, "signal": pane.signal, "detail": pane.ended or None}
        about["screen"] = screens.get(pane.id)
        write_ended_record(machine, pane.id, about)
    _await_journals(machine, last)
    _kill_sessions(machine, panes)
    left = {pane.id: archive_session(machine, pane.id, force=force) for pane in panes}
    remove_old_records(machine)
    return [_build_end(pane.name, pane.id, endings[pane.id], pane.status, pane.signal, left[pane.id]) for pane in last]


def _kill_sessions(machine: Machine, panes: Sequence[Pane]) -> None:
    """Let tmux forget these sessions, in few lists."""
    left = list(panes)
    while left:
        commands: list[Command] = []
        for pane in left[:AT_ONCE]:
            # by its id too: a new session may have taken its name meanwhile
            commands.append(Guard(pane.target, f"#{{==:#{{{options.ID}}},{pane.id}}}", pane.id))
            commands.append(("kill-session", "-t", "=" + pane.name))
        try:
            machine.transport.run(commands)
            left = left[AT_ONCE:]
        except GuardRefused as gone:
            # the sessions before this one were ended, and this one was gone
            left = left[1 + next(index for index, pane in enumerate(left) if pane.id == gone.answer) :]
        except (NotFound, Unreachable) as error:
            if not finding.says_gone(error):
                raise
            left = left[AT_ONCE:]


def end_lost(
    machine: Machine, lost: Sequence[Session], *, signal: str = "TERM", grace: float = 3.0, force: bool = False
) -> list[End]:
    """End what is left of sessions that tmux does not know any more."""
    if caller := current().caller:
        for session in lost:
            caller.refuse_owner(session.name, session.owner)
    now = records.server_pid(machine)
    targets = [SessionTarget(session.id, records.session_folder(machine, session.id), server=now) for session in lost]
    endings = process.end_processes(machine.transport, targets, signal=signal, grace=grace) if targets else {}
    ended = []
    for session in lost:
        write_ended_record(machine, session.id, {"exit_status": session.exit_status, "signal": session.signal})
        left = archive_session(machine, session.id, force=force)
        ending = endings[session.id]
        ended.append(_build_end(session.name, session.id, ending, session.exit_status, session.signal, left))
    remove_old_records(machine)
    return ended


def _build_end(
    name: str,
    session_id: str,
    ending: Ending,
    status: int | None = None,
    signal: str | None = None,
    left: Sequence[str] = (),
) -> End:
    strays = tuple(Stray(row.pid, row.name) for row in ending.leftovers)
    return End(name, session_id, status, signal, ending.ended, ending.left, strays, tuple(left))


def _await_exit_facts(machine: Machine, panes: Sequence[Pane]) -> list[Pane]:
    """The panes once tmux knows how each program ended; waits at most a second."""
    deadline = time.monotonic() + 1.0
    last = {pane.id: pane for pane in panes}
    while unknown := [pane for pane in last.values() if not pane.dead or (pane.status is None and pane.signal is None)]:
        try:
            alone = len(unknown) == 1
            now = [server.read_pane(machine.io, unknown[0].name)] if alone else server.list_panes(machine.io)
        except TmuxctlError:
            break
        last |= {pane.id: pane for pane in now if pane.id in last}
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return list(last.values())


def _await_journals(machine: Machine, panes: Sequence[Pane]) -> None:
    """Wait until the journals have the last output of the programs that have ended: whoever finds a session ended reads all of it.
    tmux calls a pane dead only when its pipe has taken everything (`window_pane_destroy_ready` in its window.c), but the writer may
    still have to read that from the pipe, up to 30 KB (measured). One that takes nothing for a while is given up, and all are after
    `kill_seconds`: what is left of a program may write to the file itself."""
    clock, timing = machine.clock, machine.timing.session
    latest = clock.monotonic() + timing.kill_seconds
    unfinished = {pane.id: finding.open_journal(machine, pane) for pane in panes if pane.dead and pane.piped}
    ends: dict[str, int] = {}
    until = 0.0
    while True:
        for session_id, journal in [*unfinished.items()]:
            extent = journal.extent()
            if extent.finished or extent.stopped:
                del unfinished[session_id]
            elif ends.get(session_id) != extent.end:
                ends[session_id], until = extent.end, clock.monotonic() + timing.writer_seconds
        if not unfinished or clock.monotonic() > min(until, latest):
            return
        clock.sleep(timing.kill_pause_seconds)


def _capture_screens(machine: Machine, panes: Sequence[Pane]) -> dict[str, str]:
    """The last screens as text, by the session's id; of the sessions that tmux still has."""
    from tmuxctl.terminal.panes import captures
    from tmuxctl.terminal.tmux import screen

    with suppress(TmuxctlError, OSError):
        return {one.pane.id: screen.plain_text(one.rows) for one in captures.capture_sessions(machine.transport, panes)}
    return {}


def write_ended_record(machine: Machine, session_id: str, about: dict[str, Any]) -> None:
    """Write a session's ended record. It tells that plugins have still to clean up: if this process dies before they did,
    `prune` lets them."""
    plugins = records.read_spec(machine, session_id).get("asked", {}).get("applied")
    about = {
        **about,
        "ended": summaries.format_time(machine.clock.wall()),
        "left": ["not cleaned up"] if plugins else [],
    }
    with suppress(TmuxctlError, OSError):
        _put_ended_record(machine, f"{layout.SESSIONS}/{session_id}", about)


def archive_session(machine: Machine, session_id: str, *, force: bool = False) -> tuple[str, ...]:
    """Move a session's folder to the ended ones and let its plugins clean up. Returns what they left behind."""
    move_to_ended(machine, session_id)
    about = records.read_ended_record(machine, session_id)
    if not about.get("left"):
        return ()
    left = _clean_up(machine, session_id, about, kept=True, force=force)
    with suppress(TmuxctlError, OSError):
        _put_ended_record(machine, f"{layout.ENDED_SESSIONS}/{session_id}", {**about, "left": left})
    return left


def move_to_ended(machine: Machine, session_id: str) -> None:
    """Move a session's folder to the ended ones as it is."""
    transport = machine.transport
    transport.make_folder(f"{transport.home}/{layout.ENDED_SESSIONS}")
    remove_launcher(machine, session_id)
    with suppress(TmuxctlError, OSError):
        folder = records.session_folder(machine, session_id)
        groups = cgroup.find_groups(transport, {session_id: folder})
        cgroup.remove_groups(transport, list(groups.values()), tries=0)
        transport.rename(folder, f"{transport.home}/{layout.ENDED_SESSIONS}/{session_id}")


def remove_launcher(machine: Machine, session_id: str, *, before: float | None = None) -> None:
    """Remove the launcher of a session that will not start any more, with the values in it; `before` spares a newer one."""
    folder = records.session_folder(machine, session_id)
    for name, about in machine.transport.files(folder).items():
        if name.startswith(layout.LAUNCHER) and (before is None or about.modified < before):
            with suppress(TmuxctlError, OSError):
                machine.transport.remove(f"{folder}/{name}")


def _put_ended_record(machine: Machine, place: str, about: dict[str, Any]) -> None:
    machine.transport.put(f"{machine.transport.home}/{place}/{layout.END}", to_record(about), durable=True)


def _clean_up(machine: Machine, session_id: str, about: dict[str, Any], *, kept: bool, force: bool) -> tuple[str, ...]:
    """Let the plugins that made an ended session clean up after it. Returns what they left."""
    known = records.read_spec(machine, session_id, layout.ENDED_SESSIONS)
    applied = known.get("asked", {}).get("applied", ())
    if not applied:
        return ()
    from tmuxctl import plugin

    spec = spec_of(machine, known)
    ended = plugin.SessionEnd(about.get("exit_status"), kept=kept, force=force)
    done = [plugin.AppliedPlugin(**one) for one in applied]
    return plugin.cleanup(spec, done, ended, machine=machine.for_plugins)


def spec_of(machine: Machine, known: Mapping[str, Any]) -> SessionSpec:
    """The final spec of a session, from what `records.spec` read."""
    had = known["spec"]
    return SessionSpec(
        argv=tuple(had["argv"]),
        cwd=had["cwd"],
        env={name: value for name, value in had["env"].items() if isinstance(value, str)},
        size=parse_size(had["size"]),
        name=had["name"],
        machine=machine.transport.machine,
        history=had["history"],
        notes=had["notes"],
    )


def sync(machine: Machine, names: Sequence[str]) -> Synced:
    """Let the plugins of these sessions, or of all, bring what was made in them to where it belongs."""
    from tmuxctl import plugin

    panes = [finding.find_session(machine, name) for name in dict.fromkeys(names)] or finding.list_panes(machine)
    done = []
    for pane in panes:
        known = records.read_spec(machine, pane.id)
        applied = [plugin.AppliedPlugin(**one) for one in known.get("asked", {}).get("applied", ())]
        told = plugin.sync(spec_of(machine, known), applied, machine=machine.for_plugins) if applied else None
        if told is not None:
            done.append(Sync(pane.name, pane.id, told))
        elif names:
            hint = "a sandbox in a git repository has: tmuxctl new NAME --worktree BRANCH --sandbox"
            raise Failed(f"{pane.name} has nothing to bring back", reason="nothing_to_sync", hint=hint)
    return Synced(tuple(done))


def remove_old_records(machine: Machine) -> None:
    """Remove ended records older than `journal.keep`, but those of sessions whose plugins left something."""
    keep, home = machine.settings.journal_keep, machine.transport.home
    if keep is None:
        return
    for name, about in machine.transport.files(f"{home}/{layout.ENDED_SESSIONS}").items():
        if about.modified < machine.clock.wall() - keep:
            with suppress(NewerFormat):
                records.read_spec(machine, name, layout.ENDED_SESSIONS)
                if not records.read_ended_record(machine, name).get("left"):
                    machine.transport.remove(f"{home}/{layout.ENDED_SESSIONS}/{name}")


def prune(machine: Machine, *, dry_run: bool, force: bool = False) -> Pruned:
    """Remove ended and lost sessions and every ended record, but sessions in which processes still run, and records of
    sessions whose plugins hold something back."""
    from tmuxctl.control.lifecycle import adopting

    panes = finding.list_panes(machine)
    dead = [pane for pane in panes if pane.dead]
    gone = records.list_lost(machine, panes)
    stale = adopting.list_gone(machine)
    busy = {
        one: f"{name} still runs {what}: tmuxctl kill {name}"
        for one, (name, what) in _find_leftover_processes(machine, dead, gone).items()
    }
    busy |= _why_kept(machine, [*dead, *gone])
    dead, gone = [pane for pane in dead if pane.id not in busy], [one for one in gone if one.id not in busy]
    names = [*(pane.name for pane in dead), *(one.name for one in gone), *stale]
    left = list(busy.values())
    if dry_run:
        kept = [f"{one.name}: {what}" for one in records.list_ended(machine) for what in one.left]
        return Pruned(tuple(names), True, (*left, *kept))
    end_sessions(machine, dead, grace=0.5, force=force)
    for one in gone:
        write_ended_record(machine, one.id, {"exit_status": one.exit_status, "signal": one.signal})
        archive_session(machine, one.id, force=force)
    if stale:
        adopting.release(machine, stale)
    adopting.remove_forgotten(machine)
    _remove_unfinished(machine)
    return Pruned(tuple(names), left=(*left, *_remove_ended_records(machine, force)))


def _why_kept(machine: Machine, sessions: Sequence[Pane | Session]) -> dict[str, str]:
    """Why sessions of a later release are not removed, by id."""
    found = {}
    for session in sessions:
        try:
            records.read_spec(machine, session.id)
        except NewerFormat as newer:
            found[session.id] = f"{session.name}: {newer.message}"
    return found


def _remove_ended_records(machine: Machine, force: bool) -> list[str]:
    """Remove every ended record, but those whose plugins hold something back. Returns what that is."""
    home = machine.transport.home
    left: list[str] = []
    for session_id in machine.transport.files(f"{home}/{layout.ENDED_SESSIONS}"):
        try:
            records.read_spec(machine, session_id, layout.ENDED_SESSIONS)
            about = records.read_ended_record(machine, session_id)
        except NewerFormat as newer:
            left.append(f"{session_id}: {newer.message}")
            continue
        kept = _clean_up(machine, session_id, about, kept=False, force=force) if about.get("left") else ()
        left += kept
        if kept and not force:
            _put_ended_record(machine, f"{layout.ENDED_SESSIONS}/{session_id}", {**about, "left": kept})
        else:
            machine.transport.remove(f"{home}/{layout.ENDED_SESSIONS}/{session_id}")
    return left


def _find_leftover_processes(
    machine: Machine, dead: Sequence[Pane], gone: Sequence[Session]
) -> dict[str, tuple[str, str]]:
    """The ended and lost sessions that still have processes, by id: the name, and which these are."""
    named = {pane.id: pane.name for pane in dead} | {session_id.id: session_id.name for session_id in gone}
    server = records.server_pid(machine)
    targets = [
        SessionTarget(session_id, records.session_folder(machine, session_id), server=server) for session_id in named
    ]
    found = process.find_processes(machine.transport, targets) if targets else {}
    return {
        session_id: (named[session_id], ", ".join(f"{row.pid} ({row.name})" for row in rows[:5]))
        for session_id, rows in found.items()
        if rows
    }


def _remove_unfinished(machine: Machine) -> None:
    """Remove what processes that died left unfinished: folders of sessions that tmux had not started yet, files that were not
    renamed to their names, and locks."""
    transport = machine.transport
    machine.for_plugins.remove_dead_locks(
        [f"{transport.home}/{name}" for name in (layout.RESTORE_LOCK, layout.TURNS_LOCK)]
    )
    before = machine.clock.wall() - machine.timing.session.unfinished_seconds
    folders = [transport.home]
    for name, about in transport.files(f"{transport.home}/{layout.SESSIONS}").items():
        folder = f"{transport.home}/{layout.SESSIONS}/{name}"
        if layout.was_started(transport.files(folder)):
            folders += [folder, f"{folder}/{layout.SHELL}"]
        elif about.modified < before:
            transport.remove(folder)
    for folder in folders:
        for name, about in transport.files(folder).items():
            if name.endswith(".new") and about.modified < before:
                transport.remove(f"{folder}/{name}")
