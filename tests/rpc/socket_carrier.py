"""A carrier over a Unix socket, the reference: a record is its header and its body, each behind its length; and what
makes it misbehave."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from tmuxctl.errors import Unreachable
from tmuxctl.rpc.records import Connect, Header, Receive, Send, now


def write_record(connection: socket.socket, lock: threading.Lock, header: Header, body: bytes) -> None:
    """Write one record whole."""
    text = json.dumps(header).encode()
    with lock:
        connection.sendall(struct.pack(">II", len(text), len(body)) + text + body)


def read_records(connection: socket.socket, receive: Receive) -> None:
    """Give all records that come to `receive`, until the other end closes."""
    with connection.makefile("rb") as file:
        while len(head := file.read(8)) == 8:
            length, size = struct.unpack(">II", head)
            text, body = file.read(length), file.read(size)
            if len(body) < size:
                return
            receive(json.loads(text), body)


class SocketCarrier:
    """One connection to the socket of a machine."""

    def __init__(self, path: str, receive: Receive, lost: Callable[[], None]) -> None:
        self.connection, self.lock = socket.socket(socket.AF_UNIX), threading.Lock()
        try:
            self.connection.connect(path)
        except OSError as error:
            self.connection.close()
            raise Unreachable(f"{path}: {error.strerror}", reason="refused", hint="start it") from None
        self.connected = now()
        threading.Thread(target=self._read, args=(receive, lost), daemon=True).start()

    def _read(self, receive: Receive, lost: Callable[[], None]) -> None:
        with suppress(OSError, ValueError):
            read_records(self.connection, receive)
        lost()

    def send(self, header: Header, body: bytes) -> None:
        """Write a record."""
        write_record(self.connection, self.lock, header, body)

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def connect_to(path: str) -> Connect:
    """What connects to the socket of a machine."""
    return lambda receive, lost: SocketCarrier(path, receive, lost)


class Weather:
    """How a carrier treats records, each way: what part of them it loses, repeats, and delays behind later ones. `silent`: it loses
    all of them. `cut` breaks it."""

    def __init__(self, *, lost: float = 0.0, repeated: float = 0.0, late: float = 0.0, seed: int = 1) -> None:
        self.lost, self.repeated, self.late = lost, repeated, late
        self.silent = False
        self.lose: Callable[[str, Header], bool] = lambda way, header: False
        """Which records are lost, by the way they go, `out` or `in`."""
        self.seen: list[tuple[str, Header]] = []
        self.carriers: list[SocketCarrier] = []
        self._random, self._lock = random.Random(seed), threading.Lock()
        self._held: list[Callable[[], None]] = []

    def over(self, connect: Connect) -> Connect:
        """The carriers that this makes, in this weather."""

        def made(receive: Receive, lost: Callable[[], None]) -> _Disturbed:
            inner = connect(lambda header, body: self.carry("in", receive, header, body), lost)
            assert isinstance(inner, SocketCarrier)
            self.carriers.append(inner)
            return _Disturbed(self, inner)

        return made

    def carry(self, way: str, bring: Send, header: Header, body: bytes) -> None:
        """Bring a record, or not, or twice, or behind the next ones."""
        self.seen.append((way, header))
        if self.silent or self.lose(way, header):
            return
        with self._lock:
            lost, late, repeated = (self._random.random() < part for part in (self.lost, self.late, self.repeated))
            held, self._held = self._held, []
            if late:
                # it comes behind the next record of either way
                self._held = [lambda: bring(header, body)]
        if not lost and not late:
            bring(header, body)
            if repeated:
                bring(header, body)
        for one in held:
            with suppress(OSError):
                one()

    def cut(self) -> None:
        """Break the connections that there are."""
        while self.carriers:
            self.carriers.pop().close()


class _Disturbed:
    def __init__(self, weather: Weather, inner: SocketCarrier) -> None:
        self.weather, self.inner, self.connected = weather, inner, inner.connected

    def send(self, header: Header, body: bytes) -> None:
        self.weather.carry("out", self.inner.send, header, body)

    def close(self) -> None:
        self.inner.close()
