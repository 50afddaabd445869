"""Two processes that write into one program at the same time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from place import HERE, Place, until

from compared.table import DRIVEN, Line
from compared.tools import Pexpect, Tool, shows
from compared.writer import EACH, line, tool_named, write

WRITERS = ("left", "right")
WAYS = ("tmuxctl", "tmux", "tmux-list", "libtmux")


def measure(place: Place) -> list[Line]:
    mixed = {name: _processes(place, name) for name in WAYS}
    cells = {name: mixed[name] for name in ("tmuxctl", "tmux", "libtmux")}
    cells["tmux"] += f"; {mixed['tmux-list']} if text and Enter are one call"
    cells["pexpect"] = f"–; {_threads(place)} with two threads of one process[^owner]"
    return [Line(DRIVEN, f"lines that two writers mixed or lost, of {len(WRITERS) * EACH}", cells)]


def _processes(place: Place, name: str) -> str:
    """Two writer processes, set going by the same file."""
    tool, session = tool_named(name), f"two-{name}"
    file = _recorder(place, tool, session)
    words = [sys.executable, "-m", "compared.writer", name, session]
    running = [subprocess.Popen([*words, writer], cwd=HERE, stdin=subprocess.PIPE) for writer in WRITERS]
    for one in running:
        assert one.stdin
        one.stdin.write(b"go\n")
        one.stdin.flush()
    for one in running:
        one.communicate(timeout=60)
    return _judged(file, tool)


def _threads(place: Place) -> str:
    tool = Pexpect()
    file = _recorder(place, tool, "two-threads")
    running = [threading.Thread(target=write, args=(tool, writer)) for writer in WRITERS]
    for one in running:
        one.start()
    for one in running:
        one.join()
    return _judged(file, tool)


def _recorder(place: Place, tool: Tool, session: str) -> Path:
    file = place.folder / f"{session}.typed"
    tool.start(session, (sys.executable, str(HERE / "recorder.py"), str(file)), place.folder)
    assert shows(tool, "READY"), f"{session} shows no recorder"
    return file


def _judged(file: Path, tool: Tool) -> str:
    """How many lines did not come once, whole and alone."""
    given = [line(writer, number) for writer in WRITERS for number in range(EACH)]
    size = sum(map(len, given)) + len(given)
    until(lambda: file.stat().st_size >= size, 2.0)
    came = Counter(file.read_bytes().split(tool.enter))
    return str(sum(came[one] != 1 for one in given))
