"""The session that this process is part of, and how it is told of an event: what `events/hook` does, where only Python is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress

from tmuxctl.terminal.launch import hooks
from tmuxctl.terminal.tmux import layout
from tmuxctl.untrusted import read_file

GENERATIONS = 64
"""How many parents are asked."""

DRAINED = 1 << 16


def report_event(event: str, payload: bytes | None) -> str:
    """Report an event to the session that this process runs in, with its data, or with standard input if that is None.
    Returns what was done. No failure is an error: the program that waits for this must not be disturbed."""
    if payload is None:
        payload = _read_payload()
    folder = find_events_folder()
    if folder is None:
        return "this is not a session: no event was written"
    try:
        return f"{folder}/{hooks.write_event(folder, event, payload)}"
    except OSError as error:
        return f"{folder}: {error.strerror}"


def find_events_folder() -> str | None:
    """The `events` folder of the session that this process runs in; None outside of any.

    A wrapper may have taken our variables away (`env -i`): a parent may have them still, the folder can be found by the
    session's id, and by the pid of its program, which is one of our parents.
    """
    near = [(os.getpid(), dict(os.environ)), *_list_parents()]
    named = (values.get("TMUXCTL_EVENTS", "") for _, values in near)
    ids = {values.get("TMUXCTL_SESSION", "") for _, values in near}
    return next(
        (path for path in (*named, *_find_session_folders(near, ids)) if path and hooks.is_events_folder(path)), None
    )


def _list_parents() -> Iterator[tuple[int, Mapping[str, str]]]:
    """The processes above us, next first, and the environment of each that is ours too."""
    pid = os.getppid()
    for _ in range(GENERATIONS):
        if pid <= 1:
            return
        yield pid, _read_environment(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                # the name may hold anything, a bracket too
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return


def _read_environment(pid: int) -> Mapping[str, str]:
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return {}
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = (os.fsdecode(pair).partition("=") for pair in file.read().split(b"\0"))
            return {name: value for name, _, value in pairs if name}
    except OSError:
        return {}


def _find_session_folders(near: list[tuple[int, Mapping[str, str]]], ids: set[str]) -> Iterator[str]:
    """Folders of sessions of this user that have one of these ids, or one of these processes for their program."""
    pids = {str(pid) for pid, _ in near}
    states = _state_folders(values for _, values in near)
    sockets = [f"{state}/tmuxctl/{socket}" for state in states for socket in _list_folder(f"{state}/tmuxctl")]
    for socket in sockets:
        for session in _list_folder(f"{socket}/{layout.SESSIONS}"):
            folder = f"{socket}/{layout.SESSIONS}/{session}"
            if session in ids or _read_word(f"{folder}/{layout.STARTED}") in pids:
                yield f"{folder}/{layout.EVENTS}"


def _state_folders(environments: Iterator[Mapping[str, str]]) -> dict[str, None]:
    """Where this user's tmuxctl may keep its sessions, by each of these environments, and by none."""
    import pwd

    found: dict[str, None] = {}
    for values in environments:
        state, home = values.get("XDG_STATE_HOME", ""), values.get("HOME", "")
        if state.startswith("/"):
            found[state] = None
        if home.startswith("/"):
            found[f"{home}/.local/state"] = None
    with suppress(KeyError):
        found[f"{pwd.getpwuid(os.getuid()).pw_dir}/.local/state"] = None
    return found


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read_word(path: str) -> str:
    try:
        return read_file(path, 32).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _read_payload() -> bytes:
    """What comes with an event on standard input, as far as it is kept; nothing from a terminal.

    It is read to its end: a program whose hook does not read what it is told may fail.
    """
    stream = sys.stdin
    if stream is None or stream.isatty():
        return b""
    try:
        found = stream.buffer.read(hooks.LIMIT)
        while stream.buffer.read(DRAINED):
            pass
    except (OSError, ValueError):
        return b""
    return found
