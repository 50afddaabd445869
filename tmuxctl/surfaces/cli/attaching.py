"""Bringing a session to this terminal, by a client of tmux."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tmuxctl.errors import Denied, NotFound, Unreachable, Usage
from tmuxctl.terminal.tmux import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tmuxctl.control import Control
    from tmuxctl.model import Session


def attach_command(control: Control, session: str, *, read_only: bool = False, keep_size: bool = False) -> list[str]:
    """The tmux command that brings a session to this terminal, which it fits from now on unless `keep_size`.

    Usage `no_terminal` if this is none, Denied `foreign` for a pane of another server.
    """
    from tmuxctl.control.machines import reaching

    place, called = control.reach(session)
    if place is not control and not place.machine.address:
        raise Denied(
            f"{called} is a pane of another tmux server",
            reason="foreign",
            hint=f"go there: tmux -L {place.machine.transport.socket} attach",
        )
    machine = place.machine
    if machine.address:
        # only a shell there gives a terminal
        machine = reaching.reach_shell(control.machine, machine.address)
    found = control.call("show", {"session": session})
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        raise Usage(
            "attach needs a terminal, and standard input or output is not one",
            reason="no_terminal",
            hint=f"tmuxctl screen {machine.address_of(found.name)} shows what is on it",
        )
    option = (options.KEEP_SIZE, "1") if keep_size else ("-u", options.KEEP_SIZE)
    machine.transport.run([("set-option", "-q", "-t", f"={found.name}:", *option)])
    words = [
        machine.settings.tmux_binary,
        "-u",
        "-L",
        machine.transport.socket,
        "attach-session",
        "-t",
        f"={found.name}",
    ]
    words += ["-r"] if read_only else []
    if not machine.address:
        return words
    return reaching.terminal_command(machine, words)


def choose_session(control: Control, session: str | None, *, next_asking: bool) -> str:
    """The session that has waited longest for input and is on no terminal. NotFound `nobody_asks` if there is none, Usage if
    a session is named beside it, or neither."""
    if session is not None or not next_asking:
        raise Usage(
            "name a session, or say --next-asking", reason="bad_option", hint="tmuxctl ls --state input lists who asks"
        )
    sessions: Sequence[Session] = control.call("ls", {"state": "input"}).sessions
    found = [one for one in sessions if not one.attached and one.target is None]
    if not found:
        raise NotFound("no session wants input", reason="nobody_asks", hint="tmuxctl ls")
    return min(found, key=lambda one: one.active or "").name


def environment_outside_tmux() -> dict[str, str]:
    """Our environment as it is outside of any tmux: a session may be shown inside another one."""
    return {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}


def missing_client_error(tmux: str, error: OSError) -> Unreachable:
    """The error where tmux cannot be executed."""
    return Unreachable(f"{ascii(tmux)}: {error.strerror}", reason="no_tmux", hint="tmuxctl doctor")
