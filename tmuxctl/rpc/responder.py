"""The end of calls by name that carries them out: on the machine whose sessions are meant, for one caller.

A call is carried out once, however often it comes: what it gave is kept and given again. Each runs in a thread of its own under the
rights of its caller, until its deadline, or until the caller gives up. Of a stream no more is made than the caller has room for.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol

from tmuxctl.errors import Conflict, Denied, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.operations import NEW_NAME, Caller, Cancellation, Cancelled, Operation, find, in_pieces
from tmuxctl.results import Pieces
from tmuxctl.rpc.encoding import encode_any, encode_error
from tmuxctl.rpc.records import (
    BODY_MOST,
    CALL_MOST,
    RESULT_MOST,
    VERSION,
    VERSIONS,
    WINDOW,
    Header,
    RemoteCall,
    Send,
    id_of,
    now,
    number_of,
    other_version_error,
    parse_call,
    split_body,
)
from tmuxctl.rpc.result_room import ResultRoom
from tmuxctl.rpc.workers import Workers
from tmuxctl.timing import TIMING, RpcTiming
from tmuxctl.value import Value

SECRET_PARAMETER, INPUT_PARAMETER = "secret_from_fd", "stdin"
"""Parameters in whose place a call carries the secret itself, or what a command reads."""

OFFERED = ("Drive", "Look", "Sessions")
"""Groups of operations that are carried out for others."""

SETTING_UP = ("doctor", "profile_ls", "profile_show", "profile_check", "plugin_ls", "plugin_show")
"""Those of other groups that are."""

FILES_OF_HOST = ("export", "report", "rec", "adopt", "release")
"""Operations that write files, or drive panes of other tmux servers: they are left to the machine's own user."""

OWN_PARAMETERS = ("secret_from_env", SECRET_PARAMETER, "fix", INPUT_PARAMETER, "all_machines", "all_sockets", "machine")
"""Parameters that mean something of the machine that a call is made on."""


