"""The HTTP server: a screen beside tmux's `capture-pane`, a key until its output over a WebSocket, what readers of events cost."""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from place import Place, Row, timed
from websockets.sync.client import unix_connect

from tools.processes import cpu_seconds

ROUNDS, WARMING = 100, 10
IDLE_SESSIONS, READERS, IDLE_SECONDS = 200, 20, 60.0
TILES, PRINTING, TILES_SECONDS = 200, 20, 30.0
PATIENCE = 30.0


class Connection(http.client.HTTPConnection):
    """HTTP over the server's Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self.request(method, path, None if body is None else json.dumps(body), headers)
        return json.loads(self.getresponse().read())


def measure(place: Place) -> list[Row]:
    with running_server(place) as (path, pid):
        return [_screen(path), _key(path), _idle(place, path, pid), _tiles(place, path, pid)]


@contextmanager
def running_server(place: Place) -> Iterator[tuple[str, int]]:
    """A server's socket and process."""
    env = {**os.environ, "XDG_RUNTIME_DIR": str(place.folder / "run")}
    words = [sys.executable, "-m", "tmuxctl", "--json", "serve"]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["listening"][0].removeprefix("unix:"), process.pid
        finally:
            process.terminate()


def _screen(path: str) -> Row:
    """Both in turn, in pairs: a request on an open connection, and a spawned tmux."""
    connection = Connection(path)
    connection.ask("POST", "/v1/sessions", {"name": "look", "command": ["sh", "-c", "seq 1 100; exec cat"]})
    words = ["tmux", "-L", os.environ["TMUXCTL_SOCKET"], "capture-pane", "-p", "-t", "=look:"]
    ours, theirs = [], []
    for number in range(ROUNDS + WARMING):
        took = timed(lambda: connection.ask("GET", "/v1/sessions/look/screen?state=false"))()
        beside = timed(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True))()
        if number >= WARMING:
            ours.append(took)
            theirs.append(beside)
    with_state = [timed(lambda: connection.ask("GET", "/v1/sessions/look/screen"))() for _ in range(ROUNDS)]
    connection.close()
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    told = f"{ratio:.2f} x, the median of {ROUNDS} pairs ({_ms(ours)}, {_ms(theirs)}; with the state {_ms(with_state)})"
    return Row(
        "`GET /v1/sessions/ID/screen`, warm, beside a spawned `tmux capture-pane`", "≤ 1.5 x", told, ratio <= 1.5
    )


def _key(path: str) -> Row:
    connection = Connection(path)
    connection.ask("POST", "/v1/sessions", {"name": "key", "command": ["cat"]})
    connection.close()
    took = []
    with unix_connect(path, "ws://localhost/v1/sessions/key/terminal") as terminal:
        terminal.recv(PATIENCE)
        for number in range(ROUNDS + WARMING):
            key = b"abcdefghij"[number % 10 : number % 10 + 1]
            began = time.perf_counter()
            terminal.send(key)
            while key not in terminal.recv(PATIENCE):
                pass
            if number >= WARMING:
                took.append(time.perf_counter() - began)
            time.sleep(0.01)
    median = statistics.median(took)
    told = f"{median * 1000:.1f} ms, 95 % within {sorted(took)[int(len(took) * 0.95)] * 1000:.1f} ms ({len(took)} keys)"
    return Row("a key until what it prints, over the WebSocket, median", "≤ 30 ms", told, median <= 0.03)


def _idle(place: Place, path: str, pid: int) -> Row:
    with place.control() as control:
        # those of the other measurements are idle too
        for number in range(IDLE_SESSIONS - len(control.ls().sessions)):
            control.new(f"idle-{number}", ("cat",), wait=False)
    told: list[int] = [0] * READERS
    connections = [Connection(path) for _ in range(READERS)]
    for number, connection in enumerate(connections):
        connection.request("GET", "/v1/events")
        threading.Thread(target=_count, args=(connection.getresponse(), told, number), daemon=True).start()
    deadline = time.monotonic() + PATIENCE
    while min(told) < IDLE_SESSIONS and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(5.0)
    before, began = cpu_seconds(pid, with_children=True), time.monotonic()
    time.sleep(IDLE_SECONDS)
    share = (cpu_seconds(pid, with_children=True) - before) / (time.monotonic() - began)
    for connection in connections:
        # closing it waits for the thread that reads it
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
    return Row(
        f"CPU of the server with {IDLE_SESSIONS} idle sessions and {READERS} readers of events, over {IDLE_SECONDS:g} s",
        "< 3 % of a core",
        f"{share * 100:.1f} % ({min(told)} events at least were read by each)",
        share < 0.03,
    )


def _tiles(place: Place, path: str, pid: int) -> Row:
    """What the page's overview adds to the server: the same sessions without and with one reader of it, in turn."""
    with place.control() as control:
        # as many as the limit allows run already
        control.kill(tuple(one.name for one in control.ls().sessions)[-PRINTING:])
        for number in range(PRINTING):
            script = "n=0; while :; do n=$((n+1)); echo line $n; sleep 1; done"
            control.new(f"print-{number}", ("sh", "-c", script), wait=False)
        for number in range(TILES - len(control.ls().sessions)):
            control.new(f"tile-{number}", ("cat",), wait=False)
    time.sleep(10.0)
    shares: dict[bool, list[float]] = {False: [], True: []}
    told = [0]
    for read in (False, True, False, True):
        connection = Connection(path)
        if read:
            connection.request("GET", "/page/tiles")
            threading.Thread(target=_count, args=(connection.getresponse(), told, 0), daemon=True).start()
            time.sleep(5.0)
        before, began = cpu_seconds(pid, with_children=True), time.monotonic()
        time.sleep(TILES_SECONDS)
        shares[read].append((cpu_seconds(pid, with_children=True) - before) / (time.monotonic() - began))
        if read:
            connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        time.sleep(3.0)
    without, with_reader = (statistics.mean(shares[read]) for read in (False, True))
    return Row(
        f"CPU of the server with {TILES} sessions, {PRINTING} of which print each second, and one reader of the page's overview",
        "≤ 10 % of a core",
        f"{with_reader * 100:.1f} % ({without * 100:.1f} % without a reader; {told[0]} events)",
        with_reader <= 0.1,
    )


def _count(lines: Any, told: list[int], number: int) -> None:
    with suppress(OSError, ValueError, AttributeError):
        for line in lines:
            told[number] += line.startswith(b"event:")


def _ms(values: list[float]) -> str:
    return f"{statistics.median(values) * 1000:.2f} ms"
