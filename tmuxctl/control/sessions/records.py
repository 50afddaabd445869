"""What a session's folder keeps of it: what it was started with, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Any

from tmuxctl.errors import Denied, NotFound, TmuxctlError, Unreachable
from tmuxctl.model import NAME, Confidence, Session, State, Status, natural_key
from tmuxctl.terminal.tmux import layout, server
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import read_object
from tmuxctl.untrusted import NewerFormat, fits, to_record
from tmuxctl.value import changed
from tmuxctl.vocabulary import EvidenceKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


RECORD_LIMIT = 200
"""Bytes of a file that holds a few words."""

MAYBE = (str, NoneType)

KEPT = {
    "id": str,
    "incarnation": MAYBE,
    "asked!": {
        "argv": [str],
        "cwd": str,
        "env": [str],
        "login": bool,
        "profile": MAYBE,
        "tags": [str],
        "shell_marks": bool,
        "plugins": [str],
        "applied": [{"name!": str, "options!": dict}],
        "confined": bool,
        "marks": str,
        "unmarked": dict,
        "target": MAYBE,
    },
    "spec!": {
        "name!": str,
        "argv": [str],
        "cwd": str,
        "env": dict,
        "size": str,
        "history": int,
        "notes": dict,
    },
}
"""The shape of what is used of a `spec.json`."""

ENDED = {
    "exit_status": (int, NoneType),
    "signal": MAYBE,
    "detail": MAYBE,
    "ended": MAYBE,
    "left": [str],
    "screen": MAYBE,
}
"""The shape of an `ended.json`."""

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


LOST = Status(State.LOST, confidence=Confidence.SURE)


def ended_status(detail: str | None = None) -> Status:
    """That of a program that has ended."""
    return Status(State.EXITED, detail=detail, by=EvidenceKind.EXIT, confidence=Confidence.SURE)


def folder(machine: Machine, session_id: str) -> str:
    """Where a session's files are."""
    return f"{machine.transport.home}/{layout.SESSIONS}/{session_id}"


def lost(machine: Machine, panes: list[Pane]) -> list[Session]:
    """Sessions whose folder is there and which tmux does not know: lost with their server, which died or went with the
    machine; or, if that server lives, ended by somebody without tmuxctl (exited, nobody knows how)."""
    names = machine.transport.files(f"{machine.transport.home}/{layout.SESSIONS}")
    missing = [name for name in names.keys() - {pane.id for pane in panes} if UUID.fullmatch(name)]
    if not missing:
        return []
    now = _server(machine)
    found = [one for name in missing if (one := _lost(machine, name, now))]
    return sorted(found, key=lambda one: natural_key(one.name))


def _server(machine: Machine) -> bytes:
    """The record of the server that runs, empty if there is none."""
    return record(machine, f"{machine.transport.home}/{layout.SERVER}") if server_pid(machine) else b""


def record(machine: Machine, path: str) -> bytes:
    """The first bytes of a file that holds a few words; none if there is no such file, or it cannot be read."""
    with suppress(NotFound, Denied):
        return machine.transport.read(path, 0, RECORD_LIMIT)
    return b""


def buried(machine: Machine) -> list[Session]:
    """Sessions that were ended and of which the words are kept, by name."""
    home = machine.transport.home
    found = (_buried(machine, name) for name in machine.transport.files(f"{home}/{layout.ENDED_SESSIONS}"))
    return sorted((one for one in found if one), key=lambda one: natural_key(one.name))


def _buried(machine: Machine, session_id: str) -> Session | None:
    try:
        kept, about = spec(machine, session_id, layout.ENDED_SESSIONS), tombstone(machine, session_id)
    except NewerFormat as newer:
        return _unread(session_id, State.EXITED, newer)
    if not kept:
        return None
    return changed(
        _gone(session_id, kept, ended_status(about.get("detail"))),
        exit_status=about.get("exit_status"),
        signal=about.get("signal"),
        active=about.get("ended"),
        left=tuple(about.get("left") or ()),
    )


def tombstone(machine: Machine, session_id: str) -> dict[str, Any]:
    """What is known of the end of a session that was ended; nothing if it cannot be read."""
    return ended_record(machine, f"{machine.transport.home}/{layout.ENDED_SESSIONS}/{session_id}")


def ended_record(machine: Machine, place: str) -> dict[str, Any]:
    """What the `ended.json` in a folder says; nothing if it is not there or is damaged."""
    try:
        about = read_object(machine.transport, f"{place}/{layout.END}")
    except NewerFormat:
        raise
    except (TmuxctlError, ValueError):
        return {}
    return about if fits(about, ENDED) else {}


