"""The bytes of results that wait for their callers or are kept for them: bounded for all callers of a machine together."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from tmuxctl.rpc.responder import Responder

ROOM_BYTES = 512 << 20
"""Bytes of all results: five of the largest, beside what is small."""


class ResultRoom:
    """Room for so many bytes, shared by the responders that are made with it. `used` is changed under `lock` alone."""

    def __init__(self, most: int = ROOM_BYTES) -> None:
        self.most, self.used = most, 0
        self.lock = threading.Lock()
        self._responders: WeakSet[Responder] = WeakSet()

    def add(self, responder: Responder) -> None:
        """Have a responder share the room, as long as it is there."""
        with self.lock:
            self._responders.add(responder)

    def list_responders(self) -> list[Responder]:
        """Those that share it."""
        with self.lock:
            return list(self._responders)
