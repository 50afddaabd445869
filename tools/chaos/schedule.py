"""What a run does, and when: the faults and the actions of each worker, drawn from a seed or read from the log of a run."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

MACHINES = ("here", "ssh", "gateway")
CALLERS = ("library", "command")

FAULTS = {
    "cut_ssh": 15.0,
    "cut_gateway": 15.0,
    "kill_gateway": 4.0,
    "kill_host": 4.0,
    "kill_ssh_connections": 0.0,
    "kill_ssh_masters": 0.0,
    "kill_command_server": 0.0,
    "kill_tmux": 0.0,
    "kill_program": 0.0,
    "stop_tmux": 8.0,
    "stop_host": 8.0,
    "stop_gateway": 8.0,
    "fill_disk": 8.0,
    "jump_clock": 20.0,
}
"""Each kind of fault, and the longest time that it lasts, in seconds; 0 is a moment."""

ON_A_MACHINE = ("kill_tmux", "kill_program", "stop_tmux", "fill_disk")

ACTIONS = {"send": 10, "interrupted_send": 2, "ask": 3, "exec": 2, "wait": 2, "batch": 1, "cycle": 2, "list": 1}
"""Each kind of action, and how often it is drawn among the others."""


class Fault(NamedTuple):
    """A fault: seconds after the start, what, on which machine ("" where it is of none), for how long, and by how much."""

    at: float
    kind: str
    machine: str = ""
    seconds: float = 0.0
    amount: float = 0.0


class Action(NamedTuple):
    """What a worker is to do, not before so many seconds after the start."""

    at: float
    worker: str
    kind: str
    number: int


class Schedule(NamedTuple):
    """All that a run is to do."""

    seed: int
    seconds: float
    faults: list[Fault]
    actions: list[Action]

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "faults": [list(one) for one in self.faults],
            "actions": [list(one) for one in self.actions],
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Schedule:
        faults, actions = [Fault(*one) for one in found["faults"]], [Action(*one) for one in found["actions"]]
        return cls(found["seed"], found["seconds"], faults, actions)


def draw(seed: int, seconds: float, only: tuple[str, ...] = tuple(FAULTS)) -> Schedule:
    """The schedule of a seed. The same seed and length draw the same; how the actions interleave differs from run to run."""
    faults: list[Fault] = []
    drawn, free = random.Random(f"faults {seed}"), dict.fromkeys(FAULTS, 0.0)
    at = 2.0
    while only and (at := round(at + drawn.uniform(0.5, 6.0), 2)) < seconds:
        kind = drawn.choice(list(only))
        length = round(drawn.uniform(0.2, 1.0) * FAULTS[kind], 2)
        machine = drawn.choice(MACHINES) if kind in ON_A_MACHINE else ""
        amount = drawn.choice((-3600.0, 3600.0)) if kind == "jump_clock" else 0.0
        if at >= free[kind]:
            faults.append(Fault(at, kind, machine, length, amount))
            free[kind] = at + length + 1.0
    actions: list[Action] = []
    for machine in MACHINES:
        for caller in CALLERS:
            worker = f"{machine}-{caller}"
            drawn, at, number = random.Random(f"{worker} {seed}"), 0.0, 0
            while (at := round(at + drawn.uniform(0.1, 1.0), 2)) < seconds:
                (kind,) = drawn.choices(list(ACTIONS), list(ACTIONS.values()))
                actions.append(Action(at, worker, kind, number := number + 1))
    return Schedule(seed, seconds, faults, actions)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The rows of a log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def schedule_of(rows: list[dict[str, Any]]) -> Schedule:
    """The schedule that a log says."""
    return Schedule.from_json(next(one for one in rows if one["row"] == "schedule"))
