"""Ending sessions: the whole process tree, verified; what stays readable afterwards, and removing that too."""

from __future__ import annotations

import json
import signal as signals
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tmuxctl.control import sessions
from tmuxctl.errors import Exited, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.results import End, Killed, Pruned, Stray
from tmuxctl.terminal import launch, process, server
from tmuxctl.terminal.process import Ending
from tmuxctl.terminal.server import Pane

if TYPE_CHECKING:
    from tmuxctl.control.service import Control
    from tmuxctl.model import Session

UNFINISHED_SECONDS = 60.0
"""How old a folder is before it is taken for what is left of a `new` that never came to its end."""


def kill(
    control: Control, names: Sequence[str], *, everything: bool, signal: str, grace: float, force: bool = False
) -> Killed:
    """End sessions by name, or all; a name that is not there is an error before anything is ended, and so is a pane of
    somebody else's, but by `force`, with which plugins remove what they would keep."""
    word = signal.upper().removeprefix("SIG")
    if f"SIG{word}" not in signals.Signals.__members__:
        raise Usage(f"{ascii(signal[:20])} is no signal", reason="bad_signal", hint="TERM, INT, HUP, KILL, ...")
    if everything == bool(names):
        raise Usage("name the sessions to kill, or give --all", reason="missing", hint="tmuxctl ls")
    strangers: list[tuple[Control, str]] = []
    if everything:
        panes = sessions.panes(control)
        forgotten = sessions.lost(control, panes)
    else:
        panes, forgotten = [], []
        for name in dict.fromkeys(names):
            place, called = control.reach(name)
            if place is not control:
                strangers.append((place, called))
                continue
            try:
                panes.append(sessions.find(control, name))
            except (Unreachable, Exited) as error:
                if error.reason not in sessions.GONE:
                    raise
                forgotten += [one for one in sessions.lost(control, []) if name in (one.name, one.id)]
    if strangers and not force:
        from tmuxctl.control import adopting

        raise adopting.refuse(strangers[0][1])
    ended = [end(control, pane, signal=word, grace=grace, force=force) for pane in panes]
    ended += [_end_there(place, called, word, grace) for place, called in strangers]
    ended += [end_lost(control, one, signal=word, grace=grace, force=force) for one in forgotten]
    return Killed(tuple(ended))


def _end_there(place: Control, name: str, signal: str, grace: float) -> End:
    """End the programs of a pane of another server; what becomes of the pane is its own tmux's affair."""
    pane = sessions.find(place, name)
    return _told(name, pane.id, process.end_tree(place.transport, pane, signal=signal, grace=grace))


def end(control: Control, pane: Pane, *, signal: str = "TERM", grace: float = 3.0, force: bool = False) -> End:
    """End one session's processes, then the session, and leave its tombstone."""
    transport, folder = control.transport, sessions.folder(control, pane.id)
    ending = process.end_tree(transport, pane, folder, signal=signal, grace=grace)
    now = _last_status(control, pane)
    about = {"exit_status": now.status, "signal": now.signal, "screen": _screen(control, pane)}
    with suppress(NotFound, Unreachable):
        transport.run([("kill-session", "-t", "=" + pane.name)])
    left = bury(control, pane.id, about, force=force)
    return _told(pane.name, pane.id, ending, status=now.status, signal=now.signal, left=left)


def end_lost(control: Control, lost: Session, *, signal: str = "TERM", grace: float = 3.0, force: bool = False) -> End:
    """End what is left of a session that tmux does not know any more."""
    folder = sessions.folder(control, lost.id)
    ending = process.end_marked(control.transport, lost.id, folder, signal=signal, grace=grace)
    left = bury(control, lost.id, {"exit_status": lost.exit_status, "signal": lost.signal}, force=force)
    return _told(lost.name, lost.id, ending, status=lost.exit_status, signal=lost.signal, left=left)


def _told(
    name: str,
    session_id: str,
    ending: Ending,
    *,
    status: int | None = None,
    signal: str | None = None,
    left: Sequence[str] = (),
) -> End:
    strays = tuple(Stray(row.pid, row.name) for row in ending.strays)
    return End(name, session_id, status, signal, ending.ended, ending.left, strays, tuple(left))


def _last_status(control: Control, pane: Pane) -> Pane:
    """The facts once tmux knows how the program ended, at most a second later."""
    deadline = time.monotonic() + 1.0
    now = pane
    while time.monotonic() < deadline:
        try:
            now = server.pane(control.transport, pane.name)
        except TmuxctlError:
            return now
        if now.dead and (now.status is not None or now.signal is not None):
            return now
        time.sleep(0.01)
    return now


def _screen(control: Control, pane: Pane) -> str | None:
    with suppress(TmuxctlError, OSError):
        from tmuxctl.control import look

        return look.screen(
            control, pane.name, ansi=False, html=False, svg=False, scrollback=None, trim=True, wide=False
        ).text
    return None


