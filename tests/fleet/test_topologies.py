"""The connector files of examples/teams/ have their runs, with scripted agents in the place of the real programs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet.teams import ScriptedAgents, TeamRunner, tmuxctl

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "teams"

ROLE: dict[str, Any] = {"re": "^You ", "say": "understood"}
"""What every agent answers to its role."""


@pytest.mark.night
def test_a_pipeline_reviews_repairs_and_tests_until_the_status_is_right(scripted: ScriptedAgents, runner: TeamRunner):
    (scripted.folder / "Makefile").write_text("test:\n\t@test -e tried || { touch tried; echo it fails; exit 1; }\n")
    rules = {
        "writer": [ROLE, {"re": "quiet", "say": "changed:\n\n    -q"}],
        "bugs": [ROLE, {"re": "-q", "say": "no bugs"}],
        "style": [ROLE, {"re": "-q", "say": "too short", "think": 0.3}],
        "fixer": [{"re": "", "say": ["longer", "right"]}],
    }
    ended = runner.up(scripted.play(EXAMPLES / "pipeline.yaml", rules))
    assert (ended["ok"], ended["reason"], ended["turns"], ended["result"]) == (True, "done", 7, "")
    assert scripted.given("style")[1:] == scripted.given("bugs")[1:] == ["Review this change:\nchanged:\n\n    -q"]
    first, second = scripted.given("fixer")
    assert first == "Repair this:\n[from bugs]\nno bugs\n\n[from style]\ntoo short"
    assert second.startswith("Repair this:\nit fails\nmake: ***")
    statuses = [
        one["exit_status"] for one in runner.log("change") if one["from"] == "shell" and one["event"] == "message"
    ]
    assert statuses == [2, 0]


@pytest.mark.night
def test_a_dialogue_goes_on_until_they_agree(scripted: ScriptedAgents, runner: TeamRunner):
    rules = {
        "author": [ROLE, {"re": "", "say": ["Copy all.\n\nDaily.", "Copy all, twice."]}],
        "critic": [ROLE, {"re": "", "say": ["One copy is none.", "Good.\nAGREED"]}],
    }
    ended = runner.up(scripted.play(EXAMPLES / "dialogue.yaml", rules))
    assert (ended["ok"], ended["reason"], ended["turns"], ended["result"]) == (True, "text", 4, "Good.\nAGREED")
    assert scripted.given("author")[1:] == [
        "Write this: A page about backups, in docs/backups.md",
        "[from critic]\nOne copy is none.",
    ]
    assert scripted.given("critic")[1:] == ["[from author]\nCopy all.\n\nDaily.", "[from author]\nCopy all, twice."]
    assert runner.said("page") == [("author", ["critic"]), ("critic", ["author"])] * 2


@pytest.mark.night
def test_a_meeting_hears_all_and_the_chair_decides(scripted: ScriptedAgents, runner: TeamRunner):
    rules = {
        "chair": [ROLE, {"re": "", "say": ["What of crashes?", "DECISION: files"]}],
        **{name: [ROLE, {"re": "", "say": [f"{name}: files", "unchanged"]}] for name in ("security", "speed", "users")},
    }
    ended = runner.up(scripted.play(EXAMPLES / "meeting.yaml", rules))
    assert (ended["ok"], ended["reason"], ended["turns"], ended["result"]) == (True, "decision", 8, "DECISION: files")
    opening = "Shall sessions be kept in SQLite or in plain files?"
    first, second = scripted.given("speed")[1:]
    assert first == opening
    # what the others said meanwhile, in the order in which it came, and the chair last
    assert sorted(second.split("\n\n")[:2]) == ["[from security]\nsecurity: files", "[from users]\nusers: files"]
    assert second.endswith("\n\n[from chair]\nWhat of crashes?")
    told = scripted.given("chair")[1].split("\n\n")
    assert (told[0], sorted(told[1:])[1]) == (opening, "[from speed]\nspeed: files")


@pytest.mark.night
def test_in_a_mesh_each_tells_whom_it_likes(scripted: ScriptedAgents, runner: TeamRunner):
    rules = {
        "planner": [ROLE, {"re": "made", "say": "@coder: write\nit\n@tester: wait"}, {"re": "", "say": "done"}],
        "coder": [ROLE, {"re": "planner", "say": "@tester: try"}, {"re": "", "say": "@tester: again"}],
        "tester": [
            ROLE, {"re": "again", "say": "@planner: it works"}, {"re": "try", "say": "@coder: fails"}, {"re": "", "say": "ok"}
        ],
    }  # fmt: skip
    ended = runner.up(scripted.play(EXAMPLES / "mesh.yaml", rules))
    assert (ended["ok"], ended["reason"]) == (True, "quiet")
    assert ended["results"] == {"coder": "@tester: again", "tester": "@planner: it works", "planner": "done"}
    assert scripted.given("coder")[1:] == ["[from planner]\nwrite\nit", "[from tester]\nfails"]
    assert scripted.given("planner")[1:] == [
        "Have this made: A command that prints the phase of the moon",
        "[from tester]\nit works",
    ]


@pytest.mark.night
def test_tasks_are_done_by_workers_with_a_worktree_each(
    scripted: ScriptedAgents, runner: TeamRunner, needs: Callable[..., None]
):
    needs("git")
    who = ("-c", "user.name=x", "-c", "user.email=x@example")
    for words in (("init", "-q"), (*who, "commit", "-q", "--no-gpg-sign", "--allow-empty", "-mx")):
        subprocess.run(("git", "-C", str(scripted.folder), *words), check=True)
    tasks = "```task one\ntranslate one\n```\n```task two\n    translate two\n```"
    rules = {
        "lead": [ROLE, {"re": "German", "say": tasks}, {"re": "result", "say": "all is done"}],
        "dev": [ROLE, {"re": "(one|two)", "say": "it is done"}],
    }
    ended = runner.up(scripted.play(EXAMPLES / "recursive.yaml", rules))
    assert (ended["ok"], ended["reason"], ended["turns"], ended["result"]) == (True, "done", 4, "all is done")
    assert scripted.given("lead")[2] == "[result one]\nit is done\n\n[result two]\nit is done"
    assert {"translate one", "    translate two"} < set(scripted.given("dev"))
    started = [one["session"] for one in runner.log("translate") if one["event"] == "session"]
    assert sorted(started) == ["translate-lead", "translate-one", "translate-two"]
    assert tmuxctl("connect", "ls", "--json").returncode == 0
