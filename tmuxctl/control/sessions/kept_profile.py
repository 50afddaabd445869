"""The profile that a session keeps from its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.control.sessions import records
from tmuxctl.errors import Denied, NotFound
from tmuxctl.program_profile import from_json
from tmuxctl.terminal.tmux import layout
from tmuxctl.untrusted import JSON_LIMIT

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.program_profile import Profile
    from tmuxctl.terminal.tmux.server import Pane


def profile_of(machine: Machine, pane: Pane) -> Profile | None:
    """The profile that was frozen into the session when it was created, or None."""
    if not pane.spec.get("profile"):
        return None
    known = machine.profiles
    if known is not None and pane.id in known:
        return known[pane.id]
    try:
        path = f"{records.session_folder(machine, pane.id)}/{layout.PROFILE}"
        found = from_json(machine.transport.read(path, 0, JSON_LIMIT + 1), path)
    except (NotFound, Denied):
        found = None
    if known is not None:
        known[pane.id] = found
    return found
