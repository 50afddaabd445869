"""A client gets a channel from the host it knows, if the host knows it; whoever carries the messages gets nothing."""

from __future__ import annotations

import pytest
from sealed.sides import connect

from tmuxctl.errors import Denied
from tmuxctl.sealed.handshake import MOST_TIMES, NANOSECONDS, ClientHandshake, HostHandshake
from tmuxctl.sealed.keys import make_key_pair
from tmuxctl.sealed.noise import IkHandshake

CLIENT, HOST = make_key_pair(), make_key_pair()
PROLOGUE = b"tmuxctl channel" + bytes((1, 1, 1)) + b"\2c1" + b"\2h1"
NOW = 1_800_000_000 * NANOSECONDS


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


def make_host(**options):
    known = options.pop("known", (CLIENT.public,))
    return HostHandshake(
        options.pop("keys", [HOST]),
        host_id="h1",
        is_authorized=lambda key: key in known,
        clock=options.pop("clock", lambda: NOW),
        **options,
    )


def make_request(**options) -> ClientHandshake:
    return ClientHandshake(
        options.pop("keys", CLIENT),
        options.pop("host_key", HOST.public),
        client_id=options.pop("client_id", "c1"),
        host_id=options.pop("host_id", "h1"),
        clock=options.pop("clock", lambda: NOW),
        **options,
    )


def refused(call, *arguments) -> Denied:
    with pytest.raises(Denied) as error:
        call(*arguments)
    return error.value


def test_both_ends_have_one_channel_and_the_host_knows_whose_it_is():
    host, asking = make_host(), make_request()
    accepted = host.answer(asking.request, "c1")
    channel = asking.read_reply(accepted.reply)
    assert accepted.client_key == CLIENT.public
    assert channel.id == accepted.channel.id
    assert not accepted.channel.is_confirmed
    assert accepted.channel.open(channel.seal({"verb": "ls"}, b"\0")).header == {"verb": "ls"}
    assert accepted.channel.is_confirmed
    assert channel.open(accepted.channel.seal({"rows": []})).header == {"rows": []}


def test_each_handshake_makes_another_channel():
    host = make_host(clock=lambda: NOW + 1)
    made = [connect(CLIENT, host, HOST.public, clock=lambda at=at: NOW + at) for at in range(8)]
    assert len({ends.client.id for ends in made}) == 8
    with pytest.raises(Denied) as error:
        made[0].host.open(made[1].client.seal({}))
    assert error.value.reason == "other_channel"


def test_the_request_tells_nothing_of_either_key():
    request = make_request().request
    assert CLIENT.public not in request
    assert HOST.public not in request


def test_a_client_that_is_not_authorized_is_refused():
    error = refused(make_host(known=()).answer, make_request().request, "c1")
    assert error.reason == "unpaired"


def test_a_revoked_client_is_refused_from_then_on():
    known = [CLIENT.public]
    host = make_host(known=known)
    assert host.answer(make_request().request, "c1")
    known.clear()
    assert refused(host.answer, make_request(clock=lambda: NOW + 1).request, "c1").reason == "unpaired"


def test_a_host_with_another_key_can_neither_read_the_request_nor_answer_it():
    other = make_key_pair()
    asking = make_request()
    assert refused(make_host(keys=[other]).answer, asking.request, "c1").reason == "handshake"
    elsewhere = make_request(host_key=other.public)
    reply = make_host(keys=[other]).answer(elsewhere.request, "c1").reply
    assert refused(asking.read_reply, reply).reason == "handshake"


def test_a_request_for_other_ids_is_refused():
    host = make_host()
    assert refused(host.answer, make_request().request, "c2").reason == "handshake"
    assert refused(host.answer, make_request(host_id="h2").request, "c1").reason == "handshake"
    # no byte may move from one id to the other
    assert refused(host.answer, make_request(client_id="c1h", host_id="1").request, "c1").reason == "handshake"


