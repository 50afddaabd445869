"""One operation as a command: its parameters become words and options, its call gets only what was given."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from tmuxctl.errors import DecisionNeeded, Failed, Timeout, TmuxctlError, Usage
from tmuxctl.operations import Operation, Parameter, in_pieces
from tmuxctl.surfaces.cli import group
from tmuxctl.surfaces.cli.output import Options, report, write

OWN_FAILURE, NOT_FOUND = 125, 127

INPUT_LIMIT = 16 << 20
"""Bytes read from standard input; one more is told apart by the operation, which knows its own limit."""

WORDS = "words_"

OF_OTHERS = "as_elsewhere_"
"""What the names of options begin with that only other tools have."""


class OperationCommand(click.Command):
    """A command made of an operation. `connect` gives the object whose operation it is."""

    def __init__(self, operation: Operation, connect: Callable[[Options], Any]) -> None:
        self.operation = operation
        self.connect = connect
        self.positional = tuple(one for one in operation.parameters if one.positional)
        self.singles = [one for one in self.positional if not one.many]
        self.many = next((one for one in self.positional if one.many), None)
        self.tail_only = self.many is not None and not all(one.required for one in self.singles)
        """True where words that many take stand behind `--` only: a single one before them may be left out."""
        words = click.Argument([WORDS], nargs=-1, type=click.UNPROCESSED, required=False, shell_complete=_complete)
        super().__init__(operation.spoken, params=[words], context_settings=group.SETTINGS)

    def options(self) -> list[click.Option]:
        """The operation's own options, and those that only a command line has."""
        found = [_option(one) for one in self.operation.parameters if not one.positional]
        if self.operation.meta.rows:
            found.append(click.Option(["format_", "-F", "--format"], metavar="FORMAT", help=FORMAT_HELP))
        if self.operation.meta.events:
            found += [click.Option([name, flag], metavar="CMD", help=about) for name, flag, about in REACTIONS]
        return found

    def _options_of_others(self) -> list[click.Option]:
        """Options that other tools have for what is an argument here, or another option."""
        from tmuxctl.surfaces.cli import spellings

        found = []
        for number, one in enumerate(spellings.taken(self.operation)):
            of = next((each for each in self.operation.parameters if each.name == one.parameter), None)
            much = {"multiple": True, "type": click.UNPROCESSED} if one.takes_value else {"count": True}
            complete = _complete_choice(of) if of else None
            declared = [f"{OF_OTHERS}{number}", *one.flags]
            found.append(click.Option(declared, **much, hidden=True, shell_complete=complete))
        return found

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return self.params

    def get_short_help_str(self, limit: int = 0) -> str:
        from tmuxctl.surfaces.cli import help

        return help.first_line(self.operation.function)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from tmuxctl.surfaces.cli import help

        help.of_command(self, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        head, tail = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, None)
        if ctx.resilient_parsing or group.has_options(head):
            self.params += [*self.options(), *self._options_of_others()]
            self.params += [*group.global_options(hidden=True), group.help_option(self, ctx)]
        try:
            rest = super().parse_args(ctx, self._with_values(head))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # the parser does not say whose option lacks its value
            raise
        ctx.meta["tmuxctl.tail"] = tail
        return rest

    def _with_values(self, head: Sequence[str]) -> list[str]:
        """The words, and after each option whose value was left out what it is then."""
        bare = {f"--{spelling(one.name)}": one.flag for one in self.operation.parameters if one.flag.bare}
        words = []
        for word, after in zip(head, [*head[1:], ""], strict=False):
            flag = bare.get(word)
            words.append(word if flag is None or re.fullmatch(flag.value, after) else f"{word}={flag.bare}")
        return words

    def invoke(self, ctx: click.Context) -> int:
        options = group.merged(ctx.obj, ctx)
        ctx.params[WORDS], others = self._given_as_elsewhere(ctx)
        arguments = self._positional(ctx.params[WORDS], ctx.meta["tmuxctl.tail"]) | others
        files: dict[str, str] = {}
        for one in (one for one in self.operation.parameters if not one.positional):
            if group.given(ctx, one.name):
                arguments[one.name] = ctx.params[one.name]
                if one.flag.to_file:
                    files[one.name], arguments[one.name] = ctx.params[one.name], True
            if one.flag.own_input and arguments.get(one.name, "-") == "-" and (path := own_input()):
                arguments[one.name] = path
        self._read_input(arguments, ctx, options)
        self.operation.arguments(arguments, self._called)
        reactions = {name.removeprefix("on_"): ctx.params[name] for name, *_ in REACTIONS if ctx.params.get(name)}
        form = ctx.params.get("format_")
        return perform(self.operation, self.connect, arguments, options, files, form, reactions)

    def typed_words(self, ctx: click.Context) -> tuple[str, ...]:
        """The words before `--` so far, those too that an option of another tool stands for."""
        try:
            return self._given_as_elsewhere(ctx)[0]
        except Usage:
            return ()

    def _given_as_elsewhere(self, ctx: click.Context) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The words, before them what options of other tools say of the first, and the arguments that others give."""
        words: tuple[str, ...] = ctx.params.get(WORDS) or ()
        if not any(name.startswith(OF_OTHERS) for name in ctx.params):
            return words, {}
        from tmuxctl.surfaces.cli import spellings

        found: dict[str, Any] = {}
        for number, one in enumerate(spellings.taken(self.operation)):
            given = ctx.params.get(f"{OF_OTHERS}{number}")
            if not given or one.parameter is None:
                continue
            if self.positional and one.parameter == self.positional[0].name:
                words = (*spellings.targets(self.operation, given), *words)
            elif one.parameter in found or (len(given) if one.takes_value else given) > 1:
                # -77 is -7 twice
                hint = f"--{spelling(one.parameter)} takes one: {self._help()}"
                raise Usage(f"{self.name}: one {one.parameter} only", reason="bad_usage", hint=hint)
            else:
                found[one.parameter] = given[0] if one.takes_value else one.value
        return words, found

    def _called(self, one: Parameter) -> str:
        """A parameter as the help of the command calls it."""
        from tmuxctl.surfaces.cli import help

        return help.called(self.operation, one)

    def _positional(self, head: Sequence[str], tail: Sequence[str] | None) -> dict[str, Any]:
        """The words as arguments. Where a single one may be left out, those that many take stand behind `--` only."""
        words = [*head] if self.tail_only else [*head, *(tail or ())]
        rest = words[len(self.singles) :]
        if rest and (self.many is None or self.tail_only):
            raise self._too_many(words, rest)
        if self.tail_only and tail == []:
            raise Usage(f"{self.name}: nothing after --", reason="missing", hint=self._help())
        found: dict[str, Any] = {one.name: word for one, word in zip(self.singles, words, strict=False)}
        plenty = tail if self.tail_only else rest
        if self.many is not None and plenty:
            found[self.many.name] = [*plenty]
        for one in self.positional:
            if one.required and one.name not in found:
                from tmuxctl.surfaces.cli import help

                hint = f"tmuxctl {help.synopsis(self.operation)}"
                raise Usage(f"{self.name} needs {self._called(one)}", reason="missing", hint=hint)
        return found

    def _too_many(self, words: Sequence[str], rest: Sequence[str]) -> Usage:
        from tmuxctl.surfaces.cli import spellings

        given = click.get_current_context().params
        hint = spellings.too_many(self.operation, words, rest, given.get("any") or given.get("all"))
        return Usage(f"{self.name}: unexpected argument {ascii(rest[0][:40])}", reason="bad_usage", hint=hint)

    def _help(self) -> str:
        return f"tmuxctl {self.name} --help"

    def _read_input(self, arguments: dict[str, Any], ctx: click.Context, options: Options) -> None:
        """Replace `-`, where it stands before `--`, by what standard input holds."""
        for number, one in enumerate(self.positional):
            if one.kind.word == "input" and ctx.params[WORDS][number : number + 1] == ("-",):
                data = read_input(options)
                pressed = arguments.get("enter", True)
                # the newline that ends a line of input is the Enter that will be pressed
                arguments[one.name] = data.removesuffix(b"\n") if pressed else data


REACTIONS = (
    ("on_asking", "--on-asking", "run this in a shell when a session asks; TMUXCTL_EVENT holds the line of --json"),
    (
        "on_input",
        "--on-input",
        "run this in a shell when a session wants input: when it asks, or waits for a line or a key",
    ),
    ("on_prompt", "--on-prompt", "run this in a shell when a session is ready for its next command"),
    ("on_idle", "--on-idle", "run this in a shell when a session becomes idle"),
)
FORMAT_HELP = r"each session as this text: {name}, {state}, any field of `ls --json`, \t and \n"


def spelling(name: str) -> str:
    """A parameter's name as an option's: `max_bytes` is `max-bytes`, `with_` is `with`."""
    return name.rstrip("_").replace("_", "-")


def _option(one: Parameter) -> click.Option:
    spelled = spelling(one.name)
    declared = [one.name, *one.flag.names, f"--{spelled}"]
    if not one.flag.to_file and one.kind.schema.get("type") == "boolean":
        if one.default is True:
            declared[-1] = f"--{spelled}/--no-{spelled}"
        return click.Option(declared, is_flag=True, help=one.help)
    return click.Option(
        declared, multiple=one.many, type=click.UNPROCESSED, help=one.help, shell_complete=_complete_choice(one)
    )


def _complete_choice(one: Parameter) -> Callable[..., list[Any]]:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from tmuxctl.surfaces.cli import completion

        return completion.values(ctx, one, incomplete)

    return complete


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from tmuxctl.surfaces.cli import completion

    return completion.words(ctx, incomplete)


def read_input(options: Options) -> bytes:
    """Standard input, whole, as it is; Usage if there is none or nobody may be asked."""
    if sys.stdin is None:
        raise Usage("standard input is closed", reason="bad_file", hint="printf '...' | tmuxctl send NAME -")
    if not options.prompt and sys.stdin.isatty():
        raise Usage("standard input is a terminal, and --no-input forbids to ask it", reason="no_input")
    try:
        return sys.stdin.buffer.read(INPUT_LIMIT + 2)
    except OSError as error:
        raise Usage(f"standard input: {error.strerror}", reason="bad_file") from None


def own_input() -> str | None:
    """The path by which another process opens our standard input: of a pipe, or of a file of which nothing was read yet.
    None for a terminal and all else.

    What opens a pipe so reads it directly (proc(5)): it takes no more than it wants, and nothing of it is held here. What
    opens a file begins at its first byte.
    """
    import select
    import stat

    try:
        mode = os.fstat(0).st_mode
        if stat.S_ISREG(mode) and os.lseek(0, 0, os.SEEK_CUR):
            return None
    except OSError:
        return None
    if stat.S_ISFIFO(mode):
        poll = select.poll()
        poll.register(0, select.POLLIN)
        if [event for _, event in poll.poll(0)] == [select.POLLHUP]:
            # closed and empty; a shell in a sandbox cannot open our descriptors
            return os.devnull
    return f"/proc/{os.getpid()}/fd/0" if stat.S_ISFIFO(mode) or stat.S_ISREG(mode) else None


def perform(
    operation: Operation,
    connect: Callable[[Options], Any],
    arguments: dict[str, Any],
    options: Options,
    files: dict[str, str],
    form: str | None,
    reactions: dict[str, str],
) -> int:
    """Call the operation, print its result, and say the exit status."""
    from tmuxctl.results import Pieces
    from tmuxctl.surfaces.cli import progress, show

    printer = show.Printer(options, form, reactions, arguments, operation.meta)
    try:
        service = connect(options)
        try:
            arguments = progress.watched(operation, arguments, options)
            pieces = in_pieces("text" if options.json else "data")
            with pieces, progress.waiting(operation, arguments, options, service):
                result = service.call(operation.name, arguments)
            if isinstance(result, Pieces):
                return printer.show_pieces(result)
            if hasattr(result, "__next__"):
                for one in result:
                    printer.show(one, last=False)
                printer.end()
                return 0
            return printer.show(to_files(result, files, options))
        finally:
            service.close()
    except TmuxctlError as error:
        if isinstance(error, (DecisionNeeded, Timeout)):
            printer.seen(error.details)
        if not operation.meta.passes_status or isinstance(error, (Usage, Timeout)):
            raise
        report(error, options)
        return NOT_FOUND if error.reason in ("command_not_found", "not_executable") else OWN_FAILURE


def to_files(result: Any, files: dict[str, str], options: Options) -> Any:
    """Write these fields of a result to their files (`-` is standard output); the result without what was written."""
    from tmuxctl.surfaces.cli.output import note

    for field, path in files.items():
        text = getattr(result, field) or ""
        if path != "-":
            try:
                with open(path, "w", encoding="utf-8", errors="replace") as file:
                    file.write(text)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error)
                raise Failed(
                    f"{ascii(path[:200])}: {why}", reason="bad_file", hint="name a file you may write"
                ) from None
            note(f"wrote {ascii(path)[1:-1]}", options)
        elif not options.json:
            write(text.rstrip("\n") + "\n")
    if not files:
        return result
    from dataclasses import replace

    written = {field: None for field, path in files.items() if path != "-"}
    return replace(result, **written) if options.json else None
