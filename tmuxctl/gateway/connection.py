"""A connection to a gateway for callers that wait: it has a thread of its own, and is opened again for as long as it lives."""

from __future__ import annotations

import asyncio
import json
import random
import re
import secrets
import ssl
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar, overload

import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from tmuxctl.errors import Denied, Failed, Timeout, TmuxctlError, Unreachable, Usage
from tmuxctl.gateway import subjects
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.gateway.nats_client import GatewayClient
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.untrusted import parse_json
from tmuxctl.value import NamedTuple, Value
from tmuxctl.vocabulary import GatewayRole

R = TypeVar("R")
T = TypeVar("T")

MAX_PAYLOAD = 1 << 20
"""Bytes of one message: what the server's configuration allows."""

EVENT_BYTES = 64 << 10
"""Bytes of one event: what the stream takes."""

SENDING_MOST = 16
"""How many messages wait to be sent before `publish` waits, too."""

MOST_MESSAGES, MOST_BYTES = 1024, 16 << 20
"""How much waits in one subscription; what comes beyond that is dropped and counted."""

BATCH_MOST = 1024
"""Stored events that one answer has at most."""

_DENIED = re.compile(r'permissions violation for (publish|subscription) to "([^"]{1,512})"', re.IGNORECASE)


class CarriedMessage(NamedTuple):
    """What came: its subject, where a reply goes (empty: nowhere), its bytes, and its headers."""

    subject: str
    reply: str
    data: bytes
    headers: Mapping[str, str]


class StoredEvent(Value):
    """An event as the stream keeps it: its number in the stream, the host, the id it was published with, and its bytes."""

    sequence: int
    host: str
    id: str
    data: bytes


class EventBatch(Value):
    """Events in the order in which they were stored, and how many follow them in the stream."""

    events: tuple[StoredEvent, ...]
    pending: int