def test_every_changed_byte_of_either_message_is_noticed():
    request = make_request().request
    for at in range(len(request)):
        changed = request[:at] + bytes((request[at] ^ 0x80,)) + request[at + 1 :]
        host = make_host()
        assert refused(host.answer, changed, "c1").reason in ("handshake", "protocol")
        # and nothing is remembered of it
        assert host.answer(request, "c1")
    for at in range(50):
        asking = make_request()
        reply = bytearray(make_host().answer(asking.request, "c1").reply)
        reply[at] ^= 0x80
        assert refused(asking.read_reply, bytes(reply)).reason == "handshake"


@pytest.mark.parametrize("cut", [0, 1, 2, 3, 49, -1])
def test_messages_of_another_length_are_refused(cut):
    asking = make_request()
    assert refused(make_host().answer, asking.request[:cut], "c1").reason == "handshake"
    assert refused(make_host().answer, asking.request + b"\0", "c1").reason == "handshake"
    reply = make_host().answer(asking.request, "c1").reply
    assert refused(asking.read_reply, reply[:cut]).reason == "handshake"


def test_a_reply_is_read_once():
    asking = make_request()
    reply = make_host().answer(asking.request, "c1").reply
    refused(asking.read_reply, reply + b"\0")
    asking.read_reply(reply)
    assert refused(asking.read_reply, reply).message == "a reply to this request was read before"


def test_a_request_is_answered_once():
    host, request = make_host(), make_request().request
    host.answer(request, "c1")
    assert refused(host.answer, request, "c1").reason == "replayed"


def test_requests_of_one_client_may_overtake_each_other():
    host = make_host()
    later, earlier = (make_request(clock=lambda at=at: NOW + at).request for at in (2, 1))
    assert host.answer(later, "c1")
    assert host.answer(earlier, "c1")
    assert refused(host.answer, earlier, "c1").reason == "replayed"


def test_what_is_older_than_all_remembered_requests_is_refused():
    host = make_host()
    old = [make_request(clock=lambda at=at: NOW + at).request for at in (0, 5)]
    host.answer(old[1], "c1")
    for at in range(10, 10 + MOST_TIMES):
        host.answer(make_request(clock=lambda at=at: NOW + at).request, "c1")
    assert [refused(host.answer, request, "c1").reason for request in old] == ["replayed", "replayed"]


def test_clients_do_not_take_each_others_times():
    other = make_key_pair()
    host = make_host(known=(CLIENT.public, other.public))
    assert host.answer(make_request().request, "c1")
    assert host.answer(make_request(keys=other).request, "c1")


@pytest.mark.parametrize(("apart", "told"), [(-301, "301 s behind"), (301, "301 s ahead of")])
def test_a_clock_that_is_far_off_is_named(apart, told):
    request = make_request(clock=lambda: NOW + apart * NANOSECONDS).request
    error = refused(make_host().answer, request, "c1")
    assert error.reason == "clock"
    assert told in error.message


def test_an_old_request_is_refused_by_a_host_that_was_started_again():
    clock = Clock()
    request = make_request().request
    make_host(clock=clock).answer(request, "c1")
    clock.now += 301 * NANOSECONDS
    assert refused(make_host(clock=clock).answer, request, "c1").reason == "clock"


def test_a_request_that_is_replayed_to_a_host_started_again_gives_a_channel_nobody_can_use():
    asking = make_request()
    first = make_host().answer(asking.request, "c1")
    again = make_host().answer(asking.request, "c1")
    channel = asking.read_reply(first.reply)
    assert refused(again.channel.open, channel.seal({})).reason == "other_channel"
    assert not again.channel.is_confirmed


def test_a_host_answers_those_who_know_its_old_key():
    old = HOST
    new = make_key_pair()
    host = make_host(keys=[new, old])
    assert host.answer(make_request().request, "c1").host_key == old.public
    assert host.answer(make_request(host_key=new.public, clock=lambda: NOW + 1).request, "c1").host_key == new.public
    assert refused(make_host(keys=[new]).answer, make_request().request, "c1").reason == "handshake"


