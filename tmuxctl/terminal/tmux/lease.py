"""The right to type: a lease in the session's own options, tested and taken inside tmux, so that two writers never mix."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tmuxctl import milestones
from tmuxctl.errors import Conflict
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux.pane_io import Comparison, Condition, FieldTest, PaneIO
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.timing import TIMING
from tmuxctl.value import Value, changed

NO_VALUES: Mapping[str, str | None] = MappingProxyType({})


class LeaseHolder(Value):
    """One writer: `token` is unguessable; pid and start time tell whether it still lives, unless it is on another machine than
    the session (`elsewhere`). None of it needs quoting."""

    token: str
    pid: int
    started: int
    elsewhere: bool = False

    @classmethod
    def new(cls, *, elsewhere: bool = False) -> LeaseHolder:
        """A holder for this process."""
        return cls(os.urandom(6).hex(), os.getpid(), read_start_time(os.getpid()), elsewhere)

    def __str__(self) -> str:
        # a fourth part: who reads it over there does not look for this process among its own
        return f"{self.token}.{self.pid}.{self.started}" + (".elsewhere" if self.elsewhere else "")


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


def held_by_other(io: PaneIO, holder: LeaseHolder, pane: Pane, name: str = options.LEASE) -> Condition:
    """Another writer holds a lease that has neither run out nor lost its holder."""
    others = [str(holder), *([pane.lease] if is_broken(pane, io.transport.machine) else [])]
    return (
        FieldTest(name),
        *(FieldTest(name, Comparison.DIFFERS, other) for other in others),
        FieldTest(f"{name}_until", Comparison.ABOVE, str(int(io.transport.clock()))),
    )


def person_types(wall: float) -> Condition:
    """A person is attached and pressed a key in the last two seconds. `wall` is the wall clock."""
    before = int(wall) - TIMING.tmux.human_seconds - 1
    return (FieldTest("session_attached"), FieldTest("session_activity", Comparison.ABOVE, str(before)))


def take_lease(io: PaneIO, holder: LeaseHolder, pane: Pane, *, name: str = options.LEASE) -> bool:
    """Take or renew the lease in one list; False if another writer has it."""
    return take_lease_and_look(io, holder, pane, (), name=name) is not None


def take_lease_and_look(
    io: PaneIO, holder: LeaseHolder, pane: Pane, fields: Sequence[str], *, name: str = options.LEASE
) -> Sequence[str] | None:
    """`take_lease`, and the values of these fields at that moment; None if another writer has it."""
    unless = {"leased": held_by_other(io, holder, pane, name)}
    done = io.change_and_look(pane.name, lease_values(io, holder, name), fields=fields, unless=unless)
    if done.reasons:
        return None
    milestones.reach("leased", pane.name, name)
    return done.values


def lease_values(io: PaneIO, holder: LeaseHolder, name: str = options.LEASE) -> dict[str, str]:
    """The options that say that this writer has the lease from now on."""
    return {name: str(holder), f"{name}_until": str(int(io.transport.clock()) + TIMING.tmux.lease_seconds)}


def take_turn(io: PaneIO, holder: LeaseHolder, pane: Pane, *, name: str = options.ASKER) -> bool:
    """Take or renew the right to have a turn, or a batch, as `take_lease`: it keeps out others of its kind, and no keys."""
    if take_lease(io, holder, changed(pane, lease=""), name=name):
        return True
    (asker,) = io.look(pane.name, (name,)).values
    asked = changed(pane, lease=asker)
    return is_broken(asked, io.transport.machine) and take_lease(io, holder, asked, name=name)


def release_lease(
    io: PaneIO,
    holder: LeaseHolder,
    session: str,
    *,
    name: str = options.LEASE,
    values: Mapping[str, str | None] = NO_VALUES,
) -> None:
    """Release the lease if it is still ours; `values` of other options are set in the same list, and in any case."""
    unless = {"leased": (FieldTest(name, Comparison.DIFFERS, str(holder)),)}
    if io.change(session, {**values, name: None}, unless=unless) and values:
        io.change(session, values)


def leased_error(name: str) -> Conflict:
    """The error for a session that another writer is typing into."""
    return Conflict(
        f"another writer is typing into {name}",
        reason="leased",
        hint="try again in a moment, or tmuxctl wait NAME --settle",
    )
