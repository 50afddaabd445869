"""Sessions on a machine without /proc, where `ps` tells of programs."""

from __future__ import annotations

import pytest
from control.conftest import Held
from programs import SHELL

from tmuxctl.control import Control
from tmuxctl.model import Confidence, State
from tmuxctl.transport.local import LocalTransport

pytestmark = pytest.mark.on("tmux")


@pytest.fixture(autouse=True)
def without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalTransport, "proc_file", "/nowhere")


@pytest.mark.night
def test_a_shell_is_idle_and_its_command_is_busy_until_it_ends(control: Control, held: Held) -> None:
    control.new("s", SHELL, shell_marks=False, profile="none")
    assert control.wait("s").matched == "idle"
    (kernel,) = [one for one in control.explain("s").reasons if one.source == "kernel"]
    assert kernel.seen.endswith("in the foreground (ps)")
    control.send("s", held.words.encode())
    assert control.wait("s", text="never", timeout=0.5).timed_out
    found = control.show("s")
    assert (found.state, found.confidence) != (State.IDLE, Confidence.SURE)
    assert found.state is State.BUSY
    held.go()
    assert control.wait("s").state is State.IDLE


def test_a_program_that_reads_a_line_is_idle(control: Control) -> None:
    control.new("p", ("python3", "-c", "input('Your name: '); input('Your town: ')"), profile="none", wait=False)
    assert control.wait("p", input=True).matched == "input"
    assert "Your name" in control.screen("p").text


def test_a_password_question_is_asking(control: Control) -> None:
    ask = "import getpass, time; getpass.getpass('Password: '); time.sleep(1000)"
    control.new("p", ("python3", "-c", ask), profile="none", wait=False)
    assert control.wait("p", input=True).kind == "password"