@pytest.mark.parametrize(
    ("client", "host", "chosen"),
    [((1,), (1,), 1), ((2, 1), (1,), 1), ((2, 1), (1, 2), 2), ((2, 1), (3, 2), 2), ((3, 2), (4, 3), 3)],
)
def test_the_newest_version_that_both_speak_is_chosen(client, host, chosen):
    asking = make_request(spoken=client)
    accepted = make_host(spoken=host).answer(asking.request, "c1")
    assert (asking.read_reply(accepted.reply).version, accepted.channel.version) == (chosen, chosen)


@pytest.mark.parametrize(("client", "host"), [((1,), (3, 2)), ((4, 3), (2, 1))])
def test_versions_that_do_not_fit_are_refused_with_a_sentence_on_both_sides(client, host):
    asking = make_request(spoken=client)
    error = refused(make_host(spoken=host).answer, asking.request, "c1")
    assert error.reason == "protocol"
    assert error.message.startswith("the client speaks version")
    there = refused(asking.read_reply, error.details["reply"])
    assert there.reason == "protocol"
    versions = [", ".join(map(str, one)) for one in (host, client)]
    assert there.message == f"the host speaks version {versions[0]} of the protocol, this tmuxctl {versions[1]}"


def test_nobody_between_can_make_them_choose_an_older_version():
    asking = make_request(spoken=(2, 1))
    assert asking.request[:4] == bytes((1, 2, 2, 1))
    # the newer version taken out of the offer, or put behind the older one's name
    for offer in (bytes((1, 1, 1)), bytes((1, 2, 1, 1)), bytes((1, 2, 1, 2))):
        error = refused(make_host(spoken=(2, 1)).answer, offer + asking.request[4:], "c1")
        assert error.reason == "handshake"


def test_a_version_that_was_not_offered_is_refused():
    """By a host that is wrong: the choice is authenticated."""
    asking = make_request(spoken=(2, 1))
    prologue = b"tmuxctl channel" + bytes((1, 2, 2, 1)) + b"\2c1" + b"\2h1"
    noise = IkHandshake(HOST.private, None, prologue)
    noise.read(asking.request[4:])
    error = refused(asking.read_reply, bytes((1,)) + noise.write(bytes((3,))))
    assert (error.reason, error.message) == (
        "protocol",
        "the host speaks version 3 of the protocol, this tmuxctl 2, 1",
    )


@pytest.mark.parametrize("payload", [b"", b"\1\1"])
def test_a_reply_that_says_something_else_is_refused(payload):
    """By a host that is wrong."""
    asking = make_request()
    noise = IkHandshake(HOST.private, None, PROLOGUE)
    noise.read(asking.request[3:])
    assert refused(asking.read_reply, b"\1" + noise.write(payload)).reason == "handshake"


@pytest.mark.parametrize("payload", [b"", bytes(7), bytes(9), bytes(1000)])
def test_a_request_that_says_something_else_is_refused(payload):
    """By a client that is wrong: the verb of a request would be carried out twice if that is replayed."""
    noise = IkHandshake(CLIENT.private, HOST.public, PROLOGUE)
    assert refused(make_host().answer, b"\1\1\1" + noise.write(payload), "c1").reason == "handshake"


def test_the_prologue_is_the_documented_one():
    noise = IkHandshake(CLIENT.private, HOST.public, PROLOGUE)
    assert make_host().answer(b"\1\1\1" + noise.write(NOW.to_bytes(8, "big")), "c1")


@pytest.mark.parametrize("wrong", ["", "x" * 65, "é"])
def test_an_id_from_the_carrier_that_cannot_be_is_refused(wrong):
    assert refused(make_host().answer, make_request().request, wrong).reason == "handshake"


def test_an_id_has_a_length_that_the_prologue_can_hold():
    for wrong in ("", "x" * 65):
        with pytest.raises(ValueError, match="id"):
            make_request(client_id=wrong)
