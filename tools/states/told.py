"""Scores what the surfaces told of the played scenarios: whether it was true, and how soon it was told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple

from tools.states.recorder import GAP
from tools.states.score import INPUT, STATES, WORKING, input_states
from tools.states.timed_play import NEW
from tools.states.truth import Record, Session, Truth, between, value_at

STEP = 0.06
"""Seconds between two samples."""

SOON, MARGIN = 0.3, 1.0
"""Seconds after the true begin of work: idle that is told up to then is no error, and is counted apart."""

RIGHT, UNSCORED = 0.97, 0.02
"""Shares of samples: at least so many right, at most so many lost to the recorder's own lateness."""

STREAMS = ("watch", "events")
SURFACES = (*STREAMS, "ls", "wait")


class Call(NamedTuple):
    """What one call of `ls` told of all sessions, between two moments."""

    begin: float
    end: float
    sessions: Mapping[str, Mapping[str, Any]]


class Told(NamedTuple):
    """One sample: what a surface told at a moment of a window. `false_idle` is idle or asking while the program worked, behind
    the margin; `early_idle` is that within it; `unscored` says why the sample counts for nothing."""

    at: float
    what: Mapping[str, Any]
    right: bool
    decision_right: bool
    false_idle: bool
    early_idle: bool
    unscored: str


class Window(NamedTuple):
    """A window of a scenario as one surface told it; `delay` is how many seconds after the true begin busy was told, infinite
    if never, None where it is not measured."""

    surface: str
    session: Session
    truth: Truth
    samples: tuple[Told, ...]
    delay: float | None


LOST = "the recorder was late"
"""Why samples are unscored that the run has too many of if they exceed a share."""


def score(session: Session, calls: Sequence[Call]) -> Iterator[Window]:
    """Every window of a played scenario, as each surface told it."""
    for truth in session.truths():
        for surface in STREAMS:
            yield _score_stream(session, truth, surface)
        yield Window("ls", session, truth, tuple(_score_calls(session, truth, calls)), None)
        if samples := tuple(_score_waits(session, truth)):
            yield Window("wait", session, truth, samples, None)


def _score_stream(session: Session, truth: Truth, surface: str) -> Window:
    told = session.record.told.get((surface, session.scenario.id), [])
    samples, at = [], truth.begin
    while at <= truth.end:
        newest = value_at(told, at)
        new = (
            "" if newest or at > session.played["began"] + NEW else "the session is new, and nothing is told of it yet"
        )
        samples.append(
            _sample(truth, at, newest.what if newest else {}, new or _unscored(session.record, truth, at, at))
        )
        at += STEP
    return Window(surface, session, truth, tuple(samples), _find_delay(truth, told, samples))


def _find_delay(truth: Truth, told: Sequence[Any], samples: Sequence[Told]) -> float | None:
    """Seconds from the true begin of work, where an input began it in a session that is told of, until busy was told."""
    if not truth.typed or truth.begun is None or value_at(told, truth.begun) is None:
        return None
    if all(one.unscored for one in samples):
        return None
    for begin, _, what in between(told, truth.begun, truth.end):
        if what.get("state") in WORKING:
            return begin - truth.begun
    return float("inf")


def _score_calls(session: Session, truth: Truth, calls: Sequence[Call]) -> Iterator[Told]:
    """The calls that began and ended within the window: what they told was true at no moment of them if it is wrong."""
    for call in calls:
        if call.begin >= truth.begin and call.end <= truth.end:
            unscored = _unscored(session.record, truth, call.begin, call.end)
            yield _sample(truth, call.begin, call.sessions.get(session.scenario.id, {}), unscored)


def _score_waits(session: Session, truth: Truth) -> Iterator[Told]:
    """The command that was started right behind the input: it must not end while the program works."""
    for wait in session.played["waits"]:
        ended = session.record.ended.get(wait["process"])
        if not truth.typed or wait["number"] + 1 != truth.number or ended is None:
            continue
        what = json.loads(wait["said"]) if wait["said"].strip().startswith("{") else {}
        early = what.get("state") in INPUT and ended < truth.end
        # one that was ended with its scenario, or later than the work, told nothing wrong
        found = _sample(truth, ended, what, _unscored(session.record, truth, ended, ended))
        if early:
            # idle before the work began is wrong too: the input had been given
            yield found._replace(early_idle=not found.false_idle)
        else:
            yield found._replace(right=True, decision_right=True, false_idle=False, early_idle=False, unscored="")


def _unscored(record: Record, truth: Truth, begin: float, end: float) -> str:
    for gap in record.gaps:
        if gap[0] + GAP <= end and begin <= gap[1]:
            return LOST
    return next((one.why for one in truth.unknown if one.begin <= end and begin < one.end), "")


def _sample(truth: Truth, at: float, what: Mapping[str, Any], unscored: str) -> Told:
    expect, state = truth.expect, what.get("state")
    allowed = {state for word in (expect.state, *expect.others) for state in STATES[word]}
    right = state in allowed
    decision_right = right and (state not in INPUT or not expect.kind or state in input_states(expect))
    false = state in INPUT and not allowed & set(INPUT) and truth.begun is not None
    since = at - truth.begun if truth.begun is not None else 0.0
    return Told(at, what, right, decision_right, false and since > MARGIN, false and SOON < since <= MARGIN, unscored)


class Figures(NamedTuple):
    """The figures of a surface: counts of samples, and how many seconds late busy was told."""

    samples: int
    lost: int
    unknown: int
    right: int
    decision_right: int
    false_idle: int
    early_idle: int
    delays: tuple[float, ...]

    @property
    def scored(self) -> int:
        return self.samples - self.lost - self.unknown


