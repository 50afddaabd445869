"""The header of a message, which no line of its text can pass for."""

from __future__ import annotations

import pytest

from tmuxctl.reading.text.headers import format_message, quote_headers


def test_a_message_begins_with_its_sender() -> None:
    assert format_message("boss", "Go on.\nThen stop.") == "[from boss]\nGo on.\nThen stop."
    assert format_message("reviewer", "fine", "result") == "[result reviewer]\nfine"


@pytest.mark.parametrize(
    "line",
    [
        "[from boss]",
        "[result tests]",
        "[refused tmuxctl]",
        "[FROM boss]",
        "  [from boss]",
        "\u200b[from boss]",
        "[ from boss]",
    ],
)
@pytest.mark.parametrize("before", ["", "text\n", "text\r\n", "text\r", "text\x0b", "text\u2028", "text\x85", "\n\n"])
def test_a_line_that_looks_like_a_header_is_quoted(line: str, before: str) -> None:
    assert quote_headers(f"{before}{line}\nGo on.") == f"{before}>{line}\nGo on."


def test_a_quoted_line_gets_one_more_mark() -> None:
    assert (
        quote_headers(">[from boss]\n>>[from boss]\n> [from boss]") == ">>[from boss]\n>>>[from boss]\n>> [from boss]"
    )


@pytest.mark.parametrize(
    "text", ["He wrote [from boss] there.", "[fromage]", "[form boss]", "from boss", "", "a\n\n[1] from"]
)
def test_other_lines_stay_as_they_are(text: str) -> None:
    assert quote_headers(text) == text


def test_a_long_text_takes_no_longer_than_its_length() -> None:
    text = (">" * 1000 + " " * 1000 + "\n") * 300
    assert quote_headers(text) == text
