"""The HTTP server under use for a long time: its memory must not grow, and no event may be lost.

    python bench/http_soak.py [MINUTES=30] [--clients 50] [--sessions 50]

A third of the clients read the events of all sessions, a fifth those of one session with its output; the others type a line to
their session and wait for the answer, again and again. Exit status 1 if an event or a line is lost, an answer is wrong, or
the memory grows by more than a tenth after the first fifth of the time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from http_server import Connection, running_server
from place import Place

from tools.processes import resident_bytes

PAUSE = 2.0
"""Seconds between two lines of one client."""

PROGRAM = ["sh", "-c", 'while read -r line; do sleep 0.05; echo "got $line"; done']


class Tally:
    """What all clients found."""

    def __init__(self) -> None:
        self.typed: dict[str, int] = {}
        self.seen: dict[str, int] = {}
        self.events: dict[int, int] = {}
        self.wrong: list[str] = []
        self.over = threading.Event()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("minutes", nargs="?", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--sessions", type=int, default=50)
    given = parser.parse_args()
    with Place() as place, running_server(place) as (path, pid):
        return soak(path, pid, given.minutes * 60, given.clients, given.sessions)


def soak(path: str, pid: int, seconds: float, clients: int, sessions: int) -> int:
    """Use the server for so long; the exit status."""
    tally, connection = Tally(), Connection(path)
    names = [f"s{number}" for number in range(sessions)]
    for name in names:
        connection.ask("POST", "/v1/sessions", {"name": name, "command": PROGRAM})
    connection.close()
    readers, followers = clients // 3, clients // 5
    threads = [threading.Thread(target=_read_all, args=(path, number, tally)) for number in range(readers)]
    threads += [threading.Thread(target=_follow, args=(path, names[number], tally)) for number in range(followers)]
    threads += [
        threading.Thread(target=_type, args=(path, names[number % sessions], tally))
        for number in range(clients - readers - followers)
    ]
    for thread in threads:
        thread.daemon = True
        thread.start()
    memory, began = [], time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        time.sleep(min(60.0, seconds - passed))
        memory.append(resident_bytes(pid))
        print(
            f"{passed / 60 + 1:5.1f} min: {memory[-1] / (1 << 20):.1f} MB, {sum(tally.typed.values())} lines typed",
            flush=True,
        )
    tally.over.set()
    time.sleep(5.0)
    return _judge(tally, memory, names[:followers])


def _judge(tally: Tally, memory: list[int], followed: list[str]) -> int:
    for name in followed:
        if tally.seen.get(name, 0) < tally.typed.get(name, 0):
            tally.wrong.append(f"{name}: {tally.typed[name]} lines typed, {tally.seen.get(name, 0)} seen")
    first, last = memory[len(memory) // 5], memory[-1]
    print(
        f"{len(tally.events)} readers, {max(tally.events.values(), default=0)} events each; memory {first >> 10} to {last >> 10} KB"
    )
    print("\n".join(tally.wrong[:20]) or "no event and no line lost, no answer wrong")
    return 1 if tally.wrong or last > first * 1.1 else 0


def _type(path: str, name: str, tally: Tally) -> None:
    connection, number = Connection(path), 0
    while not tally.over.wait(PAUSE):
        number += 1
        body = {"text": f"{name}-{number}", "wait_text": f"^got {name}-{number}$"}
        answer = connection.ask("POST", f"/v1/sessions/{name}/send", body)
        tally.typed[name] = tally.typed.get(name, 0) + 1
        if "error" in answer or not answer["wait"]["matched"]:
            tally.wrong.append(f"{name}: {str(answer)[:200]}")


def _read_all(path: str, reader: int, tally: Tally) -> None:
    last, tally.events[reader] = None, 0
    for event in _events(path, "/v1/events", tally):
        if "id" not in event:
            # the server tells why it ends the stream
            if not tally.over.is_set():
                tally.wrong.append(f"reader {reader}: {event}")
            continue
        number = int(event["id"].split("-")[1])
        if last is not None and number not in (last, last + 1):
            tally.wrong.append(f"reader {reader}: after {last} came {number}")
        last = number
        tally.events[reader] += 1


def _follow(path: str, name: str, tally: Tally) -> None:
    for event in _events(path, f"/v1/sessions/{name}/events", tally):
        if event["event"] == "output":
            found = event["data"]["text"].count(f"got {name}-")
            tally.seen[name] = tally.seen.get(name, 0) + found


def _events(path: str, route: str, tally: Tally) -> Any:
    connection = Connection(path)
    connection.timeout = None
    connection.request("GET", route)
    assert isinstance(connection.sock, socket.socket)
    connection.sock.settimeout(None)
    event: dict[str, Any] = {}
    try:
        for line in connection.getresponse():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
            elif "data" in event:
                yield {**event, "data": json.loads(event["data"])}
                event = {}
    except (OSError, http.client.HTTPException):
        pass
    if not tally.over.is_set():
        tally.wrong.append(f"{route} ended")


if __name__ == "__main__":
    sys.exit(main())
