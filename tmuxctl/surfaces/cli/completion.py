"""What the shell completes: commands and options by click, names of sessions and keys from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from tmuxctl.operations import Parameter
from tmuxctl.surfaces.cli.output import Options

if TYPE_CHECKING:
    from tmuxctl.surfaces.cli.group import App

VARIABLE = "_TMUXCTL_COMPLETE"


def script(shell: str) -> str:
    """The code for this shell, to be evaluated in its start-up file."""
    found = get_completion_class(shell)
    assert found is not None
    completer = found(click.Command("tmuxctl"), {}, "tmuxctl", VARIABLE)
    return completer.source_template % completer.source_vars()


def answer(app: App, instruction: str) -> int:
    """Print what a shell asks for; it never sees an error."""
    try:
        return int(shell_complete(app, {}, "tmuxctl", VARIABLE, instruction))
    except Exception:
        return 1


def words(ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """What the next word may be: it is this command's first parameter that has none yet."""
    from tmuxctl.surfaces.cli.command import WORDS, OperationCommand

    command = ctx.command
    if not isinstance(command, OperationCommand):
        return []
    number = len(ctx.params.get(WORDS) or ())
    positional = command.positional
    if ctx.meta.get("tmuxctl.tail") is not None:
        return [CompletionItem(incomplete, type="file")]
    if number < len(positional):
        return values(ctx, positional[number], incomplete)
    return values(ctx, positional[-1], incomplete) if positional and positional[-1].many else []


def values(ctx: click.Context, one: Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """What a parameter's value may be, as far as that is known."""
    if one.choices:
        known = list(one.choices)
    elif one.kind.word == "name" or one.name == "session":
        known = _sessions(ctx)
    elif one.kind.word == "command":
        known = _commands(ctx)
    elif one.kind.word == "key":
        from tmuxctl.terminal.keys import key_names

        known = list(key_names())
    elif one.kind.word == "profile" or one.name == "profile":
        from tmuxctl.extensions import profiles

        known = [found.name for found in profiles()]
    elif one.kind.word == "plugin":
        from tmuxctl.extensions import plugins

        known = [found.name for found in plugins()]
    else:
        return [CompletionItem(incomplete, type="file")] if one.kind.word == "file" else []
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


def _commands(ctx: click.Context) -> list[str]:
    app = ctx.find_root().command
    return app.list_commands(ctx) if isinstance(app, click.Group) else []


def _sessions(ctx: click.Context) -> list[str]:
    from tmuxctl.surfaces.cli.group import App

    app = ctx.find_root().command
    if not isinstance(app, App):
        return []
    options = Options()
    for place in (ctx.find_root(), ctx):
        options = options._replace(socket=place.params.get("global_socket") or options.socket)
    try:
        service: Any = next(iter(app.services())).connect(options)
        return [one.name for one in service.call("ls", {}).sessions]
    except Exception:
        return []
