"""Finding the pane of a session by its exact name or its id."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from tmuxctl.control.sessions.records import list_ended, list_lost, read_spec, session_folder
from tmuxctl.errors import Conflict, Exited, Failed, NotFound, Unreachable
from tmuxctl.evidence import LastMark
from tmuxctl.model import State, is_addressable
from tmuxctl.terminal.tmux import layout, options, server
from tmuxctl.terminal.tmux.journal import Cursor, Journal, format_cursor, pipe_command
from tmuxctl.terminal.tmux.pane_io import PaneIO
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Guard, GuardRefused
from tmuxctl.untrusted import check_format

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.terminal.tmux.outlines import Outline

T = TypeVar("T")
P = TypeVar("P", "Pane", "Outline")

FOLDER_GONE = "folder_gone"
"""Why nothing can be told of a session whose program runs."""

GONE = ("lost", "ended_elsewhere")
"""Reasons for which a session is known and not there."""

MARKS_NEAR = 1 << 13
"""Bytes before a point in the output that are searched for a mark first."""

MARKS_BACK = 1 << 18
"""Bytes before an input searched for the shell's last mark."""


def says_gone(error: NotFound | Unreachable) -> bool:
    """Whether an error says that a session, or its tmux server, is not there. Any other Unreachable, as for a connection that was
    lost, says only that nothing is known of it."""
    return isinstance(error, NotFound) or error.reason in ("no_server", *GONE)


def find_session(machine: Machine, session: str, *, whole: bool = True) -> Pane:
    """The pane of a session by its exact name or its id; NotFound with the nearest name otherwise.

    Failed `folder_gone` if its files are gone, unless it need not be `whole`: without them nothing it prints is kept.
    """
    if not is_addressable(session):
        exact = "a name is matched exactly; several: tmuxctl wait --any A,B, tmuxctl kill A B, tmuxctl ls --tag TAG"
        hint = exact if re.search(r"[*?\[,]", session) else "tmuxctl ls"
        raise NotFound(f"no session {ascii(session[:60])}", reason="no_session", hint=hint)
    try:
        pane = check_found(server.read_pane(machine.io, known_name(machine, session)), session)
    except (NotFound, Unreachable) as error:
        if not says_gone(error):
            raise
        pane = _find_other(machine, session)
    if machine.panes is not None:
        machine.panes[session] = pane
    if not whole:
        return pane
    check_folder(machine, pane)
    return pane if pane.piped or pane.dead else restart_journal(machine, pane)


def known_name(machine: Machine, session: str) -> str:
    """What tmux is asked for: it knows names alone, and a resident process has seen the name of a session that is given by its
    id. Whether it is still that session's is to be checked: `check_found`."""
    pane = machine.panes.get(session) if machine.panes else None
    return pane.name if pane and pane.id == session else session


def check_found(pane: Pane, session: str) -> Pane:
    """The pane itself, if it is that of the session with this name or id; else NotFound."""
    if session not in (pane.name, pane.id):
        raise NotFound(f"no session {session!r}", reason="no_session")
    return pane


def check_folder(machine: Machine, pane: Pane) -> None:
    """Failed `folder_gone` if a session's journal is not there, NewerFormat if a later release started it."""
    check_format(pane.format, f"session {pane.name}")
    if not pane.spec.get("journal", True) or has_folder(machine, pane):
        return
    # the session may have been ended, and its folder moved, since tmux was asked
    if server.read_pane(machine.io, pane.name).id != pane.id:
        raise server.replaced_error(pane.name)
    raise Failed(
        f"the files of session {pane.name} are gone, and its output with them",
        reason=FOLDER_GONE,
        hint=f"end it: tmuxctl kill {pane.name}",
    )


def has_folder(machine: Machine, pane: Pane) -> bool:
    """Whether the folder with a session's journal is there."""
    folder, files = session_folder(machine, pane.id), machine.transport.files
    # of the two the smaller folder, where anything was printed
    return bool(files(f"{folder}/{layout.JOURNAL}")) or layout.JOURNAL in files(folder)


def restart_journal(machine: Machine, pane: Pane) -> Pane:
    """Start the writer of a journal again, which ended on a full disk. What was printed meanwhile is missing (`truncated`).

    tmux starts it and goes on: until it runs, the journal would seem to have ended.
    """
    target = pane.target
    command = ("pipe-pane", "-IO", "-t", target, pipe_command(session_folder(machine, pane.id)))
    with suppress(GuardRefused):
        machine.transport.run([Guard(target, "#{?#{||:#{pane_pipe},#{pane_dead}},0,1}"), command])
        journal, until = open_journal(machine, pane), machine.clock.monotonic() + machine.timing.session.writer_seconds
        while ((extent := journal.extent()).finished or extent.stopped) and machine.clock.monotonic() < until:
            machine.clock.sleep(0.005)
    return server.read_pane(machine.io, pane.name)


def journal_stopped_error(pane: Pane) -> Conflict:
    """The error for what waits for output of a session that is not kept any more."""
    why = "its disk is full, the pane was released, or another program reads its output"
    return Conflict(
        f"what {pane.name} prints is not kept any more: {why}",
        reason="journal_stopped",
        hint=f"try again, or look at it: tmuxctl screen {pane.name}; is its disk full? df -h ~",
    )


