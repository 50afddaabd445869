"""`run`: a program on a terminal of its own, from start to end in one call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import LINES, program

from tmuxctl.control import Control
from tmuxctl.errors import DecisionNeeded, Failed, Usage


def test_a_run_gives_output_and_status_and_leaves_nothing(control: Control) -> None:
    ran = control.run(("sh", "-c", "echo hello; exit 3"))
    assert (ran.output, ran.exit_status, ran.signal, ran.timed_out) == ("hello\n", 3, None, False)
    assert not control.ls().sessions
    assert control.prune().pruned == ()


@pytest.mark.on("memory", "tmux")
def test_a_signal_is_told(control: Control) -> None:
    ran = control.run(("sh", "-c", "kill -TERM $$"))
    assert (ran.exit_status, ran.signal) == (None, "TERM")


@pytest.mark.night
def test_a_run_that_takes_too_long_is_ended(control: Control) -> None:
    ran = control.run(("sh", "-c", "echo first; sleep 1000"), timeout=0.4)
    assert (ran.output, ran.exit_status, ran.timed_out) == ("first\n", None, True)
    assert not control.ls().sessions


@pytest.mark.on("memory", "tmux")
def test_output_beyond_the_limit_is_called_truncated(control: Control) -> None:
    ran = control.run(("sh", "-c", "echo 0123456789"), max_bytes=4)
    assert (ran.output, ran.truncated) == ("0123", True)


@pytest.mark.on("memory", "tmux")
def test_a_run_without_a_program_is_refused(control: Control) -> None:
    with pytest.raises(Usage):
        control.run(())
    with pytest.raises(Failed) as missing:
        control.run(("no-such-program-anywhere",))
    assert missing.value.reason == "command_not_found"
    assert not control.ls().sessions


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_run_has_the_folder_and_the_environment_it_was_given(control: Control, place: Path) -> None:
    (place / "sub dir").mkdir()
    ran = control.run(("sh", "-c", 'pwd; echo "$MINE"; stty size'), cwd="sub dir", env={"MINE": "it's"}, size="90x20")
    assert ran.output == f"{place}/sub dir\nit's\n20 90\n"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_many_quick_programs_end_with_their_own_status(control: Control) -> None:
    assert [control.run(("sh", "-c", f"exit {number}")).exit_status for number in range(6)] == list(range(6))


@pytest.mark.night
@pytest.mark.on("tmux")
def test_much_output_is_all_there(control: Control) -> None:
    ran = control.run(program("count", "20000")[:-1] + ("20000",), timeout=1.0)
    assert ran.output == "".join(f"line {number}\n" for number in range(1, 20001))


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_run_that_asks_is_ended(control: Control, place: Path) -> None:
    (place / "kept").write_text("")
    with pytest.raises(DecisionNeeded) as asking:
        control.run(("sh", "-c", "echo so far; rm -i kept"))
    assert asking.value.details["output"].startswith("so far\nrm: ")
    assert (place / "kept").exists()
    assert not control.ls().sessions


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_run_goes_on_when_somebody_answers(control: Control, another: Callable[[], Control]) -> None:
    control.new("other", LINES)
    driver = another()

    def answer() -> None:
        asked = next(event for event in driver.watch(()) if event.asking)
        driver.decide(asked.session, "yes")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    ran = control.run(("sh", "-c", "printf 'Go on? [y/N] '; read -r answer; echo got $answer"), name="job")
    thread.join(20)
    assert (ran.output.splitlines()[-1], ran.exit_status) == ("got y", 0)
