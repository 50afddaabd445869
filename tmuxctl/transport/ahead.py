"""Requests that are sent before they are asked for: what an operation asked of a machine last time is asked again at
once, so that it takes one round trip and not one for each question.

Only requests that change nothing are sent so. An answer is used for the very same request, in the same order, and never
once anything was changed by this process since, or once the operation has slept: it sees no more and nothing older than
on a machine that is near. What is not waited for, as no answer depends on it, counts as no change.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from tmuxctl import __version__
from tmuxctl.errors import TmuxctlError
from tmuxctl.state_files import write_record
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import JSON_LIMIT, parse_record, read_file
from tmuxctl.value import NamedTuple

KNOWN_MOST = 256
"""Of so many operations on sessions the requests are known: the ones that were used last."""

KEPT_MOST = 32
"""Of so many of them for later processes too."""

REQUESTS_MOST = 256
"""So many requests of an operation are known."""

SKIPPED_MOST, NEW_MOST = 8, 1
"""So many of them may be left out, or be new in a row, before the operation counts as one that goes another way."""

SHAPE_SIZE = 120
"""So many characters of a request that changes something tell which one it is."""

CHANGING = re.compile(r"[0-9a-f]{12,}|[0-9]+")
"""What is different each time in a request that changes something: ids, offsets, times."""

LONG = 1e6
"""Seconds that stand for any longer sleep."""

MARGIN = 0.002
"""Seconds by which the shell there sleeps longer than the operation did last time: no two of its sleeps are quite the same."""

E = TypeVar("E")
T = TypeVar("T")


class KnownRequest(NamedTuple):
    """A request of an operation, with a mark for each word that was made for it; whether it changes nothing, whether its answer
    may be assumed, and for how many seconds the operation slept before it. Of one that changes something its shape is kept."""

    pattern: str
    words: int
    reads: bool
    assumable: bool
    pause: float


class AssumptionFailed(Exception):
    """What an operation assumed of a machine is no longer so: nothing was changed, and it is carried out anew."""


class SentRequest(NamedTuple, Generic[E]):
    """A request that was sent ahead: so often in a row it was asked, when it was sent, how many changes came before, and for how
    many seconds the shell there sleeps before it."""

    body: str
    exchange: E
    repeats: int
    at: float
    changes: int
    pause: float


class RequestSequence(Generic[E]):
    """The requests of one operation under way, in one thread."""

    def __init__(
        self, before: Sequence[KnownRequest], begin: Callable[[str, float], E], count_changes: Callable[[], int]
    ) -> None:
        self.made: list[KnownRequest] = []
        self._before, self._place = before, 0
        self._begin, self._count_changes = begin, count_changes
        self._sent: deque[SentRequest[E]] = deque()
        self._words: deque[str] = deque()
        """Words in what was sent ahead, in the order in which they will be asked for."""
        self._given: dict[str, bool] = {}
        """Words that were made since the last request, and whether each was sent ahead."""
        self._paused, self._new = 0.0, 0
        """For how long it slept since the last request; how many requests in a row were none of the known ones."""
        first = next((place for place, known in enumerate(before) if not known.reads), 0)
        self.assumes = bool(first) and all(known.assumable for known in before[:first])
        """Whether answers are assumed that were given before, up to the first request that changes something: that is carried
        out only if each of them still holds."""
        self.assumed: list[str] = []
        """Conditions, in the language of the shell there, that are to hold."""

    def stop_assuming(self) -> None:
        """The operation begins anew, and asks for everything."""
        self.assumes, self.assumed, self.made, self._place = False, [], [], 0

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

    def pause(self, seconds: float) -> E | None:
        """The operation sleeps for so long now. Where the shell there sleeps for it, the exchange whose answer comes behind that;
        else nothing that was sent before is used."""
        self._paused = min(self._paused + seconds, LONG)
        if self._sent and self._sent[0].pause >= self._paused:
            return self._sent[0].exchange
        self._forget()
        return None

    def take(self, body: str, reads: bool, assumable: bool = False) -> E | None:
        """The exchange of this request if it was sent ahead and still holds; None if it has to be sent now."""
        now, changes = time.monotonic(), self._count_changes()
        for skipped, sent in enumerate(self._sent):
            if skipped and sent.pause:
                # what is left out came before the sleep
                break
            if reads and sent.body == body and sent.changes == changes and now - sent.at < TIMING.machine.fresh_seconds:
                for _ in range(skipped):
                    self._sent.popleft()
                if sent.repeats > 1:
                    self._sent[0] = sent._replace(repeats=sent.repeats - 1)
                else:
                    self._sent.popleft()
                self.note(body, reads, assumable)
                return sent.exchange
        self._forget()
        return None

    def follow(self, body: str, reads: bool, assumable: bool = False) -> None:
        """Note a request that was sent just now, and send those ahead that came behind it last time, up to the next change or
        sleep. Of an operation that goes another way this time each of its requests would wait for what is not wanted."""
        self.note(body, reads, assumable)
        if self._new <= NEW_MOST:
            self.send_ahead()

    def send_ahead(self) -> None:
        """Send what comes next, as it was the last time, up to the next change or sleep."""
        now, changes, slept = time.monotonic(), self._count_changes(), 0.0
        for known in self._before[self._place :]:
            slept += known.pause
            if not known.reads or slept > TIMING.machine.pause_seconds:
                return
            words = [make_word() for _ in range(known.words)]
            asked = known.pattern
            for number, word in enumerate(words):
                asked = asked.replace(_mark(number), word)
            last = self._sent[-1] if self._sent else None
            if last and last.body == asked and not known.pause:
                # asked twice in a row it has one answer
                self._sent[-1] = last._replace(repeats=last.repeats + 1)
                continue
            self._words.extend(words)
            pause = known.pause + MARGIN if known.pause else 0.0
            self._sent.append(SentRequest(asked, self._begin(asked, pause), 1, now, changes, pause))

    def note(self, body: str, reads: bool, assumable: bool = False) -> None:
        """Note a request of this operation."""
        pattern = body if reads else CHANGING.sub("#", body[:SHAPE_SIZE])
        for number, word in enumerate(self._given):
            pattern = pattern.replace(word, _mark(number))
        known = KnownRequest(pattern, len(self._given), reads, assumable, self._paused)
        self._given, self._paused = {}, 0.0
        if len(self.made) < REQUESTS_MOST:
            self.made.append(known)
        behind = range(self._place, min(len(self._before), self._place + SKIPPED_MOST))
        # what is asked once more is followed by what followed it before
        for place in (*behind, *reversed(range(self._place))):
            if self._before[place].pattern == pattern:
                self._place, self._new = place + 1, 0
                return
        self._new += 1

    def _forget(self) -> None:
        self._sent.clear()
        self._words.clear()


def make_word() -> str:
    """A word that no program can know beforehand."""
    return os.urandom(8).hex()


def _mark(number: int) -> str:
    return f"\0{number}\0"


class KnownSequences(Generic[E]):
    """The requests of operations on one machine, by what is done to which session. `begin` sends a request, before which the
    shell there sleeps for so many seconds. `file`: where they are kept for later processes."""

    def __init__(self, begin: Callable[[str, float], E], count_changes: Callable[[], int], file: str = "") -> None:
        self._file, self._loaded, self._saved = file, not file, 0
        self._begin, self._count_changes = begin, count_changes
        self._known: OrderedDict[str, Sequence[KnownRequest]] = OrderedDict()
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self._threads = threading.local()

    @property
    def current(self) -> RequestSequence[E] | None:
        """The operation under way in this thread, if its requests are to be known."""
        found: RequestSequence[E] | None = getattr(self._threads, "sequence", None)
        return found

    @contextmanager
    def operation(self, key: str) -> Iterator[RequestSequence[E]]:
        """Carry out an operation in this thread. One inside another is a part of it."""
        if self.current is not None:
            yield self.current
            return
        self._load()
        sequence = RequestSequence(self._known.get(key, ()), self._begin, self._count_changes)
        self._threads.sequence = sequence
        try:
            if not sequence.assumes:
                # what is wrong with the way there is told by the first request itself
                with suppress(TmuxctlError):
                    sequence.send_ahead()
            yield sequence
        finally:
            self._threads.sequence = None
            self._known[key] = tuple(sequence.made)
            self._known.move_to_end(key)
            while len(self._known) > KNOWN_MOST:
                self._known.popitem(last=False)

    def carry_out(self, key: str, operation: Callable[[], T]) -> T:
        """Carry out an operation. Where its answers were assumed and no condition was tested, or one does not hold, it is carried
        out anew: nothing was changed yet."""
        with self.operation(key) as sequence:
            try:
                result = operation()
                if not sequence.assumed:
                    return result
            except AssumptionFailed:
                pass
            except Exception:
                if not sequence.assumed:
                    raise
            sequence.stop_assuming()
            return operation()

    def _load(self) -> None:
        """Read once what earlier processes kept. What is damaged, or of another release, is as nothing."""
        if self._loaded:
            return
        self._loaded = True
        with suppress(OSError, TmuxctlError, ValueError, KeyError, TypeError, AttributeError):
            record = parse_record(read_file(self._file, JSON_LIMIT + 1), self._file)
            if record["release"] != __version__:
                return
            for key, requests in record["known"].items():
                self._known[key] = tuple(KnownRequest(*request) for request in requests)
            self._answers.update({body: answer.encode("latin-1") for body, answer in record["answers"].items()})
            self._saved = hash(tuple(self._known.items()))

    def save(self) -> None:
        """Keep for later processes what is known, where that has changed."""
        if not self._file or not self._known or hash(tuple(self._known.items())) == self._saved:
            return
        known = dict(list(self._known.items())[-KEPT_MOST:])
        asked = {request.pattern for requests in known.values() for request in requests if request.assumable}
        answers = {body: answer.decode("latin-1") for body, answer in self._answers.items() if body in asked}
        with suppress(OSError, TmuxctlError):
            write_record(self._file, {"release": __version__, "known": known, "answers": answers})

    def assume(self, body: str) -> bytes | None:
        """What a request was answered last time, if that may be assumed now; a condition for it is to be added."""
        sequence = self.current
        return self._answers.get(body) if sequence and sequence.assumes else None

    def keep_answer(self, body: str, answer: bytes) -> None:
        """Keep the answer to a request that may be assumed later."""
        self._answers[body] = answer
        self._answers.move_to_end(body)
        while len(self._answers) > KNOWN_MOST:
            self._answers.popitem(last=False)
