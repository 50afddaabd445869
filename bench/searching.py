"""Text that is waited for: behind 20 MB of output, beside another session in use, and at a moment that nobody foresees."""

from __future__ import annotations

import itertools
import os
import random
import re
import statistics
import sys
import threading
import time
from pathlib import Path

import pexpect
from place import Place, Row

from tmuxctl.control import Control

MEGABYTES, FLOODS = 20, 7
FLOOD = f"yes some words of output in a long line | head -c {MEGABYTES}M; echo; echo MA''RK"
SAYS = """
import sys, time
number = 0
for line in sys.stdin:
    number += 1
    time.sleep(float(line))
    print(f"SAID {number} {time.time():.6f}", flush=True)
"""
PRINTED = r"SAID {} (\d+\.\d{{6}})"
MOMENTS = 100
BLOCK = 20
NUMBERS = itertools.count()
SHELL = ("bash", "--norc", "--noprofile")


def measure(place: Place) -> list[Row]:
    with place.control() as control:
        control.new("flood", SHELL, history=1000)
        control.new("other", ("cat",))
        folder = Path(control.machine.transport.home) / "sessions" / control.show("flood").id / "journal"
        alone, beside, cpu = _floods(control, folder)
        idle, loaded = _in_use(control)
        rows = [
            _beside("`wait --text` behind 20 MB of output, beside the same without a wait", 1.3, alone, beside, cpu),
            _beside("round trip of another session of the process meanwhile, beside idle", 2.0, idle, loaded, None),
        ]
    return [*rows, _unforeseen(place)]


def _beside(what: str, limit: float, before: list[float], after: list[float], cpu: list[float] | None) -> Row:
    ours, other = statistics.median(after), statistics.median(before)
    unit, scale = ("ms", 1000.0) if other < 0.1 else ("s", 1.0)
    used = f", {statistics.median(cpu) * 1000:.0f} ms of CPU" if cpu else ""
    count = f"medians of {len(after)} and {len(before)}" if len(after) != len(before) else f"medians of {len(after)}"
    told = f"{ours / other:.2f} x ({ours * scale:.2f} {unit}{used}; {other * scale:.2f} {unit}; {count})"
    return Row(what, f"≤ {limit:.1f} x", told, ours <= limit * other)


def _floods(control: Control, folder: Path) -> tuple[list[float], list[float], list[float]]:
    """Seconds until the mark is printed, without and with a wait for it, in turn; and the CPU of each wait."""
    alone, beside, cpu = [], [], []
    for _ in range(FLOODS):
        end = _sizes(folder)[1]
        began = time.monotonic()
        control.send("flood", FLOOD.encode())
        while _sizes(folder)[1] < end + (MEGABYTES << 20) or b"\nMARK\r\n" not in _tail(folder):
            time.sleep(0.005)
        alone.append(time.monotonic() - began)
        began, spent = time.monotonic(), time.process_time()
        control.send("flood", FLOOD.encode())
        assert control.wait("flood", text="^MARK$", timeout=60).matched == "text"
        beside.append(time.monotonic() - began)
        cpu.append(time.process_time() - spent)
    return alone, beside, cpu


def _sizes(folder: Path) -> tuple[str, int]:
    """The newest segment, and how far it reaches."""
    name = max(name for name in os.listdir(folder) if name.startswith("seg."))
    return name, int(name[4:]) + os.stat(folder / name).st_size


def _tail(folder: Path) -> bytes:
    with open(folder / _sizes(folder)[0], "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1000))
        return file.read()


def _in_use(control: Control) -> tuple[list[float], list[float]]:
    """Round trips of another session without and with a flood that is waited for."""
    idle, loaded = [], []
    for _ in range(FLOODS):
        idle += [_trip(control) for _ in range(BLOCK)]
        over = threading.Event()

        def flood(over: threading.Event = over) -> None:
            control.send("flood", FLOOD.encode())
            assert control.wait("flood", text="^MARK$", timeout=120).matched == "text"
            over.set()

        thread = threading.Thread(target=flood)
        thread.start()
        while not over.is_set():
            loaded.append(_trip(control))
        loaded.pop()
        thread.join()
    return idle, loaded


def _trip(control: Control) -> float:
    word = f"line {next(NUMBERS)}."
    began = time.perf_counter()
    control.send("other", word.encode())
    assert control.wait("other", text=f"^{re.escape(word)}$", timeout=20).matched, word
    return time.perf_counter() - began


def _unforeseen(place: Place) -> Row:
    """A program prints the time at moments of its own; how much later the wait, and pexpect's, returns."""
    file = place.folder / "says.py"
    file.write_text(SAYS)
    child = pexpect.spawn(sys.executable, [str(file)], timeout=20, echo=False)
    child.delaybeforesend = None
    ours, theirs = [], []
    with place.control() as control:
        control.new("says", (sys.executable, str(file)))
        for number in range(1, MOMENTS + 1):
            pause = f"{random.uniform(0.03, 0.15):.3f}"
            control.send("says", pause.encode())
            found = control.wait("says", text=PRINTED.format(number), timeout=20)
            ours.append(time.time() - float((found.groups or ("0",))[0] or 0))
            child.sendline(pause)
            child.expect(PRINTED.format(number))
            theirs.append(time.time() - float(child.match.group(1)))  # type: ignore[union-attr]
    child.close(force=True)
    return _beside(
        "output at a moment of the program's own, until the wait returns, beside pexpect", 1.0, theirs, ours, None
    )
