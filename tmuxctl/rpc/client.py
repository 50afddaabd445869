"""The end of calls by name that asks: a machine's operations, through whatever carrier reaches it.

A carrier that breaks is made anew in the middle of a call, and the call goes on. Where nothing is heard of the machine for as long
as the caller is patient, the call ends: what changes something as `outcome_unknown`, as it may have been carried out.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tmuxctl.errors import TmuxctlError, Unreachable
from tmuxctl.operations import Call, Cancelled, current, under
from tmuxctl.results import Pieces
from tmuxctl.rpc.encoding import decode_any, decode_error
from tmuxctl.rpc.records import (
    BODY_MOST,
    RESULT_MOST,
    RESULT_VALUES,
    VERSION,
    VERSIONS,
    WINDOW,
    Carrier,
    Connect,
    Header,
    RemoteCall,
    id_of,
    now,
    number_of,
    other_version_error,
    pack_call,
    split_body,
)
from tmuxctl.timing import TIMING, RpcTiming
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value


class Patience(Value):
    """How a call bears that nothing is heard: `seconds` until it ends, or at once where it does not wait (`waits`) and the machine
    cannot be reached; whether it `changes` something, and whether it may be carried out again (`repeatable`), as it does so once by
    itself. `write_id` is told where its outcome is unknown. `answer_seconds`: how long a machine that is heard may take until it
    begins to answer, and between two parts of an answer (None: for ever)."""

    seconds: float
    waits: bool
    changes: bool
    repeatable: bool
    write_id: str
    answer_seconds: float | None = None


class _Pending:
    """A call under way, as its caller sees it."""

    def __init__(
        self, call_id: str, parts: list[bytes], digest: str, patience: Patience, deadline: float | None
    ) -> None:
        self.id, self.parts, self.digest, self.patience, self.deadline = call_id, parts, digest, patience, deadline
        self.changed = threading.Condition()
        self.next, self.told = 0, WINDOW
        """The number that is read next, and before which number the machine was told to send."""
        self.early: dict[int, tuple[Header, bytes]] = {}
        """Replies behind one that is missing."""
        self.ready: deque[tuple[Header, bytes]] = deque()
        self.taken = self.is_over = False
        self.failed: TmuxctlError | None = None
        self.repeatable = False
        self.sent: float | None = None
        """When the first record of it was sent, in seconds of `records.now`."""
        self.began = self.heard = time.monotonic()
        self.beat = self.moved = self.began

    def seconds_to_begin(self, timing: RpcTiming) -> float:
        """For how long the machine may still begin with the call: no longer than its caller waits."""
        left = self.heard + self.patience.seconds - time.monotonic()
        if self.deadline is not None:
            left = min(left, self.deadline - time.monotonic())
        return max(0.0, min(left, timing.silence_seconds))

    @property
    def window(self) -> int:
        """Before which number replies may be sent: there is room for no more."""
        return self.next - len(self.ready) + WINDOW

    def take(self, header: Header, body: bytes) -> None:
        """Take a record of the machine; what is no part of the answer is dropped."""
        with self.changed:
            self.heard = time.monotonic()
            if header.get("v") not in VERSIONS:
                self.failed = other_version_error(header.get("v"))
                self.changed.notify_all()
                return
            if header.get("type") == "failed":
                self.failed = decode_error(_parse(body))
            elif header.get("type") in ("taken", "reply"):
                self.taken = True
            if header.get("type") == "reply" and len(body) <= BODY_MOST:
                number = number_of(header, "number")
                if self.next <= number < self.window:
                    self.early[number] = (header, body)
                while self.next in self.early:
                    self.ready.append(self.early.pop(self.next))
                    self.next += 1
                    self.moved = self.heard
            self.changed.notify_all()

    def fail(self, error: TmuxctlError) -> None:
        """End the call with this."""
        with self.changed:
            self.failed = self.failed or error
            self.changed.notify_all()


class CallClient:
    """The operations of one machine. `connect` makes the carrier, at the first call and whenever one broke."""

    def __init__(self, machine: str, connect: Connect, *, timing: RpcTiming = TIMING.rpc) -> None:
        self.machine, self.timing = machine, timing
        self._connect = connect
        self._carrier: Carrier | None = None
        self.broken: TmuxctlError | None = None
        self._was_reached = False
        self._connecting, self._lock = threading.Lock(), threading.Lock()
        self._pending: dict[str, _Pending] = {}
        self._beating, self._called = False, 0.0
        self._gap = threading.Event()
        """A record is missing, or a call is to be sent again."""

    def call(
        self, call: RemoteCall, allowed: Mapping[str, type[Value]], patience: Patience, *, call_id: str | None = None
    ) -> Any:
        """What an operation gives that is called there: a value of a class that is `allowed`, by its name, None, or an iterator of
        such values, which has a `close`. The call ends when the current call is cancelled or out of time.

        Two calls with the same `call_id` are one, which is carried out once. Raises the error that ends it there, Unreachable
        where nothing is heard (`no_answer`, `outcome_unknown`, or why the machine cannot be reached), and `bad_answer` for an
        answer that makes no sense.
        """
        raw = bool(call.arguments.get("raw"))
        parts = list(split_body(pack_call(call)))
        pending = _Pending(call_id or os.urandom(8).hex(), parts, call.digest, patience, current().deadline)
        answer = _AnswerReader(self, pending, allowed, patience, raw)
        self._begin(pending, patience)
        current().wake_by(answer.wake)
        try:
            kind, value = answer.next()
            if kind == "stream":
                self.start_beating()
                answer.streams = True
                stream = _Stream(answer)
                return Pieces(stream) if isinstance(value, dict) and value.get("pieces") is True else stream
        except Cancelled:
            self._try_send({"v": VERSION, "type": "cancel", "id": pending.id}, reconnect=False)
            answer.raise_end()
            self.end(pending, cancel=True)
            raise
        except BaseException:
            self.end(pending, cancel=True)
            raise
        self.end(pending, cancel=False)
        if kind != "result":
            raise self.nonsense_error(f"{kind} before the result")
        return decode_any(value, allowed, raw=raw)

    def reach(self) -> None:
        """Make the carrier unless there is one. Raises what says why the machine cannot be reached."""
        self._reach()

    def close(self) -> None:
        """End the calls under way, and the carrier."""
        for pending in list(self._pending.values()):
            pending.fail(Unreachable(f"{self.machine}: the connection was closed", reason="closed", hint="repeat it"))
        self._drop(self._carrier)

    def end(self, pending: _Pending, *, cancel: bool) -> None:
        """Have no more of this call; `cancel`: have it end there too."""
        self._forget(pending)
        if pending.is_over:
            return
        pending.is_over = True
        if not cancel and pending.next <= 1:
            return
        header = {"v": VERSION, "type": "cancel" if cancel else "more", "id": pending.id}
        if not cancel:
            # it need not be kept any longer
            header |= {"next": pending.next, "window": pending.next}
        self._try_send(header, reconnect=False)

    def unheard_error(self, pending: _Pending, patience: Patience) -> TmuxctlError:
        """The error for a call of whose machine nothing is heard any more; the next one makes another carrier."""
        self._forget(pending)
        self._drop(self._carrier)
        why = self.broken or Unreachable(
            f"{self.machine}: no answer within {time.monotonic() - pending.began:.0f} s",
            reason="no_answer",
            hint="is it switched on, is the network there, and does tmuxctl run there?",
            machine=self.machine,
        )
        return self.unknown_error(patience) if patience.changes and pending.sent is not None else why

    def unknown_error(self, patience: Patience) -> Unreachable:
        """The error for a call that may have changed something there."""
        again = f"repeat it with the same id, and it is done once: {patience.write_id}"
        return Unreachable(
            f"{self.machine}: its answer got lost, so it is not known whether that was done",
            reason="outcome_unknown",
            hint=again if patience.repeatable else "look before you repeat it: tmuxctl log NAME",
            id=patience.write_id,
            machine=self.machine,
        )

    def nonsense_error(self, what: str) -> Unreachable:
        """The error for an answer that makes no sense."""
        return Unreachable(
            f"{self.machine}: what it answers makes no sense ({what})",
            reason="bad_answer",
            hint="does a tmuxctl of the same release run there? tmuxctl --version",
            machine=self.machine,
        )

    def _forget(self, pending: _Pending) -> None:
        with self._lock:
            self._pending.pop(pending.id, None)

    # records

    def receive(self, header: Header, body: bytes) -> None:
        """Take a record that came from the machine; one that makes no sense, or belongs to no call under way, is dropped."""
        with suppress(ValueError):
            pending = self._pending.get(id_of(header))
            if pending is None:
                return
            try:
                if header.get("type") == "unknown":
                    self._is_unknown(pending, header)
                    return
                pending.take(header, body)
                if pending.early:
                    self._note_gap()
            except TmuxctlError as error:
                pending.fail(error)

    def _is_unknown(self, pending: _Pending, header: Header) -> None:
        seconds = header.get("seconds")
        never_came = isinstance(seconds, (int, float)) and seconds > time.monotonic() - pending.began + 1.0
        with pending.changed:
            pending.heard = time.monotonic()
            again = pending.next == 0 and (pending.repeatable or (never_came and not pending.taken))
            if again:
                # at the next beat
                pending.taken, pending.beat = False, 0.0
                self._note_gap()
        if not again:
            # it runs anew there, and knows nothing of what was before
            pending.fail(Unreachable("the tmuxctl there was started anew", reason="restarted", hint="repeat it"))

    def _begin(self, pending: _Pending, patience: Patience) -> None:
        pending.repeatable = patience.repeatable or not patience.changes
        with self._lock:
            self._pending[pending.id], self._called = pending, pending.began
        try:
            self._reach()
            # silence begins now: to connect may have taken longer than a call bears it
            pending.heard = time.monotonic()
        except TmuxctlError as error:
            # one that was reached before may be back soon
            if not (patience.waits and self._was_reached and isinstance(error, Unreachable)):
                self._forget(pending)
                if patience.changes and pending.sent is not None:
                    # the beat reached it meanwhile
                    raise self.unknown_error(patience) from error
                raise
        self._send_call(pending)

    def _send_call(self, pending: _Pending) -> None:
        for part, body in enumerate(pending.parts):
            carrier = self._find_carrier()
            if carrier is None:
                return
            header = {
                "v": VERSION,
                "type": "call",
                "id": pending.id,
                "part": part,
                "parts": len(pending.parts),
                "window": pending.window,
                "digest": pending.digest,
                "repeatable": pending.repeatable,
                # whatever is sent through a carrier comes to the process that it was connected to, or to none
                "age": 0.0 if pending.sent is None else max(0.0, carrier.connected - pending.sent),
                "until": now() - carrier.connected + pending.seconds_to_begin(self.timing),
            }
            before = pending.sent
            with self._lock:
                if pending.id not in self._pending:
                    # its caller was told meanwhile that it was not done
                    return
                # whoever gives it up from here on knows that it may be done
                pending.sent = before or now()
            if not self._send(carrier, header, body):
                pending.sent = before
                return

    def ask_on(self, pending: _Pending, *, again: bool = False) -> None:
        with pending.changed:
            pending.told = pending.window
            header = {"v": VERSION, "type": "more", "id": pending.id, "next": pending.next, "window": pending.told}
        self._try_send({**header, "again": again})

    def start_beating(self) -> None:
        """Have the machine hear, from now on, that the callers of the calls under way are there. Most calls are answered before one
        is to be told that: they need no thread."""
        with self._lock:
            start, self._beating = not self._beating, True
        if start:
            threading.Thread(target=self._beat, name=f"calls-{self.machine}", daemon=True).start()

    def _note_gap(self) -> None:
        self._gap.set()
        self.start_beating()

    def _beat(self) -> None:
        """Tell the machine of each call that its caller is there, and ask for what got lost."""
        while True:
            if self._gap.wait(self._seconds_to_beat()):
                time.sleep(self.timing.gap_seconds)
                self._gap.clear()
            with self._lock:
                found = list(self._pending.values())
                if not found and time.monotonic() - self._called > self.timing.idle_seconds:
                    self._beating = False
                    return
            now = time.monotonic()
            for pending in found:
                late = bool(pending.early) and now - max(pending.moved, pending.beat) > self.timing.gap_seconds
                if now - pending.beat < self.timing.beat_seconds and not late:
                    continue
                pending.beat = now
                if not pending.taken:
                    self._send_call(pending)
                else:
                    self.ask_on(pending, again=late or now - pending.moved > self.timing.beat_seconds)

    def _seconds_to_beat(self) -> float:
        """For how long no call needs a beat: a process may have hundreds of machines, and a thread for each."""
        with self._lock:
            found = list(self._pending.values())
        timing, now = self.timing, time.monotonic()
        if any(pending.early for pending in found):
            return timing.gap_seconds
        first = min((pending.beat for pending in found), default=now)
        return max(timing.gap_seconds, first + timing.beat_seconds - now)

    # the carrier

    def _reach(self) -> Carrier:
        with self._connecting:
            if self._carrier is not None:
                return self._carrier
            made: list[Carrier] = []

            def lost() -> None:
                self._drop(made[0] if made else None)

            try:
                carrier = self._connect(self.receive, lost)
            except TmuxctlError as error:
                self.broken = error
                raise
            made.append(carrier)
            self._carrier, self.broken, self._was_reached = carrier, None, True
            return carrier

    def _try_send(self, header: Header, *, reconnect: bool = True) -> None:
        carrier = self._find_carrier() if reconnect else self._carrier
        if carrier is not None:
            self._send(carrier, header)

    def _find_carrier(self) -> Carrier | None:
        """The carrier, which is made unless there is one; None where that does not work."""
        try:
            return self._carrier or self._reach()
        except (TmuxctlError, OSError):
            return None

    def _send(self, carrier: Carrier, header: Header, body: bytes = b"") -> bool:
        try:
            carrier.send(header, body)
            return True
        except (TmuxctlError, OSError):
            self._drop(carrier)
            return False

    def _drop(self, carrier: Carrier | None) -> None:
        if carrier is None:
            return
        if self._carrier is carrier:
            self._carrier = None
        with suppress(TmuxctlError, OSError):
            carrier.close()


class _AnswerReader:
    """What a machine answers to one call, in the thread of its caller."""

    def __init__(
        self,
        client: CallClient,
        pending: _Pending,
        allowed: Mapping[str, type[Value]],
        patience: Patience,
        raw: bool,
    ) -> None:
        self.client, self.pending, self.allowed, self.patience, self.raw = client, pending, allowed, patience, raw
        self.streams = False
        deadline = current().deadline
        self._ends = None if deadline is None else deadline + client.timing.heal_seconds
        """When a machine that is heard has had its time, and as much more as a cut may take to heal."""

    def next(self) -> tuple[str, Any]:
        """The next thing that is told, with its kind; the error that ends the call there is raised."""
        kind, bodies, size = "", [], 0
        while True:
            header, body = self._next_record()
            kind = kind or str(header.get("kind"))
            size += len(body)
            if header.get("kind") != kind or size > RESULT_MOST:
                raise self.client.nonsense_error("it is too large" if size > RESULT_MOST else "mixed replies")
            bodies.append(body)
            if header.get("more") is not True:
                break
            if len(body) != BODY_MOST:
                # parts of nothing could come without end
                raise self.client.nonsense_error("a part that is too short")
        value = _parse(b"".join(bodies))
        if kind == "error":
            self.client.end(self.pending, cancel=False)
            raise decode_error(value)
        return kind, value

    def raise_end(self) -> None:
        """Of a call that was cancelled: the error that ends it there, with what was done before, if that comes in time."""
        if not self.patience.changes:
            return
        with self.pending.changed:
            self.pending.changed.wait_for(lambda: self.pending.ready, self.client.timing.cancel_seconds)
            came = bool(self.pending.ready)
        if came:
            with suppress(Unreachable), under(Call("")):
                self.next()

    def item(self, value: Any) -> Any:
        """An item of a stream."""
        return decode_any(value, self.allowed, raw=self.raw)

    def _next_record(self) -> tuple[Header, bytes]:
        pending, call = self.pending, current()
        while True:
            found, came = None, True
            with pending.changed:
                if pending.ready:
                    found = pending.ready.popleft()
                elif pending.failed is not None:
                    raise self._explained(pending.failed)
                elif self._is_over_patience():
                    raise self.client.unheard_error(pending, self.patience)
                else:
                    # Ctrl-C is heard between two steps of a sleep
                    came = pending.changed.wait(self.client.timing.step_seconds)
            if not came:
                self.client.start_beating()
            if found is not None:
                if pending.window - pending.told >= WINDOW // 2:
                    self.client.ask_on(pending)
                return found
            call.check()

    def _is_over_patience(self) -> bool:
        """Whether nothing was heard for too long; for a call that does not wait, a machine that is not reached is enough."""
        silent, broken = time.monotonic() - self.pending.heard, self.client.broken
        refused = broken is not None and not (self.patience.waits and isinstance(broken, Unreachable))
        # one that only says that it has the call
        longest = self.patience.answer_seconds
        late = longest is not None and not self.streams and time.monotonic() - self.pending.moved > longest
        late |= self._ends is not None and time.monotonic() > self._ends
        return silent > self.patience.seconds or refused or late

    def wake(self) -> None:
        """Have the caller look whether it is cancelled."""
        with self.pending.changed:
            self.pending.changed.notify_all()

    def _explained(self, error: TmuxctlError) -> TmuxctlError:
        """The error that ended the call, or that its outcome is unknown."""
        if error.reason in ("restarted", "closed") and self.patience.changes:
            return self.client.unknown_error(self.patience)
        return error


class _Stream(Iterator[Any]):
    """What an operation yields there, one by one. It ends there when it is closed here, or forgotten."""

    def __init__(self, answer: _AnswerReader) -> None:
        self._answer = answer

    def __next__(self) -> Any:
        answer = self._answer
        if answer.pending.is_over:
            raise StopIteration
        try:
            kind, value = answer.next()
            if kind == "item":
                return answer.item(value)
            answer.client.end(answer.pending, cancel=kind != "end")
        except BaseException:
            self.close()
            raise
        if kind != "end":
            raise answer.client.nonsense_error(f"{kind} in a stream")
        raise StopIteration

    def close(self) -> None:
        """Have no more of it."""
        self._answer.client.end(self._answer.pending, cancel=True)

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def _parse(text: bytes) -> Any:
    try:
        return parse_json(text, limit=RESULT_MOST, values=RESULT_VALUES, parse_constant=_refuse)
    except (ValueError, json.JSONDecodeError):
        raise Unreachable(
            "what it answers is no JSON", reason="bad_answer", hint="does a tmuxctl of the same release run there?"
        ) from None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")
