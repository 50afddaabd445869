"""From a machine's name to what operations work on: by which way it is reached, and what is kept open as long as the process has
it."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tmuxctl.control.machine import Machine
from tmuxctl.control.machines import ssh
from tmuxctl.control.machines.ways import UsedWay, find_used, note_used
from tmuxctl.errors import Denied, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.machines import MachineEntry, find_machine, read_machines
from tmuxctl.transport.base import shell_word
from tmuxctl.transport.pipe import PipeTransport
from tmuxctl.value import changed
from tmuxctl.vocabulary import Way

if TYPE_CHECKING:
    from tmuxctl.config import Settings
    from tmuxctl.control.machine import OtherMachine
    from tmuxctl.timing import MachineTiming

_naming = threading.Lock()


def reach_machine(machine: Machine, name: str) -> Machine:
    """The machine of this name, as this one reaches it now. NotFound `no_machine` where there is none that may be reached; where
    there are several ways to it, what says why none of them works."""
    return _find_reached(machine, name).reach()


def reach_shell(machine: Machine, name: str) -> Machine:
    """The machine of this name by its way to a shell, for what only that can do; as `reach_machine` where there is none."""
    return _find_reached(machine, name).reach_shell()


def _find_reached(machine: Machine, name: str) -> OtherMachine:
    if machine.address:
        raise no_further_error(machine.address)
    with _naming:
        found = machine.reached.get(name)
        if found is None:
            entry = find_machine(name, listed_only=machine.listed_only)
            machine.reached[name] = found = ReachedMachine(machine, entry)
    return found


def no_further_error(name: str) -> NotFound:
    """The error for a machine that is named behind the machine `name`."""
    hint = "name the machine alone; what reaches it through another one stands in your ssh configuration (ProxyJump)"
    return NotFound(f"{name} reaches no other machines", reason="no_machine", hint=hint)


def declare_machine(machine: Machine, entry: MachineEntry) -> None:
    """Have a name lead to this machine, in this process. Usage `bad_machine` where the name
    leads to another one: by `machines.toml`, or by what was declared before."""
    listed = read_machines().get(entry.name)
    with _naming:
        known = machine.reached.get(entry.name)
        if known is None:
            known = machine.reached[entry.name] = ReachedMachine(machine, listed or entry)
    other = known.entry
    if (other.ssh, other.command, other.gateway) != (entry.ssh, entry.command, entry.gateway) or (
        listed is None and (other.tmux, other.socket) != (entry.tmux, entry.socket)
    ):
        raise Usage(
            f"{entry.name} is another machine {'in machines.toml' if listed else 'of another team'}",
            reason="bad_machine",
            hint="give it another name; what is known: tmuxctl machine ls",
        )


class ReachedMachine:
    """A machine as this process reaches it: by the first of its ways that works, which is decided here alone, and before each call.

    A way is opened before anything is asked by it; only one that could not be opened is given up for the next. So what a call
    may have done by one way is never done again by another.
    """

    def __init__(self, here: Machine, entry: MachineEntry) -> None:
        self.entry = entry
        self._here = here
        self._machines: dict[Way, Machine] = {}
        self._used: UsedWay | None = None
        self._deciding = threading.Lock()

    def reach(self) -> Machine:
        """The machine, by the way that works. Raises what says why none does; nothing is reached where there is only one way."""
        with self._deciding:
            return self._decide() if self.entry.gateway else self._by(self.entry.ways[0])

    def reach_shell(self) -> Machine:
        """The machine by ssh or a command, where it has that, or by a shell here if it is this one; else as `reach`."""
        found = self.reach()
        with self._deciding:
            return found if found.remote is None else self._by(self.entry.ways[0])

    def close(self) -> None:
        """End what is kept open to it."""
        for one in self._machines.values():
            one.transport.close()

    def _decide(self) -> Machine:
        timing, now = self._here.timing.machine, time.time()
        ways = self.entry.ways
        # what is written down matters where there are several
        used = self._used or (find_used(self.entry.name) if len(ways) > 1 else None)
        if used is not None and not used.is_fresh(now, timing.way_seconds):
            used = None
        if used is not None and (used.way in ways or used is self._used):
            ways = (used.way, *(way for way in ways if way not in (used.way, Way.LOCAL)))
        elif is_own_machine(self.entry):
            ways = (Way.LOCAL,)
        found = self._open_first(ways)
        way = next(way for way, machine in self._machines.items() if machine is found)
        self._note(UsedWay(way, used.chosen if used is not None and used.way is way else now, now))
        return found

    def _open_first(self, ways: Sequence[Way]) -> Machine:
        """The machine by the first of these ways that can be opened."""
        if ways in ((Way.LOCAL,), (Way.GATEWAY,)):
            # what is wrong with it is told by the call itself, which may be patient
            return self._by(ways[0])
        errors: dict[Way, TmuxctlError] = {}
        for way in ways:
            try:
                found = self._by(way)
                _open(found)
                return found
            except TmuxctlError as error:
                if way is not Way.GATEWAY and not isinstance(error, Unreachable):
                    raise
                errors[way] = error
        raise _no_way_error(self.entry.name, errors)

    def _note(self, used: UsedWay) -> None:
        """Remember the way that is used: in a file once for each process, and whenever one is chosen anew."""
        is_new = self._used is None or (self._used.way, self._used.chosen) != (used.way, used.chosen)
        self._used = used
        if is_new and (used.way,) != self.entry.ways:
            note_used(self.entry.name, used)

    def _by(self, way: Way) -> Machine:
        """The machine by this way; nothing is reached yet."""
        found = self._machines.get(way)
        if found is None:
            found = self._machines[way] = _make_machine(self._here, self.entry, way)
        return found


def is_own_machine(entry: MachineEntry) -> bool:
    """Whether a machine is this one: the key that is known of it is this user's own. Its name or address decide nothing."""
    try:
        from tmuxctl.sealed.keys import KeyFiles
        from tmuxctl.sealed.trust import known_machines
    except ImportError:
        return False
    # what is wrong with these files is told by the way through the gateway
    with suppress(TmuxctlError):
        known = known_machines().find(entry.name)
        own = KeyFiles().find() if known is not None and known.host_id == entry.gateway else None
        return own is not None and known is not None and known.key in (one.public for one in own.all)
    return False


