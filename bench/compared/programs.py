"""The programs that are asked, the fifty inputs of each, and what each truly prints.

Every line that is typed makes the file `e` as its last act: that is the true end, told by the program itself. In gdb, where
no line can hold two commands, its own event before the next prompt does it.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import truths
from exchanges import Exchange

END = "e"
"""The file, in the program's own folder."""

PLAIN, SILENT, BURSTS = "one command, at once", "silent for 2 s", "two bursts, 1 s between"
ECHO, LONG = "the typed line holds the answer", "300 lines"
PROMPT, SHAPE = "the answer holds the prompt", "blank lines, tabs, no last newline, wide characters, 300 columns"
KINDS = (PLAIN, SILENT, BURSTS, ECHO, LONG, PROMPT, SHAPE)

PS1 = "demo$ "
WIDE = "日本語 👍 é"


class Input(NamedTuple):
    """What is asked, and the same without its pauses, by which the truth is found."""

    kind: str
    text: str
    quick: Exchange


class Program(NamedTuple):
    """A program that is asked.

    `line` is a text with the true end behind it, `marked` what the marker recipe types for that line and a number (one
    line or two), `prompt_change` what `replwrap` changes the prompt with.
    """

    command: tuple[str, ...]
    prompt: str
    line: Callable[[str], str]
    marked: Callable[[str, int], tuple[str, ...]]
    prompt_change: str
    inputs: tuple[Input, ...]
    truth: Callable[[tuple[Exchange, ...]], list[str]]
    first: str = ""

    def truths(self) -> list[str]:
        """What each input truly prints, found without a terminal."""
        return self.truth((Exchange(self.first or self.inputs[0].text), *(one.quick for one in self.inputs)))[1:]


Given = str | tuple[str, str] | Exchange
"""A text; with what finds its truth quicker; or with its truth."""


def _inputs(given: dict[str, tuple[Given, ...]]) -> tuple[Input, ...]:
    return tuple(_input(kind, one) for kind, some in given.items() for one in some)


def _input(kind: str, given: Given) -> Input:
    if isinstance(given, Exchange):
        return Input(kind, given.typed, given._replace(typed=_quick(given.typed)))
    text, quick = (given, _quick(given)) if isinstance(given, str) else given
    return Input(kind, text, Exchange(quick))


def _quick(text: str) -> str:
    """The text with its pauses taken out."""
    return re.sub(r"(sleep[ (])[0-9.]+", r"\g<1>0", text)


COMPUTE = "t=${{EPOCHREALTIME/.}}; while ((${{EPOCHREALTIME/.}} < t + {})); do :; done"

BASH = _inputs(
    {
        PLAIN: (
            "echo hi",
            "x=5",
            "echo $x",
            "true",
            "false",
            "echo one two",
            "expr 6 '*' 7",
            r"printf '%s\n' a b c",
            "type cd",
            "seq 5",
            "echo {1..5}",
            "date -u -d @0 +%F",
            "uname",
            "echo $((2**10))",
            "basename /a/b/c",
            "echo a | tr a b",
            "for i in 1 2 3; do echo $i; done",
            "test 1 -eq 2 || echo unequal",
            "ls no-such-file",
            Exchange("no-such-command", "bash: no-such-command: command not found"),
            "wc -c </dev/null",
            "f() { echo in f; }; f",
            "printf '%05d\\n' 42",
            "echo {a,b}{1,2}",
        ),
        SILENT: (
            "sleep 2",
            "sleep 2; echo slept",
            (COMPUTE.format(2000000), COMPUTE.format(0)),
        ),
        BURSTS: (
            "echo one; sleep 1; echo two",
            "seq 3; sleep 1; seq 4 6",
            "echo fetching; sleep 1; echo unpacking",
        ),
        ECHO: (
            "sleep 0.3; echo finished",
            "echo DONE",
            "echo echo hi",
            "sleep 0.3; echo 'all tests passed'",
            "echo 'echo: echo'",
        ),
        LONG: (
            "seq 300",
            "seq -f 'row %g' 300",
            "for i in {1..300}; do echo line $i of 300; done",
            "seq 300 -1 1",
        ),
        PROMPT: (
            f"echo '{PS1}'",
            f"echo '{PS1}ls'",
            f"echo 'a {PS1}b'",
            rf"printf 'x\n{PS1}\ny\n'",
            f"printf '{PS1}'; sleep 1; echo late",
        ),
        SHAPE: (
            "printf ab",
            r"printf 'a\n\n\nb\n'",
            r"printf 'tab\there\n'",
            r"printf 'blanks at the end   \n'",
            f"echo '{WIDE}'",
            r"printf '%0300d\n' 0",
        ),
    }
)

