"""Keeps what was seen of a turn: the looks, with what truly was, and the drawn rows, with the answer the model gave.

`tests/reading/test_agent_replays.py` judges them again, on any machine, without the programs.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tmuxctl.control import Control
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.sessions import finding
from tmuxctl.evidence import Look
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.panes import captures
from tmuxctl.terminal.tmux import screen as screens
from tools.states.recording import Recording, Window, from_lines, thinned, to_lines
from tools.states.scenarios import Expect

from .turn import Turn

STEP = 0.12
"""Seconds between two looks."""

BEGUN = 0.5
"""Seconds after the model was asked in which a program may not yet show that it works."""

ROWS_ABOVE = 40
"""Rows that are kept above the one on which the prompt was typed."""


class Told(NamedTuple):
    """One recorded turn. `rows` are what the terminal held when it was over, without blanks at their ends; `anchor` is the
    row on which the prompt was typed; `wanted` the model's answer, None where there is none."""

    program: str
    behaviour: str
    prompt: str
    wanted: str | None
    rows: tuple[str, ...]
    anchor: int | None
    seen: Recording


class Recorder:
    """Looks at a session while a turn is played, on a connection of its own."""

    def __init__(self, session: str) -> None:
        self.control = Control()
        self.observer = Observer(self.control.machine, finding.find_session(self.control.machine, session))
        self.clock = self.control.machine.transport.clock() - time.time()
        self.history = self.observer.pane.history
        self.looks: list[Look] = []
        self.began = self.control.machine.transport.clock()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.ended.wait(STEP):
            self.looks.append(self.observer.observe())

    def stop(self) -> None:
        self.ended.set()
        self.thread.join()

    def close(self) -> None:
        self.stop()
        self.control.close()

    def told(self, turn: Turn, question: tuple[float, float] | None) -> Told:
        """The turn as it is kept; `question` is from when to when its question stood."""
        now = captures.capture_session(self.control.machine.io, self.observer.pane.name, scrollback=0)
        back = screens.plain_text(now.scrollback).split("\n") if now.scrollback else []
        rows = [row.rstrip() for row in (*back, *screens.plain_text(now.rows).split("\n"))]
        _, remembered = finding.find_with_input(self.control.machine, self.observer.pane.name)
        given = LastInput.parse(remembered)
        anchor = None
        if given is not None and given.typed and turn.shape == "answer":
            anchor = len(back) - (now.pane.history - self.history) + given.y
        first = max(0, (len(back) if anchor is None else anchor) - ROWS_ABOVE)
        return Told(
            program=turn.program,
            behaviour=turn.behaviour,
            prompt=turn.prompt,
            wanted=turn.wanted if turn.shape == "answer" else None,
            rows=tuple(rows[first:]),
            anchor=None if anchor is None else anchor - first,
            seen=self._recording(turn, question),
        )

    def _recording(self, turn: Turn, question: tuple[float, float] | None) -> Recording:
        start = self.looks[0].at
        about = {name: value for name, value in self.observer.evidence._asdict().items() if name != "looks"}

        def moment(wall: float) -> float:
            return wall + self.clock - start

        windows = [_window(state, moment(begin), moment(end)) for state, begin, end in _truth(turn, question)]
        return Recording(
            scenario=f"{turn.program}-{turn.behaviour}",
            group="agents",
            hard="",
            windows=tuple(windows),
            typed=moment(turn.asked),
            age=60.0,
            about=about,
            looks=tuple(look._replace(at=look.at - start) for look in self.looks),
            profile=turn.program,
        )


def _truth(turn: Turn, question: tuple[float, float] | None) -> list[tuple[str, float, float]]:
    """What the program did from when to when, by the host's clock: the model's log knows."""
    until = question[0] if question else float("inf")
    own = [
        (one.time, one.end) for one in turn.requests if not one.auxiliary and one.end is not None and one.time < until
    ]
    # between two attempts a program waits, and is at work as well
    found = [("working", own[0][0] + BEGUN, own[-1][1])] if own and own[-1][1] > own[0][0] + BEGUN else []
    if question:
        found.append(("approval", *question))
    else:
        found.append(("idle", turn.returned, turn.returned + 1.0))
    return found


def _window(state: str, begin: float, end: float) -> Window:
    kinds = {"idle": "agent", "approval": "approval"}
    known = "input" if state in kinds else state
    return Window(Expect(known, round(begin, 3), round(end, 3), kind=kinds.get(state)), 0.0)


def save(told: Told, folder: Path) -> Path:
    """Write a turn as a file of its own; the same turn gives the same bytes."""
    head = {name: value for name, value in told._asdict().items() if name != "seen"}
    lines = [json.dumps({"format": 1, **head}, ensure_ascii=False), *to_lines(thinned(told.seen))]
    path = folder / f"{told.program}-{told.behaviour}.json.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), 9, mtime=0))
    return path


def load(path: Path) -> Told:
    """A turn from its file."""
    head, _, rest = gzip.decompress(path.read_bytes()).decode().partition("\n")
    about: dict[str, Any] = {name: value for name, value in json.loads(head).items() if name in Told._fields}
    return Told(**{**about, "rows": tuple(about["rows"])}, seen=from_lines(rest))


def load_all(folder: Path) -> Sequence[Told]:
    """Every turn of a folder, by name."""
    return [load(path) for path in sorted(folder.glob("*.json.gz"))]
