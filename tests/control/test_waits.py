"""Waits: they end by what was asked for, by the program's end, or by the time given; never by an echo or by silence."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control.conftest import Held
from programs import LINES, SHELL, program

from tmuxctl.control import Control
from tmuxctl.control.sessions import finding
from tmuxctl.control.waiting import waits
from tmuxctl.errors import Exited, NotFound, Timeout, Unreachable, Usage


def in_background(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start something in a thread; the function returned waits for its result or error."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def result() -> Any:
        thread.join(20)
        assert outcome, "it did not end"
        return outcome[0]

    return result


@pytest.mark.night
@pytest.mark.parametrize(
    "argv", [SHELL, ("bash", "--norc"), ("zsh", "-f"), ("fish", "--no-config")], ids=lambda argv: argv[0]
)
@pytest.mark.on("tmux")
def test_the_echo_of_what_was_typed_is_no_answer_in_any_shell(
    control: Control, argv: tuple[str, ...], held: Held, needs: Callable[..., None], until: Any
) -> None:
    needs(argv[0])
    control.new("t", argv)
    control.send("t", f"{held.words}; echo MARK".encode())
    until(lambda: "MARK" in control.screen("t").text)
    assert control.wait("t", text="MARK", timeout=0.3).timed_out, "it matched the echo"
    held.go()
    assert control.wait("t", text="MARK").matched == "text"


@pytest.mark.night
def test_the_echo_of_what_was_typed_is_no_answer(control: Control, held: Held) -> None:
    control.new("t", SHELL)
    control.send("t", f"{held.words}; echo MARK".encode())
    found = control.wait("t", text="MARK", timeout=0.2)
    assert (found.matched, found.timed_out) == (None, True)
    held.go()
    found = control.wait("t", text="MARK")
    assert (found.matched, found.text, found.timed_out) == ("text", "MARK", False)


@pytest.mark.on("memory", "tmux")
def test_what_an_earlier_command_printed_does_not_answer_a_later_one(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"MARK")
    assert control.wait("t", text="MARK").matched
    control.send("t", b"other")
    assert control.wait("t", text="^other$").matched
    assert control.wait("t", text="MARK", timeout=0.2).timed_out


def test_what_holds_already_returns_at_once(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"MARK")
    assert control.wait("t", text="MARK").matched
    for _ in range(3):
        assert control.wait("t", text="MARK", timeout=0).matched == "text"
        assert control.wait("t", text="MARK", now=True).matched == "text"


@pytest.mark.on("memory", "tmux")
def test_if_nothing_was_sent_the_screen_counts(control: Control) -> None:
    control.new("t", program("count", "3"))
    assert control.wait("t", text="line 3").matched == "text"


@pytest.mark.on("memory", "tmux")
def test_the_whole_screen_counts_if_asked_for(control: Control) -> None:
    control.new("t", program("count", "3"))
    assert control.wait("t", text="line 3").matched
    control.send("t", b"later")
    assert control.wait("t", text="^later$").matched
    assert control.wait("t", text="line 2", timeout=0.1).timed_out
    assert control.wait("t", text="line 2", since="screen", timeout=0.1).matched == "text"


def test_only_output_after_a_cursor_counts(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"first")
    after = control.wait("t", text="^first$").cursor
    assert control.wait("t", text="first", since=after, timeout=0.2).timed_out
    control.send("t", b"second")
    assert control.wait("t", text="second", since=after).matched == "text"


@pytest.mark.night
def test_another_process_sees_what_was_sent(control: Control, another: Callable[[], Control], held: Held) -> None:
    control.new("t", SHELL)
    control.send("t", f"{held.words}; echo MARK".encode())
    assert another().wait("t", text="MARK", timeout=0.2).timed_out
    held.go()
    assert another().wait("t", text="MARK").matched == "text"


@pytest.mark.on("memory", "tmux")
def test_groups_of_a_pattern_come_with_the_match(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"key=value")
    found = control.wait("t", text=r"^(\w+)=(\w+)(!)?$")
    assert (found.text, found.groups) == ("key=value", ("key", "value", None))


@pytest.mark.night
@pytest.mark.on("memory", "tmux")
def test_silence_never_ends_a_wait_for_text(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"x")
    found = control.wait("t", text="never", timeout=0.4)
    assert (found.matched, found.timed_out) == (None, True)
    assert "x" in str(found.text)
    assert control.show("t").state.value == "idle"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_output_without_end_puts_off_no_end_of_a_wait(control: Control) -> None:
    control.new("t", SHELL)
    control.send("t", b"yes flood")
    assert control.wait("t", text="^flood$").matched
    found = control.wait("t", text="never", timeout=0.5)
    assert (found.matched, found.timed_out) == (None, True)
    assert control.wait("t", text="never", now=True).matched is None


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_text_is_found_wherever_it_stands_in_much_output(control: Control, place: Path, until) -> None:
    control.new("t", SHELL)
    control.send("t", b"seq 100000; until [ -e printed ]; do sleep 0.1; done; exit 3")
    # tmux 3.3a may drop what a program prints right before it ends
    until(lambda: "\n100000" in control.log("t", tail=3).text)
    Path("printed").touch()
    assert control.wait("t", exit=True).matched
    for line in ("1", "1000", "50000", "100000"):
        assert control.wait("t", text=f"^{line}$", exit=True).matched == "text"
        assert control.wait("t", text=f"^{line}$", now=True).matched == "text"
    with pytest.raises(Exited):
        assert control.wait("t", text="^100001$").matched


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_text_that_leaves_the_screen_at_once_is_found(control: Control, place: Path) -> None:
    words = "while [ ! -e go ]; do sleep 0.05; done; printf here; seq -f %.0f. 50000; cat"
    control.new("t", ("sh", "-c", words), cwd=str(place))
    # the full stop: a row that is only begun stands on the screen, too, as the 1 of 12345
    wanted = waits.Conditions(text=r"^(1|40000)\.$")
    with waits.Waiter(control.machine, finding.find_session(control.machine, "t"), wanted, None, None) as waiter:
        (place / "go").touch()
        assert waiter.until(20).text == "40000."


def test_the_end_of_the_program_ends_a_wait_for_text(control: Control) -> None:
    control.new("t", SHELL)
    control.send("t", b"sleep 0.2; exit 3")
    with pytest.raises(Exited) as ended:
        assert control.wait("t", text="never").matched
    assert ended.value.details["exit_status"] == 3


@pytest.mark.night
@pytest.mark.on("memory", "tmux")
def test_text_that_was_the_last_before_the_end_counts(control: Control, held: Held, until: Any) -> None:
    control.new("t", SHELL)
    # tmux 3.3a may drop what a program prints right before it ends
    control.send("t", f"echo MARK; {held.words}; exit 3".encode())
    until(lambda: "MARK" in control.screen("t").text.split("\n"))
    held.go()
    assert control.wait("t", exit=True).matched
    assert control.wait("t", text="^MARK$").matched == "text"


@pytest.mark.on("memory", "tmux")
def test_the_first_of_several_conditions_wins(control: Control) -> None:
    control.new("t", SHELL)
    control.send("t", b"sleep 0.2; exit 3")
    assert control.wait("t", text="never", exit=True).matched == "exit"
    control.new("u", LINES)
    assert control.wait("u", exit=True, settle=0.1).matched == "settle"


def test_a_program_has_settled_when_it_printed_nothing_for_so_long(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"x")
    found = control.wait("t", settle=0.2)
    assert (found.matched, found.by) == ("settle", "settle")
    assert found.confidence == "guess"


@pytest.mark.on("memory", "tmux")
def test_a_condition_can_be_tested_once(control: Control) -> None:
    control.new("t", LINES)
    for condition in ({"text": "never"}, {"exit": True}, {"settle": 3600.0}):
        found = control.wait("t", now=True, **condition)
        assert (found.matched, found.timed_out) == (None, False)
    control.keys("t", ("C-d",))
    assert control.wait("t", exit=True).matched
    assert control.wait("t", exit=True, now=True).matched == "exit"


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?P<", "a{2,1}", "\\"])
@pytest.mark.on("memory")
def test_a_bad_pattern_is_told_at_once(control: Control, pattern: str) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage) as refused:
        assert control.wait("t", text=pattern).matched
    assert refused.value.reason == "bad_pattern"


@pytest.mark.night
@pytest.mark.on("memory")
@pytest.mark.timeout(60, method="thread")  # the alarm is what is tried here
def test_a_pattern_that_goes_astray_costs_an_error(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"a" * 40 + b"!")
    assert control.wait("t", text="!$").matched
    with pytest.raises(Timeout) as astray:
        assert control.wait("t", text="^(a+)+$", timeout=0.5).matched
    assert astray.value.reason == "pattern_timeout"


def test_without_a_condition_idle_is_waited_for(control: Control) -> None:
    control.new("t", LINES)
    assert control.wait("t").matched == "idle"


@pytest.mark.on("memory", "tmux", "resident")
def test_a_kill_ends_a_wait(control: Control, another: Callable[[], Control]) -> None:
    control.new("t", LINES)
    result = in_background(lambda: another().wait("t", text="never"))
    forever = in_background(lambda: another().wait("t", exit=True))
    assert control.wait("t", settle=0.2).matched
    control.kill(("t",))
    assert isinstance(result(), Exited)
    found = forever()
    assert (found.matched, found.signal) == ("exit", "TERM")


@pytest.mark.on("tmux", "resident")
def test_the_death_of_the_server_ends_a_wait(
    control: Control, another: Callable[[], Control], until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep: set[waits.Waiter] = set()
    sleep = waits.Waiter._sleep

    def note(self: waits.Waiter, *arguments: Any) -> bool:
        asleep.add(self)
        return sleep(self, *arguments)

    control.new("t", LINES)
    monkeypatch.setattr(waits.Waiter, "_sleep", note)
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    results = [
        in_background(lambda: another().wait("t", text="never")), in_background(lambda: another().wait("t", exit=True))
    ]  # fmt: skip
    until(lambda: len(asleep) == 2)
    os.kill(pid, signal.SIGKILL)
    for result in results:
        error = result()
        assert isinstance(error, Unreachable), error
        assert error.reason == "lost"


@pytest.mark.on("memory")
def test_the_death_of_the_server_in_memory_ends_a_wait(control: Control, another: Callable[[], Control]) -> None:
    control.new("t", LINES)
    result = in_background(lambda: another().wait("t", text="never"))
    assert control.wait("t", settle=0.1).matched
    control.machine.transport.kill_server()  # type: ignore[attr-defined]
    error = result()
    assert isinstance(error, Unreachable)
    assert error.reason == "lost"


@pytest.mark.on("memory", "tmux")
def test_a_wait_survives_a_new_size_and_a_new_name(control: Control, another: Callable[[], Control]) -> None:
    control.new("t", LINES)
    result = in_background(lambda: another().wait("t", text="^MARK$"))
    assert control.wait("t", settle=0.1).matched
    control.resize("t", "90x20")
    control.rename("t", "u")
    control.send("u", b"MARK")
    assert result().matched == "text"


@pytest.mark.on("memory", "tmux")
def test_text_is_found_although_the_terminal_wrapped_it(control: Control) -> None:
    control.new("t", LINES, size="20x10")
    control.send("t", b"0123456789 0123456789 MARK 0123456789")
    assert control.wait("t", text="^0123456789 0123456789 MARK 0123456789$").matched == "text"
    assert control.wait("t", text="9 MARK 0", since="screen").matched == "text"


@pytest.mark.on("tmux")
def test_colours_do_not_hide_text(control: Control) -> None:
    control.new("t", ("sh", "-c", r"printf '\033[1mM\033[31mA\033[0mRK\n'; cat"))
    assert control.wait("t", text="^MARK$").matched == "text"
    control.send("t", b"x")
    assert control.wait("t", text="MARK", since=control.show("t").cursor, timeout=0.1).timed_out


@pytest.mark.on("memory", "tmux")
def test_a_wait_for_a_session_that_is_not_there_is_an_error(control: Control) -> None:
    with pytest.raises(NotFound):
        assert control.wait("nobody", exit=True).matched


@pytest.mark.on("tmux")
def test_a_program_inside_a_marked_shell_is_waited_for_too(control: Control) -> None:
    control.new("t", ("bash",))
    control.send("t", b"python3 -q")
    assert control.wait("t", text="^>>>", timeout=20).matched == "text"
    control.send("t", b"print(40 + 2)")
    assert control.wait("t", text="^42$", timeout=20).matched == "text"


@pytest.mark.on("tmux")
def test_a_continuation_prompt_of_a_marked_shell_is_seen(control: Control) -> None:
    control.new("t", ("bash",), env={"PS2": "more> "})
    control.send("t", b"if true")
    assert control.wait("t", text="more>", timeout=20).matched == "text"
    control.send("t", b"then echo yes; fi")
    assert control.wait("t", text="^yes$", timeout=20).matched == "text"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_what_is_printed_last_is_found_though_there_is_no_time_for_all_of_it(control: Control, until: Any) -> None:
    """Much more than can be read in no time at all, and the text behind it."""
    control.new(
        "t", ("sh", "-c", "read -r go; yes 'some words of output' | head -c 30000000; echo; echo here it is; exec cat")
    )
    control.send("t", b"")
    control.keys("t", ("Enter",))
    # the screen shows it a moment before the journal has it
    until(lambda: "here it is" in getattr(control.log("t", tail=1), "text", ""))
    assert control.wait("t", text="^here it is$", timeout=0.001).matched == "text"
    assert control.wait("t", text="^not there$", timeout=0.001).timed_out


@pytest.mark.night
@pytest.mark.parametrize(
    "line", ["some words of output", r"\033[32mgreen\033[0m words", "größer 漢字\tand more", r"10%%\r20%%\r30%%"],
    ids=["plain", "colours", "letters", "overwritten"],
)  # fmt: skip
@pytest.mark.on("tmux", "resident")
def test_text_behind_much_output_ends_a_wait_for_it_while_it_comes(control: Control, line: str) -> None:
    control.new("t", SHELL)
    words = f"i=0; while [ $i -lt 3000 ]; do printf '{line}\\n'; i=$((i + 1)); done; printf 'here it '; sleep 0.1; echo i's'"
    for pattern in ("^here it is$", r"it\s+is", "(?i)HERE IT I[sS]", "^h[a-z]+ it is"):
        control.send("t", words.encode())
        assert control.wait("t", text=pattern, timeout=60).matched == "text"


@pytest.mark.night
def test_of_several_sessions_one_that_ended_does_not_hide_that_the_time_is_over(control: Control) -> None:
    control.new("ended", ("sh", "-c", "exit 3"))
    control.new("living", ("cat",))
    ended = control.wait(any=("ended", "living"), text="never", timeout=0.3)
    assert (ended.ok, [(one.session, one.timed_out) for one in ended.waits]) == (False, [("living", True)])


@pytest.mark.night
@pytest.mark.on("tmux", "resident")
def test_an_offset_is_a_cursor_of_the_present_life(control: Control) -> None:
    control.new("c", ("sh", "-c", "echo one; echo two; exec cat"))
    control.wait("c", text="two", since="screen")
    assert control.wait("c", text="two", since="5", timeout=5).matched == "text"
    assert control.wait("c", text="one", since="5", timeout=0.3).timed_out
    with pytest.raises(Usage, match="1000 is past the end of what c printed"):
        control.wait("c", text="two", since="1000")


@pytest.mark.on("tmux")
def test_a_pattern_that_ends_in_a_blank_is_found_at_the_end_of_a_row(control: Control) -> None:
    control.new("c", ("sh", "-c", "printf 'steady> go\nready> '; exec cat"))
    assert control.wait("c", text="ready> ", since="screen").text == "ready>"
    assert control.wait("c", text="steady> ", since="screen").text == "steady> "
    assert not control.wait("c", text="read> ", since="screen", now=True).matched


@pytest.mark.night
@pytest.mark.on("resident")
def test_an_id_is_never_that_of_a_later_session_of_the_same_name(
    control: Control, another: Callable[..., Control]
) -> None:
    first = control.new("c", ("cat",))
    assert control.show(first.id).name == control.screen(first.id).session == "c"
    another().new("c", ("cat",), if_exists="replace")
    for look in (control.show, control.screen):
        with pytest.raises(NotFound):
            look(first.id)
    with pytest.raises(NotFound):
        control.wait(first.id, text="x", timeout=0.1)
