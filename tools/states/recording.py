"""Recordings: what was seen of a scenario while it was played, to be judged again on any machine."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tmuxctl.evidence import FULL, NONE, PS, WCHAN, Evidence, Kernel, Look, Program, differences, looks
from tools.states.scenarios import Expect

WINDOW = 3.3
"""How many seconds of looks a state is judged by."""

PS_SECONDS = 0.25
"""How old what `ps` printed may become before it is called again."""


class Window(NamedTuple):
    """A stretch of true state: `begin`, `end` and `since` of the truth are moments of the recording, in seconds."""

    truth: Expect
    base: float
    """The moment from which the scenario counts; what is printed is relative to it."""


class Recording(NamedTuple):
    """A scenario as it was played. Moments are seconds since its first look; `typed` is when something was first sent to
    it, `age` how old the session was at the first look; `about` is the evidence's header."""

    scenario: str
    group: str
    hard: str
    windows: tuple[Window, ...]
    typed: float | None
    age: float
    about: Mapping[str, Any]
    looks: tuple[Look, ...]
    profile: str = ""
    """The name of the profile the session had."""
    broken: str = ""
    """Why the scenario could not be played to its end."""

    def degraded(self, level: str) -> Recording:
        """The same as a machine that tells less would have seen it."""
        if level == FULL:
            return self
        if level == PS:
            return self._replace(looks=tuple(_see_by_ps(self.looks)))
        less = settings if level == NONE else lambda kernel: degraded(kernel, level)
        seen = tuple(look._replace(kernel=less(look.kernel)) for look in self.looks)
        return self._replace(looks=seen)

    def evidence(self, index: int) -> Evidence:
        """What was known at one look."""
        at = self.looks[index].at
        first = bisect_left(self.looks, at - WINDOW, key=lambda look: look.at)
        window = self.looks[first : index + 1]
        about = {name: value for name, value in self.about.items() if name in Evidence._fields}
        known = {**about, "age": self.age + at, "typed": self.typed is not None and self.typed <= at}
        return Evidence(**{**known, "looks": window, "proc": _told(window)})


def degraded(kernel: Kernel | None, level: str) -> Kernel | None:
    """The same as a machine that tells less would have told it: how an observation is judged for several machines."""
    if kernel is None or level == FULL:
        return kernel
    if level == NONE:
        return None
    if level == PS:
        inner = degraded(kernel.inner, PS) if kernel.inner and _is_below(kernel.inner, kernel) else None
        return kernel._replace(programs=tuple(map(_show_in_ps, kernel.programs)), inner=inner, masters=0)
    programs = tuple(
        one._replace(
            level=WCHAN if one.level == FULL else one.level,
            threads=tuple(
                thread._replace(call=None, tty=None, alone=False, timeout=None, inward=False) for thread in one.threads
            ),
        )
        for one in kernel.programs
    )
    return kernel._replace(programs=programs, inner=degraded(kernel.inner, level))


def _show_in_ps(program: Program) -> Program:
    """A process as macOS' ps tells of it: nothing of its start, its threads, calls or descriptors."""
    return program._replace(level=PS, started=0, sockets=None, holds=None, threads=())


def _is_below(inner: Kernel, outer: Kernel) -> bool:
    """Whether ps shows an inner terminal to belong to the outer one: a process there is a child of one here."""
    outside = {program.pid for program in outer.programs} - {program.pid for program in inner.programs}
    return any(program.parent in outside for program in inner.programs)


def _see_by_ps(seen: Iterable[Look]) -> Iterator[Look]:
    """The looks of a machine that has `ps` and no /proc: ps is called at most every PS_SECONDS, and what it printed stands
    until the next call; the terminal's settings are new in each look."""
    shown: Kernel | None = None
    called = -PS_SECONDS
    for look in seen:
        if look.at - called >= PS_SECONDS:
            shown, called = degraded(look.kernel, PS), look.at
        tty = look.kernel.tty if look.kernel else None
        yield look._replace(kernel=shown._replace(tty=tty) if shown else settings(look.kernel))


def settings(kernel: Kernel | None) -> Kernel | None:
    """What is left without /proc: how the terminal is set, which tcgetattr(3) tells everywhere."""
    return None if kernel is None or kernel.tty is None else Kernel(kernel.tty, 0, ())


def _told(window: Iterable[Look]) -> str:
    """How much the kernel told: the most it told of any process."""
    told = {one.level for look in window if look.kernel for one in look.kernel.programs}
    return next((level for level in (FULL, WCHAN, PS) if level in told), NONE)


def thinned(recording: Recording) -> Recording:
    """Without the looks that no window needs, and with its moments counted from the first one that is left."""
    # a little more than is needed: rounding must take nothing away
    begin = min((window.truth.begin for window in recording.windows), default=0.0) - WINDOW - 0.01
    kept = [look for look in recording.looks if look.at >= begin]
    start = kept[0].at if kept else 0.0
    seen = tuple(
        look._replace(at=round(look.at - start, 3), quiet=None if look.quiet is None else round(look.quiet, 3))
        for look in kept
    )
    return recording._replace(
        windows=tuple(_moved(window, -start) for window in recording.windows),
        typed=None if recording.typed is None else round(recording.typed - start, 3),
        age=round(recording.age + start, 3),
        looks=seen,
    )


def _moved(window: Window, by: float) -> Window:
    truth = window.truth
    since = None if truth.since is None else round(truth.since + by, 3)
    moved = truth._replace(begin=round(truth.begin + by, 3), end=round(truth.end + by, 3), since=since)
    return Window(moved, round(window.base + by, 3))


def to_lines(recording: Recording) -> Iterator[str]:
    """A recording as lines of JSON: a header, then for each look what is new in it."""
    head = {name: value for name, value in recording._asdict().items() if name not in ("looks", "windows")}
    windows = [{"base": window.base, **_said(window.truth)} for window in recording.windows]
    yield _json({"format": 1, **head, "windows": windows})
    yield from map(_json, differences(recording.looks))


def from_lines(text: str) -> Recording:
    """The recording whose lines `to_lines` wrote; ValueError if it is no such thing."""
    try:
        # JSON leaves characters as they are that str.splitlines takes for the end of a line
        head, *rest = map(json.loads, text.strip("\n").split("\n"))
        windows = tuple(_window(one) for one in head["windows"])
        known = {name: head[name] for name in Recording._fields if name in head}
        return Recording(**{**known, "windows": windows, "looks": tuple(looks(rest))})
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no recording: {error}") from None


def save(recording: Recording, folder: Path) -> Path:
    """Write a recording as a file of its own; the same recording gives the same bytes."""
    path = folder / f"{recording.scenario}.json.gz"
    text = "".join(line + "\n" for line in to_lines(thinned(recording)))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return path


def load(path: Path) -> Recording:
    """A recording from its file."""
    return from_lines(gzip.decompress(path.read_bytes()).decode())


def load_all(folder: Path) -> list[Recording]:
    """Every recording of a folder, by name."""
    return [load(path) for path in sorted(folder.glob("*.json.gz"))]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _said(truth: Expect) -> dict[str, Any]:
    return {name: value for name, value in truth._asdict().items() if value not in (None, ())}


def _window(line: Mapping[str, Any]) -> Window:
    known = {name: line[name] for name in Expect._fields if name in line}
    for name in ("others", "other_kinds"):
        known[name] = tuple(known.get(name, ()))
    return Window(Expect(**known), line["base"])
