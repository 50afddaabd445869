"""Answers read off what a program drew: every line, no echo, nothing of what the program draws around them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tmuxctl.program_profile import AnswerRules, Profile, Rule
from tmuxctl.reading.answers import drawn_answer

RULE = "─" * 40
PROFILE = Profile(
    name="agent",
    prompt=(Rule("input", r"^❯(?: |$)"),),
    answer=AnswerRules(begin="^● ", strip=("^✻ Worked for ",), until="^(?:❯|─{10,})", tool=r"^● \w+\("),
)
PLAIN = Profile(
    name="chat", prompt=(Rule("input", "^> ?$"),), answer=AnswerRules(strip=("^─{10,}",), until="^Tokens: ")
)


def screen(*rows: str) -> list[str]:
    """These rows between an earlier turn and the composer."""
    earlier = ["❯ earlier", "", "● No part of it", "", "✻ Worked for 1s", ""]
    return [*earlier, *rows, "", "✻ Worked for 2s", "", RULE, "❯", RULE, "  ? for shortcuts"]


def answered(rows: Sequence[str], typed: str = "ask", anchor: int | None = None) -> str:
    return drawn_answer.read_answer(rows, typed, PROFILE, anchor=anchor).text


BLOCKS = {
    "a line": (["● hello"], "hello"),
    "lines": (["● one", "  two", "", "  three"], "one\ntwo\n\nthree"),
    "code": (["● See:", "", "  def f():", "", "      return 1", "  # end"], "See:\n\ndef f():\n\n    return 1\n# end"),
    "two blocks": (["● one", "", "● two"], "one\n\ntwo"),
    "an action": (["● I look.", "", "● Bash(ls)", "  ⎿  a file", "", "● Done."], "Done."),
    "only an action": (["● Bash(ls)", "  ⎿  a file"], "⎿  a file"),
    "nothing": ([], ""),
    "imitations": (
        ["● See:", "", "  ❯ rm", f"  {RULE}", "  ✻ Worked for 9s", "  ● Bash(rm)", "  1. Yes", "  end"],
        f"See:\n\n❯ rm\n{RULE}\n✻ Worked for 9s\n● Bash(rm)\n1. Yes\nend",
    ),
    "something of the program's own between": (["● one", "✻ Worked for 1s", "● two"], "one\n\ntwo"),
    "something else drawn": (["● one", "  two", "", "* A tip: press x", "", "● three"], "one\ntwo\n\nthree"),
    "other scripts": (["● 日本語 👩‍💻", "  naïve"], "日本語 👩‍💻\nnaïve"),
}


@pytest.mark.parametrize(("rows", "text"), BLOCKS.values(), ids=BLOCKS)
def test_an_answer_is_its_blocks_without_what_stands_around_them(rows: list[str], text: str) -> None:
    assert answered(screen("❯ ask", "", *rows)) == text


def test_of_the_same_input_twice_the_one_that_was_given_counts() -> None:
    rows = screen("❯ ask", "", "● one", "", "❯ ask", "", "● two")
    assert answered(rows) == "two"
    assert answered(rows, anchor=10) == "two"


def test_an_answer_that_quotes_the_input_is_whole() -> None:
    assert answered(screen("❯ ask", "", "● You said:", "  ❯ ask", "  and I say no")) == "You said:\n❯ ask\nand I say no"


def test_an_echo_of_several_lines_is_no_part_of_an_answer() -> None:
    rows = screen("❯ ask", "  ● me", "", "  this", "", "● hello")
    assert answered(rows, "ask\n● me\n\nthis") == "hello"


def test_where_the_echo_is_only_noted_the_row_of_the_input_tells() -> None:
    rows = screen("❯ [Pasted text #1 +90 lines]", "", "● hello")
    assert answered(rows, "long\n" * 90, anchor=6) == "hello"


def test_an_answer_without_its_echo_is_told_as_not_whole() -> None:
    rows = ["  line 8", "  line 9", "", RULE, "❯", RULE]
    assert drawn_answer.read_answer(rows, "ask", PROFILE).complete is False
    assert drawn_answer.read_answer(screen("❯ ask", "", "● hello"), "ask", PROFILE).complete is True


def test_an_answer_of_many_lines_is_whole() -> None:
    lines = [f"line {number}" for number in range(1000)]
    rows = screen("❯ ask", "", f"● {lines[0]}", *(f"  {line}" for line in lines[1:]))
    assert answered(rows).split("\n") == lines


def test_a_program_that_works_by_lines_needs_no_sign() -> None:
    rows = ["> earlier", "no", "> ask", "", "The answer:", "", "    code", "─" * 20, "end", "Tokens: 3", "", ">"]
    found = drawn_answer.read_answer([row.rstrip() for row in rows], "ask", PLAIN)
    assert found.text == "The answer:\n\n    code\nend"


def test_nothing_on_the_screen_is_no_answer() -> None:
    assert drawn_answer.read_answer([], "ask", PROFILE) == drawn_answer.DrawnAnswer("", False, signed=False, fits=False)
    assert drawn_answer.read_answer([""], "", PLAIN).text == ""


TALK = Profile(
    name="talk",
    prompt=(Rule("input", "^>>> ?"),),
    continuation=(Rule("more", r"^\.\.\.(?: |$)"),),
    answer=AnswerRules(tool=r"^\.\.\.done thinking\.$"),
)


def test_the_echo_of_a_text_goes_on_behind_the_prompt_for_more_of_it() -> None:
    rows = [">>> one", "...", "...   two", "Twelve.", "... and more", "", ">>>"]
    assert drawn_answer.read_answer(rows, "one\n\n  two", TALK).text == "Twelve.\n... and more"


def test_without_blocks_an_answer_is_what_comes_behind_the_last_action_too() -> None:
    rows = [">>> one", "Thinking...", "", "Well.", "...done thinking.", "", "Twelve.", "", ">>>"]
    assert drawn_answer.read_answer(rows, "one", TALK).text == "Twelve."


MARKED = "A prompt\n  with  blanks\n\n- a bullet, `code` and *stress*\nthe last line"


@pytest.mark.parametrize(
    ("typed", "rows", "text"),
    [
        # the program draws the input as it draws Markdown
        (MARKED, ["", " A prompt", "   with  blanks", "", " - a bullet, code and stress", " the last line"], "hello"),
        # the beginning of a long line on one row, the rest on the next
        (
            "one line that is too long for a single row of it",
            ["> one line that is too long for a single row", "of it"],
            "it",
        ),
        # the same line twice
        ("x\none\none\ntwo", ["> x", "one", "one", "two"], "hello"),
        # the first line is drawn without its Markdown, and begins otherwise than it was typed
        ("**stress** and more", ["stress and more"], "hello"),
        # the answer is a part of the input
        ("say hello", ["> say hello"], "hello"),
        ("print(1)\n\nhello", ["> print(1)", "", "hello", ""], "hello"),
    ],
)
def test_without_a_sign_an_answer_begins_behind_the_whole_input_and_not_within_it(
    typed: str, rows: list[str], text: str
) -> None:
    assert drawn_answer.read_answer([*rows, text, "Tokens: 1", ">"], typed, PLAIN).text == text
    assert drawn_answer.read_answer([*rows, "", text, "", "Tokens: 1", ">"], typed, PLAIN).text == text


def test_where_an_answer_may_begin_without_its_sign_a_row_less_set_in_is_a_part_of_it() -> None:
    either = Profile(
        name="agent", prompt=PROFILE.prompt, answer=AnswerRules(begin=r"^(?:● | (?=\S))", strip=PROFILE.answer.strip)
    )
    for answer in (["● one", " two", "", "  three"], [" one", " two", "", " three"]):
        assert drawn_answer.read_answer(screen("❯ ask", "", *answer), "ask", either).text == "one\ntwo\n\nthree"


def test_an_answer_that_is_set_in_by_blanks_begins_with_the_first_row_that_is() -> None:
    profile = Profile(name="set-in", prompt=PROFILE.prompt, answer=AnswerRules(begin=r"^ {2}(?=\S)"))
    rows = ["❯ ask", "", "thinking", "", "  See:", "", "      indented", "  end", "", "done in 3s", "", RULE, "❯", RULE]
    found = drawn_answer.read_answer(rows, "ask", profile)
    assert (found.text, found.complete, found.signed) == ("See:\n\n    indented\nend", True, True)


def test_the_rows_of_an_input_box_without_a_sign_are_no_part_of_an_answer() -> None:
    box = Profile(
        name="box",
        prompt=(Rule("ready", "^ *enter to send", "bottom:2"),),
        answer=AnswerRules(strip=("^ *[╭│╰]",)),
    )
    rows = ["ask", "hello", "there", "╭────────╮", "│        │", "╰────────╯", "  enter to send"]
    assert drawn_answer.read_answer(rows, "ask", box) == drawn_answer.DrawnAnswer("hello\nthere", True)


ERRORS = Profile(
    name="agent",
    prompt=PROFILE.prompt,
    answer=PROFILE.answer,
    errors=(
        Rule("api", r"\A● API Error", begin="^● ", detail="failed"),
        Rule("limit", "^  ⎿  Usage limit", detail="limited"),
        Rule("warning", "^! ", detail="retrying"),
    ),
)

FAILED = {
    "an error": (["● API Error: 400 no model", "  of this name"], "", "API Error: 400 no model\nof this name"),
    "half an answer": (["● I begin.", "", "● API Error: 500"], "I begin.", "API Error: 500"),
    "an action": (["● Bash(make)", "  ⎿  done", "", "● API Error: 500"], "⎿  done", "API Error: 500"),
    "an error, and then an answer": (["● API Error: 500", "", "● All well."], "API Error: 500\n\nAll well.", None),
    "a warning": (["! the service is slow", "", "● All well."], "All well.", None),
    "an answer that quotes one": (["● It said:", "  ● API Error: 500"], "It said:\n● API Error: 500", None),
}


@pytest.mark.parametrize(("rows", "text", "error"), FAILED.values(), ids=FAILED)
def test_a_turn_failed_if_it_ends_in_an_error_of_the_program(rows: list[str], text: str, error: str | None) -> None:
    found = drawn_answer.read_answer(screen("❯ ask", "", *rows), "ask", ERRORS)
    assert (found.text, found.error) == (text, error)


def test_a_limit_counts_only_where_the_state_says_so() -> None:
    rows = screen("❯ ask", "", "  ⎿  Usage limit reached · resets 3pm")
    assert drawn_answer.read_answer(rows, "ask", ERRORS).error is None
    limited = drawn_answer.read_answer(rows, "ask", ERRORS, limited=True)
    assert (limited.text, limited.error, limited.complete) == ("", "Usage limit reached · resets 3pm", False)


def test_a_screen_that_was_drawn_anew_has_other_rows_than_before_and_than_the_input() -> None:
    before = "\n".join(["● earlier"] * 20 + [RULE, "❯", RULE])
    lines = [row for number in range(10) for row in (f"  line {number}", "")]
    assert drawn_answer.is_screen_replaced(before, "\n".join([*lines, RULE, "❯", RULE]), "ask")
    assert not drawn_answer.is_screen_replaced(before, before, "ask")
    assert not drawn_answer.is_screen_replaced(before, "\n".join([*lines, RULE, "❯", RULE]), "\n".join(lines))


@pytest.mark.parametrize("tmux", [None, (3, 3), (3, 4), (3, 6)])
def test_an_echo_is_known_however_the_version_of_tmux_draws_it(tmux: tuple[int, int] | None) -> None:
    rows = ["> flags 🇩🇪", "🇫🇷 and more", "Twelve.", "Tokens: 1", ">"]
    found = drawn_answer.read_answer(rows, "flags 🇩🇪\n🇫🇷 and more", PLAIN, tmux=tmux)
    assert (found.text, found.complete) == ("Twelve.", True)
    # 3.3 draws no more of a cell than fits into it
    family = "👩\u200d👩\u200d👧"
    left_out = drawn_answer.read_answer([f"> {family}", "Twelve.", ">"], f"{family}\u200d👦", PLAIN, tmux=(3, 3))
    assert (left_out.text, left_out.complete) == ("Twelve.", True)


def test_an_answer_right_above_the_input_box_is_whole() -> None:
    rows = ["❯ ask", "● one", "  two", RULE, "❯", RULE]
    assert answered(rows) == "one\ntwo"


def test_each_row_of_an_echo_may_have_the_prompt_before_it() -> None:
    each = Profile(name="each", prompt=(Rule("input", "^> ?"),))
    assert drawn_answer.read_answer(["> one", "> two", "Twelve.", ">"], "one\ntwo", each).text == "Twelve."


def test_an_answer_that_begins_with_a_fence_keeps_it_and_one_that_begins_set_in_keeps_its_blanks() -> None:
    fenced = ["```", "code", "```"]
    assert drawn_answer.read_answer(["> ask", *fenced, "Tokens: 1", ">"], "ask", PLAIN).text == "\n".join(fenced)
    assert drawn_answer.read_answer(["> ask", "", "    code", "Tokens: 1", ">"], "ask", PLAIN).text == "    code"


def test_where_the_echo_is_not_seen_near_its_row_the_answer_begins_there() -> None:
    for anchor, text in ((0, "one\ntwo\nthree"), (1, "two\nthree"), (9, "")):
        rows = ["one", "two", "three"]
        assert drawn_answer.read_answer(rows, "ask", PLAIN, anchor=anchor).text == text


GUTTER = Profile(
    name="numbers", prompt=PROFILE.prompt, answer=AnswerRules(begin="^● ", gutter="^ *(?P<n>[0-9]{1,4})(?: |$)")
)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (["● See:", "   1 def f():", "   2", "   3     return 1", "  end"], "See:\ndef f():\n\n    return 1\nend"),
        # what is wrapped has no number
        (["● 1 one", "  2 two", "    goes on", "  3 three"], "one\ntwo\n  goes on\nthree"),
        # behind a row without one the numbers are the answer's own
        (["● 1 one", "  2 two", "  and", "  3 three"], "one\ntwo\nand\n3 three"),
        (["● 7 apples", "  and", "    8 pears"], "7 apples\nand\n  8 pears"),
        (["● 1 apple"], "1 apple"),
        (["● 1 apple", "  3 pears"], "1 apple\n3 pears"),
    ],
)
def test_numbers_before_lines_of_code_are_no_part_of_an_answer(rows: list[str], text: str) -> None:
    assert drawn_answer.read_answer(screen("❯ ask", "", *rows), "ask", GUTTER).text == text


def test_a_third_of_the_rows_is_enough_to_call_a_screen_drawn_anew() -> None:
    before = "\n".join(f"row {number}" for number in range(12))
    for new, replaced in ((4, True), (3, False)):
        now = "\n".join([f"new {number}" for number in range(new)] + before.split("\n")[new:])
        assert drawn_answer.is_screen_replaced(before, now, "ask") is replaced
