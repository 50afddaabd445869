"""Where what a pane printed is to be had."""

from __future__ import annotations

from typing import cast

from tmuxctl.terminal.tmux.journal import Journal
from tmuxctl.terminal.tmux.pane_io import PaneIO
from tmuxctl.terminal.tmux.server import Pane


def open_journal(io: PaneIO, pane: Pane, folder: str) -> Journal:
    """The journal of the session in `folder`; of a pane that has none, its screen."""
    if pane.spec.get("journal", True):
        return Journal(io.transport, folder)
    from tmuxctl.terminal.panes.foreign import ForeignIO
    from tmuxctl.terminal.panes.screen_journal import ScreenJournal

    return ScreenJournal(cast(ForeignIO, io), pane, folder)
