"""What every match of a pattern holds, and raw output that can be searched for it without drawing."""

from __future__ import annotations

import random
import re

import pytest

from tmuxctl.reading.text.literals import required_texts, stays_in_line
from tmuxctl.reading.text.raw_output import text_of


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        ("MARK", [{"MARK"}]),
        ("^MARK$", [{"MARK"}]),
        (r"here\.it is\?", [{"here.it is?"}]),
        ("ab+c", [{"ab"}, {"c"}]),
        ("abc*d", [{"ab"}, {"d"}]),
        ("ab{2}c", [{"a"}, {"c"}]),
        ("a{b", [{"a{b"}]),
        ("yes|no", [{"yes", "no"}]),
        (r"(yes|no)\?", [{"yes", "no"}, {"?"}]),
        ("(?:yes|no)?x", [{"x"}]),
        ("(?P<one>yes)+x", [{"yes"}, {"x"}]),
        (r"error: (\w+) in [^]a]+ at", [{"error: "}, {" in "}, {" at"}]),
        ("yes|[0-9]+", []),
        (r"\d+$", []),
        (r"(a)\1", []),
        ("(?=yes)", []),
        ("(?i)yes", []),
        (r"\x41", []),
        ("a\tb", [{"a"}, {"b"}]),
        ("", []),
    ],
)
def test_what_every_match_holds_is_read_off_a_pattern(pattern: str, needs: list[set[str]]) -> None:
    assert sorted(map(sorted, required_texts(pattern))) == sorted(map(sorted, needs))


PIECES = [
    "a",
    "b",
    "ab",
    ".",
    "a*",
    "b+",
    "a?",
    "[ab]",
    r"\w",
    "|",
    "(",
    ")",
    "(?:",
    "+",
    "?",
    "{2}",
    "{0,1}",
    r"\.",
    "^",
    "$",
]


def test_every_match_holds_what_its_pattern_requires() -> None:
    chance, tried = random.Random(1), 0
    while tried < 2000:
        pattern = "".join(chance.choices(PIECES, k=chance.randint(1, 8)))
        try:
            compiled = re.compile(pattern, re.MULTILINE)
        except re.error:
            continue
        tried += 1
        text = "".join(chance.choices("aabb.\n", k=30))
        for found in compiled.finditer(text):
            for texts in required_texts(pattern):
                assert any(required in found[0] for required in texts), (pattern, found[0])
            assert not stays_in_line(pattern) or "\n" not in found[0], (pattern, found[0])


@pytest.mark.parametrize(
    "pattern", [r"a\s", "a\nb", "[^a]", r"\W", r"\D", "(?s).", r"[\t-~]", r"\x0a", "(?<=a)b", r"\Aa"]
)
def test_what_may_match_beyond_a_line_is_known(pattern: str) -> None:
    assert not stays_in_line(pattern)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"some words\r\nmore", b"some words\r\nmore"),
        (b"\x1b[1;31mred\x1b[0m\x1b[K\r\n\x1b[3", b"red\r\n"),
        (b"one\r\r\ntwo\r", b"one\r\ntwo"),
        ("größer 漢字".encode(), "größer 漢字".encode()),
        ("größer".encode()[:4], "größer".encode()[:4]),
        (b"a\tb\r\n", b"a\tb\r\n"),
    ],
)
def test_output_that_only_goes_on_is_text(output: bytes, text: bytes) -> None:
    assert text_of(output, 20) == text


@pytest.mark.parametrize(
    "output",
    [
        b"10%\r20%",
        b"a\nb",
        b"a\b",
        b"a\x1b[2Kb",
        b"a\x1b[Ab",
        b"\x1b]0;title\x07",
        b"a\x0eq",
        b"bell\x07",
        b"a" * 20 + b"\tb\r\n",
        "e\u0301".encode(),
        "a\u200bb".encode(),
        "a\x85b".encode(),
        "👍".encode(),
    ],
)
def test_output_that_has_to_be_drawn_is_no_text(output: bytes) -> None:
    assert text_of(output, 20) is None
