"""The right to type: a lease in the session's own options, tested and taken inside tmux, so that two writers never mix."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from tmuxctl.errors import Conflict
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux.pane_io import field_format, session_target
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import Guard, GuardRefused, Transport


class LeaseHolder(NamedTuple):
    """One writer: `token` is unguessable; pid and start time tell whether it still lives. None of it needs quoting."""

    token: str
    pid: int
    started: int

    @classmethod
    def new(cls) -> LeaseHolder:
        """A holder for this process."""
        return cls(os.urandom(6).hex(), os.getpid(), read_start_time(os.getpid()))

    def __str__(self) -> str:
        return f"{self.token}.{self.pid}.{self.started}"


def read_start_time(pid: int) -> int:
    """When a process of this machine began, in clock ticks since boot; 0 if there is none, -1 if it cannot be told."""
    if not os.path.isdir("/proc/self"):
        return -1
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0


def is_broken(pane: Pane, machine: str | None) -> bool:
    """True if the session's lease belongs to a process of this machine that is gone."""
    if machine is not None or pane.lease.count(".") != 2:
        return False
    _, pid, started = pane.lease.split(".")
    return read_start_time(int(pid)) not in (int(started), -1)


def held_by_other(
    holder: LeaseHolder, pane: Pane, *, now: float, machine: str | None, name: str = options.LEASE
) -> str:
    """A tmux condition: another writer holds a lease that has neither run out nor lost its holder."""
    others = [f"#{{!=:#{{{name}}},{holder}}}"]
    if is_broken(pane, machine):
        others.append(f"#{{!=:#{{{name}}},{pane.lease}}}")
    others.append(f"#{{e|>:#{{{name}_until}},{int(now)}}}")
    condition = f"#{{{name}}}"
    for other in others:
        condition = f"#{{&&:{condition},{other}}}"
    return condition


def person_types(wall: float) -> str:
    """A tmux condition: a person is attached and pressed a key in the last two seconds. `wall` is the wall clock."""
    recent = f"#{{e|>=:{field_format('session_activity')},{int(wall) - TIMING.tmux.human_seconds}}}"
    return f"#{{&&:#{{session_attached}},{recent}}}"


def take_lease(
    transport: Transport, holder: LeaseHolder, pane: Pane, *, name: str = options.LEASE, timeout: float = 8.0
) -> bool:
    """Take or renew the lease in one list; False if another writer has it."""
    now = transport.clock()
    held_elsewhere = held_by_other(holder, pane, now=now, machine=transport.machine, name=name)
    target_pane = pane.target
    commands = [
        Guard(target_pane, f"#{{?{held_elsewhere},0,1}}"),
        ("set-option", "-t", target_pane, name, str(holder)),
        ("set-option", "-t", target_pane, f"{name}_until", str(int(now) + TIMING.tmux.lease_seconds)),
    ]
    try:
        transport.run(commands, timeout=timeout)
    except GuardRefused:
        return False
    return True


def take_turn(transport: Transport, holder: LeaseHolder, pane: Pane) -> bool:
    """Take or renew the right to have a turn, as `take_lease`: it keeps out other turns, and no keys."""
    reply = transport.run([("display-message", "-p", "-t", pane.target, f"#{{{options.ASKER}}}")])
    asker = pane._replace(lease=reply.decode(errors="replace").strip())
    return take_lease(transport, holder, asker, name=options.ASKER)


def release_lease(
    transport: Transport, holder: LeaseHolder, session: str, *, name: str = options.LEASE, timeout: float = 8.0
) -> None:
    """Release the lease if it is still ours."""
    target_pane = session_target(session)
    still_ours = f"#{{==:#{{{name}}},{holder}}}"
    with suppress(GuardRefused):
        transport.run([Guard(target_pane, still_ours), ("set-option", "-u", "-t", target_pane, name)], timeout=timeout)


def leased_error(name: str) -> Conflict:
    """The error for a session that another writer is typing into."""
    return Conflict(
        f"another writer is typing into {name}",
        reason="leased",
        hint="try again in a moment, or tmuxctl wait NAME --settle",
    )
