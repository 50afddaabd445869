"""Boxes with buttons, as whiptail and dialog showed them: what they ask, and the keys that answer from where the focus is."""

from __future__ import annotations

from typing import Any

import pytest
from reading.looks import KEYS, kernel, program, recorded, steady, thread

from tmuxctl.model import State
from tmuxctl.reading.state.judging import judge
from tmuxctl.results import Asking

DRAWS = kernel(program("setup", thread("epoll_wait")), tty=KEYS)


def asked(name: str) -> Asking:
    verdict = judge(recorded(name))
    assert verdict.state is State.ASKING, verdict
    assert verdict.asking is not None
    return verdict.asking


def drawn(screen: str, **known: Any) -> Asking:
    found = judge(steady(screen, DRAWS, **known)).asking
    assert found is not None
    return found


def keys(found: Asking) -> dict[str, str]:
    return {one.id: " ".join(one.keys) for one in found.options}


def labels(found: Asking) -> list[str]:
    return [one.label for one in found.options]


@pytest.mark.parametrize("program", ["whiptail", "dialog"])
def test_yes_and_no_are_reached_from_the_one_that_has_the_focus(program: str) -> None:
    first = asked(f"{program}-yesno")
    assert (first.kind, first.question, first.default) == ("approval", "Line one line two, is it?", "yes")
    assert keys(first) == {"yes": "Enter", "no": "Tab Enter"}
    second = asked(f"{program}-yesno-no")
    assert (second.question, second.default, second.risk) == ("Format the disk?", "no", "high")
    assert keys(second) == {"yes": "BTab Enter", "no": "Enter"}


def test_a_menu_is_chosen_from_by_its_tags() -> None:
    near = asked("whiptail-menu")
    assert (near.kind, near.question, near.default) == ("choice", "Pick one", "a")
    assert keys(near) == {"a": "Enter", "b": "Down Enter", "c": "Down Down Enter", "cancel": "Tab Tab Enter"}
    assert labels(near) == ["Apple", "Banana", "Cherry", "Cancel"]


def test_where_the_marked_row_does_not_show_the_keys_begin_at_the_first_one() -> None:
    far = asked("dialog-menu")
    assert (far.kind, far.question, far.default) == ("choice", "Pick one", None)
    assert keys(far) == {"a": "Home Enter", "b": "Home Down Enter", "c": "Home Down Down Enter", "cancel": "Tab Enter"}
    cancel = asked("dialog-menu-cancel")
    assert keys(cancel) == {
        "a": "BTab Home Enter",
        "b": "BTab Home Down Enter",
        "c": "BTab Home Down Down Enter",
        "cancel": "Enter",
    }


def test_a_list_of_which_the_focus_does_not_show_has_its_buttons_only() -> None:
    assert keys(asked("whiptail-menu-cancel")) == {"ok": "BTab Enter", "cancel": "Enter"}
    assert keys(asked("dialog-menu-scrolled")) == {"ok": "Enter", "cancel": "Tab Enter"}


def test_a_list_that_was_scrolled_is_answered_from_the_row_that_shows_as_marked() -> None:
    found = asked("whiptail-menu-scrolled")
    assert keys(found) == {"tag4": "Up Up Enter", "tag5": "Up Enter", "tag6": "Enter", "cancel": "Tab Tab Enter"}
    assert labels(found) == ["Item 4", "Item 5", "Item 6", "Cancel"]


@pytest.mark.parametrize("program", ["whiptail", "dialog"])
def test_a_menu_without_tags_goes_by_its_words(program: str) -> None:
    found = asked(f"{program}-menu-words")
    assert found.question == "Pick one of these many things on two rows"
    assert [one.id for one in found.options] == ["apple-tree", "banana", "cherry-pie", "cancel"]
    assert labels(found) == ["Apple tree", "Banana", "Cherry pie", "Cancel"]


def test_of_a_list_that_takes_one_the_row_is_checked_first() -> None:
    near, far = asked("whiptail-radio"), asked("dialog-radio")
    assert keys(near) == {"a": "Space Enter", "b": "Down Space Enter", "cancel": "Tab Tab Enter"}
    assert keys(far) == {"a": "Home Space Enter", "b": "Home Down Space Enter", "cancel": "Tab Enter"}
    assert (near.default, far.default) == ("b", "b")
    assert labels(near) == labels(far) == ["Apple", "Banana", "Cancel"]


@pytest.mark.parametrize("program", ["whiptail", "dialog"])
def test_a_list_that_takes_several_is_confirmed_and_not_chosen_from(program: str) -> None:
    found = asked(f"{program}-check")
    assert (found.question, list(keys(found))) == ("Which ones?", ["ok", "cancel"])


@pytest.mark.parametrize("program", ["whiptail", "dialog"])
def test_a_field_takes_any_text_behind_the_one_in_it(program: str) -> None:
    found = asked(f"{program}-input")
    assert (found.kind, found.question, found.options) == ("question", "Your name [preset]", ())


@pytest.mark.parametrize("program", ["whiptail", "dialog"])
def test_a_field_that_hides_what_is_typed_is_a_password(program: str) -> None:
    found = asked(f"{program}-password")
    assert (found.kind, found.question, found.options) == ("password", "The secret word", ())


@pytest.mark.parametrize("program", ["whiptail", "dialog"])
def test_a_message_is_only_confirmed(program: str) -> None:
    found = asked(f"{program}-message")
    assert found.question.startswith("All is done")
    assert (keys(found), found.default) == ({"ok": "Enter"}, "ok")


def test_buttons_may_have_words_of_their_own() -> None:
    found = asked("whiptail-own-words")
    assert (found.question, keys(found)) == ("Now?", {"install": "Enter", "skip-it": "Tab Enter"})


@pytest.mark.parametrize("program", ["whiptail", "dialog"])
def test_wide_letters_do_not_move_the_frame(program: str) -> None:
    found = asked(f"{program}-wide")
    assert (found.question, labels(found)) == ("選んで下さい", ["林檎", "バナナ", "Cancel"])


def test_the_title_stands_for_a_question_that_is_missing() -> None:
    box = "┌──┤ Go on? ├───┐\n│               │\n│ <Yes>   <No>  │\n└───────────────┘"
    assert drawn(box, x=3, y=2, visible=False).question == "Go on?"


def test_a_box_drawn_with_plain_letters_is_one() -> None:
    box = "+--- Title ----+\n| Go on?       |\n+--------------+\n| <Yes>   <No> |\n+--------------+"
    found = drawn(box, x=3, y=3)
    assert (found.question, found.default) == ("Go on?", "yes")


def test_the_rows_of_another_window_beside_it_are_no_part_of_a_box() -> None:
    box = "│ old text  ┌─────────────┐\n│ <Back>    │ Go on?      │\n│           │ <Yes>  <No> │\n└────────── └─────────────┘"
    assert drawn(box, x=15, y=2, visible=False).question == "Go on?"


@pytest.mark.parametrize(
    "row", ["│ <Select> < Exit > < Load > │", "│ <div>                      │", "│ see <Alpha> and <Beta>     │"]
)
def test_what_only_looks_like_buttons_is_none(row: str) -> None:
    box = f"┌────────────────────────────┐\n│ Settings                   │\n{row}\n└────────────────────────────┘"
    assert judge(steady(box, DRAWS, x=3, y=2, visible=False)).state is State.IDLE
