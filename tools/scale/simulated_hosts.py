"""Hosts of a gateway whose tmux is simulated, and nothing else: connection, keys, channels, calls and events are the product's own.

`python -m tools.scale.simulated_hosts SESSIONS` takes commands on standard input and answers each with a line of JSON:

    {"folders": [...]}                       have the hosts of these folders; {"connected": N}
    {"events": N, "output": N, "seconds": S} make so many events and pieces of followed output a second, all hosts together; then
                                             {"events": made, "output": made, "unfollowed": N, "late": [seconds, ...]}, where
                                             `late` is by how much each round of 20 ms began too late
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tmuxctl.control import Control
from tmuxctl.gateway import host as host_module
from tmuxctl.gateway.credentials import read_credentials
from tmuxctl.gateway.events import recording
from tmuxctl.gateway.events.recording import EventRecorder
from tmuxctl.gateway.host import GatewayHost
from tmuxctl.gateway.spool import Spool
from tmuxctl.model import Session, State, Status
from tmuxctl.results import CursorPosition, Event, Output, Screen, Sessions
from tmuxctl.sealed.keys import KeyFiles
from tmuxctl.sealed.trust import AuthorizedClients

SCREEN = "\n".join(f"{number:04} " + "x" * 71 for number in range(40))
"""3 KB of text."""

PIECE = "y" * 100
"""One piece of output."""

BURST = 16
"""Pieces that a program prints at once."""

ROUND_SECONDS = 0.02

CONNECT_SECONDS = 120.0


class SimulatedControl(Control):
    """The operations of one host: what it tells is generated."""

    def __init__(self, name: str, sessions: int) -> None:
        self.name = name
        self.followers: list[queue.SimpleQueue[int | None]] = []
        self._sessions = Sessions(
            tuple(
                Session(
                    name=f"s{number}",
                    id=f"00000000-0000-4000-8000-{number:012}",
                    status=Status(State.IDLE),
                    wants="prompt",
                    profile="sh",
                    argv=("sh",),
                    cwd="/home/user",
                    cols=80,
                    rows=40,
                    pid=1000 + number,
                    created="2026-01-01T00:00:00Z",
                )
                for number in range(sessions)
            )
        )

    def call(self, name: str, arguments: Mapping[str, Any], **_more: Any) -> Any:
        """What an operation tells: `ls`, `screen` and `log --follow`."""
        if name == "ls":
            return self._sessions
        session = str(arguments["session"])
        if name == "screen":
            return Screen(
                session=session,
                text=SCREEN,
                cols=80,
                rows=40,
                cursor=CursorPosition(0, 39, visible=True),
                alt=False,
                title="",
                state=State.IDLE,
                by=None,
                position=None,
            )
        assert name == "log", name
        assert arguments["follow"]
        # from here on it follows, not only from the first piece that is wanted
        pieces: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.followers.append(pieces)
        return self._follow(session, pieces)

    def _follow(self, session: str, pieces: queue.SimpleQueue[int | None]) -> Iterator[Output]:
        while (number := pieces.get()) is not None:
            yield Output(session=session, text=PIECE, cursor=str(number))


class SimulatedHost:
    """One host: its connection, its calls and its events."""

    def __init__(self, folder: Path, sessions: int) -> None:
        self.control = SimulatedControl(folder.name, sessions)
        # two modules look for the files of the one host of a user
        for module in (host_module, recording):
            vars(module)["KeyFiles"] = lambda: KeyFiles(str(folder / "keys"))
            vars(module)["AuthorizedClients"] = lambda: AuthorizedClients(str(folder / "authorized_clients"))
        self.host = GatewayHost(self.control, read_credentials(str(folder / "host.json")), direct="off")
        self.recorder = EventRecorder(self.host.connection, spool=Spool(str(folder / "spool")))
        self.events = self.pieces = 0

    def make_event(self) -> None:
        """Record that a session changed its state."""
        self.events += 1
        state = State.BUSY if self.events % 2 else State.IDLE
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.recorder.record(Event(time=now, session=f"s{self.events % 10}", status=Status(state)))

    def make_output(self) -> int:
        """Give some pieces to who follows, as a program prints lines; how many were given."""
        followers = self.control.followers
        for one in followers:
            for number in range(BURST):
                one.put(self.pieces + number)
        self.pieces += BURST
        return BURST * len(followers)


def make_load(hosts: list[SimulatedHost], events: float, output: float, seconds: float) -> dict[str, Any]:
    """Have the hosts, each in turn, make so many events and pieces a second, all together."""
    told: dict[str, Any] = {"events": 0, "output": 0, "unfollowed": 0, "late": []}
    began = time.monotonic()
    turn_events = turn_output = 0
    for number in range(1, round(seconds / ROUND_SECONDS) + 1):
        due = began + number * ROUND_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        told["late"].append(round(max(0.0, time.monotonic() - due), 5))
        while turn_events < number * ROUND_SECONDS * events:
            hosts[turn_events % len(hosts)].make_event()
            turn_events += 1
        while turn_output < number * ROUND_SECONDS * output:
            made = hosts[turn_output // BURST % len(hosts)].make_output()
            told["output"] += made
            told["unfollowed"] += not made
            turn_output += BURST
    for one in hosts:
        for follower in one.control.followers:
            follower.put(None)
        one.control.followers.clear()
    told["events"] = turn_events
    return told


def main() -> None:
    """Carry out the commands that come on standard input."""
    sessions = int(sys.argv[1])
    threading.stack_size(256 << 10)
    hosts: list[SimulatedHost] = []
    for line in sys.stdin:
        command = json.loads(line)
        if "folders" in command:
            hosts += [SimulatedHost(Path(folder), sessions) for folder in command["folders"]]
            for one in hosts:
                one.host.connection.wait_connected(CONNECT_SECONDS)
            told: dict[str, Any] = {"connected": len(hosts)}
        else:
            told = make_load(hosts, command["events"], command["output"], command["seconds"])
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
