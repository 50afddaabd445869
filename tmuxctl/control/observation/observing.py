"""Knowing what a session's program does: looks taken by terminal/, judged by reading/, kept for the next process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl import evidence as evidences
from tmuxctl.control.observation import wanting
from tmuxctl.control.observation.observer import WINDOW_SECONDS, Observer
from tmuxctl.control.sessions import finding, summaries
from tmuxctl.control.sessions.finding import cursor
from tmuxctl.control.sessions.summaries import pane_detail, status_of, summary
from tmuxctl.errors import TmuxctlError
from tmuxctl.evidence import Kernel, Look
from tmuxctl.model import Confidence, Session, State
from tmuxctl.operations import current
from tmuxctl.reading.state.judging import Verdict
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.panes.captures import Capture, captures
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.journal import JournalExtent
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Probe, read_object
from tmuxctl.untrusted import to_record
from tmuxctl.value import changed
from tmuxctl.vocabulary import Detail, EvidenceKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.reading.state.judging import Verdict


SETTLED = (State.IDLE, State.ASKING)

AGAIN_SECONDS = 0.03
"""The pause before the look that confirms another."""

CONFIRM_SECONDS = 0.025
"""So long a state must have been seen for a second look to confirm it."""

MOMENT_SECONDS = 0.4
"""How long a command that only tells a state looks at it, if the first looks do not agree."""

LIVELY_SECONDS = 0.35
"""So long after output the next look follows soon."""

PATIENCE = 4
"""A silent program is looked at again when it has been silent a quarter longer."""

RARELY_SECONDS = 3.0
"""The longest pause between two looks at a program that works and prints nothing."""

FLOOD_SECONDS = 0.1
"""The pause between two looks at a program that prints without end."""

TAKEN_SECONDS = 0.35
"""After so long an input counts as taken though nothing showed it (a program need not echo or answer)."""

RECENT_SECONDS = 1.0
"""A look of another process within the last second confirms ours."""

UNSEEN = Verdict(State.UNKNOWN, None, None, None, Confidence.GUESS, "not looked at yet")

TAKING = Verdict(
    State.BUSY, None, Detail.SILENT, EvidenceKind.KERNEL, Confidence.LIKELY, "what was typed has not been taken yet"
)

START_SECONDS = 30.0
"""How long a new program is waited for, if neither its profile nor the settings say."""

BUSY_SECONDS = 2.0
"""After so long a new program that works is left to it."""

KEPT_LOOKS = 12
"""How many looks are left for the next process."""


class ObservedState(NamedTuple):
    """A state, the look it was judged by, the name of the profile, None if it was judged without, and what is wanted."""

    verdict: Verdict
    look: Look
    pane: Pane
    profile: str | None
    wants: str | None = None


def observe(
    machine: Machine, pane: Pane, given: LastInput | None = None, *, moment: float = MOMENT_SECONDS
) -> ObservedState:
    """The state at this moment: looked at until two looks agree, for at most `moment` seconds (0: one look).

    `given` is the last input. What another process saw just before counts, and what is seen here is left for the next.
    """
    steady = StabilityTracker(machine, Observer(machine, pane), given)
    steady.watch(moment)
    return steady.observed()


def observe_many(machine: Machine, panes: Sequence[Pane]) -> dict[str, ObservedState]:
    """The states of many living sessions by one look at each, by id. A screen that was seen before and has not changed
    since is not asked for again."""
    watched = [Observer(machine, pane) for pane in panes]
    extents = [one.journal.extent() for one in watched]
    probes = machine.transport.probe([(pane.pid, pane.tty) for pane in panes])
    before = [_left(one) for one in watched]
    known = {
        one.pane.id: Capture(one.pane, left[-1].title, left[-1].screen.encode(), b"", "-")
        for one, extent, left in zip(watched, extents, before, strict=True)
        if left and left[-1].journal == extent.end and (left[-1].cols, left[-1].rows) == (one.pane.cols, one.pane.rows)
    }
    asked = [pane for pane in panes if pane.id not in known]
    drawn = known | {one.pane.id: one for one in (captures(machine.transport, asked) if asked else ())}
    seen = {}
    for one, extent, probe in zip(watched, extents, probes, strict=True):
        if one.pane.id not in drawn:
            continue
        verdict, look = _by_one_look(machine, one, extent, probe, drawn[one.pane.id])
        if one.pane.id not in known:
            leave(one, verdict)
        seen[one.pane.id] = ObservedState(verdict, look, one.pane, one.applied, wanting.of(one, verdict))
    return seen


def _by_one_look(
    machine: Machine, watched: Observer, extent: JournalExtent, probe: Probe, drawn: Capture
) -> tuple[Verdict, Look]:
    """The state by a look that was put together elsewhere; what was just typed must have been taken here too."""
    steady = StabilityTracker(machine, watched, LastInput.parse(drawn.given))
    look = watched.see(extent, probe, drawn)
    verdict = watched.verdict()
    return (verdict if verdict.state not in SETTLED or steady.arrived(look) else TAKING), look


def observe_captured(machine: Machine, drawn: Capture) -> Verdict:
    """The state by one look beside a screen that was captured just now."""
    watched = Observer(machine, drawn.pane)
    extent = watched.journal.extent()
    probe = machine.transport.probe([(drawn.pane.pid, drawn.pane.tty)])[0]
    return _by_one_look(machine, watched, extent, probe, drawn)[0]


def ready(machine: Machine, session: Session) -> Session:
    """A session just made, once its program waits, asks, has ended, or has plainly been busy for two seconds."""
    pane, given = finding.find_with_input(machine, session.name)
    if pane.id != session.id:
        return session
    if pane.dead:
        return summaries.summary(pane, session.cursor)
    steady = StabilityTracker(machine, Observer(machine, pane), LastInput.parse(given))
    profile = steady.observer.own
    patience = (profile and profile.start_timeout) or machine.settings.wait_timeout or START_SECONDS
    began = time.monotonic()
    deadline = began + (current().left(patience) or 0.0)
    busy: float | None = None
    watch = machine.transport.watch(steady.observer.folders, pane.pid)
    try:
        while not steady.look() or steady.verdict.state not in (*SETTLED, State.EXITED):
            moment = time.monotonic()
            settled = steady.verdict.state in SETTLED
            busy = None if settled or _is_starting(steady) else busy or moment
            if moment > deadline or (busy and moment - busy > BUSY_SECONDS):
                break
            current().check()
            watch.wait(min(steady.due(), BUSY_SECONDS / 4))
            time.sleep(steady.rested())
    finally:
        watch.close()
    steady.leave()
    return known_state(steady.observed())


def _is_starting(steady: StabilityTracker) -> bool:
    """Whether a program is only starting, and its profile knows how long that may take."""
    if not (steady.observer.own and steady.observer.own.start_timeout):
        return False
    # a program that has drawn nothing yet has not begun
    blank = not steady.newest.screen.strip()
    return steady.verdict.state is State.STARTING or (blank and steady.verdict.state is State.UNKNOWN)


class StabilityTracker:
    """A state that holds: what was typed has been taken, and two looks in a row agree.

    A program that was just given something seems to wait until it begins with it: so after an input, waiting counts
    only once something shows that the input arrived.
    """

    def __init__(self, machine: Machine, observer: Observer, given: LastInput | None) -> None:
        self.machine, self.observer, self.given = machine, observer, given
        self.verdict = UNSEEN
        self.holds = False
        self.readers: dict[tuple[int, int], int] | None = None
        """How often each thread had slept before the input, where this process looked then."""
        self.worked = False
        """Since the last input the program was seen at work by its own sign."""
        self.deaf = False
        """Since the last input nobody listened to the terminal for a while."""
        self._taken = given is None
        self._looked = self._grown = self._began = self._since = time.monotonic()
        self._journal = -1

    @property
    def newest(self) -> Look:
        """What was seen last, since the last input."""
        return self.observer.looks[-1]

    def look(self) -> bool:
        """Look once; True if what `verdict` says now holds."""
        earlier = self.observer.looks[-1] if self.observer.looks else None
        look = self.observer.look()
        self._looked = time.monotonic()
        if earlier and self.holds and self._unmoved(earlier, look):
            return True
        if look.journal != self._journal:
            # before the first look it may have been silent for long, or for ever
            silent = (LIVELY_SECONDS if look.quiet is None else look.quiet) if self._journal < 0 else 0.0
            self._journal, self._grown = look.journal, self._looked - silent
        self._taken = self._taken or self.arrived(look)
        before, self.verdict = self.verdict, self.observer.verdict()
        self.worked = self.worked or (self.verdict.state is State.BUSY and self.verdict.by is EvidenceKind.BUSY_MARK)
        self.deaf = self.deaf or self._nobody(before)
        if certain(self.verdict) and (self._taken or self.verdict.state is State.EXITED):
            self.holds = True
        elif self.verdict.state in SETTLED and not self._taken:
            self.verdict, self.holds = TAKING, False
        else:
            if not same(before, self.verdict):
                self._since = self._looked
            # what is in flight between program, tmux and journal needs a moment, however often it is looked at
            self.holds = self._looked - self._since >= CONFIRM_SECONDS
        return self.holds

    def _nobody(self, before: Verdict) -> bool:
        """Two looks in a row saw that nobody listens."""
        pair = (before, self.verdict)
        return all(
            one.state is State.BUSY and one.by is EvidenceKind.KERNEL and one.confidence is Confidence.SURE
            for one in pair
        )

    def watch(self, moment: float = MOMENT_SECONDS) -> None:
        """Look until the state holds, for at most `moment` seconds (0: once), and leave what was seen for the next."""
        self.recall()
        began = time.monotonic()
        while not self.look() and time.monotonic() - began < moment:
            time.sleep(AGAIN_SECONDS)
        self.leave()

    def typed(self, given: LastInput | None, readers: dict[tuple[int, int], int] | None) -> None:
        """Something was typed just now: what was seen before says nothing about what comes."""
        self.given, self.readers = given, readers
        self.observer.forget()
        self.verdict, self.holds, self._taken = UNSEEN, False, given is None
        self.worked = self.deaf = False
        self._grown = self._began = time.monotonic()

    def stir(self) -> None:
        """Something happened, though perhaps nothing was printed: the next looks follow soon."""
        self._grown = time.monotonic()

    def due(self) -> float:
        """Seconds until the next look is worth its cost, if nothing happens before: soon after something happened, then
        less and less often."""
        silent = self._looked - self._stirred()
        if (self.verdict.state in SETTLED and not self.holds) or silent < LIVELY_SECONDS:
            pause = AGAIN_SECONDS
        else:
            # a silent end of a long computation is worth less haste than that of a short one
            pause = min(RARELY_SECONDS, max(AGAIN_SECONDS, silent / PATIENCE))
        return max(0.0, self._looked + pause - time.monotonic())

    def _stirred(self) -> float:
        """When something last happened: it printed, or was given something."""
        given = self.given.at - self.observer.looks[-1].at + self._looked if self.given and self.observer.looks else 0.0
        return max(self._grown, given)

    def early(self) -> bool:
        """True if nothing was printed or told since the last look, and the next one is not due."""
        told = self.observer.events is not None and self.observer.events.news()
        return self.due() > 0.001 and self.observer.journal.end() == self._journal and not told

    def rested(self) -> float:
        """Seconds until another look may be taken at all: output may come without end."""
        pause = AGAIN_SECONDS if not self.holds or self._looked - self._began < 1.0 else FLOOD_SECONDS
        return max(0.0, self._looked + pause - time.monotonic())

    def _unmoved(self, earlier: Look, look: Look) -> bool:
        """Nobody waited for the terminal, and since then not one thread has woken: there is nothing to judge anew."""
        certain = self.verdict.state is State.BUSY and self.verdict.confidence is Confidence.SURE
        return certain and look.journal == earlier.journal and _still(look.kernel) == _still(earlier.kernel)

    def arrived(self, look: Look) -> bool:
        """Whether the last input reached the program, as far as this look can tell."""
        given = self.given
        if given is None or look.hook is not None or look.at - given.at > TAKEN_SECONDS:
            return True
        if look.kernel and look.kernel.tty and look.kernel.tty.unread:
            return False
        if self.observer.at_prompt(given.offset):
            # a marked shell says itself when it begins with a line
            return bool(look.mark and look.mark.offset >= given.offset)
        moved = self.readers is None or (look.kernel is not None and readers(look.kernel) != self.readers)
        if given.echo == "none":
            return look.journal > given.offset or (moved and self.readers is not None)
        # the terminal echoes before the program reads; a program that edits its line echoes itself
        return look.journal > given.offset and (moved or given.echo != "tty")

    def recall(self) -> None:
        """Take in what another process left of the last seconds, as far as it saw it after the last input."""
        began = self.given.at if self.given else 0.0
        clock = self.observer.transport.clock()
        fresh = [one for one in _left(self.observer) if 0 <= clock - one.at < WINDOW_SECONDS and one.at > began]
        self.observer.recall(fresh)
        if fresh and clock - fresh[-1].at < RECENT_SECONDS:
            self.verdict = self.observer.verdict()
            self._since -= clock - fresh[-1].at

    def observed(self) -> ObservedState:
        """What was seen last."""
        watched = self.observer
        wants = wanting.of(watched, self.verdict)
        return ObservedState(self.verdict, watched.looks[-1], watched.pane, watched.applied, wants)

    def leave(self) -> None:
        """Keep the last looks in the session's folder, for the next process that asks."""
        leave(self.observer, self.verdict)


