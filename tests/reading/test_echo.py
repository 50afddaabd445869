"""Nothing typed may answer a wait."""

from __future__ import annotations

import pytest

from tmuxctl.reading.text.echo import holds_shown_line, without_echo


@pytest.mark.parametrize(
    ("output", "typed", "left"),
    [
        ("$ sleep 2; echo MARK\nMARK\n$", b"sleep 2; echo MARK", "$ \nMARK\n$"),
        ("MARK\nMARK\n", b"MARK", "\nMARK\n"),
        (">>> print('MARK')\nMARK", b"print('MARK')", ">>> \nMARK"),
        ("a\tb done\nok", b"a\tb done", "\nok"),
        ("one\ntwo\nONE\nTWO", b"one\ntwo", "\n\nONE\nTWO"),
        ("got MARK", b"something else", "got MARK"),
        ("", b"MARK", ""),
        ("日本 echo\n日本", "日本 echo".encode(), "\n日本"),
        # each typed line is looked for behind the echo of the one before
        ("b\na\nb", b"a\nb", "b\n\n"),
        ("a\na\nb a", b"a\na", "\n\nb a"),
        # what is invisible counts on neither side
        ("$ a\u200bb\x07c\nok", "ab\u2060c".encode(), "$ \nok"),
        ("$ caf\N{REPLACEMENT CHARACTER} x\nok", b"caf\xe9 x", "$ \nok"),
    ],
)
def test_the_first_line_that_ends_with_the_typed_one_is_its_echo(output: str, typed: bytes, left: str) -> None:
    assert without_echo(output, typed, first=True, again=False) == left


def test_a_line_typed_ahead_is_shown_again_behind_the_prompt() -> None:
    output = "echo MARK\nworking\n$ echo MARK\nMARK"
    assert without_echo(output, b"echo MARK", first=True, again=True) == "\nworking\n$ \nMARK"


def test_an_answer_that_repeats_the_input_is_no_second_echo() -> None:
    assert without_echo("MARK\ngot MARK", b"MARK", first=True, again=True) == "\ngot MARK"


def test_of_output_whose_beginning_is_gone_only_what_stands_behind_a_prompt_is_echo() -> None:
    assert without_echo("9\n10\n$ 10\n10", b"10", first=False, again=True) == "9\n10\n$ \n10"


@pytest.mark.parametrize(
    ("output", "typed", "left"),
    [
        ("import on", b"import one", ""),
        (">>> import on", b"import one", ">>> "),
        ("$ a\n> b", b"a\nb c", "$ \n> "),
        # more than the beginning of the line, or none of it
        ("import on: no", b"import one", "import on: no"),
        ("import on\n", b"import one", "import on\n"),
        ("version", b"no", "version"),
    ],
)
def test_an_echo_that_has_only_begun_answers_nothing(output: str, typed: bytes, left: str) -> None:
    assert without_echo(output, typed, first=True, again=False) == left


def test_an_answer_that_is_the_input_again_is_no_echo_that_has_begun() -> None:
    assert without_echo("MARK\nMARK", b"MARK", first=True, again=True) == "\nMARK"


@pytest.mark.parametrize(
    ("printed", "screen", "left", "y", "held"),
    [
        (b"1+1\r\n2\r\n>>> ", ">>> 1+1\n2\n>>>", ">>> ", 2, True),
        (b"1+1\r\n", ">>> 1+1\n2\n>>>", ">>> ", 2, False),
        (b"", ">>> 1+1\n2\n>>>", ">>> ", 2, False),
        # the prompt is drawn piece by piece
        (b"x\r\n\x1b[1mIn \x1b[32m[\x1b[m2]: ", "In [1]: x\nIn [2]:", "In [2]: ", 1, True),
        # a program without a prompt: the row above the cursor
        (b"hi\r\nHI\r\n", "hi\nHI\n", "", 2, True),
        (b"hi\r\n", "hi\nHI\n", "", 2, False),
        (b"", "", "", 0, True),
        (b"for i\r\n", "~# for i\n    ", "    ", 1, True),
        # a long line is wrapped on the screen
        (b"x\r\n" + b"a" * 15 + b"\r\n", "x\naaaaaaaaaa\naaaaa\n", "", 3, True),
    ],
)
def test_what_was_printed_has_the_line_that_is_shown_last(
    printed: bytes, screen: str, left: str, y: int, held: bool
) -> None:
    assert holds_shown_line(printed, screen, left, y, 10) == held
