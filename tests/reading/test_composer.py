"""The place a text goes to: whether it is empty, whether a text stands in it, and whether it still does."""

from __future__ import annotations

import pytest
from reading.looks import look

from tmuxctl.evidence import Look
from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.answers import input_box

PROFILE = Profile(name="agent", prompt=(Rule("input", r"^❯(?: |$)"),))
BOXED = Profile(name="boxed", prompt=(Rule("input", r"^│ > "),))
CHAT = Profile(name="chat", prompt=(Rule("input", r"^[a-z]*> $"),))

UNSIGNED = Profile(name="unsigned")

RULE = "─" * 20


def drawn(*rows: str, x: int | None = None, y: int | None = None) -> Look:
    """A composer between two rules with these rows and the cursor behind them, an answer above and a footer below."""
    above = ["● An answer", "", RULE]
    return look(
        "\n".join([*above, *rows, RULE, "  ? for shortcuts"]),
        x=len(rows[-1]) if x is None else x,
        y=len(above) + len(rows) - 1 if y is None else y,
    )


@pytest.mark.parametrize(
    ("rows", "x", "empty"),
    [
        (("❯ ",), 2, True),
        # blanks at the end of a row are not kept
        (("❯",), 2, True),
        (("❯ text",), 6, False),
        # a hint stands behind the cursor
        (("❯ Ask me anything",), 2, True),
        (("❯ one", "  two"), 5, False),
        # the cursor on a new line of it
        (("❯ one", ""), 2, False),
        (("❯ [Pasted text #1 +9 lines]",), 28, False),
    ],
)
def test_a_composer_is_empty_if_nothing_stands_left_of_the_cursor(rows: tuple[str, ...], x: int, empty: bool) -> None:
    assert input_box.is_empty(drawn(*rows, x=x), PROFILE) is empty


def test_without_a_prompt_nobody_knows() -> None:
    assert input_box.is_empty(look("● An answer\n  Run this?\n  1. Yes"), PROFILE) is None
    assert input_box.is_empty(look("❯ "), Profile(name="none")) is None


def test_a_hidden_cursor_counts_where_the_program_writes() -> None:
    assert input_box.is_empty(drawn("❯ ", x=2)._replace(visible=False), PROFILE) is True
    assert input_box.is_empty(drawn("❯ text", x=6)._replace(visible=False), PROFILE) is False
    assert input_box.is_empty(drawn("❯ one", "  two", x=5)._replace(visible=False), PROFILE) is False
    assert input_box.is_empty(drawn("❯ text", x=0, y=5)._replace(visible=False), PROFILE) is None


def test_only_a_prompt_above_the_cursor_is_that_of_an_input_box() -> None:
    above = look("❯ one\n  two\n  three", x=7, y=2)
    assert input_box.is_empty(above, PROFILE) is False
    assert input_box.is_empty(above._replace(y=1, x=5), PROFILE) is False
    assert input_box.is_empty(look("● An answer\n\n❯", x=3, y=0), PROFILE) is None
    assert input_box.is_empty(look("● An answer\n❯", x=3, y=0), PROFILE) is None
    # the rows below the last text are not kept
    assert input_box.is_empty(look("❯ one", x=2, y=2), PROFILE) is False


def test_a_composer_may_stand_in_a_box() -> None:
    assert input_box.is_empty(look("╭───╮\n│ > \n╰───╯", x=4, y=1), BOXED) is True
    assert input_box.is_empty(look("╭───╮\n│ > text │\n╰───╯", x=8, y=1), BOXED) is False


def test_a_prompt_of_a_pattern_that_ends_with_its_row_is_known_with_text_behind_it() -> None:
    assert input_box.is_empty(look("ask> "), CHAT) is True


SHOWN = {
    "a line": ("hello", ("❯ hello",), 7),
    "lines": ("first\nsecond", ("❯ first", "  second"), 8),
    "wrapped in a word": ("a long word that goes on", ("❯ a long word th", "  at goes on"), 12),
    "wide": ("日本語 👩", ("❯ 日本語 👩",), 11),
    "blanks at the end": ("hello   ", ("❯ hello",), 10),
    "a letter": ("x", ("❯ x",), 3),
    "a blank line at its end": ("hello\n\n", ("❯ hello",), 7),
}


@pytest.mark.parametrize(("text", "rows", "x"), SHOWN.values(), ids=SHOWN)
def test_a_text_shows_if_the_cursor_stands_behind_its_end(text: str, rows: tuple[str, ...], x: int) -> None:
    assert input_box.shows_text(drawn(*rows, x=x), text.encode(), PROFILE) is True
    assert input_box.shows_text(drawn("❯ "), text.encode(), PROFILE) is False
    assert input_box.shows_text(drawn("❯ and another one"), text.encode(), PROFILE) is False
    # something else stands behind it
    assert input_box.shows_text(drawn(*rows, "  more"), text.encode(), PROFILE) is False


def test_the_beginning_of_a_text_does_not_show_it() -> None:
    assert input_box.shows_text(drawn("❯ the first words"), b"the first words of many", PROFILE) is False


