"""What the command says where something did not go as wanted: what happened, what goes on, and what would work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.model import Confidence, Session, State, Status
from tmuxctl.surfaces.cli.printing import output, table

Command = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.on("tmux")


@pytest.fixture
def tmuxctl(control: Control) -> Command:
    """Runs one command; the sessions it starts end with the test."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tmuxctl", *words], capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.mark.night
def test_a_wait_that_ran_out_of_time_says_what_the_program_does_and_shows_its_screen(tmuxctl: Command) -> None:
    tmuxctl("new", "build", "--no-wait", "--", "sh", "-c", "while echo compiling; do sleep 0.1; done")
    done = tmuxctl("wait", "build", "--exit", "--timeout", "2s")
    first, *rest = done.stdout.splitlines()
    assert done.returncode == 124
    assert first == "timed out after 2 s; build is still busy (printing)"
    assert rest[-1] == "compiling"
    assert done.stderr == "tmuxctl: build goes on; stop it: tmuxctl keys build C-c\n"


@pytest.mark.night
def test_a_wait_for_a_text_says_that_it_was_not_seen(control: Control, tmuxctl: Command) -> None:
    control.new("t", LINES)
    done = tmuxctl("wait", "t", "--text", "ready", "--timeout", "0.3")
    assert done.stdout.splitlines()[0] == "timed out after 0.3 s; text 'ready' was not seen; t is still idle (line)"
    assert done.stderr == "tmuxctl: t goes on\n"
    quiet = tmuxctl("wait", "t", "--text", "ready", "--timeout", "0.3", "-q")
    assert (quiet.stdout, quiet.stderr, quiet.returncode) == ("", "", 124)


@pytest.mark.night
def test_an_exec_that_ran_out_of_time_says_that_its_command_still_runs(control: Control, tmuxctl: Command) -> None:
    control.new("box", ("bash", "--norc"))
    done = tmuxctl("exec", "box", "--timeout", "1", "--", "sleep", "60")
    assert done.returncode == 124
    assert "it still runs; stop it: tmuxctl keys box C-c" in done.stderr


@pytest.mark.night
def test_a_name_that_is_a_program_starts_a_shell_and_says_so(tmuxctl: Command, place: Path) -> None:
    told = "tmuxctl: env is only the name of this session; to run the program: tmuxctl new -- env\n"
    assert tmuxctl("new", "env").stderr == told
    assert tmuxctl("new", "env", "--dry-run", "--json").stderr == ""
    for words in (
        ("new", "web"),
        ("new", "sh"),
        ("new", "cat", "--", "cat"),
        ("new", "--", "cat"),
        ("new", "python3", "--profile", "python"),
    ):
        done = tmuxctl(*words)
        assert "is a name here" not in done.stderr
    assert tmuxctl("new", "-q", "sed").stderr == ""


@pytest.mark.night
def test_what_ended_at_once_points_to_its_output(tmuxctl: Command) -> None:
    done = tmuxctl("new", "bad", "--", "false")
    assert done.stdout.rstrip().endswith("its output: tmuxctl log bad")
    assert tmuxctl("log", "bad").returncode == 0
    for words in (("send", "bad", "x"), ("ask", "bad", "x"), ("wait", "bad"), ("new", "bad", "--", "cat")):
        assert "its output: tmuxctl log bad" in tmuxctl(*words).stderr


@pytest.mark.night
def test_a_run_whose_program_was_killed_says_the_signal(tmuxctl: Command) -> None:
    done = tmuxctl("run", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137
    assert done.stderr == "tmuxctl: the program was ended by signal KILL\n"


@pytest.mark.night
def test_a_kill_that_names_what_is_not_there_kills_nothing_and_says_so(control: Control, tmuxctl: Command) -> None:
    control.new("a", LINES)
    control.new("b", LINES)
    done = tmuxctl("kill", "a", "nope", "b")
    assert done.returncode == 3
    assert "nope" in done.stderr
    assert "nothing was killed" in done.stderr
    assert [one.name for one in control.ls().sessions] == ["a", "b"]
    assert "nothing was killed" not in tmuxctl("kill", "nope").stderr


def test_a_file_that_is_no_program_is_not_told_as_missing(tmuxctl: Command, place: Path) -> None:
    script = place / "my script"
    script.write_text("#!/bin/sh\n")
    for words, said, hint in (
        (("new", "x", "--", "/etc/passwd"), "'/etc/passwd' is not executable", "chmod +x /etc/passwd"),
        (("new", "x", "--", "./my script"), "'./my script' is not executable", "chmod +x './my script'"),
        (("new", "x", "--", "/tmp"), "'/tmp' is a folder", "name the program in it"),
        (("new", "x", "--", "./nope"), "'./nope' was not found", "in PATH?"),
    ):
        done = tmuxctl(*words)
        assert done.returncode == 1
        assert said in done.stderr
        assert hint in done.stderr
    assert tmuxctl("run", "--", "./my script").returncode == 127


def test_a_tmux_server_that_does_not_run_is_named(tmuxctl: Command) -> None:
    done = tmuxctl("adopt", "tmux@nosock:x")
    assert done.returncode == 7
    assert "no tmux server nosock is running" in done.stderr
    assert "tmuxctl ls --all-sockets; a target is tmux@nosock:SESSION:WINDOW.PANE" in done.stderr


def test_a_profile_with_a_typo_is_told_by_its_test_as_by_new(tmuxctl: Command, place: Path) -> None:
    path = place / ".config/tmuxctl/profiles/mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("schema: tmuxctl/profile@1\npromt: x\ntests:\n  - {screen_file: gone.txt, state: idle}\n")
    done = tmuxctl("profile", "test", "mine")
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first == f"mine: '{path}' line 2: the profile: no key 'promt'; did you mean 'prompt'?"
    assert last == "0 passed, 1 failed"
    path.write_text(path.read_text().replace("promt: x\n", ""))
    first, last = tmuxctl("profile", "test", "mine").stdout.splitlines()
    assert first == f"mine: '{path.parent / 'gone.txt'}': No such file or directory"


def test_a_picture_without_its_file_says_that_it_may_be_printed(control: Control, tmuxctl: Command) -> None:
    control.new("t", LINES)
    done = tmuxctl("screen", "t", "--html")
    assert done.returncode == 2
    assert "tmuxctl screen NAME --html FILE, or - for standard output" in done.stderr
    assert tmuxctl("screen", "t", "--html", "-").stdout.startswith("<!DOCTYPE html>")


def test_evidence_that_there_is_not_is_left_out() -> None:
    lost = Session(name="x", id="1", status=Status(State.LOST, confidence=Confidence.SURE))
    assert not [line for line in table.facts(lost, output.Options()) if line.startswith("by:")]
