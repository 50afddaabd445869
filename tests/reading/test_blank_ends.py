"""A pattern that ends in blanks matches where a row ends, too: no blanks are kept there."""

from __future__ import annotations

import re

import pytest

from tmuxctl.reading.text.patterns import let_blanks_end_rows


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (">>> ", ">>>", ">>>"),
        (">>> ", ">>> x", ">>> "),
        (">>> ", ">>>x", None),
        ("a  ", "a x", None),
        ("a  ", "a  x", "a  "),
        ("a  ", "a\nb", "a"),
        ("no|yes ", "yes", "yes"),
        ("no|yes ", "no", "no"),
        ("a\\ ", "a", None),
        ("a\\\\ ", "a\\", "a\\"),
        ("(?x) a ", "a", "a"),
        ("(?ix)a b ", "AB", "AB"),
        ("a", "a", "a"),
        (" ", "x", None),
    ],
)
def test_blanks_at_the_end_of_a_pattern(pattern: str, text: str, found: str | None) -> None:
    match = re.search(let_blanks_end_rows(pattern), text, re.MULTILINE)
    assert (match and match[0]) == found
