"""What the pace of the output says: how long it has been quiet, and whether something on the screen is animated.

Moments of output are merged into slots, so that the rate does not depend on how often somebody looked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tmuxctl.evidence import Look
from tmuxctl.value import Value

SLOT = 0.1
"""Seconds: output within a slot counts as one update."""

WINDOW = 2.0
"""Seconds over which the rate is taken."""

LONG_WINDOW = 3.0
"""Seconds from which the usual pause between two updates is known."""

ANIMATED = 3.5
"""Updates a second from which on somebody works: a clock or a blinking cursor makes up to three."""

ENOUGH = 4
"""Updates that show a pace before the window is full."""

SILENCE = 1.5
"""Seconds without output after which the next output is the beginning of something."""

BEGINNING = 0.7
"""Seconds: what began so short ago has not shown its pace yet."""

SETTLED = 0.3
"""Seconds of quiet that end any burst."""

BURST, BURST_WINDOW = 3, 0.6
"""So many updates within so many seconds are an animation that began just now."""

PACE = (0.6, 1.6)
"""Seconds between two updates of a program that prints about once a second."""

MERGED = 0.13
"""Seconds: output that is so close is of the same update."""


class Activity(Value):
    """`quiet`: seconds since the last output, at least; `told`: that is known, not only the time since the first look;
    `rate`: updates a second; `pause`: how long an animation may be quiet; `began`: seconds since this output began after
    silence or was first seen, None without any; `known`: seconds of history; `burst`: many updates within the last
    moment; `paced`: the last three came about one a second, and the next is not overdue."""

    quiet: float
    told: bool
    rate: float
    pause: float
    began: float | None
    known: float
    burst: bool = False
    paced: bool = False

    @property
    def animated(self) -> bool:
        """Something moves at the pace of a spinner or of output, and has not stopped."""
        return (self.burst or self.rate >= ANIMATED) and self.quiet < self.pause

    @property
    def beginning(self) -> bool:
        """Output came after silence, too short ago to tell what becomes of it."""
        return self.began is not None and self.began < BEGINNING and self.quiet < SETTLED


def activity(looks: Sequence[Look]) -> Activity:
    """What the looks (oldest first) tell of the pace of the output."""
    now, first = looks[-1], looks[0]
    found = moments(looks)
    quiet = now.quiet
    if quiet is None:
        quiet = now.at - (found[-1] if found else first.at)
    slots = _slots(found)
    run = _run(slots, first.at) or (slots if now.at - first.at < WINDOW else [])
    known = now.at - min(first.at, slots[0] if slots else first.at)
    return Activity(
        quiet=max(0.0, quiet),
        told=now.quiet is not None or bool(found),
        rate=_rate(slots, run, now.at),
        pause=_pause([at for at in run or slots if now.at - at <= LONG_WINDOW]),
        began=now.at - run[0] if run else None,
        known=known,
        burst=sum(now.at - at <= BURST_WINDOW for at in slots) >= BURST,
        paced=_paced(found, now.at),
    )


def moments(looks: Sequence[Look]) -> list[float]:
    """When output came, as far as the looks saw it: the first may be from before them."""
    first = looks[0]
    found = [first.at - first.quiet] if first.quiet is not None else []
    for one, other in pairwise(looks):
        if _moved(one, other):
            at = _moment(one, other)
            found.append(max(at, found[-1]) if found else at)
    return found


def updates_between(looks: Sequence[Look], waiting: Callable[[Look], bool]) -> int:
    """In how many slots of the last two seconds output came between two looks that both saw the program waiting."""
    near = [look for look in looks if looks[-1].at - look.at <= WINDOW]
    seen = [waiting(look) for look in near]
    pairs = zip(pairwise(near), pairwise(seen), strict=True)
    return len(_slots([_moment(*two) for two, both in pairs if all(both) and _moved(*two)]))


def _moved(one: Look, other: Look) -> bool:
    """Whether something was printed between two looks; a pane without a journal shows it by its screen only."""
    if one.journal or other.journal:
        return one.journal != other.journal
    return (one.screen, one.x, one.y, one.title) != (other.screen, other.x, other.y, other.title)


def _moment(one: Look, other: Look) -> float:
    """When the output came that the later look saw first: what is told counts, a look takes a while itself."""
    return one.at + (other.at - one.at) / 2 if other.quiet is None else other.at - other.quiet


def _slots(found: Sequence[float]) -> list[float]:
    slots: list[float] = []
    for at in found:
        if not slots or at - slots[-1] >= SLOT:
            slots.append(at)
    return slots


def _run(slots: Sequence[float], first: float) -> list[float]:
    """The updates since the last silence; none where nobody saw one."""
    begin = None
    before = None
    for index, at in enumerate(slots):
        quiet_before = at - before if before is not None else at - first
        if quiet_before >= SILENCE:
            begin = index
        before = at
    return list(slots[begin:]) if begin is not None else []


def _rate(slots: Sequence[float], begun: Sequence[float], now: float) -> float:
    """Updates a second: over the window, or since they began, where that is shorter and enough came to tell."""
    recent = [at for at in slots if now - at <= WINDOW]
    since = [at for at in begun if now - at <= WINDOW]
    rate = len(recent) / WINDOW
    if len(since) >= ENOUGH:
        rate = max(rate, (len(since) - 1) / (since[-1] - since[0]))
    return rate


def _paced(found: Sequence[float], now: float) -> bool:
    updates: list[float] = []
    end = -MERGED
    for at in found:
        if not updates or at - end > MERGED:
            updates.append(at)
        end = at
    gaps = [later - earlier for earlier, later in pairwise(updates[-3:])]
    return len(gaps) == 2 and all(PACE[0] <= gap <= PACE[1] for gap in gaps) and now - end < PACE[1] * max(gaps)


def _pause(slots: Sequence[float]) -> float:
    """Three times the pause that nine of ten updates keep, within reason."""
    gaps = sorted(later - earlier for earlier, later in pairwise(slots))
    usual = gaps[int(len(gaps) * 0.9)] if gaps else SLOT
    return min(1.5, max(SETTLED, 3 * usual))
