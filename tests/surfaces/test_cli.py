"""The command line: how words become calls, results become lines, and errors become exit statuses."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import pytest
from conftest import count_child_faults, list_pids, send_to_another_thread, start_command_server, sweep

from tmuxctl import __version__, errors
from tmuxctl.control import Control
from tmuxctl.model import Session, State, Status
from tmuxctl.operations import (
    RIGHTS,
    Bytes,
    Flag,
    Input,
    Key,
    NewName,
    Pattern,
    Seconds,
    SessionName,
    SessionNames,
    find,
    invoke,
    list_names,
    operation,
)
from tmuxctl.results import (
    Answer,
    Check,
    CursorPosition,
    Doctor,
    End,
    Killed,
    Output,
    Ran,
    Screen,
    Sessions,
    Submitted,
    Wait,
    Written,
)
from tmuxctl.surfaces.cli import app
from tmuxctl.surfaces.cli.commands.services import Service
from tmuxctl.surfaces.cli.manual import reference
from tmuxctl.surfaces.cli.printing import cells, output, progress, show, table
from tmuxctl.timing import PageTiming
from tmuxctl.vocabulary import InputKind, WaitCondition

HASTY = PageTiming(line_seconds=0.01)
"""The line that tells what is waited for comes at once."""

ROOT = Path(__file__).resolve().parents[2]

DB = Session(
    name="db", id="1-2", argv=("/usr/bin/sqlite3", "shop 1.db"), cwd="/srv/shop", cols=120,
    rows=40, active="2026-01-02T03:04:05Z",
)  # fmt: skip
BUILD = Session(
    name="build", id="3-4", status=Status(State.EXITED), argv=("make",), cwd="/tmp", exit_status=2, cols=80, rows=24
)


class Stand:
    """Remembers what it was called with, and answers with what the test gave it."""

    def __init__(self, answers, calls, options):
        self.answers, self.calls, self.options = answers, calls, options

    def call(self, name, arguments):
        self.calls.append((name, dict(arguments)))
        return invoke(self, name, arguments, rights=RIGHTS)

    def close(self):
        self.calls.append("closed")

    def answer(self, name):
        found = self.answers.get(name)
        if isinstance(found, BaseException):
            raise found
        return found

    @operation(right="write", group="Drive", examples=("send db 'select 1;'",))
    def send(
        self,
        session: SessionName,
        text: Annotated[Input, "what to type"] = b"",
        *,
        enter: Annotated[bool, "press Enter after it"] = True,
        paste: Annotated[bool, "as a paste"] = False,
        repeat: int = 1,
        with_: tuple[str, ...] = (),
    ) -> Written:
        """Type text.

        And more of it.
        """
        self.calls.append({"text": text, "enter": enter})
        return self.answer("send")

    @operation(right="write", group="Drive")
    def keys(self, session: SessionName, keys: Key) -> Written:
        """Press keys."""
        return self.answer("keys")

    @operation(right="write", group="Drive", passes_status=True)
    def exec(self, session: SessionName, command: tuple[str, ...], *, timeout: Seconds | None = None) -> Ran:
        """Run a command."""
        return self.answer("exec")

    @operation(right="read", group="Drive")
    def wait(
        self, session: SessionName, *, text: Pattern | None = None, now: bool = False, settle: Seconds | None = None
    ) -> Wait:
        """Wait."""
        return self.answer("wait")

    @operation(right="read", group="Look")
    def screen(
        self,
        session: SessionName,
        *,
        ansi: bool = False,
        html: Annotated[bool, Flag(to_file=True)] = False,
        scrollback: Annotated[int | None, Flag(bare="0", value=r"\d+")] = None,
    ) -> Screen:
        """Look."""
        return self.answer("screen")

    @operation(right="read", group="Look", view="cursor", streams=True)
    def read(self, session: SessionName, *, follow: bool = False, raw: bool = False) -> Output:
        """Read."""
        return self.answer("read")

    @operation(right="read", group="Look", view="facts")
    def show(self, session: SessionName) -> Session:
        """Show."""
        return self.answer("show")

    @operation(right="create", group="Sessions", view="started", examples=("new db -- sqlite3",))
    def new(
        self,
        name: NewName | None = None,
        command: tuple[str, ...] = (),
        *,
        env: Annotated[dict[str, str] | None, "set", Flag(("-e",))] = None,
        if_exists: Literal["error", "reuse"] = "error",
        max_bytes: Bytes = 1 << 20,
    ) -> Session:
        """Start a program."""
        return self.answer("new")

    @operation(right="create", group="Sessions", passes_status=True)
    def run(self, command: tuple[str, ...], *, timeout: Seconds | None = None) -> Ran:
        """Run a program."""
        return self.answer("run")

    @operation(right="read", group="Sessions", rows=True)
    def ls(self, *, state: str | None = None) -> Sessions:
        """List."""
        return self.answer("ls")

    @operation(right="kill", group="Sessions")
    def kill(self, session: SessionNames = (), *, all: bool = False) -> Killed:
        """Kill."""
        return self.answer("kill")

    @operation(right="read", group="Set up")
    def doctor(self) -> Doctor:
        """Check."""
        return self.answer("doctor")


class Line:
    """The command line over the stand-in."""

    def __init__(self, capsys):
        self.capsys, self.answers, self.calls, self.options = capsys, {}, [], None

    def __call__(self, *words):
        def connect(options):
            self.options = options
            return Stand(self.answers, self.calls, options)

        self.calls.clear()
        self.status = app.run(words, app.App(lambda: [Service(Stand, connect)]))
        self.out, self.err = self.capsys.readouterr()
        assert "Traceback" not in self.err
        return self.status

    @property
    def given(self):
        return self.calls[0][1]


@pytest.fixture
def line(capsys):
    before = signal.getsignal(signal.SIGTERM)
    yield Line(capsys)
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def stdin(monkeypatch, tmp_path):
    def fill(data):
        (tmp_path / "in").write_bytes(data)
        monkeypatch.setattr(sys, "stdin", (tmp_path / "in").open())

    return fill


# words become arguments


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["send", "db", "select 1;"], {"session": "db", "text": "select 1;"}),
        (["send", "db", "--", "-R"], {"session": "db", "text": "-R"}),
        (["send", "--", "db", "-R"], {"session": "db", "text": "-R"}),
        (["send", "db", "--no-enter", "--", "--help"], {"session": "db", "text": "--help", "enter": False}),
        (["send", "db", "x", "--enter", "--paste"], {"session": "db", "text": "x", "enter": True, "paste": True}),
        (["send", "db", "x", "--with", "a=1", "--with", "b"], {"session": "db", "text": "x", "with_": ("a=1", "b")}),
        (["send", "db", "--", "-"], {"session": "db", "text": "-"}),
        (["keys", "db", "C-c", "Enter"], {"session": "db", "keys": ["C-c", "Enter"]}),
        (["keys", "db", "C-c", "--", "-", "--"], {"session": "db", "keys": ["C-c", "-", "--"]}),
        (["exec", "db", "--", "make", "-j4"], {"session": "db", "command": ["make", "-j4"]}),
        (["exec", "db", "cd x && ls"], {"session": "db", "command": ["cd x && ls"]}),
        (["exec", "db", "--timeout", "5m", "--", "a", "--", "b"],
         {"session": "db", "command": ["a", "--", "b"], "timeout": "5m"}),
        (["run", "make", "test"], {"command": ["make", "test"]}),
        (["run", "--", "ls", "--json"], {"command": ["ls", "--json"]}),
        (["new"], {}),
        (["new", "db"], {"name": "db"}),
        (["new", "--", "python3", "-q"], {"command": ["python3", "-q"]}),
        (["new", "db", "-e", "A=1", "--env", "B=2", "--", "x"],
         {"name": "db", "command": ["x"], "env": ("A=1", "B=2")}),
        (["new", "--max-bytes", "1M", "--if-exists=reuse"], {"max_bytes": "1M", "if_exists": "reuse"}),
        (["kill", "a", "b"], {"session": ["a", "b"]}),
        (["wait", "db", "--text", "-x", "--now"], {"session": "db", "text": "-x", "now": True}),
        (["screen", "db", "--scrollback"], {"session": "db", "scrollback": "0"}),
        (["screen", "--scrollback", "db"], {"session": "db", "scrollback": "0"}),
        (["screen", "--scrollback", "20", "db"], {"session": "db", "scrollback": "20"}),
    ],
)  # fmt: skip
def test_words_become_the_arguments_of_a_call(line, words, given):
    line(*words)
    assert line.given == given


@pytest.mark.parametrize(
    ("words", "reason", "says"),
    [
        (["send", "db", "-R"], "bad_option", "goes after --"),
        (["send", "db", "--entr"], "bad_option", "did you mean --enter"),
        (["send", "db", "a", "b"], "bad_usage", "quote words"),
        (["send"], "missing", "send needs NAME"),
        (["exec", "db"], "missing", "needs COMMAND"),
        (["new", "db", "sqlite3"], "bad_usage", "goes after --"),
        (["new", "db", "--"], "missing", "no command after --"),
        (["new", "--if-exists", "maybe"], "bad_choice", "error, reuse"),
        (["new", "-e", "=x"], "bad_env", "NAME=VALUE"),
        (["new", "--max-bytes", "many"], "bad_bytes", "--max-bytes: "),
        (["exec", "db", "--timeout", "soon", "--", "x"], "bad_duration", "--timeout: "),
        (["send", "db", "x", "--repeat", "1.5"], "bad_number", "--repeat: "),
        (["wait", "db", "--text"], "bad_usage", "requires an argument"),
        (["send", "db", "x", "--paste=1"], "bad_usage", "does not take a value"),
        (["sned", "db"], "no_command", "did you mean 'send'"),
        (["--jsno", "ls"], "bad_option", "--json"),
        (["-q"], "bad_usage", "missing command"),
        (["send", "db", "\udcff"], "bad_text", "standard input"),
        (["ls", "-F", "{name.__class__}"], "bad_format", "there are: name"),
        (["ls", "-F", "{argv[0]}"], "bad_format", "there are: name"),
        (["ls", "-F", "{nobody}"], "bad_format", "there are: name"),
        (["ls", "-F", "{name:>99999}"], "bad_format", "there are: name"),
        (["ls", "-F", "{name!r}"], "bad_format", "there are: name"),
        (["ls", "-F", "{name"], "bad_format", "there are: name"),
    ],
)
def test_a_wrong_word_is_a_usage_error_with_a_hint(line, words, reason, says):
    line.answers["ls"] = Sessions((DB,))
    assert line(*words) == 2
    assert line.err.startswith("tmuxctl: ")
    assert says in line.err
    assert line.out == ""
    marked = ["--json", *words]
    assert line(*marked) == 2
    error = json.loads(line.err)["error"]
    assert (error["code"], error["reason"], error["exit"]) == ("usage", reason, 2)


def test_options_of_every_command_stand_before_and_after_it(line):
    line.answers["ls"] = Sessions(())
    for words in (["--socket", "x", "--json", "-q", "ls"], ["ls", "--socket=x", "--json", "-q"]):
        assert line(*words) == 0
        assert line.options == output.Options(socket="x", json=True, quiet=True)
    line("--socket", "x", "ls", "--socket", "y", "--no-color", "--no-input", "-v")
    assert line.options == output.Options(socket="y", color=False, prompt=False, verbose=True)


def test_after_two_dashes_nothing_is_an_option(line):
    line.answers["run"] = errors.Failed("no")
    line("run", "--", "x", "--json", "-h", "--socket", "y")
    assert line.given == {"command": ["x", "--json", "-h", "--socket", "y"]}
    assert line.options == output.Options()
    assert line.err == "tmuxctl: no\n"


# standard input


@pytest.mark.parametrize(
    ("data", "flags", "typed"),
    [
        (b"a\0\xff\n", [], b"a\0\xff"),
        (b"a\n\n", [], b"a\n"),
        (b"a", [], b"a"),
        (b"a\r\n", [], b"a\r"),
        (b"a\n", ["--no-enter"], b"a\n"),
        (b"", [], b""),
    ],
)
def test_a_dash_reads_standard_input_as_it_is(line, stdin, data, flags, typed):
    stdin(data)
    line("send", "db", "-", *flags)
    assert line.given["text"] == typed


def test_an_empty_text_types_nothing_and_says_so(line):
    line.answers["send"] = Written("db", "empty", "1f", 0)
    assert line("send", "db", "") == 0
    assert "tmuxctl keys db Enter" in line.err
    line.answers["send"] = Written("db", "done", "1f", 2, "c1:1:0")
    assert line("send", "db", "ls") == 0
    assert line.err == ""


def test_what_follows_a_write_is_printed_and_decides_the_status(line):
    found, late = (
        Wait("db", WaitCondition.TEXT, "text: 'ok'"),
        Wait("db", None, "not seen", text="so far", timed_out=True),
    )
    rows = Screen("db", "$ ls\nok", 80, 24, CursorPosition(2, 1, True), False, "", None, None, "c1:1:9")
    for wait, screen, status, out in (
        (found, None, 0, "text: 'ok'\n"),
        (found, rows, 0, "$ ls\nok\n"),
        (late, None, 124, "not seen\nso far\n"),
        (late, rows, 124, "$ ls\nok\n"),
        (None, rows, 0, "$ ls\nok\n"),
    ):
        line.answers["send"] = Written("db", "done", "1f", 2, "c1:1:0", wait, screen)
        assert line("send", "db", "ls") == status
        assert line.out == out
    line.answers["send"] = Written("db", "done", "1f", 2, "c1:1:0", late, rows)
    line("send", "db", "ls")
    assert "not seen" in line.err


def test_an_answer_that_may_not_be_whole_says_so(line, capsys):
    options = output.Options()
    show.Printer(options).show(Answer("db", "42", Status(State.IDLE, InputKind.EDITOR), complete=False))
    assert "tmuxctl screen db" in capsys.readouterr().err
    show.Printer(options).show(Answer("db", "42", Status(State.IDLE, InputKind.PROMPT)))
    assert capsys.readouterr().err == ""


def test_a_text_that_was_not_submitted_is_told_as_that(capsys):
    for state in (State.UNKNOWN, State.IDLE):
        answer = Answer("a", "", Status(state), submitted=Submitted(False, "the text did not appear"), complete=False)
        show.Printer(output.Options()).show(answer)
        told = capsys.readouterr().err
        assert "not submitted to a: the text did not appear; look at it: tmuxctl screen a" in told
        assert "--strict" not in told


def test_a_closed_standard_input_is_told(line, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert line("send", "db", "-") == 2
    assert "standard input is closed" in line.err


# results


SCREEN = Screen(
    "db", "a\nb", 80, 24, CursorPosition(0, 0, True), False, "t", State.UNKNOWN, None, "c1:x:1", html="<p>a</p>"
)


def ran(**facts):
    return Ran(**{"session": "s", "output": "", "data": b"", "output_base64": None, "exit_status": 0, **facts})


def test_ls_is_a_table(line, monkeypatch):
    monkeypatch.setenv("HOME", "/srv")
    line.answers["ls"] = Sessions((BUILD, DB))
    assert line("ls") == 0
    head, build, db = line.out.splitlines()
    assert head.split() == ["NAME", "STATE", "PROFILE", "IDLE", "CMD", "CWD"]
    assert build.split() == ["build", "exited", "2", "-", "-", "make", "/tmp"]
    assert db.split()[:2] == ["db", "unknown"]
    assert db.endswith("/usr/bin/sqlite3 'shop 1.db'  ~/shop")


def test_a_table_fits_its_terminal_and_holds_no_control_character(monkeypatch):
    monkeypatch.setattr(table, "width", lambda: 72)
    hostile = Session(name="x", id="9", argv=("a\x1b]52;c;x\x07" + "b" * 90, "中" * 30), cwd="/\n\x9b31m" + "d" * 99)
    lines = table.sessions((hostile,), output.Options())
    assert len(lines) == 2
    assert all(one.isprintable() and cells.columns(one) <= 72 for one in lines)
    assert "…" in lines[1]


def test_ls_takes_a_format_of_fields(line):
    line.answers["ls"] = Sessions((BUILD, DB))
    line("ls", "-F", r"{name:<6}|{state}\t{exit_status}{{}}")
    assert line.out == "build |exited\t2{}\ndb    |unknown\t{}\n"


def test_an_empty_ls_says_how_to_start(line):
    line.answers["ls"] = Sessions(())
    assert line("--socket", "mine", "ls") == 0
    assert (line.out, line.err) == ("", "tmuxctl: no sessions; start one: tmuxctl --socket mine new -- python3\n")
    assert line("ls", "--state", "asking") == 0
    assert (line.out, line.err) == ("", "tmuxctl: no session matches; to list all: tmuxctl ls\n")
    for words in (["-q"], ["-F", "{name}"], ["--json"]):
        line("ls", *words)
        assert line.err == ""


def test_quiet_prints_names(line):
    line.answers |= {"ls": Sessions((BUILD, DB)), "new": DB, "kill": Killed((End("db", "1", 0, None, 1),))}
    for words, out in ((["ls", "-q"], "build\ndb\n"), (["new", "-q"], "db\n"), (["kill", "-q", "db"], "db\n")):
        line(*words)
        assert line.out == out


def test_new_says_how_to_attach(line):
    line.answers["new"] = DB
    line("--socket", "mine", "new")
    assert line.out == "db  unknown  sqlite3  120x40      attach: tmuxctl --socket mine attach db\n"


def test_json_is_one_object_with_the_words_of_the_model(line):
    line.answers["show"] = DB
    line("show", "db", "--json")
    found = json.loads(line.out)
    assert line.out.count("\n") == 1
    assert (found["state"], found["profile"], found["argv"]) == ("unknown", None, ["/usr/bin/sqlite3", "shop 1.db"])


def test_json_holds_no_control_character(line):
    line.answers["show"] = Session(name="x", id="1", status=Status(detail="\x1b\x07\x7f\x9b\u2028\udcff é"))
    line("show", "x", "--json")
    assert line.out.strip().isprintable()
    assert json.loads(line.out)["detail"] == "\x1b\x07\x7f\x9b\u2028\udcff é"


def test_show_aligns_what_is_known(line):
    line.answers["show"] = DB
    line("show", "db")
    assert "state:   unknown\n" in line.out
    assert "profile" not in line.out


@pytest.mark.parametrize(
    ("result", "status", "out"),
    [
        (Wait("db", WaitCondition.TEXT, "text: 'a'"), 0, "text: 'a'\n"),
        (Wait("db", None, "the condition does not hold now", text="seen"), 1, "the condition does not hold now\n"),
        (Wait("db", None, "timeout: x", text="seen", timed_out=True), 124, "timeout: x\nseen\n"),
    ],
)
def test_wait_says_why_and_exits_accordingly(line, result, status, out):
    line.answers["wait"] = result
    assert line("wait", "db") == status
    assert line.out == out


def test_screen_is_text_and_pictures_go_to_files(line, tmp_path):
    line.answers["screen"] = SCREEN
    assert line("screen", "db") == 0
    assert line.out == "a\nb\n"
    assert line("screen", "db", "--html", "-") == 0
    assert line.out == "<p>a</p>\n"
    assert line.given["html"] is True
    assert line("screen", "db", "--html", str(tmp_path / "x.html")) == 0
    assert (tmp_path / "x.html").read_text() == "<p>a</p>"
    assert line.out == ""
    assert "wrote" in line.err
    assert line("screen", "db", "--html", str(tmp_path / "no" / "x")) == 1
    assert "No such file" in line.err


def test_read_prints_text_and_tells_the_cursor_beside_it(line):
    line.answers["read"] = Output("db", "a\nb", "c1:x:9")
    line("read", "db")
    assert (line.out, line.err) == ("a\nb\n", "cursor: c1:x:9\n")
    line("read", "db", "-q")
    assert line.err == ""


def test_a_stream_is_printed_as_it_comes(line):
    line.answers["read"] = iter([Output("db", "a\n", "c1:x:2"), Output("db", "b", "c1:x:3")])
    line("read", "db", "--follow")
    assert (line.out, line.err) == ("a\nb\n", "cursor: c1:x:3\n")
    line.answers["read"] = iter([Output("db", "a\n", "c1:x:2"), Output("db", "b", "c1:x:3")])
    line("read", "db", "--follow", "--json")
    assert [json.loads(one)["text"] for one in line.out.splitlines()] == ["a\n", "b"]


@pytest.mark.parametrize("verb", [["exec", "db"], ["run"]])
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (ran(exit_status=7, data=b"x"), 7),
        (ran(exit_status=None, signal="KILL"), 137),
        (ran(exit_status=None, timed_out=True), 124),
        (ran(exit_status=None), 125),
        (errors.NotFound("no session", reason="no_session"), 125),
        (errors.Failed("not found", reason="command_not_found"), 127),
        (errors.Timeout("slow"), 124),
        (errors.Usage("bad"), 2),
    ],
)
def test_exec_and_run_pass_the_exit_status_through(line, verb, answer, status):
    line.answers |= {"exec": answer, "run": answer}
    assert line(*verb, "--", "x") == status


def test_exec_prints_the_bytes_as_they_were(capsysbinary):
    answers = {"exec": ran(data=b"\xff\0\r\n")}
    app.run(["exec", "db", "--", "x"], app.App(lambda: [Service(Stand, lambda o: Stand(answers, [], o))]))
    assert capsysbinary.readouterr().out == b"\xff\0\r\n"


def test_doctor_fails_with_what_to_do(line):
    line.answers["doctor"] = Doctor(False, (Check("tmux", True, "3.3a"), Check("locale", False, "POSIX", "set LANG")))
    assert line("doctor") == 1
    assert line.out == "✓ tmux    3.3a\n✗ locale  POSIX\n    set LANG\n"


# errors


@pytest.mark.parametrize("kind", errors.CLASSES)
def test_every_error_has_its_exit_status_and_its_object(line, kind):
    line.answers["show"] = kind("it is so", reason="because", hint="do that", more=1)
    assert line("show", "db") == kind.exit
    assert (line.out, line.err) == ("", "tmuxctl: it is so\n  do that\n")
    assert line("show", "db", "--json") == kind.exit
    assert json.loads(line.err)["error"] == {
        "code": kind.code, "reason": "because", "message": "it is so", "hint": "do that", "exit": kind.exit,
        "details": {"more": 1},
    }  # fmt: skip
    assert line.calls[-1] == "closed"


def test_an_error_cannot_steer_the_terminal(line):
    line.answers["show"] = errors.NotFound("no \x1b]0;x\x07\x9b31m\nhere \udcff", hint="\x1b[2J")
    line("show", "db")
    assert all(one.isprintable() for one in line.err.splitlines())
    assert len(line.err.splitlines()) == 2


def test_a_bug_is_told_without_a_traceback(line, monkeypatch):
    monkeypatch.delenv("TMUXCTL_LOG", raising=False)
    line.answers["show"] = ZeroDivisionError("oh")
    assert line("show", "db") == 1
    assert line.err.startswith("tmuxctl: internal error: ZeroDivisionError: oh\n")
    assert line("show", "db", "--json") == 1
    error = json.loads(line.err)["error"]
    assert (error["code"], error["reason"]) == ("failed", "internal")


def test_a_bug_shows_where_when_asked(capsys):
    stand = app.App(lambda: [Service(Stand, lambda o: Stand({"show": ZeroDivisionError("oh")}, [], o))])
    assert app.run(["-v", "show", "db"], stand) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_130(line):
    line.answers["wait"] = KeyboardInterrupt()
    assert line("wait", "db") == 130
    assert line.err == "tmuxctl: interrupted\n"
    line("wait", "db", "--json")
    assert json.loads(line.err)["error"]["exit"] == 130


def test_what_was_seen_until_a_timeout_is_printed(line):
    line.answers["wait"] = errors.Timeout("slow", seen="last line")
    assert line("wait", "db") == 124
    assert line.out == "last line\n"


# help, colour, progress


def test_help_lists_the_groups_with_one_line_each(line):
    assert line("--help") == 0
    heads = [one for one in line.out.splitlines() if one.endswith(":") and not one.startswith(" ")]
    assert heads[1:5] == ["Drive:", "Look:", "Sessions:", "Set up:"]
    assert line.out.startswith("Examples:\n  tmuxctl ")
    assert "Type text\n" in line.out


def test_bare_tmuxctl_is_a_mistake_that_shows_the_help(line):
    assert line() == 2
    assert line.out == ""
    assert "Drive:" in line.err


def test_help_of_a_command_leads_with_examples(line):
    for flag in ("-h", "--help"):
        assert line("send", flag) == 0
        assert line.out.startswith(
            "Examples:\n  tmuxctl send db 'select 1;'\n\nUsage: tmuxctl send [OPTIONS] NAME [TEXT|-]\n"
        )
        assert "--no-enter" in line.out
        assert "--with TEXT" in line.out
        assert line.out.count("--socket") == 1


@pytest.mark.parametrize("words", [["--version"], ["ls", "--version"]])
def test_version(line, words):
    assert line(*words) == 0
    assert line.out == f"tmuxctl {__version__}\n"


@pytest.mark.parametrize(
    ("environment", "options", "colored"),
    [
        ({}, {}, True),
        ({"NO_COLOR": "1"}, {}, False),
        ({"TERM": "dumb"}, {}, False),
        ({}, {"color": False}, False),
    ],
)
def test_colour_only_where_it_is_wanted(monkeypatch, environment, options, colored):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.colorful(Terminal(), output.Options(**options)) is colored


def test_a_status_line_comes_and_goes(monkeypatch):
    class Terminal:
        text = ""

        def isatty(self):
            return True

        def fileno(self):
            raise OSError

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress.waiting(find(Control, "wait"), {"session": "build", "exit": True}, output.Options(), timing=HASTY):
        deadline = time.monotonic() + 5
        while "build" not in terminal.text and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "waiting for build to end, 0s  (Ctrl-C stops waiting)" in terminal.text
    assert terminal.text.endswith("\r\x1b[K")


def test_no_status_line_in_a_pipe(capsys):
    with progress.waiting(
        find(Control, "wait"), {"session": "db", "exit": True}, output.Options(), timing=PageTiming(line_seconds=0.0)
    ):
        pass
    assert capsys.readouterr().err == ""


def test_an_unknown_result_is_still_shown(line):
    line.answers["show"] = {"size": [1, 2], "ok": True, "none": None}
    show.Printer(output.Options()).show(line.answers["show"])
    assert line.capsys.readouterr().out == "size: 1 2\nok:   yes\nnone: -\n"


def test_the_moment_of_a_time():
    for text in ("1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "2026-11-21T22:21:42Z", "2000-03-01T00:00:00Z"):
        assert table.moment(text) == datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize("service", [one.operations for one in app.App().services()])
def test_every_operation_has_a_printer_of_its_result(service):
    for one in (find(service, name) for name in list_names(service)):
        shown = [one.meta.view] if one.meta.view else reference.result_classes(one)
        assert shown or one.function.__annotations__["return"] == "None", one.name
        assert [each for each in shown if each not in show.PRINTERS] == [], one.name


@pytest.mark.night
def test_the_reference_names_every_command_and_exit_status():
    text = reference.text()
    for one in ("### send", "### attach", "### completion", "`--max-bytes BYTES`", "| 124 |", "no_session", "no_ptys"):
        assert one in text
    assert all(len(one.strip()) == 0 or one.isprintable() for one in text.splitlines())


# the real thing


class Shell:
    """`python -m tmuxctl` with a tmux server, a HOME and a runtime folder of its own."""

    numbers = itertools.count()

    def __init__(self):
        self.before, self.server = list_pids(), None
        self.home = tempfile.mkdtemp(prefix="tc-", dir="/tmp")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "XDG_", "_TMUXCTL"))}
        self.socket = f"tmuxctl-test-{os.getpid()}-cli{next(self.numbers)}"
        self.environment = {
            **kept, "HOME": self.home, "TMUX_TMPDIR": self.home, "XDG_RUNTIME_DIR": self.home,
            "TMUXCTL_SOCKET": self.socket,
            "PYTHONPATH": str(ROOT), "SHELL": "/bin/sh", "TERM": "xterm-256color", "LANG": "C.UTF-8",
        }  # fmt: skip

    def __call__(self, *words, input=None, **environment):
        command = [sys.executable, "-m", "tmuxctl", *words]
        return subprocess.run(
            command,
            cwd=self.home,
            env=self.environment | environment,
            input=input,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def processes(self, pid):
        """The process of a command, and those that the server has for commands."""
        if not self.server:
            return [pid]
        with open(f"/proc/{self.server.pid}/task/{self.server.pid}/children") as file:
            return [pid, *map(int, file.read().split())]

    def tmux(self, *words):
        command = ["tmux", "-L", self.socket, *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, timeout=20, check=False
        ).stdout.decode()

    def end(self):
        if self.server:
            self.server.kill()
            self.server.wait()
        self.tmux("kill-server")
        sweep(Path(self.home), self.before)
        shutil.rmtree(self.home, ignore_errors=True)


EITHER_WAY = pytest.mark.parametrize("shell", ["alone", "served"], indirect=True, scope="module")
"""The test runs a second time where a server of commands carries out the quick ones."""


@pytest.fixture(scope="module")
def shell(request):
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    found = Shell()
    if getattr(request, "param", "alone") == "served":
        with pytest.MonkeyPatch.context() as patched:
            for name in set(os.environ) - set(found.environment):
                patched.delenv(name)
            for name, value in found.environment.items():
                patched.setenv(name, value)
            found.server = start_command_server()
            before = count_child_faults(found.server.pid)
    yield found
    through = not found.server or count_child_faults(found.server.pid) > before
    found.end()
    assert through, "no command went through the server"


@pytest.fixture(scope="module")
def cat(shell):
    made = shell("new", "cat", "--", "sh", "-c", "stty -echo; echo ready; exec cat")
    assert made.returncode == 0, made.stderr
    assert shell("wait", "cat", "--text", "ready", "--since", "screen").returncode == 0
    return "cat"


@pytest.mark.night
@EITHER_WAY
def test_a_session_is_driven_from_the_command_line(shell, cat):
    assert shell("send", cat, "héllo; #{x}").returncode == 0
    assert shell("wait", cat, "--text", "héllo").stdout == b"text: 'h\\xe9llo'\n"
    assert "héllo; #{x}" in shell("screen", cat).stdout.decode()
    assert shell("send", cat, "-", input=b"by stdin\n").returncode == 0
    assert shell("wait", cat, "--text", "by stdin").returncode == 0
    assert json.loads(shell("ls", "--json").stdout)["sessions"][0]["name"] == cat


@pytest.mark.night
def test_run_passes_output_and_status_through(shell):
    done = shell("run", "--", "sh", "-c", "printf 'a\\n'; exit 9")
    assert (done.returncode, done.stdout) == (9, b"a\n")


@EITHER_WAY
def test_bytes_that_are_no_utf8_are_refused_as_words(shell, cat):
    done = shell("send", cat, b"\xff")
    assert done.returncode == 2
    assert b"not UTF-8" in done.stderr


@EITHER_WAY
def test_words_are_utf8_in_any_locale(shell, cat):
    assert shell("send", cat, "ünï", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0").returncode == 0
    assert shell("wait", cat, "--text", "ünï").returncode == 0


@EITHER_WAY
def test_a_full_or_closed_output_is_no_traceback(shell, cat):
    for redirection, status in (("> /dev/full", 1), (">&-", 1), ("| true", 0)):
        line = f'"{sys.executable}" -m tmuxctl ls {redirection}'
        done = subprocess.run(["sh", "-c", line], env=shell.environment, capture_output=True, timeout=60, check=False)
        assert done.returncode == status
        assert b"Traceback" not in done.stderr
        assert b"Exception" not in done.stderr
        assert (b"standard output" in done.stderr) is (status == 1)


@EITHER_WAY
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_wait_not_the_program(shell, cat, number, status):
    command = [sys.executable, "-m", "tmuxctl", "wait", cat, "--exit", "-v"]
    # as a shell's background job this suite would have SIGINT ignored, and so would what it starts
    with subprocess.Popen(
        command,
        env=shell.environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as waiting:
        # it waits once it listens to the journal
        deadline = time.monotonic() + 20
        while b"inotify" not in b"".join(_links(*shell.processes(waiting.pid))) and time.monotonic() < deadline:
            time.sleep(0.02)
        waiting.send_signal(number)
        _, err = waiting.communicate(timeout=20)
    assert waiting.returncode == status, err
    assert b"Traceback" not in err
    assert shell("wait", cat, "--exit", "--now").returncode == 1


@pytest.mark.night
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_another_thread_takes_ends_what_several_are_waited_for(shell, until, number, status):
    # the server is that of all tests of this file
    names = [f"{place}-{status}" for place in ("first", "second")]
    for name in names:
        assert shell("new", name, "--", "bash", "--norc", "--noprofile").returncode == 0
    command = [sys.executable, "-m", "tmuxctl", "ask", ",".join(names), "echo hel''lo; sleep 600"]
    with subprocess.Popen(
        command,
        env=shell.environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as asking:
        try:
            until(lambda: all(b"hello" in shell("screen", name).stdout for name in names))
            send_to_another_thread(asking.pid, number)
            _, err = asking.communicate(timeout=20)
        finally:
            asking.kill()
    assert asking.returncode == status, err
    assert b"Traceback" not in err


def _links(*pids):
    for folder in (f"/proc/{pid}/fd" for pid in pids):
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    yield os.readlink(f"{folder}/{name}").encode()


def test_attach_needs_a_terminal(shell, cat):
    done = shell("attach", cat)
    assert done.returncode == 2
    assert b"tmuxctl screen cat" in done.stderr
    assert shell("attach", "nobody").returncode == 3


def test_attach_brings_the_session_here(shell, cat):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(shell.environment, TMUX="/elsewhere,1,0")
        os.execv(sys.executable, [sys.executable, "-m", "tmuxctl", "attach", cat, "--read-only", "--keep-size"])
    try:
        seen = b""
        while b"ready" not in seen:
            seen += os.read(terminal, 65536)
        assert shell.tmux("show-options", "-v", "-t", f"={cat}:", "@tmuxctl_keep_size") == "1\n"
        assert shell.tmux("list-clients", "-F", "#{session_name} #{client_readonly}") == f"{cat} 1\n"
        shell.tmux("detach-client", "-s", f"={cat}")
        while True:
            try:
                if not os.read(terminal, 65536):
                    break
            except OSError:
                break
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        os.close(terminal)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_code_is_for_its_shell(shell, name):
    script = shell("completion", name).stdout.decode()
    assert "_TMUXCTL_COMPLETE" in script
    if shutil.which(name):
        assert subprocess.run([name, "-n"], input=script.encode(), capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("tmuxctl sc", ["screen"]),
        ("tmuxctl send ca", ["cat"]),
        ("tmuxctl kill cat ca", ["cat"]),
        ("tmuxctl send cat --mul", ["--multiline"]),
        ("tmuxctl --js", ["--json"]),
        ("tmuxctl keys cat ctrl+a", ["ctrl+a"]),
        ("tmuxctl new --if-exists re", ["reuse", "replace"]),
        ("tmuxctl config p", ["path"]),
        ("tmuxctl --socket nosuch send ca", []),
        ("tmuxctl nosuch x", []),
    ],
)
def test_the_shell_completes(shell, cat, typed, offered):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_TMUXCTL_COMPLETE": "bash_complete"}
    done = shell(**words)
    assert done.stderr == b""
    assert [one.partition(",")[2] for one in done.stdout.decode().split()] == offered


def test_config_shows_where_a_value_is_from(shell):
    done = shell("config", "show")
    assert f"{shell.socket}  TMUXCTL_SOCKET" in done.stdout.decode()
    assert json.loads(shell("config", "path", "--json").stdout)["exists"] is False
    assert shell("config", "path", TMUXCTL_CONFIG="not/absolute").returncode == 2


def unmeasured(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what coverage.py goes by: it would be loaded too."""
    return {name: value for name, value in environment.items() if not name.startswith("COVERAGE_")}


