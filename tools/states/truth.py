"""What was true of a played scenario from which moment to which, by what the recorder saw and not by when a call returned.

A step's *base* is the moment from which its scenario counts: that at which the program read what was typed, or at which the
output had come that was waited for. Moments are seconds of the monotonic clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tools.states.recorder import GAP, TTY
from tools.states.scenarios import Expect, Press, Scenario, Type, Until

BURST = 0.25
"""Seconds between two reads of one input at most."""

BLINK = 0.3
"""Seconds for which a program that waits may have something to do: a clock that it draws."""

SLACK = 0.5
"""Seconds after which an input must have been told, where the scenario does not say when it begins."""

NEAR = 0.06
"""Seconds around a read of /dev/tty in which something changes at the session whose program read."""


class Moment(NamedTuple):
    """What was seen or told from a moment on."""

    at: float
    what: Mapping[str, Any]


class Record(NamedTuple):
    """What the recorder wrote, sorted: facts and kernel by session, reads by terminal, what was told by surface and session,
    when processes ended, and the gaps."""

    facts: Mapping[str, list[Moment]]
    kernel: Mapping[str, list[Moment]]
    reads: Mapping[str, list[float]]
    told: Mapping[tuple[str, str], list[Moment]]
    ended: Mapping[int, float]
    gaps: Sequence[tuple[float, float]]
    lateness: Mapping[str, Any]


class Stretch(NamedTuple):
    """A stretch of time, and why what was told in it is not scored."""

    begin: float
    end: float
    why: str


class Truth(NamedTuple):
    """One window: what was true from `begin` to `end`. `begun` is when the work truly began, None if it is no work; `typed`: an
    input began it. `base` is the step's, by `by`; in the stretches `unknown` the kernel contradicts the scenario."""

    expect: Expect
    number: int
    begin: float
    end: float
    begun: float | None
    base: float
    by: str
    typed: bool
    unknown: tuple[Stretch, ...] = ()


def read_record(lines: Iterable[Mapping[str, Any]]) -> Record:
    """The record of these lines."""
    facts, kernel, told = defaultdict(list), defaultdict(list), defaultdict(list)
    reads: dict[str, list[float]] = defaultdict(list)
    ended, gaps, lateness = {}, [], {}
    for line in lines:
        at = line["at"]
        if "facts" in line:
            facts[line["session"]].append(Moment(at, line["facts"]))
        elif "kernel" in line:
            kernel[line["session"]].append(Moment(at, line["kernel"]))
        elif "read" in line:
            reads[line["read"]].append(at)
        elif "told" in line and "session" in line:
            told[line["told"], line["session"]].append(Moment(at, line))
        elif "ended" in line:
            ended[line["ended"]] = at
        elif "gap" in line:
            gaps.append((at - line["gap"], at))
        elif "lateness" in line:
            lateness = line["lateness"]
    return Record(facts, kernel, reads, told, ended, gaps, lateness)


def value_at(moments: Sequence[Moment], at: float) -> Moment | None:
    """The newest of them at that moment; None before the first."""
    index = bisect_right(moments, at, key=lambda one: one.at)
    return moments[index - 1] if index else None


def between(moments: Sequence[Moment], begin: float, end: float) -> Iterator[tuple[float, float, Mapping[str, Any]]]:
    """What held from `begin` to `end`, stretch by stretch."""
    first = bisect_right(moments, begin, key=lambda one: one.at)
    held = [*moments[max(0, first - 1) : first]]
    held += [one for one in moments[first:] if one.at < end]
    for one, following in pairwise([*held, Moment(end, {})]):
        yield max(begin, one.at), following.at, one.what