PARTS = {
    "the end": ("say hello and more", ("❯ and more",)),
    "the beginning": ("say hello and more", ("❯ say hello",)),
    "the last line": ("say hello\n!rm notes", ("❯ !rm notes",)),
    "behind a sign of its own": ("say hello\n!rm notes", ("! rm notes",)),
    "the last lines": ("one\ntwo\nthree", ("❯ two", "  three")),
}


@pytest.mark.parametrize(("text", "rows"), PARTS.values(), ids=PARTS)
def test_a_part_of_a_text_is_not_the_text(text: str, rows: tuple[str, ...]) -> None:
    seen = drawn(*rows)
    assert input_box.shows_text(seen, text.encode(), PROFILE) is False
    assert input_box.shows_part_of_text(seen, text.encode(), PROFILE) is True


def test_what_stands_in_the_place_of_a_text_is_no_part_of_it() -> None:
    for row in ("❯ [Pasted text #1 +9 lines]", "❯ ", "❯ something else"):
        assert input_box.shows_part_of_text(drawn(row), b"say hello and more", PROFILE) is False
    assert input_box.shows_part_of_text(drawn("❯ say hello"), b"say hello", PROFILE) is False


def test_of_a_text_with_more_rows_than_are_shown_the_last_are_enough() -> None:
    text = "\n".join(f"line {number}" for number in range(40))
    rows = [f"  line {number}" for number in range(30, 40)]
    assert input_box.shows_text(drawn(*rows), text.encode(), PROFILE) is True
    assert input_box.shows_text(drawn(*rows[-5:]), text.encode(), PROFILE) is True
    assert input_box.shows_text(drawn(*rows[-4:]), text.encode(), PROFILE) is False


def test_the_frame_of_a_box_is_no_part_of_a_text() -> None:
    seen = look("╭──────╮\n│ > one │\n│   two │\n╰──────╯", x=7, y=2)
    assert input_box.shows_text(seen, b"one\ntwo", BOXED) is True


def test_without_a_sign_a_text_shows_where_all_of_it_stands_above_the_cursor() -> None:
    assert input_box.shows_text(look("hello"), b"hello", UNSIGNED) is True
    assert input_box.shows_text(look("hel\nlo"), b"hello", UNSIGNED) is True
    assert input_box.shows_text(look("lo"), b"hello", UNSIGNED) is False
    assert input_box.shows_part_of_text(look("lo"), b"hello", UNSIGNED) is True
    assert input_box.shows_part_of_text(look("hello"), b"hello", UNSIGNED) is False
    assert input_box.shows_part_of_text(look("other"), b"hello", UNSIGNED) is False


@pytest.mark.parametrize("tmux", [None, (3, 3), (3, 4), (3, 6)])
def test_a_text_shows_however_the_version_of_tmux_draws_it(tmux: tuple[int, int] | None) -> None:
    for rows in (("❯ a 🇩🇪 b",), ("❯ a 🇩🇪", "  b")):
        seen = drawn(*rows, x=20)._replace(tmux=tmux)
        assert input_box.shows_text(seen, "a 🇩🇪 b".encode(), PROFILE) is True
    family = "👩\u200d👩\u200d👧"
    seen = drawn(f"❯ {family}", x=20)._replace(tmux=(3, 3))
    assert input_box.shows_text(seen, f"{family}\u200d👦".encode(), PROFILE) is True


def test_rows_below_a_prompt_are_a_part_of_a_text_as_they_stand() -> None:
    assert input_box.shows_part_of_text(drawn("❯ one", "two"), b"one\ntwo three", PROFILE) is True


def test_an_empty_text_never_shows() -> None:
    assert input_box.shows_text(drawn("❯ "), b"", PROFILE) is False
    assert input_box.shows_text(drawn("❯ "), b" \n", PROFILE) is False


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [
        (("❯ hello",), drawn("❯ hello"), True),
        # Enter made a new line
        (("❯ hello",), drawn("❯ hello", "", x=2), True),
        (("❯ one", "  two"), drawn("❯ one", "  two", "", x=2), True),
        (("❯ [Pasted text #1 +9 lines]",), drawn("❯ [Pasted text #1 +9 lines]", "", x=2), True),
        (("❯ hello",), drawn("❯ "), False),
        # it was sent: the echo stands further up
        (("❯ hello",), look(f"❯ hello\n\n* Working…\n\n{RULE}\n❯ \n{RULE}", x=2, y=5), False),
        # nothing stood there
        (("❯ ",), drawn("❯ "), False),
    ],
)
def test_what_stood_left_of_the_cursor_is_seen_to_stand_there_still(
    before: tuple[str, ...], after: Look, held: bool
) -> None:
    assert input_box.keeps_text(after, drawn(*before)) is held


def test_the_last_prompt_is_the_programs_own() -> None:
    rows = ["❯ given", "● An answer", "  ❯ quoted", RULE, "❯", RULE, "  footer"]
    assert input_box.find_prompt_row(rows, PROFILE) == 4
    assert input_box.find_prompt_row(rows[:4], PROFILE) == 0
    assert input_box.find_prompt_row(rows[:2], PROFILE) == 0
    assert input_box.find_prompt_row(rows[1:4], PROFILE) is None


