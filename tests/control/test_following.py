"""Type, wait and look in one call: the same as three calls, but for a writer who comes between them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control.conftest import Held
from control.person import Person
from programs import LINES, SHELL

from tmuxctl.control import Control
from tmuxctl.errors import Exited, Usage

EVERYWHERE = pytest.mark.on("memory", "tmux", "pipe", "resident")


@EVERYWHERE
def test_one_call_types_waits_for_the_text_and_takes_the_screen(control: Control) -> None:
    control.new("t", SHELL)
    written = control.send("t", b"echo m''ark", wait_text="^m(a)rk$", screen=True, timeout=10)
    assert (written.result, written.bytes) == ("done", 11)
    assert written.wait
    assert written.screen
    assert (written.wait.matched, written.wait.text, written.wait.groups) == ("text", "mark", ("a",))
    assert "mark" in written.screen.text.split("\n")
    assert (written.screen.state, written.screen.by) == (None, None)
    assert (written.screen.cols, written.screen.rows) == (120, 40)


@EVERYWHERE
def test_nothing_is_waited_for_or_captured_that_was_not_asked_for(control: Control) -> None:
    control.new("t", LINES)
    plain = control.send("t", b"a")
    assert (plain.wait, plain.screen) == (None, None)
    waited = control.send("t", b"b", wait_text="b")
    assert (waited.wait and waited.wait.matched, waited.screen) == ("text", None)
    looked = control.send("t", b"", screen=True)
    assert (looked.wait, looked.screen and "b" in looked.screen.text) == (None, True)


@pytest.mark.night
@pytest.mark.on("memory", "tmux", "resident")
def test_neither_the_echo_nor_earlier_output_answers(control: Control, held: Held) -> None:
    control.new("t", SHELL)
    control.send("t", b"echo M''ARK", wait_text="^MARK$")
    late = control.send("t", f"{held.words}; echo MARK".encode(), wait_text="MARK", screen=True, timeout=0.3)
    assert late.wait
    assert late.screen
    assert (late.result, late.wait.matched, late.wait.timed_out) == ("done", None, True)
    assert "MARK" in late.screen.text
    held.go()
    assert control.wait("t", text="MARK").matched == "text"


@pytest.mark.night
@pytest.mark.parametrize("argv", [("bash", "--norc"), ("bash",), ("zsh", "-f")], ids=("unmarked", "marked", "zsh"))
@pytest.mark.on("tmux", "resident")
def test_the_echo_of_a_line_editor_does_not_answer(
    control: Control, argv: tuple[str, ...], needs: Callable[..., None]
) -> None:
    needs(argv[0])
    control.new("t", argv)
    for number in range(5):
        text = f"sleep 0.05; echo MARK{number}"
        found = control.send("t", text.encode(), wait_text=f"^MARK{number}$", timeout=10).wait
        assert found
        assert found.matched == "text"
    late = control.send("t", b"sleep 30; echo MARK", wait_text="MARK", timeout=0.3).wait
    assert late
    assert late.timed_out, "it matched the echo"


@pytest.mark.on("memory", "tmux", "resident")
def test_a_bad_pattern_and_a_time_for_nothing_are_refused_before_anything_is_typed(control: Control) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage, match="valid pattern"):
        control.send("t", b"words", wait_text="(")
    with pytest.raises(Usage, match="nothing to wait for"):
        control.send("t", b"words", timeout=3)
    with pytest.raises(Usage, match="valid pattern"):
        control.keys("t", ("w", "Enter"), wait_text="(")
    control.send("t", b"last", wait_text="last")
    assert "w" not in control.screen("t").text


@pytest.mark.on("tmux", "resident")
def test_keys_are_followed_too(control: Control) -> None:
    control.new("t", ("bash", "--norc"))
    control.send("t", b"echo o''ne", wait_text="^one$")
    again = control.keys("t", ("Up", "Enter"), wait_text="^one$", screen=True)
    assert again.wait
    assert again.screen
    assert again.wait.matched == "text"
    assert again.screen.text.split("\n").count("one") == 2
    # what comes behind Escape is a write of its own
    parts = control.keys("t", ("x", "Escape", "b", "C-k", "C-u", "Up", "Enter"), wait_text="^one$")
    assert parts.wait
    assert parts.wait.matched == "text"


@pytest.mark.on("tmux", "resident")
def test_a_program_that_ends_instead_is_told_with_the_write(control: Control) -> None:
    control.new("t", SHELL)
    with pytest.raises(Exited) as ended:
        control.send("t", b"exit 3", wait_text="never")
    assert ended.value.details["exit_status"] == 3
    assert (ended.value.details["written"]["result"], ended.value.details["written"]["bytes"]) == ("done", 6)
    control.new("u", SHELL)
    last = control.send("u", b"echo by''e; exit 3", wait_text="^bye$", screen=True)
    assert last.wait
    assert last.screen
    assert (last.wait.matched, "bye" in last.screen.text) == ("text", True)


@pytest.mark.on("memory", "tmux", "resident")
def test_a_write_that_is_repeated_with_its_id_waits_for_what_it_did(control: Control) -> None:
    control.new("t", LINES)
    first = control.send("t", b"words", id="0123456789abcdef", wait_text="words")
    again = control.send("t", b"words", id="0123456789abcdef", wait_text="words", screen=True)
    assert (first.result, again.result) == ("done", "dup")
    assert again.wait
    assert again.screen
    assert (again.wait.matched, again.screen.text.count("words")) == ("text", 2)


@pytest.mark.on("tmux", "resident")
def test_a_resident_process_sees_that_the_session_is_another_size_now_and_another_session(control: Control) -> None:
    control.new("t", SHELL, size="80x24")
    assert control.send("t", b"echo o''ne", wait_text="^one$").wait
    control.machine.transport.run([("resize-window", "-t", "=t:", "-x", "50", "-y", "10")])
    wide = control.send("t", b"printf '%060d\\n' 7", wait_text=r"^0{59}7$", screen=True, timeout=10)
    assert wide.wait
    assert wide.screen
    assert (wide.wait.matched, wide.screen.cols, wide.screen.rows) == ("text", 50, 10)
    control.kill(("t",))
    control.new("t", LINES, size="70x20")
    other = control.send("t", b"two", wait_text="^two$", screen=True, timeout=10)
    assert other.wait
    assert other.screen
    assert (other.wait.matched, other.screen.cols) == ("text", 70)


@pytest.mark.night
@pytest.mark.on("tmux", "resident")
def test_a_journal_whose_writer_died_is_started_again(
    control: Control, until: Callable[[Callable[[], Any]], Any]
) -> None:
    control.new("t", LINES)
    assert control.send("t", b"one", wait_text="one").wait
    control.machine.transport.run([("pipe-pane", "-t", "=t:")])
    until(lambda: list(Path().glob("state/tmuxctl/*/sessions/*/journal/end")))
    control.send("t", b"two", wait_text="^two$", timeout=0.5)
    third = control.send("t", b"three", wait_text="^three$", timeout=10)
    assert third.wait
    assert third.wait.matched == "text"


@pytest.mark.on("tmux")
def test_a_pane_of_another_tmux_is_driven_in_one_call_too(control: Control, person: Person) -> None:
    shell = person.target("work:1.0")
    found = control.send(shell, b"echo m''ark", wait_text="^mark$", screen=True, timeout=10)
    assert found.wait
    assert found.screen
    assert (found.wait.matched, "mark" in found.screen.text) == ("text", True)


@EVERYWHERE
def test_a_screen_without_the_state(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"words", wait_text="words")
    bare, judged = control.screen("t", state=False), control.screen("t")
    assert (bare.state, bare.by) == (None, None)
    assert judged.state is not None
    assert (bare.text, bare.cursor, bare.position) == (judged.text, judged.cursor, judged.position)


@pytest.mark.night
@pytest.mark.on("tmux", "resident")
def test_output_that_comes_just_as_the_wait_begins_is_seen(control: Control) -> None:
    """Nothing else comes afterwards that would wake it."""
    code = "import sys, time\nfor line in sys.stdin: time.sleep(float(line)); print('it was', line.strip(), flush=True)"
    control.new("t", (sys.executable, "-c", code))
    for number in range(150):
        pause = f"{number % 50 / 10_000:.4f}{number:03d}"
        written = control.send("t", pause.encode(), wait_text=f"^it was {pause}$", timeout=20)
        assert written.wait
        assert written.wait.matched == "text", pause
