"""Connector files as values, for tests of the rules and of runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from programs import HERE

from tmuxctl.fleet.connector import Agent, Connector, Topology
from tmuxctl.fleet.files.reading import read_connector

PROFILE = str(HERE / "team_agent.yaml")
PROGRAM = str(HERE / "team_agent.py")


def connector(topology: Topology, names: Sequence[str], **given: Any) -> Connector:
    """A connector file whose agents are only names."""
    agents = {name: Agent(name, command=("true",)) for name in names}
    return Connector("team", "/nowhere/team.json", "0" * 64, agents, topology, **{"input": "the input", **given})


class ScriptedAgents:
    """Agents of a team in a folder, each with its script, and what they were given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, name: str, rules: Sequence[Mapping[str, Any]]) -> list[str]:
        """The command that starts an agent with these rules (see tests/programs/team_agent.py)."""
        script = self.folder / f"{name}.script.json"
        script.write_text(json.dumps({"rules": list(rules)}))
        return [sys.executable, "-I", "-S", PROGRAM, str(script), str(self.folder / f"{name}.log")]

    def agent(self, name: str, rules: Sequence[Mapping[str, Any]], **given: Any) -> dict[str, Any]:
        """An agent as a connector file has it."""
        return {"command": self.command(name, rules), "profile": PROFILE, **given}

    def given(self, name: str) -> list[str]:
        """The texts that an agent was given, in order."""
        log = self.folder / f"{name}.log"
        return [json.loads(line)["text"] for line in log.read_text().splitlines()] if log.exists() else []

    def write(self, topology: Mapping[str, Any], agents: Mapping[str, Any], **given: Any) -> Path:
        """A connector file."""
        file = self.folder / "team.json"
        about = {"schema": "tmuxctl/connector@1", "name": "team", "input": "the input", "agents": agents}
        file.write_text(json.dumps({**about, "topology": topology, **given}))
        return file

    def play(self, example: Path, rules: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
        """A connector file as another one, but for the programs of these agents, which are scripted."""
        file = dict(read_connector(str(example)).raw)
        programs = {"command", "profile", "candidates", "route"}
        agents = {name: {key: agent[key] for key in agent.keys() - programs} for name, agent in file["agents"].items()}
        scripted = {name: self.agent(name, rules[name], **agents[name]) for name in rules}
        return self.write(file.pop("topology"), {**file.pop("agents"), **scripted}, **file)


class TeamRunner:
    """A run as a user has it, by the command."""

    def up(self, file: Path, *words: str, status: int = 0) -> dict[str, Any]:
        """The result of `connect up`, which has to end with this status."""
        done = tmuxctl("connect", "up", str(file), "--yes", "--json", *words)
        assert done.returncode == status, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def log(self, team: str) -> list[dict[str, Any]]:
        """The records of a team's last run."""
        return [json.loads(line) for line in tmuxctl("connect", "log", team, "--json").stdout.splitlines()]

    def said(self, team: str) -> list[tuple[str, list[str]]]:
        """Who said something in its last run, and to whom."""
        return [(one["from"], one["to"]) for one in self.log(team) if one["event"] == "message"]


def tmuxctl(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a script would: without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "tmuxctl", *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
