"""Questions a program asks: which one stands now, how it is answered, and which option a policy chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tmuxctl.control.input import sending
from tmuxctl.control.sessions import finding, summaries
from tmuxctl.errors import Conflict, Usage
from tmuxctl.model import State
from tmuxctl.operations import current
from tmuxctl.results import Asking, Decided, Option
from tmuxctl.terminal.input.paste import LastInput, ended_error
from tmuxctl.terminal.tmux.lease import LeaseHolder
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.vocabulary import EvidenceKind, InputKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.observing import StabilityTracker
    from tmuxctl.reading.state.judging import Verdict

ALLOW = ("allow", "yes", "y", "ok", "continue")
DENY = ("deny", "no", "n", "cancel", "quit")
ANY = ("allow", "deny")
"""Decisions that stand alone, for any question."""
STOP = "stop"

ARROWS = frozenset(("Up", "Down", "Left", "Right"))
"""Keys that move the mark of a menu."""


def decide(
    machine: Machine,
    session: str,
    option: str | None,
    *,
    id: str | None,
    secret: bytes | None,
    wait: bool = False,
    timeout: float | None = None,
) -> Decided:
    """Answer the question that stands; without an answer return it. With `wait` the state returned is the one in which the
    program wants input again, or has ended; else the one in which it took the answer.

    Raises Conflict `no_question`, `other_question` if another has taken its place, `secret_wanted` if a secret would show,
    Usage `bad_option` for an answer it does not know, Exited if the program has ended.
    """
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.control.observation.observing import StabilityTracker

    pane, remembered = finding.find_with_input(machine, session)
    if pane.dead:
        raise ended_error(pane)
    tracker = StabilityTracker(machine, Observer(machine, pane), LastInput.parse(remembered))
    tracker.load_looks()
    asking = _await_question(tracker, id)
    if option is None and secret is None:
        return _build_decided(tracker, asking, None)
    # each decision is a writer of its own: of two at once the second observes again before it answers
    holder = machine.new_holder()
    with sending.hold_lease(machine, tracker.observer.pane, holder):
        while not sending.is_untouched(machine, tracker):
            asking = _await_question(tracker, id or asking.id)
        chosen = give_answer(machine, tracker.observer.pane, asking, option, secret, holder)
    _, remembered = finding.find_with_input(machine, tracker.observer.pane.name)
    tracker.note_input(LastInput.parse(remembered), None)
    _observe_until_taken(tracker, asking)
    if wait:
        return _await_next_state(machine, tracker, asking, chosen, timeout)
    tracker.save_looks()
    return _build_decided(tracker, asking, chosen)


def _await_question(tracker: StabilityTracker, id: str | None) -> Asking:
    """The question that stands now."""
    began = tracker.clock.monotonic()
    while not tracker.observe() and tracker.clock.monotonic() - began < 1.0:
        tracker.clock.sleep(tracker.seconds_until_due())
    # a program that draws a clock or a spinner beside its question is busy in some looks
    while (
        tracker.verdict.by is EvidenceKind.KERNEL
        and _shows_question(tracker)
        and tracker.clock.monotonic() - began < tracker.machine.timing.input.question_gone_seconds
    ):
        tracker.clock.sleep(tracker.seconds_until_due())
        tracker.observe()
    verdict, name = tracker.verdict, tracker.observer.pane.name
    if verdict.state is State.EXITED:
        raise ended_error(tracker.observer.pane)
    if verdict.state is not State.ASKING or verdict.asking is None:
        hint = f"tmuxctl wait {name} --asking"
        if verdict.state is State.IDLE and verdict.kind in (InputKind.LINE, InputKind.CONTINUATION):
            hint = f"send it a line: tmuxctl send {name} TEXT"
        raise Conflict(
            f"{name} asks no question: it is {verdict.state.value} ({verdict.why})",
            reason="no_question",
            hint=hint,
        )
    if id is not None and verdict.asking.id != id:
        raise Conflict(
            f"question {ascii(id[:40])} is not open; the open one is: {verdict.asking.question}",
            reason="other_question",
            hint=f"look at it: tmuxctl decide {name}",
        )
    return verdict.asking


def _shows_question(tracker: StabilityTracker) -> bool:
    """Whether the screen shows a question that the profile knows, though the program is busy by the kernel."""
    from tmuxctl.reading.text import patterns

    observer = tracker.observer
    rules = observer.profile.asking if observer.profile else ()
    return (
        tracker.verdict.state is State.BUSY
        and patterns.find_match(rules, patterns.read_screen(observer.looks[-1])) is not None
    )


def give_answer(
    machine: Machine, pane: Pane, asking: Asking, option: str | None, secret: bytes | None, holder: LeaseHolder
) -> str:
    """Choose an option, or type a text or a password where that is the answer. Returns what was chosen."""
    name = pane.name
    if (secret is not None) != asking.kind.traits.hidden:
        if secret is not None and asking.kind.traits.free:
            raise sending.secret_would_show(name)
        if secret is not None:
            raise Conflict(
                f"{name} does not ask for a password: {asking.question}",
                reason="other_question",
                hint=f"tmuxctl decide {name}",
            )
        raise Usage(
            f"{name} asks for a password, which does not belong on a command line",
            reason="no_secret",
            hint=f"tmuxctl decide {name} --secret-from-env NAME, --secret-from-file or --secret-from-fd",
        )
    if secret is not None:
        sending.type_into(machine, pane, b"", secret=secret, hidden=asking.hidden, holder=holder)
        return "secret"
    given = option or ""
    if not given.strip():
        return _give_default(machine, pane, asking, holder)
    if found := find_option(asking, given):
        press_option(machine, pane, asking, found, holder)
        return found.id
    if asking.options:
        known = ", ".join(one.id for one in asking.options)
        raise Usage(f"{ascii(given[:40])} is not an answer to {name}", reason="bad_option", hint=f"it takes: {known}")
    sending.type_into(machine, pane, given.encode(), holder=holder)
    return given


def press_option(machine: Machine, pane: Pane, asking: Asking, option: Option, holder: LeaseHolder) -> LastInput:
    """Press the keys that choose an option; where the program marks one, the last key only once the mark is seen to stay at it.

    Claude Code takes Enter for the option that was marked before what it reads at once, and so took `Down Enter` on
    `No, exit` for trust; a later version puts the mark back a moment after the first key (measured). Conflict `not_marked`
    where the mark does not come there: nothing was chosen.
    """
    *moves, last = option.keys
    if not moves or not ARROWS.issuperset(moves):
        return sending.press_keys(machine, pane, option.keys, holder)
    moved = sending.press_keys(machine, pane, tuple(moves), holder, apart=True)
    if find_marked(asking, last) is not None:
        _move_mark(machine, pane, asking, option, holder, moved)
    return sending.press_keys(machine, pane, (last,), holder, continued=moved)


def _move_mark(
    machine: Machine, pane: Pane, asking: Asking, option: Option, holder: LeaseHolder, moved: LastInput
) -> None:
    """Wait until this option stays the marked one, and move the mark once more where it stays elsewhere."""
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.control.observation.observing import StabilityTracker

    tracker, last = StabilityTracker(machine, Observer(machine, pane), None), option.keys[-1]
    began = pressed = tracker.clock.monotonic()
    timing = machine.timing.input
    while tracker.clock.monotonic() - began < timing.question_gone_seconds:
        stays = tracker.observe()
        shown = tracker.verdict.asking
        if stays and shown and _is_same_menu(shown, asking):
            settled = tracker.clock.monotonic() - pressed > timing.mark_seconds
            if find_marked(shown, last) == option.id:
                # what is not to be given by mistake is given once the program has had time to draw its dialog again
                if settled or not asking.kind.traits.explicit:
                    return
            elif settled:
                wanted = next(one for one in shown.options if one.id == option.id)
                pressed = tracker.clock.monotonic()
                sending.press_keys(machine, pane, wanted.keys[:-1], holder, continued=moved, apart=True)
        current().check()
        tracker.clock.sleep(tracker.seconds_until_due())
    raise Conflict(
        f"{pane.name} does not mark {option.id}: nothing was chosen",
        reason="not_marked",
        hint=f"look at it: tmuxctl screen {pane.name}",
    )


def find_marked(asking: Asking, last: str) -> str | None:
    """The id of the option that is marked: the key that takes it is the only one for it."""
    return next((one.id for one in asking.options if one.keys == (last,)), None)


def _is_same_menu(shown: Asking, asking: Asking) -> bool:
    """Whether a menu is the same but for its mark, which is part of a question's id."""
    (one, other) = ([(option.id, option.label) for option in found.options] for found in (shown, asking))
    return (shown.kind, shown.question, one) == (asking.kind, asking.question, other)


