"""What a person sees of states, turns and questions: the command itself, on real tmux."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from programs import program

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tmuxctl(place: Path) -> Iterator[Command]:
    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tmuxctl", *words], capture_output=True, text=True, input=stdin, timeout=60
        )

    yield run
    run("kill", "--all")
    subprocess.run(["tmux", "-L", "t", "kill-server"], capture_output=True)


def test_new_says_what_state_the_program_is_in(tmuxctl: Command) -> None:
    assert tmuxctl("new", "s", "--", "sh").stdout.split()[:2] == ["s", "idle"]
    assert tmuxctl("new", "e", "--", "sh", "-c", "exit 3").stdout.split()[:3] == ["e", "exited", "3"]
    assert tmuxctl("ls").stdout.splitlines()[2].split()[:2] == ["s", "idle"]


def test_ask_prints_the_answer_alone(tmuxctl: Command) -> None:
    tmuxctl("new", "s", "--", "sh")
    done = tmuxctl("ask", "s", "echo one; echo two")
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\n", "")
    assert tmuxctl("ask", "s", "-", stdin="echo piped\n").stdout == "piped\n"
    found = json.loads(tmuxctl("ask", "s", "true", "--json").stdout)
    assert (found["answer"], found["state"], found["turn"]) == ("", "idle", 3)


def test_a_question_has_an_exit_status_of_its_own(tmuxctl: Command) -> None:
    tmuxctl("new", "s", "--", "sh")
    done = tmuxctl("ask", "s", "printf 'Remove it? [y/N] '; read answer; echo got $answer")
    assert done.returncode == 6
    assert "tmuxctl decide s" in done.stderr
    done = tmuxctl("wait", "s")
    assert done.returncode == 6
    assert "s is asking (confirm): Remove it? [y/N]" in done.stderr
    assert json.loads(tmuxctl("wait", "s", "--json").stderr)["error"]["code"] == "asking"
    shown = tmuxctl("decide", "s")
    assert shown.returncode == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == ["yes", "no"]
    assert tmuxctl("decide", "s", "perhaps").returncode == 2
    assert tmuxctl("decide", "s", "yes").returncode == 0
    assert tmuxctl("wait", "s").returncode == 0
    assert "got y" in tmuxctl("read", "s").stdout
    assert tmuxctl("decide", "s", "yes").returncode == 4


@pytest.mark.night
def test_a_turn_that_takes_too_long_still_prints_what_came(tmuxctl: Command) -> None:
    tmuxctl("new", "s", "--", "sh")
    # long enough for a loaded machine to see that the shell is ready, without which a turn is refused
    done = tmuxctl("ask", "s", "echo first; sleep 60", "--timeout", "5")
    assert done.returncode == 124
    assert "first" in done.stdout
    done = tmuxctl("ask", "s", "echo next")
    assert done.returncode == 4
    assert "--interrupt" in done.stderr
    assert tmuxctl("ask", "s", "echo next", "--interrupt").stdout == "next\n"


@pytest.mark.night
def test_waiting_for_several_names_the_one(tmuxctl: Command) -> None:
    tmuxctl("new", "a", "--", "sh")
    tmuxctl("new", "b", "--", "sh", "-c", "sleep 60")
    done = tmuxctl("wait", "--any", "a,b")
    assert done.stdout.startswith("a: idle")
    assert tmuxctl("wait", "--all", "a,b", "--timeout", "1").returncode == 124
    assert tmuxctl("wait", "b", "--now").returncode == 1


def test_watch_prints_a_line_for_each_change_and_runs_commands(tmuxctl: Command, place: Path) -> None:
    tmuxctl("new", "s", "--", *program("secret"))
    told = place / "told"
    watching = subprocess.Popen(
        [sys.executable, "-m", "tmuxctl", "watch", "s", "--json", "--on-asking", f'echo "$TMUXCTL_EVENT" >{told}'],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout
    first = json.loads(watching.stdout.readline())
    assert (first["session"], first["state"], first["kind"]) == ("s", "asking", "password")
    assert json.loads(told.read_text()) == first
    tmuxctl("keys", "s", "C-c")
    last = [json.loads(line) for line in watching.stdout][-1]
    assert last["state"] == "exited"
    assert watching.wait(20) == 0


def test_explain_says_why(tmuxctl: Command, place: Path) -> None:
    tmuxctl("new", "s", "--", "sh")
    done = tmuxctl("explain", "s")
    assert done.stdout.startswith("idle")
    assert "kernel" in done.stdout
    (place / "why.json").write_text(tmuxctl("explain", "s", "--evidence", "--json").stdout)
    assert tmuxctl("explain", "--file", "why.json").stdout.startswith("idle")
    (place / "screen").write_text("Continue? [Y/n] ")
    assert tmuxctl("explain", "--file", "screen").stdout.startswith("asking  (confirm")


@pytest.mark.night
def test_the_spellings_of_niia_work(tmuxctl: Command) -> None:
    tmuxctl("new", "s", "--", "sh")
    assert tmuxctl("write", "--session", "s", "echo hello\r").returncode == 0
    assert tmuxctl("wait-idle", "--session", "s").returncode == 0
    assert tmuxctl("get-answer", "--session", "s", "echo hello").stdout == "hello\n"
    assert tmuxctl("get-answer", "--session", "s", "nosuch").returncode == 3
