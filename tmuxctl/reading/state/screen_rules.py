"""The rules that read signs off the screen: a profile's patterns for busy and asking, and the signs many programs share.

They count only where the kernel leaves room: a program waits for the terminal, or nothing is known of it.
"""

from __future__ import annotations

from tmuxctl.model import Confidence
from tmuxctl.reading.evidence import programs
from tmuxctl.reading.evidence.tty_waits import NOT_WAITING, POLLING, READING, RUNNING
from tmuxctl.reading.state.situation import Situation, Verdict, asking
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.patterns import RuleMatch
from tmuxctl.vocabulary import Detail, EvidenceKind, InputKind

DRAWN_QUIET = 0.1
"""Seconds without output after which a dialog is drawn, where no kernel says that the program has stopped drawing."""


TROUBLES = (Detail.RETRYING, Detail.LIMITED)
"""Details of errors that a program at work may show. After one of detail `failed` it has ended its turn."""


def find_busy_match(situation: Situation) -> tuple[str, Detail | None] | None:
    """What of the profile says that the program works, in words, and the rule's detail."""
    profile = situation.profile
    if profile is None:
        return None
    if match := patterns.find_match(profile.busy, situation.text):
        return f"busy sign {match.rule.id}", Detail.of(match.rule.detail)
    if patterns.fits(profile.title_busy, situation.look.title):
        return "the title says busy", None
    return None


def judge_busy_by_profile(situation: Situation) -> Verdict | None:
    """A busy sign counts unless a program is seen to block in a read, or a shell waits at its prompt."""
    if not _sign_counts(situation):
        return None
    match = find_busy_match(situation)
    if match is None:
        return None
    why, detail = match
    return situation.busy(
        why,
        detail or _find_trouble(situation) or situation.busy_detail,
        by=EvidenceKind.BUSY_MARK,
        confidence=Confidence.LIKELY,
    )


def is_turn_over(situation: Situation) -> bool:
    """Whether the title, which said that the program works, says now that it is ready, as its prompt does: what it drew
    until then was of the turn that is over."""
    profile, titles = situation.profile, [look.title for look in situation.looks]
    if profile is None or situation.prompt is None or find_busy_match(situation):
        return False
    if not (profile.title_busy and profile.title_idle and patterns.fits(profile.title_idle, titles[-1])):
        return False
    return any(patterns.fits(profile.title_busy, title) for title in titles)


def judge_busy_by_sign(situation: Situation) -> Verdict | None:
    """The signs many programs share, where no profile knows better."""
    if (
        not _sign_counts(situation)
        or _shows_quoted_text(situation)
        or (situation.profile and (situation.profile.busy or situation.profile.title_busy))
    ):
        return None
    if situation.prompt is not None and situation.foreground is not None and situation.foreground.alone:
        # who works waits for something beside the terminal: the sign stands in what was printed before
        return None
    local = (
        situation.foreground is not None
        and situation.foreground.remote_wrapper is None
        and situation.foreground.wait is POLLING
    )
    # without a kernel that sees the program wait for keys, old output above a prompt is no sign; a prompt with a frame or
    # a footer below it is drawn together with what stands around it
    laid_out = any(row.strip() for row in situation.text.below())
    if not local and not laid_out and patterns.is_likely_prompt(situation.text.left):
        return None
    if sign := patterns.find_busy_sign(situation.text):
        why = f'"{sign[:60]}"'
        return situation.busy(why, Detail.THINKING, by=EvidenceKind.BUSY_MARK, confidence=Confidence.LIKELY)
    return None


def _shows_quoted_text(situation: Situation) -> bool:
    """Whether an editor, a pager or a list is on the screen: the text there is not the program's own."""
    name = situation.foreground.name if situation.foreground is not None else ""
    drawn = situation.prompt is not None and situation.prompt.rule.kind in (InputKind.EDITOR, InputKind.TUI)
    return drawn or programs.is_editor(name) or programs.is_pager(name)


def _sign_counts(situation: Situation) -> bool:
    """Whether a sign may say busy: what waits could be an event loop."""
    foreground = situation.foreground
    if foreground is None:
        return not situation.kernel_lost
    if foreground.wait is POLLING:
        return not programs.is_shell(foreground.name)
    return foreground.wait not in (READING, RUNNING, NOT_WAITING)


def _find_trouble(situation: Situation) -> Detail | None:
    """What an error on the screen says of a busy program: retrying, limited."""
    rules = [rule for rule in situation.profile.errors if rule.detail in TROUBLES] if situation.profile else []
    match = patterns.find_match(rules, situation.text)
    return Detail.of(match.rule.detail) if match else None


def find_limit_match(situation: Situation) -> RuleMatch | None:
    """The profile's rule for a limit that is used up, if one fits."""
    rules = [rule for rule in situation.profile.errors if rule.detail == Detail.LIMITED] if situation.profile else []
    return patterns.find_match(rules, situation.text) if rules else None


def find_asking_match(situation: Situation) -> RuleMatch | None:
    """The profile's rule for a question that fits."""
    return patterns.find_match(situation.profile.asking, situation.text) if situation.profile else None


def judge_asking_by_profile(situation: Situation) -> Verdict | None:
    """A question of the profile counts where a program waits for the answer, or the kernel does not tell."""
    foreground = situation.foreground
    match = find_asking_match(situation)
    if match is None or situation.kernel_lost:
        return None
    if foreground is not None and (foreground.wait in (RUNNING, NOT_WAITING) or not _was_not_working(situation)):
        return None
    if (foreground is None or not foreground.certain or foreground.remote_wrapper) and situation.quiet < DRAWN_QUIET:
        return None
    from tmuxctl.reading.questions import questions

    sure = foreground is not None and foreground.wait is READING and foreground.certain
    confidence = Confidence.SURE if sure else Confidence.LIKELY
    return asking(
        questions.build_rule_question(match, situation.text),
        situation.wait_description,
        confidence=confidence,
        rule=match.rule.id,
    )


def _was_not_working(situation: Situation) -> bool:
    """The look before saw no one at work."""
    before = situation.earlier_foregrounds[0] if situation.earlier_foregrounds else None
    return before is None or before.wait not in (RUNNING, NOT_WAITING)
