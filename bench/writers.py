"""Eight writers on two sessions, killed (-9) at random: nothing doubled, mixed or altered, each write done or unknown."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from exact import Recorder
from place import HERE, Place, Row, until

WRITERS, WRITES, KILLS = 8, 400, 64
EACH = WRITES // WRITERS


class Writer:
    """A writer process that goes on with the next line when it was killed."""

    def __init__(self, place: Place, kind: str, number: int) -> None:
        self.kind, self.name = kind, f"w{number}"
        self.session = f"{kind}{number % 2}"
        self.log = place.folder / f"{kind}-{self.name}.log"
        self.kills = 0
        self.start()

    def start(self) -> None:
        words = [
            str(HERE / "writer.py"),
            self.session,
            str(self.log),
            str(self.begun()),
            str(EACH),
            self.name,
            self.kind,
        ]
        self.process = subprocess.Popen([sys.executable, *words])

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def begun(self) -> int:
        """How many writes were begun."""
        return sum(line[0] == "start" for line in self.lines())

    def kill(self) -> None:
        """Kill the writer wherever it is and let another go on behind it."""
        self.process.kill()
        self.process.wait()
        self.kills += 1
        self.start()

    def text(self, number: int) -> str:
        return f"{self.name}-{number}-" + "abcdefghij" * (number % 12)


def measure(place: Place) -> list[Row]:
    """Writers that spawn tmux for each write as the command does, then writers that stay (control mode)."""
    return [*_kind(place, "spawned"), *_kind(place, "resident")]


def _kind(place: Place, kind: str) -> list[Row]:
    with place.control() as control:
        recorders = [Recorder(place, control, f"{kind}{number}") for number in range(2)]
    seed = int(os.environ.get("SEED", time.time_ns() % 100_000))
    writers = [Writer(place, kind, number) for number in range(WRITERS)]
    try:
        _kill_at_random(writers, random.Random(seed))
    finally:
        for writer in writers:
            writer.process.kill()
            writer.process.wait()
    until(lambda: all(recorder.typed().endswith(b"\r") for recorder in recorders), 5)
    return _judged(kind, writers, recorders, seed)


def _kill_at_random(writers: list[Writer], chance: random.Random) -> None:
    """Kill each writer in the middle of its work again and again, all at the same time, until all lines are written."""
    plans = [(writer, sorted(chance.sample(range(1, EACH), KILLS // WRITERS)), chance.random()) for writer in writers]
    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(_kill_at, *plan) for plan in plans]:
            done.result()


def _kill_at(writer: Writer, points: list[int], seed: float) -> None:
    """Kill it a moment after it began these writes; then wait for its end."""
    chance = random.Random(seed)
    for point in points:
        until(lambda point=point: writer.begun() > point, 20, 0.002)
        time.sleep(chance.random() * 0.006)
        if writer.process.poll() is None:
            writer.kill()
    writer.process.wait(60)


def _judged(kind: str, writers: list[Writer], recorders: list[Recorder], seed: int) -> list[Row]:
    got = Counter(line.decode(errors="replace") for one in recorders for line in one.typed().split(b"\r") if line)
    begun: set[str] = set()
    done: set[str] = set()
    for writer in writers:
        for state, number in writer.lines():
            (begun if state == "start" else done if state == "done" else set()).add(writer.text(int(number)))
    kills = sum(writer.kills for writer in writers)
    doubled = [line for line, count in got.items() if count > 1]
    altered = [line for line in got if line not in begun]
    missing = [line for line in done if line not in got]
    failed = sum(writer.process.returncode not in (0, -9) for writer in writers)
    told = f"{len(doubled)}, {len(altered)}, {len(missing)} of {len(begun)}; {kills} kills, {failed} writers failed"
    bad = bool(doubled or altered or missing or failed or len(begun) != WRITES)
    detail = f"seed {seed}: {[*doubled, *altered, *missing][:3]}" if bad else ""
    unknown = len(begun - done)
    return [
        Row(
            f"{WRITERS} {kind} writers on 2 sessions, {WRITES} writes, killed (-9) at random: doubled, mixed or altered, lost",
            "0, 0, 0",
            told,
            not bad,
            detail,
        ),
        Row(f"their writes not reported as done ({kind})", "≤ kills", f"{unknown}, {kills} kills", unknown <= kills),
    ]
