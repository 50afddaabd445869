"""Reading: exactly what a program printed after a point, and nothing a terminal would act on."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from control.conftest import Held
from programs import LINES, PYTHON, SHELL, program

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, NotFound, Usage
from tmuxctl.operations import Call, Cancelled, under
from tmuxctl.timing import TIMING
from tmuxctl.value import changed


def text(output: Any) -> str:
    """A read's text."""
    found: str = output.text
    return found


def test_a_read_gives_what_came_after_the_last_input(control: Control) -> None:
    control.new("t", LINES)
    for word in ("first", "second"):
        control.send("t", word.encode())
        assert control.wait("t", text=f"^{word}$").matched
    assert text(control.read("t")).split() == ["second"]
    assert text(control.log("t")).split() == ["first", "first", "second", "second"]


@pytest.mark.parametrize(
    "argv",
    [SHELL, ("bash",), ("bash", "--norc"), ("zsh", "-f"), ("fish", "--no-config")],
    ids=lambda argv: " ".join(argv),
)
@pytest.mark.on("tmux")
def test_what_was_typed_is_no_output_of_a_shell(
    control: Control, argv: tuple[str, ...], needs: Callable[..., None]
) -> None:
    needs(argv[0])
    control.new("t", argv)
    control.send("t", b"echo one; echo two")
    assert control.wait("t", prompt=True).matched
    assert text(control.read("t")).startswith("one\ntwo\n")


@pytest.mark.on("tmux")
def test_what_was_typed_is_not_the_last_word_of_a_program_that_ended(control: Control) -> None:
    control.new("py", (PYTHON, "-q"))
    found = control.ask("py", b"import os; os._exit(3)")
    assert (found.answer, found.exit_status) == ("", 3)
    assert text(control.read("py")) == ""
    assert "os._exit" in text(control.read("py", raw=True))


@pytest.mark.on("memory", "tmux")
def test_reading_on_from_cursor_to_cursor_misses_and_repeats_nothing(control: Control) -> None:
    control.new("t", LINES)
    cursor, seen = control.show("t").cursor, ""
    for number in range(5):
        control.send("t", f"line {number}".encode())
        assert control.wait("t", text=f"^line {number}$").matched
        part: Any = control.read("t", since=cursor)
        cursor, seen = part.cursor, seen + part.text + "\n"
    assert seen.split("\n")[:-1] == [f"line {number}" for number in range(5) for _ in range(2)]
    assert text(control.read("t", since=cursor)) == ""


def test_a_cursor_outlives_a_new_name_and_the_programs_end(control: Control) -> None:
    control.new("t", SHELL)
    control.send("t", b"echo one")
    answered = control.wait("t", text=r"one\n[^\n]*\$")
    assert answered.matched
    cursor = answered.cursor
    control.rename("t", "u")
    control.send("u", b"echo two; exit 0")
    assert control.wait("u", exit=True).matched
    assert "two" in text(control.read("u", since=cursor))
    assert "one" not in text(control.read("u", since=cursor))


def test_a_killed_session_can_still_be_read(control: Control) -> None:
    made = control.new("t", LINES)
    cursor = made.cursor
    control.send("t", b"last words")
    assert control.wait("t", text="^last words$").matched
    control.kill(("t",), signal="KILL")
    assert text(control.log("t")).split("\n") == ["last words", "last words"]
    assert text(control.read("t", since=cursor)).startswith("last words")
    assert text(control.log(made.id)).startswith("last words")
    with pytest.raises(NotFound):
        control.screen("t")


@pytest.mark.on("memory", "tmux")
def test_a_cursor_of_an_earlier_life_is_told_apart(control: Control) -> None:
    cursor = control.new("t", LINES).cursor
    control.new("t", LINES, if_exists="replace")
    for look in (lambda: control.read("t", since=cursor), lambda: control.wait("t", text="x", since=cursor)):
        with pytest.raises(Conflict) as lost:
            look()
        assert lost.value.reason == "cursor_lost"


@pytest.mark.on("memory")
@pytest.mark.parametrize("cursor", ["", "c1", "c2:a:1", "c1:a:-1", "c1:../x:1", "c1:a:1;", "5"])
def test_what_is_no_cursor_is_refused(control: Control, cursor: str) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage) as refused:
        control.read("t", since=cursor)
    assert refused.value.reason == "bad_cursor"


def test_the_last_lines_can_be_read(control: Control) -> None:
    control.new("t", program("count", "500"))
    assert control.wait("t", text="line 500", since="screen").matched
    assert text(control.log("t", tail=2)) == "line 499\nline 500"
    assert text(control.log("t", tail=0)) == ""
    assert text(control.log("t")).split("\n") == [f"line {number}" for number in range(1, 501)]
    assert text(control.log("t", tail=9999)).startswith("line 1\n")


@pytest.mark.on("memory", "tmux")
def test_what_scrolled_away_can_be_seen(control: Control) -> None:
    control.new("t", program("count", "50"), size="80x10")
    assert control.wait("t", text="line 50", since="screen").matched
    screen = control.screen("t", scrollback=3)
    assert screen.text.split("\n") == [f"line {number}" for number in range(42, 51)]
    assert screen.scrollback == ("line 39", "line 40", "line 41")


