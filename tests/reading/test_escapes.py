"""What a program printed comes out as text, whichever way it is read: as it is, line by line, or drawn on a terminal."""

from __future__ import annotations

import pytest

from tmuxctl.reading.text.escapes import LONGEST, strip_escapes
from tmuxctl.reading.text.lines import FEED


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b" 10%\r100%\r\nnext", "100%\nnext"),
        (b"abcdef\rxy", "xycdef"),
        (b"xx\r  ab", "  ab"),
        (b"done   \rok     \r\nnext", "ok\nnext"),
        (b"\nab\rc\n\nx", "\ncb\n\nx"),
        (b"one\r\n\r\nab\rc", "one\n\ncb"),
        (b"a\rb\rc\rd", "d"),
        (b"abc\rde\rf", "fec"),
        (b"\rab", "ab"),
        (b"\bab", "ab"),
    ],
)
def test_a_line_that_was_written_over_is_as_it_stood_in_the_end(data: bytes, text: str) -> None:
    assert strip_escapes(data, 20, 5) == (text, True)


def test_a_line_longer_than_the_terminal_is_written_over_from_its_last_row() -> None:
    assert strip_escapes(b"abcde\rx", 5, 5).text == "xbcde"
    assert strip_escapes(b"abcdefg\rx", 5, 5).text == "abcdexg"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb\xe2\x82", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
        (b"a\xff\r\nb\rc\xe2\x82", "a\N{REPLACEMENT CHARACTER}\nc\N{REPLACEMENT CHARACTER}"),
        (b"a\x1b[C\xffb\xe2\x82", "a \N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
        (b"one\r\n\x1b[Aa\xffb\xe2\x82", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_what_is_no_utf_8_is_replaced_and_what_is_cut_too(data: bytes, text: str) -> None:
    assert strip_escapes(data, 20, 5).text == text


@pytest.mark.parametrize(("row", "text"), [(0, "a\n\n\n\nb"), (1, "a\n\n\nb"), (3, "a\nb"), (4, "b"), (9, "b")])
def test_a_stretch_begins_in_the_row_it_is_told_and_in_the_last_one_at_most(row: int, text: str) -> None:
    assert strip_escapes(b"a\x1b[5;1Hb", 20, 5, y=row).text == text


def test_a_stretch_begins_in_the_first_row_where_none_is_told() -> None:
    assert strip_escapes(b"a\x1b[5;1Hb", 20, 5).text == "a\n\n\n\nb"


def test_titles_in_what_is_drawn_are_no_text_however_long_it_is() -> None:
    drawn = b"\x1b[A" + b"a" * FEED + b"\x1b]0;title\x07" + b"b" * 10 + b"\x1b]0;more\x07c"
    assert strip_escapes(drawn, FEED * 2, 5).text == "a" * FEED + "b" * 10 + "c"


def test_what_stands_in_the_alternate_screen_is_no_whole_output() -> None:
    assert strip_escapes(b"\x1b[?1049hhello", 20, 5) == ("hello", False)


@pytest.mark.night
def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    assert strip_escapes(b"x" * LONGEST, 80, 24) == ("x" * LONGEST, True)
    text, whole = strip_escapes(b"x" * LONGEST + b"y", 80, 24)
    assert (len(text), text[-1], whole) == (LONGEST, "x", False)


def test_what_scrolls_off_a_stretch_that_is_drawn_stays() -> None:
    rows = [str(number) for number in range(30)]
    assert strip_escapes(b"\x1b[A" + "\r\n".join(rows).encode(), 20, 5).text == "\n".join(rows)
