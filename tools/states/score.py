"""Judges recordings: every look of every window against the truth, and the figures of it all."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from signal import Signals
from statistics import median
from typing import Any, NamedTuple

from tmuxctl.control.sessions.chosen_profile import choose_profile
from tmuxctl.evidence import FULL, Evidence, Look
from tmuxctl.model import Confidence, State
from tmuxctl.reading.state.judging import Verdict, judge
from tmuxctl.vocabulary import EvidenceKind
from tools.states.recording import Recording, Window
from tools.states.scenarios import Expect, filled

SHARE = 0.9
"""A window is right if so many of its samples are."""

WORKING = (State.BUSY, State.STARTING)
INPUT = (State.IDLE, State.ASKING)
STATES = {"working": WORKING, "output": WORKING, "input": INPUT, "exited": (State.EXITED,)}

PROMPT = ("prompt", "continuation")
CHOICE = ("choice", "approval", "trust")
KINDS = {
    "shell": PROMPT,
    "repl": PROMPT,
    "agent": PROMPT,
    "line": ("line", "keys", "question"),
    "yesno": ("confirm",),
    "approval": CHOICE,
    "choice": CHOICE,
}
"""The truth's words for kinds, and ours; a word that is not here is the same in both."""

ASKS = ("yesno", "choice", "approval", "trust", "password", "pager", "keys", "question")
"""Kinds of input that want a decision: these are `asking`, the others `idle`."""

Judge = Callable[[Evidence], Verdict]


class Sample(NamedTuple):
    """One look and what was said of it. `right` is about the state with input as one; `told` tells idle and asking apart;
    `kind` is None where the truth names none."""

    look: Look
    verdict: Verdict
    right: bool
    told: bool
    kind: bool | None
    false_idle: bool


class Scored(NamedTuple):
    """One window: its samples, and how many seconds after the true moment the right state was told for good (None: never,
    or no moment is known)."""

    recording: Recording
    window: Window
    samples: tuple[Sample, ...]
    delay: float | None

    @property
    def share(self) -> float:
        """How many of the samples are right, 0 to 1."""
        return sum(one.right for one in self.samples) / len(self.samples) if self.samples else 0.0

    @property
    def right(self) -> bool:
        """True if the state was told, but for a few samples."""
        return self.share >= SHARE

    @property
    def kind_right(self) -> bool:
        """True if state and kind were told, but for a few samples."""
        return sum(one.kind is not False and one.right for one in self.samples) >= SHARE * max(1, len(self.samples))


class Figures(NamedTuple):
    """The figures of many windows: counts, and the median delay in seconds. `confident` and `sure_false_idle` are those of
    `false_idle` that were no guess, and that were told for sure; `sure_idle` counts the samples in which a decision was wanted
    and `idle` was told for sure."""

    windows: int
    right_windows: int
    whole_windows: int
    kind_windows: int
    samples: int
    right: int
    told: int
    kinds: int
    right_kinds: int
    working: int
    false_idle: int
    confident: int
    sure_false_idle: int
    sure_idle: int
    delay: float | None


def judged(recording: Recording, level: str = FULL) -> list[Scored]:
    """Every window of a recording, judged as a machine would that tells so much."""
    profile = choose_profile(recording.profile or "none", ())
    return scored(recording.degraded(level), lambda evidence: judge(evidence, profile))


def with_profile(recording: Recording, written: Mapping[str, Any]) -> Recording:
    """The recording of a scenario, to be judged with the profile that its command would get."""
    argv = shlex.split(filled(str(written["run"]), {"V": "python3", "P313": "python3"}))
    found = choose_profile("auto", argv)
    return recording._replace(profile=found.name if found else "")


def scored(recording: Recording, judge: Judge) -> list[Scored]:
    """Every window of a recording, by that judge."""
    return [_score(recording, window, judge) for window in recording.windows]