def _give_default(machine: Machine, pane: Pane, asking: Asking, holder: LeaseHolder) -> str:
    """Answer with what Enter alone means; Usage where the question has options and no default."""
    if asking.options and asking.default is None:
        known = ", ".join(one.id for one in asking.options)
        raise Usage(f"{pane.name} asks a question without a default", reason="bad_option", hint=f"it takes: {known}")
    chosen = find_option(asking, asking.default) if asking.default and asking.options else None
    if chosen is None:
        sending.press_keys(machine, pane, ("Enter",), holder)
        return ""
    press_option(machine, pane, asking, chosen, holder)
    return chosen.id


def find_option(asking: Asking, answer: str) -> Option | None:
    """The option of this id, label, key or number (from 1), or the only one that allow, deny, yes or no mean."""
    exact = answer.strip()
    for option in asking.options:
        if exact in (option.id, option.label):
            return option
    for option in asking.options:
        if len(exact) == 1 and option.keys[:1] == (exact,):
            return option
    wanted = exact.casefold()
    alike = [option for option in asking.options if wanted in (option.id.casefold(), option.label.casefold())]
    if alike:
        # `j` and `J` are two answers
        return alike[0] if len(alike) == 1 else None
    if wanted.isdecimal() and 1 <= int(wanted) <= len(asking.options):
        return asking.options[int(wanted) - 1]
    words = next((group for group in (ALLOW, DENY) if wanted in group), ())
    meant = next((option for word in words for option in asking.options if option.id.casefold() == word), None)
    if meant and words is ALLOW and _advised_against(asking, meant):
        return None
    return meant


