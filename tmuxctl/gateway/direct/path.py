"""A client's direct path to one machine, beside the gateway: made in the background, tried with each call, given up when it is
silent.

A call that goes by it and has no answer within 400 ms is sent through the gateway too: the machine carries it out once, as both
have the same id. What says that the path is whole is an answer, or the answer to a probe, which is sent after the call on a carrier
that keeps the order.
ICE is not asked: it goes on to say `completed` while a path is cut, until 6 checks 5 s apart have failed (RFC 7675; aioice 0.13).
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from tmuxctl.control.machines.ways import note_path
from tmuxctl.errors import TmuxctlError
from tmuxctl.gateway.direct import tcp, webrtc
from tmuxctl.gateway.direct.addresses import parse_addresses, remember_addresses, remembered_addresses
from tmuxctl.gateway.direct.links import HANDSHAKE, RECORD, Link, no_path_error
from tmuxctl.gateway.messages import DIRECT_ANSWER, DIRECT_OFFER, DIRECT_PROBE
from tmuxctl.rpc.records import VERSION, Header
from tmuxctl.timing import TIMING, DirectTiming
from tmuxctl.value import Value

REFUSED_MOST = 256
"""Messages on a link that no channel opens, after which it is given up."""

PARTS_MOST = 8
"""Parts of a call (48 KiB each) up to which it goes by the direct path while there is a gateway: a longer one has to be sent twice
too often."""

ANSWERED = ("call", "more")
"""Types of records that the machine answers at once, in one way or another."""


class UsedChannel(Value):
    """The channel of a carrier: `seal` makes a record of it, `open` takes what came (False for what the channel does not open),
    `relay` sends a record through the gateway."""

    seal: Callable[[Header, bytes], bytes]
    open: Callable[[bytes], bool]
    relay: Callable[[Header, bytes], None]


class _Owed:
    """A call that went by the direct path, and is not answered: its records, and when the last of them was sent."""

    def __init__(self) -> None:
        self.records: list[tuple[Header, bytes]] = []
        self.sent = 0.0


class DirectPath:
    """The direct path to a machine, for the carriers that a process makes to it one after another. It is made in the background
    once a channel has a record to carry when it is a second old: a quick command does not pay for it, nor who asks each of many
    machines once. Safe to use from any thread."""

    def __init__(self, machine: str, *, timing: DirectTiming = TIMING.direct) -> None:
        self._machine, self._timing = machine, timing
        self._host = ""
        self._channel: UsedChannel | None = None
        self._link: Link | None = None
        self._kind = ""
        self._changed = threading.Condition()
        self._running = False
        self._owed: dict[str, _Owed] = {}
        self._probes: dict[int, float] = {}
        self._suspected: float | None = None
        self._refused = self._number = self._failures = 0
        self._probed = self._attempt = self._unused = 0.0
        self._stood = float("-inf")
        """When a path was last whole, as far as it is known."""
        self._answers: queue.Queue[tuple[Header, bytes]] = queue.Queue(4)
        self._replies: queue.Queue[bytes] = queue.Queue(4)

    @property
    def stands(self) -> bool:
        """Whether there is a path, suspected or not."""
        return self._link is not None

    @property
    def is_used(self) -> bool:
        """Whether the next call goes by it."""
        return self._link is not None and self._suspected is None

    def attach(self, host: str, channel: UsedChannel) -> None:
        """Have this channel's records go by the path."""
        with self._changed:
            self._host, self._channel = host, channel
            self._attempt = max(self._attempt, time.monotonic() + self._timing.settle_seconds)
            self._changed.notify_all()

    def detach(self, channel: UsedChannel | None) -> None:
        """Have its records go by it no more. A path that no channel uses for a while is closed."""
        with self._changed:
            if channel is not None and self._channel is channel:
                self._channel, self._unused = None, time.monotonic()
                self._owed.clear()
            self._changed.notify_all()

    def send(self, header: Header, body: bytes, *, connected: bool) -> bool:
        """Send a record by the path; False where that is for the gateway, which is `connected` or not."""
        self._note_use()
        link, channel = self._link, self._channel
        large = isinstance(parts := header.get("parts"), int) and parts > PARTS_MOST
        if link is None or channel is None or (connected and (self._suspected is not None or large)):
            return False
        kind, call_id = header.get("type"), str(header.get("id"))
        if kind in ANSWERED:
            with self._changed:
                owed = self._owed.setdefault(call_id, _Owed())
                if kind == "more":
                    owed.records.clear()
                owed.records.append((header, body))
                owed.sent = time.monotonic()
                # its thread sleeps while nothing is owed
                self._changed.notify_all()
        if not link.send(RECORD + channel.seal(header, body)):
            with self._changed:
                self._owed.pop(call_id, None)
            return False
        # nothing answers the end of a call, and both ways may bring it
        return kind in ANSWERED or not connected

    def heard(self, header: Header, body: bytes) -> bool:
        """Take note of a record that came, by whichever way. True for one that concerns the path alone."""
        self._note_use()
        kind = header.get("type")
        if kind == DIRECT_ANSWER:
            with suppress(queue.Full):
                self._answers.put_nowait((header, body))
            return True
        if kind == DIRECT_PROBE:
            self._take_probe(header.get("number"))
            return True
        with self._changed:
            self._owed.pop(str(header.get("id")), None)
        return False

    def open(self, host: str) -> bool:
        """Whether there is a path to this host, or one can be made without the gateway: to an address that is remembered."""
        with suppress(TmuxctlError):
            if self._link is None:
                self._connect_tcp(remembered_addresses(self._machine, host))
        return self._link is not None

    def request(self, client: str, request: bytes) -> bytes:
        """The reply to a handshake, which goes by the path. Unreachable `no_direct_path` where there is none any more."""
        link = self._link
        while not self._replies.empty():
            self._replies.get_nowait()
        if link is None or not link.send(HANDSHAKE + client.encode() + request):
            raise no_path_error("no address of the machine is known")
        try:
            return self._replies.get(timeout=self._timing.handshake_seconds)
        except queue.Empty:
            self._drop(link)
            raise no_path_error("no answer in time") from None

    def close(self) -> None:
        """End it."""
        self._drop(self._link)

    def _note_use(self) -> None:
        """Start the path's thread, if it is time to make the path."""
        if self._running or time.monotonic() < self._attempt:
            return
        with self._changed:
            if not self._running and self._channel is not None:
                self._running = True
                threading.Thread(target=self._run, name=f"direct path {self._machine}", daemon=True).start()

    # in the thread of all links

    def _take(self, link: Link, message: bytes) -> None:
        if message[:1] == HANDSHAKE:
            with suppress(queue.Full):
                self._replies.put_nowait(message[1:])
            return
        channel = self._channel
        if message[:1] == RECORD and channel is not None and channel.open(message[1:]):
            return
        self._refused += 1
        if self._refused > REFUSED_MOST:
            # whoever sends it does not have the keys
            link.close()

    def _take_probe(self, number: object) -> None:
        with self._changed:
            sent = self._probes.pop(number, None) if isinstance(number, int) else None
            if sent is None:
                return
            for call_id in [call_id for call_id, one in self._owed.items() if one.sent <= sent]:
                # it came before the probe, as the order is kept
                del self._owed[call_id]
            if self._suspected is not None and sent >= self._suspected:
                self._suspected, self._stood = None, time.monotonic()
                self._note(self._kind)

    def _end(self, link: Link) -> None:
        with self._changed:
            if self._link is not link:
                return
            self._link = None
            self._note("")
            self._attempt = time.monotonic() + self._timing.pause_seconds
            # what is owed goes through the gateway now
            for one in self._owed.values():
                one.sent = 0.0
            self._changed.notify_all()

    # in the thread of the path

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(self._seconds_to_sleep())
                unused = self._channel is None and time.monotonic() - self._unused > self._timing.unused_seconds
                if unused:
                    self._running = False
            if unused:
                self._drop(self._link)
                self._note("")
                return
            self._watch()
            if self._link is None and self._channel is not None and time.monotonic() >= self._attempt:
                self._try_to_connect(self._channel)

    def _seconds_to_sleep(self) -> float:
        timing, now = self._timing, time.monotonic()
        if self._channel is None:
            return timing.unused_seconds
        if self._suspected is not None:
            return timing.suspect_seconds / 2
        if self._owed:
            return min(timing.probe_seconds, timing.hedge_seconds) / 4
        return max(0.0, self._attempt - now) if self._link is None else timing.unused_seconds

    def _watch(self) -> None:
        """Ask for what is owed, send it through the gateway, or give the path up, as it is time for that."""
        timing, now = self._timing, time.monotonic()
        with self._changed:
            link, suspected = self._link, self._suspected
            oldest = min((one.sent for one in self._owed.values()), default=now)
        if link is not None and suspected is not None and now - suspected > timing.lost_seconds:
            self._drop(link)
        elif link is not None and self._is_time_to_probe(now, oldest):
            self._probe(link)
        if now - oldest >= timing.hedge_seconds:
            self._send_through_gateway(now)

    def _is_time_to_probe(self, now: float, oldest: float) -> bool:
        if self._suspected is not None:
            return now - self._probed >= self._timing.suspect_seconds
        return now - oldest >= self._timing.probe_seconds and self._probed < oldest

    def _send_through_gateway(self, now: float) -> None:
        """Suspect the path, and send all that is owed by the other way."""
        with self._changed:
            channel, owed = self._channel, list(self._owed.values())
            self._owed.clear()
            if self._link is not None and self._suspected is None:
                self._suspected, self._probed, self._stood = now, 0.0, now
                self._note("")
        if channel is None:
            return
        for one in owed:
            for header, body in one.records:
                # what neither way brings is asked for again by the call itself
                with suppress(TmuxctlError, OSError):
                    channel.relay(header, body)

    def _probe(self, link: Link) -> None:
        channel = self._channel
        if channel is None:
            return
        with self._changed:
            self._number += 1
            number = self._number
            self._probed = self._probes[number] = time.monotonic()
            while len(self._probes) > 16:
                del self._probes[next(iter(self._probes))]
        with suppress(TmuxctlError):
            link.send(RECORD + channel.seal({"v": VERSION, "type": DIRECT_PROBE, "number": number}, b""))

    def _drop(self, link: Link | None) -> None:
        if link is None:
            return
        link.close()
        with self._changed:
            if self._link is link:
                self._link = None
                self._attempt = time.monotonic()

    def _note(self, link: str) -> None:
        note_path(self._machine, id(self), link)

    # making it

    def _try_to_connect(self, channel: UsedChannel) -> None:
        timing = self._timing
        try:
            self._connect(channel)
            self._failures = 0
        except Exception:
            # whatever aiortc raises, too: there is the gateway, and without this thread no call would be sent through it again
            recent = time.monotonic() - self._stood < timing.recent_seconds
            longest = timing.recent_pause_seconds if recent else timing.rare_pause_seconds
            pause = min(longest, timing.pause_seconds * 2 ** min(self._failures, 8))
            self._failures += 1
            self._attempt = time.monotonic() + pause

    def _connect(self, channel: UsedChannel) -> None:
        """Ask the machine, and make a link to an address that it has, or to which it answers."""
        timing, offered = self._timing, None
        try:
            body = b""
            if webrtc.is_installed():
                offered, body = webrtc.make_offer(self._take, self._end, timing.connect_seconds)
            addresses, answer = self._ask(channel, body)
            try:
                self._connect_tcp(addresses)
                return
            except TmuxctlError:
                if offered is None or not answer:
                    raise
            webrtc.open_link(offered, answer, timing.connect_seconds)
            used, offered = offered, None
            self._use(used, "webrtc")
        finally:
            if offered is not None:
                offered.close()

    def _ask(self, channel: UsedChannel, body: bytes) -> tuple[tuple[str, ...], bytes]:
        """Where the machine listens, and its description for WebRTC. Without the gateway it is what is remembered."""
        with self._changed:
            self._number += 1
            number = self._number
        while not self._answers.empty():
            self._answers.get_nowait()
        deadline = time.monotonic() + self._timing.connect_seconds
        try:
            channel.relay({"v": VERSION, "type": DIRECT_OFFER, "number": number}, body)
            while True:
                header, answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
                if header.get("number") == number:
                    break
        except (TmuxctlError, OSError, queue.Empty):
            return remembered_addresses(self._machine, self._host), b""
        addresses = parse_addresses(header.get("addresses"))
        remember_addresses(self._machine, self._host, addresses)
        return addresses, answer

    def _connect_tcp(self, addresses: tuple[str, ...]) -> None:
        """Make a link to the first of these addresses that takes one."""
        for address in addresses:
            with suppress(TmuxctlError):
                self._use(tcp.connect(address, self._take, self._end, seconds=self._timing.late_seconds), "tcp")
                return
        raise no_path_error("the machine listens at no address that is reached")

    def _use(self, link: Link, kind: str) -> None:
        """Use a link once a probe came back by it: until then the path is suspected."""
        with self._changed:
            self._link, self._kind, self._refused = link, kind, 0
            self._suspected, self._probed = time.monotonic(), 0.0
            self._changed.notify_all()
