"""What the text on a screen argues for."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from pathlib import Path

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
