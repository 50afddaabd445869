"""What a program is doing: one pure function from evidence to a verdict.

The rules stand in one tuple, the strongest evidence first; the first that decides is the verdict. They err to one side: to
call a waiting program busy costs time, to call a working one idle loses what is typed into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.evidence import Evidence
from tmuxctl.model import Confidence, State
from tmuxctl.reading.evidence import programs
from tmuxctl.reading.evidence.tty_waits import POLLS, READS, STOPPED, UNREADABLE
from tmuxctl.reading.state import input_kinds, screen_rules, waiting_rules
from tmuxctl.reading.state.situation import Scene, Verdict, busy, idle, scene
from tmuxctl.reading.text import patterns
from tmuxctl.vocabulary import Detail, EventKind, EvidenceKind, InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile

__all__ = ["Argument", "Verdict", "arguments", "judge"]

START_SECONDS = 2.0
"""So long a new program counts as starting, if its profile does not say."""

HOOK_SECONDS = 1.0
"""So long what a program told of its turn counts more than what it shows: it tells before it draws."""

MARKED_QUIET = 0.06
"""Seconds after which a shell that began with its prompt has drawn it."""


class Argument(NamedTuple):
    """One piece of evidence: what it is, what was seen, how many seconds ago, the state it argues for (None: for nothing),
    and whether the verdict rests on it."""

    source: str
    seen: str
    age: float | None
    state: State | None
    used: bool


def judge(evidence: Evidence, profile: Profile | None = None) -> Verdict:
    """The state the evidence argues for; it needs at least one look. A profile refines it and never overrides what is
    certain: an end, typed input that nobody took, a kernel that says nobody listens."""
    return _finished(scene(evidence, profile))[1]


def arguments(evidence: Evidence, profile: Profile | None = None) -> tuple[Argument, ...]:
    """Every piece of evidence and what it argues for, in the order of the rules."""
    from tmuxctl.reading.state.explanation import pieces

    seen = scene(evidence, profile)
    rule, verdict = _finished(seen)
    return tuple(
        Argument(one.source, one.seen, one.age, one.state, one.source in (rule, verdict.by)) for one in pieces(seen)
    )


def _finished(seen: Scene) -> tuple[EvidenceKind, Verdict]:
    """The name of the evidence that decided, and the verdict."""
    source, verdict = next((name, found) for name, rule in RULES if (found := rule(seen)) is not None)
    return source, _limited(seen, _told_by_hook(seen, _starting(seen, verdict)))


def _starting(seen: Scene, verdict: Verdict) -> Verdict:
    """A program that works and was given nothing yet is starting, for a while."""
    evidence = seen.evidence
    limit = (seen.profile and seen.profile.start_timeout) or START_SECONDS
    works = verdict.state is State.BUSY and verdict.detail != Detail.STOPPED
    if works and evidence.age is not None and evidence.age < limit and not evidence.typed:
        return verdict._replace(state=State.STARTING)
    return verdict


def _told_by_hook(seen: Scene, verdict: Verdict) -> Verdict:
    """A program that told the end of its turn, and seems to wait for the next, does."""
    told = seen.ended or (
        seen.look.hook is not None and seen.look.hook.means == EventKind.ATTENTION and seen.prompt is not None
    )
    if told and verdict.state is State.IDLE and seen.now is not None and seen.now.waits:
        return verdict._replace(by=EvidenceKind.HOOK, confidence=Confidence.SURE, why=f"turn ended, {verdict.why}")
    return verdict


def _limited(seen: Scene, verdict: Verdict) -> Verdict:
    """A program that waits, and says that its limit is used up, will not do what it is told next; one that works waits for
    the limit to be over."""
    if verdict.state is not State.IDLE and verdict.detail != Detail.LIMITED:
        return verdict
    match = screen_rules.limit_match(seen)
    if match is None:
        return verdict
    until = match.found.groupdict().get("until")
    why = f"{verdict.why}, limit sign {match.rule.id}"
    return verdict._replace(detail=Detail.LIMITED, why=why, until=until.strip() if until else None)


# The rules, in order. Each takes the scene and returns a verdict, or None where it has nothing to say.


def _ended(seen: Scene) -> Verdict | None:
    look = seen.look
    if not look.dead:
        return None
    how = (
        f"signal {look.signal}"
        if look.signal
        else "how is not known"
        if look.status is None
        else f"status {look.status}"
    )
    return Verdict(
        State.EXITED,
        None,
        None,
        EvidenceKind.EXIT,
        Confidence.SURE,
        f"ended, {how}",
        status=look.status,
        signal=look.signal,
    )


def _stopped(seen: Scene) -> Verdict | None:
    if seen.now is None or seen.now.word != STOPPED:
        return None
    return busy(seen, Detail.STOPPED, f"{seen.now.name} is stopped", confidence=Confidence.SURE)


def _unread(seen: Scene) -> Verdict | None:
    """Typed input that two looks in a row saw waiting: nobody takes it."""
    if not all(tty is not None and tty.unread for tty in seen.ttys):
        return None
    count = seen.ttys[0].unread if seen.ttys[0] else 0
    confidence = Confidence.LIKELY if len(seen.ttys) > 1 else Confidence.GUESS
    return busy(seen, seen.doing, f"{count} typed bytes are not read yet", confidence=confidence)


def _shell_mark(seen: Scene) -> Verdict | None:
    mark, now = seen.look.mark, seen.now
    if mark is None:
        return None
    if mark.letter == "C":
        return _command(seen)
    # what a line editor asks, it asks at the prompt: whether to list a thousand completions
    if screen_rules.asking_match(seen):
        return None
    if now is None:
        return _marked_prompt(seen, "no kernel to ask") if seen.kernel_lost is False else None
    waits = now.word in (READS, POLLS) and (programs.is_shell(now.name) or now.opaque is not None)
    if not waits and now.word != UNREADABLE:
        return None
    return _marked_prompt(seen, seen.how)


def _hook(seen: Scene) -> Verdict | None:
    """The program just told the end of its turn; it may not have drawn it yet."""
    hook = seen.look.hook
    if hook is None or not seen.ended or hook.age > HOOK_SECONDS or screen_rules.asking_match(seen):
        return None
    # a hook of the user's own may have told it to go on (Claude, Gemini)
    if seen.profile and patterns.first(seen.profile.busy, seen.text):
        return None
    return idle(
        seen,
        InputKind.PROMPT,
        Detail.AGENT,
        "it told the end of its turn",
        by=EvidenceKind.HOOK,
        confidence=Confidence.SURE,
    )


def _command(seen: Scene) -> Verdict | None:
    """A command has begun and not ended: what it does is busy, unless it is seen to take input itself."""
    now = seen.now
    if now is not None and now.word in (READS, POLLS, UNREADABLE):
        # marks that came through a carrier are of the shell on its other side, which the kernel here says nothing of
        far = now.opaque is not None and programs.is_opaque(seen.evidence.program)
        if not far:
            return None
    why = "a command runs, no end is marked"
    return busy(seen, seen.doing, why, by=EvidenceKind.SHELL_MARK, confidence=Confidence.SURE)


def _marked_prompt(seen: Scene, how: str) -> Verdict:
    assert seen.look.mark is not None
    if seen.look.mark.letter != "B" and seen.activity.quiet < MARKED_QUIET:
        return busy(
            seen,
            Detail.PRINTING,
            "the shell draws its prompt",
            by=EvidenceKind.SHELL_MARK,
            confidence=Confidence.LIKELY,
        )
    kind = InputKind.CONTINUATION if input_kinds.continued(seen) else InputKind.PROMPT
    found = idle(seen, kind, Detail.SHELL, f"marked, {how}", by=EvidenceKind.SHELL_MARK, confidence=Confidence.SURE)
    return found._replace(status=seen.look.mark.status if seen.look.mark.letter == "D" else None)


RULES: tuple[tuple[EvidenceKind, Callable[[Scene], Verdict | None]], ...] = (
    (EvidenceKind.EXIT, _ended),
    (EvidenceKind.KERNEL, _stopped),
    (EvidenceKind.TTY, _unread),
    (EvidenceKind.SHELL_MARK, _shell_mark),
    (EvidenceKind.HOOK, _hook),
    (EvidenceKind.BUSY_MARK, screen_rules.busy_by_profile),
    (EvidenceKind.ASKING_MARK, screen_rules.asking_by_profile),
    (EvidenceKind.KERNEL, waiting_rules.nobody_waits),
    (EvidenceKind.BUSY_MARK, screen_rules.busy_by_sign),
    (EvidenceKind.KERNEL, waiting_rules.reads),
    (EvidenceKind.PROMPT, waiting_rules.unreadable),
    (EvidenceKind.PROMPT, waiting_rules.carried),
    (EvidenceKind.KERNEL, waiting_rules.shell_polls),
    (EvidenceKind.ACTIVITY, waiting_rules.animated),
    (EvidenceKind.KERNEL, waiting_rules.polls),
    (EvidenceKind.PROMPT, waiting_rules.text_alone),
)
