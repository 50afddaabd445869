"""What click says of the arguments, as errors of ours."""

from __future__ import annotations

import click

from tmuxctl.errors import Usage
from tmuxctl.surfaces.cli.commands.command import OperationCommand
from tmuxctl.surfaces.cli.words import spellings


def to_usage_error(error: click.ClickException) -> Usage:
    """What click says of the arguments, as our error."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "tmuxctl"
    if isinstance(error, click.NoSuchOption):
        option = ascii(error.option_name)[1:-1]
        return Usage(
            f"{_message_prefix(path)}no option {option}",
            reason="bad_option",
            hint=_suggest_option(context, option, error),
        )
    message = error.format_message().rstrip(".")
    if isinstance(error, click.BadOptionUsage) and _takes_file(context, error.option_name):
        hint = f"{path} NAME {error.option_name} FILE, or - for standard output"
        return Usage(f"{_message_prefix(path)}{error.option_name} needs a file", reason="bad_usage", hint=hint)
    return Usage(_message_prefix(path) + message[:1].lower() + message[1:], reason="bad_usage", hint=f"{path} --help")


def _suggest_option(context: click.Context | None, option: str, error: click.NoSuchOption) -> str:
    """What to say of an option that there is not."""
    near = f"did you mean {' or '.join(error.possibilities)}? " if error.possibilities else ""
    command = context.command if context is not None else None
    if not isinstance(command, OperationCommand):
        return near + "tmuxctl --help"
    return spellings.suggest_option(command.operation, str(command.name), option, near)


def _takes_file(context: click.Context | None, option: str) -> bool:
    command = context.command if context is not None else None
    parameters = command.operation.parameters if isinstance(command, OperationCommand) else ()
    return any(one.flag.to_file and f"--{one.name}" == option for one in parameters)


def _message_prefix(path: str) -> str:
    verb = path.removeprefix("tmuxctl").strip()
    return f"{verb}: " if verb else ""