@pytest.mark.night
def test_output_can_be_followed_to_the_programs_end(control: Control, held: Held) -> None:
    # tmux 3.3a may drop what a program prints right before it ends
    words = f"echo one; sleep 0.2; echo two; sleep 0.2; echo three; {held.words}; exit 0"
    control.new("t", ("sh", "-c", words), wait=False)
    following = control.read("t", follow=True, since="screen")
    assert isinstance(following, Iterator)
    parts = []
    for part in following:
        parts.append(part)
        if "three" in part.text:
            held.go()
    assert "".join(part.text for part in parts).split() == ["one", "two", "three"]
    assert all(not part.complete for part in parts)


@pytest.mark.on("tmux")
def test_what_is_followed_may_get_another_name(control: Control, another: Callable[..., Control], held: Held) -> None:
    reader = another(timing=changed(TIMING, wait=changed(TIMING.wait, follow_seconds=0.01)))
    # silent long enough for it to be looked whether the session is there
    control.new("t", ("sh", "-c", f"echo one; {held.words}; sleep 0.3; echo two; exit 0"), wait=False)
    following: Any = reader.read("t", follow=True, since="screen")
    parts = [next(following).text]
    control.rename("t", "u")
    held.go()
    parts += [part.text for part in following]
    assert "".join(parts).split() == ["one", "two"]


@pytest.mark.on("tmux")
def test_who_has_given_up_is_not_read_for(control: Control) -> None:
    # more than is read at once
    control.new("t", ("sh", "-c", "seq 300000; exec cat"), wait=False)
    control.wait("t", text="^300000$", since="screen")
    cancelled = threading.Event()
    with under(Call("", cancelled=cancelled)):
        following: Any = control.read("t", follow=True, since="screen")
        assert "300000" not in next(following).text
        cancelled.set()
        with pytest.raises(Cancelled):
            next(following)


@pytest.mark.night
@pytest.mark.on("memory", "tmux")
def test_a_log_can_be_followed_from_its_last_lines(
    control: Control, held: Held, until: Callable[[Callable[[], Any]], Any]
) -> None:
    control.new("t", ("sh", "-c", f"echo one; echo two; {held.words}; echo three; sleep 1; exit 0"), wait=False)
    # the screen may show a line before the journal has it
    until(lambda: "two" in text(control.log("t")))
    following: Any = control.log("t", tail=1, follow=True)
    parts = [next(following).text]
    held.go()
    parts += [part.text for part in following]
    assert "".join(parts).split() == ["two", "three"]


@pytest.mark.on("tmux")
def test_no_control_character_reaches_a_reader(control: Control) -> None:
    hostile = r"\033]52;c;aGk=\007\033]0;title\007\033[31mred\033[0m\a\033Pdcs\033\\\033_apc\033\\ "
    hostile += r"\302\233 \302\205 \016lqk\017 \r\nend\n"
    control.new("t", ("sh", "-c", f"printf '{hostile}'; cat"))
    assert control.wait("t", text="^end$", since="screen").matched
    for shown in (control.screen("t").text, text(control.read("t")), text(control.log("t")), control.screen("t").title):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown), ascii(shown)
    assert "red" in control.screen("t").text
    raw: Any = control.log("t", raw=True)
    assert b"\x1b[31mred" in raw.data


@pytest.mark.on("tmux")
def test_a_title_is_only_a_title(control: Control) -> None:
    control.new("t", ("sh", "-c", r"printf '\033]2;a\tb\342\220\236c #{pid} #(touch x)\007up\n'; cat"))
    assert control.wait("t", text="up", since="screen").matched
    control.new("other", LINES)
    assert [one.name for one in control.ls().sessions] == ["other", "t"]
    assert "#{pid}" in control.screen("t").title
    assert control.screen("t").text == "up"


@pytest.mark.on("memory", "tmux")
def test_a_number_of_lines_that_makes_no_sense_is_refused(control: Control) -> None:
    control.new("t", LINES)
    for look in (lambda: control.log("t", tail=-1), lambda: control.screen("t", scrollback=-1)):
        with pytest.raises(Usage):
            look()


@pytest.mark.on("memory", "tmux")
def test_a_screen_has_the_cursor_and_the_size(control: Control) -> None:
    control.new("t", LINES, size="40x10")
    control.send("t", b"ab", enter=False)
    assert control.wait("t", text="ab", since="screen").matched
    screen = control.screen("t")
    assert (screen.cols, screen.rows, screen.alt) == (40, 10, False)
    assert (screen.cursor.x, screen.cursor.y, screen.cursor.visible) == (2, 0, True)
    assert screen.position == control.show("t").cursor


@pytest.mark.on("memory", "tmux")
def test_wrapped_rows_can_be_joined(control: Control) -> None:
    control.new("t", LINES, size="10x10")
    control.send("t", b"0123456789abc", enter=False)
    assert control.wait("t", text="abc", since="screen").matched
    assert control.screen("t").text == "0123456789\nabc"
    assert control.screen("t", wide=True).text == "0123456789abc"


@pytest.mark.night
def test_a_read_right_after_the_start_is_no_error(control: Control) -> None:
    for number in range(5):
        control.new(f"t{number}", LINES)
        assert text(control.read(f"t{number}")) == ""
        assert text(control.log(f"t{number}")) == ""
