"""A stretch of output as the lines a person saw."""

from __future__ import annotations

from collections.abc import Sequence
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


def test_blanks_of_a_drawn_line_run_over_the_edge_with_it() -> None:
    assert text(b"a" + b" " * 25 + b"\r\nx") == "a\n\nx"
    assert text("─".encode() + b" " * 25 + b"\r\nx") == "─\nx"


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


@pytest.mark.parametrize(
    ("output", "seen"),
    [
        (b"one\r\ntwo\x1b[AX", "oneX\ntwo"),
        (b"one\r\ntwo\x1b[2AX", "oneX\ntwo"),
        (b"one\r\n\r\n\r\ntwo\x1b[2AX", "one\n   X\n\ntwo"),
        (b"one\r\ntwo\x1b[1A\x1b[BX", "one\ntwoX"),
        (b"one\x1b[BX", "one\n   X"),
        (b"one\x1b[2eX", "one\n\n   X"),
        (b"one\x1b[EX", "one\nX"),
        (b"one\x1b[2EX", "one\n\nX"),
        (b"one\r\ntwo\x1b[FX", "Xne\ntwo"),
        (b"one\r\ntwo\r\nthree\x1b[2FX", "Xne\ntwo\nthree"),
        (b"a\x1b[CX", "a X"),
        (b"a\x1b[3CX", "a   X"),
        (b"a\x1b[2aX", "a  X"),
        (b"a\x1b[0CX", "a X"),
        (b"abc\x1b[DX", "abX"),
        (b"abc\x1b[2DX", "aXc"),
        (b"abc\x1b[9DX", "Xbc"),
        (b"a\x1b[99CX", "a                  X"),
        (b"a\x1b[99CXY", "a                  XY"),
        (b"abc\x1b[2GX", "aXc"),
        (b"abc\x1b[2`X", "aXc"),
        (b"abc\x1b[GX", "Xbc"),
        (b"abc\x1b[0GX", "Xbc"),
        (b"abc\x1b[5GX", "abc X"),
        (b"abc\x1b[99GX", "abc                X"),
        (b"one\r\ntwo\x1b[dX", "oneX\ntwo"),
        (b"one\r\ntwo\x1b[1dX", "oneX\ntwo"),
        (b"one\r\ntwo\x1b[4dX", "one\ntwo\n\n   X"),
        (b"one\r\ntwo\x1b[HX", "Xne\ntwo"),
        (b"one\r\ntwo\x1b[2;2HX", "one\ntXo"),
        (b"one\r\ntwo\x1b[1;3fX", "onX\ntwo"),
        (b"one\r\ntwo\x1b[;3HX", "onX\ntwo"),
        (b"one\r\ntwo\x1b[2HX", "one\nXwo"),
        (b"one\r\ntwo\x1b[99;1HX", "one\ntwo\n\n\n\n\n\n\n\nX"),
        (b"abc\x1b[2D\x1b[K", "a"),
        (b"abc\x1b[2D\x1b[0KX", "aX"),
        (b"abc\x1b[2D\x1b[1K", "  c"),
        (b"abc\x1b[2D\x1b[1KX", " Xc"),
        (b"abc\x1b[2D\x1b[2KX", " X"),
        (b"abc\x1b[2D\x1b[2K", ""),
        (b"abcdef\x1b[4D\x1b[2X", "ab  ef"),
        (b"abcdef\x1b[4D\x1b[X", "ab def"),
        (b"abcdef\x1b[4D\x1b[99X", "ab"),
        (b"abcdef\x1b[4D\x1b[99Xy", "aby"),
        (b"abcdef\x1b[2X", "abcdef"),
        (b"abcdef\x1b[4D\x1b[2P", "abef"),
        (b"abcdef\x1b[4D\x1b[P", "abdef"),
        (b"abcdef\x1b[4D\x1b[99P", "ab"),
        (b"abcdef\x1b[4D\x1b[2@", "ab  cdef"),
        (b"abcdef\x1b[4D\x1b[@X", "abXcdef"),
        (b"abcdef\x1b[4D\x1b[99@X", "abX"),
        (b"abcdef\x1b[3@X", "abcdefX"),
        (b"xxxxxxxxxxxxxxxxxxxx\r\x1b[2@", "  xxxxxxxxxxxxxxxxxx"),
        (b"ab\x1b[3b", "abbbb"),
        (b"ab\x1b[b", "abb"),
        (b"ab\x1b[0b", "abb"),
        (b"\x1b[3b", ""),
        (b"ab\r\ncd\x1b[2b", "ab\ncddd"),
        (b"ab\r\n\x1b[2b", "ab\nbb"),
        (b"abc\x1b7def\x1b8X", "abcXef"),
        (b"abc\x1b[sdef\x1b[uX", "abcXef"),
        (b"abc\x1b7\r\ndef\x1b8X", "abcX\ndef"),
        (b"abc\x1b8X", "Xbc"),
        (b"one\r\ntwo\x1bMX", "oneX\ntwo"),
        (b"one\x1bMX", "oneX"),
        (b"one\x1bDX", "one\n   X"),
        (b"one\x1bEX", "one\nX"),
        (b"one\x0bX", "one\n   X"),
        (b"one\x0cX", "one\n   X"),
        ("one\x84X".encode(), "one\n   X"),
        ("one\x85X".encode(), "one\nX"),
        ("one\r\ntwo\x8dX".encode(), "oneX\ntwo"),
        (b"one\x1bcX", "one\n   X"),
        (b"one\r\ntwo\x1bcX", "one\ntwo\n\n   X"),
        (b"one\r\ntwo\r\nthree\x1b[2A\x1b[JX", "one  X"),
        (b"one\r\ntwo\r\nthree\x1b[1A\r\x1b[0JX", "one\nX"),
        (b"one\r\ntwo\x1b[1JX", "one\ntwoX"),
        (b"one\r\ntwo\x1b[2JX", "one\ntwo\n\n   X"),
        (b"one\r\ntwo\x1b[H\x1b[JX", "one\ntwo\nX"),
        (b"one\r\ntwo\x1b[3JX", "one\ntwoX"),
        (b"\x1b[H\x1b[JX", "X"),
        (b"a\tb", "a       b"),
        (b"12345678\tb", "12345678        b"),
        (b"1234567\tb", "1234567 b"),
        (b"xxxxxxxxxxxxxxxxxx\tb", "xxxxxxxxxxxxxxxxxx b"),
        (b"xxxxxxxxxxxxxxxxxx\tbc", "xxxxxxxxxxxxxxxxxx bc"),
        (b"ab\x08\x08\x08X", "Xb"),
        (b"\x08X", "X"),
        (b"xxxxxxxxxxxxxxxxxxxx\x08Y", "xxxxxxxxxxxxxxxxxxxY"),
        (b"xxxxxxxxxxxxxxxxxxxx\x1b[DY", "xxxxxxxxxxxxxxxxxxYx"),
        (b"xxxxxxxxxxxxxxxxxxxx\x1b[CY", "xxxxxxxxxxxxxxxxxxxY"),
        (b"xxxxxxxxxxxxxxxxxxxx\rY", "Yxxxxxxxxxxxxxxxxxxx"),
        (b"xxxxxxxxxxxxxxxxxxxx\x1b[AY", "xxxxxxxxxxxxxxxxxxxxY"),
        (b"\x1b(0q\x1b(Bq", "─q"),
        (b"\x1b(0q\x1b(Aq", "──"),
        (b"\x0eaq~\x0fq", "▒─·q"),
        (b"a\x1b[>1Ab", "ab"),
        (b"a\x1b[=1Ab", "ab"),
        (b"a\x1b[<1Ab", "ab"),
        (b"a\x1b[1:2Ab", "ab"),
        (b"a\x1b[?2Jb", "ab"),
        (b"a\x1b[2 Jb", "ab"),
        (b"a\x1b[;;;Hb", "b"),
        (b"a\x1b[?25lb\x1b[?25h", "ab"),
        (b"a\x1b[?47hb\x1b[?47lc", "ac"),
        (b"a\x1b[?1047hb\x1b[?1047lc", "ac"),
        (b"a\x1b[?1;1049hb", " b"),
        (b"a\x1b[?1049hb\x1b[?1049hc", " bc"),
        (b"a\x1b[?1049lb", "ab"),
        (b"a\r\n\x1b[?1049hb", "b"),
        (b"a\x1b[31", "a"),
        (b"a\x1b[31\x1b[1mb", "a[31b"),
        (b"a\x1b\x1b[1mb", "ab"),
        (b"a\x1b]0;x\x1b[1mb\x07c", "ac"),
        ("a\x1b]0;x\x9cb".encode(), "ab"),
        ("日本\x1b[2DX".encode(), "日X"),
        ("日本語\x1b[3G\x1b[2@".encode(), "日  本語"),
        ("x日x日x日x日x日x日x日".encode(), "x日x日x日x日x日x日x日"),
        ("日日日日日日日日日日日".encode(), "日日日日日日日日日日日"),
        ("xxxxxxxxxxxxxxxxxxx日日".encode(), "xxxxxxxxxxxxxxxxxxx日日"),
        ("xxxxxxxxxxxxxxxxxxxx日".encode(), "xxxxxxxxxxxxxxxxxxxx日"),
        ("e\u0301".encode(), "e\u0301"),
        ("\u65e5\u0301x".encode(), "\u65e5\u0301x"),
        ("a\ufe0fb".encode(), "a\ufe0fb"),
        ("🇩🇪x".encode(), "🇩🇪x"),
        ("👍🏽x".encode(), "👍🏽x"),
    ],
)
def test_each_control_does_what_it_does_in_tmux(output: bytes, seen: str) -> None:
    assert text(output) == seen
    assert text(*(output[at : at + 1] for at in range(len(output)))) == seen


