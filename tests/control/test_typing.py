"""Typing: what is sent arrives byte for byte, once, or not at all and with a reason."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from programs import LINES, SHELL, program

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Denied, Exited, Usage
from tmuxctl.operations import Caller
from tmuxctl.timing import Clock, InputTiming, Timing

TEXTS = (
    b"ls;", b"select 1;", b";", b"\\;", b";;", b"#{pid}", b"#S", b"%H", b"#(touch x)", b"-R", b"--help", b"-", b"Enter", b"C-c",
    b"\"quoted\" 'words' `touch x` $(touch x) ${HOME} \\", b"!! ~ * ? [a]", b"\t tab", b"~.", b"a" * 5000, b"x;\\;;",
    "ünïcödé 漢字 👩‍👩‍👧 e\u0301 ✌️".encode(), b"\0nul\0",
    b"\xff\xfe not \x80 UTF-8", b"\x1b[31m\x1b]52;c;eA==\x07", b"\x03\x04\x15",
    b"\x9b31m \xc2\x9b31m \x85 \x7f", b"\xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80", "\u200b\u202e\u2066".encode(),
    b"\\033\\M-^A",
)  # fmt: skip


def arrives(control: Control, session: str, seen: bytes) -> None:
    """The program `typed` got exactly these bytes."""
    digest = hashlib.sha1(seen).hexdigest()
    assert control.wait(session, text=rf"got {len(seen)} {digest} {seen[-64:].hex()}\.", since="screen").matched


@pytest.fixture
def typed(control: Control) -> Control:
    """A session `t` that tells what is typed into it."""
    control.new("t", program("typed"), size="250x50")
    assert control.wait("t", text="ready", since="screen").matched
    return control


@pytest.mark.on("memory", "tmux", "pipe", "resident")
def test_every_text_arrives_as_it_is(typed: Control, place: Any) -> None:
    seen = b""
    for text in TEXTS:
        written = typed.send("t", text)
        assert (written.session, written.result, written.bytes) == ("t", "done", len(text))
        seen += text + b"\r"
        arrives(typed, "t", seen)
    assert not (place / "x").exists()


@pytest.mark.on("memory", "tmux")
def test_without_enter_nothing_is_added(typed: Control) -> None:
    typed.send("t", b"a;", enter=False)
    typed.send("t", b"b", enter=False)
    arrives(typed, "t", b"a;b")


@pytest.mark.on("memory", "tmux", "pipe", "resident")
def test_a_megabyte_arrives_as_it_is(typed: Control) -> None:
    text = bytes(range(256)) * 4096
    typed.send("t", text, enter=False, multiline=True)
    arrives(typed, "t", text)


@pytest.mark.on("memory")
@pytest.mark.parametrize("version", ["3.2a", "3.6b", "3.7", "3.7c", "next-3.8"])
def test_a_text_arrives_as_it_is_whatever_version_the_server_has(
    version: str, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers since 3.7 alter a text unless they are told not to; those before do not know how to be told."""
    monkeypatch.setattr("memory.tmux.VERSION", version)
    control.new("t", program("typed", "bracketed"), size="250x50")
    assert control.wait("t", text="ready", since="screen").matched
    control.send("t", b"\0\xff\x1b[31m")
    control.send("t", b"two\nlines", paste=True)
    arrives(control, "t", b"\0\xff\x1b[31m\r\x1b[200~two\nlines\x1b[201~\r")


@pytest.mark.on("memory", "tmux", "pipe", "resident")
def test_a_bracketed_paste_arrives_as_it_is(control: Control) -> None:
    control.new("t", program("typed", "bracketed"), size="250x50")
    assert control.wait("t", text="ready", since="screen").matched
    seen = b""
    for text in (bytes(range(256)), "é \x9b31m".encode(), b"\xff\x1b[31m\0"):
        control.send("t", text, paste=True)
        seen += b"\x1b[200~" + text + b"\x1b[201~\r"
        arrives(control, "t", seen)


@pytest.mark.on("memory", "tmux")
def test_nothing_is_typed_for_an_empty_text(typed: Control) -> None:
    assert typed.send("t", b"").result == "empty"
    typed.send("t", b"next")
    arrives(typed, "t", b"next\r")


def test_a_paste_is_bracketed_for_a_program_that_asked(control: Control) -> None:
    control.new("t", program("typed", "bracketed"), size="250x50")
    assert control.wait("t", text="ready", since="screen").matched
    control.send("t", b"two\nlines", paste=True)
    arrives(control, "t", b"\x1b[200~two\nlines\x1b[201~\r")


