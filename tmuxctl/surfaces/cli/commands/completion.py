"""What the shell completes: commands and options by click; sessions, answers, programs, keys and the rest from here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from tmuxctl import config, extensions
from tmuxctl.errors import TmuxctlError
from tmuxctl.operations import Parameter
from tmuxctl.surfaces.cli.commands.group import OperationGroup
from tmuxctl.surfaces.cli.printing import table
from tmuxctl.surfaces.cli.printing.output import Options, flat
from tmuxctl.value import changed

Item = CompletionItem[str]

VARIABLE = "_TMUXCTL_COMPLETE"

_WHOLE = re.compile(r"[\w@%+=:,./-]+")
"""A word that no shell has to quote."""

_CHANGES = {
    # click's script cuts a value at its first comma, and a description with it
    "fish": ('string split ","', 'string split --max 1 ","'),
    "zsh": ("    compdef ", "    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n    compdef "),
}


def shell_script(shell: str) -> str:
    """The code for this shell, to be evaluated in its start-up file."""
    found = get_completion_class(shell)
    assert found is not None
    completer = found(click.Command("tmuxctl"), {}, "tmuxctl", VARIABLE)
    return (completer.source_template % completer.source_vars()).replace(*_CHANGES.get(shell, ("", "")))


def print_completions(app: click.Group, instruction: str) -> int:
    """Print what a shell asks for; it never sees an error."""
    try:
        return int(shell_complete(app, {}, "tmuxctl", VARIABLE, instruction))
    except Exception:
        return 1


def complete_value(ctx: click.Context, one: Parameter, words: Sequence[str], incomplete: str) -> list[Item]:
    """What a parameter's value may be, as far as that is known; `words` are those of the command so far."""
    if one.kind.word in ("file", "dir"):
        return [CompletionItem(incomplete, type=one.kind.word)]
    head, comma, last = incomplete.rpartition(",") if one.kind.word in ("names", "profiles") else ("", "", incomplete)
    there = head.split(",") if comma else []
    return [
        CompletionItem(f"{head}{comma}{name}", help=about or None)
        for name, about in _known_values(ctx, one, words, incomplete)
        if name.startswith(last) and name not in there
    ]


def complete_aliases(incomplete: str) -> list[Item]:
    """The user's aliases; none if the settings cannot be read."""
    try:
        found = config.load_aliases()
    except TmuxctlError:
        return []
    return [CompletionItem(name, help=flat(one)) for name, one in sorted(found.items()) if name.startswith(incomplete)]


def _known_values(
    ctx: click.Context, one: Parameter, words: Sequence[str], incomplete: str
) -> Iterable[tuple[str, str]]:
    """Values that are known, each with a description or an empty one."""
    word = one.kind.completes or one.kind.word
    if one.choices:
        return ((choice, "") for choice in one.choices)
    if word in ("name", "names"):
        return _list_sessions(ctx)
    if word == "option":
        return _list_answers(ctx, words)
    if word == "key":
        return ((name, "") for name in _key_names(incomplete))
    if word == "command":
        app = ctx.find_root().command
        return ((name, "") for name in (app.list_commands(ctx) if isinstance(app, click.Group) else ()))
    if word == "setting":
        return ((found.name, flat(found.written)) for found in config.list_settings())
    if word in ("profile", "profiles"):
        return ((found.name, "") for found in extensions.list_profiles())
    if word == "plugin":
        return ((found.name, "") for found in extensions.list_plugins())
    return ()


def _key_names(incomplete: str) -> Iterator[str]:
    """The names of keys as tmux spells them, and what begins as it is typed in ptyai's spelling."""
    from tmuxctl.terminal.input.keys import key_names, tmux_keys

    names = key_names()
    # bash takes a backslash for itself
    yield from sorted(name for name in {tmux_keys([name])[0] for name in names} if "\\" not in name)
    if incomplete:
        yield from (name for name in names if "\\" not in name)


def complete_program(number: int, incomplete: str) -> list[Item]:
    """A word of a command: the first is a program, by its name or its path; the others may be files."""
    if number or "/" in incomplete:
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(name) for name in sorted(set(_find_programs(incomplete)))]


def _find_programs(prefix: str) -> Iterator[str]:
    for folder in filter(os.path.isabs, os.environ.get("PATH", "").split(":")):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.startswith(prefix) and _WHOLE.fullmatch(name) and os.access(f"{folder}/{name}", os.X_OK):
                yield name


def _list_sessions(ctx: click.Context) -> list[tuple[str, str]]:
    found = _call_operation(ctx, "ls", {})
    return [] if found is None else [(one.name, _describe_session(one, table.asked(one)[0])) for one in found.sessions]


def _describe_session(one: Any, question: str) -> str:
    program = one.profile or (os.path.basename(one.argv[0]) if one.argv else "")
    return ", ".join(flat(word) for word in (one.state.value, question or program) if word)


def _list_answers(ctx: click.Context, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What the question of the session that is named takes for an answer; a number where a word would have to be quoted."""
    found = _call_operation(ctx, "show", {"session": words[0]}) if words else None
    for number, option in enumerate(found.asking.options if found and found.asking else (), 1):
        usable = _WHOLE.fullmatch(option.id)
        yield option.id if usable else str(number), flat(option.label if option.label != option.id else "")


def _call_operation(ctx: click.Context, name: str, arguments: dict[str, Any]) -> Any:
    """What an operation gives, with the options that were typed; None if it fails."""
    app = ctx.find_root().command
    if not isinstance(app, OperationGroup):
        return None
    options = Options()
    for place in (ctx.find_root(), ctx):
        options = changed(options, socket=place.params.get("global_socket") or options.socket)
    try:
        service: Any = next(iter(app.services())).connect(options)
        return service.call(name, arguments)
    except Exception:
        return None
