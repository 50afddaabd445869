"""Menus of programs that read keys: which rows are the options, where the mark stands, and what is no menu."""

from __future__ import annotations

import pytest
from reading.looks import look

from tmuxctl.reading.questions import dialogs, menus
from tmuxctl.reading.text import patterns
from tmuxctl.results import Asking


def found(screen: str, *, x: int = 0, y: int | None = None, visible: bool = False) -> Asking | None:
    """The menu on a screen whose cursor is hidden on the last row, unless told otherwise."""
    rows = screen.split("\n")
    at = (x, len(rows) - 1 if y is None else y)
    return dialogs.find_dialog(patterns.read_screen(look(screen, x=at[0], y=at[1])), at, visible=visible)


def menu(screen: str, **known: object) -> Asking:
    asked = found(screen, **known)  # type: ignore[arg-type]
    assert asked is not None
    return asked


def keys(asked: Asking) -> dict[str, str]:
    return {option.id: " ".join(option.keys) for option in asked.options}


def test_the_options_are_the_rows_around_the_marked_one_in_its_column() -> None:
    asked = menu("Which one?\n\n  red\n❯ green\n  blue\n    like the sky\n  other\n\nfooter")
    assert keys(asked) == {"red": "Up Enter", "green": "Enter", "blue": "Down Enter", "other": "Down Down Enter"}
    assert (asked.kind, asked.question, asked.default, asked.risk) == ("choice", "Which one?", "green", "unknown")


def test_a_menu_may_stand_in_a_box() -> None:
    asked = menu("╭──────────╮\n│ Go on?   │\n│ ● 1. Yes │\n│   2. No  │\n╰──────────╯")
    assert (asked.kind, asked.question, keys(asked)) == ("approval", "Go on?", {"allow": "Enter", "deny": "Down Enter"})


@pytest.mark.parametrize(
    "screen",
    [
        # one row is no list
        "Pick\n❯ red",
        "Pick\n❯ red\n\n  blue",
        # they do not begin in one column
        "Pick\n❯ red\n   blue",
        "Pick\n❯ red\n blue",
        # a common character marks only what is counted
        "Pick\n> red\n  blue",
        "Pick\n* 1. red\n  3. blue",
        "Pick\n* red\n  2. blue",
        # a description of many rows is none
        "Pick\n❯ red\n   a\n   b\n   c\n   d\n  blue",
        # rows that all begin with the same filled circle are paragraphs
        "● one\n● two",
    ],
)
def test_what_is_no_list_is_no_menu(screen: str) -> None:
    assert found(screen) is None


def test_a_common_character_marks_an_option_that_is_counted() -> None:
    assert keys(menu("Pick\n> 1. red\n  2. blue")) == {"1": "Enter", "2": "Down Enter"}
    assert keys(menu("Pick\n  1) red\n* 2) blue")) == {"1": "Up Enter", "2": "Enter"}
    three = menu("Pick\n❯ 1. red\n     a\n     b\n     c\n  2. blue")
    assert [option.label for option in three.options] == ["red", "blue"]


def test_a_row_behind_which_a_person_writes_is_no_menu() -> None:
    screen = "Pick\n❯ red\n  blue"
    assert found(screen, x=5, y=1, visible=True) is None
    assert found(screen, x=6, y=2, visible=True) is None
    assert keys(menu(screen, x=0, y=1, visible=True)) == {"red": "Enter", "blue": "Down Enter"}
    assert menu(screen, x=5, y=1) == menu(screen, x=4, y=1, visible=True)
    # where options are counted the cursor may stand behind another one
    counted = "Pick\n❯ 1. red\n  2. blue"
    assert found(counted, x=9, y=2, visible=True) == found(counted)
    low = "\n" * 30 + screen
    assert keys(menu(low, x=0, y=31, visible=True)) == {"red": "Enter", "blue": "Down Enter"}


def test_a_menu_stands_in_the_last_fifteen_rows() -> None:
    assert found("Pick\n❯ red\n  blue" + "\n." * 13) is not None
    assert found("Pick\n❯ red\n  blue" + "\n." * 14) is None


def test_a_circle_or_box_before_each_option_shows_which_one_is_chosen() -> None:
    filled = menu("Pick\n○ red\n● green\n○ blue")
    assert (keys(filled), filled.default) == ({"red": "Up Enter", "green": "Enter", "blue": "Down Enter"}, "green")
    # the mark shows by its colour only: the keys are not known
    hollow = menu("Pick\n◯ red\n◯ green")
    assert (hollow.question, hollow.options, hollow.default) == ("Pick", (), None)
    assert found("Pick\n◯ red\n  ◯ green") is None


