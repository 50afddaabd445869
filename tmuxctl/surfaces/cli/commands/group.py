"""The group of commands, each built from its operation only when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import click

from tmuxctl import operations
from tmuxctl.config import suggest
from tmuxctl.errors import Usage
from tmuxctl.surfaces.cli.commands.command import OperationCommand
from tmuxctl.surfaces.cli.commands.options import SETTINGS, global_options, has_options, help_option, merge_options
from tmuxctl.surfaces.cli.commands.services import Listed, Service, list_operations


class OperationGroup(click.Group):
    """Commands made of operations, by the word that names each."""

    services: Callable[[], Iterable[Service]]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return self.params

    def listed(self) -> list[Listed]:
        """The operations that its commands are made of."""
        return list(list_operations(self.services()))

    def resolve_alias(self, ctx: click.Context, words: list[str]) -> tuple[str, click.Command, list[str]] | None:
        """What the first word is an alias of: the name, the command and its words; None if it is none."""
        return None

    def suggest_command(self, words: Sequence[str], ctx: click.Context) -> str:
        """What to say of a command that there is not: ours for another tool's, else what was perhaps mistyped."""
        return suggest(words[0], self.list_harmless_words(ctx))

    def list_harmless_words(self, ctx: click.Context) -> list[str]:
        """The words of commands that end and remove nothing: a typo is never answered with another one."""
        kills = {one.typed.rpartition(" ")[2] for one in self.listed() if one.meta.right == "kill"}
        return [word for word in self.list_commands(ctx) if word not in kills]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None and (alias := self.resolve_alias(ctx, args)) is not None:
            return alias
        if command is None and not ctx.resilient_parsing:
            hint = self.suggest_command(args, ctx) or f"{ctx.command_path} --help lists them"
            raise Usage(f"no command {ascii(args[0][:40])}", reason="no_command", hint=hint)
        # of a word that is nothing to us the shell knows nothing either, not what commands there are
        return args[0], command or click.Command(args[0], add_help_option=False), args[1:]


class Family(OperationGroup):
    """The commands that share a first word, as `profile ls` and `profile show`. `alone` is what the word is without another."""

    def __init__(
        self, name: str, services: Callable[[], Iterable[Service]], alone: OperationCommand | None = None
    ) -> None:
        super().__init__(
            name, context_settings=SETTINGS, invoke_without_command=alone is not None, callback=self._invoke_alone
        )
        self.services = services
        self.alone = alone

    def _invoke_alone(self, **_options: object) -> int:
        context = click.get_current_context()
        if self.alone is None or context.invoked_subcommand is not None:
            return 0
        with self.alone.make_context(self.name, [], parent=context) as alone:
            return self.alone.invoke(alone)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [one.typed.partition(" ")[2] for one in self.listed() if one.typed != self.name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(self.services(), f"{self.name} {cmd_name}")

    def listed(self) -> list[Listed]:
        return [one for one in super().listed() if one.typed.partition(" ")[0] == self.name]

    def get_short_help_str(self, limit: int = 0) -> str:
        return ", ".join(self.list_commands(click.Context(self)))

    def suggest_command(self, words: Sequence[str], ctx: click.Context) -> str:
        from tmuxctl.surfaces.cli.words import spellings

        ours = spellings.find_our_family_command(str(self.name), words[0], self.list_commands(ctx))
        return f"in tmuxctl: {ours}" if ours else super().suggest_command(words, ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing or has_options(args[:1]):
            self.params += [*global_options(hidden=True), help_option()]
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            ctx.obj = merge_options(ctx.obj, ctx)
        return rest

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from tmuxctl.surfaces.cli.commands import help

        help.write_family_help(str(self.name), self.listed(), formatter)


def find_command(services: Iterable[Service], typed: str) -> OperationCommand | None:
    """The command of an operation that is typed so."""
    name = typed.replace(" ", "_").replace("-", "_")
    for service in services:
        meta = getattr(getattr(service.operations, name, None), "__operation__", None)
        if meta is not None and meta.spoken(name) == typed:
            return OperationCommand(operations.find(service.operations, name), service.connect)
    return None