class Session:
    """One played scenario beside what the recorder saw of it."""

    def __init__(self, scenario: Scenario, played: Mapping[str, Any], record: Record) -> None:
        self.scenario, self.played, self.record = scenario, played, record
        self.facts = record.facts.get(scenario.id, [])
        self.kernel = record.kernel.get(scenario.id, [])
        self.steps: list[Mapping[str, Any]] = played["steps"]
        terminals = {played["terminal"], *(str(one.what.get("terminal")) for one in self.kernel)}
        self.reads = sorted(at for terminal in terminals for at in record.reads.get(terminal, ()))

    def truths(self) -> Iterator[Truth]:
        """Every window that was played."""
        base, by, is_input, first = float(self.played["began"]), "start", False, True
        for done in self.steps:
            step, number = self.scenario.steps[done["number"]], done["number"]
            if isinstance(step, Expect):
                yield self._find_truth(step, number, base, by, work_began=is_input and first)
                first = False
            elif isinstance(step, Type | Press | Until) and "returned" in done:
                is_input, first = not isinstance(step, Until), True
                base, by = self._find_input(number, done) if is_input else self._find_output(done)

    def _find_output(self, done: Mapping[str, Any]) -> tuple[float, str]:
        """When the journal had come as far as the look that found the text; where the program only waits from then on, when the
        player went on."""
        if done["settled"]:
            return done["returned"], "look"
        found = (one.at for one in self.facts if one.what.get("journal", 0) >= done["journal"])
        return next(found, done["returned"]), "journal"

    def _find_input(self, number: int, done: Mapping[str, Any]) -> tuple[float, str]:
        """When the program had read this input; if it was not waiting for any, or nothing was read, when something changed."""
        called, until = done["called"], self._next_input(number)
        if self._waited(number) and (reads := self._reads(called, until)):
            return self._last_of_burst(reads, done["returned"]), "read"
        changes = (one.at for one in self.facts if called < one.at < until)
        return next(changes, done["returned"]), "change"

    def _waited(self, number: int) -> bool:
        """Whether a program waited for the terminal when the first of this and the inputs right before it was given."""
        first = number
        while first and isinstance(self.scenario.steps[first - 1], Type | Press):
            first -= 1
        called = next((one["called"] for one in self.steps if one["number"] == first), 0.0)
        seen = value_at(self.kernel, called)
        return seen is not None and seen.what["wait"] in ("reading", "polling")

    def _reads(self, begin: float, end: float) -> list[float]:
        """The reads of the session's terminals; if there is none, those of /dev/tty at which something changed here."""
        if own := [at for at in self.reads if begin <= at < end]:
            return own
        changes = sorted(one.at for one in (*self.facts, *self.kernel))
        return [
            at
            for at in self.record.reads.get(TTY, ())
            if begin <= at < end and bisect_right(changes, at + NEAR) > bisect_right(changes, at - NEAR)
        ]

    def _last_of_burst(self, reads: Sequence[float], returned: float) -> float:
        """The last read of an input: nothing is unread behind it, and no other follows soon."""
        unread = [(begin, end) for begin, end, what in between(self.facts, reads[0], reads[-1]) if what.get("unread")]
        empty = next((one.at for one in self.facts if one.at >= returned and not one.what.get("unread")), returned)
        last = max((at for at in reads if at <= max(empty, returned) + GAP), default=reads[0])
        for at in reads:
            if at > last and (at - last < BURST or any(begin < at and end > last for begin, end in unread)):
                last = at
        return last

    def _next_input(self, number: int) -> float:
        """When the next input after this step was given, or the scenario ended."""
        inputs = (one for one in self.steps if one["number"] > number)
        given = (one["called"] for one in inputs if isinstance(self.scenario.steps[one["number"]], Type | Press))
        return float(next(given, self.played["ended"]))

    def _find_truth(self, expect: Expect, number: int, base: float, by: str, *, work_began: bool) -> Truth:
        limit = self._next_input(number)
        since = expect.begin if expect.since is None else expect.since
        begin, end, begun = base + expect.begin, min(base + expect.end, limit), None
        unknown: tuple[Stretch, ...] = ()
        if expect.state in ("working", "output"):
            begun = base if work_began else base + since
            unknown = tuple(self._find_contradictions(begin, end))
        else:
            find = self._find_gone if expect.state == "exited" else self._find_waiting
            # another window may follow in which it waits no more, so the end comes only where it begins late
            found = find(base + since, end) or find(base + since, limit)
            if found is None:
                unknown = (Stretch(begin, end, f"the kernel never showed {expect.state}"),)
            else:
                slack = SLACK if expect.since is None else expect.begin - expect.since
                begin = max(begin, found + slack)
                end = min(limit, max(end, begin + expect.end - expect.begin))
        return Truth(expect, number, begin, end, begun, base, by, begun is not None and work_began, unknown)

    def _find_contradictions(self, begin: float, end: float) -> Iterator[Stretch]:
        """Stretches in which the program is said to work, and does nothing but wait for its terminal, or is gone."""
        for since, until, what in between(self.kernel, begin, end):
            if waits(what) and (what["wait"] == "reading" or what["alone"]) and what["certain"]:
                yield Stretch(since, until, f"the kernel shows {what['waiter']} waiting for the terminal")
        for since, until, what in between(self.facts, begin, end):
            if what.get("gone"):
                yield Stretch(since, until, "the process is gone")

    def _find_gone(self, begin: float, end: float) -> float | None:
        return next((one.at for one in self.facts if one.at < end and one.what.get("gone")), None)

    def _find_waiting(self, begin: float, end: float) -> float | None:
        """The moment from which on a program waited for the terminal until the end, but for blinks; None if it never did."""
        found: float | None = None
        busy = 0.0
        for since, until, what in between(self.kernel, begin, end):
            if waits(what):
                found = since if found is None or busy > BLINK else found
                busy = 0.0
            else:
                busy += until - since
        return None if busy > BLINK else found


def waits(what: Mapping[str, Any]) -> bool:
    """Whether this look of the kernel shows a program that waits for the terminal, with nothing unread and nothing running."""
    return what["wait"] in ("reading", "polling") and not what["unread"] and not what["running"]
