"""A thousand real sessions on one machine: started, listed, waited for, ended, and what each costs."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from faults.command import marked
from faults.test_thousand import journals
from place import Place, Row, tmuxctl, until

from tmuxctl.control import Control
from tmuxctl.surfaces.cli.command_server.client import find_socket
from tmuxctl.surfaces.cli.setup.serving import start_command_server
from tmuxctl.value import Value
from tools.processes import cpu_seconds, resident_bytes

ROUNDS, TURNS, IDLE_SECONDS = 7, 40, 10.0

LISTED_SECONDS, WAIT_RATIO = 2.0, 2.0


def measure(place: Place, sessions: int) -> list[Row]:
    """The rows of so many sessions of `sh`."""
    config = place.folder / "home/.config/tmuxctl"
    config.mkdir(parents=True, mode=0o700)
    (config / "config.toml").write_text(f"[limits]\nsessions = {2 * sessions}\n")
    with Control(resident=True) as control:
        control.new("alone", ("sh",))
        server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
        before, alone = resident_bytes(server), _measure_times(control, "alone")
        began = time.monotonic()
        for number in range(sessions - 1):
            control.new(f"s{number:04}", ("sh",), wait=False)
        started = time.monotonic() - began
        rows = [
            Row(
                f"{sessions} sessions of `sh`, started one after the other by a process that stays",
                "all",
                f"{started:.0f} s, {sessions / started:.0f} a second",
                len(control.ls().sessions) == sessions,
            ),
            *_measure_lists(sessions),
            *_compare_times(sessions, alone, _measure_times(control, f"s{sessions // 2:04}")),
            _measure_memory(place, control, sessions, (resident_bytes(server) - before) >> 10),
        ]
        home = Path(control.machine.transport.home)
    return [*rows, _measure_end(place, home, sessions)]


def _measure_lists(sessions: int) -> list[Row]:
    """`ls` as a command, and what the server of commands takes while all of them are idle."""
    name = f"`tmuxctl ls` of {sessions} sessions"
    rows = [_list_row(f"{name}, a process that has loaded nothing", sessions, "--no-server")]
    with start_command_server() as server:
        try:
            assert until(lambda: bool(find_socket()) and os.path.exists(find_socket())), "no server of commands"
            rows.append(_list_row(f"{name}, through the server of commands", sessions))
            before = cpu_seconds(server.pid)
            time.sleep(IDLE_SECONDS)
            used = (cpu_seconds(server.pid) - before) / IDLE_SECONDS
        finally:
            server.kill()
    what = f"CPU of the server of commands with {sessions} idle sessions over {IDLE_SECONDS:g} s"
    return [*rows, Row(what, "< 1 % of a core", f"{100 * used:.1f} %", used < 0.01)]


def _list_row(what: str, sessions: int, *options: str) -> Row:
    done = [tmuxctl(*options, "ls", "--quiet") for _ in range(ROUNDS)]
    seconds = statistics.median(one.elapsed for one in done)
    whole = all(one.stdout.count(b"\n") == sessions for one in done)
    longest = max(one.elapsed for one in done)
    measured = f"{seconds:.2f} s (the longest {longest:.2f} s; {ROUNDS} runs{'' if whole else '; some are missing'})"
    return Row(what, f"< {LISTED_SECONDS:g} s", measured, seconds < LISTED_SECONDS and whole)


class TurnTimes(Value):
    """Median seconds of a line that is typed into a session and waited for: in this process, and by two commands; and of what tmux
    needs to answer anything."""

    here: float
    commands: float
    tmux: float


def _measure_times(control: Control, name: str) -> TurnTimes:
    def turn(number: int) -> None:
        control.send(name, f"echo turn $((1000 + {number}))".encode())
        found = control.wait(name, text=f"^turn {1000 + number}$")
        assert found.matched, found

    def turn_by_commands(number: int) -> None:
        assert tmuxctl("--no-server", "send", name, f"echo turn $((5000 + {number}))").status == 0
        assert tmuxctl("--no-server", "wait", name, "--text", f"^turn {5000 + number}$").status == 0

    def ask_tmux(_number: int) -> None:
        control.machine.transport.run([("display-message", "-p", "answer")])

    return TurnTimes(_median(turn, TURNS), _median(turn_by_commands, TURNS // 4), _median(ask_tmux, TURNS))


def _median(call: Callable[[int], None], rounds: int) -> float:
    seen = []
    for number in range(rounds):
        began = time.monotonic()
        call(number)
        seen.append(time.monotonic() - began)
    return statistics.median(seen)


def _compare_times(sessions: int, alone: TurnTimes, among: TurnTimes) -> list[Row]:
    def row(what: str, here: float, before: float, rounds: int, most: float | None) -> Row:
        told = f"{here / before:.2f} x ({1000 * here:.2f} ms, {1000 * before:.2f} ms; medians of {rounds})"
        return Row(what, f"≤ {most:g} x" if most else "no limit", told, here <= most * before if most else None)

    name = f"a line typed into one of {sessions} sessions, until `wait --text` has its answer, beside the same alone"
    return [
        row(f"{name}: by two commands", among.commands, alone.commands, TURNS // 4, WAIT_RATIO),
        # what tmux takes by itself is more than that
        row(f"{name}: in a process that stays", among.here, alone.here, TURNS, None),
        row(
            f"tmux alone: an answer of one with {sessions} sessions, beside one session",
            among.tmux,
            alone.tmux,
            TURNS,
            None,
        ),
    ]


def _measure_memory(place: Place, control: Control, sessions: int, server_kib: int) -> Row:
    """What a session takes: of the tmux server, of its program, of its journal's writer, and on the disk."""
    programs = sum(_private_kib(one.pid) for one in control.ls().sessions if one.pid)
    writers = journals(place.folder)
    folder = Path(control.machine.transport.home) / "sessions"
    disk = sum(file.lstat().st_blocks * 512 for file in folder.rglob("*")) // 1024
    parts = {
        "tmux": server_kib,
        "`sh`": programs,
        "the journal's writer": sum(memory for _, memory in writers.values()),
    }
    told = ", ".join(f"{name} {kib / sessions:.0f}" for name, kib in parts.items())
    what = f"memory of one of {sessions} sessions, in KiB that no other process shares"
    return Row(what, "no limit", f"{told}; its folder {disk / sessions:.0f} KiB on the disk", None)


def _private_kib(pid: int) -> int:
    with suppress(OSError):
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(row.split()[1]) for row in rows if row.startswith("Private_"))
    return 0


def _measure_end(place: Place, state: Path, sessions: int) -> Row:
    """What `kill --all` and `prune` leave: sessions, processes, files."""
    began = time.monotonic()
    assert tmuxctl("--no-server", "kill", "--all").status == 0
    seconds = time.monotonic() - began
    assert tmuxctl("--no-server", "prune").status == 0
    home = place.folder / "home"
    gone = until(lambda: not marked(home) and not journals(place.folder), 30.0)
    listed = tmuxctl("--no-server", "ls", "--quiet").stdout.count(b"\n")
    files = [path for name in ("sessions", "ended") for path in (state / name).rglob("*") if path.is_file()]
    assert (state / "sessions").is_dir()
    processes = 0 if gone else len(marked(home)) + sum(number for number, _ in journals(place.folder).values())
    told = f"{listed}, {processes}, {len(files)} ({seconds:.1f} s)"
    what = f"`kill --all` of {sessions} sessions, and `prune`: sessions, processes, files that are left"
    return Row(what, "0, 0, 0", told, (listed, processes, len(files)) == (0, 0, 0))
