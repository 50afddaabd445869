"""What the pace of the output says, in numbers: since when it is quiet, how often it comes, whether it goes on."""

from __future__ import annotations

import pytest
from reading.looks import look

from tmuxctl.evidence import Look
from tmuxctl.reading.evidence.activity import Activity, count_updates_while, list_output_moments, measure_activity

STEP = 0.05


def watched(*moments: float, until: float, begin: float = 0.0) -> list[Look]:
    """Looks every 50 ms at a program that prints at these moments."""
    looks = []
    for number in range(round((until - begin) / STEP) + 1):
        at = round(begin + number * STEP, 3)
        printed = [moment for moment in moments if moment <= at]
        looks.append(look(at=at, journal=100 + len(printed), quiet=at - printed[-1] if printed else None))
    return looks


def measured(*moments: float, until: float, begin: float = 0.0) -> Activity:
    return measure_activity(watched(*moments, until=until, begin=begin))


def every(seconds: float, begin: float, count: int) -> list[float]:
    return [begin + seconds * number for number in range(count)]


# Since when


def test_the_quiet_is_what_the_newest_look_says_and_never_less_than_none() -> None:
    assert measure_activity([look(at=5.0, quiet=3.0)]).quiet == 3.0
    assert measure_activity([look(at=5.0, quiet=-0.1)]).quiet == 0.0
    assert measure_activity([look(at=5.0, quiet=3.0)]).quiet_known


def test_without_any_output_it_is_quiet_since_the_first_look_at_least() -> None:
    found = measured(until=4.0, begin=1.0)
    assert (found.quiet, found.quiet_known, found.history, found.began, found.rate) == (3.0, False, 3.0, None, 0.0)


def test_where_no_look_says_when_output_came_it_came_between_two_looks() -> None:
    looks = [look(at=at, journal=journal, quiet=None) for at, journal in ((1.0, 5), (2.0, 5), (3.0, 6), (5.0, 6))]
    assert list_output_moments(looks) == [2.5]
    found = measure_activity(looks)
    assert (found.quiet, found.quiet_known, found.history) == (2.5, True, 4.0)


def test_a_look_says_itself_when_the_output_came_that_it_saw_first() -> None:
    looks = [
        look(at=1.0, journal=5, quiet=0.5),
        look(at=2.0, journal=6, quiet=0.25),
        look(at=3.0, journal=6, quiet=1.25),
    ]
    assert list_output_moments(looks) == [0.5, 1.75]
    # it is measured again a little later, and no output comes before the one before it
    late = [*looks[:2], look(at=3.0, journal=7, quiet=1.5)]
    assert list_output_moments(late) == [0.5, 1.75, 1.75]
    unknown = [looks[0]._replace(quiet=None), *looks[1:]]
    assert list_output_moments(unknown) == [1.75]


def test_output_from_before_the_first_look_is_known_as_well() -> None:
    found = measure_activity([look(at=5.0, quiet=3.0), look(at=6.0, quiet=4.0)])
    assert found.history == 4.0
    assert found.quiet == 4.0


@pytest.mark.parametrize("changed", [{"screen": "b"}, {"x": 2}, {"y": 1}, {"title": "t"}])
def test_a_pane_without_a_journal_shows_output_by_what_changed_on_it(changed: dict[str, object]) -> None:
    before = look("a", at=1.0, journal=0, quiet=None)
    after = before._replace(at=2.0)._replace(**changed)  # type: ignore[arg-type]
    assert list_output_moments([before, after]) == [1.5]
    assert list_output_moments([before, before._replace(at=2.0)]) == []
    # with one, its end counts alone
    assert list_output_moments([before._replace(journal=7), after._replace(journal=7)]) == []
    assert list_output_moments([before, before._replace(at=2.0, journal=7)]) == [1.5]
    assert list_output_moments([before._replace(journal=7), before._replace(at=2.0)]) == [1.5]


# How often


def test_the_rate_is_that_of_the_last_two_seconds() -> None:
    # no silence was seen before them, and they are known for longer than that
    steady = measured(*every(0.5, 0.1, 12), until=6.0)
    assert (steady.rate, steady.began, steady.animated) == (2.0, None, False)
    assert measured(*every(0.25, 0.1, 24), until=6.0).rate == 4.0
    assert measured(*every(0.25, 0.1, 24), until=6.0).animated
    assert measured(*every(0.25, 0.1, 8), until=6.0).rate == 0.0


def test_outputs_within_a_tenth_of_a_second_are_one_update() -> None:
    pairs = [moment for start in every(0.5, 0.1, 12) for moment in (start, start + 0.05)]
    assert measured(*pairs, until=6.0).rate == 2.0
    tenths = [moment for start in every(0.5, 0.1, 12) for moment in (start, start + 0.11)]
    assert measured(*tenths, until=6.0).rate == 4.0


def test_after_silence_four_updates_show_the_rate() -> None:
    three = measured(2.0, 2.2, 2.4, until=2.45)
    assert three.rate == 1.5
    assert three.began == pytest.approx(0.45)
    four = measured(2.0, 2.2, 2.4, 2.6, until=2.65)
    assert four.rate == pytest.approx(5.0)
    assert four.began == pytest.approx(0.65)
    # it was silent for too short a time before
    assert measured(0.1, 1.5, 1.7, 1.9, 2.1, until=2.15).rate == 2.0
    assert measured(0.1, 1.6, 1.8, 2.0, 2.2, until=2.25).rate == pytest.approx(5.0)


