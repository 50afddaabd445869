"""Agent programs that tmuxctl was not made with: screens of the real ones, judged with nothing but a YAML of some lines.

The profiles in tests/screens/unseen were written from docs/profiles.md, by looking at the programs, and say no more than it
tells of. They are a check of what rules and fields can say: what does not hold here is mended in the reading or the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tmuxctl.control.observation.explaining import evidence_of_screen
from tmuxctl.model import Confidence, State
from tmuxctl.profile_files import library, schema
from tmuxctl.profile_files.schema import ScreenTest
from tmuxctl.profile_files.yaml_tree import parse_yaml
from tmuxctl.program_profile import Profile
from tmuxctl.reading.state.judging import Verdict, judge
from tmuxctl.terminal.input.keys import tmux_keys

UNSEEN = Path(__file__).resolve().parents[1] / "screens" / "unseen"

SHORT = 20
"""Lines in which a profile has to say what it knows."""


def cases() -> Iterator[tuple[str, ScreenTest]]:
    for file in sorted(UNSEEN.glob("*/expected.yaml")):
        for case in schema.NodeReader(str(file), None).tests(parse_yaml(file.read_bytes(), str(file))):
            yield file.parent.name, case


ALL = [pytest.param(name, case, id=f"{name}-{case.file}") for name, case in cases()]

NOT_IDLE = [pytest.param(name, case, id=f"{name}-{case.file}") for name, case in cases() if case.state != "idle"]


def known(name: str) -> Profile:
    return library.load(str(UNSEEN / f"{name}.yaml"), keys=tmux_keys)


def judged(name: str, case: ScreenTest, profile: Profile | None, *, visible: bool = True) -> Verdict:
    assert case.file
    seen = evidence_of_screen((UNSEEN / name / case.file).read_text(), title=case.title, cursor=case.cursor)
    looks = tuple(look._replace(visible=visible) for look in seen.looks)
    return judge(seen._replace(looks=looks, program=name), profile)


@pytest.mark.parametrize("visible", [True, False], ids=["cursor", "hidden"])
@pytest.mark.parametrize(("name", "case"), ALL)
def test_a_screen_of_a_program_never_seen_is_taken_for_what_it_is(name: str, case: ScreenTest, visible: bool) -> None:
    verdict = judged(name, case, known(name), visible=visible)
    assert (verdict.state.value, verdict.kind if case.kind else None) == (case.state, case.kind), verdict
    assert case.detail is None or verdict.detail == case.detail, verdict
    if case.asking:
        assert verdict.asking is not None
        assert verdict.asking.options[0].id == "allow", verdict.asking
        assert "deny" in [option.id for option in verdict.asking.options], verdict.asking
        assert not (verdict.asking.default or "").startswith("always"), verdict.asking


@pytest.mark.parametrize(("name", "case"), NOT_IDLE)
def test_without_its_profile_none_is_surely_idle_that_is_not(name: str, case: ScreenTest) -> None:
    verdict = judged(name, case, None)
    assert verdict.state is not State.IDLE or verdict.confidence is Confidence.GUESS, verdict


@pytest.mark.parametrize("name", sorted(path.stem for path in UNSEEN.glob("*.yaml")))
def test_twenty_lines_say_it(name: str) -> None:
    lines = (UNSEEN / f"{name}.yaml").read_text().splitlines()
    # a program's own extension is in its own language
    assert sum(not line.startswith(" " * 6) for line in lines) <= SHORT
