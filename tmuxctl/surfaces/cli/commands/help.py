"""Help for people: examples first, then what it does, then every word and option."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import click

from tmuxctl import config
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.operations import Operation, Parameter
from tmuxctl.surfaces.cli.commands import exits
from tmuxctl.surfaces.cli.commands.options import global_options, option_name, own_options
from tmuxctl.surfaces.cli.commands.services import GROUPS, Listed
from tmuxctl.surfaces.cli.words import aliases

FIRST = (
    "new db -- sqlite3 shop.db",
    "ask db 'select count(*) from orders;'",
    "exec build -- make test",
    "decide fix allow",
    "ls --state asking",
    "screen db",
    "attach db",
    "kill db",
)

ROOM = 62

ELSEWHERE = "Every command also takes, before or after its name: "


def format_page(app: click.Group, words: Sequence[str]) -> str:
    """What `--help` prints for a command of these words; Usage `no_command` if there is none."""
    command: click.Command = app
    context = click.Context(app, info_name="tmuxctl")
    if alias := aliases.describe_alias(app, context, words):
        return alias
    for word in words:
        if not isinstance(command, click.Group):
            raise Usage(
                f"{context.command_path} has no command {ascii(word[:40])}",
                reason="no_command",
                hint=f"{context.command_path} --help",
            )
        _, found, _ = command.resolve_command(context, [word])
        command = found or command
        context = click.Context(command, info_name=word, parent=context)
    return command.get_help(context)


def write_app_help(listed: Sequence[Listed], formatter: click.HelpFormatter) -> None:
    """Write the page of `tmuxctl --help`."""
    _write_examples(formatter, FIRST)
    formatter.write_paragraph()
    formatter.write_text("Drive any interactive terminal program; tmux keeps it alive.")
    formatter.write_paragraph()
    formatter.write_usage("tmuxctl", "[OPTIONS] COMMAND [ARGUMENTS]")
    for group, lines in group_commands(listed):
        with formatter.section(group):
            formatter.write_dl(lines)
    if found := list(_list_aliases(listed)):
        with formatter.section("Aliases (tmuxctl config path)"):
            formatter.write_dl(found)
    with formatter.section("Options, before or after the command"):
        formatter.write_dl(list_global_options())
    formatter.write_paragraph()
    formatter.write_text("tmuxctl COMMAND --help describes a command. Text that begins with - goes after --.")
    for text in _list_foreign_commands(listed):
        formatter.write_paragraph()
        formatter.write_text(text)


def group_commands(listed: Iterable[Listed]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each group that has commands, with their names and what they do in a line; without spellings of other tools."""
    lines: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
    for one in listed:
        if not hasattr(one.service.operations, "tool"):
            lines[one.meta.group].append((one.typed, first_line(one.function)))
    return ((group, found) for group, found in lines.items() if found)


def _list_aliases(listed: Iterable[Listed]) -> Iterator[tuple[str, str]]:
    """Each alias that is not hidden by a command, with what it stands for; none if the settings cannot be read."""
    with suppress(TmuxctlError):
        there = {one.typed.partition(" ")[0] for one in listed}
        yield from ((name, one) for name, one in sorted(config.load_aliases().items()) if name not in there)


def _list_foreign_commands(listed: Iterable[Listed]) -> Iterator[str]:
    """The commands that are another tool's spelling of ours, a text for each tool."""
    found: dict[str, list[str]] = {}
    for one in listed:
        if tool := getattr(one.service.operations, "tool", ""):
            found.setdefault(tool, []).append(one.typed)
    return (f"Commands in the spelling of {tool}: {', '.join(typed)}." for tool, typed in found.items())


def write_family_help(name: str, listed: Sequence[Listed], formatter: click.HelpFormatter) -> None:
    """Write the page of commands that share a first word."""
    _write_examples(formatter, tuple(example for one in listed for example in one.meta.examples[:1]))
    formatter.write_paragraph()
    formatter.write_usage("tmuxctl", f"{name} COMMAND [OPTIONS] [ARGUMENTS]")
    with formatter.section("Commands"):
        formatter.write_dl([(one.typed, first_line(one.function)) for one in listed])
    formatter.write_paragraph()
    formatter.write_text(f"tmuxctl {name} COMMAND --help describes a command.")


def first_line(function: Any) -> str:
    """What an operation does, in a line."""
    return _shorten((inspect.getdoc(function) or "").split("\n", 1)[0].rstrip("."))


def _shorten(text: str) -> str:
    """As many of a line's clauses as fit beside the names of the commands."""
    while len(text) > ROOM and (ends := [text.rfind(end) for end in ("; ", ": ", ", ")]) != [-1, -1, -1]:
        text = text[: max(ends)]
    return text


