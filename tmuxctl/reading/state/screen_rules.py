"""The rules that read signs off the screen: a profile's patterns for busy and asking, and the signs many programs share.

They are heard only where the kernel leaves room: somebody waits for the terminal, or nothing is told.
"""

from __future__ import annotations

from tmuxctl.model import Confidence
from tmuxctl.reading.evidence import programs
from tmuxctl.reading.evidence.tty_waits import NOBODY, POLLS, READS, RUNS
from tmuxctl.reading.state.situation import Scene, Verdict, asking, busy
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.patterns import Match
from tmuxctl.vocabulary import Detail, EvidenceKind, InputKind

DRAWN_QUIET = 0.1
"""Seconds without output after which a dialog is drawn, where no kernel says that the program has stopped drawing."""


TROUBLES = (Detail.RETRYING, Detail.LIMITED)
"""Details of errors that a program at work may show. After one of detail `failed` it has ended its turn."""


def busy_match(seen: Scene) -> tuple[str, Detail | None] | None:
    """What of the profile says that the program works, in words, and the rule's detail."""
    profile = seen.profile
    if profile is None:
        return None
    if match := patterns.first(profile.busy, seen.text):
        return f"busy sign {match.rule.id}", Detail.of(match.rule.detail)
    if patterns.fits(profile.title_busy, seen.look.title):
        return "the title says busy", None
    return None


def busy_by_profile(seen: Scene) -> Verdict | None:
    """A busy sign counts unless a program is seen to block in a read, or a shell waits at its prompt."""
    if not _may_work(seen):
        return None
    match = busy_match(seen)
    if match is None:
        return None
    why, detail = match
    return busy(
        seen, detail or _trouble(seen) or seen.doing, why, by=EvidenceKind.BUSY_MARK, confidence=Confidence.LIKELY
    )


def over(seen: Scene) -> bool:
    """Whether the title, which said that the program works, says now that it is ready, as its prompt does: what it drew
    until then was of the turn that is over."""
    profile, titles = seen.profile, [look.title for look in seen.looks]
    if profile is None or seen.prompt is None or busy_match(seen):
        return False
    if not (profile.title_busy and profile.title_idle and patterns.fits(profile.title_idle, titles[-1])):
        return False
    return any(patterns.fits(profile.title_busy, title) for title in titles)


def busy_by_sign(seen: Scene) -> Verdict | None:
    """The signs many programs share, where no profile knows better."""
    if not _may_work(seen) or _quotes(seen) or (seen.profile and (seen.profile.busy or seen.profile.title_busy)):
        return None
    if seen.prompt is not None and seen.now is not None and seen.now.alone:
        # who works waits for something beside the terminal: the sign stands in what was printed before
        return None
    local = seen.now is not None and seen.now.opaque is None and seen.now.word == POLLS
    # without a kernel that sees the program wait for keys, old output above a prompt is no sign; a prompt with a frame or
    # a footer below it is drawn together with what stands around it
    laid_out = any(row.strip() for row in seen.text.below())
    if not local and not laid_out and patterns.alone_a_prompt(seen.text.left):
        return None
    sign = patterns.busy_sign(seen.text)
    return (
        busy(seen, Detail.THINKING, f'"{sign[:60]}"', by=EvidenceKind.BUSY_MARK, confidence=Confidence.LIKELY)
        if sign
        else None
    )


def _quotes(seen: Scene) -> bool:
    """What stands on the screen of an editor, a pager or a list is anybody's text."""
    name = seen.now.name if seen.now is not None else ""
    drawn = seen.prompt is not None and seen.prompt.rule.kind in (InputKind.EDITOR, InputKind.TUI)
    return drawn or programs.is_editor(name) or programs.is_pager(name)


def _may_work(seen: Scene) -> bool:
    """Whether a sign may say busy: what waits could be an event loop."""
    now = seen.now
    if now is None:
        return not seen.kernel_lost
    if now.word == POLLS:
        return not programs.is_shell(now.name)
    return now.word not in (READS, RUNS, NOBODY)


def _trouble(seen: Scene) -> Detail | None:
    """What an error on the screen says of a busy program: retrying, limited."""
    rules = [rule for rule in seen.profile.errors if rule.detail in TROUBLES] if seen.profile else []
    match = patterns.first(rules, seen.text)
    return Detail.of(match.rule.detail) if match else None


def limit_match(seen: Scene) -> Match | None:
    """The profile's rule for a limit that is used up, if one fits."""
    rules = [rule for rule in seen.profile.errors if rule.detail == Detail.LIMITED] if seen.profile else []
    return patterns.first(rules, seen.text) if rules else None


def asking_match(seen: Scene) -> Match | None:
    """The profile's rule for a question that fits."""
    return patterns.first(seen.profile.asking, seen.text) if seen.profile else None


def asking_by_profile(seen: Scene) -> Verdict | None:
    """A question of the profile counts where somebody waits for the answer, or nobody knows."""
    now = seen.now
    match = asking_match(seen)
    if match is None or seen.kernel_lost:
        return None
    if now is not None and (now.word in (RUNS, NOBODY) or not _waited_before(seen)):
        return None
    if (now is None or not now.certain or now.opaque) and seen.activity.quiet < DRAWN_QUIET:
        return None
    from tmuxctl.reading.questions import questions

    sure = now is not None and now.word == READS and now.certain
    confidence = Confidence.SURE if sure else Confidence.LIKELY
    return asking(questions.by_rule(match, seen.text), seen.how, confidence=confidence, rule=match.rule.id)


def _waited_before(seen: Scene) -> bool:
    """The look before saw no one at work."""
    before = seen.before[0] if seen.before else None
    return before is None or before.word not in (RUNS, NOBODY)