def server_pid(machine: Machine) -> int | None:
    """The process that is the server, if it is the one that was recorded, and lives."""
    try:
        words = record(machine, f"{machine.transport.home}/{layout.SERVER}").split()
        pid, started = (int(word) for word in words)
    except ValueError:
        return None
    rows = machine.transport.processes([pid])
    return pid if any(row.started == started and row.state not in ("Z", "X") for row in rows) else None


def _lost(machine: Machine, session_id: str, now: bytes) -> Session | None:
    """A session that tmux does not know: lost with the server it had, or ended by somebody while that one, `now`, lives."""
    try:
        kept = spec(machine, session_id)
    except NewerFormat as newer:
        return _unread(session_id, State.LOST, newer)
    asked = kept.get("asked", {})
    here = folder(machine, session_id)
    files = machine.transport.files(here)
    # an adopted pane had started before
    if not kept or not (layout.was_started(files) or asked.get("target")):
        return None
    if layout.EXIT not in files:
        if not now or layout.SERVER not in files or record(machine, f"{here}/{layout.SERVER}") != now:
            return _gone(session_id, kept, LOST)
        answers, there = _answer(machine, str(kept["spec"].get("name")))
        if there == session_id:
            return None  # it has come since the sessions were asked for
        if answers != int(now.split()[0]):
            # a server that was killed is a process for a while after it stopped to answer
            return _gone(session_id, kept, LOST)
        # how it ended nobody knows, but that it did is still so when this server is gone
        machine.transport.put(f"{here}/{layout.EXIT}", b":\n")
    status, signal = exit_of(machine, session_id)
    why = None
    if layout.ENDED in files:
        why = record(machine, f"{here}/{layout.ENDED}")[:40].decode(errors="replace").strip()
    return changed(_gone(session_id, kept, ended_status(why)), exit_status=status, signal=signal)


def _answer(machine: Machine, name: str) -> tuple[int, str]:
    """The pid of the server that answers now, 0 if none does, and the id of the session it has by that name, if any."""
    try:
        with suppress(NotFound):
            pane = server.read_pane(machine.transport, name)
            return pane.server, pane.id
        return int(machine.transport.run([("display-message", "-p", "#{pid}")])), ""
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        return 0, ""


def _gone(session_id: str, kept: dict[str, Any], status: Status) -> Session:
    """What a session's spec says of it when tmux is gone."""
    asked, had = kept["asked"], kept["spec"]
    cols, _, rows = str(had.get("size", "")).partition("x")
    return Session(
        name=str(had.get("name")),
        id=session_id,
        incarnation=kept.get("incarnation"),
        status=status,
        profile=asked.get("profile"),
        argv=tuple(asked.get("argv", ())),
        cwd=had.get("cwd"),
        cols=int(cols) if cols.isdigit() else None,
        rows=int(rows) if rows.isdigit() else None,
        tags=tuple(asked.get("tags", ())),
        plugins=tuple(asked.get("plugins", ())),
        target=asked.get("target"),
    )


def _unread(session_id: str, state: State, newer: NewerFormat) -> Session:
    """A session of a later release: that it is there, and why no more is told of it."""
    return Session(name=session_id, id=session_id, status=Status(state, detail=newer.reason), left=(newer.message,))


def exit_of(machine: Machine, session_id: str) -> tuple[int | None, str | None]:
    """The exit status and signal that a session's program ended with, as far as tmux told it when it did."""
    said = record(machine, f"{folder(machine, session_id)}/{layout.EXIT}").decode(errors="replace")
    status, _, signal = said.strip().partition(":")
    return int(status) if status.isdecimal() else None, server.signal_name(signal) if signal else None


def spec(machine: Machine, session_id: str, place: str = layout.SESSIONS) -> dict[str, Any]:
    """What a session's spec.json says; empty if it is gone, or set aside if it is damaged. NewerFormat."""
    path = f"{machine.transport.home}/{place}/{session_id}/{layout.SPEC}"
    try:
        kept = read_object(machine.transport, path)
        if fits(kept, KEPT) and NAME.fullmatch(kept["spec"]["name"]):
            return kept
    except NotFound:
        return {}
    except ValueError:
        pass
    with suppress(OSError, TmuxctlError):
        machine.transport.rename(path, path + ".corrupt")
    return {}


def amend(machine: Machine, session_id: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what is left of a session when tmux is gone; nothing if there is no spec of it."""
    if kept := spec(machine, session_id):
        change(kept)
        machine.transport.put(f"{folder(machine, session_id)}/{layout.SPEC}", to_record(kept), durable=True)
