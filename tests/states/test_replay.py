"""The recorded scenarios judged again: how often the state of real programs is told right must not get worse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmuxctl.evidence import FULL, NONE, PS, WCHAN, Look
from tools.states import report, scenarios, score
from tools.states.recording import Recording, from_lines, load_all, thinned, to_lines

HERE = Path(__file__).resolve().parent
SCENARIOS = (HERE / "scenarios.yaml", HERE / "edges.yaml")
ENOUGH = 140


@pytest.fixture(scope="module")
def recordings() -> list[Recording]:
    return load_all(HERE / "recordings")


@pytest.mark.parametrize("level", [FULL, WCHAN, PS, NONE])
def test_states_are_told_as_well_as_ever(recordings: list[Recording], level: str) -> None:
    windows = [window for one in recordings for window in score.judged(one, level)]
    figures = score.figures(windows)
    broken = [text for text, holds in report.must_hold(level, figures) if not holds]
    wrong = "\n".join(report.failures(windows, verbose=False))
    assert not broken, f"{', '.join(broken)}\n{report.HEAD}\n{report.row(report.TITLES[level], figures)}\n{wrong}"


@pytest.mark.parametrize("level", [FULL, WCHAN])
def test_a_profile_never_makes_a_working_program_idle(recordings: list[Recording], level: str) -> None:
    written = scenarios.read(*SCENARIOS).scenarios
    found = [score.with_profile(one, written[one.scenario]) for one in recordings]
    assert {"bash", "python", "ssh"} <= {one.profile for one in found}
    windows = [window for one in found for window in score.judged(one, level)]
    false = [window for window in windows if any(sample.false_idle for sample in window.samples)]
    assert not false, "\n".join(report.failures(false, verbose=False))


def test_the_recordings_are_of_the_scenarios_there_are(recordings: list[Recording]) -> None:
    written = scenarios.read(*SCENARIOS).scenarios
    recorded = {one.scenario: one for one in recordings}
    assert len(recorded) >= ENOUGH
    assert not recorded.keys() - written.keys()
    for name, one in recorded.items():
        wanted = [step for step in scenarios.parse(written[name]).steps if isinstance(step, scenarios.Expect)]
        assert [window.truth.state for window in one.windows] == [step.state for step in wanted], name
        assert all(window.samples for window in score.scored(one, score.unchanged(1.0))), name


def test_a_recording_says_the_same_when_it_is_read_again(recordings: list[Recording]) -> None:
    for one in recordings:
        assert from_lines("\n".join(to_lines(one))) == one
        assert thinned(one).looks == one.looks


def test_waiting_is_false_only_while_the_program_works(recordings: list[Recording]) -> None:
    """Scored against judges that always say the same, the figures are known beforehand."""
    windows = [window for one in recordings for window in score.scored(one, score.unchanged(0.0))]
    figures = score.figures(windows)
    working = [one for one in windows if one.window.truth.state in ("working", "output")]
    assert figures.false_idle == figures.working == sum(len(one.samples) for one in working) > 0
    never = score.figures([one for each in recordings for one in score.scored(each, score.unchanged(1e9))])
    assert never.false_idle == 0
    assert never.right == sum(_working_or_exited(one, look) for one in windows for look in one.samples)


def _working_or_exited(one: score.Scored, sample: score.Sample) -> bool:
    look: Look = sample.look
    return look.dead if one.window.truth.state == "exited" else one.window.truth.state != "input"