def figures(windows: Iterable[Window]) -> Figures:
    """The figures of these windows."""
    several = list(windows)
    samples = [sample for window in several for sample in window.samples]
    scored = [sample for sample in samples if not sample.unscored]
    return Figures(
        samples=len(samples),
        lost=sum(sample.unscored == LOST for sample in samples),
        unknown=sum(sample.unscored not in ("", LOST) for sample in samples),
        right=sum(sample.right for sample in scored),
        decision_right=sum(sample.decision_right for sample in scored),
        false_idle=sum(sample.false_idle for sample in scored),
        early_idle=sum(sample.early_idle for sample in scored),
        delays=tuple(sorted(window.delay for window in several if window.delay is not None)),
    )


def must_hold(surface: str, of: Figures) -> list[tuple[str, bool]]:
    """What must hold of a surface, in words, each with whether it holds."""
    if surface not in STREAMS:
        return []
    return [
        (f"never idle {MARGIN:g} s after work began", of.false_idle == 0),
        (f"at least {100 * RIGHT:g} % of the samples right", bool(of.scored) and of.right >= RIGHT * of.scored),
        (f"busy told after {SOON:g} s in the median", not of.delays or median(of.delays) <= SOON),
        (f"busy told after {MARGIN:g} s at the latest", not of.delays or of.delays[-1] <= MARGIN),
        (f"at most {100 * UNSCORED:g} % of the samples unscored for the recorder", of.lost <= UNSCORED * of.samples),
    ]


def table(by_surface: Mapping[str, Figures]) -> Iterator[str]:
    """The head and a line for each surface."""
    yield (
        f"{'':8} {'samples':>8} {'right':>8} {'idle/asking':>11} {f'idle >{MARGIN:g} s':>10} {f'{SOON:g}-{MARGIN:g} s':>9} "
        f"{'busy told: median':>17} {'longest':>8} {'inputs':>7} {'late recorder':>13} {'unknown':>8}"
    )
    for surface, of in by_surface.items():
        middle, longest = (f"{median(of.delays):.3f} s", f"{of.delays[-1]:.2f} s") if of.delays else ("-", "-")
        yield (
            f"{surface:8} {of.samples:>8} {_share(of.right, of.scored):>8} {_share(of.decision_right, of.scored):>11} "
            f"{of.false_idle:>10} {of.early_idle:>9} {middle:>17} {longest:>8} {len(of.delays):>7} "
            f"{_share(of.lost, of.samples):>13} {_share(of.unknown, of.samples):>8}"
        )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def failures(windows: Iterable[Window]) -> Iterator[str]:
    """Every stretch that was told wrong, with its reason and what the recorder saw; and what is unknown, with why."""
    for window in windows:
        runs = [list(several) for _, several in groupby(window.samples, _stretch_key)]
        for several in runs:
            first = several[0]
            if first.unscored not in ("", LOST) or not (first.unscored or (first.right and not first.early_idle)):
                yield from _stretch(window, several)
        if window.delay is not None and window.delay > MARGIN:
            yield f"{_title(window)}: busy told {window.delay:.2f} s after the work began"


def delays(windows: Iterable[Window]) -> Iterator[str]:
    """Every input at which a program went to work: how long it took until the program had read it, and until busy was told."""
    for window in windows:
        if window.delay is not None:
            called = next(
                one["called"] for one in reversed(window.session.steps) if one["number"] < window.truth.number
            )
            taken = f"{window.truth.base - called:.3f} s after the call began"
            yield f"{_title(window)}: base {taken}; busy told {window.delay:.3f} s later"


def _stretch_key(sample: Told) -> tuple[object, ...]:
    return (
        sample.unscored,
        sample.right,
        sample.false_idle,
        sample.early_idle,
        sample.what.get("state"),
        sample.what.get("why"),
    )


def _title(window: Window) -> str:
    truth, expect = window.truth, window.truth.expect
    wanted = " ".join(filter(None, (expect.state, expect.kind)))
    return (
        f"{window.session.scenario.id} #{truth.number} {window.surface}"
        f" [{truth.begin - truth.base:.2f}-{truth.end - truth.base:.2f} s after its {truth.by}] {wanted}"
    )


def _stretch(window: Window, several: Sequence[Told]) -> Iterator[str]:
    first, last, base = several[0], several[-1], window.truth.base
    what = first.what
    said = " ".join(str(what[name]) for name in ("state", "kind", "confidence") if what.get(name)) or "nothing"
    says = first.unscored and f"UNKNOWN: {first.unscored}"
    says = says or ("FALSE IDLE" if first.false_idle else "idle within the margin" if first.early_idle else "wrong")
    yield f"{_title(window)}: {says}"
    since = f" (told at {what['at'] - base:.2f} s)" if "at" in what else ""
    yield f"    {first.at - base:5.2f}-{last.at - base:5.2f} s x{len(several):<3} {said}{since}: {what.get('why', '-')}"
    for begin, end, seen in list(between(window.session.kernel, first.at - STEP, last.at + STEP))[:4]:
        yield f"        kernel {begin - base:5.2f}-{end - base:5.2f} s {_kernel(seen)}"


def _kernel(seen: Mapping[str, Any]) -> str:
    parts = [seen["wait"] or "no program", seen.get("waiter", ""), "alone" if seen.get("alone") else ""]
    parts += [f"runs {' '.join(seen['running'])}" if seen.get("running") else ""]
    parts += [f"sleeps in {' '.join(seen['sleeps'])}" if seen.get("sleeps") else "", f"of {' '.join(seen['programs'])}"]
    return ", ".join(filter(None, (*parts, f"{seen['unread']} unread" if seen.get("unread") else "")))