def _score(recording: Recording, window: Window, judge: Judge) -> Scored:
    truth = window.truth
    start = truth.begin if truth.since is None else min(truth.begin, truth.since)
    samples = [
        _sample(truth, look, judge(recording.evidence(index)))
        for index, look in enumerate(recording.looks)
        if start <= look.at <= truth.end
    ]
    inside = tuple(one for one in samples if one.look.at >= truth.begin)
    return Scored(recording, window, inside, _delay(truth, samples))


def _delay(truth: Expect, samples: Sequence[Sample]) -> float | None:
    """From the true moment to the first sample after which all are right."""
    if truth.since is None or not samples or not samples[-1].right:
        return None
    wrong = [index for index, one in enumerate(samples) if not one.right]
    return samples[wrong[-1] + 1 if wrong else 0].look.at - truth.since


def _sample(truth: Expect, look: Look, verdict: Verdict) -> Sample:
    allowed = {state for word in (truth.state, *truth.others) for state in STATES[word]}
    right = verdict.state in allowed and _ended_so(truth, look, verdict)
    kind = _kind(truth, verdict) if truth.kind and verdict.state in INPUT else None
    told = right and (verdict.state not in INPUT or not truth.kind or verdict.state in input_states(truth))
    false_idle = verdict.state in INPUT and not allowed & set(INPUT) and bool(allowed & set(WORKING))
    return Sample(look, verdict, right, told, kind, false_idle)


def _ended_so(truth: Expect, look: Look, verdict: Verdict) -> bool:
    if verdict.state is not State.EXITED:
        return True
    signal = Signals(truth.signal).name.removeprefix("SIG") if truth.signal else None
    return (truth.status is None or look.status == truth.status) and (signal is None or look.signal == signal)


def input_states(truth: Expect) -> set[State]:
    """The states of input that are right: idle, asking, or both."""
    kinds = {kind for kind in (truth.kind, *truth.other_kinds) if kind}
    return {State.ASKING if kind in ASKS else State.IDLE for kind in kinds}


def _kind(truth: Expect, verdict: Verdict) -> bool:
    kinds = [kind for kind in (truth.kind, *truth.other_kinds) if kind]
    return any(verdict.kind in KINDS.get(kind, (kind,)) for kind in kinds)


def figures(windows: Iterable[Scored]) -> Figures:
    """The figures of these windows; those without any sample are left out."""
    there = [one for one in windows if one.samples]
    samples = [sample for one in there for sample in one.samples]
    working = [sample for one in there if set(STATES[one.window.truth.state]) == set(WORKING) for sample in one.samples]
    false = [sample for sample in samples if sample.false_idle]
    delays = [max(0.0, one.delay) for one in there if one.delay is not None]
    return Figures(
        windows=len(there),
        right_windows=sum(one.right for one in there),
        whole_windows=sum(all(sample.right for sample in one.samples) for one in there),
        kind_windows=sum(one.kind_right for one in there),
        samples=len(samples),
        right=sum(one.right for one in samples),
        told=sum(one.told for one in samples),
        kinds=sum(one.kind is not None for one in samples),
        right_kinds=sum(one.kind is True for one in samples),
        working=len(working),
        false_idle=len(false),
        confident=sum(one.verdict.confidence in (Confidence.SURE, Confidence.LIKELY) for one in false),
        sure_false_idle=sum(one.verdict.confidence is Confidence.SURE for one in false),
        sure_idle=sum(
            one.right and not one.told and one.verdict.state is State.IDLE and one.verdict.confidence is Confidence.SURE
            for one in samples
        ),
        delay=median(delays) if delays else None,
    )


def unchanged(seconds: float) -> Judge:
    """What a screen alone says: it waits if nothing was printed for so long. To compare with."""

    def judge(evidence: Evidence) -> Verdict:
        look = evidence.last
        newest = next((one.at for one in reversed(evidence.looks) if one.journal != look.journal), None)
        still = look.at - (evidence.looks[0].at if newest is None else newest)
        state = State.EXITED if look.dead else State.IDLE if still >= seconds else State.BUSY
        return Verdict(state, None, None, EvidenceKind.SETTLE, Confidence.GUESS, f"nothing printed for {still:.1f} s")

    return judge
