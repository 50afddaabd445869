"""Aliases of config.toml: a word that stands for a command, or with `!` for a shell command; as git has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from tmuxctl import config
from tmuxctl.errors import Usage
from tmuxctl.surfaces.cli.printing.output import write

HELP = ("-h", "--help")


def expand_alias(words: Sequence[str], known: Mapping[str, str], is_command: Callable[[str], bool]) -> list[str]:
    """The words with what their first one stands for; a shell command is one word that begins with `!`, before the rest.

    Usage `bad_alias` for one that leads back to itself, is empty, or begins with an option.
    """
    way: list[str] = []
    while words[0] in known and not is_command(words[0]):
        if words[0] in way:
            round_ = " -> ".join([*way, words[0]])
            raise Usage(
                f"alias {words[0]} leads back to itself: {round_}", reason="bad_alias", hint=_name_config_file()
            )
        way.append(words[0])
        stands_for = known[words[0]]
        shell = stands_for.startswith("!")
        words = [*([stands_for] if shell else config.alias_words(words[0], stands_for)), *words[1:]]
    return list(words)


def resolve_alias(
    app: click.Group, ctx: click.Context, words: Sequence[str]
) -> tuple[str, click.Command, list[str]] | None:
    """What an alias leads to: the command's name, the command and its words; None if the first word is no alias.

    Raises Usage as `expand_alias`, or `bad_config` where the file cannot be read.
    """
    known = config.load_aliases()
    if words[0] not in known:
        return None
    if words[1:2] and words[1] in HELP and not known[words[0]].startswith("!"):
        return words[0], AliasHelp(words[0], known[words[0]]), []
    found = expand_alias(words, known, lambda word: app.get_command(ctx, word) is not None)
    if found[0].startswith("!"):
        return words[0], ShellAlias(words[0], found[0][1:]), found[1:]
    command = app.get_command(ctx, found[0])
    if command is None:
        raise Usage(
            f"alias {words[0]}: no command {ascii(found[0][:40])}", reason="no_command", hint=_name_config_file()
        )
    return found[0], command, found[1:]


def describe_alias(app: click.Group, ctx: click.Context, words: Sequence[str]) -> str | None:
    """What help says of an alias; None if these words are none."""
    if (
        len(words) == 1
        and app.get_command(ctx, words[0]) is None
        and (stands_for := config.load_aliases().get(words[0]))
    ):
        return _sentence(words[0], stands_for)
    return None


def _sentence(name: str, stands_for: str) -> str:
    return f"{name} is an alias of: {stands_for}"


def _name_config_file() -> str:
    return f"it is defined in {config.config_path()}"


class AliasHelp(click.Command):
    """Prints what an alias stands for."""

    def __init__(self, name: str, stands_for: str) -> None:
        super().__init__(name)
        self.stands_for = stands_for

    def invoke(self, ctx: click.Context) -> int:
        write(_sentence(str(self.name), self.stands_for) + "\n")
        return 0


class ShellAlias(click.Command):
    """A shell command in place of this process: it gets the words behind the alias, and its exit status is ours."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, add_help_option=False)
        self.text = text

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return ctx.args

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.obj.socket:
            os.environ["TMUXCTL_SOCKET"] = ctx.obj.socket
        # a group that its other words end, whatever the text ends with
        os.execv("/bin/sh", ["/bin/sh", "-c", f'{self.text} "$@"', str(self.name), *ctx.args])
