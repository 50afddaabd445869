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


def kill(control: Control, names: Sequence[str], *, everything: bool, signal: str, grace: float) -> Killed:
    """End sessions by name, or all; a name that is not there is an error before anything is ended."""
    word = signal.upper().removeprefix("SIG")
    if f"SIG{word}" not in signals.Signals.__members__:
        raise Usage(f"{ascii(signal[:20])} is no signal", reason="bad_signal", hint="TERM, INT, HUP, KILL, ...")
    if everything == bool(names):
        raise Usage("name the sessions to kill, or give --all", reason="missing", hint="tmuxctl ls")
    if everything:
        panes = sessions.panes(control)
        forgotten = sessions.lost(control, panes)
    else:
        panes, forgotten = [], []
        for name in dict.fromkeys(names):
            try:
                panes.append(sessions.find(control, name))
            except (Unreachable, Exited) as error:
                if error.reason not in sessions.GONE:
                    raise
                forgotten += [one for one in sessions.lost(control, []) if name in (one.name, one.id)]
    ended = [end(control, pane, signal=word, grace=grace) for pane in panes]
    for one in forgotten:
        seen, left = process.end_marked(control.transport, one.id, signal=word, grace=grace)
        bury(control, one.id)
        ended.append(End(one.name, one.id, None, None, seen, tuple(left)))
    return Killed(tuple(ended))


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
    panes = sessions.panes(control)
    dead = [pane for pane in panes if pane.dead]
    gone = sessions.lost(control, panes)
    names = [*(pane.name for pane in dead), *(one.name for one in gone)]
    if dry_run:
        return Pruned(tuple(names), True)
    for pane in dead:
        end(control, pane, grace=0.5)
    for one in gone:
        bury(control, one.id)
    home = control.transport.home
    for name in control.transport.files(f"{home}/ended"):
        control.transport.remove(f"{home}/ended/{name}")
    return Pruned(tuple(names))
