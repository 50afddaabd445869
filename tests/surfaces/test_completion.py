"""What real shells offer after a Tab: commands, options, sessions, answers to questions, programs, keys, lists."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmuxctl.control import Control

ROOT = Path(__file__).resolve().parents[2]
ASK = "printf 'Overwrite the settings? [y/N] '; read answer; exec cat"

BASH = """
source "$0"
compopt() { printf '%s\\n' "$2"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_tmuxctl_completion tmuxctl
printf '%s\\n' "${COMPREPLY[@]}"
"""

FISH = "source $argv[1]; complete --do-complete (string join -- ' ' $argv[2..-1])"

ZSH = """
_describe() { shift 2; print -rl -- "${(P@)1}"; }
compadd() { print -rl -- "${(P@)@[-1]}"; }
_path_files() { print -- "$1"; }
source "$0"
words=("$@"); CURRENT=$#
_tmuxctl_completion
"""
"""What zsh itself would draw is printed instead: `_describe` and `compadd` are given the lists."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH whose `tmuxctl` is this tree's, with programs of a name that no other has."""
    folder = tmp_path_factory.mktemp("bin")
    for name, text in (("tmuxctl", f'exec "{sys.executable}" -m tmuxctl "$@"'), ("zzprog-one", ""), ("zzprog-two", "")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "zzprog-data").write_text("")
    return f"{folder}:{os.environ['PATH']}"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The script of each shell, printed once: what it asks at each Tab is what is tried here."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in ("bash", "zsh", "fish"):
        words = [sys.executable, "-m", "tmuxctl", "completion", shell]
        (folder / shell).write_bytes(subprocess.run(words, capture_output=True, timeout=60, check=True).stdout)
    return {shell: folder / shell for shell in ("bash", "zsh", "fish")}


@pytest.fixture
def sessions(place: Path) -> Iterator[None]:
    """A session that asks, and two shells."""
    with Control() as control:
        control.new("ask1", ("sh", "-c", ASK))
        control.new("py2", ("sh",))
        control.new("py10", ("sh",), wait=False)
        assert control.wait("ask1", asking=True).matched
        yield
        control.call("kill", {"all": True})
    # without sessions it goes on
    subprocess.run(["tmux", "-L", "t", "kill-server"], capture_output=True, check=False)


@pytest.fixture(params=["bash", "zsh", "fish"])
def offered(
    request: pytest.FixtureRequest,
    path: str,
    scripts: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    place: Path,
) -> Callable[[str], dict[str, str]]:
    """What a shell offers for a line, each with its description where the shell shows one."""
    shell: str = request.param
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def complete(line: str) -> dict[str, str]:
        words = line.split(" ")
        command = {
            "bash": ["bash", "--norc", "-c", BASH, str(scripts[shell]), *words],
            "fish": ["fish", "--no-config", "-c", FISH, str(scripts[shell]), *words],
            "zsh": ["zsh", "-f", "-c", ZSH, str(scripts[shell]), *words],
        }[shell]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr == ""
        mark = {"bash": "\0", "fish": "\t", "zsh": ":"}[shell]
        found = (one.partition(mark) for one in done.stdout.splitlines() if one)
        return {value: about for value, _, about in found}

    complete.shell = shell  # type: ignore[attr-defined]
    return complete


@pytest.mark.night
def test_a_shell_completes_what_is_typed(offered: Callable[[str], dict[str, str]], sessions: None) -> None:
    assert {"screen"} == set(offered("tmuxctl scr"))
    assert {"ask1", "py2", "py10"} == set(offered("tmuxctl show "))
    assert {"yes", "no"} == set(offered("tmuxctl decide ask1 "))
    assert {"yes"} == set(offered("tmuxctl decide ask1 y"))
    assert set() == set(offered("tmuxctl decide py2 "))
    assert {"zzprog-one", "zzprog-two"} == set(offered("tmuxctl new x -- zzprog"))
    assert {"zzprog-one", "zzprog-two"} == set(offered("tmuxctl exec py2 -- zzprog"))
    assert {"zzprog-one", "zzprog-two"} == set(offered("tmuxctl run zzprog"))
    assert {"C-c", "C-d", "C-Up"} <= set(offered("tmuxctl keys py2 C-"))
    assert {"Enter", "Up", "F5", "M-Enter", "C-c"} <= set(offered("tmuxctl keys py2 "))
    assert {"py2,ask1", "py2,py10"} == set(offered("tmuxctl wait --any py2,"))
    assert {"py2,ask1,py10"} == set(offered("tmuxctl wait --all py2,ask1,p"))
    assert {"--on-asking", "--on-idle", "--on-input", "--on-prompt"} == set(offered("tmuxctl watch --on-"))
    assert {"ask1"} == set(offered("tmuxctl attach -t as"))
    assert {"wait.timeout"} == set(offered("tmuxctl config get wait.t"))
    assert {"ask1", "py2", "py10"} == set(offered("tmuxctl send -- "))


@pytest.mark.night
def test_zsh_and_fish_show_descriptions(offered: Callable[[str], dict[str, str]], sessions: None) -> None:
    if offered.shell == "bash":  # type: ignore[attr-defined]
        pytest.skip("bash shows none")
    assert offered("tmuxctl scr")["screen"].startswith("Print what a person would see now")
    assert "profile" in offered("tmuxctl prof")
    assert "ls, show, test" in offered("tmuxctl prof")["profile"]
    about = offered("tmuxctl show ")
    assert "idle" in about["py2"]
    assert "asking, " in about["ask1"]
    assert "Overwrite the settings?" in about["ask1"]
    assert "until it asks a question" in offered("tmuxctl wait --ask")["--asking"]


@pytest.mark.night
def test_an_alias_is_completed_as_what_it_stands_for(offered: Callable[[str], dict[str, str]], sessions: None) -> None:
    subprocess.run(["tmuxctl", "config", "set", "alias.zz", "decide --json"], check=True)
    assert set(offered("tmuxctl zz")) == {"zz"}
    assert set(offered("tmuxctl zz ask1 ")) == {"yes", "no"}


def test_where_nothing_can_be_known_a_shell_offers_nothing_and_says_nothing(
    offered: Callable[[str], dict[str, str]], place: Path
) -> None:
    for line in (
        "tmuxctl decide nosuch ",
        "tmuxctl show ",
        "tmuxctl nosuch x ",
        "tmuxctl stop ",
        "tmuxctl --socket x show ",
    ):
        assert offered(line) == {}, line
