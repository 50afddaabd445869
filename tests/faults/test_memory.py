"""Whatever a program prints, reading it takes little memory beyond what is returned."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import crash_server
from programs import LINES

from tmuxctl.control import Control

pytestmark = pytest.mark.on("tmux")

LIMIT = 100_000_000
PATIENCE = 200.0

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

OUTPUTS: dict[str, Callable[[], bytes]] = {
    "random bytes": lambda: random.Random(12).randbytes(5_000_000),
    "a line without end": lambda: b"word " * 2_000_000,
    "an OSC without end": lambda: b"\x1b]0;" + b"x" * 24_000_000,
    "a CSI with parameters without end": lambda: b"\x1b[" + b"1;" * 4_000_000 + b"m",
    "marks that combine": lambda: b"\x1b[Ae" + "\u0301".encode() * 500_000,
    "the alternate screen": lambda: b"\x1b[?1049h" + b"abc\r\n" * 1_500_000,
    "returns": lambda: b"10%\r" * 2_500_000 + b"\n",
}


def beyond(place: Path, *words: str) -> int:
    """Bytes of memory a command takes at most, beyond what it prints."""
    file, output = place / "peak", place / "printed"
    with output.open("wb") as out:
        argv = [sys.executable, "-c", READER, str(file), *words]
        subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL, timeout=PATIENCE)
    return int(file.read_text()) * 1024 - output.stat().st_size


@pytest.mark.night
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", OUTPUTS)
def test_reading_takes_little_memory_beyond_what_it_returns(control: Control, place: Path, kind: str) -> None:
    printed = place / "output"
    printed.write_bytes(OUTPUTS[kind]())
    control.new("t", ("sh", "-c", "stty -echo; echo begun; exec cat"))
    control.wait("t", text="begun", since="screen")
    bare = beyond(place, "log", "t")
    journal = Path(control.machine.transport.home) / "sessions" / control.show("t").id / "journal"
    (journal / "seg.000000000100000").write_bytes(printed.read_bytes())
    start = f"c1:{control.show('t').incarnation}:0"
    for words in (
        ("log", "t"),
        ("log", "t", "--tail", "3"),
        ("--json", "read", "t", "--since", start),
        ("wait", "t", "--now", "--text", "never to be seen", "--since", start),
    ):
        assert beyond(place, *words) - bare < LIMIT, words


@pytest.mark.night
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["random bytes", "a line without end"])
def test_an_answer_takes_little_memory_beyond_its_text(control: Control, place: Path, kind: str) -> None:
    output = OUTPUTS[kind]().translate(None, b"\x1b\x07\x05\x9b")
    (place / "output").write_bytes(output)
    control.new("t", ("bash", "--norc"))
    control.wait("t", idle=True)
    bare = beyond(place, "ask", "t", "echo here")
    assert beyond(place, "ask", "t", "cat output; echo") - bare < LIMIT


@pytest.mark.night
@pytest.mark.timeout(600)
def test_an_answer_that_is_too_long_says_so(control: Control, place: Path) -> None:
    (place / "output").write_bytes(b"a line of the output\n" * 500_000)
    control.new("t", ("bash", "--norc"))
    control.wait("t", idle=True)
    found = control.ask("t", b"cat output")
    assert (found.truncated, found.complete) == (True, False)
    assert found.text.startswith("a line of the output\na line")
    assert control.ask("t", b"echo next").text == "next"


def test_a_restore_takes_little_memory_however_large_a_file_of_the_last_life_is(control: Control, place: Path) -> None:
    made = control.new("t", LINES)
    bare = beyond(place, "ls")
    crash_server(control)
    for name in ("cgroup", "ended.json", "journal.pid"):
        file = Path(control.machine.transport.home) / "sessions" / made.id / name
        file.touch()
        os.truncate(file, 1 << 30)
    assert beyond(place, "restore") - bare < LIMIT
    assert control.show("t").state.value != "lost"
