"""Links over TCP, to a host that listens at a fixed address: each message behind its length, a u32 in big-endian order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

from tmuxctl.gateway.direct.links import MOST_MESSAGE, MOST_WAITING, Ended, Link, Take, event_loop, run


class TcpLink(asyncio.Protocol):
    """One end of a connection: `links.Link`. `peer` is the address of the other end."""

    def __init__(self, take: Take, ended: Ended, began: Callable[[TcpLink], None] | None = None) -> None:
        self.peer = ""
        self._take, self._ended, self._began = take, ended, began
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()

    def send(self, message: bytes) -> bool:
        """Have a message sent; False where that is no use."""
        transport = self._transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size() > MOST_WAITING:
            return False
        event_loop().call_soon_threadsafe(transport.write, len(message).to_bytes(4, "big") + message)
        return True

    def close(self) -> None:
        """End the connection, at once."""
        transport = self._transport
        if transport is not None:
            event_loop().call_soon_threadsafe(transport.abort)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer = str((transport.get_extra_info("peername") or ("",))[0])
        if self._began:
            self._began(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for message in self._split():
            self._take(self, message)

    def connection_lost(self, _error: Exception | None) -> None:
        self._ended(self)

    def _split(self) -> Iterator[bytes]:
        """The messages that have come whole. One that is too long ends the connection."""
        while len(self._buffer) >= 4:
            length = int.from_bytes(self._buffer[:4], "big")
            if length > MOST_MESSAGE:
                self._buffer.clear()
                self.close()
                return
            if len(self._buffer) < 4 + length:
                return
            message = bytes(self._buffer[4 : 4 + length])
            del self._buffer[: 4 + length]
            yield message


def connect(address: str, take: Take, ended: Ended, *, seconds: float) -> Link:
    """A link to a host that listens at HOST:PORT; Unreachable `no_direct_path` where there is none within so many seconds."""
    host, _, port = address.rpartition(":")
    opening = event_loop().create_connection(lambda: TcpLink(take, ended), host.strip("[]"), int(port))
    return run(opening, seconds)[1]


def listen(address: str, take: Take, ended: Ended, began: Callable[[TcpLink], None]) -> asyncio.Server:
    """Listen at HOST:PORT. Raises OSError where that does not work."""
    host, _, port = address.rpartition(":")
    opening = event_loop().create_server(lambda: TcpLink(take, ended, began), host.strip("[]"), int(port), backlog=16)
    return asyncio.run_coroutine_threadsafe(opening, event_loop()).result()


def close_server(server: asyncio.Server) -> None:
    """Listen no more."""
    event_loop().call_soon_threadsafe(server.close)
