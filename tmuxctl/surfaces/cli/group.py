"""The group of commands, each built from its operation only when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from tmuxctl import operations
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.surfaces.cli.output import Options, write

GROUPS = ("Drive", "Look", "Sessions", "Teams", "Set up")
SETTINGS = {"help_option_names": ["-h", "--help"]}


class Service(NamedTuple):
    """A class of operations, and how an object of it is had for one command."""

    operations: type
    connect: Callable[[Options], Any]


class _Commands(click.Group):
    """Commands made of operations, by the word that names each."""

    services: Callable[[], Iterable[Service]]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return self.params

    def commands_of(self) -> Iterator[tuple[str, str, Service]]:
        """Each operation as it is typed, its name, and whose it is."""
        for service in self.services():
            for name in operations.names(service.operations):
                yield getattr(service.operations, name).__operation__.spoken(name), name, service

    def alias(self, ctx: click.Context, words: list[str]) -> tuple[str, click.Command, list[str]] | None:
        """What the first word is an alias of: the name, the command and its words; None if it is none."""
        return None

    def hint(self, words: Sequence[str], ctx: click.Context) -> str:
        """What to say of a command that there is not: ours for another tool's, else what was perhaps mistyped."""
        from tmuxctl.config import near

        return near(words[0], self.harmless(ctx))

    def harmless(self, ctx: click.Context) -> list[str]:
        """The words of commands that end and remove nothing: a typo is never answered with another one."""
        every = [(typed, getattr(one.operations, name).__operation__) for typed, name, one in self.commands_of()]
        kills = {typed.rpartition(" ")[2] for typed, meta in every if meta.right == "kill"}
        return [word for word in self.list_commands(ctx) if word not in kills]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None and (alias := self.alias(ctx, args)) is not None:
            return alias
        if command is None and not ctx.resilient_parsing:
            hint = self.hint(args, ctx) or f"{ctx.command_path} --help lists them"
            raise Usage(f"no command {ascii(args[0][:40])}", reason="no_command", hint=hint)
        # of a word that is nothing to us the shell knows nothing either, not what commands there are
        return args[0], command or click.Command(args[0], add_help_option=False), args[1:]