def find_with_input(machine: Machine, session: str) -> tuple[Pane, str]:
    """`find_session`, together with the option that keeps the session's last input (`paste.LastInput.parse` reads it)."""
    pane, (remembered,) = find_with_options(machine, session, (options.INPUT,))
    return pane, remembered


def find_with_options(machine: Machine, session: str, names: Sequence[str]) -> tuple[Pane, list[str]]:
    """`find_session`, together with the values of these options at that moment."""
    if is_addressable(session):
        try:
            pane_before = machine.panes.get(session) if machine.panes else None
            pane, values = server.read_pane_and_options(machine.io, known_name(machine, session), names, pane_before)
            check_found(pane, session)
            check_folder(machine, pane)
            return (pane if pane.piped or pane.dead else restart_journal(machine, pane)), values
        except (NotFound, Unreachable) as error:
            if not says_gone(error):
                raise
    return server.read_pane_and_options(machine.io, find_session(machine, session).name, names)


def find_known(machine: Machine, session: str) -> Pane:
    """`find_session`, or in a resident process the pane found before: a write checks inside tmux that it is still that one."""
    if machine.panes is None:
        return find_session(machine, session)
    return machine.panes.get(session) or find_session(machine, session)


def _find_other(machine: Machine, session: str) -> Pane:
    panes = list_panes(machine)
    for pane in panes:
        # by its name it may have come since that was asked
        if session in (pane.id, pane.name):
            return pane
    gone = next((one for one in list_lost(machine, panes) if session in (one.name, one.id)), None)
    if gone:
        read_spec(machine, gone.id)  # refused here, if it is one of a later release
    if gone and gone.state is State.EXITED:
        before = gone.exit_status is not None or gone.signal
        how = "had ended before its tmux server died" if before else "was ended without tmuxctl"
        raise Exited(
            f"session {session} {how}",
            reason="ended_elsewhere",
            hint=f"its output is still there: tmuxctl log {session}; start it again: tmuxctl restore {session}",
        )
    if gone:
        raise Unreachable(
            f"session {session} was lost: its tmux server died",
            reason="lost",
            hint=f"bring it back: tmuxctl restore {session}; its output is still there: tmuxctl log {session}",
        )
    if any(session in (one.name, one.id) for one in list_ended(machine)):
        raise NotFound(
            f"session {session} was ended",
            reason="no_session",
            hint=f"its output is still there: tmuxctl log {session}; how it ended: tmuxctl ls --ended",
        )
    from difflib import get_close_matches

    near = get_close_matches(session, [pane.name for pane in panes], 1)
    raise NotFound(
        f"no session {session!r}",
        reason="no_session",
        hint=f"did you mean {near[0]!r}? tmuxctl ls" if near else "tmuxctl ls",
    )


def open_journal(machine: Machine, pane: Pane) -> Journal:
    """A session's journal."""
    return machine.io.open_journal(pane, session_folder(machine, pane.id))


def was_at_prompt(journal: Journal, token: str, offset: int) -> bool:
    """True if the marked shell itself, and no program it runs, had the terminal when its output had come to `offset`."""
    if not token:
        return False
    found = find_last_mark(journal, token, max(0, offset - MARKS_BACK), offset)
    return found is not None and found.letter != "C"


def find_last_mark(journal: Journal, token: str, start: int, end: int) -> LastMark | None:
    """The last whole mark with this token in a stretch of output. Most often it is near its end."""
    from tmuxctl.reading.text.marks import find_last_mark

    for begin in dict.fromkeys((max(start, end - MARKS_NEAR), start)):
        part = journal.read(begin, end - begin)
        if found := find_last_mark(part.data, token):
            return LastMark(found.letter, found.status, part.start + found.start)
    return None


def output_end(machine: Machine, pane: Pane) -> int:
    """How far a session's output has come; errors as `check_folder`, where nothing of it is there."""
    end = open_journal(machine, pane).end()
    if not end:
        check_folder(machine, pane)
    return end


def cursor_at(pane: Pane, offset: int) -> str:
    """A point in this life of the session's output; without a journal a place on its screen."""
    return format_cursor(Cursor(pane.incarnation, offset))


def list_panes(machine: Machine) -> list[Pane]:
    """The sessions of the server; none if there is no server."""
    return _name_all(machine, _or_none(server.list_panes, machine))


def list_outlines(machine: Machine) -> list[Outline]:
    """The same, of each only what tells whether one came, went or was changed, and what changes all the time."""
    from tmuxctl.terminal.tmux import outlines

    return _name_all(machine, _or_none(outlines.list_outlines, machine))


def _name_all(machine: Machine, found: list[P]) -> list[P]:
    """Those with a name by which they can be addressed: another machine may tell any, as that of a third one's session."""
    return [one for one in found if is_addressable(one.name)] if machine.address else found


def _or_none(list_all: Callable[[PaneIO], list[T]], machine: Machine) -> list[T]:
    try:
        return list_all(machine.io)
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        return []