@pytest.mark.parametrize(
    ("character", "versions"), [("a\ufe0f", ((3, 5), (3, 6), (3, 7))), ("🇩🇪", ((3, 4), (3, 5), (3, 6), (3, 7)))]
)
def test_how_wide_a_cell_is_depends_on_the_version_of_tmux(character: str, versions: Sequence[tuple[int, int]]) -> None:
    for version in ((3, 3), (3, 4), (3, 5), (3, 6), (3, 7)):
        kept = text(f"{character}\x1b[DX".encode(), tmux=version) == f"{character}X"
        assert kept is (version in versions), version


def test_a_cursor_stays_within_its_window() -> None:
    scrolled = b"".join(b"%d\r\n" % number for number in range(20))
    assert text(scrolled + b"\x1b[99AX", rows=5).split("\n")[-4:] == ["X6", "17", "18", "19"]
    assert text(scrolled + b"\x1b[HX", rows=5).split("\n")[-4:] == ["X6", "17", "18", "19"]
    assert text(scrolled + b"\x1b[2A\x1b[9BX", rows=5).split("\n")[-1] == "X"
    assert text(scrolled + b"\x1b7\x1b[3A\x1b8X", rows=5).split("\n")[-2:] == ["19", "X"]


def test_what_stands_left_of_the_cursor_is_told_from_a_row_on() -> None:
    lines = Lines(5, 4, x=1, y=1)
    lines.feed(b"abcdefg\r\nxyz\x1b[D")
    assert lines.left() == " abcdefgxy"
    assert lines.left(2) == "efgxy"
    assert lines.left(9) == "xy"


def test_a_cut_sequence_is_taken_over_by_the_lines_of_what_comes_next() -> None:
    before = Lines(20, 10)
    before.feed(b"a\x1b[3")
    after = Lines(20, 10).go_on(before)
    after.feed(b"1mb")
    assert after.text() == "b"
    letter = "é".encode()
    before.feed(b"1m" + letter[:1])
    after = Lines(20, 10).go_on(before)
    after.feed(letter[1:])
    assert after.text() == "é"


@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\", "\x9c".encode(), b"\x1b[m"])
def test_what_ends_a_string_that_is_too_long_ends_it_also_at_a_cut(end: bytes) -> None:
    assert text(b"a\x1b]0;" + b"x" * 70_000, b"y" * 10, end + b"b") == "ab"
    assert text(b"a\x1b[" + b"1" * 70_000, b"1" * 10, b"mb") == "ab"
    assert text(b"a\x1b" + b" " * 70_000, b" " * 10, b"Fb") == "ab"
