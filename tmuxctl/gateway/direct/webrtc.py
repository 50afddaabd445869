"""Links over a data channel of WebRTC, by aiortc, of the extra `p2p`. Its DTLS is not relied on for anything.

Offer and answer are session descriptions (RFC 8866, RFC 8829), which the two ends exchange through a channel. Only addresses of the
ends' own network interfaces are offered, and taken: no server of STUN or TURN is asked.
"""

from __future__ import annotations

import asyncio
import importlib.util
import ipaddress
from typing import Any

from tmuxctl.gateway.direct.links import MOST_MESSAGE, MOST_WAITING, Ended, Take, event_loop, no_path_error, run

MOST_DESCRIPTION = 16 << 10
"""Bytes of an offer or an answer."""

MOST_CANDIDATES = 16
"""Addresses of one end that are tried."""

LABEL = "tmuxctl"


def is_installed() -> bool:
    """Whether aiortc is there; it is not loaded."""
    return importlib.util.find_spec("aiortc") is not None


def check_description(data: bytes) -> str:
    """A description of the other end, without any address that is not one of its own interfaces' or is not written in digits.
    Unreachable `no_direct_path` for what is none."""
    try:
        lines = data.decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise no_path_error("a description that is no text") from None
    if not 0 < len(data) <= MOST_DESCRIPTION or not lines or lines[0] != "v=0":
        raise no_path_error("a description that is none")
    kept, candidates = [], 0
    for line in lines:
        if line.startswith("a=candidate:"):
            candidates += 1
            if candidates > MOST_CANDIDATES or not _is_own_address(line):
                continue
        kept.append(line)
    return "\r\n".join(kept) + "\r\n"


def _is_own_address(line: str) -> bool:
    """Whether a candidate (RFC 8839, section 5.1) is of type `host`, with a unicast address in digits."""
    words = line.split()
    if len(words) < 8 or words[7] != "host":
        return False
    try:
        found = ipaddress.ip_address(words[4])
    except ValueError:
        return False
    return not (found.is_multicast or found.is_unspecified or found.is_loopback)


class WebRtcLink:
    """One end of a data channel: `links.Link`."""

    def __init__(self, take: Take, ended: Ended) -> None:
        from aiortc import RTCConfiguration, RTCPeerConnection

        self._take, self._ended, self._over = take, ended, False
        # its default names a server of STUN
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._channel: Any = None
        self._open = asyncio.Event()
        self._peer.on("datachannel", self._use)
        self._peer.on("connectionstatechange", self._look)

    def send(self, message: bytes) -> bool:
        """Have a message sent; False where that is no use."""
        channel = self._channel
        if self._over or channel is None or channel.readyState != "open" or channel.bufferedAmount > MOST_WAITING:
            return False
        event_loop().call_soon_threadsafe(self._send, message)
        return True

    def close(self) -> None:
        """End the data channel."""
        event_loop().call_soon_threadsafe(self._end)

    async def offer(self) -> bytes:
        """What the other end answers."""
        self._use(self._peer.createDataChannel(LABEL))
        await self._peer.setLocalDescription(await self._peer.createOffer())
        return self._description()

    async def answer(self, offer: bytes) -> bytes:
        """The answer to an offer."""
        await self._take_description(offer, "offer")
        await self._peer.setLocalDescription(await self._peer.createAnswer())
        return self._description()

    async def take_answer(self, answer: bytes) -> None:
        """Take the answer to the offer, and wait until the data channel is open."""
        await self._take_description(answer, "answer")
        await self._open.wait()

    async def _take_description(self, data: bytes, kind: str) -> None:
        from aiortc import RTCSessionDescription

        text = check_description(data)
        try:
            await self._peer.setRemoteDescription(RTCSessionDescription(text, kind))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # the parser of aiortc raises whatever a line that it does not expect leads to
            raise no_path_error(f"a description that aiortc does not take: {type(error).__name__}") from None

    def _description(self) -> bytes:
        return str(self._peer.localDescription.sdp).encode()

    def _use(self, channel: Any) -> None:
        if self._channel is not None or channel.label != LABEL:
            channel.close()
            return
        self._channel = channel
        channel.on("message", self._take_message)
        channel.on("close", self._end)
        channel.on("open", self._open.set)
        if channel.readyState == "open":
            self._open.set()

    def _take_message(self, message: object) -> None:
        if isinstance(message, bytes) and len(message) <= MOST_MESSAGE:
            self._take(self, message)

    def _send(self, message: bytes) -> None:
        if not self._over and self._channel.readyState == "open":
            self._channel.send(message)

    def _look(self) -> None:
        if self._peer.connectionState in ("failed", "closed"):
            self._end()

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        self._closing = asyncio.ensure_future(self._peer.close())
        self._ended(self)


def make_offer(take: Take, ended: Ended, seconds: float) -> tuple[WebRtcLink, bytes]:
    """A link that is not open yet, and the offer to be answered."""

    async def make() -> tuple[WebRtcLink, bytes]:
        link = WebRtcLink(take, ended)
        return link, await link.offer()

    return run(make(), seconds)


def open_link(link: WebRtcLink, answer: bytes, seconds: float) -> None:
    """Open a link by the answer to its offer; Unreachable `no_direct_path` where that does not work in so many seconds."""
    try:
        run(link.take_answer(answer), seconds)
    except BaseException:
        link.close()
        raise
