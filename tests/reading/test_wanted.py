"""What a program that waits wants: the next command, or input to go on with what it does."""

from __future__ import annotations

import pytest

from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.state.situation import Verdict
from tmuxctl.reading.state.wanted import find_wanted, list_row_prompts, shows_prompt
from tmuxctl.vocabulary import Confidence, InputKind, State


def verdict(state: State, kind: InputKind | None = None) -> Verdict:
    return Verdict(state, kind, None, None, Confidence.SURE, "")


@pytest.mark.parametrize(
    ("told", "in_a_shell", "alone"),
    [
        (verdict(State.BUSY), None, None),
        (verdict(State.UNKNOWN), None, None),
        (verdict(State.EXITED), None, None),
        (verdict(State.ASKING, InputKind.CONFIRM), "input", "input"),
        (verdict(State.IDLE, InputKind.PROMPT), "prompt", "prompt"),
        (verdict(State.IDLE, InputKind.LINE), "input", "input"),
        (verdict(State.IDLE), "input", "input"),
        (verdict(State.IDLE, InputKind.EDITOR), "input", "prompt"),
        (verdict(State.IDLE, InputKind.TUI), "input", "prompt"),
    ],
)
def test_a_full_screen_wants_the_next_command_only_where_no_prompt_is_behind_it(
    told: Verdict, in_a_shell: str | None, alone: str | None
) -> None:
    assert (find_wanted(told, has_prompt=True), find_wanted(told, has_prompt=False)) == (in_a_shell, alone)


SHOP = Profile(
    name="shop",
    prompt=(
        Rule("ready", r"^shop> ?$", "cursor-line"),
        Rule("last", r"^more> ?$", "last-line", InputKind.PROMPT),
        Rule("line", r"^line> ?$", "cursor-line", InputKind.LINE),
        Rule("anywhere", r"^screen> ?$", "screen"),
    ),
)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (["shop> "], True),
        (["one", "shop> buy a; b"], True),
        (["more>"], True),
        (["line> ", "screen> ", "a shop> "], False),
        (["shop>buy"], False),
        (["", "  "], False),
        ([], False),
    ],
)
def test_a_prompt_is_found_in_a_row_of_its_own_with_what_was_typed_behind_it(rows: list[str], shown: bool) -> None:
    assert shows_prompt(rows, list_row_prompts(SHOP)) is shown


def test_of_a_row_with_many_ends_of_prompts_the_first_eight_count() -> None:
    anywhere = list_row_prompts(Profile(name="shop", prompt=(Rule("ready", r"shop> ?$", "cursor-line"),)))
    assert shows_prompt(["! " * 7 + "shop> buy"], anywhere)
    assert not shows_prompt(["! " * 8 + "shop> buy"], anywhere)