def bury(control: Control, session_id: str, about: dict[str, Any], *, force: bool = False) -> tuple[str, ...]:
    """Move a session's folder to the ended ones with what is known of its end, let its plugins clean up, and drop those
    whose time is over; what its plugins left behind. A tombstone that tells of something left stays until `prune`."""
    about = {**about, "ended": sessions.when(time.time())}
    if not leave(control, session_id, about):
        return ()
    left = _clean_up(control, session_id, about, kept=True, force=force)
    with suppress(TmuxctlError, OSError):
        _write(control, f"ended/{session_id}", {**about, "left": left})
    return left


def leave(control: Control, session_id: str, about: dict[str, Any]) -> bool:
    """Move a session's folder to the ended ones as it is; True if it has plugins, which `prune` lets clean up."""
    transport = control.transport
    transport.make_folder(f"{transport.home}/ended")
    plugins = bool(sessions.spec(control, session_id).get("asked", {}).get("applied"))
    with suppress(TmuxctlError, OSError):
        _write(control, f"sessions/{session_id}", {**about, "left": ["not cleaned up"] if plugins else []})
        transport.rename(sessions.folder(control, session_id), f"{transport.home}/ended/{session_id}")
    _drop_old(control)
    return plugins


def _write(control: Control, place: str, about: dict[str, Any]) -> None:
    control.transport.put(f"{control.transport.home}/{place}/ended.json", json.dumps(about).encode(), durable=True)


def _clean_up(control: Control, session_id: str, about: dict[str, Any], *, kept: bool, force: bool) -> tuple[str, ...]:
    """Let the plugins that made an ended session clean up after it; what they left."""
    known = sessions.spec(control, session_id, "ended")
    applied = known.get("asked", {}).get("applied", ())
    if not applied:
        return ()
    from tmuxctl import plugin
    from tmuxctl.model import SessionSpec, parse_size

    had = known["spec"]
    spec = SessionSpec(
        argv=tuple(had["argv"]),
        cwd=had["cwd"],
        env={name: value for name, value in had["env"].items() if isinstance(value, str)},
        size=parse_size(had["size"]),
        name=had["name"],
        machine=control.transport.machine,
        history=had["history"],
        notes=had["notes"],
    )
    ended = plugin.Ended(about.get("exit_status"), kept=kept, force=force)
    return plugin.cleanup(spec, [plugin.Applied(**one) for one in applied], ended)


def _drop_old(control: Control) -> None:
    """Remove the tombstones that have been kept long enough, but those of sessions whose plugins left something."""
    keep, home = control.settings.journal_keep, control.transport.home
    if keep is None:
        return
    for name, about in control.transport.files(f"{home}/ended").items():
        if about.modified < time.time() - keep and not _tombstone(control, name).get("left"):
            control.transport.remove(f"{home}/ended/{name}")


def _tombstone(control: Control, session_id: str) -> dict[str, Any]:
    """What is known of a session's end; nothing if it cannot be read."""
    with suppress(TmuxctlError, ValueError):
        about = json.loads(control.transport.read(f"{control.transport.home}/ended/{session_id}/ended.json"))
        return about if isinstance(about, dict) else {}
    return {}


def prune(control: Control, *, dry_run: bool, force: bool = False) -> Pruned:
    """Remove ended and lost sessions and every tombstone, but those whose plugins still hold something back."""
    from tmuxctl.control import adopting

    panes = sessions.panes(control)
    dead = [pane for pane in panes if pane.dead]
    gone = sessions.lost(control, panes)
    stale = adopting.gone(control)
    names = [*(pane.name for pane in dead), *(one.name for one in gone), *stale]
    if dry_run:
        return Pruned(tuple(names), True)
    for pane in dead:
        end(control, pane, grace=0.5, force=force)
    for one in gone:
        bury(control, one.id, {"exit_status": one.exit_status, "signal": one.signal}, force=force)
    if stale:
        adopting.release(control, stale)
    adopting.forget(control)
    _remove_unfinished(control)
    home = control.transport.home
    left: list[str] = []
    for name in control.transport.files(f"{home}/ended"):
        about = _tombstone(control, name)
        kept = _clean_up(control, name, about, kept=False, force=force) if about.get("left") else ()
        left += kept
        if kept and not force:
            _write(control, f"ended/{name}", {**about, "left": kept})
        else:
            control.transport.remove(f"{home}/ended/{name}")
    return Pruned(tuple(names), left=tuple(left))


def _remove_unfinished(control: Control) -> None:
    """Remove the folders of sessions that never came to be: who made them died before tmux had started the program."""
    home = control.transport.home
    for name, about in control.transport.files(f"{home}/sessions").items():
        old = about.modified < time.time() - UNFINISHED_SECONDS
        if old and launch.STARTED not in control.transport.files(f"{home}/sessions/{name}"):
            control.transport.remove(f"{home}/sessions/{name}")