class Family(_Commands):
    """The commands that share a first word, as `profile ls` and `profile show`."""

    def __init__(self, name: str, services: Callable[[], Iterable[Service]]) -> None:
        super().__init__(name, context_settings=SETTINGS)
        self.services = services

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [typed.partition(" ")[2] for typed, _, _ in self.commands_of() if typed.startswith(f"{self.name} ")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command(self, f"{self.name} {cmd_name}")

    def get_short_help_str(self, limit: int = 0) -> str:
        return ", ".join(self.list_commands(click.Context(self)))

    def hint(self, words: Sequence[str], ctx: click.Context) -> str:
        from tmuxctl.surfaces.cli import spellings

        ours = spellings.ours_in_family(str(self.name), words[0], self.list_commands(ctx))
        return f"here that is: {ours}" if ours else super().hint(words, ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing or has_options(args[:1]):
            self.params += [*global_options(hidden=True), help_option(self, ctx)]
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            ctx.obj = merged(ctx.obj, ctx)
        return rest

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from tmuxctl.surfaces.cli import help

        help.of_family(self, formatter)


def _command(group: _Commands, typed: str) -> click.Command | None:
    """The command of an operation that is typed so."""
    from tmuxctl.surfaces.cli.command import OperationCommand

    name = typed.replace(" ", "_").replace("-", "_")
    for service in group.services():
        meta = getattr(getattr(service.operations, name, None), "__operation__", None)
        if meta is not None and meta.spoken(name) == typed:
            return OperationCommand(operations.find(service.operations, name), service.connect)
    return None


class App(_Commands):
    """`tmuxctl` itself. A command is named after an operation of the first of `services` that has it."""

    def __init__(self, services: Callable[[], Iterable[Service]] | None = None) -> None:
        super().__init__("tmuxctl", context_settings=SETTINGS)
        self.services = services or _services

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys(typed.partition(" ")[0] for typed, _, _ in self.commands_of()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if command := _command(self, cmd_name):
            return command
        family = Family(cmd_name, self.services)
        return family if family.list_commands(ctx) else None

    def alias(self, ctx: click.Context, words: list[str]) -> tuple[str, click.Command, list[str]] | None:
        from tmuxctl.surfaces.cli import aliases

        try:
            return aliases.resolved(self, ctx, words)
        except TmuxctlError:
            if ctx.resilient_parsing:
                return None
            raise

    def hint(self, words: Sequence[str], ctx: click.Context) -> str:
        from tmuxctl.surfaces.cli import spellings

        ours = spellings.ours(words)
        return f"here that is: {ours}" if ours else super().hint(words, ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing or has_options(args[:1]):
            self.params += [*global_options(), help_option(self, ctx)]
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            ctx.obj = merged(Options(), ctx)
        return rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from tmuxctl.surfaces.cli import completion

        return [*super().shell_complete(ctx, incomplete), *completion.aliases(incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from tmuxctl.surfaces.cli import help

        help.of_app(self, formatter)


def _services() -> Iterator[Service]:
    from tmuxctl.control.service import Control

    def connect(options: Options) -> Control:
        from tmuxctl import config

        return Control(settings=config.load({"tmux.socket": options.socket}))

    yield Service(Control, connect)
    from tmuxctl.surfaces.cli.here import Here

    yield Service(Here, lambda options: Here(connect, options))
    from tmuxctl.surfaces.cli.configuring import Configuring

    yield Service(Configuring, lambda options: Configuring(connect, options))
    from tmuxctl.surfaces.cli.service import Keeper

    yield Service(Keeper, lambda options: Keeper(connect, options))
    from tmuxctl.surfaces.cli.hooks import Hooks

    yield Service(Hooks, lambda options: Hooks(connect, options))
    from tmuxctl.surfaces.adapters.niia import Niia

    yield Service(Niia, lambda options: Niia(connect(options)))


def has_options(words: Sequence[str]) -> bool:
    """True if one of the words may be an option; options cost milliseconds to make, most calls give none."""
    return any(word.startswith("-") and word != "-" for word in words)


def global_options(*, hidden: bool = False) -> list[click.Option]:
    """The options that every command takes, before its name and after it."""
    flags = [
        ("--json", "results and errors as one JSON object on a line"),
        ("-q --quiet", "no notes; of results only the names"),
        ("--no-color", "no colour, as with NO_COLOR=1"),
        ("--no-input", "never ask, never read from a terminal"),
        ("-v --verbose", "say more, and where a bug is"),
    ]
    place = "the tmux server to use (default: tmuxctl)"
    return [
        click.Option(["global_socket", "--socket"], metavar="NAME", help=place, hidden=hidden),
        *(
            click.Option([_stored(names), *names.split()], is_flag=True, help=about, hidden=hidden)
            for names, about in flags
        ),
        click.Option(
            ["global_version", "--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_version,
            help="print the version",
            hidden=hidden,
        ),
    ]


def _stored(names: str) -> str:
    return "global_" + names.rpartition("--")[2].replace("-", "_")


def _version(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from tmuxctl import __version__

        write(f"tmuxctl {__version__}\n")
        ctx.exit()


def help_option(command: click.Command, ctx: click.Context) -> click.Parameter:
    """The command's own -h, as one of its options."""
    option = command.get_help_option(ctx)
    assert option is not None
    return option


def given(ctx: click.Context, name: str) -> bool:
    """True if the words of the command line say something of this option."""
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def merged(options: Options, ctx: click.Context) -> Options:
    """The options with what these words add."""
    values = ctx.params
    if given(ctx, "global_socket"):
        options = options._replace(socket=values["global_socket"])
    return options._replace(
        json=options.json or bool(values.get("global_json")),
        quiet=options.quiet or bool(values.get("global_quiet")),
        color=options.color and not values.get("global_no_color"),
        prompt=options.prompt and not values.get("global_no_input"),
        verbose=options.verbose or bool(values.get("global_verbose")),
    )