class Subscription(Generic[T]):
    """What comes on a subject, until it is taken; it outlives a lost connection. `first` is given each message: what it makes of
    it can be taken, unless that is None. `dropped` counts what found no room: of the sender that has most waiting, so that one
    which floods takes no room from others. The last word of a subject tells the sender, where there are several."""

    def __init__(
        self,
        subject: str,
        most_messages: int,
        most_bytes: int,
        on_close: Callable[[Subscription[Any]], None],
        first: Callable[[CarriedMessage], T | None],
        *,
        of_stream: bool,
    ) -> None:
        self.subject, self.first, self.of_stream = subject, first, of_stream
        self.dropped = 0
        self._most_messages, self._most_bytes = most_messages, most_bytes
        self._on_close = on_close
        self._waiting: deque[tuple[T, int, str]] = deque()
        self._counts: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        """How many messages wait, and how many bytes, by their senders."""
        self._error: TmuxctlError | None = None
        self._changed = threading.Condition()

    def next(self, timeout: float | None = None) -> T:
        """The next message, in order; waits for one, at most for `timeout` seconds.

        Raises Timeout, Denied `gateway_permission` each time that the server says that it does not allow it, Failed `closed` once
        it is closed.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting or self._error, timeout):
                raise Timeout(f"nothing came on {self.subject}", reason="timeout")
            if not self._waiting:
                assert self._error
                error = self._error
                if error.reason != "closed":
                    # messages may come all the same, and on the next connection
                    self._error = None
                raise error
            found, size, sender = self._waiting.popleft()
            self._account(sender, -1, -size)
            return found

    def close(self) -> None:
        """Take no more of it."""
        self.fail(Failed(f"{self.subject} is not followed any more", reason="closed"))
        self._on_close(self)

    def fail(self, error: TmuxctlError) -> None:
        """Have `next` raise this error once nothing is left."""
        with self._changed:
            if self._error is None or self._error.reason != "closed":
                self._error = error
            self._changed.notify_all()

    @property
    def error(self) -> TmuxctlError | None:
        """Why nothing comes any more; None while something may."""
        return self._error

    def put(self, message: CarriedMessage) -> None:
        """Take what came: add what `first` makes of it, or count it as dropped."""
        if message.headers and not self.of_stream:
            # any member can have the stream answer on any subject; its answers have headers, and what members send has none
            self.dropped += 1
            return
        found, size, sender = self.first(message), len(message.data), message.subject.rpartition(".")[2]
        if found is None:
            return
        with self._changed:
            if not self._make_room(sender, size):
                self.dropped += 1
                return
            self._waiting.append((found, size, sender))
            self._account(sender, 1, size)
            self._changed.notify()

    def _make_room(self, sender: str, size: int) -> bool:
        """Whether there is room for a message: the newest ones of the sender that has most waiting are dropped, if that is
        another."""
        while True:
            if len(self._waiting) >= self._most_messages:
                waiting, more = self._counts, 1
            elif self._bytes.total() + size > self._most_bytes:
                waiting, more = self._bytes, size
            else:
                return True
            most, load = max(waiting.items(), key=lambda item: item[1], default=(sender, 0))
            if waiting[sender] + more > load:
                return False
            at = next(at for at in reversed(range(len(self._waiting))) if self._waiting[at][2] == most)
            self._account(most, -1, -self._waiting[at][1])
            del self._waiting[at]
            self.dropped += 1

    def _account(self, sender: str, messages: int, size: int) -> None:
        self._counts[sender] += messages
        self._bytes[sender] += size
        if not self._counts[sender]:
            del self._counts[sender], self._bytes[sender]


class Connection:
    """A connection to a gateway with these credentials. Its methods wait, and may be called from any thread.

    It is opened in the background, and again whenever it is lost. `connected` is set while it stands, `closed` once `close`
    was called, `opened` counts how many times it was opened: messages may have been missed between two of them. While there is
    no connection nothing is kept: calls raise Unreachable `gateway_unreachable`, or Denied where the gateway refuses.
    """

    client_class: type[GatewayClient] = GatewayClient

    def __init__(self, credentials: Credentials, timing: GatewayTiming = TIMING.gateway) -> None:
        self.credentials = credentials
        self.connected, self.closed = threading.Event(), threading.Event()
        self.opened = 0
        self.last_error: TmuxctlError | None = None
        self._timing = timing
        self._context = credentials.tls_context()
        self._client: GatewayClient | None = None
        self._subscriptions: list[Subscription[Any]] = []
        self._followed: dict[Subscription[Any], NatsSubscription] = {}
        self._answers: dict[str, asyncio.Queue[CarriedMessage | TmuxctlError]] = {}
        self._asked: dict[str, str] = {}
        self._denied: deque[Denied] = deque(maxlen=64)
        self._unconfirmed = 0
        self._room = threading.Semaphore(SENDING_MOST)
        self._sending: set[asyncio.Task[None]] = set()
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="gateway connection", daemon=True)
        self._thread.start()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def wait_connected(self, timeout: float) -> None:
        """Wait until it stands; raises the error of the last attempt, or Timeout, if it does not within `timeout` seconds.

        Denied is raised at once: the gateway will refuse again.
        """
        with self._changed:
            done = self._changed.wait_for(
                lambda: self.connected.is_set() or self.closed.is_set() or isinstance(self.last_error, Denied), timeout
            )
        if self.connected.is_set():
            return
        if self.last_error or not done:
            raise self.last_error or Timeout(
                "no connection to the gateway yet", reason="timeout", hint="tmuxctl gateway doctor --credentials FILE"
            )
        raise _closed_error()

    def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Have at most MAX_PAYLOAD bytes sent, behind what was published before; Usage `too_large` for more. It comes back before
        they are, unless much waits to be sent; in the connection's own thread they are dropped then. Whether they arrived is known
        after `flush`."""
        most = min(MAX_PAYLOAD, self._ready_client().max_payload)
        if len(data) > most:
            raise Usage(f"a message has at most {most} bytes here, not {len(data)}", reason="too_large")
        if not re.fullmatch(r"[!-~]+", subject):
            raise Usage(f"{ascii(subject[:60])} cannot be a subject", reason="bad_subject")
        if threading.current_thread() is self._thread:
            if not self._room.acquire(blocking=False):
                return
        else:
            while not self._room.acquire(timeout=self._timing.close_seconds):
                self._ready_client()
        try:
            self._loop.call_soon_threadsafe(self._begin_to_send, subject, data, reply)
        except RuntimeError:
            raise _closed_error() from None

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the server has taken all that was published since the last call. Raises Denied `gateway_permission` if it
        refused some of it, Unreachable if the connection was lost meanwhile or does not answer within `timeout` seconds."""
        self._call(self._flush(timeout or self._timing.flush_seconds))
        if self._denied:
            raise self._denied.popleft()

    @overload
    def subscribe(
        self, subject: str, *, most_messages: int = ..., most_bytes: int = ..., of_stream: bool = ...
    ) -> Subscription[CarriedMessage]: ...

    @overload
    def subscribe(self, subject: str, *, first: Callable[[CarriedMessage], T | None]) -> Subscription[T]: ...

    def subscribe(
        self,
        subject: str,
        *,
        most_messages: int = MOST_MESSAGES,
        most_bytes: int = MOST_BYTES,
        first: Callable[[CarriedMessage], Any] = lambda message: message,
        of_stream: bool = False,
    ) -> Subscription[Any]:
        """Follow a subject, also on every later connection. Denied `gateway_permission` where the server does not allow it.

        What the stream sends is dropped, unless the subject is `of_stream`.

        `first` is called with each message in the connection's own thread, where nothing may be waited for; what it returns can be
        taken from the subscription.
        """
        made = Subscription(subject, most_messages, most_bytes, self._forget, first, of_stream=of_stream)
        self._call(self._subscribe(made))
        if made.error:
            self._forget(made)
            raise made.error
        return made

    def request(self, host: str, data: bytes, timeout: float, *, handshake: bool = False) -> CarriedMessage:
        """Send a request of a client to a host (with `handshake`: the beginning of a channel), and wait for its reply.

        Raises Unreachable `host_offline` where no host takes it, `outcome_unknown` where the connection was lost meanwhile,
        Timeout after `timeout` seconds, Denied `gateway_permission`.
        """
        own = self.credentials.id
        subject = subjects.handshake(host, own) if handshake else subjects.rpc(host, own)
        token = secrets.token_hex(12)
        found = self._call(self._ask(subject, data, token, subjects.reply(host, own, token), timeout))
        if found.headers.get("Status") == "503" and not found.data:
            hint = "is tmuxctl running there, with its gateway credentials?"
            raise Unreachable(f"host {host} is not connected to the gateway", reason="host_offline", hint=hint)
        return found

    def respond(self, request: CarriedMessage, data: bytes) -> None:
        """Reply to a request, as a host. Denied `bad_reply` where the client wants the reply on a subject that is not its own."""
        if not subjects.may_reply(self.credentials.id, request.subject, request.reply):
            raise Denied("a request that names a foreign subject for its reply", reason="bad_reply")
        self.publish(request.reply, data)

    def publish_event(self, data: bytes, event_id: str) -> int:
        """Store an event of this host; its number in the stream. An event with an id that was stored a short time ago is not
        stored again. Raises Unreachable where the stream does not confirm it: it may have been stored all the same; Usage
        `too_large` for more than EVENT_BYTES."""
        if len(data) > EVENT_BYTES:
            raise Usage(f"an event has at most {EVENT_BYTES} bytes, not {len(data)}", reason="too_large")
        found = self._ask_stream(subjects.events(self.credentials.id), data, {"Nats-Msg-Id": event_id})
        answer = _parse_answer(found.data)
        if not isinstance(answer.get("seq"), int):
            raise _stream_error(answer)
        return int(answer["seq"])

    def last_event(self) -> StoredEvent | None:
        """The event of this host that was stored last; None if the stream has none."""
        found = self._ask_stream(subjects.last(self.credentials.id), b"")
        return None if found.headers.get("Status") == "404" else _parse_event(found)

    def read_events(self, first: int, *, host: str = subjects.ANY, most: int = 256) -> EventBatch:
        """At most `most` (up to BATCH_MOST) stored events of a host, or of all, from number `first` on."""
        most = min(most, BATCH_MOST)
        wanted = {
            "seq": max(first, 1),
            "batch": most,
            "next_by_subj": subjects.events(host),
            "max_bytes": MOST_BYTES,
        }
        token = secrets.token_hex(12)
        subject = subjects.inbox(self.credentials.id, token)
        return self._call(self._read_batch(json.dumps(wanted).encode(), token, subject, most))

    def close(self) -> None:
        """Close it in order; what was published is sent first. Calls that wait fail."""
        if not self._loop.is_closed():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _call(self, work: Coroutine[Any, Any, R]) -> R:
        """Carry something out in the connection's thread."""
        if self.closed.is_set() or self._loop.is_closed():
            work.close()
            raise _closed_error()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _ready_client(self) -> GatewayClient:
        if self._client is None:
            raise self.last_error or Unreachable(
                "there is no connection to the gateway yet",
                reason="gateway_unreachable",
                hint="tmuxctl gateway doctor --credentials FILE",
            )
        return self._client

    def _begin_to_send(self, subject: str, data: bytes, reply: str) -> None:
        client = self._client
        if client is not None and not self._sending and client.publish_now(subject, data, reply):
            self._unconfirmed = self._unconfirmed or self.opened
            self._room.release()
            return
        task = self._loop.create_task(self._send_in_turn(subject, data, reply))
        # the loop itself keeps none
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send_in_turn(self, subject: str, data: bytes, reply: str) -> None:
        try:
            await self._send(subject, data, reply)
        except TmuxctlError:
            # for `flush` to tell
            self._unconfirmed = -1
        finally:
            self._room.release()

    async def _send(self, subject: str, data: bytes, reply: str, headers: Mapping[str, str] | None = None) -> None:
        client = self._ready_client()
        self._unconfirmed = self._unconfirmed or self.opened
        try:
            await client.publish(subject, data, reply=reply, headers=dict(headers) if headers else None)
        except nats.errors.MaxPayloadError:
            raise Usage(f"the gateway takes no message of {len(data)} bytes", reason="too_large") from None
        except nats.errors.Error:
            raise _lost_error() from None

    async def _flush(self, seconds: float) -> None:
        client = self._ready_client()
        lost, self._unconfirmed = self._unconfirmed not in (0, self.opened), 0
        if lost:
            raise _lost_error()
        try:
            await client.confirm(seconds)
        except (nats.errors.Error, asyncio.CancelledError):
            raise _lost_error() from None

    async def _subscribe(self, made: Subscription[Any]) -> None:
        self._subscriptions.append(made)
        if self._client is not None:
            # on the next connection otherwise
            with suppress(nats.errors.Error):
                await self._follow(self._client, made)
                await self._client.confirm(self._timing.flush_seconds)

    async def _follow(self, client: GatewayClient, made: Subscription[Any]) -> None:
        self._followed[made] = await client.follow(made.subject, lambda message: made.put(_to_message(message)))

    def _forget(self, gone: Subscription[Any]) -> None:
        async def forget() -> None:
            if gone in self._subscriptions:
                self._subscriptions.remove(gone)
            if followed := self._followed.pop(gone, None):
                # of an earlier connection, otherwise
                with suppress(nats.errors.Error):
                    await followed.unsubscribe()

        with suppress(TmuxctlError):
            self._call(forget())

    async def _ask(
        self,
        subject: str,
        data: bytes,
        token: str,
        reply: str,
        timeout: float,
        headers: Mapping[str, str] | None = None,
    ) -> CarriedMessage:
        queue = self._expect(token, subject, 1)
        try:
            await self._send(subject, data, reply, headers)
            return await _take(queue, timeout, f"no reply on {subject}")
        finally:
            self._expect_no_more(token)

    def _expect(self, token: str, subject: str, most: int) -> asyncio.Queue[CarriedMessage | TmuxctlError]:
        queue: asyncio.Queue[CarriedMessage | TmuxctlError] = asyncio.Queue(most)
        self._answers[token], self._asked[token] = queue, subject
        return queue

    def _expect_no_more(self, token: str) -> None:
        del self._answers[token], self._asked[token]

    def _ask_stream(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> CarriedMessage:
        token = secrets.token_hex(12)
        inbox = subjects.inbox(self.credentials.id, token)
        seconds = self._timing.store_seconds
        try:
            found = self._call(self._ask(subject, data, token, inbox, seconds, headers))
        except Timeout:
            raise _unstored_error() from None
        if found.headers.get("Status") == "503":
            raise _unstored_error()
        return found

    async def _read_batch(self, wanted: bytes, token: str, inbox: str, most: int) -> EventBatch:
        queue = self._expect(token, subjects.READ, most + 1)
        events: list[StoredEvent] = []
        try:
            await self._send(subjects.READ, wanted, inbox)
            while True:
                message = await _take(queue, self._timing.store_seconds, "the gateway's stream does not answer")
                status = message.headers.get("Status")
                if status == "404":
                    return EventBatch((), 0)
                if status == "204":
                    return EventBatch(tuple(events), _parse_number(message, "Nats-Num-Pending"))
                if status is not None or len(events) >= most or len(message.data) > EVENT_BYTES:
                    raise _stream_error(message.headers)
                events.append(_parse_event(message))
        except Timeout:
            raise _unstored_error() from None
        finally:
            self._expect_no_more(token)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _run(self) -> None:
        """Open the connection, again and again, until it is closed."""
        failures, number = 0, 0
        urls = self.credentials.urls
        try:
            while not self._stop.is_set():
                lost = asyncio.Event()
                url = urls[number % len(urls)]
                client = self.client_class()
                try:
                    await self._open_in_time(client, url, lost)
                except Exception as error:
                    # of nats-py too, which takes what the server says of itself as it comes
                    self._set_client(None, _open_error(error, url, self.credentials.id))
                    failures += 1
                    number += 1
                else:
                    failures = 0
                    await _wait_any(lost, self._stop)
                    self._lose(client, number)
                    number += 1
                await self._end(client)
                if not self._stop.is_set():
                    longest = self._timing.rare_pause_seconds
                    pause = min(longest, self._timing.pause_seconds * 2 ** min(failures, 10))
                    with suppress(TimeoutError):
                        # at different times, if many lost it at once
                        await asyncio.wait_for(self._stop.wait(), pause * random.uniform(0.5, 1.0))
        finally:
            self._close_all()

    async def _open_in_time(self, client: GatewayClient, url: str, lost: asyncio.Event) -> None:
        """Open a connection; TimeoutError if that takes too long. It is given up when `close` is called."""

        async def find_error() -> Exception | None:
            # returned, not raised: what is given up is not asked how it ended, and asyncio prints exceptions that nobody asks for
            try:
                async with asyncio.timeout(self._timing.open_seconds):
                    await self._open(client, url, lost)
            except Exception as error:
                return error
            return None

        opening = asyncio.ensure_future(find_error())
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({opening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not opening.done():
            opening.cancel()
            raise nats.errors.ConnectionClosedError
        if error := opening.result():
            raise error

    async def _open(self, client: GatewayClient, url: str, lost: asyncio.Event) -> None:
        async def end() -> None:
            lost.set()

        async def hear(error: Exception) -> None:
            self._hear(client, error)

        await client.open(
            url,
            self._context,
            self.credentials.seed,
            self.credentials.jwt,
            connect_timeout=self._timing.connect_seconds,
            ping_interval=self._timing.ping_seconds,
            max_outstanding_pings=2,
            pending_size=MAX_PAYLOAD * 4,
            flush_timeout=self._timing.flush_seconds,
            closed_cb=end,
            error_cb=hear,
        )

        async def take(message: Msg) -> None:
            found = _to_message(message)
            if queue := self._answers.get(found.subject.rpartition(".")[2]):
                with suppress(asyncio.QueueFull):
                    queue.put_nowait(found)

        own = self.credentials.id
        await client.subscribe(subjects.inbox(own, subjects.ANY), cb=take)
        if self.credentials.role is GatewayRole.CLIENT:
            await client.subscribe(subjects.reply(subjects.ANY, own, subjects.ANY), cb=take)
        await client.confirm(self._timing.connect_seconds)
        followed: set[Subscription[Any]] = set()
        # others may be added meanwhile
        while missing := [made for made in self._subscriptions if made not in followed]:
            for made in missing:
                await self._follow(client, made)
            followed.update(missing)
            await client.confirm(self._timing.connect_seconds)
        self.opened += 1
        self._set_client(client, None)

    def _hear(self, client: GatewayClient, error: Exception) -> None:
        """An error that nats-py reports beside what was called: of interest are subjects that the server does not allow."""
        found = _DENIED.search(str(error))
        if not found:
            return
        what = "publish" if found[1].lower() == "publish" else "subscribe"
        hint = "where the gateway is, tmuxctl gateway ls tells whether this is a host or a client"
        denied = Denied(
            f"the gateway does not let {self.credentials.id} {what} {found[2]}", reason="gateway_permission", hint=hint
        )
        if what == "subscribe":
            for made in self._subscriptions:
                if made.subject.casefold() == found[2].casefold():
                    made.fail(denied)
            return
        asked = [token for token, subject in self._asked.items() if subject.casefold() == found[2].casefold()]
        for token in asked:
            with suppress(asyncio.QueueFull):
                self._answers[token].put_nowait(denied)
        if not asked:
            self._denied.append(denied)

    def _lose(self, client: GatewayClient, number: int) -> None:
        """The connection is gone: what waits for a reply will not get one."""
        refused = isinstance(client.last_error, nats.errors.AuthorizationError)
        url = self.credentials.urls[number % len(self.credentials.urls)]
        error = _open_error(client.last_error, url, self.credentials.id) if refused else _lost_error()
        self._set_client(None, error)
        for queue in self._answers.values():
            unknown = Unreachable(
                "the connection to the gateway was lost, and with it the reply",
                reason="outcome_unknown",
                hint="ask again with the same id",
            )
            with suppress(asyncio.QueueFull):
                queue.put_nowait(unknown)

    async def _end(self, client: GatewayClient) -> None:
        if client.is_connected:
            with suppress(nats.errors.Error, OSError):
                await client.confirm(self._timing.close_seconds)
        client.abort()
        # a client that was never whole fails in other ways, too
        with suppress(Exception):
            await asyncio.wait_for(client.close(), self._timing.close_seconds)

    def _set_client(self, client: GatewayClient | None, error: TmuxctlError | None) -> None:
        self._client = client
        self.last_error = error
        with self._changed:
            if client is None:
                self.connected.clear()
            else:
                self.connected.set()
            self._changed.notify_all()

    def _close_all(self) -> None:
        self.closed.set()
        self._set_client(None, None)
        for made in self._subscriptions:
            made.fail(_closed_error())
        for queue in self._answers.values():
            with suppress(asyncio.QueueFull):
                queue.put_nowait(_closed_error())
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()


async def _take(queue: asyncio.Queue[CarriedMessage | TmuxctlError], timeout: float, what: str) -> CarriedMessage:
    try:
        found = await asyncio.wait_for(queue.get(), timeout)
    except TimeoutError:
        raise Timeout(what, reason="timeout") from None
    if isinstance(found, TmuxctlError):
        raise found
    return found


async def _wait_any(*events: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(one.wait()) for one in events]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


def _to_message(message: Msg) -> CarriedMessage:
    headers = {str(getattr(key, "value", key)): value for key, value in (message.headers or {}).items()}
    return CarriedMessage(message.subject, message.reply, message.data, headers)


def _parse_answer(data: bytes) -> dict[str, Any]:
    """The object that the stream answered; empty for anything else."""
    try:
        value = parse_json(data, limit=64 << 10)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _parse_number(message: CarriedMessage, header: str) -> int:
    text = message.headers.get(header, "")
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise _stream_error(message.headers)
    return int(text)


def _parse_event(message: CarriedMessage) -> StoredEvent:
    """A stored event; the stream says in headers what is known of it."""
    words = message.headers.get("Nats-Subject", "").split(".")
    if len(words) != 3 or not subjects.is_id(words[1]):
        raise _stream_error(message.headers)
    sequence = _parse_number(message, "Nats-Sequence")
    return StoredEvent(sequence, words[1], message.headers.get("Nats-Msg-Id", ""), message.data)


def parse_feed(message: CarriedMessage) -> StoredEvent:
    """The stored event in a message of `subjects.feed`; Unreachable `bad_stream` where the gateway sent anything else."""
    return _parse_event(message)


def _stream_error(answer: Mapping[str, Any]) -> Unreachable:
    told = answer.get("Description") or answer.get("error")
    return Unreachable(
        f"the gateway's stream answered {ascii(str(told))[:120]}",
        reason="bad_stream",
        hint="where the gateway is: tmuxctl gateway doctor",
    )


def _unstored_error() -> Unreachable:
    return Unreachable(
        "the gateway's stream does not answer",
        reason="stream_unreachable",
        hint="where the gateway is: tmuxctl gateway status",
    )


def _closed_error() -> Failed:
    return Failed("the connection to the gateway was closed", reason="closed")


def _lost_error() -> Unreachable:
    return Unreachable(
        "the connection to the gateway was lost: what was published may not have arrived",
        reason="gateway_unreachable",
        hint="it is opened again by itself",
    )


def _open_error(error: BaseException | None, url: str, member: str) -> TmuxctlError:
    """Why the gateway could not be reached, or does not want this member."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Denied(
            f"{url}: {error.verify_message}",
            reason="bad_certificate",
            hint="not the gateway that these credentials are for, or it has a new authority: copy a new credentials file",
        )
    if "authorization violation" in str(error).lower():
        return Denied(
            f"{url} refuses the key of {member}",
            reason="gateway_refused",
            hint=f"it was removed or rotated; where the gateway is: tmuxctl gateway rotate {member}",
        )
    told = "timed out" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    return Unreachable(
        f"{url}: {_to_printable(told[:200])}",
        reason="gateway_unreachable",
        hint="tmuxctl gateway doctor --credentials FILE",
    )


def _to_printable(told: str) -> str:
    """A text that a server may have chosen, with ? for each character that a terminal could obey."""
    return "".join(one if one.isprintable() else "?" for one in told)
