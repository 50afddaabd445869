"""What a session's folder keeps: what the session was started with, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Any

from tmuxctl.errors import Denied, NotFound, TmuxctlError, Unreachable
from tmuxctl.model import NAME, Confidence, Session, State, Status, natural_key
from tmuxctl.terminal.tmux import layout, server
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import read_object
from tmuxctl.untrusted import NewerFormat, fits, parse_record, to_record
from tmuxctl.value import changed
from tmuxctl.vocabulary import EvidenceKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


RECORD_LIMIT = 200
"""Bytes of a file that holds a few words."""

HELD_LIMIT = 64 << 10
"""Bytes of a file that is read together with those of other sessions: more than any of them has, unless somebody means harm."""

LOST_FILES = (layout.SPEC, layout.STARTED, layout.SERVER, layout.EXIT, layout.ENDED)
"""Files by which a session is told that tmux does not know."""

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
    files = _read_files(machine, layout.SESSIONS, missing, LOST_FILES)
    found = [one for name in missing if (one := _lost_session(machine, name, server, files[name]))]
    return sorted(found, key=lambda one: natural_key(one.name))


def _read_files(
    machine: Machine, parent: str, session_ids: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, bytes]]:
    """Some files of each of these sessions, by its id."""
    folders = {session_id: f"{machine.transport.home}/{parent}/{session_id}" for session_id in session_ids}
    found = machine.transport.read_all([*folders.values()], names, HELD_LIMIT + 1)
    return {session_id: found[folder] for session_id, folder in folders.items()}


def read_short_file(machine: Machine, path: str) -> bytes:
    """The first bytes of a file that holds a few words; none if there is no such file, or it cannot be read."""
    with suppress(NotFound, Denied):
        return machine.transport.read(path, 0, RECORD_LIMIT)
    return b""


def list_ended(machine: Machine) -> list[Session]:
    """Sessions that were ended and whose records are kept, by name."""
    names = [*machine.transport.names(f"{machine.transport.home}/{layout.ENDED_SESSIONS}")]
    files = _read_files(machine, layout.ENDED_SESSIONS, names, (layout.SPEC, layout.END))
    found = (_ended_session(machine, name, files[name]) for name in names)
    return sorted((one for one in found if one), key=lambda one: natural_key(one.name))


def _ended_session(machine: Machine, session_id: str, files: Mapping[str, bytes]) -> Session | None:
    try:
        spec = read_spec(machine, session_id, layout.ENDED_SESSIONS, held=files.get(layout.SPEC))
        ended = read_ended_record(machine, session_id, held=files.get(layout.END))
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


def read_ended_record(machine: Machine, session_id: str, *, held: bytes | None = None) -> dict[str, Any]:
    """The ended record of a session; empty if it is not there or is damaged. `held`: its beginning, if it was read already."""
    return parse_ended_record(machine, f"{machine.transport.home}/{layout.ENDED_SESSIONS}/{session_id}", held=held)


def parse_ended_record(machine: Machine, folder: str, *, held: bytes | None = None) -> dict[str, Any]:
    """The `ended.json` in a folder; empty if it is not there or is damaged. `held`: its beginning, if it was read already.
    NewerFormat."""
    try:
        record = _parse_object(machine, f"{folder}/{layout.END}", held)
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


def _lost_session(machine: Machine, session_id: str, server: bytes, files: Mapping[str, bytes]) -> Session | None:
    """A session that tmux does not know, with what its `files` hold: lost with its server, or ended without tmuxctl while that one,
    `server`, lives."""
    try:
        spec = read_spec(machine, session_id, held=files.get(layout.SPEC))
    except NewerFormat as newer:
        return _newer_session(session_id, State.LOST, newer)
    asked = spec.get("asked", {})
    exit_text = files.get(layout.EXIT)
    # an adopted pane had started before
    if not spec or not (layout.was_started(files) or asked.get("target")):
        return None
    if exit_text is None:
        if not server or files.get(layout.SERVER, b"")[:RECORD_LIMIT] != server:
            return _session_of_spec(session_id, spec, LOST)
        answered_pid, answered_id = _ask_server(machine, str(spec["spec"].get("name")))
        if answered_id == session_id:
            return None  # it was started since the sessions were listed
        if answered_pid != int(server.split()[0]):
            # a killed server is a process for a while after it stopped answering
            return _session_of_spec(session_id, spec, LOST)
        # that it ended, in an unknown way, has to be known after this server is gone, too
        exit_text = b":\n"
        machine.transport.put(f"{session_folder(machine, session_id)}/{layout.EXIT}", exit_text)
    status, signal = _parse_exit(exit_text[:RECORD_LIMIT])
    why = files[layout.ENDED][:40].decode(errors="replace").strip() if layout.ENDED in files else None
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
    return _parse_exit(read_short_file(machine, f"{session_folder(machine, session_id)}/{layout.EXIT}"))


def _parse_exit(text: bytes) -> tuple[int | None, str | None]:
    status, _, signal = text.decode(errors="replace").strip().partition(":")
    return int(status) if status.isdecimal() else None, server.signal_name(signal) if signal else None


def read_spec(
    machine: Machine, session_id: str, parent: str = layout.SESSIONS, *, held: bytes | None = None
) -> dict[str, Any]:
    """A session's spec.json; empty if it is not there, or damaged: then it is set aside. `held`: its beginning, if it was read
    already. NewerFormat."""
    path = f"{machine.transport.home}/{parent}/{session_id}/{layout.SPEC}"
    try:
        spec = _parse_object(machine, path, held)
        if fits(spec, SPEC_SHAPE) and NAME.fullmatch(spec["spec"]["name"]):
            return spec
    except NotFound:
        return {}
    except ValueError:
        pass
    with suppress(OSError, TmuxctlError):
        machine.transport.rename(path, path + ".corrupt")
    return {}


def _parse_object(machine: Machine, path: str, held: bytes | None) -> dict[str, Any]:
    """As `read_object`, of which the beginning is `held`."""
    if held is None or len(held) > HELD_LIMIT:
        return read_object(machine.transport, path)
    return parse_record(held, path)


def change_spec(machine: Machine, session_id: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the spec.json of a session, from which it is restored; nothing if there is none."""
    if spec := read_spec(machine, session_id):
        change(spec)
        machine.transport.put(f"{session_folder(machine, session_id)}/{layout.SPEC}", to_record(spec), durable=True)
