"""A round trip in a process that stays, and the processor time of a process that does one thing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

import warm
from place import Place, interleaved, process, timed

from compared.table import DRIVEN, Line
from compared.tools import Libtmux, Tmux, Tmuxctl
from tmuxctl.control import Control

TRIPS, COLD = 40, 10
LIBTMUX = """
import libtmux
pane = libtmux.Server(socket_name="libtmux").sessions.get(session_name="warm").active_pane
"""
TARGET = ("-t", "=warm:")
VERBS: dict[str, dict[str, Sequence[str]]] = {
    "type a line": {
        "tmuxctl": ("tmuxctl", "send", "warm", ":"),
        "tmux": ("tmux", "-L", "raw", "send-keys", *TARGET, "-l", ":", ";", "send-keys", *TARGET, "Enter"),
        "libtmux": (sys.executable, "-c", LIBTMUX + "pane.send_keys(':', literal=True)"),
    },
    "print the screen": {
        "tmuxctl": ("tmuxctl", "screen", "warm"),
        "tmux": ("tmux", "-L", "raw", "capture-pane", "-p", *TARGET),
        "libtmux": (sys.executable, "-c", LIBTMUX + "print(*pane.capture_pane(), sep='\\n')"),
    },
}


def measure(place: Place) -> list[Line]:
    with place.control() as control:
        raw, library = Tmux(one_list=True), Libtmux()
        for tool in (Tmuxctl(control), raw, library):
            tool.start("warm", warm.BASH, place.folder)
        return [_warm(control, raw, library), *(_cold(what, ways) for what, ways in VERBS.items())]


def _warm(control: Control, raw: Tmux, library: Libtmux) -> Line:
    """Type a line, see what it prints, take the screen."""
    expect = warm.Pexpect()
    trips = {"tmuxctl": _waited(control), "tmux": _polled(raw), "libtmux": _polled(library), "pexpect": expect.trip}
    try:
        for trip in [*trips.values()] * 3:
            trip()
        seen = interleaved(TRIPS, {name: timed(trip) for name, trip in trips.items()})
    finally:
        expect.close()
    what = f"type a line, see its output, take the screen: warm, median of {TRIPS}[^polled]"
    return Line(DRIVEN, what, {name: f"{seconds * 1000:.1f} ms" for name, seconds in seen.items()})


def _waited(control: Control) -> Callable[[], None]:
    numbers = count()

    def trip() -> None:
        number = next(numbers)
        control.send("warm", f"echo m''ark{number}".encode())
        assert control.wait("warm", text=f"mark{number}", timeout=10).matched == "text"
        assert f"mark{number}" in control.screen("warm").text

    return trip


def _polled(tool: Tmux | Libtmux) -> Callable[[], None]:
    """Its screen taken again and again without a pause."""
    numbers = count()

    def trip() -> None:
        number = next(numbers)
        tool.type(f"echo m''ark{number}".encode())
        while f"mark{number}" not in tool.screen():
            pass

    return trip


def _processor_time(words: Sequence[str]) -> float:
    return process(words).cpu


def _cold(what: str, ways: dict[str, Sequence[str]]) -> Line:
    """Processor time of a process of its own, what it starts included."""
    assert shutil.which("tmuxctl"), "tmuxctl is not in PATH"
    seen = interleaved(COLD, {name: partial(_processor_time, words) for name, words in ways.items()})
    cells = {name: f"{seconds * 1000:.0f} ms" for name, seconds in seen.items()}
    return Line(DRIVEN, f"{what}: cold, processor time, median of {COLD}", {**cells, "pexpect": "–[^owner]"})
