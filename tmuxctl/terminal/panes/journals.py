"""Where what a pane printed is to be had, and the writer that keeps it."""

from __future__ import annotations

import time
from typing import cast

from tmuxctl.errors import NotFound
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.journal import Journal
from tmuxctl.terminal.tmux.pane_io import PaneIO
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Transport


def open_journal(io: PaneIO, pane: Pane, folder: str) -> Journal:
    """The journal of the session in `folder`; of a pane that has none, its screen."""
    if pane.spec.get("journal", True):
        return Journal(io.transport, folder)
    from tmuxctl.terminal.panes.foreign import ForeignIO
    from tmuxctl.terminal.panes.screen_journal import ScreenJournal

    return ScreenJournal(cast(ForeignIO, io), pane, folder)


def is_writing(transport: Transport, folder: str) -> bool:
    """Whether the writer of the journal in a session's folder still runs."""
    try:
        pid = int(transport.read(f"{folder}/{layout.WRITER_PID}"))
    except (NotFound, ValueError):
        return False
    return any(row.pid == pid and row.state not in ("Z", "X") for row in transport.processes([pid]))


def end_writer(transport: Transport, folder: str, seconds: float) -> None:
    """End the writer of a session's journal, and wait until it has kept what it was given, at most about `seconds`."""
    # the script itself gives up after two seconds
    transport.shell('exec sh "$1" end', f"{folder}/{layout.WRITER}", timeout=seconds + 3)


def await_writer(transport: Transport, folder: str, seconds: float) -> None:
    """Wait until the writer of a session's journal has begun, at most `seconds`."""
    deadline = time.monotonic() + seconds
    while not transport.files(folder).get(layout.WRITER_PID) and time.monotonic() < deadline:
        time.sleep(0.005)
