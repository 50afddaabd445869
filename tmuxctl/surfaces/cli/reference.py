"""Writes docs/reference.md from the operations: `python -m tmuxctl.surfaces.cli.reference [--check]`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

from tmuxctl import errors, model, operations, results
from tmuxctl.operations import Operation
from tmuxctl.surfaces.cli import help
from tmuxctl.surfaces.cli.command import OperationCommand
from tmuxctl.surfaces.cli.group import GROUPS, App
from tmuxctl.transport.base import FAILURES

PACKAGE = Path(__file__).resolve().parents[2]
PAGE = PACKAGE.parent / "docs" / "reference.md"

INTRODUCTION = """\
# Reference

Made from the operations by `make docs`; do not edit. What a person reads here is also in `tmuxctl COMMAND --help`.

- Options stand before or after the words. The first `--` ends them: what follows is text or a command, as it is.
- `-` as a text (before `--`) reads standard input, byte by byte. If Enter will be pressed, one newline at its end
  is that Enter.
- Durations: `500ms`, `30` or `30s`, `5m`, `2h`, `7d`, `none`. Bytes: `4096`, `8k`, `64M`, `1G`. Sizes: `120x40`.
- Results go to standard output, notes and errors to standard error. With `--json` a result is one object on one line
  (a stream: one a line), unknown values are null, times ISO-8601 UTC, lengths in seconds; an error is
  `{"error":{"code","reason","message","hint","exit","details"}}`.
- From Python the same by the same names: `Control().call("send", {"session": "db", "text": "select 1;"})`.
"""

EXITS = """\
## Exit status

| status | code | meaning |
|---|---|---|
| 0 | | done; the condition holds |
| 1 | failed | refused or failed; `wait --now`: it does not hold; `doctor`: something is missing |
| 2 | usage | a bad option, name, duration, pattern, key or file |
| 3 | not_found | no such session, profile or plugin |
| 4 | conflict | exists already, busy, or a person is typing |
| 5 | exited | the program ended while it was needed |
| 6 | asking | a decision is wanted before it can go on |
| 7 | unreachable | tmux or its server cannot be reached, or nobody knows whether a write arrived |
| 8 | denied | a policy or a file's owner or mode forbids it |
| 124 | timeout | the time given was not enough; what was seen is still printed |
| 130, 143 | | interrupted or terminated; what runs in a session goes on (`run` ends its own) |
| 141 | | nobody reads our output any more |

`exec` and `run` end with the status of the program they ran: 128 and the signal's number if a signal ended it, 126 and
127 if it could not be executed or found, 124 if it took too long, 125 for a failure of tmuxctl (the error says which).
"""


def main() -> int:
    """Write the page, or with `--check` say whether it is up to date; the exit status."""
    page = text()
    if sys.argv[1:] == ["--check"]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page:
            return 0
        print(f"{PAGE.name} is not what the code says: make docs", file=sys.stderr)
        return 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


def text() -> str:
    """The whole page."""
    app = App()
    parts = [INTRODUCTION, _rows("## Options of every command", "option", help.globals_of_app())]
    commands = [
        OperationCommand(operations.find(one.operations, name), one.connect) for _, name, one in app.commands_of()
    ]
    for group in GROUPS:
        found = [one for one in commands if one.operation.meta.group == group]
        if found:
            parts += [f"## {group}\n", *(_command(one) for one in found)]
    parts += [EXITS, _reasons()]
    return "\n".join(parts)


def _command(command: OperationCommand) -> str:
    operation = command.operation
    examples = "\n".join(f"    {help.example_line(one)}" for one in operation.meta.examples)
    arguments = [(help.metavar(operation, one), one.help) for one in operation.parameters if one.positional]
    parts = [
        f"### {command.name}\n\n    tmuxctl {help.synopsis(operation)}\n",
        operation.help + "\n",
        f"Examples:\n\n{examples}\n",
        _rows("", "word", arguments),
        _rows("", "option", help.options(command)),
        f"Needs the right to {operation.meta.right}{_traits(operation)}.\n",
        *_result(operation),
    ]
    return "\n".join(part for part in parts if part)


def _traits(operation: Operation) -> str:
    meta = operation.meta
    traits = [*(["idempotent"] if meta.idempotent else []), *(["may give a stream of results"] if meta.streams else [])]
    return "; " + ", ".join(traits) if traits else ""


def _result(operation: Operation) -> Iterator[str]:
    for kind in _kinds(operation):
        about = " ".join((kind.__doc__ or "").split())
        names = ", ".join(f"`{one.name}`" for one in fields(kind) if one.type not in ("bytes", bytes))
        yield f"Result `{kind.__name__}`: {names}. {about}\n"


def _kinds(operation: Operation) -> list[type]:
    """The classes of the result, read from the annotation with the names of the model at hand."""
    annotation: Any = operation.function.__annotations__.get("return")
    if isinstance(annotation, str):
        known = {**vars(model), **vars(results), "Iterator": Iterator, "Any": Any}
        annotation = eval(annotation, known)
    return [one for one in get_args(annotation) or (annotation,) if isinstance(one, type) and is_dataclass(one)]


def _rows(title: str, first: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    head = [title, ""] if title else []
    table = [f"| {first} | |", "|---|---|", *(f"| `{_cell(name)}` | {_cell(about)} |" for name, about in rows)]
    return "\n".join([*head, *table, ""])


def _cell(value: str) -> str:
    return value.replace("|", "\\|")


def _reasons() -> str:
    """Every reason the code gives, with the class of its error and a message as an example."""
    found = {(kind.code, reason): "tmux: …" for _, kind, reason, _ in FAILURES}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kind = getattr(errors, node.func.id, None)
                reason = next((one.value for one in node.keywords if one.arg == "reason"), None)
                if kind in errors.CLASSES and isinstance(reason, ast.Constant) and node.args:
                    found.setdefault((kind.code, str(reason.value)), _message(node.args[0]))
    exits = {one.code: one.exit for one in errors.CLASSES}
    rows = [
        f"| {reason} | {code} | {exits[code]} | {_cell(found[code, reason])} |"
        for code, reason in sorted(found, key=lambda one: (exits[one[0]], one[1]))
    ]
    head = "## Reasons\n\nThe finer word of an error, `reason` in its JSON, with an example of its message.\n"
    return "\n".join([head, "| reason | code | exit | as in |", "|---|---|---|---|", *rows, ""])


def _message(node: ast.expr) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in parts)


if __name__ == "__main__":
    sys.exit(main())
