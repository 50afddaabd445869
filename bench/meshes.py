"""A mesh of 50 agents that answer at once: how long 2,000 messages take, and what the runner costs beside the asks alone."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

from place import Place, Row

from tmuxctl.control import Control
from tmuxctl.fleet.connector import Connector
from tmuxctl.fleet.files.reading import read_connector
from tmuxctl.fleet.running.runner import Runner
from tmuxctl.fleet.running.transcript import RunTranscript
from tmuxctl.vocabulary import RunEvent
from tools.processes import resident_bytes

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fleet.teams import ScriptedAgents

AGENTS, MESSAGES = 50, 2000
SECONDS, CPU, QUIET = 120.0, 0.003, 1.0
TALK = {"type": "mesh", "start": {f"a{number}": "begin" for number in range(AGENTS)}}


def measure(place: Place) -> list[Row]:
    with Control(resident=True) as control:
        run, cpu, memory = _have_run(control, _write_team(place.folder))
        alone = _ask_alone(control)
        quiet = _end_quietly(control, place.folder)
    beyond = (cpu - alone) / MESSAGES
    grown = memory[1] / memory[0]
    return [
        Row(
            f"{MESSAGES} messages among {AGENTS} agents that answer at once",
            f"{SECONDS:.0f} s",
            f"{run:.0f} s",
            run <= SECONDS,
        ),
        Row("processor time of the runner for each, beside the ask", "3 ms", f"{beyond * 1000:.1f} ms", beyond <= CPU),
        Row("its memory after all of them, of that after a fifth", "flat", f"{grown:.2f} x", grown < 1.1),
        Row("a mesh in which nobody says more has ended after", "1 s", f"{quiet:.2f} s", quiet <= QUIET),
    ]


def _write_team(folder: Path) -> Connector:
    agents = ScriptedAgents(folder)
    says = {
        name: [f"@a{(number * 7 + use * 3 + 1) % AGENTS}: go on" for use in range(5)]
        for number, name in enumerate(TALK["start"])
    }
    given = {name: agents.agent(name, [{"re": ".", "say": says[name]}]) for name in says}
    file = agents.write(TALK, given, stop={"turns": MESSAGES}, keep=True)
    return read_connector(str(file))


def _have_run(control: Control, connector: Connector) -> tuple[float, float, list[int]]:
    """Seconds from the first turn to the end, processor seconds meanwhile, and bytes of memory after a fifth and at the end."""
    began: list[tuple[float, float]] = []
    memory: list[int] = []
    said = 0

    def show(record: object) -> None:
        nonlocal said
        event = getattr(record, "event", None)
        if event is RunEvent.TURN and not began:
            began.append((time.monotonic(), time.process_time()))
        said += event is RunEvent.MESSAGE
        if event is RunEvent.MESSAGE and said in (MESSAGES // 5, MESSAGES):
            memory.append(resident_bytes(os.getpid()))

    with closing(RunTranscript(f"{os.path.dirname(connector.path)}/mesh.jsonl")) as transcript:
        Runner(control, connector, transcript, show=show).carry_out()
    return time.monotonic() - began[0][0], time.process_time() - began[0][1], memory


def _ask_alone(control: Control) -> float:
    """Processor seconds of as many asks, of the same sessions at the same time, without a runner."""
    names = [one.name for one in control.call("ls", {}).sessions]

    def ask(name: str) -> None:
        for number in range(MESSAGES // AGENTS):
            control.call("ask", {"session": name, "text": f"[from a{number}]\ngo on", "queue": True, "timeout": 60})

    began = time.process_time()
    threads = [threading.Thread(target=ask, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.process_time() - began
    control.call("kill", {"all": True})
    return spent


def _end_quietly(control: Control, folder: Path) -> float:
    """Seconds from the last answer of a mesh to its end."""
    agents = ScriptedAgents(folder)
    given = {
        "a": agents.agent("a", [{"re": ".", "say": "@b: hello"}]),
        "b": agents.agent("b", [{"re": ".", "say": "nothing more"}]),
    }
    connector = read_connector(str(agents.write({"type": "mesh", "start": {"a": "begin"}}, given)))
    times = {}

    def show(record: object) -> None:
        times[getattr(record, "event", None)] = time.monotonic()

    with closing(RunTranscript(f"{folder}/quiet.jsonl")) as transcript:
        Runner(control, connector, transcript, show=show).carry_out()
    return times[RunEvent.END] - times[RunEvent.MESSAGE]
