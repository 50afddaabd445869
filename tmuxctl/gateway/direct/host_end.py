"""A host's end of direct paths: links that clients asked for in their channels, and an address at which it listens, if it has one.

Whatever comes may be hostile. What a link brings is given to the host as what comes through the gateway; a link by which nothing
authentic comes is closed, and links are limited by number: for each client, for each address, and altogether.
"""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tmuxctl.errors import Failed, TmuxctlError
from tmuxctl.gateway.direct import tcp, webrtc
from tmuxctl.gateway.direct.addresses import MOST_ADDRESSES
from tmuxctl.gateway.direct.links import CLIENT_ID_BYTES, HANDSHAKE, RECORD, Link, event_loop, run
from tmuxctl.timing import TIMING, DirectTiming
from tmuxctl.value import Value

ON, OFF = "on", "off"
"""Whether a host answers to offers; any other value is an address, HOST:PORT, at which it listens too."""


class DirectLimits(Value):
    """How many links there may be: of one client by its key, from one address that has not shown who it is, and altogether; offers
    that are being answered, of one client and of all; messages on one link that are refused; and messages of all that wait."""

    client_links: int = 8
    strange_links: int = 8
    links: int = 128
    client_offers: int = 2
    offers: int = 16
    refused: int = 64
    waiting: int = 256


LIMITS = DirectLimits()


class _KnownLink:
    """What the host knows of one link: the key of the client that uses it, once something authentic came, or that of the client
    that asked for it; and how many messages were refused."""

    def __init__(self, owner: object, client: bytes | None) -> None:
        self.owner, self.client, self.refused, self.is_known = owner, client, 0, False