def leave(watched: Observer, verdict: Verdict) -> None:
    """Keep the last looks and their verdict in the session's folder, for the next process that asks."""
    kept = list(evidences.differences(list(watched.looks)[-KEPT_LOOKS:]))
    about = {"incarnation": watched.pane.incarnation, "state": verdict.state.value, "looks": kept}
    with suppress(TmuxctlError, OSError):
        watched.transport.put(f"{watched.folder}/{layout.LAST}", to_record(about))


def _left(watched: Observer) -> list[Look]:
    """The looks another process left of this life of the session, oldest first, however old."""
    try:
        about = read_object(watched.transport, f"{watched.folder}/{layout.LAST}")
        if about["incarnation"] != watched.pane.incarnation:
            return []
        found = [look for look in evidences.looks(about["looks"]) if not look.dead]
        return found if all(map(_whole, found)) else []
    except (TmuxctlError, OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return []


def _whole(look: Look) -> bool:
    """True if what a file said can be worked with."""
    numbers = (look.at, look.journal, look.x, look.y, look.cols, look.rows)
    return all(isinstance(one, (int, float)) for one in numbers) and all(
        isinstance(one, str) for one in (look.screen, look.title)
    )


def readers(kernel: Kernel | None) -> dict[tuple[int, int], int]:
    """How often each thread at the terminal gave up the processor: it moves when one takes what was typed."""
    found: dict[tuple[int, int], int] = {}
    while kernel is not None:
        found |= {(one.pid, thread.id): thread.switches for one in kernel.programs for thread in one.threads}
        kernel = kernel.inner
    return found


def _still(kernel: Kernel | None) -> Kernel | None:
    """Without the time it was looked at."""
    return kernel and kernel._replace(clock=None)


def certain(verdict: Verdict) -> bool:
    """True if one look is enough: the program's end, the marks of a shell, and what a program told itself."""
    return verdict.state in (State.EXITED, State.LOST) or (
        verdict.by in (EvidenceKind.SHELL_MARK, EvidenceKind.HOOK) and verdict.confidence is Confidence.SURE
    )


def same(one: Verdict, other: Verdict) -> bool:
    """True if two verdicts say the same, so that the second confirms the first."""
    ids = [verdict.asking.id if verdict.asking else None for verdict in (one, other)]
    return one.state == other.state and one.kind == other.kind and ids[0] == ids[1]


def known_state(seen: ObservedState) -> Session:
    """What is known of a session, with its state."""
    return changed(
        summary(seen.pane, cursor(seen.pane, seen.look.journal)),
        status=status_of(seen.verdict, detail=pane_detail(seen.pane)),
        profile=seen.profile,
        wants=seen.wants,
    )
