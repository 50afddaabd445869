"""The profile that a session keeps from its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.control import sessions
from tmuxctl.errors import Denied, NotFound
from tmuxctl.untrusted import JSON_LIMIT

if TYPE_CHECKING:
    from tmuxctl.control.service import Control
    from tmuxctl.profile import Profile
    from tmuxctl.terminal.server import Pane


def profile_of(control: Control, pane: Pane) -> Profile | None:
    """The profile that was frozen into the session when it was created, or None."""
    if not pane.spec.get("profile"):
        return None
    known = control.profiles
    if known is not None and pane.id in known:
        return known[pane.id]
    from tmuxctl.profile import thaw

    try:
        found = thaw(control.transport.read(f"{sessions.folder(control, pane.id)}/profile.json", 0, JSON_LIMIT + 1))
    except (NotFound, Denied):
        found = None
    if known is not None:
        known[pane.id] = found
    return found
