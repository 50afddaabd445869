"""Reads process tables: the kernel's /proc/PID/stat (proc(5)), or what `ps` prints where there is no /proc."""

from __future__ import annotations

import re

from tmuxctl.transport.base import Process

# A name may hold spaces, parentheses and newlines but never more than 64 bytes, so it cannot look like the 40 and more
# numbers that follow: a row ends only where those numbers do.
ROW = re.compile(rb"(\d+) \((.{0,64}?)\) ([A-Za-z])((?: -?\d+){19,})[ \t]*(?:\n|\Z)", re.DOTALL)

PS_COLUMNS = "pid=,ppid=,pgid=,state=,lstart=,comm="


def parse_stat(line: bytes) -> Process:
    """One /proc/PID/stat as a Process; ValueError if it is not one (a process that ended while it was read)."""
    found = ROW.match(line)
    if not found:
        raise ValueError(f"not a row of the process table: {line[:40]!r}")
    return _parse_row(found)


def parse_table(table: bytes) -> list[Process]:
    """Many /proc/PID/stat one behind the other; rows cut short by a process that ended are left out."""
    rows, position = [], 0
    while position < len(table):
        found = ROW.match(table, position)
        if found:
            rows.append(_parse_row(found))
            position = found.end()
        else:
            position = table.find(b"\n", position) + 1 or len(table)
    return rows


def _parse_row(found: re.Match[bytes]) -> Process:
    numbers = found[4].split()
    return Process(
        pid=int(found[1]),
        parent=int(numbers[0]),
        group=int(numbers[1]),
        session=int(numbers[2]),
        tty=int(numbers[3]),
        foreground=int(numbers[4]),
        state=found[3].decode(),
        started=int(numbers[18]),
        name=found[2].decode(errors="replace"),
        cpu=int(numbers[10]) + int(numbers[11]),
        threads=int(numbers[16]),
    )


def parse_ps(table: str) -> list[Process]:
    """What `ps -A -o PS_COLUMNS` printed under LC_ALL=C. It tells neither session nor terminal (0), and the start only
    as a date: `started` is then in seconds since 1970, which names a process as well."""
    import calendar
    import time

    rows = []
    for line in table.splitlines():
        words = line.split(None, 9)
        if len(words) < 9 or not words[0].isdigit():
            continue
        try:
            started = calendar.timegm(time.strptime(" ".join(words[4:9]), "%a %b %d %H:%M:%S %Y"))
        except ValueError:
            continue
        pid, parent, group = (int(word) for word in words[:3])
        name = words[9].rpartition("/")[2] if len(words) > 9 else ""
        rows.append(Process(pid, parent, group, 0, 0, 0, words[3][:1], started, name))
    return rows
