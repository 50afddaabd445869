"""Fifty inputs to each program by each recipe: whether the end was right, how late it was told, and the answer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import truths
from place import Place, until

from compared import detail
from compared.programs import END, KINDS, Input, Program, installed, prepare
from compared.recipes import Recipe, recipes
from compared.table import ASKED, Line

LIMIT = 6.0
"""Seconds after which a turn counts as missed; the longest takes two."""

REST = 0.05
"""Seconds between the end of a turn and the next: every program is at its prompt then."""


class Turn(NamedTuple):
    """How one turn went. `late` is how many seconds after the true end it was told, None if it was wrong."""

    recipe: str
    program: str
    kind: str
    early: bool
    late: float | None
    exact: bool


def measure(place: Place) -> list[Line]:
    prepare(place.folder / "home")
    with ExitStack() as open_:
        there = installed()
        if "psql" in there:
            open_.enter_context(truths.cluster(place.folder))
        control = open_.enter_context(place.control())
        pool = open_.enter_context(ThreadPoolExecutor(len(there)))
        ways = recipes(control)
        played = [pool.submit(_play, place, ways, name, program) for name, program in there.items()]
        turns = [turn for one in played for turn in one.result()]
    return [*_lines(turns, ways), *_by_program(turns, ways), *_by_kind(turns, ways)]


def _play(place: Place, ways: dict[str, Callable[[], Recipe]], name: str, program: Program) -> list[Turn]:
    """All inputs of a program, each to every recipe in turn, another one first each time."""
    true, asked, folders = program.truths(), {}, {}
    for number, (way, make) in enumerate(ways.items()):
        asked[way], folders[way] = make(), place.folder / "work" / f"{name}-{number}"
        folders[way].mkdir()
        asked[way].start(folders[way].name, program, folders[way])
        if program.first:
            asked[way].ask(program.first, LIMIT)
    turns, order = [], list(ways)
    for at, one in enumerate(program.inputs):
        for way in order[at % len(order) :] + order[: at % len(order)]:
            turns.append(_turn(asked[way], way, name, program, one, true[at], folders[way] / END))
        if at % 10 == 9:
            print(f"   {name}: {at + 1} of {len(program.inputs)}", flush=True)
    return turns


def _turn(asked: Recipe, way: str, name: str, program: Program, one: Input, true: str, end: Path) -> Turn:
    time.sleep(REST)
    end.unlink(missing_ok=True)
    said = asked.ask(program.line(one.text), LIMIT)
    told, early = time.time(), said.ended and not end.exists()
    right = until(end.exists, LIMIT) and said.ended and not early
    exact = right and said.answer == true
    if not exact:
        time.sleep(REST)
        asked.recover()
        what = "too early" if early else "missed" if not said.ended else "another answer"
        detail(f"{way} | {name} | {one.text} | {what} | {said.answer[-99:]!r} | {true[-99:]!r}")
    return Turn(way, name, one.kind, early, told - end.stat().st_mtime if right else None, exact)


def _lines(turns: Sequence[Turn], ways: Iterable[str]) -> list[Line]:
    total = len(turns) // len({turn.recipe for turn in turns})
    said = {
        f"ended right, of {total}": lambda some: _percent(turn.late is not None for turn in some),
        "– reported too early": lambda some: _percent(turn.early for turn in some),
        f"– not reported within {LIMIT:g} s": lambda some: _percent(
            turn.late is None and not turn.early for turn in some
        ),
        f"answer exact, of {total}": lambda some: _percent(turn.exact for turn in some),
        "reported after the true end, median": _late,
    }
    return [_line(what, turns, ways, say) for what, say in said.items()]


def _by_program(turns: Sequence[Turn], ways: Iterable[str]) -> list[Line]:
    names = dict.fromkeys(turn.program for turn in turns)
    return [_line(f"– {name}", [turn for turn in turns if turn.program == name], ways, _late) for name in names]


def _by_kind(turns: Sequence[Turn], ways: Iterable[str]) -> list[Line]:
    """The end and the answer by the kind of input."""

    def both(some: Sequence[Turn]) -> str:
        return f"{_percent(turn.late is not None for turn in some)}, {_percent(turn.exact for turn in some)}"

    found = {kind: [turn for turn in turns if turn.kind == kind] for kind in KINDS}
    each = len({turn.recipe for turn in turns})
    return [
        _line(f"end right, answer exact: {kind} ({len(some) // each})", some, ways, both)
        for kind, some in found.items()
    ]


def _line(what: str, turns: Sequence[Turn], ways: Iterable[str], say: Callable[[Sequence[Turn]], str]) -> Line:
    return Line(ASKED, what, {way: say([turn for turn in turns if turn.recipe == way]) for way in ways})


def _percent(found: Iterable[bool]) -> str:
    values = list(found)
    share = 100 * sum(values) / len(values)
    return f"{share:.0f} %" if share in (0, 100) or 0.5 <= share < 99.5 else f"{share:.1f} %"


def _late(turns: Sequence[Turn]) -> str:
    found = [turn.late for turn in turns if turn.late is not None]
    return f"{statistics.median(found) * 1000:.0f} ms" if found else "–"