@pytest.mark.parametrize("words", ["--help", "ls", "show cat", "screen cat", "send cat x", "wait cat --exit --now"])
def test_a_quick_command_loads_nothing_heavy(shell, cat, words):
    code = (
        "import sys; from tmuxctl.surfaces.cli import app; app.run(sys.argv[1:]);"
        "heavy = 'libtmux yaml pyte psutil asyncio importlib.metadata argparse tempfile difflib dataclasses'.split();"
        "print([name for name in heavy if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, *words.split()]
    done = subprocess.run(command, env=unmeasured(shell.environment), capture_output=True, check=False)
    assert done.stdout.decode().splitlines()[-1] == "[]", done.stderr


COMPILED = {
    *(
        f"tmuxctl.evidence.{name}"
        for name in ["Evidence", "Hook", "Kernel", "LastMark", "Look", "Program", "Thread", "Tty"]
    ),
    *(
        "tmuxctl.transport.base.Process",
        "tmuxctl.terminal.panes.captures.Capture",
        "tmuxctl.terminal.tmux.pane_io.Looked",
    ),
    *("tmuxctl.config.Setting", "tmuxctl.config.Origin"),
    *("NAME", "ROW", "TYPED"),
}
"""Classes and patterns that Python compiles in a quick command before it needs them: tuples that are taken apart or kept as
lists (docs/adr/0004), and patterns that every one uses. A `Value`, and a pattern's text given to `re`, cost nothing there."""


@pytest.mark.parametrize("words", ["ls", "screen cat", "send cat x", "wait cat --exit --now"])
def test_a_quick_command_compiles_little(shell, cat, words):
    code = (
        "import re, sys; from tmuxctl.surfaces.cli import app; app.run(sys.argv[1:]);"
        "ours = [module for name, module in sys.modules.items() if name.startswith('tmuxctl')];"
        "compiled = lambda value: isinstance(value, re.Pattern) or hasattr(value, '_fields') or hasattr(value, '__match_args__');"
        "told = lambda key, value: key if isinstance(value, re.Pattern) else f'{value.__module__}.{key}';"
        "print(*(told(key, value) for module in ours for key, value in vars(module).items()"
        " if compiled(value)))"
    )
    command = [sys.executable, "-c", code, *words.split()]
    done = subprocess.run(command, env=unmeasured(shell.environment), capture_output=True, check=False)
    assert set(done.stdout.decode().splitlines()[-1].split()) <= COMPILED, done.stderr


@pytest.mark.parametrize("words", ["ls", "screen cat", "send cat x", "show cat", "wait cat --exit --now"])
def test_what_a_quick_command_loads_ahead_it_needs(shell, cat, words):
    code = (
        "import sys; from tmuxctl.surfaces.cli import app; from tmuxctl.surfaces.cli.commands import command;"
        "ahead = command.AHEAD.pop(sys.argv[1]); app.run(sys.argv[1:]);"
        "print([name for name in ahead if name not in sys.modules])"
    )
    command = [sys.executable, "-c", code, *words.split()]
    done = subprocess.run(command, env=unmeasured(shell.environment), capture_output=True, check=False)
    assert done.stdout.decode().splitlines()[-1] == "[]", done.stderr


def test_a_program_that_was_started_before_is_started_without_yaml(shell):
    # for a moment the shell that starts it has the terminal, so that one is known too
    for argv in (["cat"], [sys.executable, "-c", "import os; os.execlp('sh', 'sh')"]):
        assert shell("new", "--", *argv).returncode == 0
    code = (
        "import sys; from tmuxctl.surfaces.cli import app; app.run(sys.argv[1:]);"
        "print([name for name in 'dataclasses libtmux shutil yaml'.split() if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, "new", "again", "--", "cat"]
    done = subprocess.run(command, env=unmeasured(shell.environment), capture_output=True, check=False)
    assert done.stdout.decode().splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize("words", ["ls", "screen cat", "send cat x", "wait cat --exit --now"])
def test_a_quick_command_collects_no_garbage_and_takes_nothing_apart(shell, cat, words):
    code = (
        "import atexit, gc, sys; from tmuxctl.surfaces.cli import main; gc.collect(); began = [];"
        "sys.last = type('Last', (), {'__del__': lambda self: print('taken apart', flush=True)})();"
        "gc.callbacks.append(lambda phase, about: began.append(phase)); atexit.register(lambda: print(len(began)));"
        "sys.exit(main())"
    )
    command = [sys.executable, "-c", code, *words.split()]
    done = subprocess.run(command, env=unmeasured(shell.environment), capture_output=True, check=False)
    assert done.stdout.decode().splitlines()[-1] == "0", done.stderr


@EITHER_WAY
@pytest.mark.parametrize("words", ["show missing", "ls -q", "new --help"])
def test_all_that_a_command_printed_is_there_when_it_ends(shell, cat, words):
    printed = {}
    for buffered in ("", "1"):
        environment = {**shell.environment, "PYTHONUNBUFFERED": buffered}
        command = [sys.executable, "-m", "tmuxctl", *words.split()]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        printed[buffered] = (done.returncode, done.stdout, done.stderr)
    assert printed[""] == printed["1"]
    assert printed[""][1] or printed[""][2]


def test_a_command_that_judges_nothing_loads_no_rules_for_it(shell, cat):
    code = (
        "import sys; from tmuxctl.surfaces.cli import app; app.run(sys.argv[1:]);"
        "print([name for name in sys.modules if name.startswith('tmuxctl.reading')])"
    )
    command = [sys.executable, "-c", code, "send", "cat", "x"]
    done = subprocess.run(command, env=unmeasured(shell.environment), capture_output=True, check=False)
    assert done.stdout.decode().splitlines()[-1] == "[]", done.stderr
