"""Whether a password is asked for now: what is typed then stands on no command line. Loads no rules where none can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.terminal.launch import shells

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.terminal.tmux.server import Pane


def asked_for(machine: Machine, pane: Pane) -> bool:
    """Whether the program asks for a password now. It is looked at only where that can be: where the terminal shows
    nothing of the lines it takes, or where a profile knows fields of this program that hide what is written."""
    tty = machine.transport.tty(pane.tty)
    if tty is None or (tty.canonical and tty.echo):
        return False
    if not (_asks(machine, pane) if tty.canonical else _may_hide(machine, pane)):
        return False
    from tmuxctl.control.observation import observing
    from tmuxctl.control.output import printed

    verdict = observing.observe(machine, pane, printed.last_input(machine, pane)).verdict
    return verdict.asking is not None and verdict.asking.kind.traits.hidden


def _asks(machine: Machine, pane: Pane) -> bool:
    """Whether anything on the screen asks for what is typed: text left of the cursor, or a row above it that announces it. A
    program that only takes lines without showing them, such as a filter, asks for nothing."""
    from tmuxctl.control.output import captured
    from tmuxctl.terminal.tmux import screen as screens

    seen = captured.capture_of(machine, pane)
    rows = screens.plain_text(seen.rows).split("\n")[: seen.pane.y + 1]
    if len(rows) > seen.pane.y and rows[-1][: seen.pane.x].strip():
        return True
    above = next((row.rstrip() for row in reversed(rows) if row.strip()), "")
    return above.endswith((":", "?"))


def _may_hide(machine: Machine, pane: Pane) -> bool:
    """Whether the program in the foreground, which reads keys, is known to hide some of what it reads."""
    first = next(iter(machine.transport.processes([pane.pid])), None)
    leader = next(iter(machine.transport.processes([first.foreground])), None) if first else None
    if leader is None or shells.find_shell_kind(leader.name):
        return False
    from tmuxctl.control import foreground
    from tmuxctl.control.sessions.kept_profile import profile_of

    found = foreground.profile(machine.known, profile_of(machine, pane), [leader.name])
    return found is not None and (bool(found.password_argv) or any(rule.hidden for rule in found.asking))
