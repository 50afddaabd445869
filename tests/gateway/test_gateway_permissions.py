"""Who may publish and subscribe what: a host what is its own, a client what asks hosts, neither anything of the stream's."""

from __future__ import annotations

import asyncio
import json
import subprocess
from contextlib import suppress
from pathlib import Path

import nats
import nats.js.errors
import pytest
from gateway.conftest import Pair
from gateway.gateway_site import until

from tmuxctl.errors import Denied, Failed, Timeout
from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import Connection, StoredEvent, parse_feed
from tmuxctl.gateway.server import status
from tools.ports import free_ports

ELSE = "a" * 16
API = ("$JS.API.INFO", "$JS.API.STREAM.DELETE.EVENTS", "$JS.API.DIRECT.GET.EVENTS", "$SYS.REQ.SERVER.PING")


def cannot_subscribe(connection: Connection, subject: str) -> bool:
    with pytest.raises(Denied) as found:
        connection.subscribe(subject)
    return found.value.reason == "gateway_permission"


def cannot_publish(connection: Connection, subject: str) -> bool:
    connection.publish(subject, b"{}")
    with pytest.raises(Denied) as found:
        connection.flush()
    return found.value.reason == "gateway_permission"


@pytest.mark.night
def test_a_host_cannot_follow_what_another_host_is_sent(pair: Pair, other_host: Connection):
    other, own = other_host.credentials.id, pair.host.credentials.id
    for subject in (
        subjects.rpc(other, subjects.ANY),
        subjects.handshake(other, subjects.ANY),
        subjects.inbox(other, subjects.ANY),
        subjects.reply(other, subjects.ANY, subjects.ANY),
        subjects.output(other, subjects.ANY, subjects.ANY),
        subjects.feed(other),
        subjects.heartbeat(other),
        subjects.rpc(subjects.ANY, subjects.ANY),
        subjects.reply(own, subjects.ANY, subjects.ANY),
        "tmc.>",
        ">",
        "_INBOX.>",
    ):
        assert cannot_subscribe(pair.host, subject)
    pair.host.subscribe(subjects.rpc(own, subjects.ANY))


def test_a_host_cannot_speak_for_another_host(pair: Pair, other_host: Connection):
    other, client = other_host.credentials.id, pair.client.credentials.id
    for subject in (
        subjects.reply(other, client, "t"),
        subjects.output(other, client, "c"),
        subjects.heartbeat(other),
        subjects.events(other),
        subjects.last(other),
        subjects.rpc(other, client),
        subjects.handshake(other, client),
        subjects.inbox(client, "t"),
        subjects.feed(pair.host.credentials.id),
        subjects.READ,
        "anything",
        *API,
    ):
        assert cannot_publish(pair.host, subject)


@pytest.mark.night
def test_a_client_cannot_follow_what_others_are_sent(pair: Pair):
    host = pair.host.credentials.id
    for subject in (
        subjects.rpc(host, subjects.ANY),
        subjects.handshake(host, subjects.ANY),
        subjects.reply(host, ELSE, subjects.ANY),
        subjects.output(host, ELSE, subjects.ANY),
        subjects.output(host, subjects.ANY, subjects.ANY),
        subjects.reply(subjects.ANY, subjects.ANY, subjects.ANY),
        subjects.inbox(host, subjects.ANY),
        subjects.events(host),
        "tmc.*.*",
        ">",
    ):
        assert cannot_subscribe(pair.client, subject)
    own = pair.client.credentials.id
    for subject in (
        subjects.feed(subjects.ANY),
        subjects.heartbeat(host),
        subjects.output(host, own, subjects.ANY),
    ):
        pair.client.subscribe(subject).close()


@pytest.mark.night
def test_a_client_cannot_speak_for_a_host_or_another_client(pair: Pair):
    host, own = pair.host.credentials.id, pair.client.credentials.id
    for subject in (
        subjects.rpc(host, ELSE),
        subjects.handshake(host, ELSE),
        subjects.reply(host, own, "t"),
        subjects.output(host, own, "c"),
        subjects.heartbeat(host),
        subjects.events(host),
        subjects.events(own),
        subjects.last(host),
        subjects.feed(host),
        *API,
    ):
        assert cannot_publish(pair.client, subject)


@pytest.mark.night
def test_a_denied_request_is_refused_before_its_time_is_over(pair: Pair):
    with pytest.raises(Denied):
        pair.host.request(ELSE, b"x", 60.0)
    with pytest.raises(Denied):
        pair.client.publish_event(b"x", "1")


