"""A connection: what it carries, and that it stands again after every kind of loss."""

from __future__ import annotations

import asyncio
import gc
import signal
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

import nats.errors
import pytest
from gateway.conftest import Pair
from gateway.gateway_site import GatewaySite, connect, until
from machines.relay import Relay
from nats.aio.transport import TcpTransport

from tmuxctl.errors import Failed, Timeout, TmuxctlError, Unreachable, Usage
from tmuxctl.gateway import shared, subjects
from tmuxctl.gateway.connection import MAX_PAYLOAD, CarriedMessage, Connection, Subscription, parse_feed
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.gateway.nats_client import MESSAGE_MOST, GatewayClient
from tmuxctl.timing import TIMING
from tmuxctl.value import changed

PROMISED_SECONDS = 10.0
"""How long after a silent cut requests are answered again."""


@contextmanager
def answering(host: Connection) -> Iterator[list[bytes]]:
    """A host that answers each request with its bytes, reversed; the requests it had."""
    asked, had = host.subscribe(subjects.rpc(host.credentials.id, subjects.ANY)), []

    def answer() -> None:
        while True:
            try:
                request = asked.next()
                had.append(request.data)
                host.respond(request, request.data[::-1])
            except Failed:
                return
            except TmuxctlError:
                continue

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield had
    finally:
        asked.close()
        thread.join()


@contextmanager
def relayed(
    credentials: Credentials, gateway: GatewaySite, count: int = 1
) -> Iterator[tuple[Credentials, list[Relay]]]:
    """Credentials that lead through relays."""
    relays = [Relay(gateway.port) for _ in range(count)]
    try:
        yield changed(credentials, urls=tuple(f"tls://127.0.0.1:{one.port}" for one in relays)), relays
    finally:
        for one in relays:
            one.cut.clear()
            one.close()


def asks(client: Connection, host: str, timeout: float = 2.0) -> bool:
    try:
        return client.request(host, b"abc", timeout).data == b"cba"
    except (Timeout, Unreachable):
        return False


@pytest.mark.night
def test_a_request_is_answered(pair: Pair):
    with answering(pair.host):
        for data in (b"", b"abc", bytes(range(256)) * 4096):
            assert pair.client.request(pair.host.credentials.id, data, 10).data == data[::-1]


def test_what_came_is_handled_before_the_last_user_of_a_connection_has_left(pair: Pair):
    handled, came = [], threading.Event()

    def handle(data: bytes) -> None:
        time.sleep(0.3)
        handled.append(data)

    def take(data: bytes) -> bytes:
        came.set()
        return data

    used = shared.join(pair.client.credentials, TIMING.gateway, Connection)
    used.connection.wait_connected(5)
    subject = used.follow(pair.host.credentials.id, "c" * 16, shared.ChannelOutput(take, handle))
    pair.host.publish(subject, b"a new key")
    assert came.wait(5)
    used.leave(subject)
    assert handled == [b"a new key"]


@pytest.mark.night
def test_a_host_that_is_not_there_is_told_at_once(pair: Pair):
    with pytest.raises(Unreachable) as found:
        pair.client.request("b" * 16, b"x", 60.0)
    assert found.value.reason == "host_offline"


@pytest.mark.night
def test_a_host_that_does_not_answer_costs_the_time_given(pair: Pair):
    asked = pair.host.subscribe(subjects.rpc(pair.host.credentials.id, subjects.ANY))
    with pytest.raises(Timeout):
        pair.client.request(pair.host.credentials.id, b"x", 0.2)
    assert asked.next(5).data == b"x"


@pytest.mark.night
def test_what_is_too_large_or_no_subject_is_refused_here(pair: Pair):
    with pytest.raises(Usage) as found:
        pair.host.publish(subjects.heartbeat(pair.host.credentials.id), b"x" * (MAX_PAYLOAD + 1))
    assert found.value.reason == "too_large"
    for subject in ("", "a b", "a\r\nPUB x 0\r\n"):
        with pytest.raises(Usage):
            pair.host.publish(subject, b"")


