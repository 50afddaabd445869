"""What a program is doing: one pure function from evidence to a verdict.

The rules stand in one tuple, the strongest evidence first; the first that decides is the verdict. They err to one side: to
call a waiting program busy costs time, to call a working one idle loses what is typed into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tmuxctl.evidence import Evidence
from tmuxctl.model import Confidence, State
from tmuxctl.reading.evidence import programs
from tmuxctl.reading.evidence.tty_waits import POLLING, READING, STOPPED, UNREADABLE
from tmuxctl.reading.state import input_kinds, screen_rules, waiting_rules
from tmuxctl.reading.state.situation import Situation, Verdict, build_situation, idle
from tmuxctl.reading.text import patterns
from tmuxctl.timing import TIMING
from tmuxctl.value import changed
from tmuxctl.vocabulary import Detail, EventKind, EvidenceKind, InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile

__all__ = ["Verdict", "decide", "judge"]

MARKED_QUIET = 0.06
"""Seconds after which a shell that began with its prompt has drawn it."""


def judge(evidence: Evidence, profile: Profile | None = None) -> Verdict:
    """The state the evidence argues for; it needs at least one look. A profile refines it and never overrides what is
    certain: an end, typed input that no program took, a kernel that says that no thread waits."""
    return decide(build_situation(evidence, profile))[1]


def decide(situation: Situation) -> tuple[EvidenceKind, Verdict]:
    """The name of the evidence that decided, and the verdict."""
    source, verdict = next((name, found) for name, rule in RULES if (found := rule(situation)) is not None)
    return source, _mark_limited(situation, _confirm_by_hook(situation, _mark_starting(situation, verdict)))


def _mark_starting(situation: Situation, verdict: Verdict) -> Verdict:
    """A program that works is starting while it is new and nothing was typed into it."""
    evidence = situation.evidence
    limit = (situation.profile and situation.profile.start_timeout) or TIMING.judging.start_seconds
    works = verdict.state is State.BUSY and verdict.detail != Detail.STOPPED
    if works and evidence.age is not None and evidence.age < limit and not evidence.typed:
        return changed(verdict, state=State.STARTING)
    return verdict


def _confirm_by_hook(situation: Situation, verdict: Verdict) -> Verdict:
    """A program whose hook reported the end of its turn, and that seems to wait for the next, surely does."""
    told = situation.turn_ended or (
        situation.look.hook is not None
        and situation.look.hook.means == EventKind.ATTENTION
        and situation.prompt is not None
    )
    if told and verdict.state is State.IDLE and situation.foreground is not None and situation.foreground.waits:
        return changed(verdict, by=EvidenceKind.HOOK, confidence=Confidence.SURE, why=f"turn ended, {verdict.why}")
    return verdict


def _mark_limited(situation: Situation, verdict: Verdict) -> Verdict:
    """A program that waits, and says that its limit is used up, will not do what it is told next; one that works waits for
    the limit to be over."""
    if verdict.state is not State.IDLE and verdict.detail != Detail.LIMITED:
        return verdict
    match = screen_rules.find_limit_match(situation)
    if match is None:
        return verdict
    until = match.found.groupdict().get("until")
    why = f"{verdict.why}, limit sign {match.rule.id}"
    return changed(verdict, detail=Detail.LIMITED, why=why, until=until.strip() if until else None)


# The rules, in order. Each takes the situation and returns a verdict, or None where it has nothing to say.


def _judge_end(situation: Situation) -> Verdict | None:
    look = situation.look
    if not look.dead:
        return None
    status = "how is not known" if look.status is None else f"status {look.status}"
    how = f"signal {look.signal}" if look.signal else status
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


def _judge_stopped(situation: Situation) -> Verdict | None:
    if situation.foreground is None or situation.foreground.wait is not STOPPED:
        return None
    return situation.busy(f"{situation.foreground.name} is stopped", Detail.STOPPED, confidence=Confidence.SURE)


def _judge_unread_input(situation: Situation) -> Verdict | None:
    """Typed input was unread at two looks in a row: no program takes it."""
    unread = [(tty and tty.unread) or 0 for tty in situation.ttys]
    if not all(unread):
        return None
    confidence = Confidence.LIKELY if len(unread) > 1 else Confidence.GUESS
    return situation.busy(f"{unread[0]} typed bytes are not read yet", confidence=confidence)


def _judge_shell_mark(situation: Situation) -> Verdict | None:
    mark, foreground = situation.look.mark, situation.foreground
    if mark is None:
        return None
    if mark.letter == "C":
        return _judge_marked_command(situation)
    # what a line editor asks, it asks at the prompt: whether to list a thousand completions
    if screen_rules.find_asking_match(situation):
        return None
    if foreground is None:
        return (
            _judge_marked_prompt(situation, "no evidence from the kernel") if situation.kernel_lost is False else None
        )
    if foreground.wait is UNREADABLE and not foreground.by_ps:
        return _judge_marked_prompt(situation, situation.wait_description)
    waits = foreground.wait in (READING, POLLING, UNREADABLE) and (
        programs.is_shell(foreground.name) or foreground.remote_wrapper is not None
    )
    if not waits:
        return None
    return _judge_marked_prompt(situation, situation.wait_description)


def _judge_hook(situation: Situation) -> Verdict | None:
    """A hook has just reported the end of the turn; the program may not have drawn it yet."""
    hook = situation.look.hook
    if (
        hook is None
        or not situation.turn_ended
        or hook.age > TIMING.judging.hook_seconds
        or screen_rules.find_asking_match(situation)
    ):
        return None
    # a hook of the user's own may have told it to go on (Claude, Gemini)
    if situation.profile and patterns.find_match(situation.profile.busy, situation.text):
        return None
    return idle(
        situation,
        InputKind.PROMPT,
        Detail.AGENT,
        "the program reported the end of its turn",
        by=EvidenceKind.HOOK,
        confidence=Confidence.SURE,
    )


def _judge_marked_command(situation: Situation) -> Verdict | None:
    """A command has begun and not ended: it is busy, unless it is seen to take input itself."""
    foreground = situation.foreground
    if foreground is not None and foreground.wait in (READING, POLLING, UNREADABLE):
        # marks that came through a remote wrapper are of the shell on its other side, which the kernel here says nothing of
        far = foreground.remote_wrapper is not None and programs.is_remote_wrapper(situation.evidence.program)
        if not far:
            return None
    why = "a command runs, and the shell has not marked its end"
    return situation.busy(why, by=EvidenceKind.SHELL_MARK, confidence=Confidence.SURE)


def _judge_marked_prompt(situation: Situation, how: str) -> Verdict:
    assert situation.look.mark is not None
    if situation.look.mark.letter != "B" and situation.quiet < MARKED_QUIET:
        return situation.busy(
            "the shell draws its prompt", Detail.PRINTING, by=EvidenceKind.SHELL_MARK, confidence=Confidence.LIKELY
        )
    kind = InputKind.CONTINUATION if input_kinds.is_continued(situation) else InputKind.PROMPT
    found = idle(
        situation,
        kind,
        Detail.SHELL,
        f"marked by the shell, {how}",
        by=EvidenceKind.SHELL_MARK,
        confidence=Confidence.SURE,
    )
    return changed(found, status=situation.look.mark.status if situation.look.mark.letter == "D" else None)


RULES: tuple[tuple[EvidenceKind, Callable[[Situation], Verdict | None]], ...] = (
    (EvidenceKind.EXIT, _judge_end),
    (EvidenceKind.KERNEL, _judge_stopped),
    (EvidenceKind.TTY, _judge_unread_input),
    (EvidenceKind.SHELL_MARK, _judge_shell_mark),
    (EvidenceKind.HOOK, _judge_hook),
    (EvidenceKind.BUSY_MARK, screen_rules.judge_busy_by_profile),
    (EvidenceKind.ASKING_MARK, screen_rules.judge_asking_by_profile),
    (EvidenceKind.KERNEL, waiting_rules.judge_not_waiting),
    (EvidenceKind.BUSY_MARK, screen_rules.judge_busy_by_sign),
    (EvidenceKind.KERNEL, waiting_rules.judge_reading),
    (EvidenceKind.PROMPT, waiting_rules.judge_by_ps),
    (EvidenceKind.PROMPT, waiting_rules.judge_unreadable),
    (EvidenceKind.PROMPT, waiting_rules.judge_remote_wrapper),
    (EvidenceKind.KERNEL, waiting_rules.judge_shell_polling),
    (EvidenceKind.ACTIVITY, waiting_rules.judge_animated),
    (EvidenceKind.KERNEL, waiting_rules.judge_polling),
    (EvidenceKind.PROMPT, waiting_rules.judge_by_text_alone),
)
