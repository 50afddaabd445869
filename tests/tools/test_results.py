"""The results of the live suite: kept turn by turn, so that a run that was broken off goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

from tools.test_truth import turn

from tools.agents.results import Part, Results

PART = Part("claude", "newest", "2.1.330", "hooks")


def test_a_second_start_knows_what_the_first_one_played(tmp_path: Path) -> None:
    first = Results(tmp_path)
    first.take({"turn": turn(id="echo-0", version="2.1.330", broken=("late",)).line()}, PART)
    first.take({"turn": turn(id="interrupt-0-next", version="2.1.330").line()}, PART)
    first.take({"left": ["12 node"]}, PART)
    second = Results(tmp_path)
    assert second.done(PART) == ["echo-0", "interrupt-0"]
    assert [one.broken for one in second.turns] == [("late",), ()]
    assert second.left == {("claude", "2.1.330", "hooks"): ["12 node"]}


def test_a_newer_version_of_a_program_is_played_from_the_start(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.take({"turn": turn(id="echo-0", version="2.1.330").line()}, PART)
    assert results.done(PART._replace(number="2.1.331")) == []
    assert results.done(PART._replace(mode="screen")) == []


def test_a_line_that_was_cut_off_is_a_turn_that_was_not_played(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for name in ("echo-0", "slow-0"):
        results.take({"turn": turn(id=name, version="2.1.330").line()}, PART)
    results.path.write_text(results.path.read_text()[:-40])
    again = Results(tmp_path)
    assert again.done(PART) == ["echo-0"]
    again.take({"turn": turn(id="slow-0", version="2.1.330").line()}, PART)
    assert Results(tmp_path).done(PART) == ["echo-0", "slow-0"]


def test_a_player_that_failed_may_do_better_the_next_time(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.take({"failed": "it does not become ready"}, PART)
    assert len(results.failed) == 1
    assert Results(tmp_path).failed == []
