"""A flood of output: the journal stays bounded and its end exact, other sessions stay quick; and a disk that is full."""

from __future__ import annotations

import itertools
import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from place import Place, Row, until

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError

MEGABYTES = 200
LINE = 100
LINES = MEGABYTES * 1_000_000 // LINE
# numbered lines of 100 bytes on the terminal, its CR included, in large writes; then one last line. It pauses while a
# file is there: tmux continues a child that is stopped.
FLOOD = f"""
import os, sys, time
input()
for start in range(0, {LINES}, 1000):
    data = "".join(f"{{number:012d}} {{'x' * 85}}\\n" for number in range(start, start + 1000)).encode()
    while os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    while data:
        data = data[os.write(1, data):]
os.write(1, b"the end\\n")
"""
NUMBERS = itertools.count()
BLOCK = 5
"""Round trips in a row, with the flood paused and going in turn."""


def measure(place: Place) -> list[Row]:
    with place.control() as control:
        pause = place.folder / "pause"
        control.new("flood", ("python3", "-c", FLOOD, str(pause)), history=1000)
        control.new("other", ("cat",))
        flood = control.show("flood")
        folder = Path(control.machine.transport.home) / "sessions" / flood.id / "journal"
        began = time.monotonic()
        control.send("flood", b"go")
        quiet, loaded, largest = _beside(control, pause, folder)
        control.wait("flood", exit=True, timeout=60)
        seconds = time.monotonic() - began
        largest = max(largest, _size(folder))
        limit = control.machine.settings.journal_limit
    ends = "".join(f"{number:012d} {'x' * 85}\r\n" for number in range(LINES - 10_000, LINES))
    found, bound = _last(folder), limit + limit // 4
    exact = found.endswith(f"{ends}the end\r\n".encode())
    before, during = statistics.median(quiet), statistics.median(loaded)
    numbers = f"({during * 1000:.1f} ms, {before * 1000:.1f} ms; medians of {len(loaded)} and {len(quiet)})"
    return [
        Row(
            f"journal under {MEGABYTES} MB of output, its limit {limit >> 20} MB",
            f"≤ {bound >> 20} MB",
            f"{largest / (1 << 20):.0f} MB at most, in {seconds:.0f} s",
            largest <= bound,
        ),
        Row("its end, 1 MB, byte for byte", "exact", "exact" if exact else f"differs: {found[-60:]!r}", exact),
        Row(
            "round trip of another session meanwhile",
            "≤ 2.0 x",
            f"{during / before:.2f} x {numbers}",
            during <= 2 * before,
        ),
    ]


def _beside(control: Control, pause: Path, folder: Path) -> tuple[list[float], list[float], int]:
    """Round trips of another session in seconds, with the flood paused and going; the journal's largest size."""
    quiet: list[float] = []
    loaded: list[float] = []
    largest, deadline = 0, time.monotonic() + 120
    while not (folder / "end").exists() and time.monotonic() < deadline:
        if len(quiet) < 50:
            pause.touch()
            size = -1
            # what it had written before is still on its way through tmux
            while size != (size := _size(folder)):
                time.sleep(0.1)
            quiet += [_trip(control) for _ in range(BLOCK)]
            pause.unlink()
            time.sleep(0.05)
        largest = max(largest, _size(folder))
        trips = [_trip(control) for _ in range(BLOCK)]
        loaded += [] if (folder / "end").exists() else trips
    return quiet, loaded, largest


def _trip(control: Control) -> float:
    word = f"line {next(NUMBERS)}."
    began = time.perf_counter()
    control.send("other", word.encode())
    assert control.wait("other", text=f"^{re.escape(word)}$", timeout=20).matched, word
    return time.perf_counter() - began


def _size(folder: Path) -> int:
    total = 0
    for name in os.listdir(folder):
        try:
            total += os.stat(folder / name).st_size
        except FileNotFoundError:
            continue
    return total


def _last(folder: Path) -> bytes:
    """The newest bytes, read from the files themselves."""
    names = sorted(name for name in os.listdir(folder) if name.startswith("seg."))
    return b"".join((folder / name).read_bytes() for name in names[-3:])


def disk(place: Place) -> list[Row]:
    """The state folder on a disk of 3 MB that a program fills."""
    what = "a full disk: reported, nothing else breaks, `new` works again after freeing"
    state = place.folder / "state"
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(state)]).returncode:
        return [Row(what, "reported", "needs root and mount", None)]
    place.mounted.append(state)
    state.chmod(0o700)
    wrong: list[str] = []

    def right(said: str, holds: bool) -> None:
        if not holds:
            wrong.append(said)

    with place.control() as control:
        control.new("other", ("cat",))
        control.new("full", ("sh", "-c", "read line; yes 0123456789 | head -c 8000000; echo done; exec cat"))
        control.send("full", b"go")
        right("the program did not go on", until(lambda: "done" in control.screen("full").text, 30))
        until(lambda: place.tmux("display-message", "-p", "-t", "=full:", "#{pane_pipe}").strip() == "0", 5)
        told = _told(control, right)
        refused = _error(lambda: control.new("more", ("cat",)))
        right(f"`new` on a full disk: {refused}", refused.startswith(("failed", "made")))
        _still(control, "other", right)
        for path in state.rglob("seg.*"):
            if path.stat().st_size > 500_000:
                path.unlink()
        control.new("after", ("cat",), if_exists="replace")
        _still(control, "after", right)
        names = {one.name for one in control.ls().sessions}
        right(f"ls lists {sorted(names)}", {"other", "full", "after"} <= names)
    measured = f"{told}; `new`: {refused}" + (f"; wrong: {'; '.join(wrong)}" if wrong else "; the others go on")
    return [Row(what, "reported", measured, not wrong)]


def _told(control: Control, right: Callable[[str, bool], None]) -> str:
    """How a caller learns that the journal lost something."""
    control.send("full", b"more")
    output = control.read("full", since="screen")
    shown = control.read("full")
    told = [
        name for name, one in (("read --since screen", output), ("read", shown)) if getattr(one, "truncated", False)
    ]
    right("no `truncated` in read", bool(told))
    return "truncated: " + ", ".join(told) if told else "not told"


def _error(call: Callable[[], object]) -> str:
    try:
        call()
    except TmuxctlError as error:
        return f"{error.code} {error.reason}"
    except OSError as error:
        return f"OSError {error.errno}"
    return "made"


def _still(control: Control, name: str, right: Callable[[str, bool], None]) -> None:
    """The session still takes input and shows it."""
    text = f"still {time.monotonic_ns()}"
    fault = _error(lambda: control.send(name, text.encode()))
    right(f"send to {name}: {fault}", fault == "made")
    right(f"{name} does not show what was sent", until(lambda: text in control.screen(name).text, 5))
