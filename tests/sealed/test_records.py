"""What comes through a channel is what the other side sent, each record at most once, whatever the carrier does."""

from __future__ import annotations

import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given, settings
from hypothesis import strategies as some
from sealed.sides import make_ends

from tmuxctl.sealed.noise import SplitKeys
from tmuxctl.sealed.records import (
    CHANNEL_LIMITS,
    HEADER_BYTES,
    MOST_BODY,
    MOST_JSON,
    MOST_RECORD,
    WINDOW,
    Channel,
    ChannelLimits,
    RecordRefused,
)

KEYS = SplitKeys(bytes(32), bytes(range(32)), bytes(range(32, 64)))
MIRRORED = SplitKeys(KEYS.receive, KEYS.send, KEYS.handshake_hash)


def pair(limits=CHANNEL_LIMITS, clock=lambda: 0.0):
    return (
        Channel(KEYS, version=1, initiator=True, limits=limits, clock=clock),
        Channel(MIRRORED, version=1, initiator=False, limits=limits, clock=clock),
    )


def reason(channel: Channel, record: bytes) -> str:
    with pytest.raises(RecordRefused) as error:
        channel.open(record)
    return error.value.reason


json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.night
@settings(deadline=None)
@given(some.dictionaries(some.text(), json_values, max_size=5), some.binary(max_size=2000))
def test_a_record_carries_an_object_and_bytes(header, body):
    client, host = pair()
    found = host.open(client.seal(header, body))
    assert (found.header, found.body, found.counter) == (header, body, 0)


def test_both_directions_have_counters_of_their_own():
    ends = make_ends()
    for number in range(3):
        assert ends.host.open(ends.client.seal({"n": number})).counter == number
        assert ends.client.open(ends.host.seal({"n": number})).counter == number
    sent = ends.client.seal({})
    assert reason(ends.client, sent) == "forged"


carried = some.lists(
    some.tuples(
        some.integers(0, 11),
        some.sampled_from(["whole", "flipped", "cut", "longer", "renumbered"]),
        some.integers(0, 2000),
        some.integers(1, 255),
    ),
    max_size=60,
)


def damage(record: bytes, how: str, at: int, mask: int) -> bytes:
    at %= len(record)
    if how == "flipped":
        return record[:at] + bytes((record[at] ^ mask,)) + record[at + 1 :]
    if how == "cut":
        return record[:at]
    if how == "longer":
        return record + bytes((mask,))
    if how == "renumbered":
        return record[: HEADER_BYTES - 8] + (at + 100).to_bytes(8, "big") + record[HEADER_BYTES:]
    return record


@settings(max_examples=300, deadline=None)
@given(carried)
def test_whatever_a_carrier_does_each_record_is_read_at_most_once_and_no_other(steps):
    """Lost, repeated, reordered, changed: what is read was sent, and every record that arrives whole is read the first time."""
    client, host = pair()
    sent = [client.seal({"n": number}, bytes((number,)) * number) for number in range(12)]
    read, arrived = [], set()
    for number, how, at, mask in steps:
        try:
            found = host.open(damage(sent[number], how, at, mask))
        except RecordRefused:
            assert how != "whole" or number in arrived
            continue
        assert how == "whole"
        assert (found.header, found.body) == ({"n": number}, bytes((number,)) * number)
        read.append(number)
        arrived.add(number)
    assert len(read) == len(set(read))


@pytest.mark.night
@given(some.lists(some.integers(0, 3 * WINDOW), max_size=200))
@settings(max_examples=100, deadline=None)
def test_the_window_is_that_of_a_set_of_all_counters_read(order):
    client, host = pair()
    sent = {}
    for number in range(3 * WINDOW + 1):
        sent[number] = client.seal({})
    read: set[int] = set()
    for number in order:
        if number in read and max(read) - number < WINDOW:
            assert reason(host, sent[number]) == "replayed"
        elif read and max(read) - number >= WINDOW:
            assert reason(host, sent[number]) == "too_old"
        else:
            assert host.open(sent[number]).counter == number
            read.add(number)


def test_the_edges_of_the_window():
    client, host = pair()
    sent = [client.seal({}) for _ in range(WINDOW + 2)]
    host.open(sent[0])
    host.open(sent[WINDOW])
    assert reason(host, sent[0]) == "too_old"
    assert host.open(sent[1]).counter == 1
    assert reason(host, sent[1]) == "replayed"
    assert host.open(sent[WINDOW + 1]).counter == WINDOW + 1
    assert reason(host, sent[1]) == "too_old"
    assert host.open(sent[2]).counter == 2