@pytest.mark.on("tmux", "pipe")
def test_a_program_that_asked_long_ago_is_still_given_bracketed_pastes(control: Control) -> None:
    control.new("t", program("typed", "bracketed", "then", "prints"), size="250x50")
    assert control.wait("t", text="printed", since="screen").matched
    control.send("t", b"two\nlines", paste=True)
    arrives(control, "t", b"\x1b[200~two\nlines\x1b[201~\r")


@pytest.mark.on("memory", "tmux")
def test_a_program_that_asks_no_longer_is_given_plain_pastes(control: Control) -> None:
    control.new("t", program("typed", "bracketed", "no", "longer"), size="250x50")
    assert control.wait("t", text="ready", since="screen").matched
    control.send("t", b"one line", paste=True)
    arrives(control, "t", b"one line\r")


@pytest.mark.on("memory", "tmux")
def test_a_paste_into_a_program_that_did_not_ask_is_plain(typed: Control) -> None:
    typed.send("t", b"one line", paste=True)
    arrives(typed, "t", b"one line\r")
    with pytest.raises(Usage) as refused:
        typed.send("t", b"two\nlines", paste=True)
    assert refused.value.reason == "multiline"


@pytest.mark.on("memory", "tmux")
def test_the_end_of_a_bracket_cannot_be_pasted(typed: Control) -> None:
    with pytest.raises(Usage) as refused:
        typed.send("t", b"a\x1b[201~b", paste=True)
    assert refused.value.reason == "bad_text"
    typed.send("t", b"next")
    arrives(typed, "t", b"next\r")


@pytest.mark.on("memory", "tmux")
def test_several_lines_have_to_be_asked_for(typed: Control) -> None:
    for text in (b"two\nlines", b"two\rlines", b"line\n"):
        with pytest.raises(Usage) as refused:
            typed.send("t", text)
        assert refused.value.reason == "multiline"
    typed.send("t", b"two\nlines", multiline=True)
    arrives(typed, "t", b"two\nlines\r")


@pytest.mark.on("memory", "tmux")
def test_a_line_the_terminal_would_cut_is_refused_whole(control: Control) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage) as refused:
        control.send("t", b"x" * 4096)
    assert refused.value.reason == "line_too_long"
    control.send("t", b"next")
    assert control.wait("t", text="^next$").matched
    assert "xx" not in control.screen("t").text


@pytest.mark.on("tmux")
def test_the_longest_line_a_terminal_takes_arrives_whole(control: Control, place: Any, until: Any) -> None:
    control.new("t", ("sh", "-c", "cat >got"))
    until(lambda: (place / "got").exists())
    control.send("t", b"y" * 4095)
    until(lambda: (place / "got").read_bytes() == b"y" * 4095 + b"\n")


@pytest.mark.on("memory", "tmux")
def test_more_than_a_write_holds_is_refused_whole(typed: Control) -> None:
    with pytest.raises(Usage) as refused:
        typed.send("t", b"x" * ((16 << 20) + 1))
    assert refused.value.reason == "too_large"
    typed.send("t", b"next")
    arrives(typed, "t", b"next\r")


@pytest.mark.on("memory")
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "\udcff", 5, None, ["a"], {"a": 1}])
def test_what_is_no_text_is_refused(control: Control, text: Any) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage):
        control.call("send", {"session": "t", "text": [text] if text is None else text})


@pytest.mark.on("memory", "tmux")
def test_keys_arrive_in_either_spelling(typed: Control) -> None:
    typed.keys("t", ("a", "ctrl+a", "C-b", "Enter", "esc", "tab", ";", "Up"))
    arrives(typed, "t", b"a\x01\x02\r\x1b\t;\x1b[A")


@pytest.mark.on("memory", "tmux")
def test_a_key_can_be_pressed_many_times(typed: Control) -> None:
    typed.keys("t", ("x", "Enter"), repeat=3)
    arrives(typed, "t", b"x\rx\rx\r")


ESCAPES = {
    ("Escape", "Escape"): "[Escape][Escape]",
    ("Escape", "b"): "[Escape][b]",
    ("a", "esc", "Enter", "C-[", "x"): "[a][Escape][Enter][Escape][x]",
    ("M-b", "c"): "[Meta-b][c]",
}


