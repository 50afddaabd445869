"""A gateway's operator who sits between its server and those who connect: a relay with the gateway's own key, which hands every
message of NATS to a test before it goes on, and sends what the test makes of it."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gateway.gateway_site import GatewaySite

from tmuxctl.gateway.credentials import read_credentials
from tmuxctl.value import changed
from tools.ports import free_ports


class Relayed(NamedTuple):
    """A message on its way: `up` to the server, with its subject, the subscription it is for (down only), where a reply is wanted,
    its headers as they are sent, and its data; it goes on after `delay` seconds."""

    up: bool
    subject: str
    subscription: str
    reply: str
    headers: bytes
    data: bytes
    delay: float = 0.0

    def pack(self) -> bytes:
        """The bytes that say this (NATS client protocol: PUB, HPUB, MSG, HMSG)."""
        verb = ("H" if self.headers else "") + ("PUB" if self.up else "MSG")
        sizes = ([str(len(self.headers))] if self.headers else []) + [str(len(self.headers) + len(self.data))]
        words = [
            verb,
            self.subject,
            *([] if self.up else [self.subscription]),
            *([self.reply] * bool(self.reply)),
            *sizes,
        ]
        return " ".join(words).encode() + b"\r\n" + self.headers + self.data + b"\r\n"


Hook = Callable[[Relayed], Sequence[Relayed]]
"""What goes on in the place of a message: nothing, itself, others, several."""


def pass_on(message: Relayed) -> Sequence[Relayed]:
    """What an honest gateway does."""
    return [message]


class OperatorRelay:
    """Listens at a port of loopback with the certificate of a gateway, and connects to its server for each who comes."""

    def __init__(self, site: GatewaySite) -> None:
        self.hook: Hook = pass_on
        self._members: set[asyncio.StreamWriter] = set()
        (config,) = (one for one in Path(site.files.folder).iterdir() if one.name.endswith(".conf"))
        tls = json.loads(config.read_text())["tls"]
        self._certificate, self._server_port = (tls["cert_file"], tls["key_file"]), site.port
        (self.port,) = free_ports(1)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operator", daemon=True)
        self._thread.start()
        assert self._ready.wait(20)

    def divert(self, path: Path) -> None:
        """Have whoever uses this file of credentials come by here."""
        text = changed(read_credentials(str(path)), urls=(f"tls://127.0.0.1:{self.port}",)).to_text()
        path.write_text(text)

    def say(self, line: bytes) -> None:
        """Send all who are connected a line of the protocol, as if the server had said it."""

        def send() -> None:
            for writer in self._members:
                writer.write(line)

        self._loop.call_soon_threadsafe(send)

    def end(self) -> None:
        """Close every connection."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._certificate)
        listening = asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=context, limit=1 << 22)
        server = self._loop.run_until_complete(listening)
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # the operator knows its own server
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with suppress(OSError):
            theirs = await asyncio.open_connection("127.0.0.1", self._server_port, ssl=context, limit=1 << 22)
            self._members.add(writer)
            await asyncio.gather(self._pump(reader, theirs[1], up=True), self._pump(theirs[0], writer, up=False))

    def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Write it, unless the connection is over by now."""
        if not writer.is_closing():
            writer.write(data)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool) -> None:
        try:
            while True:
                line = await reader.readuntil(b"\r\n")
                verb, *words = line.decode().split() or [""]
                if verb.upper() not in ("PUB", "HPUB", "MSG", "HMSG"):
                    writer.write(line)
                else:
                    size = int(words.pop())
                    count = int(words.pop()) if verb.upper().startswith("H") else 0
                    body = (await reader.readexactly(size + 2))[:-2]
                    subject, subscription = words.pop(0), "" if up else words.pop(0)
                    message = Relayed(up, subject, subscription, "".join(words), body[:count], body[count:])
                    for one in self.hook(message):
                        if one.delay:
                            self._loop.call_later(one.delay, self._write, writer, one.pack())
                        else:
                            writer.write(one.pack())
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._members.discard(writer)
            writer.close()
