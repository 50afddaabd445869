"""The names of the files in a session's folder that tell what it is."""

from __future__ import annotations

from collections.abc import Collection

LAUNCHER = "launch.sh"
"""The script that becomes the program. It holds the values of its variables, and removes itself first."""

STARTED = "pid"
"""The pid of the program, by the launcher."""

EXIT = "exit"
"""How the program ended: `STATUS:SIGNAL`, either of which may be missing."""

ENDED = "ended"
"""Which limit of time ended it."""

SERVER = "server"
"""The record of the tmux server that the session was made on, by who made it."""

EVENTS = "events"
"""The folder that its program may write: what its hooks tell, a file for each event."""

SHELL = "shell"
"""The folder whose files its shell reads; beside `events`, which it may write, all of it that a sandboxed program sees."""


def started(files: Collection[str]) -> bool:
    """Whether a session ever ran in the folder with these files: its launcher says so, or who made it."""
    return STARTED in files or SERVER in files