@pytest.mark.on("tmux", "pipe")
@pytest.mark.parametrize(("keys", "read"), ESCAPES.items(), ids=lambda value: " ".join(value))
def test_each_key_arrives_as_itself_behind_an_escape(control: Control, keys: tuple[str, ...], read: str) -> None:
    control.new("m", program("meta"))
    assert control.wait("m", text="ready", since="screen").matched
    assert control.keys("m", keys).result == "done"
    assert control.wait("m", text=f"{re.escape(read)}$", since="screen").matched, control.screen("m").text


@pytest.mark.night
@pytest.mark.on("tmux")
def test_an_escape_pressed_many_times_is_no_meta_key(control: Control) -> None:
    control.new("m", program("meta"))
    assert control.wait("m", text="ready", since="screen").matched
    control.keys("m", ("Escape",), repeat=3)
    control.keys("m", ("b",))
    assert control.wait("m", text=re.escape("[Escape][Escape][Escape][b]"), since="screen").matched


def test_a_pause_follows_each_escape(control: Control, another: Callable[..., Control]) -> None:
    control.new("t", LINES)
    pauses: list[float] = []
    timing, clock = Timing(input=InputTiming(escape_seconds=7.0)), Clock(sleep=pauses.append)
    another(timing=timing, clock=clock).keys("t", ("Escape",), repeat=2)
    assert pauses == [7.0, 7.0]


@pytest.mark.on("tmux")
def test_keys_with_an_escape_among_them_are_pressed_once_however_often_they_are_asked_for(control: Control) -> None:
    control.new("m", program("meta"))
    assert control.wait("m", text="ready", since="screen").matched
    assert control.keys("m", ("Escape", "b"), id="abcdefgh12345678").result == "done"
    assert control.keys("m", ("Escape", "b"), id="abcdefgh12345678").result == "dup"
    control.keys("m", ("z",))
    assert control.wait("m", text=re.escape("[Escape][b][z]"), since="screen").matched, control.screen("m").text


@pytest.mark.parametrize("key", ["Return2", "Nosuch", "", "C-Nosuch", "ctrl+", "ab", "hello"])
@pytest.mark.on("memory", "tmux")
def test_a_name_that_is_no_key_sends_nothing_at_all(typed: Control, key: str) -> None:
    with pytest.raises(Usage) as refused:
        typed.keys("t", ("a", key, "b"))
    assert refused.value.reason == "bad_key"
    typed.send("t", b"next")
    arrives(typed, "t", b"next\r")


@pytest.mark.on("memory")
def test_a_number_of_times_that_makes_no_sense_is_refused(control: Control) -> None:
    control.new("t", LINES)
    for repeat in (0, -1, 1001):
        with pytest.raises(Usage):
            control.keys("t", ("a",), repeat=repeat)
    with pytest.raises(Usage):
        control.keys("t", ())


def test_typing_into_an_ended_program_is_an_error_and_harms_nobody(control: Control) -> None:
    control.new("other", LINES)
    control.new("t", ("sh", "-c", "exit 3"))
    assert control.wait("t", exit=True).matched
    for write in (lambda: control.send("t", b"x"), lambda: control.keys("t", ("C-c",)), lambda: control.send("t", b"")):
        with pytest.raises(Exited) as refused:
            write()
        assert refused.value.reason == "exited"
        assert refused.value.details["exit_status"] == 3
    control.send("other", b"alive")
    assert control.wait("other", text="alive").matched


def test_copy_mode_nobody_looks_at_does_not_swallow_text(typed: Control) -> None:
    typed.machine.transport.run([("copy-mode", "-t", "=t:")])
    assert typed.send("t", b"hello").result == "done"
    arrives(typed, "t", b"hello\r")
    typed.machine.transport.run([("copy-mode", "-t", "=t:")])
    typed.keys("t", ("x",))
    arrives(typed, "t", b"hello\rx")


def test_a_session_whose_input_is_off_refuses(typed: Control) -> None:
    typed.machine.transport.run([("select-pane", "-d", "-t", "=t:")])
    for write in (lambda: typed.send("t", b"x"), lambda: typed.keys("t", ("x",))):
        with pytest.raises(Conflict) as refused:
            write()
        assert refused.value.reason == "input_off"
    typed.machine.transport.run([("select-pane", "-e", "-t", "=t:")])
    typed.send("t", b"next")
    arrives(typed, "t", b"next\r")


