"""What a process has just done, by name, for tests that wait for it.

A test binds a Unix datagram socket and names it in TMUXCTL_MILESTONES; without that variable nothing is sent. It waits for a name
instead of asking tmux every few milliseconds whether something has changed, which is work for the machine and says it late.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Literal

VARIABLE = "TMUXCTL_MILESTONES"

Milestone = Literal["observed", "typed", "leased", "answered"]
"""A state was judged; an input was typed; a lease of a session was taken or renewed; a turn is over."""


def reach(milestone: Milestone, session: str, about: str = "") -> None:
    """Send the milestone, the session's name, and which state was judged or which lease was taken. Nothing is raised if nobody
    listens or the socket is full (unix(7), max_dgram_qlen)."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    import socket

    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
        sender.sendto("\0".join((milestone, session, about)).encode(), path)