BUSY = "all(time.time() < t + {} for _ in iter(int, 1))"

PYTHON = _inputs(
    {
        PLAIN: (
            "1 + 1",
            "x = 5",
            "x",
            "x * 2",
            "None",
            "print('hi')",
            "len('hello')",
            "[1, 'two', None]",
            "'it' + \"'s\"",
            "print(1); print(2)",
            "sum(range(10))",
            "{'a': 1}",
            "sorted('hello')",
            "list(range(80))",
            "1 == 1.0",
            "'%05d' % 42",
            "import math; math.pi",
            "print(3, end='\\n')",
            "max([3, 1, 2])",
            "'a,b'.split(',')",
            "print()",
            "2 ** 100",
            "'hello'.upper()",
            "[i * i for i in range(5)]",
        ),
        SILENT: (
            "time.sleep(2)",
            "time.sleep(2); print('slept')",
            ("t = time.time(); " + BUSY.format(2), "t = time.time(); " + BUSY.format(0)),
        ),
        BURSTS: (
            "print('one'); time.sleep(1); print('two')",
            "print('a...', end='', flush=True); time.sleep(1); print('b')",
            "print('fetching'); time.sleep(1); print('unpacking')",
        ),
        ECHO: (
            "time.sleep(0.3); print('finished')",
            "print('DONE')",
            "print('print')",
            "time.sleep(0.3); print('all tests passed')",
            "'OK'",
        ),
        LONG: (
            r"print('\n'.join(map(str, range(300))))",
            r"print('\n'.join('row %d' % i for i in range(300)))",
            r"print('\n'.join('line %d of 300' % i for i in range(300)))",
            r"print('\n'.join(map(str, range(300, 0, -1))))",
        ),
        PROMPT: (
            "print('>>> ')",
            "print('>>> 1 + 1')",
            "print('a >>> b')",
            r"print('x\n>>> \ny')",
            "print('>>> ', end='', flush=True); time.sleep(1); print('late')",
        ),
        SHAPE: (
            "print('ab', end='')",
            r"print('a\n\n\nb')",
            r"print('tab\there')",
            "print('blanks at the end   ')",
            f"print('{WIDE}')",
            "print('x' * 300)",
        ),
    }
)


ENDLESS = "create view n as with recursive n(i) as (select 1 union all select i + 1 from n) select i from n;"


SQLITE = _inputs(
    {
        PLAIN: (
            "select 1;",
            "create table t(a, b);",
            "insert into t values (1, 'one'), (2, 'two'), (3, null);",
            "select * from t;",
            "select count(*) from t;",
            "update t set b = 'x' where a = 1;",
            "select b from t where a = 1;",
            "select 1, 2;",
            "select 1 where 0;",
            "select null;",
            "select 'it''s';",
            "select upper('abc');",
            "select 1; select 2;",
            "select 6 * 7;",
            "delete from t where a = 3;",
            "select max(a) from t;",
            "select 'a' || 'b';",
            "select hex('abc');",
            "select length('hello');",
            "select round(3.14159, 2);",
            "select a from t order by a desc;",
            "select 1.0;",
            "select abs(-5);",
            "select 7 / 2;",
        ),
        SILENT: (
            ".shell sleep 2",
            ".shell sleep 2; echo slept",
            (".shell timeout 2 yes >/dev/null; echo computed", ".shell echo computed"),
        ),
        BURSTS: (
            ".shell echo one; sleep 1; echo two",
            ".shell seq 3; sleep 1; seq 4 6",
            ".shell printf 'a...'; sleep 1; echo b",
        ),
        ECHO: (
            ".shell sleep 0.3; echo finished",
            "select 'DONE';",
            "select 'select';",
            ".shell sleep 0.3; echo all tests passed",
            "select 'OK';",
        ),
        LONG: tuple(f"select {what} from n limit 300;" for what in ("i", "'row ' || i", "'no ' || i", "-i")),
        PROMPT: (
            "select 'sqlite> ';",
            "select 'sqlite> select 1;';",
            "select 'a sqlite> b';",
            "select 'x' || char(10) || 'sqlite> ' || char(10) || 'y';",
            ".shell printf 'sqlite> '; sleep 1; echo late",
        ),
        SHAPE: (
            ".shell printf 'ab'",
            "select 'a' || char(10) || char(10) || char(10) || 'b';",
            "select 'tab' || char(9) || 'here';",
            "select 'blanks at the end   ';",
            f"select '{WIDE}';",
            "select hex(zeroblob(150));",
        ),
    }
)


