"""What a list of processes tells of a terminal's foreground: who works, who began, and who may wait for whom.

`ps` tells neither what a process waits for nor what it has open, so these are signs of work alone: without them a program
may still work.
"""

from __future__ import annotations

from tmuxctl.evidence import Program
from tmuxctl.reading.evidence import programs
from tmuxctl.reading.evidence.tty_waits import TICKS, Foreground
from tmuxctl.reading.state.situation import Situation

OLD = 0.25
"""Seconds that a list of processes may be old (`transport/ps.py`)."""

SHARE = 0.1
"""Of one processor: what waits for input uses less."""

WORKS = ("R", "D", "U")
"""States of a process that has the processor, or waits for a disk (ps(1) of macOS and BSD)."""


def find_working(situation: Situation, foreground: Foreground) -> str | None:
    """The name of a program of the foreground that uses the processor. Of one that takes keys a single moment says nothing:
    it draws."""
    for program in foreground.programs:
        runs = not situation.raw and program.state in WORKS
        if program.foreground and (runs or _uses_processor(situation, program)):
            return program.name
    return None


def _uses_processor(situation: Situation, program: Program) -> bool:
    look = next((look for look in reversed(situation.looks) if situation.look.at - look.at >= OLD), None)
    if look is None or look.kernel is None:
        return False
    before = next((earlier.cpu for earlier in look.kernel.programs if earlier.pid == program.pid), program.cpu)
    return (program.cpu - before) / TICKS > SHARE * (situation.look.at - look.at)


def find_begun(situation: Situation, foreground: Foreground) -> str | None:
    """The name of a program that began after the last output: what stands on the screen is not its prompt. Where a program
    draws a whole screen, of any that it began to run: it may draw on, to tell how long that takes."""
    draws = situation.full_screen and bool(situation.raw)
    found = list_helpers(foreground) if draws else foreground.programs
    # an older list may lack what drew it
    since = OLD + (_drawn_since(situation) if draws else situation.look.at - situation.quiet)
    for look in situation.looks:
        if look.at < since or look.kernel is None or not look.kernel.programs:
            continue
        # a shell whose command has ended comes back, and is not new
        known = {pid for program in look.kernel.programs for pid in (program.pid, program.parent)}
        if name := next((program.name for program in found if program.pid not in known), None):
            return name
    return None


def _drawn_since(situation: Situation) -> float:
    """The moment from which on a program has drawn this screen."""
    first = situation.look
    for look in reversed(situation.looks):
        tty = look.kernel.tty if look.kernel else None
        if look.alternate != first.alternate or tty is None or tty.canonical:
            break
        first = look
    return first.at


def list_helpers(foreground: Foreground) -> tuple[Program, ...]:
    """What a program that takes keys runs beside itself, and may wait for. A shell that runs the program is none, nor is a
    pager or editor that was run to show something."""
    shown = [program for program in foreground.programs if not (program.foreground and programs.is_shell(program.name))]
    if any(program.foreground and _is_shown(program) for program in shown[1:]):
        return ()
    return tuple(shown[1:])


def _is_shown(program: Program) -> bool:
    return programs.is_pager(program.name) or programs.is_editor(program.name)


def is_lone_shell(foreground: Foreground | None) -> bool:
    """A shell is alone in the foreground: without a command that runs, it sleeps for nothing but input."""
    return foreground is not None and len(foreground.programs) == 1 and programs.is_shell(foreground.name)


def lacks_shell(foreground: Foreground) -> bool:
    """Neither a shell is in the foreground nor what shows one of elsewhere."""
    names = [program.name for program in foreground.programs if program.foreground]
    return not any(programs.is_shell(name) or programs.is_remote_wrapper(name) for name in names)