def test_an_id_is_typed_once_however_often_it_is_asked_for(typed: Control) -> None:
    first = typed.send("t", b"once", id="abcdefgh12345678")
    again = typed.send("t", b"once", id="abcdefgh12345678")
    assert (first.result, again.result) == ("done", "dup")
    typed.keys("t", ("x",), id="abcdefgh12345679")
    assert typed.keys("t", ("x",), id="abcdefgh12345679").result == "dup"
    arrives(typed, "t", b"once\rx")


@pytest.mark.on("memory", "tmux")
def test_a_request_id_makes_a_repeated_call_happen_once(typed: Control) -> None:
    results = [
        typed.call("send", {"session": "t", "text": "once"}, request_id="request1234567").result for _ in range(2)
    ]
    assert results == ["done", "dup"]
    arrives(typed, "t", b"once\r")


@pytest.mark.on("memory")
@pytest.mark.parametrize("bad", ["", "short", "with space in it", "x" * 65, "#{pid}#{pid}", "aaaaaaa*"])
def test_an_id_that_could_mean_something_to_tmux_is_refused(control: Control, bad: str) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage) as refused:
        control.send("t", b"x", id=bad)
    assert refused.value.reason == "bad_id"


@pytest.mark.on("memory", "tmux", "resident")
def test_lines_of_several_writers_never_mix(control: Control, another: Callable[[], Control]) -> None:
    control.new("t", LINES)
    refused = set()

    def write(mine: Control, letter: bytes) -> None:
        for _ in range(5):
            while True:
                try:
                    mine.send("t", letter * 20)
                    break
                except Conflict as error:
                    refused.add(error.reason)

    writers = [threading.Thread(target=write, args=(another(), letter)) for letter in (b"a", b"b", b"c")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    control.send("t", b"the end")
    assert control.wait("t", text=r"(?s)the end\n.*the end", since="screen").matched
    lines = sorted(line for line in control.screen("t").text.split("\n") if line[:1] in "abc")
    assert lines == sorted(letter * 20 for letter in "abc" for _ in range(10))
    assert refused <= {"leased"}


@pytest.mark.on("tmux")
def test_a_shell_gets_what_was_typed_while_it_was_busy(control: Control) -> None:
    control.new("t", SHELL)
    control.send("t", b"sleep 0.3; echo fir''st")
    control.send("t", b"echo sec''ond")
    assert control.wait("t", text=r"^first\n[^\n]*second$", since="screen").matched


def test_no_more_keys_than_tmux_presses_at_once(typed: Control) -> None:
    for names, repeat in ((("a",) * 1001, 1), (("a", "b"), 501)):
        with pytest.raises(Usage, match="are more than 1000") as refused:
            typed.keys("t", names, repeat=repeat)
        assert refused.value.reason == "too_many_keys"
    typed.keys("t", ("a", "b"), repeat=450)
    typed.keys("t", ("Enter",))
    # the program may read both at once
    arrives(typed, "t", b"ab" * 450 + b"\r")


# Who types


@pytest.mark.on("tmux", "resident")
def test_a_caller_neither_types_into_its_own_session_nor_ends_it(typed: Control) -> None:
    own = typed.show("t")
    callers = (Caller(session=own.id), Caller(processes=frozenset({own.pid or 0})))
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        *(("send", {"text": "no"}), ("keys", {"keys": ["a"]}), ("resize", {"size": "90x20"})),
        *(("ask", {"text": "no"}), ("kill", {})),
    )
    for caller in callers:
        for operation, arguments in calls:
            with pytest.raises(Denied, match="is the session that you run in"):
                typed.call(operation, {"session": ["t"] if operation == "kill" else "t", **arguments}, caller=caller)
    typed.send("t", b"yes")
    arrives(typed, "t", b"yes\r")


@pytest.mark.on("tmux")
def test_a_caller_ends_only_what_it_owns(typed: Control) -> None:
    typed.new("own", ("cat",), owner="me")
    for arguments in ({"session": ["t"]}, {"session": ["own", "t"]}):
        with pytest.raises(Denied, match="t was not started by you") as refused:
            typed.call("kill", arguments, caller=Caller(owner="me"))
        assert refused.value.reason == "not_owner"
    assert {one.name for one in typed.ls().sessions} == {"own", "t"}
    typed.call("kill", {"session": ["own"]}, caller=Caller(owner="me"))
    assert {one.name for one in typed.ls().sessions} == {"t"}
