"""A program in a sandbox puts links in the place of what the next sandbox is given: nobody gets out, and no key is read."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import crash_server

from tmuxctl import plugin
from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError

pytestmark = [
    pytest.mark.on("tmux"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bubblewrap is for Linux"),
]

SWAP = (Path(__file__).parents[1] / "programs/swap.py").read_text()
ATTACK = """echo began; cat ~/.ssh/id {0}/.ssh/id .git/.ssh/id .ssh/id
for one in ~ {0} .git .; do echo owned >>$one/.profile; done 2>/dev/null"""
KEY = "the key of a person"
GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "advice.detachedHead=false")


@pytest.fixture
def home(control: Control, place: Path, needs: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a key and a repository, and in it `work`, in which a sandbox may write."""
    needs("bwrap", "git")
    if reason := plugin.find_obstacle(plugin.load("sandbox")):
        pytest.skip(reason)
    home = place / "home"
    for folder in (home / "work", home / ".ssh"):
        folder.mkdir(parents=True)
    (home / ".ssh/id").write_text(KEY)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    subprocess.run([*GIT, "init", "-q", "-b", "main", str(home / "shop")], check=True)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "one"], cwd=home / "shop", check=True)
    return home


PLACES = {
    "plain folder": (".", ".git", ()),
    "folder below": ("below", "below", ("mkdir", "below")),
    "checkout": ("shop", "shop/.git", (*GIT, "clone", "-q", "../shop")),
    "worktree": ("tree", "tree", (*GIT, "-C", "../shop", "worktree", "add", "-q", "-b", "topic", "../work/tree")),
}
"""Where the sandboxes start, what is swapped, and how it is made."""


def swapping(control: Control, home: Path, kind: str, delays: list[int]) -> Path:
    """Start the program that swaps, and after it make what it swaps; where the others start."""
    inside, path, make = PLACES[kind]
    argv = ("/usr/bin/python3", "-c", SWAP, "../" * (path.count("/") + 1), path, *map(str, delays))
    control.new("evil", argv, cwd=str(home / "work"), with_=("sandbox",), wait=False)
    if make:
        subprocess.run(make, cwd=home / "work", check=True)
        (home / "work/made").touch()
    control.wait("evil", text="ready", since="screen", timeout=60)
    return home / "work" / inside


def unharmed(home: Path, text: str) -> None:
    assert KEY not in text
    assert not (home / ".profile").exists()
    assert os.listdir(home / ".ssh") == ["id"]


def told(function: Callable[[], object]) -> str:
    """What came of it, in words; also of a refusal."""
    try:
        return repr(function())
    except TmuxctlError as error:
        return f"{error.message} {error.details}"


def tries(control: Control, home: Path, kind: str, delays: list[int]) -> int:
    """Start sandboxes beside the one that swaps, in three ways; how many of them came to run their program."""
    cwd = str(swapping(control, home, kind, delays))
    script, ran = ATTACK.format(home), 0
    stays = ("sh", "-c", f"{script}; exec sleep 1000")
    for _, way in zip(delays, itertools.cycle(("run", "new", "replace")), strict=False):
        if way == "run":
            text = told(lambda: control.run(("sh", "-c", script), cwd=cwd, with_=("sandbox",), timeout=60))
        else:
            text = told(lambda: control.new("good", stays, cwd=cwd, with_=("sandbox",), if_exists="replace"))
            with suppress(TmuxctlError):
                text += told(lambda: control.log("good"))
            if way == "new":
                with suppress(TmuxctlError):
                    control.kill(("good",))
        ran += "began" in text
        unharmed(home, text)
    return ran


@pytest.mark.night
@pytest.mark.parametrize("kind", PLACES)
def test_links_that_are_put_in_place_of_folders_lead_no_sandbox_out(
    control: Control, home: Path, kind: str, figures: Callable[..., None]
) -> None:
    figures("programs that ran", tries(control, home, kind, [0, 30, 60]))


@pytest.mark.night
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", PLACES)
def test_links_that_are_put_at_any_time_lead_no_sandbox_out(
    control: Control, home: Path, kind: str, figures: Callable[..., None]
) -> None:
    figures("programs that ran", tries(control, home, kind, [number * 67 % 301 for number in range(45)]))


@pytest.mark.night
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", PLACES)
def test_two_that_are_restored_at_once_do_not_lead_each_other_out(control: Control, home: Path, kind: str) -> None:
    cwd = str(swapping(control, home, kind, [0, 20, 60, 150, 300]))
    script = f"{ATTACK.format(home)}; exec sleep 1000"
    while "good" not in {one.name for one in control.ls().sessions}:  # refused while a link is there
        unharmed(home, told(lambda: control.new("good", ("sh", "-c", script), cwd=cwd, with_=("sandbox",))))
    for _ in range(5):
        with suppress(TmuxctlError):  # both may have been refused
            crash_server(control)
        text = told(control.restore)
        with suppress(TmuxctlError):
            control.wait("good", text="began", since="screen", timeout=2)
        with suppress(TmuxctlError):
            text += told(lambda: control.log("good"))
        unharmed(home, text)
