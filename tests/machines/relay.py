"""A way to a server that can be cut: what is on it then arrives once it is whole again, as over a network that was away."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress

PIECE = 65536


class Relay:
    """Listens on a port of loopback, and carries each connection to another port."""

    def __init__(self, to: int, listening: socket.socket | None = None) -> None:
        self._to, self._listening = to, listening or socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.cut = threading.Event()
        """While it is set nothing comes through, either way, and no end of a connection."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        across: dict[socket.socket, socket.socket] = {}
        while not self._over.is_set():
            if self.cut.is_set():
                self._over.wait(0.02)
                continue
            ready, _, _ = select.select([self._listening, *across], [], [], 0.02)
            for one in ready:
                if one is self._listening:
                    self._accept(across)
                elif one in across:
                    self._carry(one, across)
        for one in across:
            one.close()
        self._listening.close()

    def _accept(self, across: dict[socket.socket, socket.socket]) -> None:
        here, _ = self._listening.accept()
        try:
            there = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            # nothing listens there now
            here.close()
        else:
            across.update({here: there, there: here})

    def _carry(self, one: socket.socket, across: dict[socket.socket, socket.socket]) -> None:
        other, data = across[one], b""
        with suppress(OSError):
            data = one.recv(PIECE)
            other.sendall(data)
        if not data:
            for end in (one, other):
                across.pop(end, None)
                end.close()

    def close(self) -> None:
        """End it with its connections."""
        self._over.set()
        self._thread.join()
