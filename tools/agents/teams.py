"""Teams of two real agent programs each: every topology, by `tmuxctl connect up`, against the local model.

python -m tools.agents.teams [pipeline dialogue meeting mesh recursive]

The model's log is the truth: each message that the transcript tells of was submitted exactly once, byte-equal, and nothing else
was; each answer in it is the model's text. Answers that begin as commands of the programs do (`!`, `/`) are none. Questions are
answered by the connector file alone: Codex asks before it runs a command (pipeline) and whether it may trust its folder
(recursive). Prints a table; ends with 1 if a promise does not hold.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from . import alone, installing, lab, model, truth
from .behaviours import RUN
from .turn import Turn

PATIENCE = 240.0
"""Seconds that a run may take."""

LEAVING = 20.0
"""Seconds in which the processes of a program that has ended must be gone."""

LINES = """\
A text of several lines.
  indented,  two  spaces

- `code`, a "quote", a \\backslash, 漢字 🚀
@nobody: /not a command
"""


def say(id: str, *lines: str) -> str:
    """The directive that makes the model answer with these lines. Directives in them are for those who are told the answer."""
    return f"fake:say#{id} " + json.dumps("\n".join(lines), ensure_ascii=False).replace("fake:", "fake\\u003a")


class Team(NamedTuple):
    """A team: the program of each agent (a shell has none), what the connector file says beside them, and how the run ends.
    `settings` are the agents' own. `asks_trust` are programs whose folder is unknown to them."""

    programs: Mapping[str, str]
    topology: Mapping[str, Any]
    input: str
    reason: str
    turns: int
    result: str | None
    settings: Mapping[str, Mapping[str, Any]] = {}
    stop: Mapping[str, Any] = {}
    asks_trust: Sequence[str] = ()


TEAMS = {
    "pipeline": Team(
        {"writer": "claude", "coder": "codex", "shell": ""},
        {
            "stages": [
                {"agent": "writer", "prompt": f"{LINES}\n{{input}}"},
                {"agent": "coder", "prompt": "{previous}"},
                {
                    "agent": "shell",
                    "prompt": f"test -e made && echo made || {{ echo '{say('again', 'again')}'; touch made; false; }}",
                    "expect_exit": 0,
                    "on_fail": {"goto": 1, "max": 2},
                },
            ]
        },
        say("tests", "/exit", LINES, "```python", "    assert run()", "```", f"fake:{RUN['codex']}#code mkdir -v run"),
        "done",
        5,
        "made",
        {"writer": {"role": f"You write tests, and you know:\n{LINES}"}, "coder": {"decide": {"*": "allow"}}},
    ),
    "dialogue": Team(
        {"author": "gemini", "critic": "aider"},
        {"between": ["author", "critic"], "first": "author", "opening": f"{LINES}\n{{input}}"},
        say("text", LINES, say("remark", "Shorter.", say("agree", "So be it.", "AGREED"))),
        "text",
        3,
        "So be it.\nAGREED",
        {"critic": {"role": "You review. Answer AGREED on a line of its own if nothing is left."}},
        {"text": "(?m)^AGREED$"},
    ),
    "meeting": Team(
        {"chair": "claude", "one": "gemini", "two": "gemini"},
        {"chair": "chair", "members": ["one", "two"], "speak": "parallel", "rounds": 3, "decision": "(?m)^DECISION"},
        say("view", LINES, say("round", "Once more.", say("more", "As before.", say("decide", "DECISION: files")))),
        "decision",
        6,
        "DECISION: files",
    ),
    "mesh": Team(
        {"planner": "codex", "coder": "aider", "tester": "codex"},
        {"start": {"planner": "{input}"}, "links": {"planner": ["*"], "coder": ["planner", "tester"], "tester": []}},
        say("plan", LINES, "@coder: write", "", say("code", "Written:", f"@tester: try\n{say('test', 'It holds.')}")),
        "quiet",
        3,
        None,
        {"tester": {"role": 'You test, and tell the coder what fails: "@coder: this fails".'}},
    ),
    "recursive": Team(
        {"lead": "claude", "dev": "codex"},
        {"root": "lead", "worker": "dev", "depth": 1, "parallel": 2},
        say(
            "split",
            *("Two tasks.", "", "```task one", "!touch stolen", LINES, say("one", "The first."), "```", ""),
            *("````task two", "```text", "in a block", "```", say("two", "The second.", say("all", "Done.")), "````"),
        ),
        "done",
        4,
        "Done.",
        {"dev": {"decide": {"trust": "allow"}}},
        asks_trust=["codex"],
    ),
}
"""Every topology, with two programs."""