def test_what_stands_behind_a_prompt_has_no_blanks() -> None:
    assert input_box.text_behind_prompt("❯ what was  said", PROFILE) == "whatwassaid"
    assert input_box.text_behind_prompt("no prompt", PROFILE) == "noprompt"


LINES = Profile(name="lines", prompt=(Rule("input", "^>>> ?"),), continuation=(Rule("more", r"^\.\.\.(?: |$)"),))


def test_the_prompt_for_more_of_a_text_is_no_part_of_it() -> None:
    assert input_box.shows_text(look(">>> one\n...\n... two"), b"one\n\ntwo", LINES) is True
    assert input_box.shows_part_of_text(look("... two"), b"one\n\ntwo and more", LINES) is False
    assert input_box.shows_part_of_text(look(">>> one\n... two"), b"one\ntwo\nthree", LINES) is True
    assert input_box.shows_part_of_text(look(">>> one\n... rm"), b"one\ntwo\nthree", LINES) is False


@pytest.mark.parametrize(
    ("seen", "sign"),
    [
        (drawn("❯ "), "❯"),
        (drawn("❯ one", "  two"), "❯"),
        (drawn("❯ one", "", "  two"), "❯"),
        # it stands below the cursor
        (drawn("❯ one", y=2), ""),
        (look("❯" + "\n" * 39, x=0, y=39), "❯"),
        (look("❯" + "\n" * 40, x=0, y=40), ""),
        (look("● An answer"), ""),
    ],
)
def test_the_sign_of_an_input_box_is_the_prompt_at_or_above_the_cursor(seen: Look, sign: str) -> None:
    assert input_box.read_prompt_sign(seen, PROFILE) == sign


def test_the_sign_of_an_input_box_has_no_blanks() -> None:
    assert input_box.read_prompt_sign(look("│ > text", x=8, y=0), BOXED) == "│>"


def test_the_cursor_is_at_a_prompt_if_one_begins_its_row() -> None:
    assert input_box.is_at_prompt(drawn("❯ "), PROFILE)
    assert input_box.is_at_prompt(drawn("❯ text"), PROFILE)
    assert not input_box.is_at_prompt(drawn("❯ one", "  two"), PROFILE)
    assert not input_box.is_at_prompt(drawn("❯ one", x=0), PROFILE)


BEFORE = look("A note at 10:15\n── hello there", x=14, y=1)


@pytest.mark.parametrize(
    ("after", "replaced"),
    [
        (BEFORE, False),
        # only numbers changed, or what is drawn as a frame
        (look("A note at 10:16\n── hello there", x=14, y=1), False),
        (look("A note at 10:15\n── hello there\n╭────╮", x=14, y=1), False),
        # a part of what stood there has a row of its own now
        (look("A note at 10:15\n── hello there\n     there", x=14, y=1), False),
        (look("A note at 10:15\n── hello there\nWorking", x=14, y=1), True),
        # the same words in another order
        (look("A note at 10:15\n── hello there\nnote A", x=14, y=1), True),
        # the text is gone from the cursor
        (look("A note at 10:15\n── hello there\n\n\n", x=0, y=4), True),
        (look("A note at 10:15\n──", x=3, y=1), True),
    ],
)
def test_a_text_in_an_input_box_without_a_sign_is_replaced_once_it_is_gone_or_more_is_shown(
    after: Look, replaced: bool
) -> None:
    assert input_box.is_replaced(after, BEFORE, UNSIGNED) is replaced


def test_a_text_of_one_letter_is_replaced_once_the_cursor_moves() -> None:
    before = look("note\nx", x=1, y=1)
    assert input_box.is_replaced(look("note 2\nx", x=1, y=1), before, UNSIGNED) is False
    assert input_box.is_replaced(look("note\n\nx", x=1, y=2), before, UNSIGNED) is True
    assert input_box.is_replaced(look("note\ny", x=1, y=1), before, UNSIGNED) is True


def test_an_input_box_with_a_sign_tells_itself_whether_it_is_empty() -> None:
    before = drawn("❯ hello there")
    assert input_box.is_replaced(drawn("❯ "), before, PROFILE) is False
    assert input_box.is_replaced(drawn("❯ "), before, UNSIGNED) is True


def test_a_text_that_stands_two_rows_above_the_cursor_still_stands_there() -> None:
    before = look("one\nhello there", x=11, y=1)
    assert input_box.keeps_text(look("one\nhello there\n\n", x=0, y=3), before)
    assert not input_box.keeps_text(look("one\nhello there\n\n\n", x=0, y=4), before)
    assert input_box.keeps_text(look("hello there\n", x=0, y=1), before)
    assert input_box.keeps_text(look("hello there\n\n", x=0, y=2), before)
    # of a long text its end is enough
    long = look("a beginning and then the end", x=28, y=0)
    assert input_box.keeps_text(look("ing and then the end", x=20, y=0), long)
    assert not input_box.keeps_text(look("ng and then the end", x=19, y=0), long)