def test_yes_and_no_beside_each_other_are_reached_by_left_and_right() -> None:
    asked = menu("Delete it?\n● Yes / ○ No")
    assert (asked.kind, asked.question, asked.default) == ("confirm", "Delete it?", "yes")
    assert keys(asked) == {"yes": "Enter", "no": "Right Enter"}
    other = menu("Delete it? ○ Yes / ● No\n\n\n")
    assert (other.question, other.default, keys(other)) == ("Delete it?", "no", {"yes": "Left Enter", "no": "Enter"})
    plain = menu("Really › no / yes")
    assert (plain.question, plain.default) == ("Really", None)
    assert keys(plain) == {"no": "Left Enter", "yes": "Right Enter"}
    assert menu("Go on?\n────\n  yes / no").question == "Go on?"
    assert found("Go on?\n  yes / yes") is None
    assert found("Go on?\n  yes / no\n.\n.\n.") is not None
    assert found("Go on?\n  yes / no\n.\n.\n.\n.") is None


def test_the_question_is_what_asks_above_the_list_and_what_follows_it() -> None:
    asked = menu("It reads the file.\nDo you want to remove it\nfor good\n────\n❯ Yes\n  No")
    assert (asked.kind, asked.question) == ("approval", "Do you want to remove it for good")
    assert (asked.default, asked.risk) == ("allow", "high")
    assert menu("rm -r build\nGo on?\n❯ Yes\n  No").risk == "high"
    assert menu("rm -r build\na\nb\nc\nGo on?\n❯ Yes\n  No").risk == "unknown"
    assert menu("Pick\na colour\n❯ red\n  blue").question == "a colour"
    assert menu("❯ red\n  blue").question == ""


def test_options_of_the_same_words_are_told_by_their_place() -> None:
    asked = menu("Pick\n❯ red\n  red\n  …")
    assert list(keys(asked)) == ["red", "red-2", "3"]


@pytest.mark.parametrize(
    ("question", "labels", "kind"),
    [
        ("Do you trust it?", ["Yes", "No"], "trust"),
        ("Pick", ["Trust it", "No"], "trust"),
        ("Pick", ["No", "Trust it"], "choice"),
        ("Pick", ["Yes, do", "Don't"], "approval"),
        ("Pick", ["Allow", "Reject"], "approval"),
        ("Pick", ["Allow", "Other"], "choice"),
        ("Pick", ["Other", "Cancel"], "choice"),
        ("Allow this?", ["Other", "Else"], "approval"),
        ("Pick", [], "choice"),
    ],
)
def test_what_is_decided_is_told_by_the_question_and_the_options(question: str, labels: list[str], kind: str) -> None:
    assert menus.classify_choice(question, labels) == kind


def test_below_a_field_to_search_in_the_list_is_chosen_from() -> None:
    screen = "? Which host\nweb\n❯ web1\n  web2"
    text = patterns.read_screen(look(screen, x=3, y=1))
    asked = menus.find_menu_below_cursor(text, (3, 1))
    assert asked is not None
    assert (asked.question, keys(asked)) == ("? Which host", {"web1": "Enter", "web2": "Down Enter"})
    same_row = patterns.read_screen(look("? Which host web\n❯ web1\n  web2", x=16, y=0))
    asked = menus.find_menu_below_cursor(same_row, (16, 0))
    assert asked is not None
    assert asked.question == "? Which host web"
    for other in ("Which host\nweb\n❯ web1\n  web2", "? Which host\n\nweb\n❯ web1\n  web2", "? Which host\nweb\nweb1"):
        rows = patterns.read_screen(look(other, x=3, y=2 if other.count("\n") == 4 else 1))
        assert menus.find_menu_below_cursor(rows, (3, rows.y)) is None
    assert menus.find_menu_below_cursor(patterns.read_screen(look("? Which", x=0, y=5)), (0, 5)) is None


# Buttons


def test_buttons_without_a_box_ask_what_stands_above_them() -> None:
    asked = menu("Save the changes?\n\n  <Yes>  <No>", y=0)
    assert (asked.kind, asked.question, asked.default) == ("approval", "Save the changes?", None)
    assert keys(asked) == {"yes": "Enter", "no": "Escape"}
    focused = menu("Save the changes?\n────\n  [ OK ]  [ Cancel ]", x=4, y=2, visible=True)
    assert (focused.kind, focused.question, focused.default) == ("choice", "Save the changes?", "ok")
    assert keys(focused) == {"ok": "Enter", "cancel": "Tab Enter"}
    above = "Save the changes?" + "\n." * 15 + "\n  <Yes>  <No>"
    assert menu(above, y=0).question == "."
    assert menu("  <Yes>  <No>", y=0).question == ""