def _open(machine: Machine) -> None:
    """Open the connection to a machine unless it is open; nothing is changed there. Raises what says why it cannot be reached."""
    if machine.remote is not None:
        machine.remote.reach()
    elif isinstance(machine.transport, PipeTransport):
        machine.transport.reach()


def _no_way_error(name: str, errors: Mapping[Way, TmuxctlError]) -> TmuxctlError:
    """The error for a machine that no way leads to; that of the gateway where it is more than that it cannot be reached."""
    told = "; ".join(f"by {way.value}: {error.message.removeprefix(f'{name}: ')}" for way, error in errors.items())
    message, reasons = f"{name}: no way to it works; {told}", {way.value: error.reason for way, error in errors.items()}
    last = errors[Way.GATEWAY]
    if not isinstance(last, Unreachable):
        return type(last)(message, reason=last.reason, hint=last.hint, machine=name, ways=reasons)
    return Unreachable(message, reason="no_way", hint=last.hint, machine=name, ways=reasons)


def _make_machine(here: Machine, entry: MachineEntry, way: Way) -> Machine:
    if way is Way.GATEWAY:
        from tmuxctl.control.machines.remote import make_remote_machine

        return make_remote_machine(here, entry)
    settings = settings_of(here.settings, entry, here.transport.socket)
    if way is Way.LOCAL:
        entry = changed(entry, ssh=None, command=("sh",))
    timing = here.timing.machine
    if entry.gateway:
        timing = changed(timing, start_seconds=timing.first_seconds)
    transport = connect(entry, settings, timing)

    def sleep(seconds: float) -> None:
        began = here.clock.monotonic()
        if transport.pause(seconds):
            # where answers come at once it was not so long here
            seconds = max(0.0, seconds - (here.clock.monotonic() - began))
        here.clock.sleep(seconds)

    return Machine(
        transport,
        settings,
        entry=entry,
        resident=here.panes is not None,
        timing=here.timing,
        limits=here.limits,
        clock=changed(here.clock, wall=transport.wall, sleep=sleep),
        address=entry.name,
    )


def settings_of(settings: Settings, entry: MachineEntry, socket: str) -> Settings:
    """The settings that hold for a machine: the user's, with the tmux and the socket that are used there."""
    return changed(settings, tmux_binary=entry.tmux, tmux_socket=entry.socket or socket)


def connect(entry: MachineEntry, settings: Settings, timing: MachineTiming) -> PipeTransport:
    """A transport to a machine with a shell. Nothing is reached before its first call. Usage `operations_only` for one that is
    reached through a gateway alone."""
    if not (entry.ssh or entry.command):
        from tmuxctl.control.machines.remote import operations_only_error

        raise operations_only_error(entry.name)
    from tmuxctl.terminal.launch.tmux_conf import CONFIG

    explain = partial(ssh.explain if entry.ssh else ssh.explain_end, entry.name)
    return PipeTransport(
        door(entry),
        machine=entry.name,
        socket=settings.tmux_socket,
        tmux=entry.tmux,
        config=CONFIG,
        elsewhere=True,
        start_seconds=timing.start_seconds,
        explain=explain,
        known=f"{ssh.runtime_folder('known')}/{entry.name}.json",
    )


def door(entry: MachineEntry) -> list[str]:
    """The command that runs sh there on its standard input."""
    if entry.command:
        return list(entry.command)
    assert entry.ssh
    return [*ssh.ssh_command(entry.ssh), ssh.REMOTE_SHELL]


def terminal_command(machine: Machine, words: Sequence[str]) -> list[str]:
    """The command that runs `words` on a machine with this terminal; Denied `no_terminal` where its door has none."""
    entry = find_machine(machine.address)
    if entry.gateway and is_own_machine(entry):
        return list(words)
    if not entry.ssh:
        raise Denied(
            f"{entry.name} is reached by a command that gives no terminal",
            reason="no_terminal",
            hint=f"go there by another way, and then: {shlex.join(words)}",
        )
    # the login shell there reads it, and whatever that is, it takes these words as they are
    return [
        *ssh.ssh_command(entry.ssh, terminal=True),
        "exec " + " ".join(map(shell_word, ("env", "LC_ALL=C.UTF-8", *words))),
    ]
