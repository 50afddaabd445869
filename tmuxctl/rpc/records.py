"""The records of a call by name: a JSON object, the header, and raw bytes, the body; version 1.

A carrier may lose, repeat, delay and reorder records, and may be cut and made anew in the middle of a call. So a call has an id,
each record that answers it a number, and the caller asks again for what does not come. Nothing else is relied on.

    from the caller
    call      id, part, parts, window, digest, age, until, repeatable; body: a part of the call as JSON (see `pack_call`).
              `digest` is the same for the same call alone. `age`: how many seconds before this carrier was connected it was
              first sent. A machine whose process is younger does not know whether an earlier one carried it out, and does so
              only if it is `repeatable`. `until`: for how many seconds after that moment the call may begin; a record that
              comes later is dropped
    more      id, next, window, again: what is before number `next` has come, and what is before `window` may be sent;
              `again`: what was sent from `next` on is asked for again
    cancel    id: the caller has given up

    from the machine
    taken     id: the call has come, and goes on
    reply     id, number, kind, more; body: a part of what `kind` says, as JSON; `more`: the next number goes on with it.
              Kinds: `stream` (what follows are items), `item`, `result`, `error`, `end` (of a stream)
    unknown   id, seconds: there is no such call, and has been none for so many seconds
    failed    id; body: the error for which the call is not carried out, or nothing more of it is told, as JSON

Both times are told of a moment that both ends know, as whatever carries a record may keep it back for as long as it likes.

Every header has its version, `v`. A record of another version is answered with an error that says so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from tmuxctl.errors import Unreachable, Usage
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value

VERSION = 1
VERSIONS = (1,)
"""Versions that are understood: this one, and the one before once there is one."""

BODY_MOST = 48 << 10
"""Bytes of the body of one record."""

WINDOW = 32
"""Records that may be under way to a caller that has not said that they came: 1.5 MiB."""

CALL_MOST = 24 << 20
"""Bytes of one call: 16 MiB of input as base64, and the rest."""

CALL_VALUES, RESULT_VALUES = 200_000, 1_000_000
"""Values of JSON in a call, and in what it gives: neither end takes more memory of the other than for these."""

RESULT_MOST = 96 << 20
"""Bytes of one result: 64 MiB of output as base64, and the rest."""

NAME_MOST = 64
"""Characters of the name of an operation or argument."""


def now() -> float:
    """Seconds from some moment on, which pass while a machine sleeps, too (CLOCK_BOOTTIME of Linux, clock_gettime(2))."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


ID = re.compile(r"[A-Za-z0-9]{8,64}", re.ASCII)

NUMBER_MOST = 1 << 53

Header = Mapping[str, Any]
Receive = Callable[[Header, bytes], None]
Send = Callable[[Header, bytes], None]


class Carrier(Protocol):
    """What brings records to one machine, and its records here. It may lose, repeat, delay and reorder them.

    `connected` is when it was connected, in seconds of `now`: what it brings comes to the process that was there then.
    """

    connected: float

    def send(self, header: Header, body: bytes) -> None:
        """Send a record, from any thread. Raises TmuxctlError or OSError where that is no use any more: then it is closed, and
        another one is made."""

    def close(self) -> None:
        """End it. May be called twice."""


Connect = Callable[[Receive, Callable[[], None]], Carrier]
"""Makes a carrier. The first argument takes the records that come, from any thread; the second is called if it breaks. Raises
TmuxctlError where the machine cannot be reached."""


class OperationsElsewhere(Protocol):
    """The operations of a machine whose own tmuxctl carries them out."""

    def reach(self) -> None:
        """Open the connection unless it is; TmuxctlError where that does not work."""

    def call(self, operation: str, arguments: Mapping[str, Any], session: str = "", *, address: str = "") -> Any:
        """Carry an operation out there: `control.machines.remote.RemoteOperations.call`."""

    def close(self) -> None:
        """End the connection, and the calls that are under way."""