def write_command_help(operation: Operation, formatter: click.HelpFormatter) -> None:
    """Write one command's page."""
    if operation.meta.examples:
        _write_examples(formatter, operation.meta.examples)
    formatter.write_paragraph()
    formatter.write_usage("tmuxctl", format_synopsis(operation))
    for paragraph in operation.help.split("\n\n"):
        formatter.write_paragraph()
        formatter.write_text(" ".join(paragraph.split()))
    arguments = [(format_metavar(operation, one), one.help) for one in operation.parameters if one.positional]
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    with formatter.section("Options"):
        formatter.write_dl([*list_options(operation), ("-h, --help", "print this help")])
    if statuses := exits.list_statuses(operation):
        with formatter.section("Exit status"):
            formatter.write_dl(statuses)
    formatter.write_paragraph()
    formatter.write_text(ELSEWHERE + ", ".join(_format_option_names(one, 1) for one in global_options()))


def format_synopsis(operation: Operation) -> str:
    """A command's words in order: `send [OPTIONS] NAME [TEXT|-]`."""
    words = [operation.spoken, "[OPTIONS]"]
    for one in (one for one in operation.parameters if one.positional):
        shown = format_metavar(operation, one)
        # these words are a command of their own, with options of its own
        shown = f"-- {shown}" if one.many and one.kind.word == "text" else shown
        shown = f"{shown}|-" if one.kind.from_input else shown
        words.append(shown if one.required else f"[{shown}]")
    return " ".join(words)


def format_metavar(operation: Operation, one: Parameter) -> str:
    """How an argument is called: NAME for a session, else its own name; two dots where many may stand."""
    before = [other.kind.word for other in operation.parameters if other.positional and other.name != one.name]
    shown = option_name(one.name).upper()
    if one.choices:
        shown = "|".join(one.choices)
    elif one.kind.word == "name":
        shown = "NAME"
    elif one.kind.word == "newname" and "name" in before:
        shown = "NEW-NAME"
    elif one.kind.word in ("key", "tag"):
        shown = one.kind.word.upper()
    return f"{shown}.." if one.many else shown


def name_parameter(operation: Operation, one: Parameter) -> str:
    """What a parameter is called in a message: NAME, KEY, or `--timeout`."""
    return format_metavar(operation, one).removesuffix("..") if one.positional else f"--{option_name(one.name)}"


def list_options(operation: Operation) -> list[tuple[str, str]]:
    """Each option with its values, and what it means with its default."""
    rows = [_describe_parameter(one) for one in operation.parameters if not one.positional]
    return rows + [_describe_option(one) for one in own_options(operation)]


def _describe_parameter(one: Parameter) -> tuple[str, str]:
    name = f"--{option_name(one.name)}"
    value = "|".join(one.choices) or one.kind.word
    about = one.help
    if one.flag.to_file:
        value, about = "FILE", f"write it to FILE {one.help} (- is standard output)"
    elif not value:
        name = f"--no-{option_name(one.name)}" if one.default is True else name
        about = f"do not {one.help}" if one.default is True else one.help
    elif not one.required and one.default not in (None, "", ()):
        about = f"{one.help} (default: {_format_default(one)})"
    value = f"[{value.upper()}]" if one.flag.bare else value if one.choices else value.upper()
    more = " (repeatable)" if one.many else ""
    return " ".join(filter(None, (", ".join((*one.flag.names, name)), value))), about + more


def _format_default(one: Parameter) -> str:
    if one.kind.word == "bytes" and isinstance(one.default, int) and not one.default % (1 << 20):
        return f"{one.default >> 20}M"
    return f"{one.default:g}s" if one.kind.word == "duration" else str(one.default)


def _write_examples(formatter: click.HelpFormatter, examples: tuple[str, ...]) -> None:
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}{format_example(example)}\n")


def format_example(example: str) -> str:
    """An example as one types it."""
    return example if "tmuxctl " in example else f"tmuxctl {example}"


def list_global_options() -> list[tuple[str, str]]:
    """The options of every command, as they stand in `tmuxctl --help`."""
    return [*map(_describe_option, global_options()), ("-h, --help", "print this help, or that of a command")]


def _describe_option(one: click.Option) -> tuple[str, str]:
    return _format_option_names(one), one.help or ""


def _format_option_names(one: click.Option, names: int | None = None) -> str:
    spelled = one.opts[-names:] if names else one.opts
    return " ".join(filter(None, (", ".join(spelled), one.metavar)))
