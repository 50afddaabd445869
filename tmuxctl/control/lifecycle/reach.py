"""Which server a session's name leads to: ours, or that of a pane of another tmux."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tmuxctl.errors import Usage
from tmuxctl.terminal.tmux import layout

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


OTHER_SERVER = "tmux(@[^:/]*)?:"
"""How the name of a pane of another tmux server begins; what follows may have any form."""


def reach(machine: Machine, session: str) -> tuple[Machine, str]:
    """The machine that drives a session, and the session's name there: a session of ours, one that was adopted, or a pane of
    another tmux (`tmux:TARGET`, `tmux@SOCKET:TARGET`), or one of another machine (`MACHINE/NAME`). NotFound `no_target`,
    `no_machine`; Unreachable `no_server`, and why a machine cannot be reached."""
    if "/" in session and not re.match(OTHER_SERVER, session):
        from tmuxctl.control.machines import reaching

        name, _, called = session.partition("/")
        if re.match(OTHER_SERVER, called):
            raise other_server_error(name)
        place = reaching.reach_machine(machine, name)
        if place.remote is not None and "/" in called:
            raise reaching.no_further_error(name)
        return place, called
    if machine.address:
        return machine, session
    if ":" in session or machine.transport.files(f"{machine.transport.home}/{layout.ADOPTED}"):
        from tmuxctl.control.lifecycle import adopting

        return adopting.reach_adopted(machine, session) or (machine, session)
    return machine, session


def other_server_error(name: str) -> Usage:
    """The error for a pane of another tmux server of the machine `name`: its lock, its process and its journal are this machine's
    files and processes to us."""
    return Usage(
        f"panes of other tmux servers of {name} cannot be driven from here: their lock is held on the machine itself",
        reason="bad_target",
        hint=f"run tmuxctl there, or start the program in a session of its own: tmuxctl new {name}/NAME -- CMD",
    )


def by_machine(machine: Machine, names: Iterable[str]) -> dict[Machine, list[str]]:
    """The names of sessions by the machine that they are on, each as it is called there. Those of panes of other tmux servers
    are left as they are: this machine drives them."""
    found: dict[Machine, list[str]] = {}
    for name in dict.fromkeys(names):
        is_address = "/" in name and not re.match(OTHER_SERVER, name)
        place, called = reach(machine, name) if is_address else (machine, name)
        found.setdefault(place, []).append(called)
    return found


def on_one_machine(machine: Machine, names: tuple[str, ...]) -> tuple[Machine, tuple[str, ...]]:
    """The machine that these sessions are on, and their names there; Usage `several_machines` if they are on several."""
    found = by_machine(machine, names)
    if len(found) > 1:
        raise Usage("these sessions are on several machines", reason="several_machines", hint="name those of one")
    for place, called in found.items():
        return place, tuple(called)
    return machine, names
