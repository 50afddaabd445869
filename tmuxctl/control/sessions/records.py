"""What a session's folder keeps: what the session was started with, and how it ended."""

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

SPEC_SHAPE = {
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
        "owner": MAYBE,
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
"""The shape of those parts of a `spec.json` that are read."""

ENDED_SHAPE = {
    "exit_status": (int, NoneType),
    "signal": MAYBE,
    "detail": MAYBE,
    "ended": MAYBE,
    "left": [str],
    "screen": MAYBE,
}
"""The shape of an `ended.json`."""

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


LOST = Status(State.LOST, confidence=Confidence.SURE)


def ended_status(detail: str | None = None) -> Status:
    """The status of a session whose program has ended."""
    return Status(State.EXITED, detail=detail, by=EvidenceKind.EXIT, confidence=Confidence.SURE)


def session_folder(machine: Machine, session_id: str) -> str:
    """Where a session's files are."""
    return f"{machine.transport.home}/{layout.SESSIONS}/{session_id}"


def list_lost(machine: Machine, panes: list[Pane]) -> list[Session]:
    """Sessions whose folder is there and which tmux does not know: lost with their server, or with the machine; or, if that
    server lives, ended without tmuxctl (exited, in an unknown way)."""
    names = machine.transport.names(f"{machine.transport.home}/{layout.SESSIONS}")
    missing = [name for name in {*names} - {pane.id for pane in panes} if re.fullmatch(UUID, name)]
    if not missing:
        return []
    path = f"{machine.transport.home}/{layout.SERVER}"
    server = read_short_file(machine, path) if server_pid(machine) else b""
    found = [one for name in missing if (one := _lost_session(machine, name, server))]
    return sorted(found, key=lambda one: natural_key(one.name))


def read_short_file(machine: Machine, path: str) -> bytes:
    """The first bytes of a file that holds a few words; none if there is no such file, or it cannot be read."""
    with suppress(NotFound, Denied):
        return machine.transport.read(path, 0, RECORD_LIMIT)
    return b""


def list_ended(machine: Machine) -> list[Session]:
    """Sessions that were ended and whose records are kept, by name."""
    home = machine.transport.home
    found = (_ended_session(machine, name) for name in machine.transport.files(f"{home}/{layout.ENDED_SESSIONS}"))
    return sorted((one for one in found if one), key=lambda one: natural_key(one.name))


def _ended_session(machine: Machine, session_id: str) -> Session | None:
    try:
        spec, ended = read_spec(machine, session_id, layout.ENDED_SESSIONS), read_ended_record(machine, session_id)
    except NewerFormat as newer:
        return _newer_session(session_id, State.EXITED, newer)
    if not spec:
        return None
    return changed(
        _session_of_spec(session_id, spec, ended_status(ended.get("detail"))),
        exit_status=ended.get("exit_status"),
        signal=ended.get("signal"),
        active=ended.get("ended"),
        left=tuple(ended.get("left") or ()),
    )


def read_ended_record(machine: Machine, session_id: str) -> dict[str, Any]:
    """The ended record of a session; empty if it is not there or is damaged."""
    return parse_ended_record(machine, f"{machine.transport.home}/{layout.ENDED_SESSIONS}/{session_id}")


def parse_ended_record(machine: Machine, folder: str) -> dict[str, Any]:
    """The `ended.json` in a folder; empty if it is not there or is damaged. NewerFormat."""
    try:
        record = read_object(machine.transport, f"{folder}/{layout.END}")
    except NewerFormat:
        raise
    except (TmuxctlError, ValueError):
        return {}
    return record if fits(record, ENDED_SHAPE) else {}


def server_pid(machine: Machine) -> int | None:
    """The process that is the server, if it is the one that was recorded, and lives."""
    try:
        words = read_short_file(machine, f"{machine.transport.home}/{layout.SERVER}").split()
        pid, started = (int(word) for word in words)
    except ValueError:
        return None
    rows = machine.transport.processes([pid])
    return pid if any(row.started == started and row.state not in ("Z", "X") for row in rows) else None


def _lost_session(machine: Machine, session_id: str, server: bytes) -> Session | None:
    """A session that tmux does not know: lost with its server, or ended without tmuxctl while that one, `server`, lives."""
    try:
        spec = read_spec(machine, session_id)
    except NewerFormat as newer:
        return _newer_session(session_id, State.LOST, newer)
    asked = spec.get("asked", {})
    folder = session_folder(machine, session_id)
    files = machine.transport.files(folder)
    # an adopted pane had started before
    if not spec or not (layout.was_started(files) or asked.get("target")):
        return None
    if layout.EXIT not in files:
        if not server or layout.SERVER not in files or read_short_file(machine, f"{folder}/{layout.SERVER}") != server:
            return _session_of_spec(session_id, spec, LOST)
        answered_pid, answered_id = _ask_server(machine, str(spec["spec"].get("name")))
        if answered_id == session_id:
            return None  # it was started since the sessions were listed
        if answered_pid != int(server.split()[0]):
            # a killed server is a process for a while after it stopped answering
            return _session_of_spec(session_id, spec, LOST)
        # that it ended, in an unknown way, has to be known after this server is gone, too
        machine.transport.put(f"{folder}/{layout.EXIT}", b":\n")
    status, signal = read_exit(machine, session_id)
    why = None
    if layout.ENDED in files:
        why = read_short_file(machine, f"{folder}/{layout.ENDED}")[:40].decode(errors="replace").strip()
    return changed(_session_of_spec(session_id, spec, ended_status(why)), exit_status=status, signal=signal)


def _ask_server(machine: Machine, name: str) -> tuple[int, str]:
    """The pid of the server that answers now, 0 if none does, and the id of the session it has by that name, if any."""
    try:
        with suppress(NotFound):
            pane = server.read_pane(machine.io, name)
            return pane.server, pane.id
        return int(machine.transport.run([("display-message", "-p", "#{pid}")])), ""
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        return 0, ""


def _session_of_spec(session_id: str, record: dict[str, Any], status: Status) -> Session:
    """A session that tmux does not know, as its spec describes it."""
    asked, spec = record["asked"], record["spec"]
    cols, _, rows = str(spec.get("size", "")).partition("x")
    return Session(
        name=str(spec.get("name")),
        id=session_id,
        incarnation=record.get("incarnation"),
        status=status,
        profile=asked.get("profile"),
        argv=tuple(asked.get("argv", ())),
        cwd=spec.get("cwd"),
        cols=int(cols) if cols.isdigit() else None,
        rows=int(rows) if rows.isdigit() else None,
        tags=tuple(asked.get("tags", ())),
        plugins=tuple(asked.get("plugins", ())),
        owner=asked.get("owner"),
        target=asked.get("target"),
    )


def _newer_session(session_id: str, state: State, newer: NewerFormat) -> Session:
    """A session of a later release, with the reason why its files are not read."""
    return Session(name=session_id, id=session_id, status=Status(state, detail=newer.reason), left=(newer.message,))


def read_exit(machine: Machine, session_id: str) -> tuple[int | None, str | None]:
    """The exit status and signal that a session's program ended with, as far as tmux told it when it did."""
    text = read_short_file(machine, f"{session_folder(machine, session_id)}/{layout.EXIT}").decode(errors="replace")
    status, _, signal = text.strip().partition(":")
    return int(status) if status.isdecimal() else None, server.signal_name(signal) if signal else None


def read_spec(machine: Machine, session_id: str, parent: str = layout.SESSIONS) -> dict[str, Any]:
    """A session's spec.json; empty if it is not there, or damaged: then it is set aside. NewerFormat."""
    path = f"{machine.transport.home}/{parent}/{session_id}/{layout.SPEC}"
    try:
        spec = read_object(machine.transport, path)
        if fits(spec, SPEC_SHAPE) and NAME.fullmatch(spec["spec"]["name"]):
            return spec
    except NotFound:
        return {}
    except ValueError:
        pass
    with suppress(OSError, TmuxctlError):
        machine.transport.rename(path, path + ".corrupt")
    return {}


def change_spec(machine: Machine, session_id: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the spec.json of a session, from which it is restored; nothing if there is none."""
    if spec := read_spec(machine, session_id):
        change(spec)
        machine.transport.put(f"{session_folder(machine, session_id)}/{layout.SPEC}", to_record(spec), durable=True)
