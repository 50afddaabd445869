"""The whole command, put together, and one run of it: from arguments to exit status. Every way it can end is here, none is
a traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click

from tmuxctl import config
from tmuxctl.control.service import Control
from tmuxctl.errors import Failed, TmuxctlError, Usage
from tmuxctl.surfaces.cli.commands.group import Family, OperationGroup, find_command
from tmuxctl.surfaces.cli.commands.options import SETTINGS, global_options, has_options, help_option, merge_options
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations, Service
from tmuxctl.surfaces.cli.ending import Terminated, raise_on_sigterm
from tmuxctl.surfaces.cli.printing.output import Options, ReaderGone, report, tell

INTERRUPTED, TERMINATED, READER_GONE = 130, 143, 141
"""128 and the signal's number, as shells have it: SIGINT, SIGTERM, SIGPIPE."""

COMPLETE = "_TMUXCTL_COMPLETE"


class App(OperationGroup):
    """`tmuxctl` itself. A command is named after an operation of the first of `services` that has it."""

    def __init__(self, services: Callable[[], Iterable[Service]] | None = None) -> None:
        super().__init__("tmuxctl", context_settings=SETTINGS)
        self.services = services or (lambda: _list_services(self))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys(one.typed.partition(" ")[0] for one in self.listed()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = find_command(self.services(), cmd_name)
        if command and not command.operation.meta.leads:
            return command
        family = Family(cmd_name, self.services, alone=command)
        return family if family.list_commands(ctx) else command

    def resolve_alias(self, ctx: click.Context, words: list[str]) -> tuple[str, click.Command, list[str]] | None:
        from tmuxctl.surfaces.cli.words import aliases

        try:
            return aliases.resolve_alias(self, ctx, words)
        except TmuxctlError:
            if ctx.resilient_parsing:
                return None
            raise

    def suggest_command(self, words: Sequence[str], ctx: click.Context) -> str:
        from tmuxctl.surfaces.cli.words import spellings

        ours = spellings.find_our_command(words)
        return f"in tmuxctl: {ours}" if ours else super().suggest_command(words, ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing or has_options(args[:1]):
            self.params += [*global_options(), help_option()]
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            ctx.obj = merge_options(Options(), ctx)
        return rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from tmuxctl.surfaces.cli.commands import completion

        return [*super().shell_complete(ctx, incomplete), *completion.complete_aliases(incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from tmuxctl.surfaces.cli.commands import help

        help.write_app_help(self.listed(), formatter)


def _list_services(app: App) -> Iterator[Service]:
    """Every class of operations; the module of each is loaded only for a command that none before it has."""
    yield Service(Control, _connect_control)
    from tmuxctl.surfaces.cli.here import TerminalOperations

    yield _command_line_service(TerminalOperations, app)
    from tmuxctl.surfaces.cli.setup.configuring import SettingsOperations

    yield _command_line_service(SettingsOperations, app)
    from tmuxctl.surfaces.cli.teams.connecting import TeamOperations

    yield _command_line_service(TeamOperations, app)
    from tmuxctl.surfaces.cli.gateway.gateways import GatewayOperations

    yield _command_line_service(GatewayOperations, app)
    from tmuxctl.surfaces.cli.gateway.keys import GatewayKeyOperations

    yield _command_line_service(GatewayKeyOperations, app)
    from tmuxctl.surfaces.cli.setup.machines import MachineOperations

    yield _command_line_service(MachineOperations, app)
    from tmuxctl.surfaces.cli.setup.service import ServiceOperations

    yield _command_line_service(ServiceOperations, app)
    from tmuxctl.surfaces.cli.setup.hooks import HookOperations

    yield _command_line_service(HookOperations, app)
    from tmuxctl.surfaces.cli.setup.mcp_clients import McpClientOperations

    yield _command_line_service(McpClientOperations, app)
    from tmuxctl.surfaces.cli.skill import SkillOperations

    yield _command_line_service(SkillOperations, app)
    from tmuxctl.surfaces.cli.setup.serving import ServeOperations

    yield _command_line_service(ServeOperations, app)
    from tmuxctl.surfaces.cli.setup.mcp import McpOperations

    yield _command_line_service(McpOperations, app)
    from tmuxctl.surfaces.adapters.niia import Niia

    yield Service(Niia, lambda options: Niia(_connect_control(options)))


def _command_line_service(operations: type[CommandLineOperations], app: App) -> Service:
    return Service(operations, lambda options: operations(_connect_control, options, app))


def _connect_control(options: Options) -> Control:
    return Control(settings=config.load({"tmux.socket": options.socket}))


def run(words: Sequence[str], app: App | None = None) -> int:
    """Run one command; returns the exit status."""
    raise_on_sigterm(TERMINATED)
    options = _find_options(words)
    try:
        return _invoke(_decode_words(words), app or App())
    except TmuxctlError as error:
        report(error, options)
        return error.exit
    except click.exceptions.NoArgsIsHelpError as error:
        tell(error.message)
        return 2
    except click.ClickException as error:
        from tmuxctl.surfaces.cli.commands.usage_errors import to_usage_error

        found = to_usage_error(error)
        report(found, options)
        return found.exit
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return report_interrupt(words)
    except Terminated as told:
        return told.status
    except ReaderGone:
        return READER_GONE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _report_full_disk(error, options)
        return _report_bug(error, options)


def _find_options(words: Sequence[str]) -> Options:
    """What the words say of errors, though they may be wrong."""
    head = words[: words.index("--")] if "--" in words else words
    return Options(json="--json" in head, verbose="-v" in head or "--verbose" in head)


def report_interrupt(words: Sequence[str]) -> int:
    """Tell that the command was interrupted; returns the exit status."""
    report(_Interrupted("interrupted", reason="interrupted"), _find_options(words))
    return INTERRUPTED


def _invoke(words: list[str], app: App) -> int:
    if COMPLETE in os.environ:
        from tmuxctl.surfaces.cli.commands import completion

        return completion.print_completions(app, os.environ[COMPLETE])
    with app.make_context("tmuxctl", words) as context:
        return int(app.invoke(context) or 0)


def _decode_words(words: Sequence[str]) -> list[str]:
    """The arguments as the bytes they were, read as UTF-8 whatever the locale; Usage if they are none."""
    if sys.getfilesystemencoding() != "utf-8":
        words = [os.fsencode(word).decode("utf-8", "surrogateescape") for word in words]
    for word in words:
        if not word.isascii():
            try:
                word.encode()
            except UnicodeEncodeError:
                raise Usage(
                    f"{ascii(word)[:60]} is not UTF-8",
                    reason="bad_text",
                    hint="give raw bytes on standard input: printf '\\377' | tmuxctl send NAME -",
                ) from None
    return list(words)


class _Interrupted(TmuxctlError):
    """We were told to stop."""

    exit = INTERRUPTED


def _report_full_disk(error: OSError, options: Options) -> int:
    found = Failed(f"no room to write {error.filename or 'a file'}", reason="disk_full", hint="df -h")
    report(found, options)
    return found.exit


def _report_bug(error: Exception, options: Options) -> int:
    what = f"internal error: {type(error).__name__}: {error}"
    hint = "tmuxctl -v shows where; please report it"
    report(TmuxctlError(what[:500], reason="internal", hint=hint), options)
    if options.verbose or os.environ.get("TMUXCTL_LOG"):
        import traceback

        tell("".join(traceback.format_exception(error)).rstrip("\n"))
    return 1
