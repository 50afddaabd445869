"""Programs that run another, named by their own words: the script, module or tool that a command line is about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tmuxctl.program_profile import is_named


class Interpreter(NamedTuple):
    """The words of one kind of interpreter: options that take a value, those whose value is the module or file that is
    run, those after which no script comes (a program as text, standard input), and words that only stand before a script."""

    valued: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


_PYTHON = Interpreter(valued=("-W", "-X", "--check-hash-based-pycs"), module=("-m",), inline=("-c",))
_SHELL = Interpreter(valued=("-o", "+o", "-O", "+O", "--rcfile", "--init-file"), inline=("-c", "-s"))
_FISH = Interpreter(valued=("-C", "--init-command", "-o", "-D", "-f"), inline=("-c", "--command"))
_NODE = Interpreter(
    valued=("-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file"),
    inline=("-e", "--eval", "-p", "--print", "-pe", "-i"),
)
_NPX = Interpreter(valued=("-p", "--package", "-w", "--workspace"), inline=("-c", "--call"))
_UVX = Interpreter(
    valued=("--from", "--with", "--with-editable", "--with-requirements", "-w", "-p", "--python", "--index", "--index-url",
            "--project", "--directory", "--env-file", "--spec", "--pip-args", "--suffix"),
    module=("-m", "--module"),
)  # fmt: skip
_JAVA = Interpreter(
    valued=("-cp", "-classpath", "--class-path", "--module-path", "--add-modules"), module=("-jar", "--module")
)

INTERPRETERS: Mapping[str, Interpreter] = {
    "python": _PYTHON, "python[23]*": _PYTHON, "pypy": _PYTHON, "pypy3*": _PYTHON,
    "sh": _SHELL, "ash": _SHELL, "bash": _SHELL, "rbash": _SHELL, "dash": _SHELL, "ksh*": _SHELL, "mksh": _SHELL,
    "posh": _SHELL, "zsh": _SHELL, "fish": _FISH,
    "node": _NODE, "nodejs": _NODE, "tsx": _NODE, "ts-node": _NODE,
    "bun": Interpreter(commands=("run", "x")), "deno": Interpreter(commands=("run",)),
    "npx": _NPX, "bunx": _NPX, "pnpx": _NPX,
    "uvx": _UVX, "uv": _UVX._replace(commands=("run", "tool")), "pipx": _UVX._replace(commands=("run",)),
    "ruby": Interpreter(valued=("-C", "-I", "-r", "-E", "-x"), inline=("-e",)),
    "perl": Interpreter(valued=("-I",), inline=("-e", "-E")),
    "lua": Interpreter(valued=("-l",), inline=("-e",)), "lua5*": Interpreter(valued=("-l",), inline=("-e",)),
    "luajit": Interpreter(valued=("-l",), inline=("-e",)),
    "php": Interpreter(valued=("-d", "-c"), module=("-f",), inline=("-r", "-a")),
    "java": _JAVA,
    "Rscript": Interpreter(inline=("-e",)), "tclsh*": Interpreter(), "wish*": Interpreter(),
    "expect": Interpreter(module=("-f",), inline=("-c", "-i")),
}  # fmt: skip


def is_interpreter(program: str) -> bool:
    """True for a program that is known more by what it runs than by its own name."""
    return _find_interpreter(program) is not None


def script_name(words: Sequence[str]) -> str:
    """The name of the script, module or tool that an interpreter runs (`mush.py` of `python3 -q ~/mush.py`, `http.server`
    of `python3 -m http.server`), without folder and version. `words` begin with the interpreter. Empty where it runs none."""
    interpreter = _find_interpreter(os.path.basename(words[0])) if words else None
    rest = list(words[1:]) if interpreter else []
    while interpreter and rest:
        word = rest.pop(0)
        if word in interpreter.commands:
            continue
        if word == "--" or not word.startswith(("-", "+")):
            found = (rest or [""])[0] if word == "--" else word
            return _bare_name(found)
        option, attached = _split_option(word, interpreter)
        if option in interpreter.inline or option == "-":
            return ""
        if option in (*interpreter.module, *interpreter.valued) and not attached:
            attached = rest.pop(0) if rest else ""
        if option in interpreter.module:
            return _bare_name(attached)
    return ""


def _find_interpreter(program: str) -> Interpreter | None:
    return next((interpreter for pattern, interpreter in INTERPRETERS.items() if is_named(program, (pattern,))), None)


def _split_option(word: str, interpreter: Interpreter) -> tuple[str, str]:
    """The option that a word gives, of several letters in one the one that counts, and the value that stands in the same word."""
    known = (*interpreter.inline, *interpreter.module, *interpreter.valued)
    name, equals, value = word.partition("=")
    if word.startswith("--") or name in known:
        return name, value if equals else ""
    for place, letter in enumerate(word[1:], 2):
        if word[0] + letter in known:
            return word[0] + letter, word[place:]
    return word, ""


def _bare_name(word: str) -> str:
    """A path or package without folder and version: `@scope/tool@latest` is `tool`."""
    name = os.path.basename(word)
    return name.partition("@")[0].partition("==")[0] or name
