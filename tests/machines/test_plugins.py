"""What a user can rely on when a session with plugins is on a machine behind ssh."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from machines.conftest import tmuxctl
from machines.ssh_server import SshServer

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Failed, Unreachable, Usage

WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org")


def git(folder: Path, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stderr
    return ran.stdout.strip()


@pytest.fixture
def shop(web1: SshServer) -> Path:
    """A repository in the home over there."""
    folder = web1.home / "shop"
    git(web1.home, "init", "-q", "-b", "main", str(folder))
    (folder / "coins").write_text("1\n")
    (folder / ".gitignore").write_text("*.secret\n")
    (folder / ".worktreeinclude").write_text("*.secret\n")
    (folder / "till.secret").write_text("open\n")
    git(folder, "add", "coins", ".gitignore", ".worktreeinclude")
    git(folder, *WHO, "commit", "-q", "-m", "Begin")
    return folder


def start(far: Control, name: str, **options: object) -> str:
    """Start a shell in the repository there; the folder it has."""
    command = ["bash", "--norc", "--noprofile"]
    made = far.call("new", {"name": f"web1/{name}", "command": command, "cwd": "shop", **options})
    return str(made.cwd)


def run(far: Control, name: str, *command: str) -> str:
    done = far.call("exec", {"session": f"web1/{name}", "command": list(command)})
    assert done.exit_status == 0, done.data
    return str(done.data.decode()).strip()


def kill(far: Control, *names: str) -> str:
    """End these sessions; what their plugins left."""
    return "".join(words for one in far.call("kill", {"session": list(names)}).killed for words in one.left)


@pytest.mark.night
def test_a_worktree_is_made_over_there_and_goes_when_nothing_would_be_lost(far: Control, web1: SshServer, shop: Path):
    folder = start(far, "w", worktree="fix")
    assert folder.startswith(str(web1.home / ".local/state/tmuxctl/worktrees"))
    assert run(far, "w", "git", "branch", "--show-current") == "fix"
    assert run(far, "w", "cat", "till.secret") == "open"
    assert kill(far, "web1/w") == ""
    assert not os.path.exists(folder)
    assert git(shop, "branch", "--list", "fix")


@pytest.mark.night
def test_work_over_there_holds_its_worktree_back_until_prune_by_force(far: Control, shop: Path):
    folder = start(far, "w", worktree="fix")
    run(far, "w", "sh", "-c", "echo 2 >coins; echo new >more")
    left = kill(far, "web1/w")
    assert "1 changed file is not committed" in left
    assert "1 new file is not committed" in left
    assert Path(folder, "more").exists()
    assert tmuxctl("new", "web1/x", "--cwd", "shop", "--worktree", "fix", "--", "cat").status == 0
    assert tmuxctl("kill", "web1/x", "--force").status == 0
    assert not os.path.exists(folder)


@pytest.mark.night
def test_a_worktree_over_there_has_one_session_at_a_time(far: Control, shop: Path):
    start(far, "w", worktree="fix")
    with pytest.raises(Failed) as caught:
        start(far, "x", worktree="fix")
    assert caught.value.details["cause"] == "in_use"
    assert "in use by the session w" in caught.value.message


def test_a_session_over_there_that_cannot_start_leaves_no_worktree(far: Control, web1: SshServer, shop: Path):
    with pytest.raises(Failed) as caught:
        far.call(
            "new", {"name": "web1/w", "command": ["cat"], "cwd": "shop", "with_": ["worktree:branch=a,setup=exit 3"]}
        )
    assert "ended with status 3" in caught.value.message
    assert git(shop, "branch", "--list", "a") == ""
    assert not list((web1.home / ".local/state/tmuxctl/worktrees").glob("*/a*"))


@pytest.mark.night
def test_a_setup_runs_over_there_with_the_variables_of_the_session(far: Control, shop: Path):
    options = {"with_": ["worktree:branch=fix,setup=echo $COIN >made"], "env": {"COIN": "it's 2"}}
    folder = start(far, "w", **options)
    assert Path(folder, "made").read_text() == "it's 2\n"


@pytest.mark.night
def test_a_lost_session_over_there_goes_on_in_its_worktree(far: Control, web1: SshServer, shop: Path):
    folder = start(far, "w", worktree="fix")
    (server,) = (web1.home / ".local/state/tmuxctl").glob("*/server")
    os.kill(int(server.read_text().split()[0]), 9)
    found = far.call("restore", {"session": ["web1/w"]})
    assert [(one.session, one.outcome) for one in found.sessions] == [("web1/w", "relaunched")], found
    assert run(far, "w", "pwd") == folder
    assert kill(far, "web1/w") == ""
    assert not os.path.exists(folder)


@pytest.mark.night
def test_sessions_over_there_share_a_scratchpad(far: Control, web1: SshServer, site: Path, shop: Path):
    one, two = start(far, "a", scratchpad="web", worktree="a"), start(far, "b", scratchpad="web", worktree="b")
    run(far, "a", "sh", "-c", "echo note >.scratchpad/note")
    assert run(far, "b", "sh", "-c", 'cat "$TMUXCTL_SCRATCHPAD/note"') == "note"
    assert run(far, "b", "git", "status", "--porcelain") == ""
    assert kill(far, "web1/a", "web1/b") == ""
    assert (web1.home / ".local/state/tmuxctl/scratchpads/web/note").exists()
    assert not os.path.exists(one)
    assert not os.path.exists(two)
    assert not (site / "state/tmuxctl/scratchpads").exists(), "nothing is made on this machine"


@pytest.mark.night
def test_without_git_over_there_a_worktree_is_refused(far: Control, web1: SshServer, shop: Path):
    (web1.programs / "git").unlink()
    with pytest.raises(Failed) as caught:
        start(far, "w", worktree="fix")
    assert "git is not installed" in caught.value.message
    assert start(far, "s", scratchpad="web") == str(shop)


@pytest.mark.night
def test_a_sandbox_over_there_is_refused_and_nothing_is_left(far: Control, shop: Path):
    with pytest.raises(Failed) as caught:
        start(far, "w", sandbox="workspace", worktree="fix")
    assert "this machine only" in caught.value.message or "cannot work here" in caught.value.message
    assert git(shop, "branch", "--list", "fix") == ""
    assert not far.call("ls", {"machine": "web1"}).sessions


@pytest.mark.night
def test_a_limit_of_time_holds_over_there(far: Control):
    far.call("new", {"name": "web1/t", "command": ["cat"], "lifetime": "1s"})
    assert far.call("wait", {"session": "web1/t", "exit": True, "timeout": 20}).matched


def test_a_machine_that_cannot_be_reached_is_told_as_such(far: Control, web1: SshServer):
    web1.stop()
    with pytest.raises(Unreachable) as caught:
        start(far, "w", worktree="fix")
    assert caught.value.details["machine"] == "web1"


@pytest.mark.night
def test_two_at_once_over_there_get_one_worktree(site: Path, web1: SshServer, shop: Path):
    words = ("new", "--cwd", "shop", "--worktree", "fix", "--json")
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tmuxctl", *words, f"web1/{name}", "--", "cat"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name in ("a", "b")
    ]  # fmt: skip
    told = [one.communicate(timeout=120)[1] for one in running]
    assert sorted(bool(one.returncode) for one in running) == [False, True], told
    assert "in use by the session" in "".join(told)


def test_a_plan_leaves_nothing_over_there(far: Control, shop: Path):
    start(far, "w", worktree="fix", dry_run=True)
    assert git(shop, "branch", "--list", "fix") == ""


def test_options_are_checked_before_anything_is_made_there(far: Control, web1: SshServer, shop: Path):
    with pytest.raises((Usage, Failed)):
        start(far, "w", worktree="-x")
    with pytest.raises((Usage, Failed, Conflict)):
        start(far, "w", with_=["scratchpad=../up"])
    assert not (web1.home / ".local/state/tmuxctl/scratchpads").exists()