class DirectEnd:
    """The links of a host. `first` is given each record in the thread of all links, and waits for nothing: it raises TmuxctlError
    for what no channel opens, and returns the client's key with what is left for `later`, or None. `shake_hands` answers the
    request of a handshake. `address` is HOST:PORT to listen at, if any. Failed `not_listening` where that does not work."""

    def __init__(
        self,
        first: Callable[[Link, bytes], tuple[bytes, Any]],
        later: Callable[[Any], None],
        shake_hands: Callable[[str, str, bytes], bytes],
        *,
        address: str | None = None,
        limits: DirectLimits = LIMITS,
        timing: DirectTiming = TIMING.direct,
    ) -> None:
        self._first, self._later, self._shake_hands = first, later, shake_hands
        self._limits, self._timing = limits, timing
        self.refused: Counter[str] = Counter()
        self._links: dict[Link, _KnownLink] = {}
        self._offers: Counter[bytes] = Counter()
        self._lock = threading.Lock()
        self._waiting: queue.Queue[Any] = queue.Queue(limits.waiting)
        self._server: asyncio.Server | None = None
        self._address = address
        if address is not None:
            try:
                self._server = tcp.listen(address, self._take, self._end, self._begin)
            except OSError as error:
                raise Failed(
                    f"cannot listen at {address}: {error.strerror}",
                    reason="not_listening",
                    hint="another port, as in: tmuxctl serve --gateway FILE --direct 0.0.0.0:8770",
                ) from None
        threading.Thread(target=self._follow, name="direct records", daemon=True).start()

    def close(self) -> None:
        """End all links, and listen no more."""
        if self._server is not None:
            tcp.close_server(self._server)
        for link in list(self._links):
            link.close()
        with suppress(queue.Full):
            self._waiting.put_nowait(None)

    def addresses(self) -> list[str]:
        """Where it listens, as IP:PORT: at each address of this machine if it listens at all of them."""
        if self._server is None:
            return []
        host, port = self._server.sockets[0].getsockname()[:2]
        if host not in ("0.0.0.0", "::"):
            return [_join(host, port)]
        import psutil

        found = [one for many in psutil.net_if_addrs().values() for one in many]
        families = (socket.AF_INET, socket.AF_INET6) if host == "::" else (socket.AF_INET,)
        # one of a single interface (fe80::, with its scope) means nothing elsewhere
        told = [one.address for one in found if one.family in families and "%" not in one.address]
        return [_join(one, port) for one in told if not one.startswith("127.") and one != "::1"][:MOST_ADDRESSES]

    def take_offer(self, client: bytes, offer: bytes, answer: Callable[[list[str], bytes], None]) -> None:
        """Answer the offer of a client with this key, once the answer is made; not at all where too many are under way."""
        if not offer or not webrtc.is_installed():
            answer(self.addresses(), b"")
            return
        with self._lock:
            if self._offers[client] >= self._limits.client_offers or self._offers.total() >= self._limits.offers:
                self.refused["too_many_offers"] += 1
                return
            self._offers[client] += 1
        threading.Thread(target=self._answer, args=(client, offer, answer), name="direct offer", daemon=True).start()

    def _answer(self, client: bytes, offer: bytes, answer: Callable[[list[str], bytes], None]) -> None:
        body = b""
        try:
            made = self._make_link(client)
            _, body = run(made(offer), self._timing.connect_seconds)
        except TmuxctlError as error:
            self.refused[str(error.reason)] += 1
        except Exception:
            # what aiortc raises where it cannot be loaded, or at what it does not expect
            self.refused["internal"] += 1
        finally:
            with self._lock:
                self._offers[client] -= 1
                if not self._offers[client]:
                    del self._offers[client]
        with suppress(TmuxctlError, OSError):
            answer(self.addresses(), body)

    def _make_link(self, client: bytes) -> Any:
        async def make(offer: bytes) -> tuple[Link, bytes]:
            link = webrtc.WebRtcLink(self._take, self._end)
            try:
                # the oldest of a client makes room: its other end may have gone without a word
                own = [one for one, known in self._links.items() if known.client == client]
                for one in own[: max(0, len(own) + 1 - self._limits.client_links)]:
                    one.close()
                if len(self._links) >= self._limits.links:
                    raise Failed("too many links", reason="too_many_links", hint="end some")
                self._add(link, client, client)
                return link, await link.answer(offer)
            except BaseException:
                link.close()
                raise

        return make

    # in the thread of all links

    def _begin(self, link: tcp.TcpLink) -> None:
        strange = sum(not known.is_known and known.owner == link.peer for known in self._links.values())
        if strange >= self._limits.strange_links or len(self._links) >= self._limits.links:
            self.refused["too_many_links"] += 1
            link.close()
            return
        self._add(link, link.peer, None)

    def _add(self, link: Link, owner: object, client: bytes | None) -> None:
        known = self._links[link] = _KnownLink(owner, client)

        def look() -> None:
            if not known.is_known:
                link.close()

        event_loop().call_later(self._timing.strange_seconds + self._timing.connect_seconds, look)

    def _end(self, link: Link) -> None:
        self._links.pop(link, None)

    def _take(self, link: Link, message: bytes) -> None:
        known = self._links.get(link)
        if known is None:
            return
        try:
            if message[:1] == HANDSHAKE:
                client, request = message[1 : 1 + CLIENT_ID_BYTES], message[1 + CLIENT_ID_BYTES :]
                reply = self._shake_hands(str(known.owner), client.decode("ascii", "replace"), request)
                link.send(HANDSHAKE + reply)
                # it may be a request that is replayed: only a record shows that its sender has the keys
                return
            if message[:1] != RECORD:
                raise Failed("no message", reason="malformed", hint="drop it")
            known.client, left = self._first(link, message[1:])
            known.is_known = True
            if left is not None:
                self._waiting.put_nowait(left)
        except queue.Full:
            self.refused["too_many"] += 1
        except TmuxctlError as error:
            self._refuse(link, known, str(error.reason))
        except Exception:
            # a bug; it must end no other link
            self._refuse(link, known, "internal")

    def _refuse(self, link: Link, known: _KnownLink, reason: str) -> None:
        self.refused[reason] += 1
        known.refused += 1
        if not known.is_known or known.refused > self._limits.refused:
            link.close()

    # in a thread of its own

    def _follow(self) -> None:
        while (left := self._waiting.get()) is not None:
            try:
                self._later(left)
            except TmuxctlError as error:
                self.refused[str(error.reason)] += 1
            except Exception:
                self.refused["internal"] += 1


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