@pytest.mark.night
def test_what_is_not_taken_is_bounded_and_counted(pair: Pair):
    host = pair.host.credentials.id
    few = pair.client.subscribe(subjects.heartbeat(host), most_messages=3)
    small = pair.client.subscribe(subjects.output(host, pair.client.credentials.id, subjects.ANY), most_bytes=250)
    for number in range(10):
        pair.host.publish(subjects.heartbeat(host), b"%d" % number)
        pair.host.publish(subjects.output(host, pair.client.credentials.id, "c"), b"x" * 100)
    pair.host.flush()
    until(lambda: (few.dropped, small.dropped) == (7, 8), "not counted")
    assert [few.next(1).data for _ in range(3)] == [b"0", b"1", b"2"]
    with pytest.raises(Timeout):
        few.next(0)
    pair.host.publish(subjects.heartbeat(host), b"new")
    assert few.next(5).data == b"new"


def test_a_sender_that_floods_takes_no_room_from_others(pair: Pair):
    host = pair.host.credentials.id
    asked = pair.host.subscribe(subjects.rpc(host, subjects.ANY), most_messages=8)
    with connect(pair.gateway.add("client")) as other:
        for sender, count in ((pair.client, 20), (other, 3), (pair.client, 20)):
            for number in range(count):
                sender.publish(subjects.rpc(host, sender.credentials.id), b"%d" % number)
            sender.flush()
        until(lambda: asked.dropped == 35, "not counted")
        taken = [asked.next(1) for _ in range(8)]
        for sender, count in ((pair.client, 5), (other, 3)):
            own = [one.data for one in taken if one.subject == subjects.rpc(host, sender.credentials.id)]
            assert own == [b"%d" % number for number in range(count)]
        with pytest.raises(Timeout):
            asked.next(0)
        # as much of each finds room again
        for _ in range(10):
            pair.client.publish(subjects.rpc(host, pair.client.credentials.id), b"again")
        assert [asked.next(20).data for _ in range(8)] == [b"again"] * 8


def test_a_sender_of_large_messages_takes_no_room_from_others():
    asked = Subscription("a.*", 100, 1000, lambda _gone: None, lambda message: message, of_stream=False)
    for sender, size in (("large", 300), ("large", 300), ("large", 300), ("small", 1), ("other", 350), ("large", 300)):
        asked.put(CarriedMessage(f"a.{sender}", "", b"x" * size, {}))
    assert [asked.next(0).subject for _ in range(4)] == ["a.large", "a.large", "a.small", "a.other"]
    assert asked.dropped == 2
    asked.put(CarriedMessage("a.new", "", b"x" * 1001, {}))
    asked.put(CarriedMessage("a.new", "", b"x" * 1000, {}))
    assert len(asked.next(0).data) == 1000
    assert asked.dropped == 3


def test_messages_of_any_size_come_in_their_order(pair: Pair):
    """Small ones go out at once, and large ones wait for room in the socket."""
    host = pair.host.credentials.id
    messages = pair.client.subscribe(subjects.heartbeat(host), most_messages=10_000, most_bytes=1 << 30)
    for number in range(600):
        pair.host.publish(subjects.heartbeat(host), b"%d " % number + b"x" * (0 if number % 7 else 200_000))
    assert [int(messages.next(20).data.split()[0]) for _ in range(600)] == list(range(600))


def test_what_takes_a_message_first_may_fail_and_answer_and_nothing_ends(pair: Pair):
    host, client = pair.host.credentials.id, pair.client.credentials.id
    answers = pair.client.subscribe(subjects.output(host, client, "c"), most_bytes=1 << 30)

    def take(message: CarriedMessage) -> bytes | None:
        if message.data == b"wrong":
            raise ValueError(message.data)
        if message.data == b"many":
            # in the connection's own thread: more than waits to be sent is dropped, and nothing is waited for
            for _ in range(50):
                pair.host.publish(subjects.output(host, client, "c"), b"x" * 500_000)
        return message.data[::-1] or None

    taken = pair.host.subscribe(subjects.rpc(host, subjects.ANY), first=take)
    for data in (b"", b"wrong", b"many", b"last"):
        pair.client.publish(subjects.rpc(host, client), data)
    assert [taken.next(20), taken.next(20)] == [b"ynam", b"tsal"]
    assert answers.next(20).data
    pair.host.publish(subjects.output(host, client, "c"), b"end")
    until(lambda: answers.next(20).data == b"end", "nothing comes any more")


