"""The conversations of examples/ do what they say, with the real programs, and wait for conditions alone."""

from __future__ import annotations

import re

import pytest

from tools import examples

ALL = [pytest.param(one, id=one.name) for one in examples.examples()]


@pytest.mark.timeout(320)
@pytest.mark.parametrize("one", ALL)
def test_an_example_does_what_it_says(one: examples.Example):
    if lacks := one.lacks():
        pytest.skip(lacks)
    played = examples.play(one)
    if played is None:
        pytest.skip(f"no {one.service} can be started here")
    assert played.ok, f"status {played.status}, left {played.left!r}\n{played.output}"


@pytest.mark.parametrize("one", ALL)
def test_an_example_waits_for_conditions_never_for_a_time(one: examples.Example):
    driving = [line for line in one.path.read_text().splitlines() if not line.lstrip().startswith("#")]
    assert not [line for line in driving if re.search(r"\bsleep\b|--settle", line)]