def test_from_a_button_the_others_are_reached_forward_and_backward() -> None:
    box = "┌─────────────────────────┐\n│ Go on?                  │\n│ <Yes>   <No>   <Cancel> │\n└─────────────────────────┘"
    assert keys(menu(box, x=11, y=2)) == {"yes": "BTab Enter", "no": "Enter", "cancel": "Tab Enter"}
    # the cursor is on what stands before them, or cannot be seen
    assert keys(menu(box, x=3, y=1)) == {"yes": "Tab Enter", "no": "Tab Tab Enter", "cancel": "Tab Tab Tab Enter"}
    assert keys(menu(box, x=0, y=3)) == {"yes": "Enter", "no": "Escape", "cancel": "Escape"}


def box(*rows: str) -> str:
    """A box with buttons around these rows."""
    inner = (*rows, "<OK>  <Cancel>")
    return "\n".join(["┌" + "─" * 17 + "┐", *(f"│ {row:<15} │" for row in inner), "└" + "─" * 17 + "┘"])


def test_a_list_in_a_box_is_chosen_from_by_its_words() -> None:
    asked = menu(box("Pick one", "", "  Red one", "  Dark blue", ""), x=4, y=4)
    assert keys(asked) == {"red-one": "Up Enter", "dark-blue": "Enter", "cancel": "Tab Tab Enter"}
    assert (asked.kind, asked.question, asked.default) == ("choice", "Pick one", "dark-blue")
    tagged = menu(box("Allow this?", "", "  a  one", "  b  two", ""), x=4, y=3)
    assert keys(tagged) == {"a": "Enter", "b": "Down Enter", "cancel": "Tab Tab Enter"}
    assert (tagged.kind, tagged.default) == ("approval", "a")
    checked = menu(box("Pick one", "", "( ) red", "(*) blue", ""), x=6, y=3)
    assert keys(checked) == {"red": "Space Enter", "blue": "Down Space Enter", "cancel": "Tab Tab Enter"}
    assert checked.default == "blue"
    several = menu(box("Pick some", "", "[ ] red", "[*] blue", ""), x=6, y=3)
    assert list(keys(several)) == ["ok", "cancel"]
    # one row is no list, and a cursor that shows is in no list
    assert list(keys(menu(box("Pick one", "", "  red", ""), x=4, y=3))) == ["ok", "cancel"]
    assert list(keys(menu(box("Pick one", "", "  red", "  blue"), x=4, y=3, visible=True))) == ["ok", "cancel"]


def test_a_list_in_a_frame_of_its_own_is_chosen_from_its_beginning() -> None:
    framed = ("Pick one", "┌─────────┐", "│ red     │", "│ blue    │", "└─────────┘")
    asked = menu(box(*framed), x=3, y=6)
    assert keys(asked) == {"red": "Home Enter", "blue": "Home Down Enter", "cancel": "Tab Enter"}
    assert (asked.question, asked.default) == ("Pick one", None)
    assert keys(menu(box(*framed), x=9, y=6)) == {
        "red": "BTab Home Enter",
        "blue": "BTab Home Down Enter",
        "cancel": "Enter",
    }
    scrolled = (framed[0], "┌──(-)────┐", *framed[2:])
    assert list(keys(menu(box(*scrolled), x=3, y=6))) == ["ok", "cancel"]
    assert list(keys(menu(box(*framed), x=4, y=3))) == ["ok", "cancel"]


def test_a_field_in_a_box_takes_a_text() -> None:
    def field(*rows: str, hides: bool | None = None) -> tuple[str, str, bool]:
        text = patterns.read_screen(look(box(*rows), x=4, y=3))
        asked = dialogs.find_dialog(text, (4, 3), visible=True, hides=hides)
        assert asked is not None
        assert asked.options == ()
        return asked.kind, asked.question, asked.hidden

    assert field("Your name", "┌─────────┐", "│ me      │", "└─────────┘") == ("question", "Your name [me]", False)
    assert field("Your name", "", "me_________") == ("question", "Your name [me]", False)
    assert field("Password", "", "***________") == ("password", "Password", False)
    assert field("Password", "", "abc________") == ("question", "Password [abc]", False)
    assert field("Your name", "", "***________") == ("question", "Your name [***]", False)
    assert field("Your name", "", "___________", hides=True) == ("password", "Your name", True)
    assert field("Password", "", "***________", hides=False) == ("question", "Password [***]", False)


def test_a_box_ends_where_its_frame_does() -> None:
    rows = ["text", "│ Really?      │", "│ <Yes>   <No> │", "└──────────────┘"]
    assert menu("\n".join(rows), x=3, y=2).question == "Really?"
    parted = ["┌── Title ─────┐", "│ Really?      │", "├──────────────┤", *rows[2:]]
    assert menu("\n".join(parted), x=3, y=3).question == "Really?"
    foreign = ["┌── Other ─────┐", "text", "│              │", *rows[2:]]
    assert menu("\n".join(foreign), x=3, y=3).question == ""
    untold = ["┌── Title ─────┐", "│              │", *rows[2:]]
    assert menu("\n".join(untold), x=3, y=2).question == "Title"
