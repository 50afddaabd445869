"""Ending sessions: the whole process tree, verified; what stays readable afterwards, and removing that too."""

from __future__ import annotations

import signal as signals
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tmuxctl.control.lifecycle.reach import reach
from tmuxctl.control.sessions import finding, records, summaries
from tmuxctl.errors import Exited, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.results import End, Killed, Pruned, Stray, Sync, Synced
from tmuxctl.terminal.processes import cgroup, process
from tmuxctl.terminal.processes.process import Ending, SessionTarget
from tmuxctl.terminal.tmux import layout, options, server
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Command, Guard, GuardRefused
from tmuxctl.untrusted import NewerFormat, to_record

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.model import Session, SessionSpec

AT_ONCE = 50
"""How many sessions tmux is told to end in one list, which has to fit into one message."""


def kill(
    machine: Machine, names: Sequence[str], *, everything: bool, signal: str, grace: float, force: bool = False
) -> Killed:
    """End sessions by name, or all; a name that is not there is an error before anything is ended, and so is a pane of
    somebody else's, but by `force`, with which plugins remove what they would keep."""
    word = signal.upper().removeprefix("SIG")
    if f"SIG{word}" not in signals.Signals.__members__:
        raise Usage(
            f"{ascii(signal[:20])} is not a valid signal", reason="bad_signal", hint="TERM, INT, HUP, KILL, ..."
        )
    if everything == bool(names):
        raise Usage("name the sessions to kill, or give --all", reason="missing", hint="tmuxctl ls")
    strangers: list[tuple[Machine, Pane]] = []
    if everything:
        panes = finding.panes(machine)
        forgotten = records.lost(machine, panes)
    else:
        try:
            panes, forgotten, strangers = _named(machine, names, force)
        except TmuxctlError as error:
            error.message += "; nothing was killed" if len(names) > 1 else ""
            raise
    _check_readable(machine, forgotten)
    ended = end(machine, panes, signal=word, grace=grace, force=force)
    ended += [_end_there(place, pane, word, grace) for place, pane in strangers]
    ended += end_lost(machine, forgotten, signal=word, grace=grace, force=force)
    return Killed(tuple(ended))


def _named(
    machine: Machine, names: Sequence[str], force: bool
) -> tuple[list[Pane], list[Session], list[tuple[Machine, Pane]]]:
    """What is to be ended by name: sessions, those that are lost, and with `force` panes of other servers."""
    panes: list[Pane] = []
    forgotten: list[Session] = []
    strangers: list[tuple[Machine, Pane]] = []
    for name in dict.fromkeys(names):
        place, called = reach(machine, name)
        if place is not machine:
            strangers.append((place, finding.find(place, called)))
            continue
        try:
            panes.append(finding.find(machine, name, whole=False))
        except (Unreachable, Exited) as error:
            if error.reason not in finding.GONE:
                raise
            known = {one.id for one in forgotten}
            gone = [one for one in records.lost(machine, []) if name in (one.name, one.id)]
            forgotten += [one for one in gone if one.id not in known]
    if strangers and not force:
        from tmuxctl.control.lifecycle import adopting

        raise adopting.refuse(strangers[0][1].name)
    return list({pane.id: pane for pane in panes}.values()), forgotten, strangers


def _end_there(place: Machine, pane: Pane, signal: str, grace: float) -> End:
    """End the programs of a pane of another server; what becomes of the pane is its own tmux's affair."""
    (ending,) = process.end_processes(
        place.transport, [SessionTarget(pane.id, "", pane)], signal=signal, grace=grace
    ).values()
    return _told(pane.name, pane.id, ending)


def end(
    machine: Machine, panes: Sequence[Pane], *, signal: str = "TERM", grace: float = 3.0, force: bool = False
) -> list[End]:
    """End these sessions' processes, all at once, then the sessions, and leave their tombstones. This process may run in
    one of them: it sees that to its end."""
    _check_readable(machine, panes)
    with _not_hung_up(machine.transport.pid is not None):
        return _end(machine, panes, signal, grace, force)


def _check_readable(machine: Machine, ending: Sequence[Pane | Session]) -> None:
    """NewerFormat for a session of a later release: what its plugins made for it could not be cleaned up."""
    for one in ending:
        records.spec(machine, one.id)


