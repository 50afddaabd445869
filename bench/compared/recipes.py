"""The ways to ask a program something with these tools, each as its users write it.

A recipe types a line, decides when the program is done, and cuts the answer out. It knows the program's prompt, as its
user does, and nothing of the question.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import pexpect
from libtmux.test.retry import retry_until
from pexpect import replwrap
from place import until

from compared.programs import Program
from compared.tools import COLS, ROWS, Libtmux, Tmux, Tmuxctl
from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import State

QUIET, EVERY = 0.5, 0.1
"""Seconds without a change that count as the end, and between two looks."""


class Said(NamedTuple):
    """What a recipe says of a turn: whether it ended, the answer, and the question it ended in."""

    ended: bool
    answer: str = ""
    question: str = ""


class Recipe(Protocol):
    def start(self, name: str, program: Program, folder: Path) -> None:
        """Start the program and wait for its first prompt."""

    def ask(self, line: str, timeout: float, questions: Sequence[str] = ()) -> Said:
        """One turn. `questions` are regular expressions that the user wrote for what this program may ask."""

    def recover(self) -> None:
        """Come back into step after a turn that went wrong; the program has been done for a moment."""


class Screened:
    """What the recipes over a tmux pane share: `output` is the pane's text, polled."""

    tool: Tmux | Libtmux

    def start(self, name: str, program: Program, folder: Path) -> None:
        self.program = program
        self.tool.start(name, program.command, folder)
        assert until(lambda: self.at_prompt(self.lines()), 20), f"{name} shows no prompt"

    def lines(self) -> list[str]:
        return self.tool.output().rstrip("\n").split("\n")

    def at_prompt(self, lines: list[str]) -> bool:
        return lines[-1].rstrip().endswith(self.program.prompt.rstrip())

    def type(self, line: str) -> None:
        """Type a line. send-keys takes a `;` at the end for its own: it is written `\\;`."""
        self.tool.type((line[:-1] + "\\;" if line.endswith(";") else line).encode())

    def cut(self, lines: list[str], line: str) -> str:
        """What stands between the typed line and the prompt."""
        rest = lines[self.typed_at(lines, line) + 1 :] or [""]
        last = rest[-1].rstrip()
        if last.endswith(self.program.prompt.rstrip()):
            left = last.removesuffix(self.program.prompt.rstrip())
            rest[-1:] = [left] if left else []
        return "\n".join(rest)

    def typed_at(self, lines: list[str], line: str) -> int:
        """The last row that ends in the prompt with the typed line; -1 if there is none."""
        typed = (self.program.prompt + line).rstrip()
        return max((at for at, one in enumerate(lines) if one.rstrip().endswith(typed)), default=-1)

    def asked(self, lines: list[str], questions: Sequence[str]) -> str:
        return _found(lines[-1], questions)

    def recover(self) -> None:
        """Nothing: the pane shows what there is."""


class Quiet(Screened):
    """Done when the pane has not changed for half a second."""

    def ask(self, line: str, timeout: float, questions: Sequence[str] = ()) -> Said:
        self.type(line)
        deadline = time.monotonic() + timeout
        seen, since = self.lines(), time.monotonic()
        while time.monotonic() - since < QUIET:
            if time.monotonic() > deadline:
                return Said(False)
            time.sleep(EVERY)
            now = self.lines()
            if now != seen:
                seen, since = now, time.monotonic()
            if question := self.asked(now, questions):
                return Said(True, "", question)
        return Said(True, self.cut(seen, line))


class TmuxQuiet(Quiet):
    def __init__(self) -> None:
        self.tool = Tmux()


class LibtmuxQuiet(Quiet):
    def __init__(self) -> None:
        self.tool = Libtmux()


class TmuxMarked(Screened):
    """Done when a mark, typed behind the line, is printed."""

    def __init__(self) -> None:
        self.tool = Tmux()
        self.number = 0

    def ask(self, line: str, timeout: float, questions: Sequence[str] = ()) -> Said:
        self.number += 1
        mark = f"DONE{self.number}"
        typed = self.program.marked(line, self.number)
        # all in one call, so that the terminal does not echo the mark's line into the output
        self.tool.type("".join(one + "\r" for one in typed).encode(), enter=False)
        deadline = time.monotonic() + timeout
        while True:
            lines = self.lines()
            at = next((at for at, one in enumerate(lines) if re.search(rf"{mark}\b", one)), None)
            if at is not None:
                return Said(True, self.between(lines[: at + 1], typed, mark))
            if question := self.asked(lines, questions):
                return Said(True, "", question)
            if time.monotonic() > deadline:
                return Said(False)
            time.sleep(EVERY)

    def between(self, lines: list[str], typed: tuple[str, ...], mark: str) -> str:
        """The rows between the typed line and the mark, without the echo of what prints the mark."""
        rows = []
        for row in lines[self.typed_at(lines, typed[0]) + 1 :]:
            left = row.partition(mark)[0]
            if typed[1:] and left.rstrip().endswith(typed[1]):
                left = left.rstrip().removesuffix(typed[1]).removesuffix(self.program.prompt)
            if left or left == row:
                rows.append(left)
        return "\n".join(rows)


