"""A team whose agents are on several machines, one of which is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet.teams import ScriptedAgents, TeamRunner
from machines.conftest import tmuxctl
from machines.ssh_server import SshServer


@pytest.fixture
def scripted(site: Path) -> ScriptedAgents:
    """Agents in the folder of a project."""
    folder = site / "project"
    folder.mkdir()
    return ScriptedAgents(folder)


def test_an_agent_here_and_a_shell_there_work_until_the_status_is_right(scripted: ScriptedAgents, web1: SshServer):
    check = "cat ~/tried 2>/dev/null || (echo it works >~/tried; echo it fails; exit 3)"
    stages = [
        {"agent": "coder", "prompt": "{input}\n{previous}"},
        {"agent": "tests", "prompt": check, "expect_exit": 0, "on_fail": {"goto": 0, "max": 2}},
    ]
    agents = {
        "coder": scripted.agent("coder", [{"re": "", "say": "written {n}"}]),
        "tests": {"command": ["bash"], "machine": "web1"},
    }
    runner = TeamRunner()
    ended = runner.up(scripted.write({"type": "pipeline", "stages": stages}, agents))
    assert (ended["ok"], ended["result"], ended["turns"]) == (True, "it works", 4)
    assert scripted.given("coder") == ["the input\nthe input", "the input\nit fails"]
    statuses = [
        one["exit_status"] for one in runner.log("team") if one["from"] == "tests" and one["event"] == "message"
    ]
    assert statuses == [3, 0]
    assert (web1.home / "tried").read_text() == "it works\n"
    for machine in ((), ("web1/",)):
        assert tmuxctl("ls", "-q", *machine).output == ""


def git(folder: Path, *words: str) -> None:
    """Run git there."""
    who = ("-c", "user.name=x", "-c", "user.email=x@example", "-c", "init.defaultBranch=main")
    subprocess.run(("git", *who, "-C", str(folder), *words), check=True, capture_output=True)


@pytest.fixture
def shop(site: Path, web1: SshServer, needs: Callable[..., None]) -> Path:
    """A repository with a clone on each machine, `~/shop` on both."""
    needs("git")
    origin = site / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "--bare")
    git(site, "clone", "-q", str(origin), "shop")
    git(site / "shop", "commit", "-q", "--no-gpg-sign", "--allow-empty", "-mx")
    git(site / "shop", "push", "-q", "origin", "HEAD")
    git(web1.home, "clone", "-q", str(origin), "shop")
    return site / "shop"


@pytest.mark.night
def test_the_agent_of_a_machine_that_is_lost_goes_on_on_another_in_a_worktree_of_its_branch(
    scripted: ScriptedAgents, web1: SshServer, shop: Path, until: Callable[[Callable[[], Any]], Any]
):
    down = scripted.folder / "down"
    commit = "git -c user.name=x -c user.email=x@example commit -q --no-gpg-sign -m work"
    work = f"echo done >work && git add work && {commit} && git push -q origin topic && echo $HOME"
    stages = [
        {"agent": "dev", "prompt": work, "expect_exit": 0},
        {"agent": "pause", "prompt": f"touch {down}; while test -e {down}; do sleep 0.02; done", "expect_exit": 0},
        {"agent": "dev", "prompt": "echo $HOME $(git branch --show-current) $(cat work)", "expect_exit": 0},
        {"agent": "reader", "prompt": "read {previous}"},
    ]
    agents = {
        "dev": {"command": ["bash"], "machine": ["web1", "local"], "cwd": "~/shop", "isolation": {"worktree": "topic"}},
        "pause": {"command": ["bash"]},
        "reader": scripted.agent("reader", [{"re": "", "say": "read"}]),
    }
    file = scripted.write({"type": "pipeline", "stages": stages}, agents)
    words = (sys.executable, "-m", "tmuxctl", "connect", "up", str(file), "--yes", "--json")
    run = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: down.exists() or run.poll() is not None)
    # what was pushed has to be known here: a worktree is made of what is there
    git(shop, "fetch", "-q")
    web1.go_down()
    down.unlink(missing_ok=True)
    printed, errors = run.communicate(timeout=60)
    ended = json.loads(printed)
    assert (ended["ok"], ended["result"]) == (True, "read"), printed + errors
    records = TeamRunner().log("team")
    assert [one["session"] for one in records if one["event"] == "session" and one["from"] == "dev"] == [
        "web1/team-dev",
        "team-dev",
    ]
    said = [one["text"] for one in records if one["event"] == "message" and one["from"] == "dev"]
    assert said == [str(web1.home), f"{shop.parent} topic done"]
    assert scripted.given("reader") == [f"read {said[1]}"]
    assert tmuxctl("ls", "-q").output == ""
    assert "web1 is not reached" in ended["left"][0]
