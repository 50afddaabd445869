"""When a limit is over: the moment that a program names in its own words, as ISO-8601.

Programs name it in many ways: `3pm`, `3:05 PM (Europe/Berlin)`, `Mon 5pm`, `Nov 24th, 2026 3:05 PM`, `in 2 h 5 min`, an ISO
time, seconds since 1970. What cannot be understood is None, never a guess.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tmuxctl.reading.text.lazy_pattern import Pattern

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

LENGTH = 200
"""Characters that are looked at."""

ISO = Pattern(
    r"\b(?P<date>\d{4}-\d{2}-\d{2})[T ](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:\.\d{1,9})? ?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?(?!\w)"
)
EPOCH = Pattern(r"(?<![\w.])(?P<seconds>1\d{9}|2\d{9})(?![\w.])")
PART = (
    r"(?P<count>\d{1,7}(?:\.\d{1,6})?) ?(?P<unit>d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)"
    r"(?![A-Za-z])"
)
SPAN = Pattern(rf"(?<![\w.:])(?:{PART})", re.IGNORECASE)
NEXT = Pattern(rf"[\s,]{{0,3}}(?:and )?{PART}", re.IGNORECASE)
"""The parts of a stretch of time: `2 h`, `5 minutes`, `20.5s`."""

CLOCK = Pattern(
    r"(?<![\w:.])(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::\d{2})?)? ?(?P<half>[ap])\.?m\b"
    r"|(?<![\w:.])(?P<hour24>\d{1,2}):(?P<minute24>\d{2})(?!\d)",
    re.IGNORECASE,
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DATE = Pattern(
    rf"\b(?P<month>{'|'.join(MONTHS)})[a-z]* (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>\d{{4}})\b)?",
    re.IGNORECASE,
)
DATE_FIRST = Pattern(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? (?P<month>{'|'.join(MONTHS)})[a-z]*(?:,? (?P<year>\d{{4}})\b)?",
    re.IGNORECASE,
)
WEEKDAY = Pattern(
    r"\b(?P<name>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)\b",
    re.IGNORECASE,
)
TOMORROW = Pattern(r"\btomorrow\b", re.IGNORECASE)

PLACE = Pattern(r"\b(?P<name>[A-Z][A-Za-z]+/[A-Z][A-Za-z_/+-]+)\b")
"""A time zone by its place: `Europe/Berlin`."""

ZONES = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "BST": 60, "WEST": 60, "CET": 60, "CEST": 120, "EET": 120, "EEST": 180,
    "EST": -300, "EDT": -240, "CST": -360, "CDT": -300, "MST": -420, "MDT": -360, "PST": -480, "PDT": -420,
    "JST": 540, "KST": 540, "AEST": 600, "AEDT": 660,
}  # fmt: skip
"""Minutes that these are ahead of UTC."""

ABBREVIATION = Pattern(rf"\b(?P<name>{'|'.join(ZONES)})\b")

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def parse_moment(text: str, now: datetime) -> str | None:
    """The moment these words name, seen from `now` (with a time zone, which counts where the words tell none): ISO-8601 in
    UTC, None if they name none. A time without a day is the next one; a moment that is over counts as such."""
    text = text[:LENGTH]
    from datetime import UTC

    try:
        found = _parse_absolute(text, now) or _parse_span(text, now) or _parse_clock_time(text, now)
        return None if found is None else found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        # before the first year, or after the last that there can be
        return None


def _parse_absolute(text: str, now: datetime) -> datetime | None:
    from datetime import UTC, datetime

    if iso := ISO.search(text):
        zone = (iso["zone"] or "").replace("UTC", "Z")
        try:
            found = datetime.fromisoformat(f"{iso['date']}T{iso['time']}{zone}")
        except ValueError:
            return None
        return found if found.tzinfo else found.replace(tzinfo=_find_zone(text) or now.tzinfo)
    if epoch := EPOCH.search(text):
        return datetime.fromtimestamp(int(epoch["seconds"]), UTC)
    return None


def _parse_span(text: str, now: datetime) -> datetime | None:
    """`in 2 h 5 min`: the parts that follow one another, the first that there are."""
    from datetime import timedelta

    part = SPAN.search(text)
    if part is None:
        return None
    seconds = 0.0
    while part is not None:
        seconds += float(part["count"]) * UNITS[part["unit"][0].lower()]
        text = text[part.end() :]
        part = NEXT.match(text)
    return now + timedelta(seconds=seconds)


def _parse_clock_time(text: str, now: datetime) -> datetime | None:
    """`3pm`, `15:05`, with or without a day and a time zone."""
    from datetime import timedelta

    found = CLOCK.search(text)
    local_now = now.astimezone(_find_zone(text) or now.tzinfo)
    time = _read_hour_and_minute(found) if found else None
    if time is None and (found or not (DATE.search(text) or WEEKDAY.search(text))):
        return None
    hour, minute = time or (0, 0)
    try:
        at = local_now.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if date := DATE.search(text) or DATE_FIRST.search(text):
            return _move_to_date(at, date, local_now)
    except ValueError:
        return None
    if TOMORROW.search(text):
        return at + timedelta(days=1)
    if weekday := WEEKDAY.search(text):
        days = (DAYS.index(weekday["name"][:3].lower()) - local_now.weekday()) % 7
        at += timedelta(days=days)
        return at if at > local_now else at + timedelta(days=7)
    return at if at > local_now else at + timedelta(days=1)


def _read_hour_and_minute(found: re.Match[str]) -> tuple[int, int] | None:
    """Hour and minute, None if a clock of twelve hours has none such; one of 24 hours may have none such either."""
    if found["half"]:
        hour, minute = int(found["hour"]), int(found["minute"] or 0)
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].lower() == "p" else 0)
    else:
        hour, minute = int(found["hour24"]), int(found["minute24"])
    return hour, minute


def _move_to_date(at: datetime, date: re.Match[str], local_now: datetime) -> datetime:
    """The time on that day; without a year it is the next such day."""
    month = MONTHS.index(date["month"][:3].lower()) + 1
    found = at.replace(year=int(date["year"] or local_now.year), month=month, day=int(date["day"]))
    return found if date["year"] or found > local_now else found.replace(year=found.year + 1)


def _find_zone(text: str) -> tzinfo | None:
    from datetime import timedelta, timezone

    if place := PLACE.search(text):
        from zoneinfo import ZoneInfo

        try:
            return ZoneInfo(place["name"])
        except (OSError, ValueError, KeyError):
            return None
    if name := ABBREVIATION.search(text):
        return timezone(timedelta(minutes=ZONES[name["name"]]))
    return None