class LibtmuxPrompt(Screened):
    """Done when the pane ends in the prompt again, tried with libtmux's `retry_until`."""

    def __init__(self) -> None:
        self.tool = Libtmux()

    def ask(self, line: str, timeout: float, questions: Sequence[str] = ()) -> Said:
        self.type(line)
        question = ""

        def ready() -> bool:
            nonlocal question
            lines = self.lines()
            question = self.asked(lines, questions)
            return bool(question) or (self.at_prompt(lines) and self.typed_at(lines, line) >= 0)

        if not retry_until(ready, timeout, raises=False):
            return Said(False)
        return Said(True, "" if question else self.cut(self.lines(), line), question)


class PexpectPrompt:
    """pexpect: send the line, expect the program's own prompt."""

    def start(self, name: str, program: Program, folder: Path) -> None:
        self.prompt = program.prompt
        command, *words = program.command
        self.child = pexpect.spawn(command, words, cwd=folder, dimensions=(ROWS, COLS), encoding="utf-8")
        self.child.expect_exact(self.prompt, timeout=20)

    def ask(self, line: str, timeout: float, questions: Sequence[str] = ()) -> Said:
        self.child.sendline(line)
        found = self.child.expect([re.escape(self.prompt), *questions, pexpect.TIMEOUT], timeout=timeout)
        if found == len(questions) + 1:
            return Said(False)
        if found:
            return Said(True, "", str(self.child.after))
        # the first line is the echo
        return Said(True, _text(str(self.child.before).partition("\n")[2]))

    def recover(self) -> None:
        """Throw away what has come."""
        _drain(self.child)


class PexpectWrapped:
    """pexpect's `replwrap`: no echo, and a prompt of its own."""

    def start(self, name: str, program: Program, folder: Path) -> None:
        self.repl = self.wrapped(program, folder)
        self.child = self.repl.child

    def wrapped(self, program: Program, folder: Path) -> replwrap.REPLWrapper:
        """The ready-made one for bash; the others by the class it is made of, as those for Python and zsh are."""
        if program.command == ("bash",):
            bash = replwrap.bash()
            bash.run_command(f"cd {shlex.quote(str(folder))}")
            return bash
        command, *words = program.command
        child = pexpect.spawn(command, words, cwd=folder, echo=False, encoding="utf-8")
        return replwrap.REPLWrapper(child, re.escape(program.prompt), program.prompt_change)

    def ask(self, line: str, timeout: float, questions: Sequence[str] = ()) -> Said:
        try:
            return Said(True, _text(self.repl.run_command(line, timeout=timeout)))
        except pexpect.TIMEOUT:
            question = _found(self.child.before.rpartition("\n")[2], questions)
            return Said(bool(question), "", question)

    def recover(self) -> None:
        _drain(self.child)


class TmuxctlAsk:
    """tmuxctl's `ask`."""

    def __init__(self, control: Control) -> None:
        self.tool = Tmuxctl(control)

    def start(self, name: str, program: Program, folder: Path) -> None:
        self.tool.start(name, program.command, folder)

    def ask(self, line: str, timeout: float, questions: Sequence[str] = ()) -> Said:
        try:
            found = self.tool.control.ask(self.tool.name, line.encode(), timeout=timeout)
        except TmuxctlError as error:
            return Said(False, f"{error.reason}: {error.message}")
        if found.asking:
            options = ", ".join(one.id for one in found.asking.options)
            default = f" (Enter: {found.asking.default})" if found.asking.default else ""
            return Said(True, found.answer, f"{found.asking.kind}: {options or 'any text'}{default}")
        return Said(found.state is State.IDLE and not found.timed_out, found.answer)

    def recover(self) -> None:
        self.tool.control.wait(self.tool.name, settle=0.3, timeout=10)


def _found(row: str, questions: Sequence[str]) -> str:
    """What the first of the expressions finds in a row."""
    return next((found[0] for one in questions if (found := re.search(one, row))), "")


def _text(raw: str) -> str:
    """What was printed, as lines, without the last newline."""
    return raw.replace("\r\n", "\n").removesuffix("\n")


def _drain(child: pexpect.spawn) -> None:
    """Read what has come and forget it."""
    while child.expect([r"(?s).+", pexpect.TIMEOUT], timeout=0.1) == 0:
        pass


def recipes(control: Control) -> dict[str, Callable[[], Recipe]]:
    """All recipes, by the head of their column."""
    return {
        "tmuxctl `ask`": lambda: TmuxctlAsk(control),
        "tmux, unchanged for 0.5 s": TmuxQuiet,
        "tmux, `; echo DONE`": TmuxMarked,
        "libtmux, unchanged for 0.5 s": LibtmuxQuiet,
        "libtmux, `retry_until` the prompt": LibtmuxPrompt,
        "pexpect, expect the prompt": PexpectPrompt,
        "pexpect `replwrap`": PexpectWrapped,
    }
