"""When a limit is over, out of a program's own words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tmuxctl.reading.questions.usage_limits import parse_moment

NOW = datetime(2026, 11, 22, 10, 30, 15, tzinfo=UTC)
"""A Sunday."""


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("3pm", "2026-11-22T15:00:00Z"),
        ("at 3:05 PM.", "2026-11-22T15:05:00Z"),
        ("9am", "2026-11-23T09:00:00Z"),
        ("12am", "2026-11-23T00:00:00Z"),
        ("12:15 p.m.", "2026-11-22T12:15:00Z"),
        ("15:05", "2026-11-22T15:05:00Z"),
        ("3pm (Europe/Berlin)", "2026-11-22T14:00:00Z"),
        ("3am (America/Los_Angeles)", "2026-11-22T11:00:00Z"),
        ("3:00 PM PST", "2026-11-22T23:00:00Z"),
        ("10:30 AM UTC", "2026-11-23T10:30:00Z"),
        ("Mon 5pm", "2026-11-23T17:00:00Z"),
        ("Sunday at 9am", "2026-11-29T09:00:00Z"),
        ("tomorrow at 3pm", "2026-11-23T15:00:00Z"),
        ("Nov 24, 3pm", "2026-11-24T15:00:00Z"),
        ("Nov 24th, 2026 3:05 PM", "2026-11-24T15:05:00Z"),
        ("Jan 2 at 1am (UTC)", "2027-01-02T01:00:00Z"),
        ("24 Nov, 15:00", "2026-11-24T15:00:00Z"),
        ("in 2 h 5 min", "2026-11-22T12:35:15Z"),
        ("2h5m", "2026-11-22T12:35:15Z"),
        ("1 day, 3 hours and 2 minutes", "2026-11-23T13:32:15Z"),
        ("45 seconds", "2026-11-22T10:31:00Z"),
        ("20.5s", "2026-11-22T10:30:35Z"),
        ("2026-11-22T15:00:00Z", "2026-11-22T15:00:00Z"),
        ("2026-11-22 15:00:00.123+02:00", "2026-11-22T13:00:00Z"),
        ("2026-11-22 15:00", "2026-11-22T15:00:00Z"),
        ("2026-11-22T15:00 UTC", "2026-11-22T15:00:00Z"),
        ("2026-11-22T15:00 (Europe/Berlin)", "2026-11-22T14:00:00Z"),
        ("1795359600", "2026-11-22T15:00:00Z"),
        # a day alone is its beginning
        ("Nov 24", "2026-11-24T00:00:00Z"),
        ("Monday", "2026-11-23T00:00:00Z"),
        ("Sunday", "2026-11-29T00:00:00Z"),
        ("Nov 22", "2027-11-22T00:00:00Z"),
        ("Sunday at 11am", "2026-11-22T11:00:00Z"),
        # a moment that is over is told as it is
        ("Nov 22, 2026 9am", "2026-11-22T09:00:00Z"),
        ("10:30 AM", "2026-11-23T10:30:00Z"),
        ("10:31 AM", "2026-11-22T10:31:00Z"),
        ("12pm", "2026-11-22T12:00:00Z"),
        ("23:59", "2026-11-22T23:59:00Z"),
        ("1d 2h 3m 4s", "2026-11-23T12:33:19Z"),
    ],
)
def test_the_moment_is_told_in_one_form_whatever_words_name_it(text: str, moment: str) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "next month",
        "25pm",
        "13pm",
        "24:61",
        "Feb 31, 3pm",
        "2026-13-45T99:99",
        "v2.1.197",
        "limit 5",
        "at noon-ish",
        "in 9999999 days",
        "9999-12-31T23:59:59-10:00",
        "Jan 1, 0001 1am JST",
        "0pm",
        "24:00",
        "x" * 200 + "3pm",
    ],
)
def test_what_names_no_moment_is_none(text: str) -> None:
    assert parse_moment(text, NOW) is None


def test_a_time_without_a_zone_is_that_of_the_one_who_asks() -> None:
    here = NOW.astimezone(timezone(timedelta(hours=2)))
    assert parse_moment("3pm", here) == "2026-11-22T13:00:00Z"


def test_a_zone_that_nobody_knows_is_that_of_the_one_who_asks() -> None:
    assert parse_moment("3pm (Middle/Earth)", NOW) == "2026-11-22T15:00:00Z"