def _advised_against(asking: Asking, chosen: Option) -> bool:
    """Whether the question has more options than yes and no, and its default is another than this one. `Y` is then one of
    several options, such as to overwrite a changed file (dpkg), and is chosen only by its own name."""
    return asking.kind is not InputKind.CONFIRM and len(asking.options) > 2 and asking.default not in (None, chosen.id)


def parse_policies(texts: Sequence[str]) -> dict[str, str]:
    """`allow`, `deny`, `tool=allow,*=stop` as question to option; `*` is any question. Usage for anything else."""
    found: dict[str, str] = {}
    for text in ",".join(texts).split(",") if texts else ():
        question, equals, option = text.strip().partition("=")
        if not equals and question in ANY:
            question, option = "*", question
        if not question or not option:
            raise Usage(
                f"{ascii(text[:40])} is not a decision",
                reason="bad_decision",
                hint="--decide allow, --decide deny, or --decide KIND=OPTION, as in confirm=yes; any question: *=OPTION",
            )
        found[question] = option
    return found


def choose_by_policy(verdict: Verdict, policies: Mapping[str, str]) -> Option | None:
    """The option a policy chooses for the question that stands, by its rule, id or kind; None if it chooses none. A policy
    for any question (`*`) may deny trust, and never gives it."""
    asking = verdict.asking
    if asking is None or asking.kind.traits.hidden:
        return None
    for key in (verdict.rule, asking.id, asking.kind, "*"):
        if key is not None and key in policies:
            chosen = None if policies[key] == STOP else find_option(asking, policies[key])
            trusts = key == "*" and asking.kind.traits.explicit and chosen is not None and chosen.id != "deny"
            return None if trusts else chosen
    return None


def _await_next_state(
    machine: Machine, tracker: StabilityTracker, asking: Asking, chosen: str, timeout: float | None
) -> Decided:
    """Wait until the program wants input again, or has ended."""
    from tmuxctl.control.waiting.waits import Conditions, Waiter

    limit = current().left(machine.settings.wait_timeout if timeout is None else timeout)
    conditions = Conditions(idle=True, asking=True, exit=True)
    with Waiter(machine, tracker.observer.pane, conditions, "screen", tracker.last_input, steady=tracker) as waiter:
        end = waiter.until(limit)
    return Decided(end.session, asking, chosen, end.status, end.exit_status, end.timed_out)


def _observe_until_taken(tracker: StabilityTracker, asking: Asking) -> None:
    """Observe until this question stands no more, for a few seconds at most."""
    began = tracker.clock.monotonic()
    while tracker.clock.monotonic() - began < tracker.machine.timing.input.question_gone_seconds:
        is_stable = tracker.observe()
        now = tracker.verdict.asking
        if is_stable and not (now and now.id == asking.id):
            return
        tracker.clock.sleep(tracker.seconds_until_due())


def _build_decided(tracker: StabilityTracker, asking: Asking, chosen: str | None) -> Decided:
    status = summaries.status_of(tracker.verdict)
    return Decided(tracker.observer.pane.name, asking, chosen, status, tracker.verdict.status)
