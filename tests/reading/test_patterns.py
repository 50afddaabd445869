"""What the text on a screen argues for."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from pathlib import Path
from typing import Any

import pytest
from reading.looks import look

import tmuxctl.reading
from tmuxctl.program_profile import Rule
from tmuxctl.reading.evidence import programs
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.reading.text.patterns import ScreenText

PROMPTS = [
    *("$ ", "# ", "% ", "> ", ">>> ", "❯ ", "~/src λ ", "vm% ", "web1% ", "bash-5.2# ", "user@host:~$ ", "sqlite> "),
    *(
        "shop=# ",
        "shop=> ",
        "(gdb) ",
        "(Pdb) ",
        "(lldb) ",
        "In [12]: ",
        "irb(main):001> ",
        "  DB<1> ",
        "127.0.0.1:6379> ",
    ),
    *(
        "php > ",
        "octave:1> ",
        "julia> ",
        "* ",
        "scheme@(guile-user)> ",
        "iex(1)> ",
        "mysql> ",
        "ftp> ",
        "PS C:\\Users> ",
    ),
    *("[me@host dir]$ ", "(venv) me@host:~$ ", "root@host /etc # ", "test> ", "│ > ", "ghci> ", "+ ", "main ❯ "),
]
NO_PROMPTS = [
    *("", "45%", "Receiving objects:  45%", " 100% ", "######## 80%", "[=====>", "####", "Loading...", "--->", "====>"),
    *("Computing the answer: ", "done", "12 of 90", "|", "/", "-", "working", "...."),
]


@pytest.mark.parametrize("text", PROMPTS)
def test_prompts_of_shells_and_repls_look_like_prompts(text: str) -> None:
    assert patterns.ends_like_prompt(text)
    assert patterns.is_likely_prompt(text)


@pytest.mark.parametrize("text", NO_PROMPTS)
def test_progress_and_half_lines_do_not(text: str) -> None:
    assert not patterns.ends_like_prompt(text)


def test_a_sentence_is_no_prompt_by_itself() -> None:
    assert not patterns.is_likely_prompt("Proceed with step 2? checking network ... > ")
    assert not patterns.is_likely_prompt("Copying files to > ")


@pytest.mark.parametrize(
    ("left", "prompt"),
    [
        ("user@host:~$ echo half", "user@host:~$"),
        (">>> x = 1", ">>>"),
        ("(gdb) run", "(gdb)"),
        ("sqlite> ", "sqlite>"),
        ("│ > hello", ">"),
        ("Your name: ", "Your name:"),
        ("", None),
    ],
)
def test_the_prompt_is_told_without_what_is_typed_behind_it(left: str, prompt: str | None) -> None:
    assert patterns.extract_prompt(left) == prompt


@pytest.mark.parametrize(
    "text",
    [
        "Username for 'https://example.org': ",
        "Enter a value: ",
        "login: ",
        "Your name: ",
        "Password: ",
        "Continue? [y/N] ",
        "Are you sure? ",
    ],
)
def test_text_that_asks_is_told_from_text_that_tells(text: str) -> None:
    assert patterns.is_likely_question(text)


@pytest.mark.parametrize("text", ["Computing the answer: ", "Checking your name: ", "progress: ", "ETA 00:12", "done."])
def test_what_is_being_done_asks_for_nothing(text: str) -> None:
    assert not patterns.is_likely_question(text)


@pytest.mark.parametrize(
    ("rows", "shell"),
    [
        (">>> def f():\n... ", False),
        ("sqlite> select\n   ...> ", False),
        ("shop=# select\nshop-# ", False),
        ("shop=# select 'a\nshop'# ", False),
        ("mysql> select\n    -> ", False),
        ("> f <- function() {\n+ ", False),
        ("In [1]: def f():\n   ...: ", False),
        ("$ for i in 1 2; do\n> ", True),
        ("vm% echo 'a\nquote> ", True),
        ("vm% if true\nthen> ", True),
    ],
)
def test_second_prompts_are_told_from_first_ones(rows: str, shell: bool) -> None:
    assert patterns.is_continued(patterns.read_screen(look(rows)), shell=shell)


@pytest.mark.parametrize(
    ("rows", "shell"),
    [(">>> ", False), ("> ", False), ("output\n> ", True), ("user@host:~$ ", True), ("shop=# ", False)],
)
def test_first_prompts_are_no_second_ones(rows: str, shell: bool) -> None:
    assert not patterns.is_continued(patterns.read_screen(look(rows)), shell=shell)


SCREEN: ScreenText = patterns.read_screen(look("one\ntwo\nthree\n\n\n", x=3, y=1, title="⠂ task"))


@pytest.mark.parametrize(
    ("where", "seen"),
    [
        ("screen", "one\ntwo\nthree"),
        ("bottom:2", "two\nthree"),
        ("bottom:40", "one\ntwo\nthree"),
        ("cursor-line", "two"),
        ("last-line", "three"),
        ("title", "⠂ task"),
    ],
)
def test_a_rule_looks_at_its_region_only(where: str, seen: str) -> None:
    assert patterns.select_region(SCREEN, where) == seen


def test_an_empty_screen_has_empty_regions() -> None:
    empty = patterns.read_screen(look("", y=30))
    assert {patterns.select_region(empty, where) for where in ("screen", "bottom:3", "cursor-line", "last-line")} == {
        ""
    }


def test_the_first_rule_that_fits_is_told_with_what_it_found() -> None:
    rules = (Rule("a", "four"), Rule("b", "^t.o$"), Rule("c", "three"))
    match = patterns.find_match(rules, SCREEN)
    assert match is not None
    assert (match.rule.id, match.found[0]) == ("b", "two")
    assert patterns.find_match(rules[:1], SCREEN) is None


@pytest.mark.parametrize(
    ("rows", "sign"),
    [
        ("~\n~\n~\n~", "editor"),
        ("text\n-- INSERT --   1,1   All", "editor"),
        ("text\n^G Help  ^O Write Out  ^W Where Is", "editor"),
        ("text\nF1Help  F2Setup F3Search F10Quit", "tui"),
        ("text\nmore text", None),
        ("$ ls\nfile", None),
    ],
)
def test_full_screen_programs_are_told_by_their_marks(rows: str, sign: str | None) -> None:
    assert patterns.find_full_screen_sign(patterns.read_screen(look(rows))) == sign


def test_a_busy_sign_counts_at_the_bottom_only() -> None:
    sign = "✻ Pondering… (esc to interrupt)"
    assert patterns.find_busy_sign(patterns.read_screen(look(sign + "\n\n> "))) == sign
    assert patterns.find_busy_sign(patterns.read_screen(look(sign + "\nx" * 20))) is None
    assert patterns.find_busy_sign(patterns.read_screen(look("Press enter to confirm or esc to cancel"))) is None


@pytest.mark.parametrize(
    "row",
    [
        "Press Ctrl+C to abort current expression, Ctrl+D to exit the REPL",
        "Use ^C to interrupt the line, ^D to leave",
        "press esc to abort a statement",
    ],
)
def test_what_a_key_does_to_what_is_being_written_is_no_busy_sign(row: str) -> None:
    assert patterns.find_busy_sign(patterns.read_screen(look(f"{row}\n> "))) is None


@pytest.mark.parametrize("row", ["Press Ctrl-C to stop", "ctrl+c to interrupt the current task", "(esc to stop, 3s)"])
def test_what_a_key_does_to_work_is_one(row: str) -> None:
    assert patterns.find_busy_sign(patterns.read_screen(look(f"{row}\n> "))) == row


@pytest.mark.parametrize(
    ("name", "family"), [("-bash", "shell"), ("vim.basic", "editor"), ("emacs-nox", "editor"), ("less", "pager")]
)
def test_a_family_is_known_by_the_kernels_name_of_it(name: str, family: str) -> None:
    told = {"shell": programs.is_shell(name), "editor": programs.is_editor(name), "pager": programs.is_pager(name)}
    assert [one for one, holds in told.items() if holds] == [family]


def test_carriers_are_opaque_and_others_are_not() -> None:
    assert all(map(programs.is_remote_wrapper, ("ssh", "tmux: client", "mosh-client", "docker", "screen")))
    assert not any(map(programs.is_remote_wrapper, ("python3", "bash", "sshd", "node")))


HOSTILE = [
    "a" * 1000,
    "(" * 1000,
    "[y/" * 333,
    "> " * 500,
    "1, " * 333,
    "press " * 160,
    " " * 1000,
    "y/n" * 333,
    "-" * 1000 + ">",
    "(Y)es/" * 166,
]


@pytest.mark.parametrize("row", HOSTILE, ids=range(len(HOSTILE)))
def test_no_row_takes_a_pattern_long(row: str) -> None:
    """Compared with the same patterns on a plain row, not with a clock."""

    def cost(text: str) -> float:
        seen = patterns.read_screen(look("\n".join([text] * 15)))
        began = time.process_time()
        for _ in range(3):
            patterns.find_busy_sign(seen)
            patterns.is_likely_question(seen.left)
            patterns.is_likely_prompt(seen.left)
            patterns.extract_prompt(seen.left)
            patterns.has_text_behind_prompt(seen.left)
            patterns.is_continued(seen, shell=True)
            patterns.find_full_screen_sign(seen)
        return time.process_time() - began

    # a pattern that backtracks takes thousands of times as long
    assert cost(row) < 200 * max(cost("x y " * 250), 0.001)


def test_no_pattern_that_is_searched_for_fits_an_empty_text() -> None:
    names = [one.name for one in pkgutil.walk_packages(tmuxctl.reading.__path__, "tmuxctl.reading.")]
    modules = [importlib.import_module(name) for name in names]
    patterns_of_all = [(name, one) for module in modules for name, one in vars(module).items() if type(one) is Pattern]
    fitting = {name for name, one in patterns_of_all if one.compiled.search("")}
    assert len(patterns_of_all) > 50
    assert fitting == {"HIDDEN", "LEAD", "RULED"}
    sources = "\n".join(Path(str(module.__file__)).read_text() for module in modules)
    assert not re.findall(rf"\b(?:{'|'.join(fitting)})\.search\(", sources)


# What each of the small questions to a text answers


@pytest.mark.parametrize(
    ("left", "likely"),
    [
        ("user@host:~$ make", True),
        (">>> print(1)", True),
        ("│ > hello", True),
        ("(gdb) run", True),
        # no prompt, one without anything behind it, a sentence before it
        ("make it", False),
        ("user@host:~$ ", False),
        ("one two three four five six > seven", False),
    ],
)
def test_a_command_line_is_a_likely_prompt_with_something_behind_it(left: str, likely: bool) -> None:
    assert patterns.is_likely_command_line(left) is likely


def test_a_likely_prompt_is_short_and_no_sentence() -> None:
    assert patterns.is_likely_prompt("a b c d e>")
    assert not patterns.is_likely_prompt("a b c d e f>")
    assert patterns.is_likely_prompt("x" * 119 + ">")
    assert not patterns.is_likely_prompt("x" * 120 + ">")
    assert patterns.is_likely_prompt("│ > ")
    assert patterns.is_likely_prompt("│ a b c d e>")
    assert not patterns.is_likely_prompt("Computing >")
    assert not patterns.is_likely_prompt("text")


@pytest.mark.parametrize(
    ("left", "prompt"),
    [
        (" │ │ ", None),
        ("In [3]: x", "In [3]:"),
        ("100 % done", "100 % done"),
        ("vm% ls", "vm%"),
        ("text", "text"),
        ("$ $ ", "$ $"),
    ],
)
def test_a_prompt_is_cut_out_of_its_row(left: str, prompt: str | None) -> None:
    assert patterns.extract_prompt(left) == prompt


def test_the_last_two_rows_may_hold_a_question() -> None:
    for rows, asks in (
        ("Go on?", True),
        ("Go on?\nfooter", True),
        ("│ Go on?   │\n│  │\n\nfooter", True),
        ("Go on?\none\ntwo", False),
        ("Go on? Well.", False),
        ("", False),
    ):
        assert patterns.has_question_at_bottom(patterns.read_screen(look(rows))) is asks


def test_a_cursor_may_stand_in_a_box() -> None:
    def boxed(rows: str, y: int) -> bool:
        return patterns.is_boxed(patterns.read_screen(look(rows, x=1, y=y)))

    assert boxed("│ text", 0)
    assert boxed("  ▌ text", 0)
    assert boxed("╭──\n text\n╰──", 1)
    assert boxed("┌──\n a\n b\n c\n d\n e\n f\n g\n└──", 4)
    assert not boxed("┌──\n a\n b\n c\n d\n e\n f\n g\n h\n└──", 5)
    assert not boxed("┌──\n a\n b\n c\n d\n e\n f\n g\n h\n└──", 4)
    assert not boxed("╭──\n text", 1)
    assert not boxed("text\n╰──", 0)
    assert not boxed("text", 9)


def test_a_box_at_the_bottom_is_a_frame() -> None:
    def framed(rows: str) -> bool:
        return patterns.is_framed(patterns.read_screen(look(rows)))

    for edge in "╭╰│┃╔╚║":
        assert framed(f"text\n  {edge}──")
    assert framed("│" + "\nx" * 11)
    assert not framed("│" + "\nx" * 12)
    assert not framed("text │")


def test_a_question_that_is_longer_than_the_terminal_is_wide_is_read_whole() -> None:
    def left(rows: str, **known: Any) -> str:
        return patterns.read_screen(look(rows, cols=10, **known)).left

    assert left("0123456789\nabc") == "0123456789abc"
    assert left("a\n0123456789\n0123456789\nabc") == "01234567890123456789abc"
    assert left("0123456789\n" * 4 + "abc") == "0123456789" * 3 + "abc"
    # a row that is not full, a drawn line, nothing left of the cursor
    assert left("012345678\nabc") == "abc"
    assert left("─────────\nabc") == "abc"
    assert left("01234567 -\nabc") == "abc"
    assert left("0123456789\n  ") == ""
    assert left("0123456789", x=3, y=0) == "012"
    assert len(patterns.read_screen(look("x" * 2000, cols=3000)).left) == 1000
    assert patterns.read_screen(look("x" * 2000, cols=3000)).rows == ("x" * 1000,)


def test_the_rows_around_the_cursor_and_at_the_bottom_are_told() -> None:
    seen = patterns.read_screen(look("a\nb\nc\nd\n\n", x=0, y=2))
    assert (seen.rows, seen.bottom(2), seen.bottom()) == (("a", "b", "c", "d"), ["c", "d"], ["a", "b", "c", "d"])
    assert (seen.above(1), seen.above(9), seen.below()) == (["b"], ["a", "b"], ["d"])
    assert patterns.read_screen(look("\n".join("x" * 20))).bottom() == ["x"] * 15


@pytest.mark.parametrize(
    ("where", "seen"), [("bottom:0", ""), ("bottom:x", "one\ntwo\nthree"), ("other:1", "one\ntwo\nthree")]
)
def test_a_region_that_is_none_is_the_whole_screen_and_no_rows_are_none(where: str, seen: str) -> None:
    assert patterns.select_region(SCREEN, where) == seen


def test_a_second_prompt_of_a_shell_stands_below_a_command_line() -> None:
    def continued(rows: str, *, shell: bool) -> bool:
        return patterns.is_continued(patterns.read_screen(look(rows)), shell=shell)

    assert continued("$ for i in 1\n│> ", shell=True)
    assert not continued("$ for i in 1\n> ", shell=False)
    assert continued("> f(\n+ ", shell=False)
    assert not continued("> f(\n+ ", shell=True)
    assert continued("$ x (" + "\n" * 15 + "> ", shell=True)
    assert not continued("$ x (" + "\n" * 16 + "> ", shell=True)


def test_what_is_typed_goes_on_below_its_prompt_as_far_from_the_edge() -> None:
    rules = [Rule("p", r"^me ~> ")]

    def indented(rows: str, *prompts: Rule, **known: Any) -> bool:
        return patterns.is_indented_below_prompt(patterns.read_screen(look(rows, **known)), prompts)

    assert indented("me ~> for i in 1 2\n      echo", *rules)
    assert indented("me ~> for i in 1 2\n      ", *rules)
    assert not indented("me ~> for i in 1 2\n     echo", *rules)
    assert not indented("you ~> for\n       echo", *rules)
    # without a rule a prompt is what ends like one
    assert indented("me> for i in 1 2\n    echo")
    assert not indented("me: for i in 1 2\n    echo")
    assert indented("me> for\n    a\n    b")
    assert not indented("    echo")
    assert not indented("me> for", x=0, y=9)
    assert indented("me> for", x=4, y=9)


@pytest.mark.parametrize(
    ("screen", "sign"),
    [
        ("~\n~\n~", "editor"),
        ("~\n~\nx", None),
        ('x\n"notes.txt" 12L, 300B', "editor"),
        ("x\n-UUU:----F1  notes.txt", "editor"),
        ("^X Exit ^O Write Out ^K Cut\nx\ny", "editor"),
        ("^X Exit ^O Write Out ^K Cut\nx\ny\nz", None),
        ("^X Exit ^K Cut", None),
        ("F1 Help F2 Setup F10 Quit\n", "tui"),
        ("", None),
    ],
)
def test_a_screen_of_a_full_screen_program_shows_what_it_is(screen: str, sign: str | None) -> None:
    assert patterns.find_full_screen_sign(patterns.read_screen(look(screen))) == sign


def test_a_title_may_say_that_a_program_works() -> None:
    assert patterns.find_busy_sign(patterns.read_screen(look("x", title=" ⠋ task "))) is None
    assert patterns.find_busy_sign(patterns.read_screen(look("x", title="⠋ task "))) == "⠋ task"
    assert patterns.find_busy_sign(patterns.read_screen(look("x", title="Thinking… of it"))) == "Thinking… of it"
    sign = "  esc to interrupt"
    assert patterns.find_busy_sign(patterns.read_screen(look(sign + "\nx" * 11))) == sign.strip()
    assert patterns.find_busy_sign(patterns.read_screen(look(sign + "\nx" * 12))) is None
