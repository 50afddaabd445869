"""A question in the middle of a turn: whether a recipe tells it, and which answers it names."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import truths
from place import Place

from compared.programs import GDB_COMMAND, Program, installed, prepare
from compared.recipes import Recipe, Said, recipes
from compared.table import ASKED, Line

LIMIT = 1.5
"""Seconds a recipe waits for the end of a turn that will have none."""

OWN = (r"\? ?$", r"\[y/N\] ?$", r"\(y or n\) ?$", r"[Pp]assword.*: ?$")
"""What somebody who knows these four questions beforehand would look for."""

LINES = {
    "`rm -i precious`": ("bash", "rm -i precious"),
    "`read -p 'Overwrite it? [y/N] '`": ("bash", "read -p 'Overwrite it? [y/N] ' reply"),
    "gdb: `quit` while a program runs": ("gdb", "quit"),
    "psql: `\\password`": ("psql", r"\password"),
}


def measure(place: Place) -> list[Line]:
    prepare(place.folder / "home")
    there = installed()
    if "gdb" in there:
        there["gdb"] = there["gdb"]._replace(command=(*GDB_COMMAND, "-ex", "starti", "--args", "sleep", "60"))
    with ExitStack() as open_:
        if "psql" in there:
            open_.enter_context(truths.cluster(place.folder))
        control = open_.enter_context(place.control())
        pool = open_.enter_context(ThreadPoolExecutor())
        played = {way: pool.submit(_play, place, there, way, make) for way, make in recipes(control).items()}
        cells = {way: one.result() for way, one in played.items()}
    return [
        Line(ASKED, f"a question in the middle: {what}", {way: found[what] for way, found in cells.items()})
        for what, (name, _) in LINES.items()
        if name in there
    ]


def _play(place: Place, there: dict[str, Program], way: str, make: Callable[[], Recipe]) -> dict[str, str]:
    """What a recipe makes of each question, in a program of its own each time; then with the expressions of its user."""
    cells = {}
    for number, (what, (name, line)) in enumerate(LINES.items()):
        if name not in there:
            continue
        told = []
        for own in ((), OWN):
            folder = place.folder / "work" / f"{''.join(filter(str.isalnum, way))}-{number}-{len(own)}"
            folder.mkdir()
            Path(folder, "precious").touch()
            recipe = make()
            recipe.start(folder.name, there[name], folder)
            told.append(recipe.ask(line, LIMIT, own))
        cells[what] = _cell(*told)
    return cells


def _cell(plain: Said, own: Said) -> str:
    if plain.question:
        return plain.question
    return ("taken for the end" if plain.ended else "waits on") + ("[^own]" if own.question else "")