def test_what_is_not_followed_any_more_does_not_come(pair: Pair):
    host = pair.host.credentials.id
    first, second = (pair.client.subscribe(subjects.heartbeat(host)) for _ in range(2))
    first.close()
    pair.host.publish(subjects.heartbeat(host), b"x")
    assert second.next(5).data == b"x"
    with pytest.raises(Failed):
        first.next(5)


def test_events_are_stored_once_and_read_from_a_number_on(pair: Pair):
    feed = pair.client.subscribe(subjects.feed(subjects.ANY), of_stream=True)
    assert pair.host.last_event() is None
    assert pair.client.read_events(1).events == ()
    numbers = [pair.host.publish_event(b"e%d" % one, f"id{one}") for one in range(5)]
    assert numbers == [1, 2, 3, 4, 5]
    assert pair.host.publish_event(b"again", "id2") == 3 or pair.host.last_event()
    last = pair.host.last_event()
    assert last
    assert (last.sequence, last.id, last.data, last.host) == (5, "id4", b"e4", pair.host.credentials.id)
    batch = pair.client.read_events(2, most=2)
    assert ([one.data for one in batch.events], batch.pending) == ([b"e1", b"e2"], 2)
    rest = pair.client.read_events(batch.events[-1].sequence + 1, host=pair.host.credentials.id)
    assert ([one.sequence for one in rest.events], rest.pending) == ([4, 5], 0)
    assert pair.client.read_events(1, host="c" * 16).events == ()
    assert [parse_feed(feed.next(5)).sequence for _ in range(5)] == numbers


def test_calls_of_several_threads_do_not_mix(pair: Pair):
    wrong: list[object] = []

    def ask(number: int) -> None:
        for one in range(50):
            data = b"%d-%d" % (number, one)
            if pair.client.request(pair.host.credentials.id, data, 10).data != data[::-1]:
                wrong.append(data)

    with answering(pair.host):
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert not wrong


@pytest.mark.night
def test_a_server_that_was_killed_is_found_again(pair: Pair):
    with answering(pair.host):
        pair.host.publish_event(b"before", "1")
        pair.gateway.end(signal.SIGKILL)
        until(lambda: not pair.client.connected.is_set(), "the loss was not seen")
        with pytest.raises(Unreachable):
            pair.client.request(pair.host.credentials.id, b"x", 1)
        pair.gateway.start()
        pair.client.wait_connected(PROMISED_SECONDS)
        pair.host.wait_connected(PROMISED_SECONDS)
        # what was followed is followed again
        until(lambda: asks(pair.client, pair.host.credentials.id), "no answer after the restart")
        assert [one.data for one in pair.client.read_events(1).events] == [b"before"]


@pytest.mark.night
def test_a_request_that_was_under_way_ends_with_an_unknown_outcome(pair: Pair):
    asked = pair.host.subscribe(subjects.rpc(pair.host.credentials.id, subjects.ANY))
    found: list[BaseException] = []

    def ask() -> None:
        try:
            pair.client.request(pair.host.credentials.id, b"x", 60)
        except TmuxctlError as error:
            found.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    asked.next(5)
    pair.gateway.end(signal.SIGKILL)
    thread.join(20)
    assert [getattr(one, "reason", None) for one in found] == ["outcome_unknown"]


class StockClient(GatewayClient):
    """With the connection that nats-py makes itself."""

    def make_transport(self, context: ssl.SSLContext) -> TcpTransport:
        return TcpTransport()


class StockConnection(Connection):
    """As `Connection`, without what gives up a lost connection at once."""

    client_class = StockClient


