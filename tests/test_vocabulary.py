"""The words of results: each is declared once, and stands wherever they are listed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tmuxctl import vocabulary
from tmuxctl.model import Session, Status
from tmuxctl.operations import to_json
from tmuxctl.profile_files.schema import ASKING_KINDS, PROMPT_KINDS
from tmuxctl.reading.state.judging import RULES
from tmuxctl.reading.state.wanted import INPUT, PROMPT
from tmuxctl.results import Answer, Asking, Decided, Event, Explained, Wait
from tmuxctl.vocabulary import Detail, EvidenceKind, InputKind, State, StateFilter, Word

ROOT = Path(__file__).resolve().parent.parent
WORDS = [
    kind for kind in vars(vocabulary).values() if isinstance(kind, type) and issubclass(kind, Word) and kind is not Word
]
ATTRIBUTES = {"kind", "detail", "by", "matched", "means", "state"}
"""What holds a word: it is compared with a member, never with a text, of which no checker knows whether it is one."""


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
def test_each_word_says_what_it_means(kind: type[Word]) -> None:
    assert all(word.meaning and str(word) == word.value and f"{word}" == word.value for word in kind)
    assert kind.of(next(iter(kind)).value) is next(iter(kind))
    assert kind.of("no such word") is None
    assert kind.of(None) is None


def rows(page: str, heading: str) -> dict[str, str]:
    """The first two columns of the table below a heading."""
    text = (ROOT / page).read_text().partition(heading)[2]
    found = re.findall(r"^\| `([\w-]+)`[^|]*\|(.*)\|$", text.partition("\n## ")[0], re.MULTILINE)
    return dict(found)


def spelled(text: str) -> set[str]:
    return set(re.findall(r"[`\w-]+", text.replace("`", " ")))


def test_the_page_on_states_has_every_word_of_a_state() -> None:
    told = rows("docs/states.md", "# States")
    assert list(told) == [state.value for state in State]
    assert all(state.meaning.partition(",")[0] in told[state].replace("`", "") for state in State)
    assert {kind.value for kind in InputKind if kind.traits.asks} <= spelled(told["asking"])
    assert {kind.value for kind in InputKind if not kind.traits.asks} <= spelled(told["idle"])
    known = spelled(told["busy"] + told["idle"])
    assert {detail.value for detail in Detail if detail.traits.rules != ("errors",)} <= known


def test_the_page_on_states_has_every_kind_of_evidence() -> None:
    told = rows("docs/states.md", "## Evidence, in the order of the rules")
    assert {kind for kind in EvidenceKind if kind is not EvidenceKind.HOOK} == set(told)
    assert {kind for kind, _ in RULES} <= set(EvidenceKind)


def test_the_page_on_profiles_has_every_kind_of_a_rule() -> None:
    page = (ROOT / "docs/profiles.md").read_text()
    line = next(row for row in page.splitlines() if row.startswith("| `rule.kind`"))
    assert f"of a question: `{' '.join(ASKING_KINDS)}`" in line
    assert f"of a prompt: `{' '.join(PROMPT_KINDS)}`" in line


def test_a_state_or_what_is_wanted_can_be_listed() -> None:
    assert get_args(StateFilter) == (*(state.value for state in State), PROMPT, INPUT)


def compared(path: Path) -> Iterator[str]:
    """Where an attribute that holds a word is compared with a text."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        names = {one.attr for one in sides if isinstance(one, ast.Attribute)}
        texts = [one.value for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant)]
        words = {text for text in texts if isinstance(text, str) and any(kind.of(text) for kind in WORDS)}
        if names & ATTRIBUTES and words:
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.night
def test_a_word_is_compared_with_its_member() -> None:
    found = [place for path in (ROOT / "tmuxctl").rglob("*.py") for place in compared(path)]
    assert not found, "compare with the member of tmuxctl.vocabulary:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("result", "keys"),
    [
        (Session("s", "1"), "name id incarnation machine state kind detail until by confidence asking wants profile"),
        (Wait("s", None, "w"), "session matched why text groups state kind detail until by confidence asking wants"),
        (Answer("s", "a", Status()), "session answer state kind detail until by confidence asking turn submitted"),
        (
            Decided("s", Asking(InputKind.QUESTION, "1", "?"), None, Status()),
            "session asked option state kind detail by confidence asking exit_status timed_out",
        ),
        (
            Event("t", "s", Status()),
            "time session state kind detail by confidence why cursor asking wants exit_status signal",
        ),
        (
            Explained("s", Status(), "w", None, "full", ()),
            "session state kind detail by confidence why profile proc reasons asking answer evidence",
        ),
    ],
    ids=lambda found: type(found).__name__,
)
def test_a_status_is_told_as_the_results_own(result: Session, keys: str) -> None:
    assert list(to_json(result))[: len(keys.split())] == keys.split()
    assert (result.kind, result.status.kind) == (None, None)


def test_where_nobody_looked_a_wait_tells_no_state_and_the_others_unknown() -> None:
    assert to_json(Wait("s", None, "w"))["state"] is None
    assert to_json(Event("t", "s", Status()))["state"] == "unknown"
