"""The way from a machine's name to what operations work on: connected once, and kept as long as the process has it."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tmuxctl.control.machine import Machine
from tmuxctl.control.machines import ssh
from tmuxctl.errors import Denied, NotFound, Usage
from tmuxctl.machines import MachineEntry, find_machine, read_machines
from tmuxctl.transport.base import shell_word
from tmuxctl.transport.pipe import PipeTransport
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.config import Settings
    from tmuxctl.timing import MachineTiming

_connecting = threading.Lock()


def reach_machine(machine: Machine, name: str) -> Machine:
    """The machine of this name, as this one reaches it. NotFound `no_machine` where there is none that may be reached."""
    if machine.address:
        raise no_further_error(machine.address)
    with _connecting:
        found = machine.reached.get(name)
        if found is None:
            entry = find_machine(name, listed_only=machine.listed_only)
            machine.reached[name] = found = _make_machine(machine, entry)
    return found


def no_further_error(name: str) -> NotFound:
    """The error for a machine that is named behind the machine `name`."""
    hint = "name the machine alone; what reaches it through another one stands in your ssh configuration (ProxyJump)"
    return NotFound(f"{name} reaches no other machines", reason="no_machine", hint=hint)


def declare_machine(machine: Machine, entry: MachineEntry) -> None:
    """Have a name lead to this machine, in this process. Usage `bad_machine` where the name
    leads to another one: by `machines.toml`, or by what was declared before."""
    listed = read_machines().get(entry.name)
    with _connecting:
        known = machine.reached.get(entry.name)
        if known is None:
            known = machine.reached[entry.name] = _make_machine(machine, listed or entry)
    other = known.entry
    if (
        other is None
        or (other.ssh, other.command, other.gateway) != (entry.ssh, entry.command, entry.gateway)
        or (listed is None and (other.tmux, other.socket) != (entry.tmux, entry.socket))
    ):
        raise Usage(
            f"{entry.name} is another machine {'in machines.toml' if listed else 'of another team'}",
            reason="bad_machine",
            hint="give it another name; what is known: tmuxctl machine ls",
        )


def _make_machine(here: Machine, entry: MachineEntry) -> Machine:
    if entry.gateway:
        from tmuxctl.control.machines.remote import make_remote_machine

        return make_remote_machine(here, entry)
    settings = settings_of(here.settings, entry, here.transport.socket)
    transport = connect(entry, settings, here.timing.machine)

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
    """A transport to a machine. Nothing is reached before its first call. Usage `operations_only` for one behind a gateway."""
    if entry.gateway:
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