def test_what_was_seen_for_less_than_two_seconds_began_with_its_first_update() -> None:
    found = measured(0.5, 0.7, 0.9, 1.1, until=1.15)
    assert found.rate == pytest.approx(5.0)
    assert found.began == pytest.approx(0.65)
    assert measured(0.5, 0.7, 0.9, 1.1, until=2.0).began is None


def test_a_program_is_at_the_beginning_for_a_moment_after_silence() -> None:
    assert measured(3.0, until=3.2).beginning
    assert measured(3.0, 3.3, 3.5, until=3.65).beginning
    # it stopped, or its pace is known
    assert measured(3.0, until=3.25).beginning
    assert not measured(3.0, until=3.35).beginning
    assert not measured(3.0, 3.3, 3.5, 3.7, until=3.7).beginning
    assert not measured(until=3.0).beginning


def test_a_burst_is_three_updates_within_a_moment() -> None:
    assert measured(3.0, 3.2, 3.4, until=3.55).burst
    assert not measured(3.0, 3.2, 3.4, until=3.65).burst
    assert not measured(3.2, 3.4, until=3.6).burst
    assert measured(3.0, 3.2, 3.4, until=3.45).animated


# Whether it goes on


@pytest.mark.parametrize(
    ("moments", "until", "pause"),
    [
        # three times the usual gap between two, from 0.3 to 1.5 seconds
        (every(0.12, 3.0, 16), 4.85, 0.36),
        (every(0.2, 3.0, 10), 4.85, 0.6),
        (every(0.4, 3.0, 5), 4.65, 1.2),
        (every(0.7, 3.0, 4), 5.15, 1.5),
        ([3.0], 3.1, 0.3),
        # one in ten may take longer
        ([*every(0.15, 3.0, 12), 5.2], 5.25, 0.45),
        ([3.0, 3.2, 4.2], 4.25, 1.5),
        # what is more than three seconds ago does not count
        ([*every(0.7, 0.1, 3), *every(0.2, 5.0, 3)], 5.45, 0.6),
        ([0.1, 0.8, 1.0, 1.2, 1.4], 3.85, 0.6),
    ],
)
def test_an_animation_may_pause_for_three_times_its_usual_gap(moments: list[float], until: float, pause: float) -> None:
    assert measured(*moments, until=until).pause == pytest.approx(pause)


def test_what_was_animated_is_not_once_it_is_quiet_for_longer_than_its_pause() -> None:
    moments = every(0.2, 3.0, 10)
    assert measured(*moments, until=5.35).animated
    assert not measured(*moments, until=5.45).animated


@pytest.mark.parametrize(
    ("moments", "until", "paced"),
    [
        ([1.0, 2.0, 3.0], 3.1, True),
        ([0.5, 1.0, 2.0, 3.0], 3.1, True),
        ([1.0, 1.6, 3.2], 3.3, True),
        ([1.0, 1.5, 2.5], 2.6, False),
        ([1.0, 2.0, 3.7], 3.8, False),
        ([2.0, 3.0], 3.1, False),
        # the next is overdue after 1.6 times the longer gap
        ([1.0, 2.0, 3.0], 4.55, True),
        ([1.0, 2.0, 3.0], 4.65, False),
        ([1.0, 1.7, 3.0], 5.0, True),
        # outputs right behind each other are one update
        ([1.0, 1.1, 1.2, 2.0, 2.1, 3.0, 3.1, 3.2], 3.3, True),
        ([1.0, 1.15, 2.0, 3.0, 3.15], 3.3, False),
    ],
)
def test_three_updates_about_a_second_apart_are_a_pace(moments: list[float], until: float, paced: bool) -> None:
    assert measured(*moments, until=until).paced is paced


def test_updates_count_where_the_program_waited_before_and_after_them() -> None:
    looks = watched(*every(0.4, 0.2, 12), until=5.0)
    assert count_updates_while(looks, lambda _: True) == 5
    assert count_updates_while(looks, lambda _: False) == 0
    assert count_updates_while(looks, lambda seen: seen.at < 4.0) == 3
    # the look at 4.2 saw the output first
    assert count_updates_while(looks, lambda seen: not 4.18 < seen.at < 4.22) == 4
    assert count_updates_while(watched(*every(0.4, 0.2, 12), until=1.0), lambda _: True) == 3


@pytest.mark.parametrize(("period", "animated"), [(0.1, True), (0.2, True), (0.5, False), (1.0, False)])
@pytest.mark.parametrize("between", [0.33, 0.39])
def test_looks_that_are_too_rare_to_see_each_update_tell_its_pace_all_the_same(
    period: float, between: float, animated: bool
) -> None:
    looks = [
        look(at=at, journal=100 + int(at / period), quiet=at % period)
        for at in (20.0 + between * number for number in range(12))
    ]
    assert measure_activity(looks).animated is animated
    # one that found nothing new says that there was nothing for so long
    looks[-2] = look(at=looks[-2].at, journal=looks[-3].journal, quiet=looks[-3].quiet or 0.0 + between)
    assert not measure_activity(looks).animated