class CallAccess(Protocol):
    """What a caller may."""

    @property
    def rights(self) -> Sequence[str]:
        """Of operations.RIGHTS, those it has."""

    def check(self, operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with which it may call the operation; Denied or NotFound for those with which it may not."""

    def select(self, result: Any) -> Any:
        """What of a result it may know."""

    def check_followed(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """NotFound where it may not know any more what a call with these arguments, as they were checked, goes on to tell."""

    def note(self, call_id: str, operation: str, session: str | None, result: str) -> None:
        """Write down a call that changed something (`done`, or the reason of the error that ended it), or was denied."""


class ResponderLimits(Value):
    """How much a caller may take: calls at once; results that wait for it or are kept, by number and bytes, and ids of those that
    are not any more; bytes of calls that have not come whole."""

    calls: int = 64
    kept: int = 256
    kept_bytes: int = 128 << 20
    ids: int = 8192
    waiting_bytes: int = 2 * CALL_MOST


LIMITS = ResponderLimits()


class _Reply(Value):
    """One record of an answer."""

    header: Header
    body: bytes


class _Running:
    """One call, from its first record on."""

    def __init__(self, call_id: str, parts: int, digest: object) -> None:
        self.id, self.parts, self.digest = call_id, parts, digest
        self.received: dict[int, bytes] = {}
        self.is_whole = False
        self.changes = True
        self.streams = False
        self.cancelled = Cancellation()
        self.changed = threading.Condition()
        self.replies: deque[_Reply] = deque()
        self.first = self.sent = self.acknowledged = 0
        self.window = WINDOW
        self.send: Send | None = None
        self.heard = time.monotonic()
        self.ended: float | None = None
        self.bytes = 0

    @property
    def next_number(self) -> int:
        """The number of the next reply that is made."""
        return self.first + len(self.replies)

    def acknowledge(self, number: int, window: int, again: bool) -> int:
        """The caller has what is before `number`, and room for what is before `window`. Returns the bytes that are not kept any
        more."""
        freed = 0
        with self.changed:
            number = min(number, self.next_number)
            self.acknowledged = max(self.acknowledged, number)
            while self.streams and self.first < number:
                freed += len(self.replies.popleft().body)
                self.first += 1
            self.window = max(self.window, min(window, number + WINDOW))
            self.sent = max(number, self.first) if again else max(self.sent, number)
            self.changed.notify_all()
        return freed

    def due(self) -> list[_Reply]:
        """The replies that may be sent now."""
        with self.changed:
            until = min(self.window, self.next_number)
            found = [self.replies[number - self.first] for number in range(self.sent, until)]
            self.sent = max(self.sent, until)
            return found


class Responder:
    """Carries out the operations of `service` for one caller with this access. Records of that caller are given to `receive`,
    whatever brought them; a new carrier goes on where an old one broke. `room` is shared with the responders of other callers."""

    def __init__(
        self,
        service: Any,
        access: CallAccess,
        *,
        limits: ResponderLimits = LIMITS,
        timing: RpcTiming = TIMING.rpc,
        room: ResultRoom | None = None,
    ) -> None:
        self.service, self.access, self.limits, self.timing = service, access, limits, timing
        self.began = now()
        self._calls: OrderedDict[str, _Running] = OrderedDict()
        self._under_way: set[str] = set()
        self._forgotten: OrderedDict[str, None] = OrderedDict()
        """Calls that were carried out or given up, of which no more is known."""
        self._lock = threading.Lock()
        self._tidied = 0.0
        self._room, self._used = ResultRoom() if room is None else room, 0
        self._room.add(self)
        self._workers = Workers("calls", timing.idle_seconds)

    def receive(self, header: Header, body: bytes, send: Send, *, connected: float) -> None:
        """Take a record of the caller; what answers it goes through `send`, from any thread. `connected` is when the carrier that
        brings it was connected, in seconds of `records.now`. One that makes no sense is dropped."""
        with suppress(ValueError):
            call_id = id_of(header)
            if header.get("v") not in VERSIONS:
                self._send_error(call_id, send, other_version_error(header.get("v")))
            elif header.get("type") in ("call", "more") and (refusal := self._find_refusal()):
                self._send_error(call_id, send, refusal)
            elif header.get("type") == "call":
                self._take_part(call_id, header, body, send, connected)
            elif header.get("type") == "more":
                self._go_on(call_id, header, send)
            elif header.get("type") == "cancel":
                self._cancel(call_id)

    def is_new(self, header: Header, connected: float) -> bool:
        """Whether a record has a whole call that begins with it: then `receive` waits for nothing, and sends nothing."""
        with suppress(ValueError):
            return (
                header.get("type") == "call"
                and header.get("parts") == 1
                and (call_id := id_of(header)) not in self._calls
                and call_id not in self._forgotten
                and not self._may_be_known_to_another(call_id, header, connected)
                and not self._is_late(header, connected)
            )
        return False

    def close(self) -> None:
        """Cancel what is under way, and forget what is kept."""
        with self._lock:
            calls = list(self._calls.values())
            self._calls.clear()
            self._under_way.clear()
        for call in calls:
            call.cancelled.set()
            self._give_room(call, call.bytes)
            with call.changed:
                call.changed.notify_all()

    # records that come

    def _take_part(self, call_id: str, header: Header, body: bytes, send: Send, connected: float) -> None:
        parts = number_of(header, "parts", CALL_MOST // BODY_MOST + 2)
        part, window = number_of(header, "part", parts), number_of(header, "window")
        if len(body) > BODY_MOST:
            raise ValueError("a body that is too long")
        known = self._calls.get(call_id)
        if (known is None or not known.is_whole) and self._is_late(header, connected):
            raise ValueError("it comes too late")
        if time.monotonic() - self._tidied > self.timing.beat_seconds:
            self._tidy()
        if self._may_be_known_to_another(call_id, header, connected):
            self._send_unknown(call_id, send)
            return
        with self._lock:
            if call_id in self._forgotten:
                call = None
            elif (call := self._calls.get(call_id)) is None:
                if len(self._under_way) >= self.limits.calls:
                    busy = Conflict(
                        f"{self.limits.calls} calls are under way there",
                        reason="busy",
                        hint="try again when one has ended",
                    )
                    self._send_error(call_id, send, busy)
                    return
                call = self._calls[call_id] = _Running(call_id, parts, header.get("digest"))
                self._under_way.add(call_id)
        if call is None:
            self._send_error(call_id, send, _lost_result_error())
            return
        if header.get("digest") != call.digest:
            hint = "leave the id out to get a new one"
            self._send_error(call_id, send, Usage("another call has this id", reason="bad_id", hint=hint))
            return
        call.send, call.heard = send, time.monotonic()
        if call.is_whole:
            # the caller, or its carrier, repeats it
            _try_send(send, {"v": VERSION, "type": "taken", "id": call_id})
            if part == 0 and call.ended is not None:
                self._give_room(call, call.acknowledge(0, window, again=True))
                self._push(call)
            return
        if parts != call.parts:
            raise ValueError("another number of parts")
        call.received[part] = body
        if len(call.received) == parts and self._claim(call):
            call.acknowledge(0, window, again=False)
            self._workers.start(partial(self._carry_out, call))
        elif (
            sum(sum(map(len, one.received.values())) for one in list(self._calls.values())) > self.limits.waiting_bytes
        ):
            self._forget(call)

    def _may_be_known_to_another(self, call_id: str, header: Header, connected: float) -> bool:
        """Whether a process before this one may have begun with the call, which would then be carried out twice.

        `age` is how long before its carrier was connected the caller sent it first.
        """
        age = _seconds_of(header, "age")
        known = call_id in self._calls or header.get("repeatable") is True
        return not known and age > connected - self.began

    def _is_late(self, header: Header, connected: float) -> bool:
        """Whether the caller does not wait any more for a call to begin."""
        return now() > connected + _seconds_of(header, "until") + self.timing.late_seconds

    def _send_unknown(self, call_id: str, send: Send) -> None:
        seconds = round(now() - self.began, 3)
        _try_send(send, {"v": VERSION, "type": "unknown", "id": call_id, "seconds": seconds})

    def _claim(self, call: _Running) -> bool:
        """Whether it is to this thread to carry the call out, which has come whole."""
        with call.changed:
            first, call.is_whole = not call.is_whole, True
            return first

    def _go_on(self, call_id: str, header: Header, send: Send) -> None:
        with self._lock:
            call, forgotten = self._calls.get(call_id), call_id in self._forgotten
        if call is None or not call.is_whole:
            if forgotten:
                self._send_error(call_id, send, _lost_result_error())
                return
            self._send_unknown(call_id, send)
            return
        call.send, call.heard = send, time.monotonic()
        number, window = number_of(header, "next"), number_of(header, "window")
        self._give_room(call, call.acknowledge(number, window, header.get("again") is True))
        if not self._push(call):
            _try_send(send, {"v": VERSION, "type": "taken", "id": call_id})

    def _cancel(self, call_id: str) -> None:
        with self._lock:
            call = self._calls.get(call_id)
            if call is None:
                self._remember(call_id)
                return
        call.cancelled.set()
        with call.changed:
            call.changed.notify_all()

    # carrying a call out

    def _carry_out(self, running: _Running) -> None:
        text = b"".join(running.received[part] for part in range(running.parts))
        running.received.clear()
        call: RemoteCall | None = None
        check: Callable[[], None] | None = None
        try:
            call = parse_call(text)
            operation = self._find(call)
            running.changes = operation.meta.right != "read"
            with in_pieces(call.pieces) if call.pieces else _nothing(), _given_files(call) as given:
                arguments = self.access.check(operation, {**call.arguments, **call.data})
                check = partial(self.access.check_followed, operation, arguments)
                result = self._invoke(running, call, operation, {**arguments, **given})
                if isinstance(result, Iterator):
                    self._stream(running, result, check)
                    self._note(running, call, "done")
                else:
                    self._note(running, call, "done", getattr(result, "name", None))
                    if refusal := self._find_refusal(check):
                        self._reply(running, "error", encode_error(refusal))
                        return
                    self._reply(running, "result", encode_any(self.access.select(result)))
        except TmuxctlError as error:
            self._note(running, call, error.reason, is_denied=isinstance(error, Denied))
            # an error tells of the session, too
            self._reply(running, "error", encode_error(self._find_refusal(check) or error))
        except Exception as error:
            # a bug here is told there too: else the caller waits for an end that does not come
            self._reply(running, "error", encode_error(_internal_error(error)))
        finally:
            running.ended = time.monotonic()
            self._push(running)
            with self._lock:
                self._under_way.discard(running.id)
            self._tidy()

    def _note(
        self, running: _Running, call: RemoteCall | None, result: str, name: object = None, *, is_denied: bool = False
    ) -> None:
        """Have a call written down, with the session as the caller named it, or as the new one is called."""
        if call is None or not (running.changes or is_denied):
            return
        session = call.arguments.get("session", name)
        with suppress(TmuxctlError):
            self.access.note(
                running.id, call.operation[:64], session[:128] if isinstance(session, str) else None, result
            )

    def _find_refusal(self, check: Callable[[], None] | None = None) -> TmuxctlError | None:
        """Why the caller may be told nothing any more, of a call what its own `check` raises; None while it may."""
        try:
            _ = self.access.rights
            if check is not None:
                check()
        except TmuxctlError as refusal:
            return refusal
        return None

    def _find(self, call: RemoteCall) -> Operation:
        """The operation, if it is one that others may have carried out here."""
        operation: Operation = find(type(self.service), call.operation)  # type: ignore[arg-type]  # a class is hashable
        offered = operation.meta.group in OFFERED or operation.name in SETTING_UP
        if not offered or operation.name in FILES_OF_HOST:
            hint = "call it on the machine itself"
            raise Denied(f"{operation.spoken} is not carried out for other machines", reason="not_offered", hint=hint)
        given = {**call.arguments, **call.data}
        for name in OWN_PARAMETERS:
            # 0, which is a descriptor, equals False
            if given.get(name) is not None and given[name] is not False:
                raise Denied(
                    f"{operation.spoken}: {name} means what is on the machine itself",
                    reason="local_file",
                    hint="call it on the machine itself",
                )
        for parameter in operation.parameters:
            if parameter.kind.target or parameter.kind.word in (NEW_NAME, "names"):
                _refuse_addresses(given.get(parameter.name))
        return operation

    def _invoke(self, running: _Running, call: RemoteCall, operation: Operation, arguments: dict[str, Any]) -> Any:
        rights = [one for one in self.access.rights if call.rights is None or one in call.rights]
        known = {parameter.name for parameter in operation.parameters}
        if not arguments.keys() & {SECRET_PARAMETER, INPUT_PARAMETER} <= known:
            raise Usage(f"{operation.spoken} takes no secret or input", reason="bad_parameter", hint="leave it out")
        return self.service.call(
            operation.name,
            arguments,
            rights=rights,
            request_id=call.request_id,
            timeout=call.seconds,
            cancelled=running.cancelled,
            caller=None if call.owner is None else Caller(owner=call.owner),
        )

    def _stream(self, running: _Running, items: Iterator[Any], check: Callable[[], None]) -> None:
        running.streams = True
        self._reply(running, "stream", {"pieces": isinstance(items, Pieces)})
        try:
            for item in items:
                check()
                if not self._reply(running, "item", encode_any(self.access.select(item))):
                    raise Cancelled()
            self._reply(running, "end", None)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _reply(self, running: _Running, kind: str, value: Any) -> bool:
        """Make the replies that tell this, as the caller has room for them; False if it has given up."""
        text = json.dumps(value).encode()
        if len(text) > RESULT_MOST:
            error = Failed(f"a result of {len(text)} bytes is too large", reason="too_large", hint="ask for less of it")
            kind, text = "error", json.dumps(encode_error(error)).encode()
        if not running.streams and not self._find_room(running, len(text)):
            no_room = _lost_result_error() if running.changes else _no_room_error()
            kind, text = "error", json.dumps(encode_error(no_room)).encode()
            # it is small, and there are no more of them than calls
            self._take_room(running, len(text), always=True)
        bodies = list(split_body(text))
        for part, body in enumerate(bodies, 1):
            with running.changed:
                while running.streams and (len(running.replies) >= WINDOW or not self._find_room(running, len(body))):
                    if self._has_left(running):
                        return False
                    running.changed.wait(self.timing.beat_seconds)
                header = {
                    "v": VERSION,
                    "type": "reply",
                    "id": running.id,
                    "number": running.next_number,
                    "kind": kind,
                    "more": part < len(bodies),
                }
                running.replies.append(_Reply(header, body))
            if running.streams:
                self._push(running)
        return not running.cancelled.is_set()

    def _has_left(self, running: _Running) -> bool:
        return running.cancelled.is_set() or time.monotonic() - running.heard > self.timing.lost_seconds

    def _push(self, running: _Running) -> bool:
        """Send what the caller has room for; whether there was anything."""
        found, send = running.due(), running.send
        for reply in found:
            if send is not None:
                _try_send(send, reply.header, reply.body)
        return bool(found)

    # what is kept

    def _tidy(self) -> None:
        """Forget results that are old, or too many; have reading end for a caller that is not heard of any more."""
        now = time.monotonic()
        self._tidied = now
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            if now - call.heard <= self.timing.lost_seconds:
                continue
            if not call.is_whole:
                # the rest of it was lost on the way
                self._forget(call)
            elif call.ended is None and not call.changes:
                call.cancelled.set()
        ended = [call for call in calls if call.ended is not None]
        kept = self.limits.kept
        for call in reversed(ended):
            kept -= 1
            seconds = self.timing.kept_seconds if call.changes else self.timing.lost_seconds
            # who asks again and again for what it has would have everything kept
            too_many = kept < -self.limits.kept
            if too_many or (self._is_fetched(call) and (kept < 0 or now - (call.ended or now) > seconds)):
                self._forget(call)

    def _is_fetched(self, call: _Running) -> bool:
        """Whether the caller has all that a call gave, or is not heard of any more."""
        if call.ended is None:
            return False
        silent = time.monotonic() - call.heard > self.timing.silence_seconds
        return silent or call.acknowledged == call.next_number

    def _forget(self, call: _Running) -> None:
        with self._lock:
            self._calls.pop(call.id, None)
            self._under_way.discard(call.id)
            if call.is_whole and call.changes:
                self._remember(call.id)
        self._give_room(call, call.bytes)

    def _find_room(self, call: _Running, size: int) -> bool:
        """Take room for so many bytes of what a call gives; results that were fetched are forgotten for it, the oldest first, those
        of this caller before those of others. False where that is not enough."""
        while not self._take_room(call, size):
            if self.forget_fetched():
                continue
            others = self._room.list_responders()
            if self._used + size > self.limits.kept_bytes or not any(one.forget_fetched() for one in others):
                return False
        return True

    def forget_fetched(self) -> bool:
        """Forget the oldest result that its caller has, or of a caller that is not heard of any more; False if there is none."""
        with self._lock:
            found = next((one for one in self._calls.values() if one.bytes and self._is_fetched(one)), None)
        if found is not None:
            self._forget(found)
        return found is not None

    def _take_room(self, call: _Running, size: int, *, always: bool = False) -> bool:
        room = self._room
        with room.lock:
            fits = self._used + size <= self.limits.kept_bytes and room.used + size <= room.most
            if fits or always:
                self._used, room.used, call.bytes = self._used + size, room.used + size, call.bytes + size
        return fits or always

    def _give_room(self, call: _Running, size: int) -> None:
        room = self._room
        with room.lock:
            # one that was forgotten meanwhile has none any more
            size = min(size, call.bytes)
            self._used, room.used, call.bytes = self._used - size, room.used - size, call.bytes - size

    def _remember(self, call_id: str) -> None:
        self._forgotten[call_id] = None
        while len(self._forgotten) > self.limits.ids:
            self._forgotten.popitem(last=False)

    def _send_error(self, call_id: str, send: Send, error: TmuxctlError) -> None:
        _try_send(send, {"v": VERSION, "type": "failed", "id": call_id}, json.dumps(encode_error(error)).encode())


def _try_send(send: Send, header: Header, body: bytes = b"") -> None:
    # what gets lost with a carrier is asked for again through the next one
    with suppress(TmuxctlError, OSError):
        send(header, body)


def _seconds_of(header: Header, name: str) -> float:
    found = header.get(name)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not found >= 0:
        raise ValueError(f"{name} is no number of seconds")
    return found


def _refuse_addresses(names: Any) -> None:
    """NotFound for a session of yet another machine: this one connects to none for others."""
    for name in names if isinstance(names, (list, tuple)) else (names,):
        if "/" in str(name):
            hint = "name the machine that has it"
            raise NotFound(f"no session {ascii(name)[:60]}", reason="no_session", hint=hint)


def _lost_result_error() -> Unreachable:
    return Unreachable(
        "the call was carried out, or given up, and what it gave is not kept any more",
        reason="outcome_unknown",
        hint="look before you repeat it: tmuxctl log NAME",
    )


def _no_room_error() -> Conflict:
    hint = "fetch the results of the other calls, or try again later"
    return Conflict("results that were not fetched leave no room there", reason="busy", hint=hint)


def _internal_error(error: Exception) -> Failed:
    hint = "that is a fault of tmuxctl there: report it, with what tmuxctl --version says on both machines"
    return Failed(f"tmuxctl failed there: {type(error).__name__}", reason="internal", hint=hint)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _given_files(call: RemoteCall) -> Iterator[dict[str, Any]]:
    """The arguments that stand for a secret and an input that a call carries: a descriptor, and a private file."""
    given: dict[str, Any] = {}
    reads, path = -1, ""
    try:
        if call.secret is not None:
            # a pipe holds more than a secret may have; what does not fit is refused, never waited for
            reads, writes = os.pipe()
            try:
                os.set_blocking(writes, False)
                os.write(writes, call.secret)
            finally:
                os.close(writes)
            given[SECRET_PARAMETER] = reads
        if call.input is not None:
            handle, path = tempfile.mkstemp(prefix="tmuxctl-input-")
            with os.fdopen(handle, "wb") as file:
                file.write(call.input)
            given[INPUT_PARAMETER] = path
        yield given
    finally:
        if reads >= 0:
            os.close(reads)
        if path:
            os.unlink(path)
