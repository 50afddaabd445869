"""Programs that end at once: whether their exit status or signal is known, and right."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ends
import libtmux
import pexpect
from ends import AT_ONCE, End
from place import Place, until

from compared import detail
from compared.table import DRIVEN, Line
from compared.tools import Tmux
from tmuxctl.control import Control

PROGRAMS = 50
KEPT = "set -g remain-on-exit on\n"
"""What somebody who wants exit codes puts into tmux's configuration."""

ASKED = "#{pane_dead}/#{pane_dead_status}/#{pane_dead_signal}"
PATIENCE = 2.0
"""Seconds in which a code must come to be known."""

Way = Callable[[int], End | None]


def measure(place: Place) -> list[Line]:
    conf = place.folder / "conf"
    conf.write_text(KEPT)
    with place.control() as control, ThreadPoolExecutor(AT_ONCE) as pool:
        ways = {"tmuxctl": _ours(control), "tmux": _raw(conf), "libtmux": _library(conf), "pexpect": _expected}
        cells = {name: _judged(list(pool.map(way, range(PROGRAMS)))) for name, way in ways.items()}
    cells["pexpect"] += "[^pipe]"
    what = f"ends of {PROGRAMS} programs that end at once, {AT_ONCE} at a time: reported right; wrong, unknown"
    return [Line(DRIVEN, what, cells)]


def _judged(told: list[End | None]) -> str:
    right = sum(end == ends.wanted_end(number) for number, end in enumerate(told))
    unknown = told.count(None)
    for number, end in enumerate(told):
        if end != ends.wanted_end(number):
            detail(f"{ends.wanted_end(number)} told as {end}")
    return f"{right}; {len(told) - right - unknown}, {unknown}"


def _command(number: int) -> tuple[str, ...]:
    end = ends.wanted_end(number)
    return (
        "sh",
        "-c",
        f"ulimit -c 0; exit {end.status}" if end.signal is None else f"ulimit -c 0; kill -{end.signal} $$",
    )


def _ours(control: Control) -> Way:
    control.new("first", ("cat",))

    def way(number: int) -> End | None:
        told = ends.told_end(control, number)
        return told if isinstance(told, End) and told != End(None, None) else None

    return way


def _raw(conf: Path) -> Way:
    tool = Tmux()
    tool.run("-f", str(conf), "new-session", "-d", "-s", "first", "cat")

    def way(number: int) -> End | None:
        tool.run("new-session", "-d", "-s", f"end{number}", *_command(number))
        return _dead(lambda: tool.run("display-message", "-p", "-t", f"=end{number}:", ASKED))

    return way


def _library(conf: Path) -> Way:
    server = libtmux.Server(socket_name="libtmux", config_file=str(conf))
    server.new_session("first", window_command="cat")

    def way(number: int) -> End | None:
        pane = server.new_session(f"end{number}", window_command=shlex.join(_command(number))).active_pane
        assert pane
        return _dead(lambda: "".join(pane.cmd("display-message", "-p", ASKED).stdout))

    return way


def _dead(ask: Callable[[], str]) -> End | None:
    """What tmux says of the end, as soon as it says something."""
    said: list[str] = []

    def known() -> bool:
        said[:] = ask().strip().split("/")
        return said[0] == "1" and any(said[1:])

    if not until(known, PATIENCE, 0.02):
        return None
    return End(None, _name(said[2])) if said[2] else End(int(said[1]), None)


def _name(told: str) -> str:
    """A signal's name as `kill` takes it; tmux tells its number or its name."""
    return (signal.Signals(int(told)).name if told.isdigit() else told).removeprefix("SIG")


def _expected(number: int) -> End | None:
    command, *words = _command(number)
    child = pexpect.spawn(command, words, timeout=10)
    child.expect(pexpect.EOF)
    child.close()
    return End(child.exitstatus, _name(str(child.signalstatus)) if child.signalstatus else None)