def seconds_until_answered(client: Connection, host: str, since: float, longest: float) -> float:
    while not asks(client, host):
        if time.monotonic() - since > longest:
            break
        time.sleep(0.05)
    return time.monotonic() - since


@pytest.mark.night
def test_after_a_silent_cut_the_second_address_is_used_in_time(pair: Pair):
    host = pair.host.credentials.id
    with (
        answering(pair.host),
        relayed(pair.client.credentials, pair.gateway, 2) as (credentials, relays),
        connect(credentials) as client,
    ):
        assert asks(client, host)
        relays[0].cut.set()
        assert seconds_until_answered(client, host, time.monotonic(), 60) <= PROMISED_SECONDS


@pytest.mark.night
def test_nats_py_alone_takes_longer_than_that(pair: Pair):
    """Once it does not, `nats_client` needs no transport of its own."""
    host = pair.host.credentials.id
    with (
        answering(pair.host),
        relayed(pair.client.credentials, pair.gateway, 2) as (credentials, relays),
        connect(credentials, StockConnection) as client,
    ):
        relays[0].cut.set()
        taken = seconds_until_answered(client, host, time.monotonic(), 60)
    print(f"{taken:.1f} s")
    assert taken > PROMISED_SECONDS


@pytest.mark.night
def test_after_a_silent_cut_that_heals_requests_are_answered_in_time(pair: Pair):
    host = pair.host.credentials.id
    with (
        answering(pair.host),
        relayed(pair.client.credentials, pair.gateway) as (credentials, relays),
        connect(credentials) as client,
    ):
        assert asks(client, host)
        relays[0].cut.set()
        until(lambda: not client.connected.is_set(), "the cut was not seen")
        relays[0].cut.clear()
        assert seconds_until_answered(client, host, time.monotonic(), 60) <= PROMISED_SECONDS


@pytest.mark.night
def test_a_flood_that_finds_no_room_ends_with_the_connection(pair: Pair):
    """What cannot be sent is not waited for without end."""
    own = pair.host.credentials.id
    with relayed(pair.host.credentials, pair.gateway, 2) as (credentials, relays), connect(credentials) as host:
        relays[0].cut.set()
        with suppress(Unreachable):
            while host.opened == 1:
                host.publish(subjects.heartbeat(own), b"x" * MAX_PAYLOAD)
        host.wait_connected(60)
        assert host.opened == 2
        with pytest.raises(Unreachable, match="was lost"):
            host.flush()
        host.flush()


@pytest.mark.parametrize(
    "told",
    [b"MSG a 1 2000000000\r\n", b"HMSG a 1 20 2000000000\r\n", b"MSG " + b"a" * (MESSAGE_MOST + 1)],
    ids=["message", "headers", "line"],
)
def test_a_gateway_cannot_have_this_end_keep_more_than_a_message(told: bytes) -> None:
    async def feed() -> None:
        parser = GatewayClient()._ps
        with pytest.raises(nats.errors.ProtocolError):
            await parser.parse(told)

    asyncio.run(feed())


