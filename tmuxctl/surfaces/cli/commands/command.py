"""One operation as a command: its parameters become words and options, its call gets only what was given."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from tmuxctl.errors import DecisionNeeded, Failed, Timeout, TmuxctlError, Usage
from tmuxctl.operations import Operation, Parameter, in_pieces, read_result
from tmuxctl.surfaces.cli.commands.options import (
    NOTIFY,
    REACTIONS,
    SETTINGS,
    global_options,
    has_options,
    help_option,
    is_given,
    make_option,
    merge_options,
    option_name,
    own_options,
)
from tmuxctl.surfaces.cli.printing import progress
from tmuxctl.surfaces.cli.printing.output import Options, note, report, write
from tmuxctl.transport import spawn

if TYPE_CHECKING:
    from tmuxctl.surfaces.cli.printing.show import Printer

INPUT_LIMIT = 16 << 20
"""Bytes read from standard input; one more is told apart by the operation, which knows its own limit."""

_OBSERVING = (
    "tmuxctl.reading.evidence.tty_waits",
    "tmuxctl.reading.state.judging",
    "tmuxctl.control.observation.observing",
    "tmuxctl.transport.probe",
    "tmuxctl.transport.procfs",
)
_PRINTING = "tmuxctl.surfaces.cli.printing.show"
AHEAD = {
    "ls": (*_OBSERVING, _PRINTING, "tmuxctl.surfaces.cli.printing.table"),
    "screen": (*_OBSERVING, _PRINTING),
    "send": ("tmuxctl.transport.probe", "tmuxctl.transport.procfs", "tmuxctl.control.input.passwords", _PRINTING),
    "show": (*_OBSERVING[3:], _PRINTING, "tmuxctl.surfaces.cli.printing.table"),
    "wait": (_PRINTING,),
}
"""Modules that a quick command needs once tmux has answered: they are loaded while it waits for that."""

WORDS = "words_"

FOREIGN_OPTION = "as_elsewhere_"
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
        words = click.Argument(
            [WORDS], nargs=-1, type=click.UNPROCESSED, required=False, shell_complete=self._complete_word
        )
        super().__init__(operation.spoken, params=[words], context_settings=SETTINGS)

    def options(self) -> list[click.Option]:
        """The operation's own options, and those that only a command line has."""
        of_operation = (one for one in self.operation.parameters if not one.positional)
        return [*(make_option(one, self._complete_choice(one)) for one in of_operation), *own_options(self.operation)]

    def _foreign_options(self) -> list[click.Option]:
        """Options that other tools have for what is an argument here, or another option."""
        from tmuxctl.surfaces.cli.words import spellings

        found = []
        for number, one in enumerate(spellings.list_foreign_options(self.operation)):
            of = next((each for each in self.operation.parameters if each.name == one.parameter), None)
            much = {"multiple": True, "type": click.UNPROCESSED} if one.takes_value else {"count": True}
            complete = self._complete_choice(of) if of else None
            declared = [f"{FOREIGN_OPTION}{number}", *one.flags]
            found.append(click.Option(declared, **much, hidden=True, shell_complete=complete))
        return found

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return self.params

    def get_short_help_str(self, limit: int = 0) -> str:
        from tmuxctl.surfaces.cli.commands import help

        return help.first_line(self.operation.function)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from tmuxctl.surfaces.cli.commands import help

        help.write_command_help(self.operation, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        head, tail = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, None)
        if ctx.resilient_parsing or has_options(head):
            self.params += [*self.options(), *self._foreign_options()]
            self.params += [*global_options(hidden=True), help_option()]
        try:
            rest = super().parse_args(ctx, self._fill_bare_options(head))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # the parser does not say whose option lacks its value
            raise
        ctx.meta["tmuxctl.tail"] = tail
        return rest

    def _fill_bare_options(self, head: Sequence[str]) -> list[str]:
        """The words, and after each option whose value was left out what it is then."""
        bare = {f"--{option_name(one.name)}": one.flag for one in self.operation.parameters if one.flag.bare}
        if self.operation.meta.events:
            bare["--notify"] = NOTIFY
        words = []
        for word, after in zip(head, [*head[1:], ""], strict=False):
            flag = bare.get(word)
            words.append(word if flag is None or re.fullmatch(flag.value, after) else f"{word}={flag.bare}")
        return words

    def invoke(self, ctx: click.Context) -> int:
        options = merge_options(ctx.obj, ctx)
        ctx.params[WORDS], others = self._read_foreign_options(ctx)
        arguments = others | self._assign_words(ctx.params[WORDS], ctx.meta["tmuxctl.tail"])
        files: dict[str, str] = {}
        several = self.operation.meta.several and bool(
            re.search("^@|^(?!tmux[:@]).*,", arguments.get(self.positional[0].name, ""))
        )
        for one in (one for one in self.operation.parameters if not one.positional):
            if is_given(ctx, one.name):
                arguments[one.name] = ctx.params[one.name]
                if one.flag.to_file:
                    files[one.name], arguments[one.name] = ctx.params[one.name], True
            if several and one.flag.own_input and arguments.get(one.name) == "-":
                hint = f"--{option_name(one.name)} FILE is read for each of them"
                raise Usage("standard input can be read for one session only", reason="bad_usage", hint=hint)
            if (
                not several
                and one.flag.own_input
                and arguments.get(one.name, "-") == "-"
                and (path := find_own_input())
            ):
                arguments[one.name] = path
        self._read_input(arguments, ctx, options)
        self.operation.arguments(arguments, self._name_parameter)
        reactions = {name.removeprefix("on_"): ctx.params[name] for name, *_ in REACTIONS if ctx.params.get(name)}
        reactions |= {"notify": ctx.params["notify"]} if ctx.params.get("notify") else {}
        form = ctx.params.get("format_")
        if several:
            from tmuxctl.surfaces.cli.commands.several import run_each

            return run_each(self.operation, self.connect, arguments, options, ctx.params.get("limit"))
        return run_operation(self.operation, self.connect, arguments, options, files, form, reactions)

    def typed_words(self, ctx: click.Context) -> tuple[str, ...]:
        """The words before `--` so far, those too that an option of another tool stands for."""
        try:
            return self._read_foreign_options(ctx)[0]
        except Usage:
            return ()

    def _complete_choice(self, one: Parameter) -> Callable[..., list[Any]]:
        def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
            from tmuxctl.surfaces.cli.commands import completion

            return completion.complete_value(ctx, one, self.typed_words(ctx), incomplete)

        return complete

    def _complete_word(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """What the next word may be: it is the value of the first parameter that has none yet."""
        from tmuxctl.surfaces.cli.commands import completion

        before, tail = self.typed_words(ctx), ctx.meta.get("tmuxctl.tail")
        if tail is not None and self.tail_only:
            return completion.complete_program(len(tail), incomplete)
        number = len(before) + len(tail or ())
        if number < len(self.positional):
            one = self.positional[number]
        elif self.positional and self.positional[-1].many:
            one = self.positional[-1]
        else:
            return []
        if one.many and one.kind.word == "text":
            return completion.complete_program(number - len(self.positional) + 1, incomplete)
        return completion.complete_value(ctx, one, before, incomplete)

    def _read_foreign_options(self, ctx: click.Context) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The words, before them what options of other tools say of the first, and the arguments that others give."""
        words: tuple[str, ...] = ctx.params.get(WORDS) or ()
        if not any(name.startswith(FOREIGN_OPTION) for name in ctx.params):
            return words, {}
        from tmuxctl.surfaces.cli.words import spellings

        found: dict[str, Any] = {}
        for number, one in enumerate(spellings.list_foreign_options(self.operation)):
            given = ctx.params.get(f"{FOREIGN_OPTION}{number}")
            if not given or one.parameter is None:
                continue
            if self.positional and one.parameter == self.positional[0].name:
                words = (*spellings.parse_targets(self.operation, given), *words)
            elif one.parameter in found or (len(given) if one.takes_value else given) > 1:
                # -77 is -7 twice
                hint = f"--{option_name(one.parameter)} takes one: {self._help_hint()}"
                raise Usage(f"{self.name}: one {one.parameter} only", reason="bad_usage", hint=hint)
            else:
                found[one.parameter] = spellings.parse_value(one, given[0]) if one.takes_value else one.value
        return words, found

    def _name_parameter(self, one: Parameter) -> str:
        """A parameter as the help of the command calls it."""
        from tmuxctl.surfaces.cli.commands import help

        return help.name_parameter(self.operation, one)

    def _assign_words(self, head: Sequence[str], tail: Sequence[str] | None) -> dict[str, Any]:
        """The words as arguments. Where a single one may be left out, those that many take stand behind `--` only."""
        words = [*head] if self.tail_only else [*head, *(tail or ())]
        rest = words[len(self.singles) :]
        if rest and (self.many is None or self.tail_only):
            raise self._extra_word_error(words, rest)
        if self.tail_only and tail == []:
            raise Usage(f"{self.name}: no command after --", reason="missing", hint=self._help_hint())
        found: dict[str, Any] = {one.name: word for one, word in zip(self.singles, words, strict=False)}
        plenty = tail if self.tail_only else rest
        if self.many is not None and plenty:
            found[self.many.name] = [*plenty]
        for one in self.positional:
            if one.required and one.name not in found:
                from tmuxctl.surfaces.cli.commands import help

                hint = f"tmuxctl {help.format_synopsis(self.operation)}"
                raise Usage(f"{self.name} needs {self._name_parameter(one)}", reason="missing", hint=hint)
        return found

    def _extra_word_error(self, words: Sequence[str], rest: Sequence[str]) -> Usage:
        from tmuxctl.surfaces.cli.words import spellings

        given = click.get_current_context().params
        hint = spellings.suggest_for_extra_words(self.operation, words, rest, given.get("any") or given.get("all"))
        return Usage(f"{self.name}: unexpected argument {ascii(rest[0][:40])}", reason="bad_usage", hint=hint)

    def _help_hint(self) -> str:
        return f"tmuxctl {self.name} --help"

    def _read_input(self, arguments: dict[str, Any], ctx: click.Context, options: Options) -> None:
        """Replace `-`, where it stands before `--`, by what standard input holds."""
        for number, one in enumerate(self.positional):
            if one.kind.from_input and ctx.params[WORDS][number : number + 1] == ("-",):
                data = read_input(options)
                pressed = arguments.get("enter", True)
                # the newline that ends a line of input is the Enter that will be pressed
                arguments[one.name] = data.removesuffix(b"\n") if pressed else data


def read_input(options: Options) -> bytes:
    """Standard input, whole, as it is; Usage if there is none or nobody may be asked."""
    if sys.stdin is None:
        raise Usage("standard input is closed", reason="bad_file", hint="printf '...' | tmuxctl send NAME -")
    if not options.prompt and sys.stdin.isatty():
        raise Usage("standard input is a terminal, and --no-input forbids reading it", reason="no_input")
    try:
        return sys.stdin.buffer.read(INPUT_LIMIT + 2)
    except OSError as error:
        raise Usage(f"standard input: {error.strerror}", reason="bad_file") from None


def find_own_input() -> str | None:
    """The path by which another process opens our standard input: of a pipe, or of a file of which nothing was read yet.
    None for a terminal and all else.

    What opens a pipe so reads it directly (proc(5)): it takes no more than it wants, and nothing of it is held here. What
    opens a file begins at its first byte.
    """
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


def run_operation(
    operation: Operation,
    connect: Callable[[Options], Any],
    arguments: dict[str, Any],
    options: Options,
    files: dict[str, str],
    form: str | None,
    reactions: dict[str, str],
) -> int:
    """Call the operation, print its result, and say the exit status."""

    @cache
    def printer() -> Printer:
        # loaded while tmux answers
        from tmuxctl.surfaces.cli.printing.show import Printer

        return Printer(options, form, reactions, arguments, operation.meta)

    if form is not None or "notify" in reactions:
        # refused before anything is done
        printer()
    try:
        service = connect(options)
        spawn.ahead[:] = AHEAD.get(operation.name, ())
        try:
            arguments = progress.watched(operation, arguments, options)
            result = _call(service, operation, arguments, options, printer)
            return _print(printer(), result, files, options)
        finally:
            service.close()
    except TmuxctlError as error:
        if isinstance(error, (DecisionNeeded, Timeout)):
            printer().seen(error.details)
        if (status := operation.meta.error_status(error)) == error.exit:
            raise
        report(error, options)
        return status


def _call(
    service: Any, operation: Operation, arguments: dict[str, Any], options: Options, printer: Callable[[], Printer]
) -> Any:
    """Call the operation; what it had done is printed where it was interrupted."""
    pieces = in_pieces("text" if options.json else "data")
    try:
        with pieces, progress.waiting(operation, arguments, options, service):
            return service.call(operation.name, arguments)
    except BaseException as error:
        if (done := read_result(error)) is not None:
            printer().show(done)
        raise


def _print(printer: Printer, result: Any, files: dict[str, str], options: Options) -> int:
    """Print a result, one in pieces, or several as they come; says the exit status."""
    from tmuxctl.results import Pieces

    if isinstance(result, Pieces):
        return printer.show_pieces(result)
    if hasattr(result, "__next__"):
        for one in result:
            printer.show(one, last=False)
        printer.end()
        return 0
    return printer.show(write_to_files(result, files, options))


def write_to_files(result: Any, files: dict[str, str], options: Options) -> Any:
    """Write these fields of a result to their files (`-` is standard output); the result without what was written."""
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
