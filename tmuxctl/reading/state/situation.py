"""What the rules look at, worked out once from the evidence, and the verdicts they make of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tmuxctl.evidence import NONE, Evidence, Look, Tty, is_unmoved
from tmuxctl.model import Confidence, State
from tmuxctl.reading.evidence import programs, tty_waits
from tmuxctl.reading.evidence.activity import Activity, measure_activity
from tmuxctl.reading.evidence.tty_waits import NOT_WAITING, POLLING, READING, RUNNING, Foreground
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.patterns import RuleMatch, ScreenText
from tmuxctl.timing import TIMING
from tmuxctl.value import Value
from tmuxctl.vocabulary import Detail, EventKind, EvidenceKind, InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile
    from tmuxctl.results import Asking


class Verdict(Value):
    """A state with what it rests on: see docs on states for the words of `kind`, `detail` and `by`.

    `why` says it in a line; `prompt` is the prompt's text left of the cursor; `status` and `signal` are of a program that
    ended (`status` also of the last command in a marked shell); `rule` is the id of the profile's rule that fitted; `until`
    is when a limit is over, in the program's own words (`reading/questions/usage_limits.py` understands them), None if it
    says nothing of it.
    """

    state: State
    kind: InputKind | None
    detail: Detail | None
    by: EvidenceKind | None
    confidence: Confidence
    why: str
    asking: Asking | None = None
    prompt: str | None = None
    status: int | None = None
    signal: str | None = None
    rule: str | None = None
    until: str | None = None


class Situation(Value):
    """`looks` are at the innermost terminal that counts, `now` and `before` (newest first) what the kernel says there;
    `blinked`: `now` is an earlier look, because the program woke only for a moment; `prompt` and `continuation` are the
    profile's rules that fit."""

    evidence: Evidence
    profile: Profile | None
    look: Look
    looks: tuple[Look, ...]
    foreground: Foreground | None
    earlier_foregrounds: tuple[Foreground | None, ...]
    blinked: bool
    activity: Activity
    text: ScreenText
    prompt: RuleMatch | None
    continuation: RuleMatch | None

    @property
    def quiet(self) -> float:
        """Seconds since the last output, at least."""
        return self.activity.quiet

    @property
    def quiet_known(self) -> bool:
        """Whether `quiet` is since the last output, and not only since the first look."""
        return self.activity.quiet_known

    @property
    def unmoved(self) -> float:
        """Seconds since which nothing happened at the terminal, as far as looks back saw it."""
        newest = self.evidence.last
        first = newest
        for look in reversed(self.evidence.looks[:-1]):
            if not is_unmoved(look, newest):
                break
            first = look
        return newest.at - first.at

    @property
    def at_prompt(self) -> bool:
        """A prompt of the profile fits, for a command or for more of one."""
        return bool(self.prompt or self.continuation)

    @property
    def one_look(self) -> bool:
        """There is nothing to compare with."""
        return all(foreground is None for foreground in self.earlier_foregrounds)

    @property
    def kernel_lost(self) -> bool:
        """The kernel told of the program before, and not now: it is about to end."""
        return self.foreground is None and (self.evidence.proc != NONE or any(self.earlier_foregrounds))

    @property
    def turn_ended(self) -> bool:
        """The last thing the program told of its turn is its end."""
        return self.look.hook is not None and self.look.hook.means in (EventKind.STOP, EventKind.FAILURE)

    @property
    def ttys(self) -> tuple[Tty | None, ...]:
        """The settings of the terminal at the last two looks, newest first."""
        return tuple(look.kernel.tty if look.kernel else None for look in self.looks[:-3:-1])

    @property
    def tty(self) -> Tty | None:
        return self.ttys[0]

    @property
    def raw(self) -> bool | None:
        """Programs get keys, not lines; None if unknown."""
        return None if self.tty is None else not self.tty.canonical

    @property
    def hides_input(self) -> bool:
        """The terminal takes whole lines and shows nothing of them."""
        return self.tty is not None and self.tty.canonical and not self.tty.echo

    @property
    def full_screen(self) -> bool:
        """The program draws a whole screen: its cursor stands where it happens to, or does not show."""
        return self.look.alternate or not self.look.visible

    @property
    def busy_detail(self) -> Detail:
        """The detail of a busy program by its pace and its use of the processor."""
        if (self.quiet_known and self.activity.quiet < 0.5) or self.activity.animated:
            return Detail.PRINTING
        return Detail.COMPUTING if self.foreground is not None and self.foreground.wait is RUNNING else Detail.SILENT

    @property
    def settle(self) -> float:
        """The least quiet, in seconds, that the profile wants before an event loop counts as idle."""
        return (self.profile and self.profile.settle) or 0.0

    @property
    def wait_description(self) -> str:
        """How the program waits, in words."""
        foreground = self.foreground
        if foreground is None:
            return "no evidence from the kernel"
        if foreground.remote_wrapper:
            return f"behind {foreground.remote_wrapper}"
        if foreground.wait is READING:
            return "blocked in read"
        if foreground.wait is POLLING:
            only = " only" if foreground.alone else ""
            return f"waits{only} for the terminal ({foreground.call.partition('.')[0]})"
        return f"{foreground.name} sleeps" if foreground.by_ps else "its process cannot be inspected"

    @property
    def waiter_quiet(self) -> float:
        """Seconds since the last output that can be of who waits now: it has woken since the look before that output."""
        waiter = self.foreground.waiters[0] if self.foreground and self.foreground.waiters else None
        if waiter is None or not waiter.thread.switches:
            return self.activity.quiet
        first = self.look
        for look in reversed(self.looks):
            if tty_waits.count_switches(look.kernel, waiter) != waiter.thread.switches:
                break
            first = look
        return max(self.activity.quiet, self.look.at - first.at)

    def busy(
        self,
        why: str,
        detail: Detail | None = None,
        *,
        by: EvidenceKind = EvidenceKind.KERNEL,
        confidence: Confidence = Confidence.GUESS,
    ) -> Verdict:
        """The program works; input would not be taken now."""
        return Verdict(State.BUSY, None, detail or self.busy_detail, by, confidence, why)

    def processor_share(self, pid: int | None = None, seconds: float = TIMING.judging.used_seconds) -> float:
        """How much of a processor the program used in the last half second, 1.0 for one whole."""
        if self.foreground is None:
            return 0.0
        near = [look for look in self.looks[:-1] if self.look.at - look.at <= seconds and look.kernel]
        if not near or self.look.at - near[0].at < seconds / 3:
            return 0.0
        newest = tty_waits.assess_foreground(self.looks[-1].kernel)
        return tty_waits.processor_share(
            tty_waits.assess_foreground(near[0].kernel), newest or self.foreground, self.look.at - near[0].at, pid
        )

    def computes(self, pid: int, least: float) -> bool:
        """Whether a program used so much of a processor, and has not stopped a moment ago."""
        return (
            self.processor_share(pid) >= least
            and self.processor_share(pid, TIMING.judging.used_recently_seconds) >= least
        )


