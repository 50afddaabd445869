"""What the pace of the output says: how long it has been quiet, and whether something on the screen is animated.

Moments of output are merged into slots, so that the rate does not depend on how often the screen was observed.
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
"""Updates a second from which on a program works: a clock or a blinking cursor makes up to three."""

ENOUGH = 4
"""Updates that show a pace before the window is full."""

SILENCE = 1.5
"""Seconds without output after which the next output is the beginning of something."""

BEGINNING = 0.7
"""Seconds since output began within which its pace is not known yet."""

SETTLED = 0.3
"""Seconds of quiet that end any burst."""

BURST, BURST_WINDOW = 3, 0.6
"""Updates, and the seconds they come in, that show an animation which has just begun."""

RARE = 0.25
"""Seconds between two looks, on average, from which on they may miss updates of an animation."""

PACE = (0.6, 1.6)
"""Seconds between two updates of a program that prints about once a second."""

MERGED = 0.13
"""Seconds between two outputs of the same update, at most."""


class Activity(Value):
    """`quiet`: seconds since the last output, at least; `quiet_known`: exactly that, not only since the first look; `rate`:
    updates a second; `gap`: seconds between two updates, at most, but for one in ten; `pause`: seconds that an animation may
    be quiet; `began`: seconds since this output began after silence or was first seen, None without any; `history`: seconds
    that are known; `burst`: many updates within the last moment; `paced`:
    the last three came about one a second, and the next is not overdue."""

    quiet: float
    quiet_known: bool
    rate: float
    gap: float
    pause: float
    began: float | None
    history: float
    burst: bool = False
    paced: bool = False

    @property
    def animated(self) -> bool:
        """Something moves at the pace of a spinner or of output, and has not stopped."""
        return (self.burst or self.rate >= ANIMATED) and self.quiet < self.pause

    @property
    def overdue(self) -> float:
        """Seconds without output after which the next update, if there were one, should have come."""
        return 1.2 * self.gap

    @property
    def beginning(self) -> bool:
        """Output came after silence, too short ago to tell what becomes of it."""
        return self.began is not None and self.began < BEGINNING and self.quiet < SETTLED


def measure_activity(looks: Sequence[Look]) -> Activity:
    """What the looks (oldest first) tell of the pace of the output."""
    now, first = looks[-1], looks[0]
    moments = list_output_moments(looks)
    quiet = now.quiet
    if quiet is None:
        quiet = now.at - (moments[-1] if moments else first.at)
    slots = _merge_into_slots(moments)
    run = _list_updates_since_silence(slots, first.at) or (slots if now.at - first.at < WINDOW else [])
    history = now.at - min(first.at, slots[0] if slots else first.at)
    gap = _find_gap([at for at in run or slots if now.at - at <= LONG_WINDOW])
    return Activity(
        quiet=max(0.0, quiet),
        quiet_known=now.quiet is not None or bool(moments),
        rate=max(_find_rate(slots, run, now.at), _find_rate_between_looks(looks)),
        gap=gap,
        pause=min(1.5, 3 * gap),
        began=now.at - run[0] if run else None,
        history=history,
        burst=sum(now.at - at <= BURST_WINDOW for at in slots) >= BURST,
        paced=_is_paced(moments, now.at),
    )


def list_output_moments(looks: Sequence[Look]) -> list[float]:
    """When output came, as far as the looks saw it: the first may be from before them."""
    first = looks[0]
    moments = [first.at - first.quiet] if first.quiet is not None else []
    for earlier, later in pairwise(looks):
        if _has_output_between(earlier, later):
            at = _estimate_moment(earlier, later)
            moments.append(max(at, moments[-1]) if moments else at)
    return moments


def count_updates_while(looks: Sequence[Look], waiting: Callable[[Look], bool]) -> int:
    """In how many slots of the last two seconds output came between two looks that both saw the program waiting."""
    near = [look for look in looks if looks[-1].at - look.at <= WINDOW]
    waits = [waiting(look) for look in near]
    pairs = zip(pairwise(near), pairwise(waits), strict=True)
    moments = [_estimate_moment(*two) for two, both in pairs if all(both) and _has_output_between(*two)]
    return len(_merge_into_slots(moments))


def _has_output_between(earlier: Look, later: Look) -> bool:
    """Whether something was printed between two looks; a pane without a journal shows it by its screen only."""
    if earlier.journal or later.journal:
        return earlier.journal != later.journal
    return (earlier.screen, earlier.x, earlier.y, earlier.title) != (later.screen, later.x, later.y, later.title)


def _estimate_moment(earlier: Look, later: Look) -> float:
    """When the output came that the later look saw first: its own quiet time counts, as taking a look takes a while."""
    return earlier.at + (later.at - earlier.at) / 2 if later.quiet is None else later.at - later.quiet


def _merge_into_slots(moments: Sequence[float]) -> list[float]:
    slots: list[float] = []
    for at in moments:
        if not slots or at - slots[-1] >= SLOT:
            slots.append(at)
    return slots


def _list_updates_since_silence(slots: Sequence[float], first: float) -> list[float]:
    """The updates since the last silence; none where no silence was seen."""
    begin = None
    before = None
    for index, at in enumerate(slots):
        quiet_before = at - before if before is not None else at - first
        if quiet_before >= SILENCE:
            begin = index
        before = at
    return list(slots[begin:]) if begin is not None else []


def _find_rate(slots: Sequence[float], begun: Sequence[float], now: float) -> float:
    """Updates a second: over the window, or since they began, where that is shorter and enough came to tell."""
    recent = [at for at in slots if now - at <= WINDOW]
    since = [at for at in begun if now - at <= WINDOW]
    rate = len(recent) / WINDOW
    if len(since) >= ENOUGH:
        rate = max(rate, (len(since) - 1) / (since[-1] - since[0]))
    return rate


def _find_rate_between_looks(looks: Sequence[Look]) -> float:
    """Updates a second where looks are too rare to see each; 0 where they are not, or where one found nothing new. Of something
    that is drawn again and again, a look at any moment finds the last one half a period ago, on average."""
    pairs = [two for two in pairwise(looks) if looks[-1].at - two[1].at <= WINDOW]
    quiet = [later.quiet for earlier, later in pairs if later.quiet is not None and _has_output_between(earlier, later)]
    if len(quiet) < max(ENOUGH, len(pairs)) or pairs[-1][1].at - pairs[0][0].at < RARE * len(pairs):
        return 0.0
    return len(quiet) / (2 * max(sum(quiet), SLOT))


def _is_paced(moments: Sequence[float], now: float) -> bool:
    updates: list[float] = []
    end = -MERGED
    for at in moments:
        if not updates or at - end > MERGED:
            updates.append(at)
        end = at
    gaps = [later - earlier for earlier, later in pairwise(updates[-3:])]
    return len(gaps) == 2 and all(PACE[0] <= gap <= PACE[1] for gap in gaps) and now - end < PACE[1] * max(gaps)


def _find_gap(slots: Sequence[float]) -> float:
    gaps = sorted(later - earlier for earlier, later in pairwise(slots))
    return gaps[int(len(gaps) * 0.9)] if gaps else SLOT
