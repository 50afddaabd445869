"""One run of the command: from arguments to exit status. Every way it can end is here, none is a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.surfaces.cli.ending import Terminated, on_term
from tmuxctl.surfaces.cli.group import App
from tmuxctl.surfaces.cli.output import Options, ReaderGone, report, tell

INTERRUPTED, TERMINATED, READER_GONE = 130, 143, 141
"""128 and the signal's number, as shells have it: SIGINT, SIGTERM, SIGPIPE."""

COMPLETE = "_TMUXCTL_COMPLETE"


def run(words: Sequence[str], app: App | None = None) -> int:
    """Run one command; returns the exit status."""
    on_term(TERMINATED)
    head = words[: words.index("--")] if "--" in words else words
    options = Options(json="--json" in head, verbose="-v" in head or "--verbose" in head)
    try:
        return _run(_checked(words), app or App())
    except TmuxctlError as error:
        report(error, options)
        return error.exit
    except click.exceptions.NoArgsIsHelpError as error:
        tell(error.message)
        return 2
    except click.ClickException as error:
        found = usage(error)
        report(found, options)
        return found.exit
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        report(_Ended("interrupted", reason="interrupted"), options)
        return INTERRUPTED
    except Terminated as told:
        return told.status
    except ReaderGone:
        return READER_GONE
    except Exception as error:
        return _bug(error, options)


def _run(words: list[str], app: App) -> int:
    if COMPLETE in os.environ:
        from tmuxctl.surfaces.cli import completion

        return completion.answer(app, os.environ[COMPLETE])
    with app.make_context("tmuxctl", words) as context:
        return int(app.invoke(context) or 0)


def _checked(words: Sequence[str]) -> list[str]:
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


def usage(error: click.ClickException) -> Usage:
    """What click says of the arguments, as our error."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "tmuxctl"
    if isinstance(error, click.NoSuchOption):
        option = ascii(error.option_name)[1:-1]
        return Usage(f"{_verb(path)}no option {option}", reason="bad_option", hint=_meant(context, option, error))
    message = error.format_message().rstrip(".")
    if isinstance(error, click.BadOptionUsage) and _is_file(context, error.option_name):
        hint = f"{path} NAME {error.option_name} FILE, or - for standard output"
        return Usage(f"{_verb(path)}{error.option_name} needs a file", reason="bad_usage", hint=hint)
    return Usage(_verb(path) + message[:1].lower() + message[1:], reason="bad_usage", hint=f"{path} --help")


def _meant(context: click.Context | None, option: str, error: click.NoSuchOption) -> str:
    """What to say of an option that there is not."""
    from tmuxctl.surfaces.cli import spellings
    from tmuxctl.surfaces.cli.command import OperationCommand

    near = f"did you mean {' or '.join(error.possibilities)}? " if error.possibilities else ""
    command = context.command if context is not None else None
    if not isinstance(command, OperationCommand):
        return near + "tmuxctl --help"
    return spellings.meant(command.operation, str(command.name), option, near)


def _is_file(context: click.Context | None, option: str) -> bool:
    from tmuxctl.surfaces.cli.command import OperationCommand

    command = context.command if context is not None else None
    parameters = command.operation.parameters if isinstance(command, OperationCommand) else ()
    return any(one.flag.to_file and f"--{one.name}" == option for one in parameters)


def _verb(path: str) -> str:
    verb = path.removeprefix("tmuxctl").strip()
    return f"{verb}: " if verb else ""


class _Ended(TmuxctlError):
    """We were told to stop."""

    exit = INTERRUPTED


def _bug(error: Exception, options: Options) -> int:
    what = f"internal error: {type(error).__name__}: {error}"
    hint = "tmuxctl -v shows where; please report it"
    report(TmuxctlError(what[:500], reason="internal", hint=hint), options)
    if options.verbose or os.environ.get("TMUXCTL_LOG"):
        import traceback

        tell("".join(traceback.format_exception(error)).rstrip("\n"))
    return 1
