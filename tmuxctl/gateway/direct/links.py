"""A link carries messages between two processes: sealed records of any channel, and handshakes. It may lose all of them, and
what it brings is as untrusted as what comes from a network: whoever takes a message opens it with the keys of a channel.

    r | a sealed record
    h | a handshake: to the host the id of the client (16 characters) and the request, to the client the reply

All links of a process live in one thread with an event loop, which the first one starts.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from tmuxctl.errors import Unreachable
from tmuxctl.sealed.records import MOST_RECORD

T = TypeVar("T")

RECORD, HANDSHAKE = b"r", b"h"

CLIENT_ID_BYTES = 16

MOST_MESSAGE = 1 + MOST_RECORD
"""Bytes of one message: what aiortc takes in one piece is 262,144 (`rtcsctptransport.LOCAL_MAX_MESSAGE_SIZE`, version 1.16)."""

MOST_WAITING = 4 << 20
"""Bytes that may wait to be sent on one link; what comes then is not taken."""


class Link(Protocol):
    """One link, from any thread."""

    def send(self, message: bytes) -> bool:
        """Have a message sent. False where the link is over, or too much waits on it: then the message is dropped."""

    def close(self) -> None:
        """End it. May be called twice."""


Take = Callable[[Link, bytes], None]
"""What takes a message that came by a link, in the thread of all links: it waits for nothing."""

Ended = Callable[[Link], None]
"""What is told, once, in the same thread, that a link is over."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of all links."""
    global _loop
    with _lock:
        if _loop is None:
            made = asyncio.new_event_loop()
            threading.Thread(target=made.run_forever, name="direct links", daemon=True).start()
            _loop = made
        return _loop


def run(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What work gives in the thread of all links; Unreachable `no_direct_path` if it takes longer. Not to be called there."""

    async def limited() -> T:
        return await asyncio.wait_for(work, seconds)

    try:
        return asyncio.run_coroutine_threadsafe(limited(), event_loop()).result()
    except (OSError, TimeoutError) as error:
        raise no_path_error(str(error) or "no answer in time") from None


def no_path_error(why: str) -> Unreachable:
    """The error where no link can be made."""
    hint = "nothing is wrong while calls go through the gateway"
    return Unreachable(f"no direct path: {why}", reason="no_direct_path", hint=hint)
