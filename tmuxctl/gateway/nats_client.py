"""The client of nats-py with four changes: a connection that is given up is closed at once, `confirm` is sent behind all else, a
message has a limit, and where nothing waits a message goes out and comes in at once, not through a queue and another task.

nats-py 2.16 closes a TLS connection in order and waits for the other end to say goodbye. When the network was cut without a
word that takes asyncio's 30 s, in which nothing is reached again (measured: 39 s from the cut, with pings every 3 s).
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import ParseResult

import nkeys
from nats.aio.client import DEFAULT_BUFFER_SIZE, Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport
from nats.errors import ProtocolError
from nats.protocol.command import pub_cmd
from nats.protocol.parser import AWAITING_MSG_PAYLOAD, Parser

Take = Callable[[Msg], None]


def login_options(seed: str, jwt: str) -> dict[str, Any]:
    """What `connect` of nats-py is given to prove the key of a seed, of which `jwt` is what a gateway signed."""
    key = nkeys.from_seed(seed.encode())
    return {"user_jwt_cb": jwt.encode, "signature_cb": lambda nonce: base64.b64encode(key.sign(nonce.encode()))}


class AbortingTransport(TcpTransport):
    """A connection with TLS from its first byte, whose `close` drops it with what was not sent yet: whoever closes in order
    waits for `confirm` before."""

    def __init__(self, context: ssl.SSLContext, server_name: str | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.aborted = False
        self._context, self._server_name = context, server_name

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        """Open the connection. Raises OSError and asyncio.TimeoutError."""
        async with asyncio.timeout(connect_timeout):
            self._io_reader, self._io_writer = await asyncio.open_connection(
                uri.hostname, uri.port, limit=buffer_size, ssl=self._context, server_hostname=self._server_name
            )

    async def connect_tls(self, *_what: Any, **_more: Any) -> None:
        """There is TLS already."""

    def write(self, payload: bytes) -> None:
        """Send bytes, unless the connection was given up."""
        if not self.aborted:
            super().write(payload)  # type: ignore[no-untyped-call]

    def writelines(self, payload: list[bytes]) -> None:
        """Send several pieces of bytes, unless the connection was given up."""
        if not self.aborted:
            super().writelines(payload)  # type: ignore[no-untyped-call]

    @property
    def has_sent_all(self) -> bool:
        """Whether nothing waits for room in the socket."""
        return self._io_writer is not None and not self._io_writer.transport.get_write_buffer_size()

    async def drain(self) -> None:
        """Wait until there is room for more; never for a connection that was given up."""
        if not self.aborted:
            await super().drain()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Give the connection up, without a goodbye."""
        self.aborted = True
        if self._io_writer is not None:
            self._io_writer.transport.abort()

    async def wait_closed(self) -> None:
        """Nothing is waited for."""


MESSAGE_MOST = (1 << 20) + (64 << 10)
"""Bytes of one message that a server may announce, with its headers: what our configuration allows, and some."""


class BoundedParser(Parser):
    """The parser of nats-py, which keeps what belongs to one message however long the server says that it is."""

    async def parse(self, data: bytes = b"") -> None:
        """Take bytes of the server. nats.errors.ProtocolError where they make no sense, or announce more than a message has."""
        try:
            await super().parse(data)
        except (ProtocolError, OSError):
            raise
        except Exception as error:
            # nats-py prints a traceback, and reads no more of the connection without closing it
            raise ProtocolError("nats: a message that makes no sense") from error
        announced = self.needed if self.state == AWAITING_MSG_PAYLOAD else 0
        if max(announced, len(self.buf)) > MESSAGE_MOST:
            raise ProtocolError("nats: a message that is too long")


class GatewayClient(Client):
    """One connection to one server, which ends when it is lost: `Connection` opens the next one."""

    _carrying: TcpTransport

    def __init__(self, server_name: str | None = None) -> None:
        """`server_name`: whose certificate it has to be, if not that of the address."""
        super().__init__()
        self.server_name = server_name
        self._ps = BoundedParser(self)
        self._takers: dict[int, Take] = {}
        """What takes the messages of a subscription, by its number."""

    def make_transport(self, context: ssl.SSLContext) -> TcpTransport:
        """What carries the bytes."""
        return AbortingTransport(context, self.server_name)

    async def open(self, url: str, context: ssl.SSLContext, seed: str, jwt: str, **options: Any) -> None:
        """Connect to tls://HOST:PORT, TLS before all else: a server that speaks first could say that it wants none. The server is
        shown what was signed of the key with this seed. Raises OSError, nats.errors.Error, asyncio.TimeoutError, and anything where
        the server says of itself what makes no sense."""
        self._transport = self._carrying = self.make_transport(context)
        options |= login_options(seed, jwt)
        await self.connect(
            servers=[url], tls=context, tls_handshake_first=True, allow_reconnect=False, dont_randomize=True, **options
        )
        if not isinstance(self.max_payload, int):
            raise ProtocolError("nats: a limit of messages that is no number")

    async def confirm(self, seconds: float) -> None:
        """Wait until the server has taken all that was sent. Raises nats.errors.Error after so many seconds.

        `flush` of nats-py may send its question ahead of messages that wait in memory (2.16).
        """
        await self._flush_pending(force_flush=True)
        await self.flush(timeout=seconds)  # type: ignore[arg-type]

    async def follow(self, subject: str, take: Take) -> Subscription:
        """Subscribe. `take` is given each message in the loop's thread: one without headers as soon as it is read, others through
        nats-py's queue. An error of `take` is told as nats-py tells those of a callback."""

        async def take_later(message: Msg) -> None:
            take(message)

        # the number that `subscribe` gives before it waits
        self._takers[self._sid + 1] = take
        return await self.subscribe(subject, cb=take_later)

    def publish_now(self, subject: str, data: bytes, reply: str) -> bool:
        """Send a message if nothing else waits to be sent; whether it was. What it is given is not looked at."""
        carrying = self._carrying
        if self._pending or not self.is_connected or not isinstance(carrying, AbortingTransport):
            return False
        if not carrying.has_sent_all:
            return False
        carrying.write(pub_cmd(subject, reply, data))
        return True

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        """A message was read."""
        take = self._takers.get(sid)
        if take is None or headers or sid not in self._subs:
            await super()._process_msg(sid, subject, reply, data, headers)
            return
        try:
            take(self._build_message(sid, subject, reply, data, None))
        except Exception as error:
            await self._error_cb(error)

    def abort(self) -> None:
        """Drop the connection at once."""
        if isinstance(self._carrying, AbortingTransport):
            self._carrying.close()

    async def _select_next_server(self) -> None:
        """Connect to the only one, once; nats-py tries it again, hides the error, and makes a transport of its own."""
        server = self._server_pool[0]
        await self._carrying.connect(server.uri, DEFAULT_BUFFER_SIZE, self.options["connect_timeout"])
        self._current_server = server

    async def _process_op_err(self, e: Exception) -> None:
        """The connection was lost. What waits to be sent would be waited for without end where nothing is taken any more."""
        self.abort()
        await super()._process_op_err(e)