@contextmanager
def _not_hung_up(here: bool) -> Iterator[None]:
    """The end of a terminal that is this process's own does not end it meanwhile. What it starts later is hung up as ever."""
    if not here or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signals.signal(signals.SIGHUP, signals.SIG_IGN)
    try:
        yield
    finally:
        signals.signal(signals.SIGHUP, before or signals.SIG_DFL)


def _end(machine: Machine, panes: Sequence[Pane], signal: str, grace: float, force: bool) -> list[End]:
    transport = machine.transport
    targets = [SessionTarget(pane.id, records.folder(machine, pane.id), pane) for pane in panes]
    endings = process.end_processes(transport, targets, signal=signal, grace=grace) if targets else {}
    last = _last(machine, panes)
    screens = _screens(machine, panes)
    for pane in last:
        # before the session goes: who waits for it looks here how it ended
        about = {"exit_status": pane.status, "signal": pane.signal, "detail": pane.ended or None}
        about["screen"] = screens.get(pane.id)
        write_end(machine, pane.id, about)
    _kill_sessions(machine, panes)
    left = {pane.id: bury(machine, pane.id, force=force) for pane in panes}
    drop_old(machine)
    return [
        _told(pane.name, pane.id, endings[pane.id], status=pane.status, signal=pane.signal, left=left[pane.id])
        for pane in last
    ]


def _kill_sessions(machine: Machine, panes: Sequence[Pane]) -> None:
    """Let tmux forget these sessions, in few lists."""
    left = list(panes)
    while left:
        commands: list[Command] = []
        for pane in left[:AT_ONCE]:
            # by its id too: one of the same name may have taken its place meanwhile
            commands.append(Guard(pane.target, f"#{{==:#{{{options.ID}}},{pane.id}}}", pane.id))
            commands.append(("kill-session", "-t", "=" + pane.name))
        try:
            machine.transport.run(commands)
            left = left[AT_ONCE:]
        except GuardRefused as gone:
            # those before it were ended, and it is not there any more
            left = left[1 + next(index for index, pane in enumerate(left) if pane.id == gone.answer) :]
        except (NotFound, Unreachable) as error:
            if error.reason == "backend_timeout":
                raise
            left = left[AT_ONCE:]


def end_lost(
    machine: Machine, lost: Sequence[Session], *, signal: str = "TERM", grace: float = 3.0, force: bool = False
) -> list[End]:
    """End what is left of sessions that tmux does not know any more."""
    now = records.server_pid(machine)
    targets = [SessionTarget(one.id, records.folder(machine, one.id), server=now) for one in lost]
    endings = process.end_processes(machine.transport, targets, signal=signal, grace=grace) if targets else {}
    ended = []
    for one in lost:
        write_end(machine, one.id, {"exit_status": one.exit_status, "signal": one.signal})
        left = bury(machine, one.id, force=force)
        ended.append(_told(one.name, one.id, endings[one.id], status=one.exit_status, signal=one.signal, left=left))
    drop_old(machine)
    return ended


def _told(
    name: str,
    session_id: str,
    ending: Ending,
    *,
    status: int | None = None,
    signal: str | None = None,
    left: Sequence[str] = (),
) -> End:
    strays = tuple(Stray(row.pid, row.name) for row in ending.leftovers)
    return End(name, session_id, status, signal, ending.ended, ending.left, strays, tuple(left))


def _last(machine: Machine, panes: Sequence[Pane]) -> list[Pane]:
    """The facts once tmux knows how each program ended, at most a second later."""
    deadline = time.monotonic() + 1.0
    last = {pane.id: pane for pane in panes}
    while open_ := [pane for pane in last.values() if not pane.dead or (pane.status is None and pane.signal is None)]:
        try:
            alone = len(open_) == 1
            now = (
                [server.read_pane(machine.transport, open_[0].name)] if alone else server.list_panes(machine.transport)
            )
        except TmuxctlError:
            break
        last |= {pane.id: pane for pane in now if pane.id in last}
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return list(last.values())


