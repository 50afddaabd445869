"""The script a program's own hooks call, so that a session learns of its turns: one file for each event, no Python."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress

from tmuxctl.terminal.tmux import layout

SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

FILE = "hook"
"""What the script is called in a session's `events` folder, where it writes."""

LIMIT = 1 << 20
"""How much of what comes with an event is kept, in bytes."""

NAME_LENGTH = 40
"""How long an event's name may be."""

NAMELESS = "event"
"""What an event is called whose name does not begin with anything a file's name may have."""

_NAME = (
    f"trap 'exit 0' 0; exec >/dev/null 2>&1; LC_ALL=C; umask 077; d=${{0%/*}}; e=${{1-}}; e=${{e%%[!A-Za-z0-9_-]*}}; \
while [ ${{#e}} -gt {NAME_LENGTH} ]; do e=${{e%?}}; done; read -r t n </proc/uptime || t=$(date +%s).; \
e=${{e:-{NAMELESS}}}.$$.${{t%.*}}${{t#*.}}"
)

_WRITE = f'if [ $# -gt 1 ]; then printf %s "$2"; elif ! [ -t 0 ]; then head -c {LIMIT}; fi >"$d/.$e"; \
mv -f "$d/.$e" "$d/$e"; [ $# -gt 1 ] || [ -t 0 ] || {{ read -r e && cat; }}'

SCRIPT = f"#!/bin/sh\n{_NAME}\n{_WRITE}\n"
"""`sh events/hook EVENT [JSON]`: writes what comes with the event, the second argument or else its input, into
EVENT.PID.NUMBER beside itself, by a rename: a reader that sees the name sees the whole file. A name with a dot in front is
being written. The number, of the machine's uptime or the time, only tells two of one pid apart: when it was is the file's
own time.

It never disturbs the program that calls it. It prints nothing (Claude reads what a hook prints). It ends with 0 whatever
fails: 2 stops the turn in Claude and Gemini, and is what dash ends with where it cannot fork. It does not wait for a
terminal's input, and reads to its end what is too long to be kept, so that the program's write does not fail. It starts
as few processes as can be: one costs a millisecond, and the program waits for them.
"""


def event_file_name(event: str, pid: int, number: int) -> str:
    """What the file of an event is called, as the script calls it."""
    found = re.match(r"[A-Za-z0-9_-]+", event)
    return f"{found[0][:NAME_LENGTH] if found else NAMELESS}.{pid}.{number}"


def is_events_folder(path: str) -> bool:
    """Whether this is the `events` folder of a session of this user's: a variable may say anything."""
    folder, name = os.path.split(path)
    sessions, session = os.path.split(folder)
    shaped = name == layout.EVENTS and SESSION.fullmatch(session) and os.path.basename(sessions) == layout.SESSIONS
    plain = os.path.isabs(path) and os.path.normpath(path) == path
    return bool(shaped) and plain and _is_own_folder(folder) and _is_own_folder(path)


def _is_own_folder(path: str) -> bool:
    """A folder, no link to one, of this user, that nobody else may write in."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def write_event(folder: str, event: str, payload: bytes) -> str:
    """Put an event's file into a session's `events` folder, whole or not at all; returns its name. Of what comes with it
    LIMIT bytes are kept. Raises OSError."""
    name = event_file_name(event, os.getpid(), time.time_ns())
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(f".{name}", mode, 0o600, dir_fd=place), "wb") as file:
            file.write(payload[:LIMIT])
        os.rename(f".{name}", name, src_dir_fd=place, dst_dir_fd=place)
    except OSError:
        with suppress(OSError):
            os.unlink(f".{name}", dir_fd=place)
        raise
    finally:
        os.close(place)
    return name
