"""The options of commands: those of each one, of an operation's parameters, and of the command line alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from tmuxctl import __version__
from tmuxctl.operations import Flag, Operation, Parameter
from tmuxctl.surfaces.cli.printing.output import Options, write
from tmuxctl.value import changed

SETTINGS = {"help_option_names": ["-h", "--help"]}

REACTIONS = (
    ("on_asking", "--on-asking", "run this in a shell when a session asks; TMUXCTL_EVENT holds the event as JSON"),
    (
        "on_input",
        "--on-input",
        "run this in a shell when a session wants input: when it asks, or waits for a line or a key",
    ),
    ("on_prompt", "--on-prompt", "run this in a shell when a session is ready for its next command"),
    ("on_idle", "--on-idle", "run this in a shell when a session becomes idle"),
)
NOTIFY = Flag(bare="auto", value="(?:auto|bell|terminal|desktop)(?:,(?:bell|terminal|desktop))*")
NOTIFY_HELP = (
    "tell you when a session wants input, unless a terminal is attached to it: by bell, terminal, desktop or some of them "
    "(bell,desktop); without a value by what is at hand"
)
FORMAT_HELP = r"print each session in this format: {name}, {state}, any field of `ls --json`, \t and \n"
LIMIT_HELP = "of several sessions (A,B or @GROUP/NAME), use at most this many at once (default: 32)"


def option_name(name: str) -> str:
    """A parameter's name as an option's: `max_bytes` is `max-bytes`, `with_` is `with`."""
    return name.rstrip("_").replace("_", "-")


def own_options(operation: Operation) -> list[click.Option]:
    """The options that no operation has, only its command."""
    found = []
    if operation.meta.rows:
        found.append(click.Option(["format_", "-F", "--format"], metavar="FORMAT", help=FORMAT_HELP))
    if operation.meta.several:
        found.append(click.Option(["limit", "--limit"], metavar="NUMBER", help=LIMIT_HELP))
    if operation.meta.events:
        found += [click.Option([name, flag], metavar="CMD", help=about) for name, flag, about in REACTIONS]
        found.append(click.Option(["notify", "--notify"], metavar="[HOW]", help=NOTIFY_HELP))
    return found


def make_option(one: Parameter, complete: Callable[..., list[Any]]) -> click.Option:
    """A parameter as an option; `complete` gives what its value may be."""
    spelled = option_name(one.name)
    declared = [one.name, *one.flag.names, f"--{spelled}"]
    if not one.flag.to_file and one.kind.schema.get("type") == "boolean":
        if one.default is True:
            declared[-1] = f"--{spelled}/--no-{spelled}"
        return click.Option(declared, is_flag=True, help=one.help)
    return click.Option(declared, multiple=one.many, type=click.UNPROCESSED, help=one.help, shell_complete=complete)


def has_options(words: Sequence[str]) -> bool:
    """True if one of the words may be an option; options cost milliseconds to make, most calls give none."""
    return any(word.startswith("-") and word != "-" for word in words)


def global_options(*, hidden: bool = False) -> list[click.Option]:
    """The options that every command takes, before its name and after it."""
    flags = [
        ("json", "--json", "print results and errors as JSON, one object on a line"),
        ("quiet", "-q --quiet", "print no notes, and only the names of results"),
        ("no_color", "--no-color", "use no colour, as with NO_COLOR=1"),
        ("no_input", "--no-input", "never prompt, never read from a terminal"),
        ("verbose", "-v --verbose", "print more, and the traceback of an internal error"),
        ("no_server", "--no-server", "do not have a server of commands carry this one out, where one listens"),
    ]
    place = "the tmux server to use (default: tmuxctl)"
    return [
        click.Option(["global_socket", "--socket"], metavar="NAME", help=place, hidden=hidden),
        *(
            click.Option([f"global_{name}", *spelled.split()], is_flag=True, help=about, hidden=hidden)
            for name, spelled, about in flags
        ),
        click.Option(
            ["global_version", "--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_print_version,
            help="print the version",
            hidden=hidden,
        ),
    ]


def _print_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write(f"tmuxctl {__version__}\n")
        ctx.exit()


def help_option() -> click.Parameter:
    """A command's own -h, as one of its options."""

    def show(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    # click's own one looks for translations of its help, for which it loads `locale`
    words = SETTINGS["help_option_names"]
    about = "Show this message and exit."
    return click.Option(words, is_flag=True, expose_value=False, is_eager=True, help=about, callback=show)


def is_given(ctx: click.Context, name: str) -> bool:
    """True if the words of the command line say something of this option."""
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def merge_options(options: Options, ctx: click.Context) -> Options:
    """The options with what these words add."""
    values = ctx.params
    if is_given(ctx, "global_socket"):
        options = changed(options, socket=values["global_socket"])
    return changed(
        options,
        json=options.json or bool(values.get("global_json")),
        quiet=options.quiet or bool(values.get("global_quiet")),
        color=options.color and not values.get("global_no_color"),
        prompt=options.prompt and not values.get("global_no_input"),
        verbose=options.verbose or bool(values.get("global_verbose")),
    )
