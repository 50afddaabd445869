"""What a program wrote in a turn, byte for byte: recorded exchanges, and the traps one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.program_profile import AnswerRules, Profile, Rule
from tmuxctl.reading.answers.printed_answer import PrintedAnswer, TurnEnd, TypedInput, cut_answer, find_output_start
from tmuxctl.vocabulary import InputKind

RECORDED = sorted(Path(__file__).with_name("answers").glob("*.jsonl"))
ON, OFF = "\x1b[?2004h", "\x1b[?2004l"
PYTHON = Profile(
    name="python",
    prompt=(Rule("prompt", r"^>>>(?:\s|$)", "cursor-line"),),
    continuation=(Rule("more", r"^\.\.\.(?:\s|$)", "cursor-line"),),
)


def said(
    data: str, typed: str = "x", *, prompt: str | None = ">>> ", echo: str = "editor", **more: Any
) -> PrintedAnswer:
    given = TypedInput(typed.encode(), len(prompt or ""), 3, 40, 10, echo)
    return cut_answer(data.replace("\n", "\r\n").encode(), given, prompt_before=prompt, **more)


def exchanges(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("known", ["prompt", "prompt without its blank", "prompt and profile"])
@pytest.mark.parametrize("path", RECORDED, ids=[path.stem for path in RECORDED])
def test_recorded_exchanges_give_what_the_program_printed(path: Path, known: str) -> None:
    wrong = []
    for one in exchanges(path):
        given = TypedInput(**{**one["given"], "typed": one["given"]["typed"].encode()})
        prompt = one["prompt_before"] if known == "prompt" else one["prompt_before"].rstrip()
        profile = PYTHON if known == "prompt and profile" and path.stem.startswith("python") else None
        found = cut_answer(
            one["data"].encode("latin-1"), given, prompt_before=prompt, token=one["token"], profile=profile
        )
        if (found.text, found.complete) != (one["truth"], True):
            wrong.append((one["given"]["typed"], found.text[:200], one["truth"][:200]))
        assert found.source == ("marks" if one["token"] else "screen")
    assert not wrong


def test_there_are_thirty_exchanges_for_each_program() -> None:
    counts = {path.stem: len(exchanges(path)) for path in RECORDED}
    wanted = ("python-80", "sqlite3-80", "psql-80", "gdb-80", "node-80", "bash-80")
    assert all(counts.get(name, 0) >= 30 for name in wanted), counts


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("", ""),
        ("\n", ""),
        ("a\n", "a"),
        ("a", "a"),
        ("\n\na\n\n\n", "\n\na\n\n"),
        ("a  \nb\t\n", "a  \nb\t"),
        (">>> \n", ">>> "),
        (">>> ", ">>> "),
        ("... \n>>> x\n", "... \n>>> x"),
        ("\r 10%\r100%\n", "100%"),
        (" 10%\r100%", "100%"),
        ("50%\r", "50%"),
        ("gone\r\x1b[K\n", ""),
        ("abc\b\bX\n", "aXc"),
        ("\x1b[1;31mred  \x1b[0m\n", "red  "),
        ("\x1b[01;31m\x1b[Kfound\x1b[m\x1b[K  here  \n", "found  here  "),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\n", "link"),
        ("\x1b[2K\x1b[1Gstep  \n", "step  "),
        ("one\ntwo\n\x1b[2A\x1b[2KONE\n\x1b[2KTWO\n", "ONE\nTWO"),
        ("日本\x1b[32m語\x1b[0m\n", "日本語"),
        ("y" * 500 + "\n", "y" * 500),
        ("\x1b[?1049h\x1b[Hfull screen\x1b[?1049lback\n", "back"),
    ],
)
@pytest.mark.parametrize("editor", ["plain", "bracketed"])
def test_all_that_was_printed_stays(output: str, text: str, editor: str) -> None:
    data = f"x\n{output}>>> " if editor == "plain" else f"x\n{OFF}\r{output}{ON}>>> "
    assert said(data) == PrintedAnswer(text, True, None, "screen")


@pytest.mark.parametrize(
    ("prompt", "data", "text"),
    [
        ("In [2]: ", "x\nout\nIn [3]: ", "out"),
        ("postgres=# ", "x\nBEGIN\npostgres=*# ", "BEGIN"),
        ("postgres=*# ", "x\nab postgres=!# ", "ab "),
        ("ab>>> ", "x\n>>> ", ""),
        ("ab>>> ", "x\nb>>> ", "b"),
        ("me@box:~$ ", "x\nme@box:/tmp$ ", ""),
        ("ab# ", "x\na b  # ", "a b  "),
        ("(gdb) ", "x\nout(gdb) ", "out"),
        ("", "x\n100% ", "100% "),
        ("(gdb) ", "x\nName: ", "Name: "),
        ("me$ ", "x\nab# ", "ab# "),
        # output stands before both
        ("ab~/x$ ", "x\ncd~/x$ ", "cd"),
        (None, "x\nout\n$ ", "out"),
        (None, "x\nab>>> ", "ab"),
    ],
)
def test_the_prompt_is_cut_once_and_may_change(prompt: str | None, data: str, text: str) -> None:
    assert said(data, prompt=prompt).text == text


@pytest.mark.parametrize(
    ("prompt", "data", "kind", "text"),
    [
        # gdb switches its editor on before it asks, node draws its question as it draws its prompt
        (
            "(gdb) ",
            f"x\n{OFF}\r{ON}A session is active.\n\nQuit? (y or n) ",
            "confirm",
            "A session is active.\n\nQuit? (y or n) ",
        ),
        ("$ ", f"x\n{OFF}\r\x1b[1G\x1b[0JYour name? \x1b[12G", "line", "Your name?"),
        ("Name? ", "x\r\nhello\n\x1b[1G\x1b[0JGo on? [y/N] \x1b[14G", "confirm", "hello\nGo on? [y/N]"),
        ("$ ", f"x\n{OFF}\r{ON}Your name: ", "line", "Your name: "),
        ("$ ", "x\nPick > ", "line", "Pick > "),
        # unless it asks the same again and again
        ("Name: ", "x\nhello\nName: ", "line", "hello"),
    ],
)
def test_a_question_at_the_end_was_printed_like_the_rest(prompt: str, data: str, kind: str, text: str) -> None:
    assert said(data, prompt=prompt, end=TurnEnd(InputKind.of(kind))).text == text


@pytest.mark.parametrize(
    ("data", "profile", "text"),
    [
        ("x\n... ", None, ""),
        ("x\n... ", PYTHON, ""),
        ("x\nType commands.\n>", None, "Type commands."),
        ("x\n   ...> ", None, ""),
    ],
)
def test_a_prompt_for_more_of_the_same_input_is_no_output(data: str, profile: Profile | None, text: str) -> None:
    assert said(data, profile=profile, end=TurnEnd(InputKind.CONTINUATION, "repl")).text == text
    assert said("x\n... \n>>> ", end=TurnEnd(InputKind.PROMPT, "repl")).text == "... "


def test_a_shell_that_wants_more_of_a_command_has_printed_nothing() -> None:
    fish = "for \r\x1b[15Ci\x1b[22C2\r\n\x1b[K\x1bM\r\n\x1b[15C\x1bM\x08\x08\x1b[34mfor\x1b[36m2\r\r\n\x1b[15C"
    assert said(fish, "for i in 1 2", prompt="me ~> ", end=TurnEnd(InputKind.CONTINUATION, "shell")) == PrintedAnswer(
        "", True, None, "screen"
    )


@pytest.mark.parametrize(
    ("prompt", "data", "text"),
    [
        (">>> ", "x\na\n>>> \r\x1b[K\r>>> ", "a"),
        (">>> ", "x\na\n>>> \r\x1b[K\r>>> \r\x1b[K\r>>> ", "a"),
        ("> ", "x\r\na\n\x1b[1G\x1b[0J> \x1b[3G\x1b[1G\x1b[0J> \x1b[3G", "a"),
        (">>> ", "x\n50%\r>>> ", "50%"),
    ],
)
def test_a_prompt_drawn_again_for_another_size_is_cut_with_the_first(prompt: str, data: str, text: str) -> None:
    assert said(data, prompt=prompt).text == text


@pytest.mark.parametrize("tail", ["# ", "ftp> ", "sh-5.2$ ", "me@far:~$ "])
@pytest.mark.parametrize("before", [">>> ", "me@box ~> ", "me@box:~$ "])
def test_the_prompt_of_another_program_than_before_is_all_of_its_row(before: str, tail: str) -> None:
    assert said(f"x\nout\n{tail}", prompt=before, end=TurnEnd(InputKind.PROMPT)).text == "out"
    assert said(f"x\n\x1b]0;title\x07\r{tail}", prompt=before, end=TurnEnd(InputKind.PROMPT)).text == ""


def test_a_prompt_that_everybody_knows_is_cut_whole_whatever_the_rules_of_another_program() -> None:
    fish = Profile(name="fish", prompt=(Rule("bare", r"^(?:.*\s)?[>#]\s*$"),))
    assert said("x\nout\n>>> ", prompt="me ~> ", profile=fish).text == "out"


def test_a_profile_tells_the_prompt_from_what_stands_before_it() -> None:
    profile = Profile(name="p", prompt=(Rule("prompt", r"^p\d+> "),))
    assert said("x\nabp7> ", prompt="zzp6> ", profile=profile).text == "ab"


def test_a_prompt_of_a_profile_begins_where_its_pattern_says_that_it_does() -> None:
    for pattern, text in ((r"(?i)^p\d+> ?", "ab"), (r"\AP\d+> ?", "ab"), (r"p\d+> ?$", "abP7>")):
        profile = Profile(name="p", prompt=(Rule("prompt", pattern),))
        assert said("x\nabP7>", prompt="me$ ", profile=profile).text == text
    titled = Profile(name="p", prompt=(Rule("prompt", r"(?i)^p\d+> ?", "title"),))
    assert said("x\nabP7>", prompt="me$ ", profile=titled).text == "abP7>"


def test_a_profile_tells_the_prompt_for_more_from_what_stands_before_it() -> None:
    more = Profile(name="p", continuation=(Rule("more", "^more: "),))
    assert said("x\nabmore: ", profile=more, end=TurnEnd(InputKind.CONTINUATION, "repl")).text == "ab"
    assert said("x\nabc", profile=more, end=TurnEnd(InputKind.CONTINUATION, "repl")).text == "abc"
    assert said("a\nmore: b\nout\n>>> ", "a\nb", profile=more).text == "out"


@pytest.mark.parametrize(
    ("data", "typed", "text"),
    [
        ("def f():\n...   return 1\n... \n>>> ", "def f():\n  return 1\n", ""),
        ("1\n1\n>>> 1\n1\n>>> ", "1\n1", "1\n1"),
        ("p(1)\na>>> p(2)\nb>>> ", "p(1)\np(2)", "ab"),
        ("x\na\n>>> y\nb\n>>> y\nc\n>>> ", "x\ny\ny", "a\nb\nc"),
        # bracketed paste is switched off and on without a line in between
        (f"a\n{OFF}\rone\n{ON}{OFF}{ON}>>> b\n{OFF}\rtwo\n{ON}>>> ", "a\nb", "one\ntwo"),
        # other switches before it
        (f"a\n\x1b[?1l\x1b>{OFF}\rone\n{ON}zwei: b\n\x1b[?1l\x1b>{OFF}\rtwo\n{ON}drei: ", "a\nb", "one\ntwo"),
        # the program's output switches it off, not the editor of the line
        (f"a\none{OFF}\n>>> b\ntwo\n>>> ", "a\nb", "one\ntwo"),
        ("'''\n... a\n... '''\n... \n>>> ", "'''\na\n'''", "... "),
        (f"a\n{OFF}\r{ON}   ...> b\n{OFF}\rout\n{ON}>>> ", "a\nb", "out"),
        (f"a\n{OFF}\rone\n{ON}>>> b\n{OFF}\rtwo{ON}>>> ", "a\nb", "one\ntwo"),
        (f"\x1b[7ma\nb\x1b[27m\n{OFF}\rone\n{ON}>>> ", "a\nb", "one"),
        (
            "a{\r\n\x1b[1G\x1b[0J... \x1b[5Gb\r\n\x1b[1G\x1b[0J... \x1b[5G}\r\nout\n\x1b[1G\x1b[0J> \x1b[3G",
            "a{\nb\n}",
            "out",
        ),
    ],
)
def test_each_typed_line_is_taken_out_with_its_prompt(data: str, typed: str, text: str) -> None:
    assert said(data, typed).text == text


@pytest.mark.parametrize(
    ("data", "typed", "text"),
    [
        ("for\ndo\ndone\n> > 1\n2\n# ", "for\ndo\ndone", "1\n2"),
        ("for\n> do\n> done\n1\n# ", "for\ndo\ndone", "1"),
        ("a\nb\none\n# two\n# ", "a\nb", "one\ntwo"),
        ("a\nb\n1# 2# ", "a\nb", "12"),
        # what looks like one more prompt was printed
        ("a\nb\none\n# two # 2\n# three\n# ", "a\nb", "one\ntwo # 2\n# three"),
    ],
)
def test_a_terminal_echoes_all_lines_before_the_program_asks_for_them(data: str, typed: str, text: str) -> None:
    assert said(data, typed, prompt="# ", echo="tty").text == text


def test_an_echo_that_was_wrapped_or_drawn_again_is_an_echo() -> None:
    line = "y" * 50
    assert said(f"{line[:36]} \r{line[36:]}\nout\n>>> ", line).text == "out"
    assert said("y\by" + line[1:] + "\nout\n>>> ", line).text == "out"
    preview = "1+1\n\x1b[90m2\x1b[39m\x1b[8G\x1b[1A\x1b[1B\x1b[2K\x1b[1A\r\nout\n>>> "
    assert said(preview, "1+1").text == "out"


def test_without_an_echo_all_is_output() -> None:
    assert said("x\n>>> ", "x", echo="none").text == "x"
    assert said("out\nmore\n>>> ", "another").text == "out\nmore"


def test_after_eight_lines_without_an_echo_the_rest_is_not_looked_for() -> None:
    data = "x\nout\n>>> y\nmore\n>>> "
    for missed, text in ((8, "out\nmore"), (9, "out\n>>> y\nmore")):
        assert said(data, "\n".join(["x", *map(str, range(missed)), "y"])).text == text


@pytest.mark.parametrize("before", ["", "a", "aa"])
def test_a_prompt_is_cut_from_a_row_of_any_length(before: str) -> None:
    output = "\u2013" * 30000 + before
    assert said(f"x\n{output}>>> ").text == output


def test_where_bracketed_paste_is_switched_on_a_prompt_begins_whatever_it_looks_like() -> None:
    assert said(f"x\n{OFF}\rout\n{ON}zwei: ").text == "out"
    assert said(f"x\nout\n{ON}zwei: ").text == "out"
    assert said(f"x\nout{OFF}\nmore\n{ON}zwei: ").text == "out\nmore"
    # it is off again: the program prints
    assert said(f"x\nout\n{ON}zwei{OFF}: ").text == "out\nzwei: "


def test_output_may_be_drawn_at_rows_of_the_screen() -> None:
    assert said("x\none\x1b[6;1Htwo\n>>> ").text == "one\n\ntwo"


@pytest.mark.parametrize(
    ("data", "typed", "output"),
    [
        (b"x\r\nout", b"x", b"out"),
        (b"x\r\n\x1b[?1l\x1b>\x1b[?2004l\rout", b"x", b"out"),
        (b"x\x1b[?2004l\r\r\nout", b"x", b"out"),
        (b"x\r\nout\x1b[?2004l\r\nmore", b"x", b"out\x1b[?2004l\r\nmore"),
        ("ü\r\nout".encode(), "ü".encode(), b"out"),
        # an editor draws what was typed before it takes the Enter
        (b"long line", b"long line", b""),
        (b"lo\x1b[32mng\x1b[m li", b"long line", b""),
        # the journal had not come to the prompt yet, or to its end, when the line was typed
        (b"sh$ x\r\nout", b"x", b"out"),
        (b"\x1b[1msh$\x1b[m x\r\nout", b"x", b"out"),
        (b"\rsh$ x\x1b[?2004l\r\r\nout", b"x", b"out"),
        (b"old\r\nsh$ x\r\nout", b"x", b"out"),
        (b"sh$ long l", b"long line", b""),
        (b"old\r\nsh$ long l", b"long line", b""),
        (b"sh$ long line\r", b"long line", b""),
        # it is not plain to see
        (b"a$ x\r\nout", b"x", b"a$ x\r\nout"),
        (b"so x\r\nx\r\n", b"x", b"so x\r\nx\r\n"),
        (b"sh$ other", b"long line", b"sh$ other"),
        (b"sh$ ", b"long line", b"sh$ "),
        (b"out", b"x", b"out"),
        (b"xout", b"x", b"xout"),
        (b"\xff\r\nout", b"\xff", b"\xff\r\nout"),
        (b"x\r\nx\r\nout", b"x\nx", b"x\r\nx\r\nout"),
        (b"\r\nout", b"", b"\r\nout"),
    ],
)
def test_output_is_what_comes_behind_the_echo_of_one_line(data: bytes, typed: bytes, output: bytes) -> None:
    given = TypedInput(typed, 4, 0, 40, 10, "editor")
    assert data[find_output_start(data, given) :] == output
    assert find_output_start(data, given._replace(echo="none")) == 0


def test_marks_say_where_output_begins() -> None:
    data = marked("x y\r\n", "C", "out\r\n").encode()
    given = TypedInput(b"x", 4, 0, 40, 10, "editor")
    assert data[find_output_start(data, given, "t0") :] == b"out\r\n"
    assert find_output_start(data, given, "other") == 0
    assert find_output_start(b"x\r\nout", given, "t0") == 3


def marked(*parts: str) -> str:
    marks = {"C": "C;tmuxctl=t0", "D": "D;{};tmuxctl=t0", "A": "A;tmuxctl=t0", "B": "B;tmuxctl=t0"}
    named = {"A": marks["A"], "B": marks["B"], "C": marks["C"], "D0": marks["D"].format(0), "D7": marks["D"].format(7)}
    return "".join(f"\x1b]133;{named[part]}\x07" if part in named else part for part in parts)


def test_marks_say_what_is_output_and_how_it_ended() -> None:
    data = marked("x\n", "C", "$ out  \n\n", "D7", "A", "$ ", "B")
    assert said(data, prompt="$ ", token="t0") == PrintedAnswer("$ out  \n", True, 7, "marks")


def test_marks_of_another_token_say_nothing() -> None:
    data = marked("x\n", "C", "out\n", "D7", "A", "$ ", "B")
    assert said(data, prompt="$ ", token="other") == PrintedAnswer("out", True, None, "screen")


def test_several_commands_give_all_their_outputs_and_the_last_status() -> None:
    one = marked("a\n", "C", "one\n", "D0", "A", "$ ", "B")
    data = one + marked("b\n", "C", "two", "D7", "A", "$ ", "B")
    assert said(data, "a\nb", prompt="$ ", token="t0") == PrintedAnswer("one\ntwo", True, 7, "marks")


def test_a_line_the_shell_cannot_read_is_answered_by_what_it_says() -> None:
    data = marked(f"x (\n{OFF}\rsyntax error\n", "D7", ON, "A", "$ ", "B")
    assert said(data, "x (", prompt="$ ", token="t0") == PrintedAnswer("syntax error", True, 7, "marks")


def test_a_command_that_still_runs_is_not_complete() -> None:
    data = marked("x\n", "C", "so far\n")
    assert said(data, prompt="$ ", token="t0") == PrintedAnswer("so far", False, None, "marks")


def test_a_program_that_waits_at_its_own_prompt_has_answered() -> None:
    data = marked("x\n", "C", "Welcome\n>>> ")
    assert said(data, prompt="$ ", token="t0") == PrintedAnswer("Welcome", True, None, "marks")


def test_zsh_signs_a_missing_newline_and_that_is_not_output() -> None:
    sign = "\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m" + " " * 39 + "\r \r"
    drawn = "\r\x1b[0m\x1b[27m\x1b[24m\x1b[J$ \x1b[K"
    assert said(marked("x\n", "C", "ab", sign, "D0", drawn), prompt="$ ", token="t0").text == "ab"
    assert said(f"x{OFF}\r\nab{sign}{drawn}{ON}", prompt="$ ").text == "ab"


def test_a_program_on_the_alternate_screen_keeps_its_text_to_itself() -> None:
    assert not said("x\n\x1b[?1049h\x1b[Hfull screen").complete


def test_before_anything_is_echoed_there_is_no_answer_yet() -> None:
    assert said("") == PrintedAnswer("", False, None, "screen")
    assert said("", echo="none").complete


def test_raw_is_everything_as_it_came() -> None:
    data = "x\n\x1b[31mred\x1b[0m\n>>> "
    assert said(data, raw=True).text == data.replace("\n", "\r\n")


def test_a_profile_says_where_an_answer_begins_and_ends_and_what_is_no_part_of_it() -> None:
    manner = Profile(name="p", answer=AnswerRules(begin="^⏺ ", strip=("^│", "^$"), until="^─"))
    assert said("x\nthinking\n⏺ one\n\n│ box\ntwo\n\n────\nrest\n>>> ", profile=manner).text == "one\n\ntwo"


def test_an_answer_that_ends_at_a_prompt_alone_may_hold_that_word() -> None:
    agent = Profile(name="p", answer=AnswerRules(until="prompt"))
    assert said("x\nthe prompt\nrest\n>>> ", profile=agent).text == "the prompt\nrest"


def test_a_sequence_cut_at_the_end_and_bytes_that_are_no_text_do_no_harm() -> None:
    given = TypedInput(b"x", 4, 0, 40, 10, "editor")
    assert cut_answer(b"x\r\na\xffb\r\n>>> ", given, prompt_before=">>> ").text == "a\ufffdb"
    assert cut_answer(b"x\r\nab\r\n\x1b[3", given, prompt_before=">>> ").text == "ab"
