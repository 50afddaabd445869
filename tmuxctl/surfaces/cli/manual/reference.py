"""Writes docs/reference.md from the operations: `python -m tmuxctl.surfaces.cli.manual.reference [--check]`."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from tmuxctl import errors, model, operations, results
from tmuxctl.operations import Operation
from tmuxctl.surfaces.cli.app import App
from tmuxctl.surfaces.cli.commands import exits, help
from tmuxctl.surfaces.cli.commands.command import OperationCommand
from tmuxctl.surfaces.cli.commands.services import GROUPS
from tmuxctl.transport.base import FAILURES
from tmuxctl.value import Value, told_names

PACKAGE = Path(__file__).resolve().parents[3]
PAGE = PACKAGE.parent / "docs" / "reference.md"

INTRODUCTION = """\
# Reference

Made from the operations by `make docs`; do not edit. `tmuxctl COMMAND --help` and the manual pages (`man tmuxctl-ask`)
say the same.
"""

RULES = (
    "Options stand before or after the arguments. The first `--` ends them: what follows is text or a command, exactly "
    "as given.",
    "A command whose first argument is a session takes it as `-t NAME` too, as in tmux; `new` takes `-s NAME` and `-d` "
    "(it is always detached), `kill` takes `-9`, `-INT` and `-s INT`.",
    "`-` in place of a text (before `--`) means standard input, read byte for byte. If Enter is to be pressed, one newline "
    "at the end of the input counts as that Enter.",
    "Durations: `500ms`, `30` or `30s`, `5m` or `5min`, `1h30m`, `7d`, `none`. Bytes: `4096`, `8k`, `64M`, `1G`. "
    "Sizes: `120x40`.",
    "Results go to standard output, notes and errors to standard error. With `--json` a result is one object on one "
    "line (a stream: one a line), unknown values are null, times are ISO-8601 UTC, durations are in seconds; an error is "
    '`{"error":{"code","reason","message","hint","exit","details"}}`.',
    "Colour is used on terminals only; `NO_COLOR`, `TERM=dumb` and `--no-color` turn it off. A command that waits longer "
    "than a second shows on standard error what it waits for, if that is a terminal; not with `--quiet` or `--json`.",
    'Python code calls the operations by the same names: `Control().call("send", {"session": "db", "text": "select 1;"})`.',
)
"""What holds for every command."""

ENVIRONMENT = (
    ("TMUXCTL_SOCKET", "the tmux server to use, as `--socket` (default: tmuxctl)"),
    ("TMUXCTL_SIZE", "the size of a new session (default: 120x40)"),
    ("TMUXCTL_TIMEOUT", "how long `wait` waits (default: 30s)"),
    ("TMUXCTL_CONFIG", "the configuration file, as an absolute path"),
    ("TMUXCTL_PROFILE_PATH", "folders with profiles, separated by colons"),
    ("TMUXCTL_PLUGIN_PATH", "folders with plugins, separated by colons"),
    ("TMUXCTL_MCP_TOOLS", "what a client of `tmuxctl mcp` may do: read, drive (default) or all"),
    ("TMUXCTL_MCP_OWNER", "who the client of `tmuxctl mcp` is (default: the process that started it)"),
    ("TMUXCTL_LOG", "if set, an internal error shows its traceback"),
    ("NO_COLOR", "if set, no colour is used"),
    ("TMUXCTL_SESSION", "set inside a session: its id"),
)
"""The variables that are read, and the one that is set."""

FILES = (
    ("$XDG_CONFIG_HOME/tmuxctl/config.toml", "settings; `tmuxctl config show` lists them all"),
    ("$XDG_CONFIG_HOME/tmuxctl/profiles/", "your profiles, which take precedence over the shipped ones"),
    ("$XDG_CONFIG_HOME/tmuxctl/plugins/", "your plugins"),
    ("$XDG_STATE_HOME/tmuxctl/", "what is kept about sessions, one folder for each tmux server"),
    ("$XDG_RUNTIME_DIR/tmuxctl/", "the socket of the server of commands, where one listens"),
)
"""What is read and written; where the variables are not set, below `~/.config`, `~/.local/state` and `~/.local/state`."""


def main() -> int:
    """Write the page, or with `--check` say whether it is up to date; the exit status."""
    page = text()
    if sys.argv[1:] == ["--check"]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page:
            return 0
        print(f"{PAGE.name} does not match the code: run make docs", file=sys.stderr)
        return 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


def text() -> str:
    """The whole page."""
    app = App()
    parts = [
        INTRODUCTION,
        *map(_rule, RULES),
        _rows("\n## Options of every command", "option", help.list_global_options()),
    ]
    for group, found in commands(app):
        parts += [f"## {group}\n", *(_command(one) for one in found)]
    parts += [_exits(), _rows("## Environment", "variable", ENVIRONMENT), _rows("## Files", "file", FILES), _reasons()]
    return "\n".join(parts)


def commands(app: App) -> Iterator[tuple[str, list[OperationCommand]]]:
    """Each group that has commands, with them."""
    every = [
        OperationCommand(operations.find(one.service.operations, one.name), one.service.connect) for one in app.listed()
    ]
    for group in GROUPS:
        if found := [one for one in every if one.operation.meta.group == group]:
            yield group, found


def _rule(text: str) -> str:
    return textwrap.fill(text, 118, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _exits() -> str:
    rows = [f"| {status} | {code} | {_cell(meaning)} |" for status, code, meaning in exits.EXITS]
    table = "\n".join(["| status | code | meaning |", "|---|---|---|", *rows])
    return f"## Exit status\n\n{table}\n\n{textwrap.fill(exits.PASSED, 120, break_on_hyphens=False)}\n"


def _command(command: OperationCommand) -> str:
    operation = command.operation
    examples = "\n".join(f"    {help.format_example(one)}" for one in operation.meta.examples)
    arguments = [(help.format_metavar(operation, one), one.help) for one in operation.parameters if one.positional]
    parts = [
        f"### {command.name}\n\n    tmuxctl {help.format_synopsis(operation)}\n",
        operation.help + "\n",
        f"Examples:\n\n{examples}\n",
        _rows("", "word", arguments),
        _rows("", "option", help.list_options(operation)),
        _rows("", "exit status", exits.list_statuses(operation)),
        f"Needs the right to {operation.meta.right}{_traits(operation)}.\n",
        *(
            f"Result `{name}`: {', '.join(f'`{one}`' for one in names)}. {about}\n"
            for name, names, about in results_of(operation)
        ),
    ]
    return "\n".join(part for part in parts if part)


def _traits(operation: Operation) -> str:
    meta = operation.meta
    traits = [
        *(["idempotent"] if meta.idempotent or meta.right == "read" else []),
        *(["may return a stream of results"] if meta.streams else []),
    ]
    return "; " + ", ".join(traits) if traits else ""


def results_of(operation: Operation) -> Iterator[tuple[str, list[str], str]]:
    """Each kind of result an operation gives: its name, its fields, and what it is."""
    for kind in result_classes(operation):
        names = [name for name in told_names(kind) if kind.__annotations__.get(name) != "bytes"]
        yield kind.__name__, names, " ".join((kind.__doc__ or "").split())


def result_classes(operation: Operation) -> list[type[Value]]:
    """The classes of the result, read from the annotation with the names of the model at hand."""
    annotation: Any = operation.function.__annotations__.get("return")
    if isinstance(annotation, str):
        known = {**vars(model), **vars(results), "results": results, "Iterator": Iterator, "Any": Any}
        annotation = eval(annotation, known)
    return [one for one in get_args(annotation) or (annotation,) if isinstance(one, type) and issubclass(one, Value)]


def _rows(title: str, first: str, rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    head = [title, ""] if title else []
    table = [f"| {first} | |", "|---|---|", *(f"| `{_cell(name)}` | {_cell(about)} |" for name, about in rows)]
    return "\n".join([*head, *table, ""])


def _cell(value: str) -> str:
    return value.replace("|", "\\|")


def _reasons() -> str:
    """Every reason the code gives, with the class of its error and a message as an example: the one that the page has, as long
    as the code says it, so that moving code changes nothing here."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    exits = {one.code: one.exit for one in errors.CLASSES}
    rows: dict[tuple[int, str, str], list[str]] = {}
    for (code, reason), messages in _messages().items():
        row = f"| {reason} | {code} | {exits[code]} | "
        rows[exits[code], reason, code] = [f"{row}{_cell(message)} |" for message in sorted(messages)]
    chosen = [next((row for row in rows[key] if f"\n{row}\n" in page), rows[key][0]) for key in sorted(rows)]
    head = "## Reasons\n\nWhat exactly went wrong: `reason` in the JSON of an error, with an example of its message.\n"
    return "\n".join([head, "| reason | code | exit | as in |", "|---|---|---|---|", *chosen, ""])


def _messages() -> dict[tuple[str, str], set[str]]:
    """The messages that the code gives, by the code and the reason of their error."""
    found = {(kind.code, reason): {"tmux: …"} for _, kind, reason, _ in FAILURES}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kind = getattr(errors, node.func.id, None)
                reason = next((one.value for one in node.keywords if one.arg == "reason"), None)
                if kind in errors.CLASSES and isinstance(reason, ast.Constant) and node.args:
                    found.setdefault((kind.code, str(reason.value)), set()).add(_message(node.args[0]))
    return found


def _message(node: ast.expr) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in parts)


if __name__ == "__main__":
    sys.exit(main())