@contextmanager
def greeting(gateway: GatewaySite, told: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server with the gateway's certificate that says this to each who comes, and nothing more: its port, and who came."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(gateway.files.path("server.pem"), gateway.files.path("server.key"))
    came: list[bytes] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(told)
        with suppress(OSError):
            writer.write(told)
            await reader.read()
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=context)
        ready.set_result((server.sockets[0].getsockname()[1], asyncio.get_running_loop()))
        with suppress(asyncio.CancelledError):
            await server.serve_forever()

    ready: Future[tuple[int, asyncio.AbstractEventLoop]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    port, loop = ready.result(20)
    try:
        yield port, came
    finally:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        thread.join(20)


@pytest.mark.night
@pytest.mark.parametrize(
    "info",
    [
        b"[]",
        b"7",
        b'{"auth_required": true, "nonce": 7}',
        b'{"connect_urls": 7}',
        b'{"connect_urls": ["[::"]}',
        b'{"max_payload": "many", "nonce": "n"}',
        b"{" * 100_000,
        b'{"nonce": "n"}\r\n-ERR \x1b[2Jno',
    ],
    ids=lambda info: info[:20].decode(),
)
def test_a_server_that_greets_with_nonsense_is_told_and_others_are_tried(gateway: GatewaySite, info: bytes):
    credentials = gateway.add("host")
    answer = b"INFO " + info + b"\r\nPONG\r\n"
    with greeting(gateway, answer) as (port, came):
        wrong = f"tls://127.0.0.1:{port}"
        with Connection(changed(credentials, urls=(wrong,))) as host:
            until(lambda: len(came) > 2, "it does not try again")
            until(lambda: host.last_error, "no error is told")
            with pytest.raises((Unreachable, Timeout)) as found:
                host.wait_connected(0.1)
            assert wrong in found.value.message
            assert found.value.message.isprintable()
        with Connection(changed(credentials, urls=(wrong, *credentials.urls))) as host:
            host.wait_connected(PROMISED_SECONDS)


@pytest.mark.night
def test_a_gateway_that_is_not_there_is_looked_for_until_it_is(gateway: GatewaySite):
    credentials = gateway.add("host")
    gateway.end()
    with Connection(credentials) as host:
        with pytest.raises((Unreachable, Timeout)):
            host.wait_connected(0.5)
        with pytest.raises(Unreachable):
            host.flush()
        follow = host.subscribe(subjects.rpc(credentials.id, subjects.ANY))
        gateway.start()
        host.wait_connected(20)
        with connect(gateway.add("client")) as client, pytest.raises(Timeout):
            client.request(credentials.id, b"x", 0.2)
        assert follow.next(5).data == b"x"


def test_a_closed_connection_says_so(pair: Pair):
    follow = pair.client.subscribe(subjects.feed(subjects.ANY), of_stream=True)
    pair.client.close()
    assert pair.client.closed.is_set()
    for call in (
        lambda: pair.client.request("b" * 16, b"", 1),
        lambda: pair.client.flush(),
        lambda: follow.next(5),
        lambda: pair.client.wait_connected(5),
    ):
        with pytest.raises(Failed) as found:
            call()
        assert found.value.reason == "closed"
    pair.client.close()


@pytest.mark.night
def test_what_was_published_arrives_though_the_connection_is_closed_at_once(pair: Pair):
    host = pair.host.credentials.id
    follow = pair.client.subscribe(subjects.heartbeat(host), most_messages=1000)
    for number in range(500):
        pair.host.publish(subjects.heartbeat(host), b"%d" % number)
    pair.host.close()
    assert [follow.next(5).data for _ in range(500)] == [b"%d" % number for number in range(500)]


class HeldClient(GatewayClient):
    """A client whose connection is held back, at its first confirmation, until the test lets it go on."""

    held, let_go = threading.Event(), threading.Event()

    async def confirm(self, seconds: float) -> None:
        await super().confirm(seconds)
        self.held.set()
        while not self.let_go.is_set():
            await asyncio.sleep(0.01)


class HeldConnection(Connection):
    client_class = HeldClient


class LostClient(GatewayClient):
    """A client whose connection is lost just when it is given up."""

    begun = threading.Event()

    async def connect(self, *_what: object, **_more: object) -> None:
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionResetError from None


class LostConnection(Connection):
    client_class = LostClient


def test_a_connection_that_is_lost_while_it_is_given_up_prints_nothing(pair: Pair, caplog: pytest.LogCaptureFixture):
    with LostConnection(pair.host.credentials):
        assert LostClient.begun.wait(20)
    gc.collect()
    assert not caplog.records


@pytest.mark.night
def test_what_is_subscribed_while_a_connection_opens_is_followed_on_it(pair: Pair):
    with HeldConnection(pair.host.credentials) as opening:
        assert HeldClient.held.wait(20)
        messages = opening.subscribe(subjects.rpc(pair.host.credentials.id, subjects.ANY))
        HeldClient.let_go.set()
        opening.wait_connected(20)
        pair.client.publish(subjects.rpc(pair.host.credentials.id, pair.client.credentials.id), b"asked")
        assert messages.next(20).data == b"asked"
