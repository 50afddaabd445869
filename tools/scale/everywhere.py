"""`tmuxctl ls --all-machines` over hundreds of hosts: as a command, cold and through the server of commands, and with hosts
that are away or do not answer."""

from __future__ import annotations

import json
import os
import signal
import statistics

from place import Done, Place, Row, tmuxctl, until

from tmuxctl.surfaces.cli.command_server.client import find_socket
from tmuxctl.surfaces.cli.setup.serving import start_command_server
from tools.scale.fleet import Fleet, run_fleet

ROUNDS, MOST_SECONDS = 7, 2.0

SESSIONS, DEAD = 10, 25
"""Sessions of each host, and of how many hosts one is dead."""

PROCESS_HOSTS = 50
"""Hosts of one process: where hundreds of threads want the lock of one Python, little else is done."""

COMMAND = ("ls", "--all-machines", "--json")


def measure(place: Place, hosts: int) -> list[Row]:
    """The rows of a fleet of so many hosts."""
    with run_fleet(place.folder / "fleet", hosts, clients=1) as fleet:
        dead = hosts // DEAD
        living, processes = fleet.hosts[dead:], max(1, hosts // PROCESS_HOSTS)
        fleet.start_hosts([fleet.hosts[:dead], *(living[number::processes] for number in range(processes))], SESSIONS)
        own = dict(os.environ)
        os.environ.clear()
        os.environ.update(fleet.clients[0].environment)
        try:
            return _measure(fleet, dead)
        finally:
            os.environ.clear()
            os.environ.update(own)


def _measure(fleet: Fleet, dead: int) -> list[Row]:
    hosts = len(fleet.hosts)
    name = f"`tmuxctl ls --all-machines` of {hosts} hosts x {SESSIONS} sessions"
    cold = [_list("--no-server") for _ in range(ROUNDS)]
    rows = [_row(f"{name}, a process that has loaded nothing", cold, hosts, {})]
    with start_command_server() as server:
        try:
            assert until(lambda: bool(find_socket()) and os.path.exists(find_socket())), "no server of commands"
            through = [_list() for _ in range(ROUNDS)]
        finally:
            server.kill()
    rows.append(_row(f"{name}, through the server of commands", through, hosts, {}))
    fleet.processes.pop(0).end()
    away = [_list("--no-server") for _ in range(ROUNDS)]
    rows.append(_row(f"{name}, {dead} of them away", away, hosts - dead, {"host_offline": dead}))
    fleet.start_hosts([fleet.hosts[:dead]], SESSIONS)
    stopped = fleet.processes[-1].process.pid
    os.kill(stopped, signal.SIGSTOP)
    try:
        hung = [_list("--no-server")]
    finally:
        os.kill(stopped, signal.SIGCONT)
    rows.append(
        _row(
            f"{name}, {dead} of them connected and silent (SIGSTOP)", hung, hosts - dead, {"no_answer": dead}, most=6.0
        )
    )
    return rows


def _list(*options: str) -> Done:
    return tmuxctl(*options, *COMMAND)


def _row(what: str, done: list[Done], told: int, problems: dict[str, int], most: float = MOST_SECONDS) -> Row:
    """The row of some runs: each has to list the sessions of so many hosts, and these problems with the others."""
    wrong = []
    for one in done:
        found = json.loads(one.stdout)
        reasons = [problem["reason"] for problem in found["problems"]]
        counts = {reason: reasons.count(reason) for reason in reasons}
        if len(found["sessions"]) != told * SESSIONS or counts != problems:
            wrong.append(f"{len(found['sessions'])} sessions, {counts}")
    seconds = statistics.median(one.elapsed for one in done)
    cpu = statistics.median(one.cpu for one in done)
    measured = (
        f"{seconds:.2f} s ({cpu:.2f} s of CPU; the longest {max(one.elapsed for one in done):.2f} s; {len(done)} runs)"
    )
    return Row(
        what,
        f"≤ {most:g} s",
        f"{measured}{', wrong: ' + '; '.join(wrong) if wrong else ''}",
        seconds <= most and not wrong,
    )
