"""Hundreds of hosts under load: events, heartbeats, followed output and calls at once, and whether all of them arrive."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from statistics import median, quantiles
from typing import Any

from place import Place, Row

from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.credentials import read_credentials
from tmuxctl.gateway.events.stored import unpack_event
from tmuxctl.sealed.keys import KeyFiles
from tmuxctl.sealed.sealing import open_event
from tmuxctl.value import Value
from tools.scale.fleet import BESIDE, Client, Fleet, run_fleet

APART = 4
"""Hosts in a process of their own, which make no load: as hosts are, each a machine of its own."""


class LoadSize(Value):
    """How much there is of everything: hosts, sessions of each, seconds, and events, pieces of output and calls a second, all
    hosts together. Beside these each host says every two seconds that it is there, and who follows once a second what came."""

    hosts: int = 500
    sessions: int = 10
    seconds: float = 60.0
    events: int = 100
    output: int = 3800
    calls: int = 50
    processes: int = 10


SMALL = LoadSize(hosts=50, seconds=5.0, events=50, output=400, processes=2)


class Watched:
    """What the server had while there was load."""

    def __init__(self, fleet: Fleet) -> None:
        self.memory = 0
        self._fleet, self._over = fleet, threading.Event()
        self._before, self._began = fleet.server_numbers(), time.monotonic()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self.memory = max(self.memory, self._fleet.server_memory())

    def end(self) -> tuple[float, float]:
        """The messages a second that the server took, and those that it gave."""
        seconds, after = time.monotonic() - self._began, self._fleet.server_numbers()
        self._over.set()
        self._thread.join()
        came, gave = ((after[name] - self._before[name]) / seconds for name in ("in_msgs", "out_msgs"))
        return came, gave


def measure(place: Place, size: LoadSize) -> list[Row]:
    """The rows of one run."""
    with run_fleet(place.folder / "fleet", size.hosts, clients=2) as fleet:
        apart, busy = fleet.hosts[:APART], fleet.hosts[APART:]
        fleet.start_hosts([apart], size.sessions)
        fleet.start_hosts([busy[number :: size.processes] for number in range(size.processes)], size.sessions, BESIDE)
        return _measure(fleet, size)


def _measure(fleet: Fleet, size: LoadSize) -> list[Row]:
    apart, *loaded = fleet.processes
    caller = _start(
        fleet.clients[0],
        "tools.scale.caller",
        str(size.calls),
        str(size.seconds),
        *(",".join(host.name for host in hosts) for hosts in (apart.hosts, loaded[0].hosts)),
    )
    reader = _start(fleet.clients[1], "tools.scale.output_reader", priority=BESIDE)
    for client in (caller, reader):
        _answer(client)
    share = len(loaded)
    watched = Watched(fleet)
    for one in loaded:
        one.tell(events=size.events / share, output=size.output / share, seconds=size.seconds)
    called = _finish(caller)
    made = [one.answer() for one in loaded]
    came, gave = watched.end()
    # what is under way arrives
    time.sleep(2.0)
    read = _finish(reader)
    sent = sum(one["events"] for one in made)
    stored, lost, doubled = _read_events(fleet, sent)
    pieces = sum(one["output"] for one in made)
    late = [1000 * seconds for one in made for seconds in one["late"]]
    name = f"{size.hosts} hosts x {size.sessions} sessions"
    quiet, near = ([1000 * seconds for seconds in group] for group in called["taken"])
    mix = f"{size.hosts // 2} heartbeats, {size.events} events, {size.output} of output, {2 * size.calls} of calls"
    return [
        Row(
            f"{name}, messages a second through the gateway for {size.seconds:g} s ({mix}, the rest confirms)",
            "5,000" if size.hosts >= 500 else "as many as asked",
            f"{came:,.0f} taken, {gave:,.0f} given",
            came >= 5000 if size.hosts >= 500 else True,
        ),
        Row(
            f"{name}: a `screen` of 3 KB meanwhile, of a host that is a process apart: p50, p99",
            "p99 < 10 ms",
            f"{_spread(quiet)} ({len(quiet)} calls, {called['wrong']} wrong or lost)",
            (_percentile(quiet) < 10 or size.hosts < 500) and not called["wrong"],
        ),
        Row(
            f"{name}: the same of hosts in the processes that make the load, of which each has {len(loaded[0].hosts)}",
            "no limit",
            f"{_spread(near)} ({len(near)} calls); rounds of these processes began {_spread(late)} too late",
            None,
        ),
        Row(f"{name}: memory of nats-server", "< 100 MB", f"{watched.memory / 1e6:.0f} MB", watched.memory < 100e6),
        Row(
            f"{name}: events made, stored and readable; lost, doubled",
            "0, 0",
            f"{sent:,}, {stored:,}; {lost}, {doubled}",
            (stored, lost, doubled) == (sent, 0, 0),
        ),
        Row(
            f"{name}: pieces of output sent, received; lost, doubled",
            "0, 0",
            f"{pieces:,}, {read['received']:,}; {read['lost']}, {read['doubled']}",
            (read["received"], read["lost"], read["doubled"]) == (pieces, 0, 0),
        ),
    ]


def _start(client: Client, module: str, *words: str, priority: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([*priority, sys.executable, "-m", module, *words], env=client.environment, **pipes)


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout
    return dict(json.loads(process.stdout.readline()))


def _finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What a client tells at its end."""
    told, _ = process.communicate("\n")
    return dict(json.loads(told))


def _spread(found: list[float]) -> str:
    return f"{median(found):.1f} ms, {_percentile(found):.1f} ms"


def _percentile(found: list[float]) -> float:
    return quantiles(found, n=100, method="inclusive")[98]


def _read_events(fleet: Fleet, sent: int) -> tuple[int, int, int]:
    """How many of the events that were made are stored and can be read by a client, each as its host sealed it; how many are
    missing by the numbers of the hosts, and how many are there twice."""
    home = fleet.clients[0].home
    credentials = read_credentials(str(home / ".config/tmuxctl/gateway.json"))
    keys = KeyFiles(str(home / ".local/state/tmuxctl/keys")).load().current
    by_id = {host.id: host for host in fleet.hosts}
    numbers: Counter[tuple[str, int]] = Counter()
    with Connection(credentials) as connection:
        connection.wait_connected(20.0)
        deadline = time.monotonic() + 60.0
        following = 1
        while numbers.total() < sent and time.monotonic() < deadline:
            batch = connection.read_events(following, most=1024)
            for stored in batch.events:
                following = stored.sequence + 1
                at, sealed = unpack_event(stored.data)
                stream, key = at.bind_stream(stored.host), by_id[stored.host].key
                open_event(keys, sealed, host_key=key, stream=stream, number=at.number)
                numbers[stored.host, at.number] += 1
            if not batch.pending:
                # a host may still be publishing what it kept
                time.sleep(0.2)
    newest = Counter[str]()
    for host, number in numbers:
        newest[host] = max(newest[host], number)
    return numbers.total(), sum(newest.values()) - len(numbers), numbers.total() - len(numbers)
