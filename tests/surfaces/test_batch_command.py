"""`tmuxctl batch` as a command: what it prints, what it ends with, and what is told when it is interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from programs import LINES

from tmuxctl.control import Control

pytestmark = pytest.mark.on("tmux")

WORDS = (sys.executable, "-m", "tmuxctl", "batch", "t")


def batch(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """`tmuxctl batch t`."""
    return subprocess.run((*WORDS, *words), capture_output=True, text=True, timeout=60, check=False, input=stdin)


@pytest.mark.night
def test_a_line_for_each_step_and_below_it_what_it_showed(control: Control) -> None:
    control.new("t", ("bash", "--norc"), env={"PS1": "$ "})
    steps = [
        {"exec": "printf 'one\\e[1m\\ntwo'"},
        {"ask": "echo three"},
        {"exec": "exit_7() { return 7; }; exit_7"},
        {"screen": {}},
    ]
    done = batch(json.dumps(steps))
    assert done.stdout.split("\n") == [
        "1 exec: exit status 0", "one", "two", "2 ask: done", "three", "3 exec: exit status 7", "4 screen: not run", ""
    ]  # fmt: skip
    assert (done.returncode, done.stderr) == (7, "tmuxctl: step 3 failed; not run: 1 of 4 steps\n")
    assert batch("-q", json.dumps(steps)).stdout == "one\ntwo\nthree\n"
    every = batch("--keep-going", "--json", "-", stdin="\n".join(map(json.dumps, steps)))
    told = json.loads(every.stdout)
    assert (every.returncode, every.stderr, told["exit"], told["failed"]) == (7, "", 7, 3)
    assert [one["outcome"] for one in told["steps"]] == ["done", "done", "failed", "done"]
    assert told["steps"][0]["result"]["output"] == "one\x1b[1m\ntwo"


@pytest.mark.night
def test_what_failed_is_told_with_what_would_work(control: Control) -> None:
    control.new("t", LINES)
    done = batch('[{"send": "a"}, {"wait": {"text": "never", "timeout": "0.3s"}}]')
    assert done.stdout.startswith("1 send: done\n2 wait: timed out after 0.3 s; text 'never' was not seen")
    assert done.returncode == 124
    none = batch('[{"decide": "yes"}]')
    assert (none.returncode, none.stdout) == (
        4,
        "1 decide: failed: t asks no question: it is idle (line, blocked in read)\n",
    )
    assert none.stderr.startswith("tmuxctl: step 1: ")
    wrong = batch('[{"send": "b"}, {"wait": {"txet": "b"}}]')
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "tmuxctl: step 2: wait does not take 'txet'\n  did you mean text?\n"
    assert "b" not in control.screen("t").text


@pytest.mark.night
def test_a_command_that_runs_on_and_output_that_was_cut_are_told(control: Control) -> None:
    control.new("t", ("bash", "--norc"))
    steps = [{"exec": {"command": "seq 1000", "max_bytes": 10}}, {"exec": {"command": "sleep 60", "timeout": "1s"}}]
    done = batch(json.dumps(steps))
    assert (done.returncode, done.stdout.splitlines()[0]) == (124, "1 exec: exit status 0")
    assert done.stdout.splitlines()[-1] == "2 exec: failed: timed out"
    assert "the rest was left out" in done.stderr
    assert "it still runs; stop it: tmuxctl keys t C-c" in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("as_json", [False, True], ids=("text", "json"))
def test_a_signal_ends_the_batch_not_the_program(
    control: Control, until: Callable[[Callable[[], Any]], Any], number: int, status: int, as_json: bool
) -> None:
    control.new("t", LINES)
    steps = '[{"send": "begun"}, {"wait": {"text": "never"}}, {"send": "later"}]'
    words = (*WORDS, *(["--json"] if as_json else []), steps)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        until(lambda: "begun\nbegun" in control.screen("t").text)
        # it waits; an instant earlier the first step is what is interrupted
        running.send_signal(number)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, "Traceback" in err) == (status, False)
    if as_json:
        told = json.loads(out)
        assert (told["ok"], told["exit"]) == (False, status)
        outcomes = [one["outcome"] for one in told["steps"]]
    else:
        outcomes = [line.partition(": ")[2].replace(" ", "_") for line in out.splitlines()]
    assert outcomes in (["done", "interrupted", "not_run"], ["interrupted", "not_run", "not_run"])
    assert "later" not in control.screen("t").text
    # and another may begin
    assert batch('[{"send": "on"}, {"wait": {"text": "on"}}]').returncode == 0
