"""Changing a session that runs: its name, its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.control.lifecycle.listing import show
from tmuxctl.control.sessions.finding import find_session, open_journal
from tmuxctl.control.sessions.records import change_spec
from tmuxctl.errors import Conflict, TmuxctlError
from tmuxctl.model import Session, check_name, parse_size
from tmuxctl.operations import current
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux.timeline import Moment
from tmuxctl.vocabulary import MomentKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


def rename(machine: Machine, session: str, name: str) -> Session:
    """Give a session another name."""
    check_name(name)
    pane = find_session(machine, session)
    # if we die between the two, it is at least restored under the name it was to have
    change_spec(machine, pane.id, lambda kept: kept["spec"].update(name=name))
    try:
        machine.transport.run([("rename-session", "-t", "=" + pane.name, name)])
    except TmuxctlError as error:
        change_spec(machine, pane.id, lambda kept: kept["spec"].update(name=pane.name))
        if error.reason == "exists":
            raise Conflict(f"a session named {name} exists", reason="exists", hint="choose another name") from None
        raise
    return show(machine, name)


def resize(machine: Machine, session: str, size: str) -> Session:
    """Change the size a session has when nobody is attached."""
    wanted = parse_size(size)
    pane = find_session(machine, session)
    if (caller := current().caller) and machine.transport.pid is not None:
        caller.refuse_own(pane.name, pane.id, pane.pid)
    if pane.dead:
        from tmuxctl.terminal.input.paste import ended_error

        raise ended_error(pane)
    change_spec(machine, pane.id, lambda kept: kept["spec"].update(size=str(wanted)))
    cols, rows = str(wanted.cols), str(wanted.rows)
    # what comes from here on is drawn for the new size
    offset = open_journal(machine, pane).end()
    moment = Moment(MomentKind.SIZE, offset, machine.clock.wall(), cols=wanted.cols, rows=wanted.rows)
    machine.transport.run(
        [
            ("set-option", "-t", pane.target, options.COLUMNS, cols),
            ("set-option", "-t", pane.target, options.ROWS, rows),
            ("resize-window", "-t", pane.target, "-x", cols, "-y", rows),
        ]
    )
    machine.io.open_timeline(pane).add(moment)
    return show(machine, pane.name)
