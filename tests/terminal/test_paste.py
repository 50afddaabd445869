"""What may be typed, what is remembered of it, and the words in which a write is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

import pytest

from tmuxctl.errors import Conflict, Exited, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.terminal.input import paste
from tmuxctl.terminal.input.paste import LINE_LIMIT, SIZE_LIMIT, CarriedOut, LastInput, Write, carry_out, check_text
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux.lease import LeaseHolder
from tmuxctl.terminal.tmux.pane_io import Changed, PaneIO
from tmuxctl.terminal.tmux.server import Pane

PLAIN = {"canonical": False, "bracketed": False, "multiline": False}


@pytest.mark.parametrize(
    ("data", "how"),
    [
        (b"x" * SIZE_LIMIT, {}),
        (b"x" * LINE_LIMIT, {"canonical": True}),
        (b"x" * LINE_LIMIT + b"\r" + b"y" * LINE_LIMIT, {"canonical": True, "multiline": True}),
        (b"x" * (LINE_LIMIT + 1), {}),
        (b"a\nb", {"bracketed": True}),
        (b"a\rb", {"multiline": True}),
        (b"a\x1b[201~b", {}),
        (b"", {"canonical": True}),
    ],
)
def test_what_arrives_as_it_is_may_be_typed(data: bytes, how: dict[str, bool]) -> None:
    check_text(data, **{**PLAIN, **how})


@pytest.mark.parametrize(
    ("data", "how", "reason", "message", "hint"),
    [
        (
            b"x" * (SIZE_LIMIT + 1), {}, "too_large", "16777217 bytes are more than one write may hold (16777216)",
            "write a file, and let the program read it",
        ),
        (
            b"a\x1b[201~b", {"bracketed": True}, "bad_text",
            "the text holds ESC[201~, which would end the bracketed paste", "send it without --paste",
        ),
        (
            b"a\r" + b"x" * 4096, {"canonical": True, "multiline": True}, "line_too_long",
            "a line of 4096 bytes would be cut: this terminal takes lines of at most 4095",
            "write it to a file, and let the program read it",
        ),
        (
            b"a\nb", {}, "multiline", "the text has several lines: the program would run each line as it arrives",
            "add --multiline to send it anyway, or --paste if the program supports bracketed paste",
        ),
    ],
)  # fmt: skip
def test_what_would_arrive_otherwise_is_refused_with_what_to_do(
    data: bytes, how: dict[str, bool], reason: str, message: str, hint: str
) -> None:
    with pytest.raises(Usage) as refused:
        check_text(data, **{**PLAIN, **how})
    assert (refused.value.reason, refused.value.message, refused.value.hint) == (reason, message, hint)


LAST = LastInput("w1", 118, 3, 7, 80, 24, True, "tty", b"select 1;", 12.5)


def fill_format(text: str) -> str:
    """The format as tmux fills it in, where the cursor stands as in LAST."""
    fields = {"cursor_x": "3", "cursor_y": "7", "pane_width": "80", "pane_height": "24", "alternate_on": "1"}
    for name, value in fields.items():
        text = text.replace(f"#{{{name}}}", value)
    return text


def test_an_input_is_remembered_with_the_place_of_the_cursor() -> None:
    kept = fill_format(LastInput.remember(4711, "w1", 118, "tty", b"select 1;", 12.5))
    assert kept == "4711:w1:118:3:7:80:24:1:tty:12.500:73656c65637420313b"
    assert LastInput.parse(f" {kept}\n") == LAST
    assert LAST.again(4711) == kept
    assert replace(LAST, alternate=False).again(4711) == kept.replace(":1:tty", ":0:tty")


def test_an_input_without_its_time_is_the_oldest() -> None:
    kept = fill_format(LastInput.remember(1, "w1", 0, "none", b""))
    assert LastInput.parse(kept) == LastInput("w1", 0, 3, 7, 80, 24, True, "none", b"", 0.0)


def test_of_a_long_input_the_beginning_is_remembered() -> None:
    long = b"x" * 5000
    for kept in (LastInput.remember(1, "w", 0, "tty", long), replace(LAST, typed=long).again(1)):
        assert kept.rpartition(":")[2] == "78" * paste.ECHO_LIMIT


@pytest.mark.parametrize(
    "text",
    ["", "1:w1:118:3:7:80:24:1:tty:12.500", "1:w1:118:3:7:80:24:1:tty:12.500:73:73", "1:w1:x:3:7:80:24:1:tty:1:73",
     "1:w1:118:3:7:80:24:1:tty:x:73", "1:w1:118:3:7:80:24:1:tty:1:zz"],
)  # fmt: skip
def test_what_another_version_kept_is_no_input(text: str) -> None:
    assert LastInput.parse(text) is None


def test_of_an_input_that_is_cut_within_a_byte_the_whole_bytes_count() -> None:
    found = LastInput.parse("1:w1:118:3:7:80:24:1:tty:12.500:73656c6")
    assert found
    assert found.typed == b"sel"


class Machine:
    """A tmux that has these reasons against a write."""

    def __init__(self, *reasons: str) -> None:
        self.reasons, self.machine = reasons, "here"
        self.transport = self

    def clock(self) -> float:
        return 0.0

    def wall(self) -> float:
        return 0.0

    def change_and_look(self, *given: Any, **how: Any) -> Changed:
        return Changed(self.reasons, ())


class Recorder(Machine):
    """A tmux that takes a write, and remembers it."""

    def change_and_look(self, *given: Any, **how: Any) -> Changed:
        self.given, self.how = given, how
        return Changed((), ("5",) * len(how["fields"]))


def pane(**facts: Any) -> Pane:
    return Pane(
        **{
            **dict.fromkeys(field.name for field in fields(Pane)),
            "name": "db",
            "id": "i",
            "lease": "",
            "version": "3.4",
            **facts,
        }
    )


def write(*reasons: str, **facts: Any) -> str:
    io, holder = cast("PaneIO", Machine(*reasons)), LeaseHolder("t", 1, 2)
    return carry_out(io, holder, pane(**facts), Write("w1", b"x"), "").result


def test_a_write_against_which_nothing_speaks_is_done_and_one_that_was_done_is_not_repeated() -> None:
    assert write() == "done"
    assert write("dup") == "dup"
    # it may be what ended the program
    assert write("dup", "dead", "human") == "dup"


def recorded(written: Write, **how: Any) -> Recorder:
    io = Recorder()
    found = carry_out(cast("PaneIO", io), LeaseHolder("t", 1, 2), pane(), written, "place", **how)
    assert found == CarriedOut("done", ("5",) * len(how.get("fields", ())))
    return io


ENTER = ("send-keys", "-H", "0d")
PASTE = ("paste-buffer", "-d", "-r", "-b", "tmuxctlw1")


@pytest.mark.parametrize(
    ("written", "typing", "data", "presses"),
    [
        (Write("w1", b"x"), [PASTE], b"x", False),
        # Enter goes with the text, unless that is in brackets
        (Write("w1", b"x", enter=True), [PASTE], b"x\r", False),
        (Write("w1", b"x", bracketed=True), [(*PASTE[:3], "-p", *PASTE[3:])], b"x", False),
        (Write("w1", b"x", enter=True, bracketed=True), [(*PASTE[:3], "-p", *PASTE[3:]), ENTER], b"x", True),
        (Write("w1", enter=True), [ENTER], None, True),
        (Write("w1", keys=(("Up",), ("-H", "1b"))), [("send-keys", "Up"), ("send-keys", "-H", "1b")], None, True),
        (Write("w1", b"x", keys=(("Up",),), enter=True), [PASTE, ("send-keys", "Up"), ENTER], b"x\r", True),
    ],
)
def test_a_write_is_one_change_that_other_panes_forbid_where_it_presses_keys(
    written: Write, typing: list[tuple[str, ...]], data: bytes | None, presses: bool
) -> None:
    io = recorded(written)
    name, kept, commands = io.given
    assert (name, kept) == ("db", {options.ACKNOWLEDGED: "w1", options.INPUT: "place"})
    assert commands == typing
    assert io.how["buffer"] == (("tmuxctlw1", data) if data is not None else None)
    assert list(io.how["unless"]()) == [
        *("other", "dup", "human", "dead", "off", "copying", "leased"),
        *(["shared"] if presses else []),
    ]
    assert io.how["clear"] is None
    fresh = recorded(replace(written, fresh=True)).how["clear"]
    plain = {"pane_dead": "0", "pane_input_off": "0", "pane_in_mode": "0", "session_attached": "0"}
    shared = {"pane_synchronized": "0"} if presses else {}
    assert fresh == {options.ID: "i", **plain, options.LEASE: "", **shared}


def test_a_part_of_a_write_is_acknowledged_by_its_number_and_may_take_its_time() -> None:
    assert recorded(Write("w1", b"x", part=0)).given[1][options.ACKNOWLEDGED] == "w1p0"
    assert recorded(Write("w1", b"x")).how["timeout"] == 8.0
    assert recorded(Write("w1", b"x"), timeout=1.5).how["timeout"] == 1.5


def test_a_write_may_ask_for_fields() -> None:
    assert recorded(Write("w1", b"x")).how["fields"] == ()
    assert recorded(Write("w1", b"x"), fields=["cursor_x"]).how["fields"] == ["cursor_x"]


@pytest.mark.parametrize("reason", ["backend_timeout", "no_server"])
def test_a_write_of_which_tmux_says_nothing_in_time_may_have_happened(reason: str) -> None:
    class Silent(Machine):
        def change_and_look(self, *given: Any, **how: Any) -> Changed:
            raise Unreachable("tmux did not answer", reason=reason)

    with pytest.raises(Unreachable) as failed:
        carry_out(cast("PaneIO", Silent()), LeaseHolder("t", 1, 2), pane(), Write("w1", b"x"), "")
    if reason == "no_server":
        assert failed.value.message == "tmux did not answer"
    else:
        told = failed.value
        assert (told.reason, told.message) == (
            "outcome_unknown", "tmux did not say in time whether the text reached db"
        )  # fmt: skip
        assert told.hint == "repeat it with the same id, which types it at most once: --id w1"
        assert told.to_json()["details"] == {"id": "w1"}


ENDED = "its output: tmuxctl log db; start it again: tmuxctl new db --if-exists replace -- CMD"


@pytest.mark.parametrize(
    ("reasons", "error", "reason", "message", "hint"),
    [
        (("other", "dup"), NotFound, "replaced", "session db has been replaced by another one", "tmuxctl ls"),
        (("dead", "human"), Exited, "exited", "the program in db has ended", ENDED),
        (
            ("human", "off"), Conflict, "human", "a person is typing into db",
            "try again when they pause, or after they detach",
        ),
        (
            ("off", "leased"), Conflict, "input_off", "input to db is switched off",
            "switch it on there: tmux select-pane -e",
        ),
        (
            ("leased", "shared"), Conflict, "leased", "another writer is typing into db",
            "try again in a moment, or tmuxctl wait NAME --settle",
        ),
        (
            ("shared", "copying"), Conflict, "shared",
            "keys pressed in db would reach other panes too (synchronize-panes)",
            "text sent without --paste reaches only this pane",
        ),
        (
            ("copying",), Conflict, "copy_mode", "a person is reading the history of db (copy mode)",
            "try again when they are done",
        ),
    ],
)  # fmt: skip
def test_the_weightiest_reason_is_told_with_what_to_do(
    reasons: tuple[str, ...], error: type[TmuxctlError], reason: str, message: str, hint: str
) -> None:
    with pytest.raises(error) as refused:
        write(*reasons)
    assert (refused.value.reason, refused.value.message, refused.value.hint) == (reason, message, hint)


@pytest.mark.parametrize(
    ("facts", "how"),
    [({"status": 3}, "with status 3"), ({"status": 0}, "with status 0"), ({"signal": "KILL"}, "by signal KILL")],
)
def test_an_end_is_told_with_its_status_or_signal(facts: dict[str, Any], how: str) -> None:
    with pytest.raises(Exited) as refused:
        write("dead", **facts)
    assert refused.value.message == f"the program in db has ended {how}"
    details = {"exit_status": facts.get("status"), "signal": facts.get("signal")}
    assert refused.value.to_json()["details"] == details
