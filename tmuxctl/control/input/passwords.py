"""Whether a program asks for a password now, which may stand on no command line. Loads no rules where none can apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.control import foreground
from tmuxctl.terminal.launch import shells

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.evidence import Tty
    from tmuxctl.terminal.tmux.server import Pane
    from tmuxctl.transport.base import Process


def asks_for_password(machine: Machine, pane: Pane, tty: Tty | None) -> bool:
    """Whether the program asks for a password now, whose terminal is set so. The state is judged only where that is possible:
    the terminal takes lines without echo, or the program's profile knows fields that hide what is written."""
    if tty is None or (tty.canonical and tty.echo):
        return False
    if not (_screen_asks(machine, pane) if tty.canonical else _may_hide_input(machine, pane)):
        return False
    from tmuxctl.control.observation import observing
    from tmuxctl.control.output import printed

    verdict = observing.observe(machine, pane, printed.read_last_input(machine, pane)).verdict
    return verdict.asking is not None and verdict.asking.kind.traits.hidden


def _screen_asks(machine: Machine, pane: Pane) -> bool:
    """Whether the screen asks for input: text left of the cursor, or a row above it that ends in `:` or `?`. A program that
    only takes lines without showing them, such as a filter, asks for nothing."""
    from tmuxctl.control.output import captured
    from tmuxctl.terminal.tmux import screen as screens

    capture = captured.capture_pane(machine, pane)
    rows = screens.plain_text(capture.rows).split("\n")[: capture.pane.y + 1]
    if len(rows) > capture.pane.y and rows[-1][: capture.pane.x].strip():
        return True
    above = next((row.rstrip() for row in reversed(rows) if row.strip()), "")
    return above.endswith((":", "?"))


def _may_hide_input(machine: Machine, pane: Pane) -> bool:
    """Whether the program in the foreground, which reads keys, is known to hide some of what it reads."""
    first = next(iter(machine.transport.processes([pane.pid])), None)
    if first is not None and first.pid == first.foreground:
        leader: Process | None = first
    else:
        leader = next(iter(machine.transport.processes([first.foreground])), None) if first else None
    if leader is None or shells.find_shell_kind(leader.name):
        return False
    from tmuxctl.control.sessions.kept_profile import profile_of

    found = foreground.foreground_profile(machine.known, profile_of(machine, pane), [leader.name])
    return found is not None and (bool(found.password_argv) or any(rule.hidden for rule in found.asking))
