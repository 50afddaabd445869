"""The error in which a turn ended: found among the rows, in the program's own words, and cut out of an answer."""

from __future__ import annotations

import pytest

from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.answers.failure import LONGEST, find_failure, remove_failure

AGENT = Profile(
    name="agent",
    errors=(
        Rule("api", r"^● API Error", detail="failed"),
        Rule("limit", r"^● Limit reached", detail="limited"),
        Rule("again", r"^● Overloaded", detail="retrying"),
    ),
)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (["● I look.", "● API Error: 500", "  more", "", "later"], ("API Error: 500\nmore", 1, 3)),
        (["● API Error: 500", "", " ", ""], ("API Error: 500", 0, 1)),
        (["● Overloaded"], None),
        (["● Limit reached"], None),
        (["", ""], None),
        ([], None),
    ],
)
def test_an_error_is_told_in_the_words_of_the_program(rows: list[str], found: tuple[str, int, int] | None) -> None:
    assert find_failure(rows, AGENT) == found


def test_a_limit_is_an_error_only_where_the_state_says_that_it_is_used_up() -> None:
    assert find_failure(["● Limit reached"], AGENT, limited=True) == ("Limit reached", 0, 1)


def test_no_rows_hold_an_error_even_where_a_rule_fits_an_empty_one() -> None:
    anything = Profile(name="any", errors=(Rule("any", "^", detail="failed"),))
    assert find_failure(["", ""], anything) is None
    assert find_failure(["x"], anything) == ("x", 0, 1)


def test_no_rules_find_no_error() -> None:
    assert find_failure(["● API Error"], Profile(name="none")) is None


def test_of_a_long_error_the_first_rows_are_told() -> None:
    found = find_failure(["● API Error", *map(str, range(100))], AGENT)
    assert found
    assert (found.text.count("\n"), found.row, found.end) == (LONGEST - 1, 0, LONGEST)


@pytest.mark.parametrize(
    ("answer", "error", "left"),
    [
        ("one\n\n● API Error: 500 now\nbehind", "API Error: 500 now", "one"),
        ("one\nAPI Error:  500 and more", "API Error: 500", "one"),
        ("one\nAPI Error: 5", "API Error: 500 and a long text", "one\nAPI Error: 5"),
        ("one\nAPI Error: 500", "API Error: 500 and a long text", "one"),
        ("API", "API", ""),
        ("\none\n\ntwo\n", "API Error: 500", "one\n\ntwo"),
        ("[API Error: 500]", "API Error: 500", "[API Error: 500]"),
        ("\n  X one X  \n\nAPI Error: 500", "API Error: 500", "  X one X  "),
    ],
)
def test_an_answer_is_told_without_the_error_and_what_is_behind_it(answer: str, error: str, left: str) -> None:
    assert remove_failure(answer, error) == left


def test_a_rule_for_an_error_may_look_at_the_last_row_alone_and_none_has_a_title_to_look_at() -> None:
    last = Profile(name="last", errors=(Rule("api", "^Error", "cursor-line", detail="failed"),))
    assert find_failure(["Error: 1", "text", "Error: 2", ""], last) == ("Error: 2", 2, 3)
    assert find_failure(["Error: 1", "text"], last) is None
    titled = Profile(name="titled", errors=(Rule("api", "^Error", title="x", detail="failed"),))
    assert find_failure(["Error: 1"], titled) is None
