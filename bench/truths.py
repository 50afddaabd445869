"""What programs print when no terminal is there to change it: the same exchanges through pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from exchanges import Exchange

from tools.services import Running

PYTHON = (getattr(sys, "_base_executable", sys.executable), "-q")
BETWEEN = "=-=-=between=-=-="


def python(given: tuple[Exchange, ...]) -> list[str]:
    """Each text compiled and run as the interpreter does with what is typed at its prompt."""
    runner = (
        "import ast, sys, traceback\n"
        f"names, between = {{'__name__': '__main__'}}, {BETWEEN!r}\n"
        "for text in sys.stdin.read().split('\\0'):\n"
        "    for one in ast.parse(text).body:\n"
        "        try:\n"
        "            exec(compile(ast.Interactive([one]), '<stdin>', 'single'), names)\n"
        "        except Exception as error:\n"
        "            traceback.print_exception(type(error), error, error.__traceback__.tb_next, file=sys.stdout)\n"
        "    print(between)\n"
    )
    return _split(given, [*PYTHON, "-c", runner], "\0".join(one.typed for one in given))


def sqlite(given: tuple[Exchange, ...]) -> list[str]:
    return _split(given, ["sqlite3", "-batch"], _lines(given, f".print {BETWEEN}"))


def psql(given: tuple[Exchange, ...]) -> list[str]:
    return _split(given, ["stdbuf", "-oL", "psql", "-X"], _lines(given, f"\\echo {BETWEEN}"))


def gdb(given: tuple[Exchange, ...]) -> list[str]:
    words = ["gdb", "-q", "-nx", "-batch"]
    for one in given:
        words += ["-ex", one.typed] if one.truth is None else []
        words += ["-ex", f"echo {BETWEEN}\\n"]
    return _split(given, words, "")


def node(given: tuple[Exchange, ...]) -> list[str]:
    """Each text evaluated statement by statement where it holds several lines that stand alone, as the REPL does."""
    runner = (
        "const vm = require('vm'), {inspect} = require('util');"
        "function run(text) { const value = vm.runInThisContext(text); console.log(inspect(value)); }"
        "globalThis.require = require;"
        "for (const text of require('fs').readFileSync(0, 'utf8').split('\\0')) {"
        "  const lines = text.split('\\n');"
        "  if (lines.length > 1 && lines.every(one => one.startsWith('console.'))) lines.forEach(run); else run(text);"
        f"  console.log({BETWEEN!r}); }}"
    )
    return _split(given, ["node", "-e", runner], "\0".join(one.typed for one in given))


def shell(name: str) -> Callable[[tuple[Exchange, ...]], list[str]]:
    """The truths of a shell, found by the shell of this name."""

    def find(given: tuple[Exchange, ...]) -> list[str]:
        return _split(given, [name], _lines(given, f"printf '%s\\n' '{BETWEEN}'"))

    return find


def _lines(given: tuple[Exchange, ...], between: str) -> str:
    return "".join(f"{one.typed}\n{between}\n" for one in given)


def _split(given: tuple[Exchange, ...], words: list[str], text: str) -> list[str]:
    """What the process printed for each text, errors where they came, without the last newline; or what is given."""
    done = subprocess.run(words, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    found = done.stdout.decode().split(BETWEEN + "\n")
    assert len(found) == len(given) + 1, (len(found), len(given), done.stdout[-2000:])
    pairs = zip(given, found, strict=False)
    return [text.removesuffix("\n") if one.truth is None else one.truth for one, text in pairs]


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """A PostgreSQL server of its own, and the environment that leads psql to it."""
    # the server's own user enters it
    folder.chmod(0o755)
    with Running(folder) as running:
        served = running.start("postgres")
        assert served, "the PostgreSQL server does not start"
        os.environ |= served.environment
        yield
