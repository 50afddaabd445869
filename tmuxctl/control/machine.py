"""What every operation works on: one tmux server, through the transport that reaches it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from tmuxctl.control.foreground import KnownProfiles
from tmuxctl.terminal.tmux.pane_io import PaneIO
from tmuxctl.timing import CLOCK, LIMITS, TIMING, Clock, Limits, Timing
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.config import Settings
    from tmuxctl.evidence import Look
    from tmuxctl.machines import MachineEntry
    from tmuxctl.model import Session, State
    from tmuxctl.plugin_machine import PluginMachine
    from tmuxctl.program_profile import Profile
    from tmuxctl.rpc.records import OperationsElsewhere
    from tmuxctl.terminal.tmux.lease import LeaseHolder
    from tmuxctl.terminal.tmux.server import Pane
    from tmuxctl.transport.base import Transport, Watched


class Standing(Value):
    """A session as it was listed: the facts tmux told, what was made of them `at` this moment of the monotonic clock, what must
    not change for it to stand, and the stamp of that, None if there is none yet."""

    pane: Pane
    session: Session
    at: float
    watched: Watched
    stamp: object | None


class KeptLooks(Value):
    """The last looks at a session that a process which stays took: in which life of it, the state they led to, and when, by the
    monotonic clock, they were last written for other processes."""

    incarnation: str
    looks: tuple[Look, ...]
    state: State
    written: float

    def are_written(self, incarnation: str, state: State, oldest: float) -> bool:
        """Whether looks in this life that led to this state were written at this moment or later."""
        return (self.incarnation, self.state) == (incarnation, state) and self.written >= oldest


class OtherMachine(Protocol):
    """A machine that is reached from another one: `control.machines.reaching.ReachedMachine`."""

    entry: MachineEntry

    def reach(self) -> Machine:
        """The machine, by the way to it that works."""

    def reach_shell(self) -> Machine:
        """The same by a way to a shell there, where it has one."""

    def close(self) -> None:
        """End what is kept open to it."""


class Machine:
    """One tmux server: the transport that reaches it, the user's settings, and what a process remembers of its sessions.

    `io` is the way to the panes of its sessions. `known` are the profiles of the programs that may be in the foreground; the
    same for all servers of a machine.
    """

    def __init__(
        self,
        transport: Transport,
        settings: Settings,
        *,
        io: PaneIO | None = None,
        resident: bool = False,
        known: KnownProfiles | None = None,
        timing: Timing = TIMING,
        limits: Limits = LIMITS,
        clock: Clock = CLOCK,
        address: str = "",
        entry: MachineEntry | None = None,
        remote: OperationsElsewhere | None = None,
        service: type | None = None,
    ) -> None:
        self.transport, self.io = transport, io or PaneIO(transport)
        self.settings = settings
        self.timing, self.limits, self.clock = timing, limits, clock
        self.known = known or KnownProfiles(transport)
        self.panes: dict[str, Pane] | None = {} if resident else None
        """What a resident process remembers of sessions it wrote to; never trusted for more than where to look."""
        self.profiles: dict[str, Profile | None] | None = {} if resident else None
        """The profiles a resident process read, by the session's id: they never change."""
        self.standing: dict[str, Standing] | None = {} if resident else None
        """The sessions a resident process listed and that may be told again, by their ids."""
        self.looks: dict[str, KeptLooks] | None = {} if resident else None
        """The last looks that a resident process took, by the session's id."""
        self.address = address
        """What stands before the name of a session of this machine; empty for the one that the process works on."""
        self.entry = entry
        """How it is reached, where that is not the machine that the process works on."""
        self.remote = remote
        """The operations of the tmuxctl there, where these are what is carried out there, and nothing else."""
        self.service = service
        """The class that declares the operations, for those that are carried out elsewhere."""
        self.reached: dict[str, OtherMachine] = {}
        """The other machines that were named here, by name."""
        self.listed_only = False
        """Whether only machines of `machines.toml` are reached: a caller of a server may not have it connect anywhere else."""
        self.questions: dict[str, str] = {}
        """The last question that this process noted in the timeline of a session: its id, by the session's."""

    @cached_property
    def holder(self) -> LeaseHolder:
        """Who we are to a lease."""
        return self.new_holder()

    def new_holder(self) -> LeaseHolder:
        """One more writer of this process: threads are as many."""
        from tmuxctl.terminal.tmux.lease import LeaseHolder

        return LeaseHolder.new(elsewhere=bool(self.address))

    @cached_property
    def for_plugins(self) -> PluginMachine:
        """The machine as plugins work with it; where this process is on it, without a shell between."""
        from tmuxctl.plugin_machine import PluginMachine, this_machine

        transport = self.transport
        if transport.pid is not None:
            return this_machine()
        return PluginMachine(transport.shell, transport.starting_place().environment, name=transport.machine)

    def hold_lock(self, path: str, name: str) -> AbstractContextManager[None]:
        """A lock on this machine, which the end of its holder gives back. Conflict `leased` if another process has it for
        `foreign_lock_seconds`; `name` is what is locked."""
        seconds = self.timing.tmux.foreign_lock_seconds
        busy = f"another tmuxctl has been writing to {name} for {seconds:g} s"
        return self.for_plugins.lock(path, busy, "try again in a moment", seconds, reason="leased")

    def address_of(self, session: str) -> str:
        """What a session of this machine is called by who reached it."""
        return f"{self.address}/{session}" if self.address else session

    def close(self) -> None:
        """End what is kept open, to this machine and to those that were reached from here; sessions go on."""
        for one in self.reached.values():
            one.close()
        self.reached.clear()
        self.transport.close()

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
