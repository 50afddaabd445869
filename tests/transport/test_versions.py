"""Versions of tmux: how they are read, and what is done differently for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmuxctl.transport import versions

LIMITS = Path(__file__).resolve().parents[2] / "docs" / "limits.md"


@pytest.mark.parametrize(
    ("version", "number", "tried"),
    [
        ("3.2", (3, 2), True),
        ("3.3a", (3, 3), True),
        ("3.7", (3, 7), True),
        ("3.7c", (3, 7), True),
        ("next-3.7", (3, 7), False),
        ("next-3.8", (3, 8), False),
        ("3.10", (3, 10), False),
        ("4.0-rc1", (4, 0), False),
        ("2.6", (2, 6), False),
        ("openbsd-7.9", None, False),
        ("master", None, False),
        ("", None, False),
    ],
)
def test_a_version_is_read_as_tmux_tells_it(version: str, number: tuple[int, int] | None, tried: bool) -> None:
    assert (versions.parse_version(version), versions.is_tried(version)) == (number, tried)


def test_only_servers_that_would_alter_a_text_are_told_not_to() -> None:
    for old in ("3.2", "3.2a", "3.3a", "3.4", "3.5a", "3.6b", "next-3.6"):
        assert "-S" not in versions.exact_paste_flags(old), old
    for new in ("3.7", "3.7c", "next-3.8", "3.10", "4.0", "master", ""):
        assert "-S" in versions.exact_paste_flags(new), new


def test_the_page_of_limits_names_every_version_that_was_tried() -> None:
    assert f"{', '.join(versions.TRIED[:-1])} and {versions.TRIED[-1]}" in LIMITS.read_text()
