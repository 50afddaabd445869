"""Which server a session's name leads to: ours, or that of a pane of another tmux."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.errors import NotFound
from tmuxctl.terminal.tmux import layout

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


def reach(machine: Machine, session: str) -> tuple[Machine, str]:
    """The machine that drives a session, and the session's name there: a session of ours, one that was adopted, or a pane of
    another tmux (`tmux:TARGET`, `tmux@SOCKET:TARGET`). NotFound `no_target`, and `no_machine` for a session of another machine
    (`MACHINE/NAME`); Unreachable `no_server`."""
    if "/" in session and ":" not in session:
        place = ascii(session.partition("/")[0][:40])
        raise NotFound(f"no machine {place}", reason="no_machine", hint="tmuxctl ls has the sessions of this one")
    if ":" in session or machine.transport.files(f"{machine.transport.home}/{layout.ADOPTED}"):
        from tmuxctl.control.lifecycle import adopting

        return adopting.reach_adopted(machine, session) or (machine, session)
    return machine, session
