"""The script a program's own hooks call, so that a session learns of its turns: one file for each event, no Python."""

from __future__ import annotations

import re

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