def _screens(machine: Machine, panes: Sequence[Pane]) -> dict[str, str]:
    """The last screens as text, by the session's id; of those that can still be had."""
    from tmuxctl.terminal.panes import captures
    from tmuxctl.terminal.tmux import screen

    with suppress(TmuxctlError, OSError):
        return {one.pane.id: screen.plain_text(one.rows) for one in captures.capture_sessions(machine.transport, panes)}
    return {}


def write_end(machine: Machine, session_id: str, about: dict[str, Any]) -> None:
    """Write down how a session ended. That its plugins are still to clean up is in it too: if we die before they did,
    `prune` lets them."""
    plugins = records.spec(machine, session_id).get("asked", {}).get("applied")
    about = {**about, "ended": summaries.when(time.time()), "left": ["not cleaned up"] if plugins else []}
    with suppress(TmuxctlError, OSError):
        _write(machine, f"{layout.SESSIONS}/{session_id}", about)


def bury(machine: Machine, session_id: str, *, force: bool = False) -> tuple[str, ...]:
    """Move a session's folder to the ended ones and let its plugins clean up; what they left behind."""
    move(machine, session_id)
    about = records.tombstone(machine, session_id)
    if not about.get("left"):
        return ()
    left = _clean_up(machine, session_id, about, kept=True, force=force)
    with suppress(TmuxctlError, OSError):
        _write(machine, f"{layout.ENDED_SESSIONS}/{session_id}", {**about, "left": left})
    return left


def move(machine: Machine, session_id: str) -> None:
    """Move a session's folder to the ended ones as it is."""
    transport = machine.transport
    transport.make_folder(f"{transport.home}/{layout.ENDED_SESSIONS}")
    remove_launcher(machine, session_id)
    with suppress(TmuxctlError, OSError):
        groups = cgroup.find_groups(transport, {session_id: records.folder(machine, session_id)})
        cgroup.remove_groups(transport, list(groups.values()), tries=0)
        transport.rename(records.folder(machine, session_id), f"{transport.home}/{layout.ENDED_SESSIONS}/{session_id}")


def remove_launcher(machine: Machine, session_id: str, *, before: float | None = None) -> None:
    """Remove the launcher of a session that will not start any more, with the values in it; `before` spares a newer one."""
    folder = records.folder(machine, session_id)
    for name, about in machine.transport.files(folder).items():
        if name.startswith(layout.LAUNCHER) and (before is None or about.modified < before):
            with suppress(TmuxctlError, OSError):
                machine.transport.remove(f"{folder}/{name}")


def _write(machine: Machine, place: str, about: dict[str, Any]) -> None:
    machine.transport.put(f"{machine.transport.home}/{place}/{layout.END}", to_record(about), durable=True)


def _clean_up(machine: Machine, session_id: str, about: dict[str, Any], *, kept: bool, force: bool) -> tuple[str, ...]:
    """Let the plugins that made an ended session clean up after it; what they left."""
    known = records.spec(machine, session_id, layout.ENDED_SESSIONS)
    applied = known.get("asked", {}).get("applied", ())
    if not applied:
        return ()
    from tmuxctl import plugin

    spec = spec_of(machine, known)
    ended = plugin.SessionEnd(about.get("exit_status"), kept=kept, force=force)
    return plugin.cleanup(spec, [plugin.AppliedPlugin(**one) for one in applied], ended)


def spec_of(machine: Machine, known: Mapping[str, Any]) -> SessionSpec:
    """The final spec of a session, from what `records.spec` read."""
    from tmuxctl.model import SessionSpec, parse_size

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

    panes = [finding.find(machine, name) for name in dict.fromkeys(names)] or finding.panes(machine)
    done = []
    for pane in panes:
        known = records.spec(machine, pane.id)
        applied = [plugin.AppliedPlugin(**one) for one in known.get("asked", {}).get("applied", ())]
        told = plugin.sync(spec_of(machine, known), applied) if applied else None
        if told is not None:
            done.append(Sync(pane.name, pane.id, told))
        elif names:
            hint = "a sandbox in a git repository has: tmuxctl new NAME --worktree BRANCH --sandbox"
            raise Failed(f"{pane.name} has nothing to bring back", reason="nothing_to_sync", hint=hint)
    return Synced(tuple(done))


