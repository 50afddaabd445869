"""What of stored events is told: each once, in the order of the host, and what is missing. Pure: no gateway runs."""

from __future__ import annotations

import itertools
import json

import pytest

from tmuxctl.errors import Denied, TmuxctlError, Unreachable, Usage
from tmuxctl.gateway.events.reading import EventOrder, parse_since
from tmuxctl.gateway.events.stored import (
    EventContent,
    EventPlace,
    pack_event,
    parse_content,
    unpack_event,
    write_content,
)
from tmuxctl.model import State, Status
from tmuxctl.results import Event

NOW = "2026-11-27T12:00:00.000Z"


def event_of(session: str, why: str = "", time: str = NOW) -> Event:
    return Event(time=time, session=session, status=Status(State.IDLE), why=why)


def content_of(position: int, chain: str = "0" * 8) -> EventContent:
    return EventContent(time=NOW, event=event_of("sh"), chain=chain, position=position)


def place_of(number: int, life: int = 1, series: str = "0" * 16) -> EventPlace:
    return EventPlace(series, life, number)


def test_each_is_told_once_and_none_that_is_older():
    order = EventOrder(complete=True)
    taken = [order.take(place_of(one), content_of(one)) for one in (1, 2, 2, 1, 3, 2, 3)]
    assert taken == [0, 0, None, None, 0, None, None]


def test_what_is_missing_is_counted():
    order = EventOrder(complete=True)
    assert order.take(place_of(3), content_of(3)) == 2
    assert order.take(place_of(4), content_of(4)) == 0
    assert order.take(place_of(9), content_of(7)) == 2
    # events for other clients have numbers too, and are not missing
    assert order.take(place_of(50), content_of(8)) == 0


def test_nothing_is_known_of_what_was_before_the_first_where_it_begins_later():
    order = EventOrder(complete=False)
    assert order.take(place_of(30), content_of(30)) == 0
    assert order.take(place_of(32), content_of(32)) == 1
    assert order.take(place_of(33), content_of(5, "1" * 8)) == 0


def test_another_process_counts_from_1():
    order = EventOrder(complete=True)
    assert order.take(place_of(9), content_of(1)) == 0
    assert order.take(place_of(9, life=2), content_of(2)) == 1
    assert order.take(place_of(10, life=1), content_of(2)) is None
    assert order.take(place_of(1, life=1, series="1" * 16), content_of(1)) == 0
    assert order.take(place_of(99, life=7), content_of(9)) is None


def test_what_a_gap_tells_is_not_missing_again():
    order = EventOrder(complete=True)
    assert order.take(place_of(1), content_of(1)) == 0
    assert order.take(place_of(8), EventContent(time=NOW, lost=7)) == 7
    assert order.take(place_of(9), content_of(8)) == 0
    assert order.take(place_of(11), content_of(10)) == 1


def test_every_order_of_stored_events_tells_a_rising_part_of_them():
    for shuffled in itertools.permutations(range(1, 6)):
        order = EventOrder(complete=True)
        told = [one for one in shuffled if order.take(place_of(one), content_of(one)) is not None]
        assert told == sorted(set(told))


def test_content_comes_back_as_it_was():
    for content in (content_of(3), EventContent(time=NOW, lost=4)):
        assert parse_content(write_content(content)) == content


@pytest.mark.parametrize(
    "change",
    [
        {"position": 0},
        {"position": -1},
        {"position": 1 << 64},
        {"position": True},
        {"chain": "\x1b[2J"},
        {"time": "now"},
        {"time": f"{NOW}\n"},
        {"event": None},
        {"event": {"session": "web1/sh"}},
        {"event": {"session": "sh; kill-server"}},
        {"event": {"time": "\n\n\n"}},
        {"lost": -1},
    ],
)
def test_a_host_that_says_what_makes_no_sense_is_not_believed(change: dict[str, object]):
    data = json.loads(write_content(content_of(3)))
    for name, value in change.items():
        data[name] = {**data[name], **value} if isinstance(value, dict) else value
    with pytest.raises(Unreachable):
        parse_content(json.dumps(data).encode())


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, b"1" * 100_000])
def test_content_that_is_none_is_refused(data: bytes):
    with pytest.raises(TmuxctlError):
        parse_content(data)


def test_no_control_characters_come_out_of_it():
    made = EventContent(time=NOW, event=event_of("sh", why="a\x1b]52;c;eA==\x07b"), chain="0" * 8, position=1)
    found = parse_content(write_content(made)).event
    assert found
    assert found.why == "a]52;c;eA==b"


def test_the_place_of_an_event_can_be_read_without_a_key():
    place = place_of(77, 3, "0123456789abcdef")
    assert unpack_event(pack_event(place, b"sealed")) == (place, b"sealed")
    for wrong in (b"", b"\x01" * 20, b"\x02" + pack_event(place, b"sealed")[1:]):
        with pytest.raises(Denied):
            unpack_event(wrong)


def test_since_is_a_number_or_a_duration():
    assert (parse_since("1042"), parse_since("10m"), parse_since("1h30m")) == (1042, 600.0, 5400.0)
    assert isinstance(parse_since("7"), int)
    for wrong in ("", "-1", "x", "none", "1" * 30, "²"):
        with pytest.raises(Usage):
            parse_since(wrong)
