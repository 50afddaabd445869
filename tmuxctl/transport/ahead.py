"""Requests that are sent before they are asked for: what an operation asked of a machine last time is asked again at
once, so that it takes one round trip and not one for each question.

Only requests that change nothing are sent so. An answer is used for the very same request, in the same order, and never
once anything was changed by this process since, or once the operation has slept: it sees no more and nothing older than
on a machine that is near.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from tmuxctl.timing import TIMING
from tmuxctl.value import NamedTuple

KNOWN_MOST = 256
"""Of so many operations on sessions the requests are known: the ones that were used last."""

REQUESTS_MOST = 64
"""So many requests of an operation are known."""

SKIPPED_MOST = 8
"""So many of them may be left out before the operation counts as one that goes another way."""

E = TypeVar("E")


class KnownRequest(NamedTuple):
    """A request of an operation, with a mark for each word that was made for it; whether it changes nothing, and whether the
    operation slept before it."""

    pattern: str
    words: int
    reads: bool
    after_pause: bool


class SentRequest(NamedTuple, Generic[E]):
    """A request that was sent ahead: so often in a row it was asked, when it was sent, and how many changes came before."""

    body: str
    exchange: E
    repeats: int
    at: float
    changes: int


class RequestSequence(Generic[E]):
    """The requests of one operation under way, in one thread."""

    def __init__(
        self, before: Sequence[KnownRequest], begin: Callable[[str], E], count_changes: Callable[[], int]
    ) -> None:
        self.made: list[KnownRequest] = []
        self._before, self._place = before, 0
        self._begin, self._count_changes = begin, count_changes
        self._sent: deque[SentRequest[E]] = deque()
        self._words: deque[str] = deque()
        """Words in what was sent ahead, in the order in which they will be asked for."""
        self._given: dict[str, bool] = {}
        """Words that were made since the last request, and whether each was sent ahead."""
        self._paused = False

    def make_word(self) -> str:
        """A word for the next request."""
        word = self._words.popleft() if self._words else ""
        self._given[word or make_word()] = bool(word)
        return next(reversed(self._given))

    def renew_words(self, body: str) -> tuple[str, dict[str, str]]:
        """The request with another word for each that was sent ahead in vain, by which somebody may know it already; and the new
        words by the old ones."""
        renewed = {word: make_word() for word, sent in self._given.items() if sent}
        for word, new in renewed.items():
            body = body.replace(word, new)
        return body, renewed

    def pause(self) -> None:
        """The operation sleeps now."""
        self._forget()
        self._paused = True

    def take(self, body: str, reads: bool) -> E | None:
        """The exchange of this request if it was sent ahead and still holds; None if it has to be sent now."""
        now, changes = time.monotonic(), self._count_changes()
        for skipped, sent in enumerate(self._sent):
            if reads and sent.body == body and sent.changes == changes and now - sent.at < TIMING.machine.fresh_seconds:
                for _ in range(skipped):
                    self._sent.popleft()
                if sent.repeats > 1:
                    self._sent[0] = sent._replace(repeats=sent.repeats - 1)
                else:
                    self._sent.popleft()
                self._note(body, reads)
                return sent.exchange
        self._forget()
        return None

    def follow(self, body: str, reads: bool) -> None:
        """Note a request that was sent just now, and send those ahead that came behind it last time, up to the next change or
        sleep."""
        self._note(body, reads)
        now, changes = time.monotonic(), self._count_changes()
        for known in self._before[self._place :]:
            if not known.reads or known.after_pause:
                return
            words = [make_word() for _ in range(known.words)]
            asked = known.pattern
            for number, word in enumerate(words):
                asked = asked.replace(_mark(number), word)
            last = self._sent[-1] if self._sent else None
            if last and last.body == asked:
                # asked twice in a row it has one answer
                self._sent[-1] = last._replace(repeats=last.repeats + 1)
                continue
            self._words.extend(words)
            self._sent.append(SentRequest(asked, self._begin(asked), 1, now, changes))

    def _note(self, body: str, reads: bool) -> None:
        pattern = body
        for number, word in enumerate(self._given):
            pattern = pattern.replace(word, _mark(number))
        known = KnownRequest(pattern, len(self._given), reads, self._paused)
        self._given, self._paused = {}, False
        if len(self.made) < REQUESTS_MOST:
            self.made.append(known)
        for place in range(self._place, min(len(self._before), self._place + SKIPPED_MOST)):
            if self._before[place].pattern == pattern:
                self._place = place + 1
                return

    def _forget(self) -> None:
        self._sent.clear()
        self._words.clear()


def make_word() -> str:
    """A word that no program can know beforehand."""
    return os.urandom(8).hex()


def _mark(number: int) -> str:
    return f"\0{number}\0"


class KnownSequences(Generic[E]):
    """The requests of operations on one machine, by what is done to which session. `begin` sends a request."""

    def __init__(self, begin: Callable[[str], E], count_changes: Callable[[], int]) -> None:
        self._begin, self._count_changes = begin, count_changes
        self._known: OrderedDict[str, Sequence[KnownRequest]] = OrderedDict()
        self._threads = threading.local()

    @property
    def current(self) -> RequestSequence[E] | None:
        """The operation under way in this thread, if its requests are to be known."""
        found: RequestSequence[E] | None = getattr(self._threads, "sequence", None)
        return found

    @contextmanager
    def operation(self, key: str) -> Iterator[None]:
        """Carry out an operation in this thread. One inside another is a part of it."""
        if self.current is not None:
            yield
            return
        sequence = RequestSequence(self._known.get(key, ()), self._begin, self._count_changes)
        self._threads.sequence = sequence
        try:
            yield
        finally:
            self._threads.sequence = None
            self._known[key] = tuple(sequence.made)
            self._known.move_to_end(key)
            while len(self._known) > KNOWN_MOST:
                self._known.popitem(last=False)
