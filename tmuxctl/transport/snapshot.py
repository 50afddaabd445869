"""What a shell elsewhere printed of terminals and their processes, as `probe.KernelFiles`.

It prints, in this order: of each terminal a line `tty PATH` and what `stty -a` says; the line `files`, then lines of
/proc as grep prints them, `PATH:LINE`; the line `memory`, then of each piece a line `PID ADDRESS SIZE`; the line `bytes`, then
those of all pieces as od prints them; the line `links`, then where descriptors lead to as `ls -l` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tmuxctl.evidence import Tty
from tmuxctl.transport.probe import CONTROLLING, Device

LINK = re.compile(rb" /proc/(\d+)/fd/(\d+) -> (.*)")
SETTING = re.compile(rb"\b(rows|columns|min|time) =? ?(\d+);")
PTY = re.compile(r"(?:/proc/\d+/root)?/dev/pts/(\d+)")


def parse_stty(printed: bytes) -> Tty | None:
    """What `stty -a` printed; None if that was nothing. It counts no bytes."""
    flags = set(printed.replace(b";", b" ").split())
    numbers = {name: int(number) for name, number in SETTING.findall(printed)}
    size = (numbers[b"columns"], numbers[b"rows"]) if {b"columns", b"rows"} <= numbers.keys() else None
    vmin, vtime = numbers.get(b"min", 1), numbers.get(b"time", 0) / 10
    return Tty(b"icanon" in flags, b"echo" in flags, None, vmin=vmin, vtime=vtime, size=size) if flags else None


class Snapshot:
    """The files as they were. Of a process's memory there is what poll(2) or select(2) were given."""

    def __init__(self, machine: str, printed: bytes) -> None:
        self.machine = machine
        settings, _, rest = (b"\n" + printed).partition(b"\nfiles\n")
        files, _, rest = (b"\n" + rest).partition(b"\nmemory\n")
        pieces, _, links = (b"\n" + rest).partition(b"\nlinks\n")
        self._memory = dict(_parse_memory(pieces))
        terminals = (part.partition(b"\n") for part in settings.split(b"\ntty ")[1:])
        self._ttys = {path.decode(errors="surrogateescape"): parse_stty(shown) for path, _, shown in terminals}
        self._files: dict[str, bytes] = {}
        self._links: dict[int, dict[int, str]] = {}
        for line in files.split(b"\n"):
            file, _, content = line.partition(b":")
            name = file.decode(errors="replace")
            self._files[name] = self._files.get(name, b"") + content + b"\n"
        for link in LINK.finditer(links):
            # the first: what follows a line break in the name of a file is that file's
            target = link[3].decode(errors="replace")
            self._links.setdefault(int(link[1]), {}).setdefault(int(link[2]), target)
        self._threads: dict[int, list[int]] = {}
        self._children: dict[int, list[int]] = {}
        for name in self._files:
            words = name.split("/")
            if words[-1] == "status":
                self._threads.setdefault(int(words[2]), []).append(int(words[4]))
            elif words[-1] == "stat":
                self._children.setdefault(self._find_parent(name), []).append(int(words[2]))

    def _find_parent(self, path: str) -> int:
        fields = self._files[path].rpartition(b")")[2].split()
        return int(fields[1]) if len(fields) > 1 else 0

    def processes(self) -> list[int]:
        return [pid for below in self._children.values() for pid in below]

    def stat(self, pid: int) -> bytes:
        return self._files.get(f"/proc/{pid}/stat", b"")

    def threads(self, pid: int) -> list[int]:
        return self._threads.get(pid, [])

    def children(self, pid: int, threads: list[int]) -> list[int] | None:
        return self._children.get(pid, [])

    def read(self, pid: int, thread: int, name: str) -> bytes:
        found = self._files.get(f"/proc/{pid}/task/{thread}/{name}", b"")
        # of status only some lines were printed: what is now the first was not
        return b"\n" + found if found else b""

    def links(self, pid: int) -> dict[int, str] | None:
        return self._links.get(pid)

    def link(self, pid: int, descriptor: int) -> str:
        return self._links.get(pid, {}).get(descriptor, "")

    def device(self, pid: int, descriptor: int) -> Device | None:
        link = self.link(pid, descriptor)
        return (self.terminal(link) or Device(0, None)) if link else None

    def about(self, pid: int, descriptor: int) -> bytes:
        return self._files.get(f"/proc/{pid}/fdinfo/{descriptor}", b"")

    def memory(self, pid: int, address: int, size: int) -> bytes:
        return self._memory.get((pid, address), b"")[:size]

    def terminal(self, path: str) -> Device | None:
        found = PTY.fullmatch(path)
        if found:
            index = int(found[1])
            return Device(136 << 8 | index & 0xFF | (index & ~0xFF) << 12, None)
        return Device(CONTROLLING, None) if path == "/dev/tty" else None

    def tty(self, path: str) -> Tty | None:
        return self._ttys.get(path)

    def clock(self) -> int | None:
        words = self._files.get("/proc/uptime", b"").split()
        return int(float(words[0]) * 100) if words else None


def _parse_memory(printed: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Each piece of memory, by the process and its address."""
    about, _, shown = printed.partition(b"\nbytes\n")
    held = bytes.fromhex(shown.decode())
    for line in about.splitlines():
        words = line.split()
        if len(words) == 3:
            size = int(words[2])
            yield (int(words[0]), int(words[1], 16)), held[:size]
            held = held[size:]