def build_situation(evidence: Evidence, profile: Profile | None) -> Situation:
    """Everything the rules look at. ValueError without a look."""
    if not evidence.looks:
        raise ValueError("there is no observation to judge")
    looks = _inside(evidence.looks, profile)
    recent = [tty_waits.assess_foreground(look.kernel) for look in looks[:-5:-1]]
    foreground, blinked = _or_blinked(recent, looks)
    text = patterns.read_screen(looks[-1])
    prompts = profile if profile and _prompts(profile, foreground) else None
    return Situation(
        evidence=evidence,
        profile=profile,
        look=looks[-1],
        looks=looks,
        foreground=foreground,
        earlier_foregrounds=tuple(recent[1:]),
        blinked=blinked,
        activity=measure_activity(looks),
        text=text,
        prompt=_prompt(prompts, text, visible=looks[-1].visible) if prompts else None,
        continuation=patterns.find_match(prompts.continuation, text) if prompts else None,
    )


def _prompts(profile: Profile, foreground: Foreground | None) -> bool:
    """Whether a prompt of the profile would be one of the program that waits: a shell's are not of what it runs."""
    if foreground is None or foreground.remote_wrapper or programs.is_shell(foreground.name):
        return True
    if not (foreground.waits or foreground.by_ps):
        return True
    return not any(programs.is_shell(name) for name in profile.foreground)


