"""Runs whose runner is killed at random and resumed: nothing is lost, and nothing is given twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fleet.kills import KilledRun

RUNS = int(os.environ.get("TEAM_KILLS", "25"))


@pytest.mark.night
@pytest.mark.parametrize("seed", range(1, RUNS + 1))
def test_a_run_whose_runner_is_killed_goes_on_as_if_it_had_not_been(place: Path, seed: int):
    assert KilledRun(place, seed).play() == []
