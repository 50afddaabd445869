"""The manual pages, from what docs/reference.md is made of: `python -m tmuxctl.surfaces.cli.manual.man FOLDER` writes them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tmuxctl import __version__
from tmuxctl.surfaces.cli.app import App
from tmuxctl.surfaces.cli.commands import exits, help
from tmuxctl.surfaces.cli.commands.command import OperationCommand
from tmuxctl.surfaces.cli.manual import reference, roff

RELEASE = f"tmuxctl {__version__}"
MANUAL = "tmuxctl manual"
ABOUT = "drive any interactive terminal program; tmux keeps it alive"

DESCRIPTION = (
    "A session is one program on a terminal of its own. `tmuxctl new` starts it, and it lives until the program ends or is "
    "killed, even if the command, script or login that started it is gone. It is a tmux session of the same name on "
    "tmuxctl's own server, so `tmux -L tmuxctl attach` works too.",
    "Commands type into a session, wait until its program takes the next input, read what it printed, and answer its "
    "questions. Each command has a page of its own; `tmuxctl help COMMAND` is the short form.",
)


def main() -> int:
    """Write the pages into the folder that is named; the exit status."""
    if len(sys.argv) != 2:
        print("give the folder to write the pages to", file=sys.stderr)
        return 2
    write(Path(sys.argv[1]))
    return 0


def write(folder: Path) -> None:
    """Write every page into this folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / name).write_text(text, encoding="ascii")


def pages() -> Iterator[tuple[str, str]]:
    """Every page: the name of its file, and its text."""
    groups = list(reference.commands(App()))
    yield "tmuxctl.1", _text(_of_app(groups))
    for _, commands in groups:
        for command in commands:
            yield f"{title(command)}.1", _text(_of_command(command))


def title(command: OperationCommand) -> str:
    """What its page is called: `tmuxctl-profile-ls`."""
    return f"tmuxctl-{command.operation.spoken}".replace(" ", "-")


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _of_app(groups: list[tuple[str, list[OperationCommand]]]) -> Iterator[str]:
    yield from _head("tmuxctl", ABOUT)
    yield roff.section("SYNOPSIS")
    yield from _synopsis("tmuxctl", "[OPTIONS] COMMAND [ARGUMENTS]")
    yield roff.section("DESCRIPTION")
    for text in DESCRIPTION:
        yield from roff.paragraph(text)
    yield roff.section("COMMANDS")
    for group, commands in groups:
        yield roff.subsection(group)
        for command in commands:
            yield from roff.tagged(f"{roff.bold(title(command))}(1)", _first_line(command))
    yield roff.section("OPTIONS")
    yield from _table(help.list_global_options())
    yield roff.section("ARGUMENTS AND RESULTS")
    for rule in reference.RULES:
        yield from roff.item(rule)
    yield roff.section("EXIT STATUS")
    for status, code, meaning in exits.EXITS:
        yield from roff.tagged(roff.bold(status), f"{code}: {meaning}" if code else meaning)
    yield from roff.paragraph(exits.PASSED)
    yield roff.section("ENVIRONMENT")
    for name, about in reference.ENVIRONMENT:
        yield from roff.tagged(roff.bold(name), about)
    yield roff.section("FILES")
    for name, about in reference.FILES:
        yield from roff.tagged(roff.italic(name), about)
    yield roff.section("EXAMPLES")
    yield from roff.literal(help.format_example(one) for one in help.FIRST)
    yield from _see("tmux")


def _of_command(command: OperationCommand) -> Iterator[str]:
    operation = command.operation
    yield from _head(title(command), _first_line(command))
    yield roff.section("SYNOPSIS")
    words = help.format_synopsis(operation).removeprefix(operation.spoken).strip()
    yield from _synopsis(f"tmuxctl {operation.spoken}", words)
    yield roff.section("DESCRIPTION")
    for text in operation.help.split("\n\n"):
        yield from roff.paragraph(text)
    if arguments := [(help.format_metavar(operation, one), one.help) for one in operation.parameters if one.positional]:
        yield roff.section("ARGUMENTS")
        for name, about in arguments:
            yield from roff.tagged(roff.italic(name), about)
    yield roff.section("OPTIONS")
    yield from _table(help.list_options(operation))
    yield from roff.paragraph("The options that every command takes are listed in `tmuxctl`(1).")
    if results := list(reference.results_of(operation)):
        yield roff.section("RESULT")
        for _, names, about in results:
            yield from roff.paragraph(
                f"{about} With `--json` an object of " + ", ".join(f"`{one}`" for one in names) + "."
            )
    if operation.meta.examples:
        yield roff.section("EXAMPLES")
        yield from roff.literal(help.format_example(one) for one in operation.meta.examples)
    yield roff.section("EXIT STATUS")
    own = exits.list_statuses(operation)
    for status, meaning in own:
        yield from roff.tagged(roff.bold(status), meaning)
    yield from roff.paragraph(f"{'' if own else '0 on success; '}the others are listed in `tmuxctl`(1).".capitalize())
    yield from _see("tmuxctl")


def _head(name: str, about: str) -> Iterator[str]:
    yield from roff.head(name.upper(), 1, RELEASE, MANUAL)
    yield roff.section("NAME")
    # what apropos(1) reads: one line, a bare minus between
    yield rf"{roff.escape(name)} \- {roff.escape(about)}"


def _synopsis(name: str, words: str) -> Iterator[str]:
    yield f"{roff.bold(name)} {roff.escape(words)}"


def _first_line(command: OperationCommand) -> str:
    first = command.operation.help.split("\n", 1)[0].rstrip(".")
    return first[:1].lower() + first[1:]


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for spelled, about in rows:
        yield from roff.tagged(roff.option(spelled), about)


def _see(name: str) -> Iterator[str]:
    yield roff.section("SEE ALSO")
    yield f"{roff.bold(name)}(1)"


if __name__ == "__main__":
    sys.exit(main())
