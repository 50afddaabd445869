"""Whether answers are byte for byte what programs printed: scripted exchanges with real programs in real sessions.

    python bench/answers.py [--only NAME,NAME] [--size 80x24] [--turn typed|asked] [--record FOLDER]

Prints a table, and each answer that differs beside the truth, which is found without any terminal (truths.py). With
--record the exchanges are written down as tests/reading/answers/ keeps them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import exchanges
import truths
from exchanges import Exchange
from place import Place

from tmuxctl.control import Control
from tmuxctl.control.sessions import finding
from tmuxctl.reading.answers.printed_answer import TypedInput, cut_answer
from tmuxctl.terminal.input.paste import LastInput

SIZES = ("80x24", "120x40")
FIRST = 80
QUIET = 0.25
"""Seconds of silence after which a turn is taken for ended, here where no program is silent for longer."""


class Program(NamedTuple):
    """How a program is started, whether its shell marks are on, what is said to it, and who knows the truth."""

    command: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    truth: Callable[[tuple[Exchange, ...]], list[str]]
    marks: bool = False


class Turn(NamedTuple):
    """One exchange as it went: what `answer` is given, and what came out."""

    exchange: Exchange
    data: bytes
    given: TypedInput
    prompt_before: str
    token: str | None
    text: str


TakeTurn = Callable[[Control, str, Exchange], str | None]

PROGRAMS = {
    "python": Program(truths.PYTHON, exchanges.PYTHON, truths.python),
    "sqlite3": Program(("sqlite3",), exchanges.SQLITE, truths.sqlite),
    "psql": Program(("psql", "-X"), exchanges.PSQL, truths.psql),
    "gdb": Program(("gdb", "-q", "-nx"), exchanges.GDB, truths.gdb),
    "node": Program(("node",), exchanges.NODE, truths.node),
    "bash": Program(("bash",), exchanges.SHELL, truths.shell("bash"), marks=True),
    "bash-unmarked": Program(("bash", "--norc"), exchanges.SHELL, truths.shell("bash")),
    "zsh": Program(("zsh",), exchanges.SHELL, truths.shell("bash"), marks=True),
    "zsh-unmarked": Program(("zsh", "-f"), exchanges.SHELL, truths.shell("bash")),
    "fish": Program(("fish",), exchanges.FISH, truths.shell("fish"), marks=True),
    "dash": Program(("dash",), exchanges.SHELL, truths.shell("dash")),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--size", action="append")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--turn", choices=("typed", "asked"), default="typed", help="answer alone, or all of ask")
    options = parser.parse_args()
    turn = {"typed": typed, "asked": asked}[options.turn]
    wrong = 0
    rows = ["| program | size | exact | median | longest |", "|---|---|---|---|---|"]
    with Place() as place, ExitStack() as open_:
        Path(place.folder, "home", ".zshrc").touch()
        if "psql" in options.only.split(","):
            open_.enter_context(truths.cluster(place.folder))
        control = open_.enter_context(place.control())
        for name in options.only.split(","):
            truth = PROGRAMS[name].truth(PROGRAMS[name].exchanges)
            for size in options.size or SIZES:
                turns, seconds = played(control, name, size, turn)
                off = [at for at, turn in enumerate(turns) if turn.text != truth[at]]
                wrong += len(off)
                for at in off:
                    show(name, size, turns[at], truth[at])
                middle, longest = sorted(seconds)[len(seconds) // 2], max(seconds)
                exact = f"{len(turns) - len(off)} of {len(turns)}"
                rows.append(f"| {name} | {size} | {exact} | {middle * 1000:.2f} ms | {longest * 1000:.1f} ms |")
                print(rows[-1], flush=True)
                if options.record:
                    record(options.record, f"{name}-{size.partition('x')[0]}", turns, truth)
    print("\n" + "\n".join(rows))
    return 1 if wrong else 0


def played(control: Control, name: str, size: str, turn: TakeTurn) -> tuple[list[Turn], list[float]]:
    """All exchanges with a program in one session, and how long each answer took to be found."""
    program, session = PROGRAMS[name], f"{name}-{size}"
    control.new(session, program.command, size=size, shell_marks=program.marks)
    control.wait(session, settle=1.0, timeout=20)
    turns, seconds = [], []
    for one in program.exchanges:
        done, took = ask(control, session, one, turn)
        turns.append(done)
        seconds.append(took)
    control.kill((session,))
    return turns, seconds


def ask(control: Control, session: str, one: Exchange, turn: TakeTurn) -> tuple[Turn, float]:
    """One exchange, and how many seconds the answer took to be found in what was printed."""
    before = control.screen(session, trim=False)
    left = before.text.split("\n")[before.cursor.y][: before.cursor.x]
    told = turn(control, session, one)
    pane, kept = finding.find_with_input(control.machine, session)
    last = LastInput.parse(kept)
    assert last is not None
    data = finding.open_journal(control.machine, pane).read(last.offset).data
    given = TypedInput(one.typed.encode(), last.x, last.y, last.cols, last.rows, last.echo)
    token = pane.spec.get("marks") or None
    began = time.perf_counter()
    found = cut_answer(data, given, prompt_before=left, token=token)
    seconds = time.perf_counter() - began
    return Turn(one, data, given, left, token, found.text if told is None else told), seconds


def asked(control: Control, session: str, one: Exchange) -> str | None:
    """The turn as users have it."""
    return control.ask(session, one.typed.encode(), timeout=30.0).answer


def typed(control: Control, session: str, one: Exchange) -> str | None:
    """The turn as far as `answer` needs it: typed, and waited for by silence."""
    control.send(session, one.typed.encode(), multiline=True)
    control.wait(session, settle=QUIET + 0.4 * ("sleep" in one.typed), timeout=20)
    return None


def show(name: str, size: str, turn: Turn, truth: str) -> None:
    print(f"-- {name} {size} {turn.exchange.typed[:70]!r} before {turn.prompt_before!r}")
    print(f"   answer {turn.text[:300]!r}\n   truth  {truth[:300]!r}")
    print(f"   data   {turn.data[:400]!r} ... {turn.data[-200:]!r}")


def record(folder: Path, name: str, turns: list[Turn], truth: list[str]) -> None:
    """One JSON object a line; the bytes as the characters of the same numbers (Latin-1). Of other sizes than the first
    only what depends on the size."""
    folder.mkdir(parents=True, exist_ok=True)
    with Path(folder, f"{name}.jsonl").open("w") as file:
        for turn, true in zip(turns, truth, strict=True):
            if turn.given.cols != FIRST and len(turn.exchange.typed) < 60 and "\n" not in turn.exchange.typed:
                continue
            given = turn.given._asdict() | {"typed": turn.exchange.typed}
            about = {"given": given, "prompt_before": turn.prompt_before, "token": turn.token}
            line = {**about, "data": turn.data.decode("latin-1"), "truth": true}
            file.write(json.dumps(line, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
