"""Programs that end: how they ended is told truly, and what they left stays readable."""

from __future__ import annotations

import pytest
from programs import LINES, SHELL, program

from tmuxctl.control import Control
from tmuxctl.errors import Exited, Usage


@pytest.mark.parametrize("status", [0, 1, 3, 127, 255])
@pytest.mark.on("memory", "tmux")
def test_an_exit_status_is_kept(control: Control, status: int) -> None:
    control.new("t", ("sh", "-c", f"exit {status}"))
    ended = control.wait("t", exit=True)
    assert (ended.matched, ended.exit_status, ended.signal, ended.state) == ("exit", status, None, "exited")
    shown = control.show("t")
    assert (shown.state.value, shown.exit_status, shown.signal, shown.by) == ("exited", status, None, "exit")
    assert [one.name for one in control.ls(state="exited").sessions] == ["t"]
    assert not control.ls(state="unknown").sessions


@pytest.mark.parametrize("name", ["TERM", "KILL", "HUP", "INT"])
@pytest.mark.on("memory", "tmux")
def test_a_signal_is_told_by_its_name(control: Control, name: str) -> None:
    control.new("t", ("sh", "-c", f"kill -{name} $$"))
    ended = control.wait("t", exit=True)
    assert (ended.exit_status, ended.signal) == (None, name)


@pytest.mark.night
@pytest.mark.on("pipe", "resident")
def test_an_end_is_seen_the_same_way_elsewhere(control: Control) -> None:
    for text, status, signal in (("exit 7", 7, None), ("kill -TERM $$", None, "TERM"), ("echo bye; exit 0", 0, None)):
        control.new("t", ("sh", "-c", text), if_exists="replace")
        ended = control.wait("t", exit=True)
        assert (ended.exit_status, ended.signal) == (status, signal)


CLOSES_ITS_TERMINAL = """
import os, signal, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.closerange(0, 3)
until = time.monotonic() + 0.7
while time.monotonic() < until:
    pass
os._exit(7)
"""


@pytest.mark.night
@pytest.mark.parametrize("ask", ["show", "ls", "wait"])
@pytest.mark.on("tmux", "pipe", "resident")
def test_the_status_of_a_program_that_closes_its_terminal_before_it_ends(control: Control, ask: str) -> None:
    """It counts as ended with its terminal: who asks just then is told the status all the same."""
    control.new("t", ("python3", "-c", CLOSES_ITS_TERMINAL))
    if ask == "wait":
        assert control.wait("t", exit=True).exit_status == 7
        return
    look = {"show": lambda: control.show("t"), "ls": lambda: control.ls().sessions[0]}[ask]
    assert next(now for now in iter(look, None) if now.state.value == "exited").exit_status == 7


@pytest.mark.on("memory", "tmux")
def test_what_an_ended_program_printed_stays_readable(control: Control) -> None:
    control.new("t", ("sh", "-c", "echo some words; exit 4"))
    assert control.wait("t", exit=True).matched
    screen = control.screen("t")
    assert (screen.text, screen.state) == ("some words", "exited")
    assert control.read("t").text == "some words"
    assert control.log("t").text == "some words"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_that_ended_early_never_looks_like_success(control: Control) -> None:
    for number in range(12):
        control.new(f"t{number}", ("sh", "-c", f"exit {number + 1}"))
    assert [control.wait(f"t{number}", exit=True).exit_status for number in range(12)] == list(range(1, 13))


@pytest.mark.on("memory", "tmux")
def test_a_program_ends_at_the_end_of_its_input(control: Control) -> None:
    # not cat, which closes its terminal before it ends: if tmux sees that first, the kernel still hangs it up
    control.new("t", SHELL)
    control.send("t", b"echo last")
    assert control.wait("t", text="^last$").matched
    control.keys("t", ("C-d",))
    assert control.wait("t", exit=True).exit_status == 0


def test_an_interrupt_reaches_the_program(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"up")
    assert control.wait("t", text="^up$").matched
    control.keys("t", ("ctrl+c",))
    assert control.wait("t", exit=True).signal == "INT"


@pytest.mark.on("memory", "tmux")
def test_an_ended_sessions_size_cannot_change(control: Control) -> None:
    control.new("t", ("sh", "-c", "exit 0"))
    assert control.wait("t", exit=True).matched
    with pytest.raises((Usage, Exited)):
        control.resize("t", "50x20")


@pytest.mark.on("memory", "tmux")
def test_how_a_shell_ends_is_its_last_word(control: Control) -> None:
    control.new("t", SHELL)
    control.send("t", b"exit 9")
    assert control.wait("t", exit=True).exit_status == 9


@pytest.mark.on("memory", "tmux")
def test_the_rows_of_a_program_that_ended_are_all_there(control: Control) -> None:
    control.new("t", program("count", "10"), size="40x10")
    assert control.wait("t", text="line 10", since="screen").matched
    before = control.screen("t").text
    control.keys("t", ("C-d",))
    assert control.wait("t", exit=True).matched
    assert control.screen("t").text == before
