"""Ending sessions: the whole process tree, verified; what stays readable afterwards, and removing that too."""

from __future__ import annotations

import json
import signal as signals
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.control import sessions
from tmuxctl.errors import Exited, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.results import End, Killed, Pruned
from tmuxctl.terminal import process, server
from tmuxctl.terminal.server import Pane

if TYPE_CHECKING:
    from tmuxctl.control.service import Control


def kill(
    control: Control, names: Sequence[str], *, everything: bool, signal: str, grace: float, force: bool = False
) -> Killed:
    """End sessions by name, or all; a name that is not there is an error before anything is ended, and so is a pane of
    somebody else's, but by `force`."""
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
    ended = [end(control, pane, signal=word, grace=grace) for pane in panes]
    ended += [_end_there(place, called, word, grace) for place, called in strangers]
    for one in forgotten:
        seen, left = process.end_marked(control.transport, one.id, signal=word, grace=grace)
        bury(control, one.id)
        ended.append(End(one.name, one.id, None, None, seen, tuple(left)))
    return Killed(tuple(ended))


def _end_there(place: Control, name: str, signal: str, grace: float) -> End:
    """End the programs of a pane of another server; what becomes of the pane is its own tmux's affair."""
    pane = sessions.find(place, name)
    seen, left = process.end_tree(place.transport, pane, signal=signal, grace=grace)
    return End(name, pane.id, None, None, seen, tuple(left))


def end(control: Control, pane: Pane, *, signal: str = "TERM", grace: float = 3.0) -> End:
    """End one session's processes, then the session, and leave its tombstone."""
    transport = control.transport
    seen, left = process.end_tree(transport, pane, signal=signal, grace=grace)
    status = _last_status(control, pane)
    _tombstone(control, pane, status)
    with suppress(NotFound, Unreachable):
        transport.run([("kill-session", "-t", "=" + pane.name)])
    _clean_up(control, pane, status)
    bury(control, pane.id)
    return End(pane.name, pane.id, status.status, status.signal, seen, tuple(left))


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


def _tombstone(control: Control, pane: Pane, now: Pane) -> None:
    about = {"exit_status": now.status, "signal": now.signal, "ended": sessions.when(time.time())}
    with suppress(TmuxctlError, OSError):
        from tmuxctl.control import look

        about["screen"] = look.screen(
            control, pane.name, ansi=False, html=False, svg=False, scrollback=None, trim=True, wide=False
        ).text
    with suppress(TmuxctlError, OSError):
        control.transport.put(
            f"{sessions.folder(control, pane.id)}/ended.json", json.dumps(about).encode(), durable=True
        )


def _clean_up(control: Control, pane: Pane, now: Pane) -> None:
    """Let the plugins that made the session clean up after it."""
    kept = sessions.spec(control, pane.id)
    applied = kept.get("asked", {}).get("applied", ())
    if not applied:
        return
    from tmuxctl import plugin
    from tmuxctl.model import SessionSpec, parse_size

    had = kept["spec"]
    spec = SessionSpec(
        argv=tuple(had["argv"]),
        cwd=had["cwd"],
        env={name: value for name, value in had["env"].items() if isinstance(value, str)},
        size=parse_size(had["size"]),
        name=pane.name,
        machine=control.transport.machine,
        history=had["history"],
        notes=had["notes"],
    )
    plugin.cleanup(spec, [plugin.Applied(**one) for one in applied], plugin.Ended(now.status, kept=True))


def bury(control: Control, session_id: str) -> None:
    """Move a session's folder to the ended ones, and drop those whose time is over."""
    transport = control.transport
    transport.make_folder(f"{transport.home}/ended")
    with suppress(OSError, TmuxctlError):
        transport.rename(sessions.folder(control, session_id), f"{transport.home}/ended/{session_id}")
    keep = control.settings.journal_keep
    if keep is not None:
        for name, about in transport.files(f"{transport.home}/ended").items():
            if about.modified < time.time() - keep:
                transport.remove(f"{transport.home}/ended/{name}")


def prune(control: Control, *, dry_run: bool) -> Pruned:
    """Remove ended and lost sessions and every tombstone."""
    from tmuxctl.control import adopting

    panes = sessions.panes(control)
    dead = [pane for pane in panes if pane.dead]
    gone = sessions.lost(control, panes)
    stale = adopting.gone(control)
    names = [*(pane.name for pane in dead), *(one.name for one in gone), *stale]
    if dry_run:
        return Pruned(tuple(names), True)
    for pane in dead:
        end(control, pane, grace=0.5)
    for one in gone:
        bury(control, one.id)
    if stale:
        adopting.release(control, stale)
    adopting.forget(control)
    home = control.transport.home
    for name in control.transport.files(f"{home}/ended"):
        control.transport.remove(f"{home}/ended/{name}")
    return Pruned(tuple(names))
