"""Ends of a direct path over TCP that lie: one in the place of a host, and one between a client and a host."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress

from tmuxctl.gateway.direct.links import MOST_MESSAGE


def _frame(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


def _read(one: socket.socket) -> bytes:
    """The next message; ConnectionError at the end."""
    length = int.from_bytes(_read_bytes(one, 4), "big")
    return _read_bytes(one, length)


def _read_bytes(one: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        data = one.recv(count - len(found))
        if not data:
            raise ConnectionError("the end")
        found += data
    return found


class Liar:
    """Listens where a host is expected, and sends each message back, with garbage: noise, records that are none, and lengths that
    there cannot be. `taken`: how many connections it took."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.taken = 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self._listening.accept()
                self.taken += 1
                threading.Thread(target=self._take, args=(one,), daemon=True).start()

    def _take(self, one: socket.socket) -> None:
        with one, suppress(OSError):
            # what it is asked first, and much that it is not
            found = _read(one)
            for _ in range(100):
                one.sendall(
                    _frame(found) + _frame(b"r" + os.urandom(200)) + _frame(b"h" + os.urandom(100)) + _frame(b"")
                )
            one.sendall((MOST_MESSAGE + 1).to_bytes(4, "big") + bytes(1000))
            while one.recv(65536):
                pass

    def close(self) -> None:
        """Listen no more."""
        self._listening.close()


class Meddler:
    """Between a client and a host at a port: passes each message on twice, after a record that neither made."""

    def __init__(self, to: int) -> None:
        self._to, self.repeated = to, 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listening.accept()
                there = socket.create_connection(("127.0.0.1", self._to))
                for ends in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        count = 0
        with suppress(OSError):
            while True:
                message = _read(one)
                count += 1
                garbage = _frame(b"r" + os.urandom(len(message))) if count > 1 else b""
                other.sendall(garbage + _frame(message) * 2)
                self.repeated += 1
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Listen no more."""
        self._listening.close()
