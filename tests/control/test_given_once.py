"""`ask` with an id: a turn whose caller was killed is not given again; who asks with the id gets its answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from control.agent import Agent

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Usage
from tmuxctl.model import State

pytestmark = pytest.mark.on("tmux", "pipe")

ID = "turn0001"

ASKER = (
    "import sys; from tmuxctl.control import Control; Control().ask(sys.argv[1], sys.argv[2].encode(), id=sys.argv[3])"
)


def ask_and_die(session: str, text: str, seen: Path) -> None:
    """Ask in a process of its own, and kill it as soon as the program has made this file."""
    asker = subprocess.Popen([sys.executable, "-c", ASKER, session, text, ID])
    while not seen.exists() and asker.poll() is None:
        time.sleep(0.01)
    asker.send_signal(signal.SIGKILL)
    asker.wait()


@pytest.mark.night
def test_a_command_whose_asker_was_killed_runs_once_and_its_answer_comes(control: Control, tmp_path: Path):
    control.new("sh", ("bash",))
    count, go = tmp_path / "count", tmp_path / "go"
    command = f"echo x >>{count}; until test -e {go}; do sleep 0.05; done; echo the answer"
    ask_and_die("sh", command, count)
    threading.Timer(0.5, go.touch).start()
    answer = control.ask("sh", command.encode(), id=ID, timeout=40, queue=True)
    assert (answer.answer, answer.state, answer.exit_status) == ("the answer", State.IDLE, 0)
    # once more, after its end
    answer = control.ask("sh", command.encode(), id=ID, timeout=40, queue=True)
    assert answer.answer == "the answer"
    assert count.read_text() == "x\n"


def test_lines_that_were_not_typed_yet_are_typed(control: Control, tmp_path: Path):
    control.new("sh", ("bash",))
    count, go = tmp_path / "count", tmp_path / "go"
    text = f"echo x >>{count}; until test -e {go}; do sleep 0.05; done; echo one\necho y >>{count}; echo two"
    ask_and_die("sh", text, count)
    go.touch()
    answer = control.ask("sh", text.encode(), id=ID, timeout=40, queue=True)
    assert "one" in answer.answer.splitlines()
    assert answer.answer.splitlines()[-1] == "two"
    assert count.read_text() == "x\ny\n"


def test_a_new_id_is_a_new_turn(control: Control, tmp_path: Path):
    control.new("sh", ("bash",))
    count = tmp_path / "count"
    for number in (1, 2, 3):
        assert control.ask("sh", f"echo x >>{count}; echo {number}".encode(), id=f"turn000{number}").answer == str(
            number
        )
    assert count.read_text() == "x\n" * 3


@pytest.mark.night
def test_what_others_typed_since_does_not_have_it_typed_again(control: Control, tmp_path: Path):
    control.new("sh", ("bash",))
    count = tmp_path / "count"
    command = f"echo x >>{count}; echo first".encode()
    control.ask("sh", command, id=ID)
    for number in range(30):
        control.ask("sh", f"echo {number}".encode())
    control.ask("sh", command, id=ID)
    assert count.read_text() == "x\n"


def test_an_id_is_letters_and_digits(control: Control):
    control.new("sh", ("bash",))
    with pytest.raises(Usage, match="an id is 8 to 64"):
        control.ask("sh", b":", id="#{pane_id}")


@pytest.mark.on("tmux")
def test_an_agent_whose_asker_was_killed_is_told_once(control: Control, tmp_path: Path):
    agent = Agent(control, Path(os.environ["HOME"])).start()
    asker = subprocess.Popen([sys.executable, "-c", ASKER, "a", "work", ID])
    while not agent.submitted and asker.poll() is None:
        time.sleep(0.01)
    asker.send_signal(signal.SIGKILL)
    asker.wait()
    answer = agent.ask("work", id=ID, queue=True)
    assert answer.state is State.IDLE
    assert answer.answer
    assert agent.submitted == ["work"]


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_text_that_was_pasted_and_not_sent_is_sent_once(control: Control, tmp_path: Path):
    """Killed between the paste and Enter."""
    agent = Agent(control, Path(os.environ["HOME"])).start()
    control.send("a", b"work", enter=False, paste=True)
    answer = agent.ask("work", id=ID, queue=True)
    assert answer.state is State.IDLE
    assert agent.submitted == ["work"]


@pytest.mark.night
def test_two_askers_with_one_id_are_one_after_the_other(control: Control):
    control.new("sh", ("bash",))
    first = threading.Thread(target=control.ask, args=("sh", b"sleep 2; echo x"), kwargs={"id": ID})
    first.start()
    try:
        control.wait("sh", text="sleep 2", since="screen")
        with pytest.raises(Conflict):
            control.ask("sh", b"sleep 2; echo x", id=ID)
    finally:
        first.join()
