"""The writer of a session's journal: whether it runs, and its end."""

from __future__ import annotations

import time

from tmuxctl.errors import NotFound
from tmuxctl.terminal.tmux import layout
from tmuxctl.transport.base import Transport


def is_writing(transport: Transport, folder: str) -> bool:
    """Whether the writer of the journal in a session's folder still runs."""
    try:
        pid = int(transport.read(f"{folder}/{layout.WRITER_PID}", 0, 32))
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