def test_a_refused_record_changes_nothing():
    client, host = pair()
    record = client.seal({"a": 1})
    # a far counter, which would move the window were it believed
    far = record[: HEADER_BYTES - 8] + (1 << 20).to_bytes(8, "big") + record[HEADER_BYTES:]
    assert reason(host, far) == "forged"
    assert not host.is_confirmed
    assert host.open(record).counter == 0


@pytest.mark.parametrize("data", [b"", b"x", bytes(HEADER_BYTES + 19), bytes(MOST_RECORD + 1)])
def test_what_is_no_record_is_malformed(data):
    assert reason(pair()[1], data) == "malformed"


def test_a_record_of_another_channel_or_version_is_refused():
    client, host = pair()
    record = client.seal({})
    assert reason(host, bytes((2,)) + record[1:]) == "other_channel"
    other = make_ends().client
    assert reason(host, other.seal({})) == "other_channel"


def test_the_header_is_authenticated():
    """A channel whose keys are the same and whose id is another: the header alone differs."""
    client, _ = pair()
    record = client.seal({})
    other = Channel(
        SplitKeys(MIRRORED.send, MIRRORED.receive, bytes(32)), version=1, initiator=False, clock=lambda: 0.0
    )
    renamed = record[:1] + other.id + record[17:]
    assert reason(other, renamed) == "forged"


@pytest.mark.parametrize(
    "text",
    [
        b"\0\0\0\5{}",
        b"\xff\xff\xff\xff{}",
        b"\0\0\0\2[]",
        b"\0\0\0\2{",
        b"\0\0\0\0",
        b'\0\0\0\x09{"a":NaN}',
        b"\0\0\0\x92" + b'{"a":' + b"[" * 70 + b"]" * 70 + b"}",
        b"\0\0\0\2{}" + bytes(MOST_BODY + 1),
    ],
)
def test_what_a_wrong_peer_puts_into_a_record_is_malformed(text):
    client, host = pair()
    head = bytes((1,)) + host.id + bytes(8)
    record = head + ChaCha20Poly1305(KEYS.send).encrypt(bytes(12), text, head)
    assert reason(host, record) == "malformed"
    assert host.open(client.seal({})).counter == 0


def test_the_largest_record_is_read_and_a_larger_one_not_made():
    client, host = pair()
    header, body = {"": "x" * (MOST_JSON - 7)}, bytes(MOST_BODY)
    record = client.seal(header, body)
    assert len(record) == MOST_RECORD
    found = host.open(record)
    assert (found.header, found.body) == (header, body)
    with pytest.raises(ValueError, match="at most"):
        client.seal({}, bytes(MOST_BODY + 1))
    with pytest.raises(ValueError, match="at most"):
        client.seal({"": "x" * (MOST_JSON - 6)})
    with pytest.raises(ValueError, match="JSON"):
        client.seal({"": float("nan")})
    assert host.open(client.seal({})).counter == 1


def test_a_channel_ends_after_its_records():
    client, host = pair(ChannelLimits(records=4))
    sent = [client.seal({}) for _ in range(3)]
    assert client.is_worn
    sent.append(client.seal({}))
    with pytest.raises(RecordRefused, match="over") as error:
        client.seal({})
    assert error.value.reason == "channel_ended"
    assert [host.open(record).counter for record in sent] == [0, 1, 2, 3]
    assert (
        reason(host, sent[0][: HEADER_BYTES - 8] + (4).to_bytes(8, "big") + sent[0][HEADER_BYTES:]) == "channel_ended"
    )


def test_a_channel_ends_after_its_time():
    now = [0.0]
    client, host = pair(ChannelLimits(seconds=100.0, grace_seconds=10.0), clock=lambda: now[0])
    assert not client.is_worn
    now[0] = 75.0
    assert client.is_worn
    records = [client.seal({}), client.seal({})]
    now[0] = 100.0
    with pytest.raises(RecordRefused, match="over"):
        client.seal({})
    assert host.open(records[0]).counter == 0
    now[0] = 110.0
    assert reason(host, records[1]) == "channel_ended"


def test_a_process_that_was_forked_sends_nothing():
    """Both would use the same nonces."""
    client, _ = pair()
    child = os.fork()
    if child == 0:
        try:
            client.seal({})
        except RecordRefused:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert client.seal({})


def test_keys_are_not_shown():
    assert KEYS.send.hex() not in repr(KEYS)
    assert repr(KEYS.receive) not in repr(KEYS)
