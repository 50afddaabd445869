"""What a machine has room for, checked before a session is created: tmux at its limits harms the sessions that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.control.sessions import records
from tmuxctl.errors import Failed
from tmuxctl.transport.base import Resources

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

LEAST_BYTES = 1 << 20
"""Bytes that have to be free where journals are kept."""

LEAST_PTYS = 2
"""Pseudoterminals that are left to other programs."""

SHARE = 0.8
"""How much of its descriptors the server may use: at the limit tmux 3.3a hangs with all its clients (facts)."""

END_SOME = "end some sessions: tmuxctl kill NAME"


def check_capacity(machine: Machine, living: int) -> None:
    """Failed `too_many_sessions`, `disk_full`, `no_ptys` or `no_descriptors` if there is no room for one more session than
    the `living` ones. What a machine does not tell is taken to suffice."""
    most = machine.settings.limits_sessions
    if living >= most:
        raise Failed(
            f"{living} sessions are running, as many as [limits] sessions allows",
            reason="too_many_sessions",
            hint="end some: tmuxctl kill NAME; or raise limits.sessions in config.toml",
        )
    home = machine.transport.home
    check_room(machine.transport.room(home, records.server_pid(machine)), home)


def check_room(room: Resources, home: str) -> None:
    """Failed if there is too little room for a session; `home` is where its output goes."""
    if room.free is not None and room.free < LEAST_BYTES:
        raise Failed(
            f"only {room.free >> 10} KiB are free for the output of a session", reason="disk_full", hint=f"df -h {home}"
        )
    if room.ptys and room.ptys.used + LEAST_PTYS >= room.ptys.most:
        used = f"{room.ptys.used} of this machine's {room.ptys.most} pseudoterminals are in use"
        raise Failed(used, reason="no_ptys", hint=END_SOME)
    if room.descriptors and room.descriptors.used >= SHARE * room.descriptors.most:
        used = f"the tmux server has {room.descriptors.used} of {room.descriptors.most} descriptors open"
        hint = END_SOME + "; or let it have more: ulimit -Hn, before the first session starts it"
        raise Failed(used, reason="no_descriptors", hint=hint)