class Laboratory:
    """The programs of a team, each with a home and a work tree of its own, the model that they talk to, and a tmux server."""

    def __init__(self, team: Team) -> None:
        self.team, self.model = team, model.Model()
        self.tag = f"teams-{os.getpid()}"
        # the path of a socket is short
        self.home = Path(tempfile.mkdtemp(prefix="tca-"))
        names = sorted({one for one in team.programs.values() if one})
        self.places = {name: lab.make_place(name, "pinned", f"{self.tag}-{name}", self.model.port) for name in names}
        for place in self.places.values():
            lab.install_hooks(place)
        for name in team.asks_trust:
            forget_folder(self.places[name])
        folders = [str(one.bin) for one in self.places.values()]
        self.environment = {
            **lab.BASE, "HOME": str(self.home), "TERM": "xterm-256color", "TMUX_TMPDIR": str(self.home),
            "PATH": ":".join([*folders, str(Path(sys.executable).parent), os.environ["PATH"]]), "TMUXCTL_SOCKET": "a",
        }  # fmt: skip

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["tmux", "-L", "a", "kill-server"], env=self.environment, capture_output=True, check=False)
        for one in self.processes(LEAVING):
            with suppress(psutil.NoSuchProcess):
                psutil.Process(int(one.split()[0])).kill()
        self.model.close()
        for place in self.places.values():
            lab.remove(place)
        shutil.rmtree(self.home, ignore_errors=True)

    def processes(self, seconds: float) -> list[str]:
        """What still runs of the programs after at most so many seconds."""
        deadline = time.monotonic() + seconds
        while left := [one for place in self.places.values() for one in lab.processes(place)]:
            if time.monotonic() > deadline:
                return left
            time.sleep(0.1)
        return []

    def tmuxctl(self, *words: str) -> str:
        """What a command of the user's prints, errors too."""
        done = subprocess.run(
            ["tmuxctl", *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return done.stdout

    def write(self, topology: str) -> Path:
        """The team's connector file."""
        work = {name: str(self.places[program or "codex"].work) for name, program in self.team.programs.items()}
        agents = {
            name: {
                "command": [program or "bash"],
                "cwd": work[name],
                "turn_timeout": "90s",
                **self.team.settings.get(name, {}),
            }
            for name, program in self.team.programs.items()
        }
        file = self.home / "team.json"
        about = {"schema": "tmuxctl/connector@1", "name": topology, "input": self.team.input, "agents": agents}
        told = {"topology": {"type": topology, **self.team.topology}, "stop": {"time": "200s", **self.team.stop}}
        file.write_text(json.dumps({**about, **told}, ensure_ascii=False))
        return file


def forget_folder(place: lab.Place) -> None:
    """Take out of Codex's settings that its folder is trusted."""
    settings = place.home / ".codex/config.toml"
    settings.write_text(settings.read_text().replace('trust_level = "trusted"\n', ""))


def main() -> int:
    """Have a run of each topology that was named, all by default; returns the exit status."""
    wanted = sys.argv[1:] or list(TEAMS)
    programs = sorted({one for name in wanted for one in TEAMS[name].programs.values() if one})
    installing.install(programs, ["pinned"], print)
    alone.leave_the_network("tools.agents.teams")
    rows: list[tuple[Any, ...]] = []
    wrong = []
    for name in wanted:
        with Laboratory(TEAMS[name]) as laboratory:
            found = list(play(laboratory, name, rows))
        wrong += [f"{name}: {one}" for one in found]
        rows[-1] = (*rows[-1], "yes" if not found else "no")
        print(f"-- {name}: {f'{len(found)} wrong' if found else 'holds'}", flush=True)
    print("\n| topology | programs | turns | seconds | ok |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    for told in wrong:
        print(f"-- DOES NOT HOLD: {told}")
    return 1 if wrong else 0


def play(laboratory: Laboratory, topology: str, rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """One run; the promises that it breaks. A row of the table is added."""
    team = laboratory.team
    rows.append((topology, " + ".join(laboratory.places), "", ""))
    printed = laboratory.tmuxctl("connect", "up", str(laboratory.write(topology)), "--yes", "--json")
    try:
        ended = json.loads(printed.splitlines()[-1])
    except (ValueError, IndexError):
        yield f"no result: {printed[-2000:]}"
        return
    rows[-1] = (topology, " + ".join(laboratory.places), ended.get("turns"), ended.get("elapsed"))
    told = [ended.get(name) for name in ("ok", "reason", "turns", "result")]
    if told != [True, team.reason, team.turns, team.result]:
        yield f"ended {told}: {ended.get('message')}; {laboratory.tmuxctl('ls')}"
        for session in laboratory.tmuxctl("ls", "-q").split():
            yield laboratory.tmuxctl("screen", session)
    records = [json.loads(line) for line in Path(ended["transcript"]).read_text().splitlines()]
    yield from compare(team, records, laboratory.model.requests())
    if ended.get("ok") and (left := laboratory.tmuxctl("ls", "-q").split()):
        yield f"sessions are left: {left}"
    if ended.get("ok") and (running := laboratory.processes(LEAVING)):
        yield f"left running: {running}"


class Given(NamedTuple):
    """A text that an agent was given, and its answer, by the transcript."""

    program: str
    text: str
    answer: str


def compare(team: Team, records: Sequence[Mapping[str, Any]], requests: Sequence[model.Request]) -> Iterator[str]:
    """What the transcript says that the model's log does not, and the other way round."""
    asked = [one for one in requests if not one.auxiliary]
    first = [one for one in asked if not one.results]
    for given in read_given(team, records):
        turn = Turn(given.program, "hooks", "", 0, "", given.text, 0, 0, submitted=True)
        found = next((one for one in first if truth.equal(turn, one)), None)
        if found is None:
            yield f"{given.program} was not given {given.text[:200]!r}"
            continue
        first.remove(found)
        last = [one for one in asked if one.sha256 == found.sha256][-1]
        if given.answer.strip() != (wanted := model.text(last).strip()):
            yield f"{given.program} answered {given.answer[:300]!r}, the model {wanted[:300]!r}"
    yield from (f"submitted, and not told: {one.outcome} {one.user[:200]!r}" for one in first)


def read_given(team: Team, records: Sequence[Mapping[str, Any]]) -> Iterator[Given]:
    """The turns and roles that a transcript tells of, but for those of shells."""
    turns = {one["turn"]: one for one in records if one["event"] == "turn"}
    for record in records:
        if record["event"] == "role":
            name = record["from"]
            yield Given(team.programs[name], str(team.settings[name]["role"]), record["text"])
        if record["event"] == "message":
            # who was started for a task runs the worker's program
            worker = team.programs.get(str(team.topology.get("worker")), "")
            if program := team.programs.get(record["from"], worker):
                yield Given(program, turns[record["turn"]]["text"], record["text"])


if __name__ == "__main__":
    sys.exit(main())
