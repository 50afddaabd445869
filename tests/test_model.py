"""What words become: durations as people write them, names in the order in which people count."""

from __future__ import annotations

import pytest

from tmuxctl.errors import Usage
from tmuxctl.model import natural_key, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5), ("30", 30.0), ("1.5", 1.5), ("30s", 30.0), ("5m", 300.0), ("2h", 7200.0), ("7d", 604800.0),
        ("5min", 300.0), ("5mins", 300.0), ("1hour", 3600.0), ("2 hours", 7200.0), ("10 sec", 10.0), ("1hr", 3600.0),
        ("1h30m", 5400.0), ("1h 30min", 5400.0), ("1m30s", 90.0), ("1d12h", 129600.0), ("1s500ms", 1.5),
        ("none", None), (None, None), (2, 2.0), (0, 0.0),
    ],
)  # fmt: skip
def test_a_duration_is_read_as_people_write_it(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "soon", "h", "30m1h", "1h1h", "1h30", "-5", "1e3", "5 parsecs", "1h30mx", "3\n", True, -1, [], "٣s"],
)
def test_anything_else_is_refused_with_examples(text):
    with pytest.raises(Usage) as error:
        parse_seconds(text)
    assert error.value.message.endswith("is not a valid duration")
    assert "1h30m" in error.value.hint


def test_names_stand_in_the_order_in_which_people_count():
    names = ["ask10", "ask2", "Ask3", "ask1", "a", "2b", "10b", "ask02", "web-9", "web-10", "9"]
    assert sorted(names, key=natural_key) == [
        "2b", "9", "10b", "a", "ask1", "ask02", "ask2", "Ask3", "ask10", "web-9", "web-10",
    ]  # fmt: skip


def test_names_of_which_one_begins_another_are_sorted_too():
    assert sorted(["x2", "x", "x10", "x-2", "2", "x2a", "X", "1x"], key=natural_key) == [
        "1x",
        "2",
        "X",
        "x",
        "x2",
        "x2a",
        "x10",
        "x-2",
    ]
