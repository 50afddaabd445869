"""Agents that are several programs: which is started in a run, and who takes a turn instead; without a network too."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet.teams import ScriptedAgents, TeamRunner
from programs import HERE, program

from tools.services import Running

CHAT = """\
schema: tmuxctl/profile@1
command: {command}
prompt: {{id: input, re: '^{name}>(?: |$)', where: cursor-line, detail: agent}}
errors: [{{id: limit, re: 'usage limit reached', detail: limited, retry: none}}]
"""


def write_chats(place: Path, **modes: str) -> Path:
    """Write profiles of chats, by what each does (tests/programs/chat.py); their folder."""
    profiles = place / ".config/tmuxctl/profiles"
    profiles.mkdir(parents=True)
    for name, mode in modes.items():
        command = ["nosuch-program"] if mode == "missing" else [*program("chat", mode, name)]
        (profiles / f"{name}.yaml").write_text(CHAT.format(command=json.dumps(command), name=name))
    return profiles


@pytest.fixture(autouse=True)
def chat_log(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where chats write what they are given."""
    monkeypatch.setenv("CHAT_LOG", str(place / "chat.log"))


@pytest.fixture
def local_model(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`ollama` with a model, and profiles: `local` for it, and three programs of which none can be had now."""
    profiles = write_chats(place, gone="missing", spent="used-up", brief="limited")
    (profiles / "local.yaml").write_text("schema: tmuxctl/profile@1\nextends: ollama\ncommand: [ollama, run, shop]\n")
    (place / "bin").mkdir()
    ollama = place / "bin/ollama"
    ollama.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {HERE / "ollama_chat.py"} "$@"\n')
    ollama.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ollama.parent}{os.pathsep}{os.environ['PATH']}")
    with Running(place, user="") as services:
        served = services.start("ollama")
        assert served
        for variable, value in served.environment.items():
            monkeypatch.setenv(variable, value)
        yield


@pytest.mark.night
@pytest.mark.usefixtures("local_model")
def test_a_team_goes_on_with_a_model_on_this_machine(scripted: ScriptedAgents, runner: TeamRunner):
    agents = {
        # the second is limited as it starts, the last in its first turn
        "writer": {"candidates": ["gone", "spent", "local"]},
        "critic": {"candidates": ["brief", "local"], "role": "You review"},
    }
    talk = {"type": "dialogue", "between": ["writer", "critic"], "first": "writer", "opening": "{input}"}
    file = scripted.write(talk, agents, input="say hello", stop={"turns": 3})
    ended = runner.up(file, status=1)
    assert (ended["reason"], ended["turns"]) == ("turns", 3)
    records = runner.log("team")
    said = [one for one in records if one["event"] == "message"]
    assert [one["text"] for one in said] == [
        "I was told: say hello",
        "I was told: [from writer]\nI was told: say hello",
        "I was told: [from critic]\nI was told: [from writer]\nI was told: say hello",
    ]
    assert {one["answered_by"] for one in said} == {"local"}
    assert [one["session"] for one in said] == ["team-writer", "team-critic-local", "team-writer"]
    assert [(one["profile"], one["reason"]) for one in said[1]["passed"]] == [("brief", "limited")]
    # who is limited in its first turn has not taken its role: the model has
    assert [one["text"] for one in records if one["event"] == "role"] == ["I was told: You review"]


def answered(runner: TeamRunner) -> list[tuple[str, str]]:
    """Who answered in the last run, and in which session."""
    return [(one["answered_by"], one["session"]) for one in runner.log("team") if one["event"] == "message"]


TWICE = {"type": "pipeline", "stages": [{"agent": "dev", "prompt": "one"}, {"agent": "dev", "prompt": "two"}]}


@pytest.mark.night
def test_each_run_takes_the_next_program_and_keeps_it(scripted: ScriptedAgents, runner: TeamRunner, place: Path):
    write_chats(place, a="answers", b="answers")
    file = scripted.write(TWICE, {"dev": {"candidates": ["a", "b"], "route": "round-robin"}})
    for name in ("a", "b", "a"):
        runner.up(file)
        assert answered(runner) == [(name, "team-dev")] * 2


@pytest.mark.night
def test_the_next_run_begins_with_the_program_that_was_not_limited(
    scripted: ScriptedAgents, runner: TeamRunner, place: Path
):
    write_chats(place, brief="limited", well="answers")
    file = scripted.write(TWICE, {"dev": {"candidates": ["brief", "well"], "route": "least-limited"}})
    for session in ("team-dev-well", "team-dev"):
        runner.up(file)
        assert answered(runner) == [("well", session)] * 2