def drop_old(machine: Machine) -> None:
    """Remove the tombstones that have been kept long enough, but those of sessions whose plugins left something."""
    keep, home = machine.settings.journal_keep, machine.transport.home
    if keep is None:
        return
    for name, about in machine.transport.files(f"{home}/{layout.ENDED_SESSIONS}").items():
        if about.modified < time.time() - keep:
            with suppress(NewerFormat):
                records.spec(machine, name, layout.ENDED_SESSIONS)
                if not records.tombstone(machine, name).get("left"):
                    machine.transport.remove(f"{home}/{layout.ENDED_SESSIONS}/{name}")


def prune(machine: Machine, *, dry_run: bool, force: bool = False) -> Pruned:
    """Remove ended and lost sessions and every tombstone, but those that something still runs in, and those whose plugins
    hold something back."""
    from tmuxctl.control.lifecycle import adopting

    panes = finding.panes(machine)
    dead = [pane for pane in panes if pane.dead]
    gone = records.lost(machine, panes)
    stale = adopting.gone(machine)
    busy = {
        one: f"{name} still runs {what}: tmuxctl kill {name}"
        for one, (name, what) in _still_run(machine, dead, gone).items()
    }
    busy |= _refused(machine, [*dead, *gone])
    dead, gone = [pane for pane in dead if pane.id not in busy], [one for one in gone if one.id not in busy]
    names = [*(pane.name for pane in dead), *(one.name for one in gone), *stale]
    left = list(busy.values())
    if dry_run:
        kept = [f"{one.name}: {what}" for one in records.buried(machine) for what in one.left]
        return Pruned(tuple(names), True, (*left, *kept))
    end(machine, dead, grace=0.5, force=force)
    for one in gone:
        write_end(machine, one.id, {"exit_status": one.exit_status, "signal": one.signal})
        bury(machine, one.id, force=force)
    if stale:
        adopting.release(machine, stale)
    adopting.forget(machine)
    _remove_unfinished(machine)
    return Pruned(tuple(names), left=(*left, *_empty_graves(machine, force)))


def _refused(machine: Machine, sessions: Sequence[Pane | Session]) -> dict[str, str]:
    """Why sessions of a later release stay, by id."""
    found = {}
    for one in sessions:
        try:
            records.spec(machine, one.id)
        except NewerFormat as newer:
            found[one.id] = f"{one.name}: {newer.message}"
    return found


def _empty_graves(machine: Machine, force: bool) -> list[str]:
    """Remove every tombstone, but those whose plugins hold something back; what that is."""
    home = machine.transport.home
    left: list[str] = []
    for one in machine.transport.files(f"{home}/{layout.ENDED_SESSIONS}"):
        try:
            records.spec(machine, one, layout.ENDED_SESSIONS)
            about = records.tombstone(machine, one)
        except NewerFormat as newer:
            left.append(f"{one}: {newer.message}")
            continue
        kept = _clean_up(machine, one, about, kept=False, force=force) if about.get("left") else ()
        left += kept
        if kept and not force:
            _write(machine, f"{layout.ENDED_SESSIONS}/{one}", {**about, "left": kept})
        else:
            machine.transport.remove(f"{home}/{layout.ENDED_SESSIONS}/{one}")
    return left


def _still_run(machine: Machine, dead: Sequence[Pane], gone: Sequence[Session]) -> dict[str, tuple[str, str]]:
    """The sessions that have ended or are lost and have processes all the same, by id: the name, and which these are."""
    named = {pane.id: pane.name for pane in dead} | {one.id: one.name for one in gone}
    server = records.server_pid(machine)
    targets = [SessionTarget(one, records.folder(machine, one), server=server) for one in named]
    found = process.find_processes(machine.transport, targets) if targets else {}
    return {
        one: (named[one], ", ".join(f"{row.pid} ({row.name})" for row in rows[:5]))
        for one, rows in found.items()
        if rows
    }


def _remove_unfinished(machine: Machine) -> None:
    """Remove what is left of work that never came to its end because who did it died: folders of sessions that tmux had not
    started yet, and files that were not renamed to their names."""
    transport = machine.transport
    before = time.time() - machine.timing.session.unfinished_seconds
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