class RemoteCall(Value):
    """What is called: an operation with plain arguments; those that are bytes, by their names; the seconds that are left, None for
    no limit; an id by which a repeated write happens once; what narrows the rights that the caller has anyway; and `pieces` as
    `operations.in_pieces` takes it. `secret` is typed where the operation takes one, `input` is what a command reads."""

    operation: str
    arguments: Mapping[str, Any]
    data: Mapping[str, bytes]
    seconds: float | None = None
    request_id: str | None = None
    rights: tuple[str, ...] | None = None
    owner: str | None = None
    pieces: str | None = None
    secret: bytes | None = None
    input: bytes | None = None

    @property
    def digest(self) -> str:
        """What is the same for the same call, whenever it is made: hexadecimal digits."""
        told = json.dumps([self.operation, self.arguments, [self.owner, self.pieces]], sort_keys=True)
        parts = [told.encode(), *(part for name in sorted(self.data) for part in (name.encode(), self.data[name]))]
        digest = hashlib.sha256()
        for part in (*parts, self.secret or b"", self.input or b""):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()


def pack_call(call: RemoteCall) -> bytes:
    """A call as JSON; Usage `too_large` for more than CALL_MOST bytes of it."""
    told = {
        "operation": call.operation,
        "arguments": call.arguments,
        "data": {name: base64.b64encode(data).decode() for name, data in call.data.items()},
        "seconds": call.seconds,
        "request_id": call.request_id,
        "rights": call.rights,
        "owner": call.owner,
        "pieces": call.pieces,
        "secret": call.secret and base64.b64encode(call.secret).decode(),
        "input": None if call.input is None else base64.b64encode(call.input).decode(),
    }
    text = json.dumps({name: value for name, value in told.items() if value is not None}).encode()
    if len(text) > CALL_MOST:
        raise Usage(f"a call of {len(text)} bytes is too large", reason="too_large", hint="give it in parts")
    return text


def parse_call(text: bytes) -> RemoteCall:
    """The call that `pack_call` made this of; Usage `bad_call` for anything else."""
    try:
        found = parse_json(text, limit=CALL_MOST, values=CALL_VALUES, parse_constant=_refuse)
        call = RemoteCall(
            operation=_typed(found["operation"], str),
            arguments=_typed(found["arguments"], dict),
            data={name: _to_bytes(data) for name, data in _typed(found.get("data", {}), dict).items()},
            seconds=_seconds(found.get("seconds")),
            request_id=_typed(found.get("request_id"), str, None),
            rights=None if found.get("rights") is None else tuple(_typed(one, str) for one in found["rights"]),
            owner=_typed(found.get("owner"), str, None),
            pieces=_typed(found.get("pieces"), str, None),
            secret=None if found.get("secret") is None else _to_bytes(found["secret"]),
            input=None if found.get("input") is None else _to_bytes(found["input"]),
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        raise Usage(
            "a call that cannot be read",
            reason="bad_call",
            hint="install the same release of tmuxctl on both machines: tmuxctl --version",
        ) from None
    names = (call.operation, *call.arguments, *call.data)
    if max(map(len, names)) > NAME_MOST or call.arguments.keys() & call.data.keys():
        raise Usage("a name that is too long, or given twice", reason="bad_call", hint="leave it out")
    if call.pieces not in (None, "text", "data"):
        raise Usage("pieces are of text or data", reason="bad_call", hint="leave it out")
    return call


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _typed(value: Any, kind: type, *others: Any) -> Any:
    if not isinstance(value, kind) and value not in others:
        raise TypeError(f"no {kind.__name__}")
    return value


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        raise TypeError("no seconds")
    return float(value)


def _to_bytes(text: Any) -> bytes:
    return base64.b64decode(_typed(text, str), validate=True)


def split_body(text: bytes) -> Iterator[bytes]:
    """A text in the parts that records take; at least one."""
    for begin in range(0, max(1, len(text)), BODY_MOST):
        yield text[begin : begin + BODY_MOST]


def number_of(header: Header, name: str, most: int = NUMBER_MOST) -> int:
    """A whole number of a header, from 0 to below `most`; ValueError for anything else."""
    found = header.get(name)
    if type(found) is not int or not 0 <= found < most:
        raise ValueError(f"{name} is no number")
    return found


def id_of(header: Header) -> str:
    """The id of the call that a record belongs to; ValueError for what is none."""
    found = header.get("id")
    if not isinstance(found, str) or not ID.fullmatch(found):
        raise ValueError("no id of a call")
    return found


def other_version_error(version: object) -> Unreachable:
    """The error for a record of a version that is not understood here."""
    known = ", ".join(map(str, VERSIONS))
    return Unreachable(
        f"it speaks version {ascii(version)[:20]} of the records of calls, and this tmuxctl version {known}",
        reason="other_version",
        hint="install the same release of tmuxctl on both machines: tmuxctl --version",
    )