PSQL = _inputs(
    {
        PLAIN: (
            "select 1;",
            "create temp table t(a int, b text);",
            "insert into t values (1, 'one'), (2, 'two'), (3, null);",
            "select * from t;",
            "select count(*) from t;",
            "update t set b = 'x' where a = 1;",
            "select b from t where a = 1;",
            "select 1, 2;",
            "select 1 where false;",
            "select null;",
            r"\echo hi",
            "select upper('abc');",
            "select 1; select 2;",
            "select 6 * 7 as answer;",
            "delete from t where a = 3;",
            "select max(a) from t;",
            "table t;",
            "values (1), (2);",
            "select length('hello');",
            "show server_encoding;",
            "select * from nope;",
            "drop table t;",
            "select abs(-5);",
            "select 7 / 2;",
        ),
        SILENT: (
            "select 'slept' from pg_sleep(2);",
            "select 1 where pg_sleep(2) is null;",
            r"\! sleep 2",
        ),
        BURSTS: (
            r"\echo one \\ select pg_sleep(1);",
            r"\! echo one; sleep 1; echo two",
            "select 'one'; select 'two' from pg_sleep(1);",
        ),
        ECHO: (
            r"\! sleep 0.3; echo finished",
            r"\echo DONE",
            r"\echo echo",
            r"\! sleep 0.3; echo all tests passed",
            r"\echo OK",
        ),
        LONG: tuple(
            f"select {what} as n from generate_series(1, 300) i;" for what in ("i", "'row ' || i", "'no ' || i", "-i")
        ),
        PROMPT: (
            r"\echo 'postgres=# '",
            r"\echo 'postgres=# select 1;'",
            r"\echo 'a postgres=# b'",
            r"select E'x\npostgres=# \ny';",
            r"\! printf 'postgres=# '; sleep 1; echo late",
        ),
        SHAPE: (
            r"\echo -n ab",
            r"\! printf 'a\n\n\nb\n'",
            r"\! printf 'tab\there\n'",
            r"\echo 'blanks at the end   '",
            rf"\echo '{WIDE}'",
            r"\! printf '%0300d\n' 0",
        ),
    }
)