def _prompt(profile: Profile, text: ScreenText, *, visible: bool) -> RuleMatch | None:
    """The rule of a prompt that fits; the marked row of a menu is none, though an agent may draw both with one sign."""
    match = patterns.find_match(profile.prompt, text)
    if match is None or match.rule.detail != Detail.AGENT or not patterns.counts_options(match):
        return match
    from tmuxctl.reading.questions import choices

    rows = match.region[match.row_start :].split("\n")
    return None if choices.is_menu(rows, text, visible=visible) else match


def _inside(looks: tuple[Look, ...], profile: Profile | None) -> tuple[Look, ...]:
    newest = looks[-1]
    if newest.kernel is None or newest.kernel.inner is None:
        return looks
    own = (*profile.foreground, *profile.argv0) if profile else ()
    inner = tty_waits.enter_inner_terminals([look.kernel for look in looks], alternate=newest.alternate, own=own)
    return tuple(look._replace(kernel=found) for look, found in zip(looks, inner, strict=True))


def _or_blinked(recent: Sequence[Foreground | None], looks: Sequence[Look]) -> tuple[Foreground | None, bool]:
    """What the kernel says now. An event loop that waited in two of the three looks before still does, though it has just
    woken: unless it waited without a timeout for nothing else, or a process is new. On the alternate screen a program that
    reads may wake to draw, too."""
    foreground, before = recent[0], recent[1:]
    if foreground is None or foreground.wait not in (RUNNING, NOT_WAITING):
        return foreground, False
    near = [
        one
        for one, look in zip(before, looks[-2:-5:-1], strict=False)
        if one is not None and looks[-1].at - look.at <= TIMING.judging.blink_seconds
    ]
    alternate = looks[-1].alternate
    polled = [one for one in near if (one.wait is POLLING and not one.alone) or (one.wait is READING and alternate)]
    if len(polled) < 2:
        return foreground, False
    pids = {one.pid for one in foreground.programs}
    known = {one.pid for one in near[-1].programs}
    if polled[0].waiters and polled[0].waiters[0].program.pid not in pids:
        return foreground, False
    return (polled[0], True) if pids <= known else (foreground, False)


# The verdicts


def unknown(why: str) -> Verdict:
    """Quiet, and no sign either way."""
    return Verdict(State.UNKNOWN, None, None, EvidenceKind.SETTLE, Confidence.GUESS, why)


def idle(
    situation: Situation,
    kind: InputKind,
    detail: Detail | None,
    how: str,
    *,
    by: EvidenceKind = EvidenceKind.KERNEL,
    confidence: Confidence = Confidence.LIKELY,
) -> Verdict:
    """The program takes input; `how` says how that is known."""
    prompt = None if kind.traits.whole_screen else patterns.extract_prompt(situation.text.left)
    rule = situation.continuation if kind is InputKind.CONTINUATION else situation.prompt
    at_prompt = kind in (InputKind.PROMPT, InputKind.CONTINUATION)
    shown = f'{kind} "{prompt[-60:]}"' if prompt else kind
    return Verdict(
        State.IDLE,
        kind,
        detail if at_prompt else None,
        by,
        confidence,
        f"{shown}, {how}",
        prompt=prompt,
        rule=rule.rule.id if rule and at_prompt else None,
    )


def asking(
    question: Asking,
    how: str,
    *,
    by: EvidenceKind = EvidenceKind.ASKING_MARK,
    confidence: Confidence = Confidence.LIKELY,
    rule: str | None = None,
) -> Verdict:
    """The program wants a decision."""
    text = f' "{question.question[:80]}"' if question.question and question.kind.traits.quoted else ""
    return Verdict(
        State.ASKING, question.kind, None, by, confidence, f"{question.kind}{text}, {how}", asking=question, rule=rule
    )
