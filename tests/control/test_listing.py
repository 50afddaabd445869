"""A process that stays lists its sessions again without looking at those that are as they were; whatever happens to one, it
tells at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, PYTHON

from tmuxctl.control import Control
from tmuxctl.model import Session, State
from tmuxctl.timing import TIMING
from tmuxctl.value import changed

pytestmark = [
    pytest.mark.on("resident"),
    pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the kernel does not tell when a thread ran"),
]

OBSERVATION = changed(TIMING.observation, window_seconds=0.5, stands_seconds=3600.0)
TIMINGS = {"timing": changed(TIMING, observation=OBSERVATION)}
"""What is told again is never judged anew because of its age."""


@pytest.fixture
def lister(control: Control, another: Callable[..., Control]) -> Control:
    """Another process, which lists what `control` does."""
    return another(**TIMINGS)


@pytest.fixture
def hold(place: Path) -> Path:
    """A pipe: what opens it sleeps until somebody writes to it, and nobody sees that."""
    os.mkfifo(place / "hold")
    return place / "hold"


def listed(lister: Control, name: str = "s") -> Session:
    return next(one for one in lister.ls().sessions if one.name == name)


def stand(lister: Control, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """List until no session is looked at any more."""
    looked: list[int] = []
    probe = lister.machine.transport.probe

    def count(panes: Any, **given: Any) -> Any:
        looked.extend(pid for pid, _ in panes)
        return probe(panes, **given)

    def is_standing() -> bool:
        looked.clear()
        lister.ls()
        return not looked

    with monkeypatch.context() as patch:
        patch.setattr(lister.machine.transport, "probe", count)
        until(is_standing)


def python(code: str, *arguments: object) -> tuple[str, ...]:
    return (PYTHON, "-ISc", code, *map(str, arguments))


def test_a_session_that_rests_is_told_again_without_a_look(
    control: Control, lister: Control, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    control.new("s", LINES)
    stand(lister, until, monkeypatch)
    assert lister.ls() == control.ls()
    assert listed(lister).state is State.IDLE


def test_a_program_that_silently_begins_to_wait_is_told_at_once(
    control: Control, lister: Control, hold: Path, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    control.new("s", python("import sys; open(sys.argv[1]).read(); sys.stdin.readline()", hold), wait=False)
    stand(lister, until, monkeypatch)
    assert listed(lister).state is State.BUSY
    hold.write_text("")
    until(lambda: listed(lister).state is State.IDLE)


def test_a_thread_that_silently_begins_to_wait_is_told_at_once(
    control: Control, lister: Control, hold: Path, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import sys, threading\n"
        "def read():\n    open(sys.argv[1]).read()\n    sys.stdin.readline()\n"
        "thread = threading.Thread(target=read)\nthread.start()\nthread.join()\n"
    )
    control.new("s", python(code, hold), wait=False)
    stand(lister, until, monkeypatch)
    assert listed(lister).state is State.BUSY
    hold.write_text("")
    until(lambda: listed(lister).state is State.IDLE)


def test_a_child_that_silently_begins_to_wait_is_told_at_once(
    control: Control, lister: Control, hold: Path, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = "import sys; open(sys.argv[1]).read(); sys.stdin.readline()"
    code = "import subprocess, sys; subprocess.run([sys.executable, '-ISc', *sys.argv[1:]])"
    control.new("s", python(code, child, hold), wait=False)
    stand(lister, until, monkeypatch)
    assert listed(lister).state is State.BUSY
    hold.write_text("")
    until(lambda: listed(lister).state is State.IDLE)


def test_a_program_that_silently_goes_to_work_is_told_at_once(
    control: Control, lister: Control, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import signal, sys; signal.signal(10, lambda *_: signal.pause()); sys.stdin.readline()"
    made = control.new("s", python(code))
    assert made.pid
    stand(lister, until, monkeypatch)
    assert listed(lister).state is State.IDLE
    os.kill(made.pid, signal.SIGUSR1)
    until(lambda: listed(lister).state is State.BUSY)


def test_a_program_that_ends_is_told_at_once(
    control: Control, lister: Control, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = control.new("s", LINES)
    assert made.pid
    stand(lister, until, monkeypatch)
    os.kill(made.pid, signal.SIGKILL)
    found = until(lambda: (one := listed(lister)).state is State.EXITED and one)
    assert found.signal == "KILL"


def test_what_is_printed_is_told_at_once(
    control: Control, lister: Control, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    control.new("s", LINES)
    stand(lister, until, monkeypatch)
    before = listed(lister).cursor
    control.send("s", b"a line")
    assert control.wait("s", text="^a line$").matched
    assert listed(lister).cursor == control.show("s").cursor != before


def test_output_that_leaves_the_cursor_where_it_was_is_told_at_once(
    control: Control, lister: Control, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = control.new("s", LINES)
    stand(lister, until, monkeypatch)
    before = listed(lister).cursor
    folder = Path(control.machine.transport.home) / "sessions" / made.id / "journal"
    newest = max(folder.glob("seg.*"))
    # as the writer does, without the program, the terminal or tmux
    with newest.open("ab") as file:
        file.write(b"\a")
    assert listed(lister).cursor != before


def test_a_terminal_that_hides_input_is_told_at_once(
    control: Control,
    lister: Control,
    needs: Callable[..., None],
    until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs("stty")
    control.new("s", LINES)
    stand(lister, until, monkeypatch)
    assert listed(lister).state is State.IDLE
    tty = control.machine.transport.run([("display-message", "-p", "-t", "=s:", "#{pane_tty}")]).decode().strip()
    subprocess.run(["stty", "-F", tty, "-echo"], check=True)
    until(lambda: listed(lister).state is State.ASKING)


@pytest.mark.night
def test_what_tmux_knows_of_a_session_is_told_at_once(
    control: Control, lister: Control, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    control.new("s", LINES, size="80x24")
    stand(lister, until, monkeypatch)
    control.resize("s", "90x30")
    assert (listed(lister).cols, listed(lister).rows) == (90, 30)
    stand(lister, until, monkeypatch)
    control.tag("s", ("red",))
    assert listed(lister).tags == ("red",)
    stand(lister, until, monkeypatch)
    control.rename("s", "t")
    assert [one.name for one in lister.ls().sessions] == ["t"]
    stand(lister, until, monkeypatch)
    control.new("t", LINES, if_exists="replace")
    assert [one.id for one in lister.ls().sessions] == [control.show("t").id]


def test_a_session_whose_files_are_gone_is_told_at_once(
    control: Control, lister: Control, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = control.new("s", LINES)
    stand(lister, until, monkeypatch)
    shutil.rmtree(Path(control.machine.transport.home) / "sessions" / made.id)
    assert listed(lister).status.detail == "folder_gone"


@pytest.mark.night
def test_what_time_alone_changes_is_not_told_again(
    control: Control, another: Callable[..., Control], hold: Path, until: Callable[..., Any]
) -> None:
    lister = another(timing=changed(TIMING, observation=changed(TIMING.observation, stands_seconds=3600.0)))
    control.new("s", ("sh", "-c", f"echo printed; read line <{hold}"), wait=False)
    until(lambda: listed(lister).status.detail == "silent")


@pytest.mark.night
def test_a_session_is_looked_at_again_after_a_while(
    control: Control, another: Callable[..., Control], until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lister = another(timing=changed(TIMING, observation=changed(OBSERVATION, stands_seconds=0.3)))
    control.new("s", LINES)
    stand(lister, until, monkeypatch)
    # nothing of the session is asked again: this is seen by a look alone
    monkeypatch.setattr(lister.machine.transport, "probe", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        until(lambda: not lister.ls())
