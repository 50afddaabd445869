"""What reading takes of memory, whatever a program printed: each reader on each kind of output, beyond what it returns.

A session's journal is filled as its writer would fill it, and read by commands in processes of their own: the peak of
their resident memory, less that of a command that reads nothing, less the bytes they print. `ask` and `exec` have the same
output printed anew. `python bench/peak_memory.py` prints a row for each; MEGABYTES, READERS and INPUTS in the environment make
it smaller. Exit status 1 if one takes more than 100 MB.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from place import Place, Row

from tmuxctl.control import Control

LIMIT = 100.0
"""Megabytes beyond what is returned."""

PIECE = 1 << 20


def random_bytes() -> Iterator[bytes]:
    numbers = random.Random(12)
    while True:
        yield numbers.randbytes(PIECE)


def repeated(unit: bytes, before: bytes = b"") -> Callable[[], Iterator[bytes]]:
    """The unit again and again, behind what begins it."""

    def pieces() -> Iterator[bytes]:
        yield before
        while True:
            yield unit * (PIECE // len(unit))

    return pieces


# the kernel's own count of a process that is forked begins with the peak of the one it is forked from
READER = """
import atexit, sys
from pathlib import Path
file = Path(sys.argv.pop(1))
def tell():
    file.write_text(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
atexit.register(tell)
from tmuxctl.surfaces.cli import main
sys.exit(main())
"""


class Input(NamedTuple):
    """What a program prints: pieces without end, of which so many megabytes are taken (None: all that was asked for)."""

    pieces: Callable[[], Iterator[bytes]]
    megabytes: int | None = None


INPUTS = {
    "random bytes": Input(random_bytes),
    "one line of 5 MB": Input(repeated(b"word "), 5),
    "plain lines": Input(repeated(b"a line of what a build prints, sixty characters and no more\r\n")),
    "a line without end": Input(repeated(b"word ")),
    "an OSC without end": Input(repeated(b"x", b"\x1b]0;")),
    "a CSI without end": Input(repeated(b"1;", b"\x1b[")),
    "marks that combine": Input(repeated("\u0301".encode(), b"e")),
    "colours": Input(repeated(b"\x1b[38;5;99mred\x1b[0m plain \x1b[1mbold\x1b[22m\r\n"), 32),
    "the alternate screen": Input(repeated(b"\x1b[7;9H\x1b[Ka line\r\n" * 9, b"\x1b[?1049h"), 32),
    "clearing": Input(repeated(b"\x1b[H\x1b[2Jframe\r\n"), 8),
    "newlines": Input(repeated(b"\r\n"), 32),
    "controls": Input(repeated(b"\x00a\x08b\x0bc\r"), 16),
}

READERS: dict[str, tuple[str, ...]] = {
    "log": ("log", "NAME"),
    "log --json": ("--json", "log", "NAME"),
    "log --raw": ("log", "NAME", "--raw"),
    "log --tail": ("log", "NAME", "--tail", "20"),
    "log --follow": ("log", "NAME", "--follow"),
    "read": ("read", "NAME"),
    "read --since": ("--json", "read", "NAME", "--since", "CURSOR"),
    "read --follow": ("read", "NAME", "--follow", "--since", "CURSOR"),
    "wait --text": ("wait", "NAME", "--text", "never to be seen", "--since", "CURSOR", "--timeout", "20s"),
    "show": ("show", "NAME"),
    "explain": ("explain", "NAME"),
    "ask": ("--json", "ask", "shell", "cat FILE", "--timeout", "5m"),
    "exec": ("exec", "shell", "--timeout", "5m", "--", "cat", "FILE"),
    "run": ("run", "--", "cat", "FILE"),
}
SHELL = ("ask", "exec")


class Used(NamedTuple):
    """What one command took: megabytes at most, megabytes printed, seconds of processor time, exit status."""

    peak: float
    printed: float
    seconds: float
    status: int


def used(*words: str) -> Used:
    """Run the command; what it prints goes to a file."""
    nowhere = subprocess.DEVNULL
    with tempfile.TemporaryFile() as out, tempfile.NamedTemporaryFile("r") as peak:
        argv = [sys.executable, "-c", READER, peak.name, *words]
        child = subprocess.Popen(argv, stdout=out, stderr=nowhere, stdin=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        printed = os.fstat(out.fileno()).st_size
        megabytes = int(peak.read() or 0) * 1024 / 1e6
        return Used(megabytes, printed / 1e6, usage.ru_utime + usage.ru_stime, child.returncode)


def write(path: Path, given: Input, megabytes: int) -> None:
    """The output in a file."""
    left = min(given.megabytes or megabytes, megabytes) * 1_000_000
    with path.open("wb") as file:
        for piece in given.pieces():
            file.write(piece[:left])
            left -= len(piece)
            if left <= 0:
                return


def segments(folder: Path, source: Path) -> None:
    """Put the output into a journal whose program has ended, in segments as long as the writer's."""
    begin = max(int(one.name[4:]) + one.stat().st_size for one in folder.glob("seg.*"))
    with source.open("rb") as file:
        while piece := file.read(8 << 20):
            (folder / f"seg.{begin:015d}").write_bytes(piece)
            begin += len(piece)


def rows(megabytes: int = 64, readers: tuple[str, ...] = (), inputs: tuple[str, ...] = ()) -> Iterator[Row]:
    """Every reader on every input, in a place of its own."""
    with Place() as place, place.control() as control:
        settings = Path(os.environ["HOME"]) / ".config" / "tmuxctl"
        settings.mkdir(parents=True)
        (settings / "config.toml").write_text('[journal]\nlimit = "512M"\n')
        control.new("t", ("sh", "-c", "echo begun; exec cat"))
        control.wait("t", text="begun", since="screen", timeout=30)
        bare = max(used(*words).peak for words in (("ls",), ("screen", "t"), ("read", "t")))
        for name in inputs or INPUTS:
            yield from _one(control, place.folder / "output", name, megabytes, readers or tuple(READERS), bare)


def _one(
    control: Control, source: Path, name: str, megabytes: int, readers: tuple[str, ...], bare: float
) -> Iterator[Row]:
    write(source, INPUTS[name], megabytes)
    control.new("filled", ("sh", "-c", "echo begun"), if_exists="replace")
    control.wait("filled", exit=True, timeout=30)
    shown = control.show("filled")
    journal = Path(control.machine.transport.home) / "sessions" / shown.id / "journal"
    segments(journal, source)
    given = {"NAME": "filled", "CURSOR": f"c1:{shown.incarnation}:0"}
    for reader in readers:
        if reader in SHELL:
            # what a terminal answers to random bytes is typed into the shell
            control.new("shell", ("bash", "--norc"), if_exists="replace")
            control.wait("shell", idle=True, timeout=60)
        took = used(*(given.get(word, word).replace("FILE", str(source)) for word in READERS[reader]))
        beyond = max(0.0, took.peak - bare - took.printed)
        told = (
            f"{took.peak:.0f} MB, {beyond:.0f} beyond a bare command and {took.printed:.1f} printed;"
            f" {took.seconds:.1f} s of processor time, status {took.status}"
        )
        yield Row(f"`{reader}`: {name}", f"≤ {LIMIT:.0f} MB", told, beyond <= LIMIT)


def main() -> int:
    """Print the table."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    asked = [tuple(filter(None, os.environ.get(name, "").split(","))) for name in ("READERS", "INPUTS")]
    held = True
    for row in rows(int(os.environ.get("MEGABYTES", "64")), *asked):
        held = held and row.holds is True
        print(f"| {row.what} | {row.measured} | {'yes' if row.holds else 'NO'} |", flush=True)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