@pytest.mark.night
@pytest.mark.parametrize("reply", ["$JS.API.STREAM.DELETE.EVENTS", "$JS.API.STREAM.PURGE.EVENTS", "events of another"])
def test_an_answer_of_the_stream_cannot_be_sent_where_the_asker_may_not_publish(
    pair: Pair, other_host: Connection, reply: str
):
    """Stock NATS publishes an answer wherever the question wants it, with the rights of the server. In one account with the
    stream this deletes it: see `test_one_account_would_not_do`."""
    other = other_host.credentials.id
    if reply == "events of another":
        reply = subjects.events(other)
    pair.host.publish_event(b"", "1")
    feed = pair.client.subscribe(subjects.feed(subjects.ANY), of_stream=True)
    for seq in (b'{"seq": 1}', b'{"seq": 999}', b"no question"):
        pair.client.publish(subjects.READ, seq, reply)
    pair.client.flush()
    pair.host.publish(subjects.events(pair.host.credentials.id), b"{}", reply)
    pair.host.publish(subjects.last(pair.host.credentials.id), b"", reply)
    pair.host.flush()
    # what comes after all that is stored
    pair.host.publish_event(b"end", "2")
    found: list[StoredEvent] = []
    while not found or found[-1].data != b"end":
        found.append(parse_feed(feed.next(5)))
    assert {one.host for one in found} == {pair.host.credentials.id}
    stored = pair.client.read_events(1)
    assert [one.data for one in stored.events] == [b"", b"{}", b"end"]
    assert [one.events for one in status.look(pair.gateway.files).streams] == [3]


@pytest.mark.night
def test_one_account_would_not_do(place: Path, nats_server: str):
    """Why the stream has an account of its own. Once this fails, it needs none."""
    (port,) = free_ports(1)
    reader = {"publish": ["$JS.API.DIRECT.GET.EVENTS"], "subscribe": ["inbox.>"]}
    users = [{"user": "admin", "password": "a"}, {"user": "reader", "password": "r", "permissions": reader}]
    config = {
        "host": "127.0.0.1",
        "port": port,
        "jetstream": {"store_dir": str(place / "store")},
        "accounts": {"main": {"jetstream": "enabled", "users": users}},
    }
    (place / "one.conf").write_text(json.dumps(config))

    async def attack() -> None:
        url = f"nats://127.0.0.1:{port}"
        admin = await nats.connect(url, user="admin", password="a", max_reconnect_attempts=100, reconnect_time_wait=1)
        stream = admin.jetstream()
        await stream.add_stream(name="EVENTS", subjects=["tmc.*.events"], allow_direct=True)
        await stream.publish("tmc.x.events", b"")
        other = await nats.connect(url, user="reader", password="r", inbox_prefix="inbox")
        await other.publish("$JS.API.DIRECT.GET.EVENTS", b'{"seq": 999}', reply="$JS.API.STREAM.DELETE.EVENTS")
        await other.flush()
        with suppress(nats.js.errors.NotFoundError):
            # until the time of the test is over, where it is still there
            while True:
                await stream.stream_info("EVENTS")
        await other.close()
        await admin.close()

    with open(place / "one.log", "wb") as log:
        process = subprocess.Popen([nats_server, "-c", str(place / "one.conf")], stderr=log)
    try:
        asyncio.run(asyncio.wait_for(attack(), 60))
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.night
def test_a_host_does_not_reply_where_a_client_may_not_listen(pair: Pair):
    host, client = pair.host.credentials.id, pair.client.credentials.id
    asked = pair.host.subscribe(subjects.rpc(host, subjects.ANY))
    for reply in (subjects.events(host), subjects.reply(host, ELSE, "t"), subjects.heartbeat(host), ""):
        pair.client.publish(subjects.rpc(host, client), b"x", reply)
        with pytest.raises(Denied) as found:
            pair.host.respond(asked.next(5), b"answer")
        assert found.value.reason == "bad_reply"
    assert pair.client.read_events(1).events == ()


@pytest.mark.night
def test_who_sent_a_request_is_part_of_its_subject(pair: Pair):
    host, client = pair.host.credentials.id, pair.client.credentials.id
    asked = pair.host.subscribe(subjects.handshake(host, subjects.ANY))
    with pytest.raises(Timeout):
        pair.client.request(host, b"begin", 0.2, handshake=True)
    assert asked.next(5).subject == subjects.handshake(host, client)


def test_an_answer_of_the_stream_is_not_taken_for_what_another_client_sent(pair: Pair, other_host: Connection):
    """It can be sent on each subject of clients: the one who asks names the place."""
    host = pair.host.credentials.id
    pair.host.publish_event(b"p" + bytes(34), "1")
    asked = [
        pair.host.subscribe(subjects.handshake(host, subjects.ANY)),
        pair.host.subscribe(subjects.rpc(host, subjects.ANY)),
        pair.client.subscribe(subjects.heartbeat(host)),
    ]
    for subject in (subjects.handshake(host, ELSE), subjects.rpc(host, ELSE), subjects.heartbeat(host)):
        pair.client.publish(subjects.READ, b'{"seq": 1}', subject)
        other_host.publish(subjects.last(other_host.credentials.id), b"", subject)
    pair.client.flush()
    other_host.flush()
    until(lambda: [one.dropped for one in asked] == [2, 2, 2], "they are not dropped")
    for one in asked:
        with pytest.raises(Timeout):
            one.next(0)


def test_permissions_that_change_end_what_is_followed(pair: Pair):
    follow = pair.client.subscribe(subjects.feed(subjects.ANY), of_stream=True)
    pair.gateway.result("remove", pair.client.credentials.id)
    until(lambda: isinstance(pair.client.last_error, Denied), "the client was not refused")
    with pytest.raises(Denied):
        pair.client.flush()
    pair.client.close()
    with pytest.raises(Failed):
        follow.next(5)
