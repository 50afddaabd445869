"""A tmux server that is stopped (SIGSTOP) hangs whoever asks it: every command says so in its time, and all works after."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults.command import PATIENCE, Command, sleeps

from tmuxctl.control import Control

pytestmark = pytest.mark.on("tmux")

VERBS = (
    "ls",
    "show c",
    "screen c",
    "send c no",
    "keys c n o",
    "wait c",
    "wait c --text never",
    "wait --any c,sh",
    "ask sh no",
    "exec sh -- echo no",
    "decide c",
    "new n -- cat",
    "run -- cat",
    "kill c",
    "kill --all",
    "read c",
    "log c",
    "rename c d",
    "resize c 90x20",
    "tag c no",
    "restore",
    "prune",
)


@pytest.fixture
def stopped(control: Control) -> Iterator[Callable[[], None]]:
    """Lets a stopped server go on."""
    control.new("c", ("cat",))
    control.new("sh", ("sh",))
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    os.kill(pid, signal.SIGSTOP)
    yield lambda: os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.night
def test_every_command_ends_in_its_time_and_nothing_was_done(
    control: Control, stopped: Callable[[], None], until: Callable[..., Any]
) -> None:
    tmuxctl = Command()
    # all at once: each waits for the same server
    asked = {verb: tmuxctl.start(*verb.split()) for verb in VERBS}
    said = {}
    for verb, process in asked.items():
        _, errors = process.communicate(timeout=PATIENCE)
        said[verb] = "backend_timeout" if '"reason":"backend_timeout"' in errors else errors
    assert said == dict.fromkeys(VERBS, "backend_timeout")
    stopped()
    assert tmuxctl.states() == {"c": "idle", "sh": "idle"}
    assert "no" not in control.screen("c").text + control.screen("sh").text
    assert control.ask("sh", b"echo $((40+2))").answer == "42"
    assert control.new("n", ("cat",)).name == "n"
    control.kill(all=True)
    assert tmuxctl.states() == {}


@pytest.mark.night
def test_doctor_says_what_is_wrong_and_what_is_not(stopped: Callable[[], None]) -> None:
    said = Command()("doctor")
    checks = {one["name"]: one for one in said.said["checks"]}
    assert (said.status, checks["server"]["ok"]) == (1, False)
    # it is asked once, not by each check anew
    assert [name for name, one in checks.items() if "did not answer within" in one["found"]] == ["server"]
    assert (checks["tmux"]["ok"] is not False, checks["state folder"]["ok"]) == (True, True)


@pytest.mark.night
def test_a_wait_that_runs_when_the_server_stops_ends_in_its_time(
    control: Control, stopped: Callable[[], None], until: Any
) -> None:
    stopped()
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    waiting = Command().start("wait", "c", "--text", "never", "--timeout", "3s")
    until(lambda: sleeps(waiting))
    os.kill(pid, signal.SIGSTOP)
    _, errors = waiting.communicate(timeout=PATIENCE)
    assert waiting.returncode in (7, 124), errors
    os.kill(pid, signal.SIGCONT)
    assert control.wait("c", idle=True).matched