GDB = _inputs(
    {
        PLAIN: (
            "print 1 + 1",
            "set $x = 5",
            "print $x",
            "print $x * 2",
            "p/x 255",
            "p/t 10",
            "p sizeof(int)",
            r"echo hi\n",
            "print nosuch",
            "show width",
            "info registers",
            "info breakpoints",
            "p 1 == 1",
            'p "text"',
            "show language",
            "whatis 1",
            "ptype 1.0",
            "help list",
            "python print(6 * 7)",
            "print -5",
            "show version",
            "info display",
            "p 7 / 2",
            "output 7",
        ),
        SILENT: (
            Exchange("shell sleep 2", ""),
            Exchange("shell sleep 2; echo slept", "slept"),
            (
                f"python import time; t = time.time(); print({BUSY.format(2)})",
                f"python import time; t = time.time(); print({BUSY.format(0)})",
            ),
        ),
        BURSTS: (
            Exchange("shell echo one; sleep 1; echo two", "one\ntwo"),
            Exchange("shell seq 3; sleep 1; seq 4 6", "1\n2\n3\n4\n5\n6"),
            "python print('one'); gdb.flush(); time.sleep(1); print('two')",
        ),
        ECHO: (
            Exchange("shell sleep 0.3; echo finished", "finished"),
            r"echo DONE\n",
            r"echo echo\n",
            Exchange("shell sleep 0.3; echo all tests passed", "all tests passed"),
            "python print('OK')",
        ),
        LONG: (
            r"python print('\n'.join(map(str, range(300))))",
            r"python print('\n'.join('row %d' % i for i in range(300)))",
            r"python print('\n'.join('line %d of 300' % i for i in range(300)))",
            r"python print('\n'.join(map(str, range(300, 0, -1))))",
        ),
        PROMPT: (
            "python print('(gdb) ')",
            r"echo (gdb) print 1\n",
            r"echo a (gdb) b\n",
            r"echo x\n(gdb) \ny\n",
            "python print('(gdb) ', end=''); gdb.flush(); time.sleep(1); print('late')",
        ),
        SHAPE: (
            "echo ab",
            r"echo a\n\n\nb\n",
            r"echo tab\there\n",
            r"echo blanks at the end   \n",
            rf"echo {WIDE}\n",
            "python print('x' * 300)",
        ),
    }
)


def _shell_line(text: str) -> str:
    return f"{text}; : >{END}"


def _python_line(text: str) -> str:
    return f"{text}; open('{END}', 'w').close()"


def _sqlite_line(text: str) -> str:
    return _shell_line(text) if text.startswith(".shell") else f"{text} select 1 where writefile('{END}', '') is null;"


def _psql_line(text: str) -> str:
    return _shell_line(text) if text.startswith(r"\!") else rf"{text} \! : >{END}"


def _as_it_is(text: str) -> str:
    return text


def _behind(mark: str, line: str, number: int) -> tuple[str, ...]:
    """The mark on the same line, as shells can have it."""
    return (f"{line}; {mark.format(number)}",)


def _below(mark: str, line: str, number: int) -> tuple[str, ...]:
    """The mark as a line of its own, typed at once."""
    return line, mark.format(number)


PYTHON3 = (getattr(sys, "_base_executable", sys.executable), "-q")
GDB_END = f"python gdb.events.before_prompt.connect(lambda: open('{END}', 'w').close())"
GDB_COMMAND = ("gdb", "-q", "-nx", "-ex", "set pagination off", "-ex", "set width 0")


def programs() -> dict[str, Program]:
    """All programs. The mark's number never stands in the typed line as it will be printed."""
    return {
        "bash": Program(
            ("bash",),
            PS1,
            _shell_line,
            partial(_behind, "echo DONE'{}'"),
            "",
            BASH,
            truths.shell("bash"),
        ),
        "python3": Program(
            PYTHON3,
            ">>> ",
            _python_line,
            partial(_below, "print('DONE' + '{}')"),
            "import sys; sys.ps1={!r}; sys.ps2={!r}",
            PYTHON,
            truths.python,
            "import time",
        ),
        "sqlite3": Program(
            ("sqlite3",),
            "sqlite> ",
            _sqlite_line,
            partial(_below, "select 'DONE' || {};"),
            '.prompt "{}" "{}"',
            SQLITE,
            truths.sqlite,
            ENDLESS,
        ),
        "gdb": Program(
            (*GDB_COMMAND, "-ex", GDB_END),
            "(gdb) ",
            _as_it_is,
            partial(_below, r'printf "DONE%d\n", {}'),
            "set prompt {}",
            GDB,
            truths.gdb,
            "python import time",
        ),
        "psql": Program(
            ("psql", "-X", "-P", "pager=off"),
            "postgres=# ",
            _psql_line,
            partial(_below, r"\echo DONE'{}'"),
            r"\set PROMPT1 '{}'",
            PSQL,
            truths.psql,
        ),
    }


def installed() -> dict[str, Program]:
    """The programs that can be started here; psql needs a server's programs too."""
    servers = list(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return {
        name: one for name, one in programs().items() if shutil.which(one.command[0]) and (name != "psql" or servers)
    }


def prepare(home: Path) -> None:
    """Give bash a prompt without a host's name."""
    (home / ".bashrc").write_text(f"PS1='{PS1}'\n")
