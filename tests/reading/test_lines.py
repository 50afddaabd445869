"""A stretch of output as the lines a person saw."""

from __future__ import annotations

from typing import Any

import pytest

from tmuxctl.reading.text.lines import Lines


def text(*parts: bytes, cols: int = 20, rows: int = 10, **start: Any) -> str:
    lines = Lines(cols, rows, **start)
    for part in parts:
        lines.feed(part)
    return lines.text()


@pytest.mark.parametrize(
    ("output", "seen"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo"),
        (b"10%\r20%\r100%\r\n", "100%"),
        (b"abc\b\b\x1b[KX\r\n", "aX"),
        (b"a\tb\r\n", "a       b"),
        (b"\x1b[1;31mred\x1b[0m\r\n", "red"),
        (b"\x1b]0;a title\x07text\x1b]2;another\x1b\\\r\n", "text"),
        (b"\x1bP+q544e\x1b\\x\r\n", "x"),
        (b"\x1b(0lqk\x1b(B ok\r\n", "┌─┐ ok"),
        (b"\x0eqq\x0fq\r\n", "──q"),
        ("né 日本 👍\r\n".encode(), "né 日本 👍"),
        ("e\u0301a\r\n".encode(), "e\u0301a"),
        (b"a\xffb\r\n", "a\ufffdb"),
        (b"ab\x1b[2Dcd\r\n", "cd"),
        (b"abcdef\x1b[3G\x1b[1P\x1b[2@..\r\n", "ab..def"),
        (b"x\x1b[4b\r\n", "xxxxx"),
        (b"a\x07\x00\x01b\r\n", "ab"),
    ],
)
def test_controls_are_carried_out_and_never_shown(output: bytes, seen: str) -> None:
    assert text(output) == seen


def test_a_row_the_terminal_wrapped_is_one_line() -> None:
    assert text(b"x" * 45 + b"\r\nshort\r\n") == "x" * 45 + "\nshort"


def test_a_wide_character_that_does_not_fit_wraps_as_a_whole() -> None:
    assert text(b"x" * 19 + "日".encode() + b"\r\n") == "x" * 19 + "日"


def test_blanks_that_run_over_the_edge_join_nothing() -> None:
    mark = b"abc%" + b" " * 19 + b"\r \r"
    assert text(mark + b"$ next\r\n") == "abc%\n$ next"


def test_the_line_begins_where_the_cursor_stood() -> None:
    lines = Lines(10, 5, x=8, y=2)
    lines.feed(b"abcd\r\n")
    assert lines.text().strip() == "abcd"


def test_any_cut_gives_the_same() -> None:
    whole = "a\x1b[31mré日\x1b]0;title\x07b\r\n\x1b[1A\x1b[2Kz\x1b(0q\x1b(B\r\n".encode()
    for cut in range(len(whole)):
        assert text(whole[:cut], whole[cut:]) == text(whole), cut


def test_what_scrolls_away_stays() -> None:
    output = b"".join(b"%d\r\n" % number for number in range(100))
    assert text(output) == "\n".join(map(str, range(100)))


def test_clearing_the_screen_keeps_what_was_seen() -> None:
    assert text(b"before\r\n\x1b[H\x1b[2Jafter\r\n").split() == ["before", "after"]


def test_the_alternate_screen_is_left_out_once_it_is_left() -> None:
    lines = Lines(20, 10)
    lines.feed(b"shell\r\n\x1b[?1049h\x1b[Hediting")
    assert (lines.alternate, lines.text()) == (True, "editing")
    lines.feed(b"\x1b[?1049ldone\r\n")
    assert (lines.alternate, lines.text()) == (False, "shell\ndone")


def test_touched_rows_are_those_written_to() -> None:
    lines = Lines(20, 10)
    lines.feed(b"\x1b[?1049h\x1b[3;1Hthree\x1b[7;5Hseven")
    assert lines.touched() == {2, 6}


def test_an_endless_sequence_is_given_up() -> None:
    lines = Lines(20, 10)
    lines.feed(b"\x1b]0;")
    for _ in range(5):
        lines.feed(b"x" * 50_000)
    lines.feed(b"\x07\r\nseen\r\n")
    assert lines.text().endswith("seen")


@pytest.mark.parametrize("begin", [b"\x1b]0;", b"\x1bP", b"\x1b_"])
@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\"])
def test_a_string_of_any_length_is_not_shown(begin: bytes, end: bytes) -> None:
    image = [b"eHh4" * 20_000] * 5
    assert text(b"a", begin, *image, end + b"b\r\n") == "ab"
    assert text(b"a" + begin + b"".join(image) + end + b"b\r\n") == "ab"


def test_parameters_of_any_length_move_nothing() -> None:
    assert text(b"ab\x1b[" + b"1;" * 200_000 + b"H\r\n", b"c\x1b[" + b"1" * 90_000, b"Ad\r\n") == "ab\ncd"


def test_marks_without_end_make_no_endless_cell() -> None:
    seen = text(b"e" + "\u0301".encode() * 100_000 + b"a\r\n")
    assert (seen[0], seen[-1], len(seen) < 50) == ("e", "a", True)


def test_a_character_is_repeated_to_the_end_of_its_row_at_most() -> None:
    assert text(b"x\x1b[65000b\r\n", cols=8) == "x" * 8


@pytest.mark.parametrize(
    "output",
    [
        b"".join(b"line %d  \r\n" % number for number in range(2000)) + b"  \r\n\r\n",
        b"x" * 9000 + b" " * 500 + b"\x1b[1my\r\n\r\n\r\nz",
        "日本".encode() * 3000 + b"\r\n\x1b[2J\x1b[Hnext\x1b[1A\x1b[Kup\r\n",
        b"before\r\n\x1b[?1049hinside\x1b[?1049lafter\r\n",
    ],
)
def test_what_scrolls_away_may_be_taken_as_it_comes(output: bytes) -> None:
    pieces: list[str] = []
    lines = Lines(20, 10, sink=pieces.append)
    for at in range(0, len(output), 1000):
        lines.feed(output[at : at + 1000])
    lines.finish()
    whole = Lines(20, 10, keep=100_000)
    for at in range(0, len(output), 1000):
        whole.feed(output[at : at + 1000])
    assert "".join(pieces) == whole.text()


def test_what_was_before_the_alternate_screen_is_taken_with_it() -> None:
    pieces: list[str] = []
    lines = Lines(20, 10, sink=pieces.append)
    lines.feed(b"shell\r\n\x1b[?1049h\x1b[Hediting")
    lines.finish()
    assert "".join(pieces) == "shell\nediting"


def test_memory_is_bounded() -> None:
    lines = Lines(20, 10, keep=100)
    for number in range(5_000):
        lines.feed(b"%d\r\n" % number)
    kept = lines.text().split("\n")
    assert kept[-1] == "4999"
    assert len(kept) < 200


def test_the_newest_lines_are_whole_and_tell_whether_they_are_all() -> None:
    lines = Lines(10, 5)
    lines.feed(b"one\r\n" + b"x" * 25 + b"\r\nthree\r\n")
    assert lines.newest(8) == ("x" * 25 + "\nthree", False)
    assert lines.newest(100) == (lines.text(), True)


def test_lines_that_were_dropped_are_known_to_be_missing() -> None:
    lines = Lines(10, 2, keep=4)
    lines.feed(b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n")
    assert lines.newest(100) == ("5\n6\n7", False)
