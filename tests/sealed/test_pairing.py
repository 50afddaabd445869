"""Two machines that share a short code learn each other's keys; whoever is between them gets one guess and is noticed."""

from __future__ import annotations

import pytest
from spake2 import SPAKE2_A, SPAKE2_B

from tmuxctl.errors import Denied, Usage
from tmuxctl.sealed.keys import make_key_pair
from tmuxctl.sealed.pairing import PairingClient, PairingHost, make_code, parse_code
from tmuxctl.sealed.trust import AuthorizedClient, KnownMachine

CLIENT, HOST, BETWEEN = (make_key_pair() for _ in range(3))
CODE, OTHER = "482-913-507", "482-913-508"
WISH = AuthorizedClient("laptop", CLIENT.public, ("read", "write"), ("build-*",))


def make_host(code=CODE, keys=HOST, **options) -> PairingHost:
    return PairingHost(code, keys, host_id="h1", name="web1", **options)


def make_client(code=CODE, keys=CLIENT, wish=WISH, **options) -> PairingClient:
    return PairingClient(code, keys, wish, **options)


def reason(call, *arguments) -> str:
    with pytest.raises(Denied) as error:
        call(*arguments)
    return error.value.reason


def test_both_learn_the_key_of_the_other_and_what_was_granted():
    host, client = make_host(), make_client()
    third = client.read_host(host.answer(client.first))
    assert host.read_client(third) == WISH
    machine, granted = client.read_grant(host.grant(("read",), ("build-1",)))
    assert machine == KnownMachine("web1", "h1", HOST.public)
    assert granted == AuthorizedClient("laptop", CLIENT.public, ("read",), ("build-1",))


def test_who_carries_the_messages_sees_neither_names_nor_keys():
    host, client = make_host(), make_client()
    second = host.answer(client.first)
    third = client.read_host(second)
    host.read_client(third)
    carried = client.first + second + third + host.grant(("read",), ("*",))
    for secret in (b"web1", b"laptop", b"build", HOST.public, CLIENT.public):
        assert secret not in carried


def test_a_code_is_nine_digits_in_any_spelling():
    codes = {make_code() for _ in range(50)}
    assert len(codes) == 50
    assert all(len(parse_code(code)) == 9 for code in codes)
    assert parse_code("482 913507") == parse_code(CODE) == b"482913507"
    for wrong in ("", "482-913-50", "482-913-5077", "48a-913-507", "４82-913-507"):
        with pytest.raises(Usage) as error:
            parse_code(wrong)
        assert error.value.reason == "bad_code"


def test_a_wrong_code_is_noticed_on_both_sides_and_spent():
    host, client = make_host(), make_client(OTHER)
    second = host.answer(client.first)
    assert reason(client.read_host, second) == "wrong_code"
    assert reason(client.read_host, second) == "code_spent"
    # a client that does not stop there
    assert reason(host.read_client, b"x" * 200) == "wrong_code"
    assert reason(host.read_client, b"x" * 200) == "code_spent"
    assert reason(host.answer, make_client().first) == "code_spent"


def test_the_first_message_that_is_answered_uses_up_the_code():
    host = make_host()
    host.answer(make_client(OTHER).first)
    assert reason(host.answer, make_client().first) == "code_spent"


def test_replayed_messages_pair_nobody():
    host, client = make_host(), make_client()
    first = client.first
    second = host.answer(first)
    third = client.read_host(second)
    host.read_client(third)
    fourth = host.grant(("read",), ("*",))
    client.read_grant(fourth)
    assert [reason(host.answer, first), reason(host.read_client, third)] == ["code_spent"] * 2
    assert [reason(client.read_host, second), reason(client.read_grant, fourth)] == ["code_spent"] * 2
    # nor in another pairing with the same code
    again = make_host()
    again.answer(first)
    assert reason(again.read_client, third) == "wrong_code"
    assert reason(make_client().read_host, second) == "wrong_code"


def test_messages_out_of_order_are_refused():
    host, client = make_host(), make_client()
    assert reason(host.read_client, b"x" * 100) == "code_spent"
    assert reason(host.answer, client.first) == "code_spent"
    assert reason(client.read_grant, b"x" * 100) == "code_spent"
    with pytest.raises(Denied):
        make_host().grant(("read",), ("*",))


def test_a_machine_between_that_knows_no_code_gets_one_guess():
    """It answers each side as the other one, with a guess."""
    host, client = make_host(), make_client()
    false_host, false_client = make_host(OTHER, BETWEEN), make_client(OTHER, BETWEEN)
    assert reason(client.read_host, false_host.answer(client.first)) == "wrong_code"
    assert reason(false_client.read_host, host.answer(false_client.first)) == "wrong_code"
    assert reason(host.read_client, false_client.first) == "wrong_code"
    assert reason(host.answer, make_client().first) == "code_spent"


@pytest.mark.night
def test_a_machine_between_cannot_put_its_key_into_the_messages():
    """It carries the right messages and changes one byte of one of them."""
    length = len(make_host().answer(make_client().first))
    for at in range(0, length, 7):
        host, client = make_host(), make_client()
        second = bytearray(host.answer(client.first))
        second[at] ^= 1
        assert reason(client.read_host, bytes(second)) in ("wrong_code", "pairing")
    for at in (0, 1, 33):
        host, client = make_host(), make_client()
        first = bytearray(client.first)
        first[at] ^= 1
        # a changed point is in the group once in eight times
        with pytest.raises(Denied) as error:
            client.read_host(host.answer(bytes(first)))
        assert error.value.reason in ("pairing", "wrong_code")
    for at in (0, 50, -1):
        host, client = make_host(), make_client()
        third = bytearray(client.read_host(host.answer(client.first)))
        third[at] ^= 1
        assert reason(host.read_client, bytes(third)) == "wrong_code"
    host, client = make_host(), make_client()
    host.read_client(client.read_host(host.answer(client.first)))
    fourth = bytearray(host.grant(("read",), ("*",)))
    fourth[3] ^= 1
    assert reason(client.read_grant, bytes(fourth)) == "wrong_code"


def test_a_message_that_was_sent_back_is_refused():
    client = make_client()
    assert reason(client.read_host, client.first[1:] + b"x" * 100) == "pairing"
    host = make_host()
    own = host.answer(make_client().first)
    assert reason(make_host().answer, b"\1" + own[:33]) == "pairing"


@pytest.mark.parametrize("element", [bytes(32), b"\1" + bytes(31), b"\xff" * 32, b"\xec" + b"\xff" * 30 + b"\x7f"])
def test_points_outside_the_group_are_refused(element):
    """Zero, the neutral element, what is no point, and a point of order 2."""
    assert reason(make_host().answer, b"\1A" + element) == "pairing"
    assert reason(make_client().read_host, b"B" + element + b"x" * 100) == "pairing"


@pytest.mark.parametrize("message", [b"", b"\1", b"\2" + b"A" * 33, b"\1" + b"A" * 34])
def test_what_is_no_message_is_refused(message):
    assert reason(make_host().answer, message) == "pairing"


def test_the_first_message_has_one_form():
    for change in (lambda first: b"\2" + first[1:], lambda first: first + b"\0"):
        assert reason(make_host().answer, change(make_client().first)) == "pairing"


def test_what_is_encrypted_is_bound_to_all_messages_before():
    host, client = make_host(), make_client()
    second = host.answer(client.first)
    client._add(b"a message that the host did not see")
    assert reason(client.read_host, second) == "wrong_code"
    host, client = make_host(), make_client()
    second = host.answer(client.first)
    host._add(b"another text of the second message")
    assert reason(host.read_client, client.read_host(second)) == "wrong_code"


@pytest.mark.parametrize("told", [{"rights": ["all"]}, {"rights": []}, {"sessions": ["a b"]}, {"mac": 1}])
def test_what_a_host_grants_is_checked(told, monkeypatch):
    host, client = make_host(), make_client()
    host.read_client(client.read_host(host.answer(client.first)))
    encrypt = host._encrypt
    monkeypatch.setattr(host, "_encrypt", lambda purpose, value: encrypt(purpose, {**value, **told}))
    assert reason(client.read_grant, host.grant(("read",), ("*",))) == "pairing"


def test_messages_have_a_bounded_length():
    host, client = make_host(), make_client()
    second = host.answer(client.first)
    assert reason(client.read_host, second + bytes(20_000)) == "pairing"
    assert reason(host.read_client, bytes(20_000)) == "pairing"


def test_a_key_without_its_private_key_is_refused():
    """A client that knows the code and claims another's key, as it would have that one paired under its own name."""
    host, client = make_host(), make_client()
    client._keys = type(BETWEEN)(CLIENT.private, BETWEEN.public)
    assert reason(host.read_client, client.read_host(host.answer(client.first))) == "wrong_key"
    assert reason(lambda: host.grant(("read",), ("*",))) == "code_spent"
    host, client = make_host(), make_client()
    host._about = KnownMachine("web1", "h1", BETWEEN.public)
    third = client.read_host(host.answer(client.first))
    assert reason(host.read_client, third) == "wrong_key"


@pytest.mark.parametrize(
    "told",
    [
        {"name": "a b"},
        {"rights": ["all"]},
        {"rights": []},
        {"sessions": ["a b"]},
        {"sessions": "x"},
        {"key": "AAAA"},
        {"key": "A" * 43 + "="},
        {"mac": 1},
        {"name": None},
    ],
)
def test_what_the_other_side_tells_is_checked(told, monkeypatch):
    """By a side that knows the code, which a person gave to another program."""
    host, client = make_host(), make_client()
    encrypt = client._encrypt
    monkeypatch.setattr(client, "_encrypt", lambda purpose, value: encrypt(purpose, {**value, **told}))
    third = client.read_host(host.answer(client.first))
    assert reason(host.read_client, third) == "pairing"


def test_a_code_is_good_for_a_limited_time():
    now = [0.0]
    host, client = make_host(clock=lambda: now[0]), make_client(clock=lambda: now[0])
    second = host.answer(client.first)
    now[0] = 300.0
    third = client.read_host(second)
    now[0] = 301.0
    assert reason(host.read_client, third) == "code_expired"
    assert reason(make_host(clock=lambda: now[0]).read_client, third) == "code_spent"


def test_a_host_grants_only_what_there_is():
    host, client = make_host(), make_client()
    host.read_client(client.read_host(host.answer(client.first)))
    for rights, sessions in ((("all",), ("*",)), ((), ("*",)), (("read",), ())):
        with pytest.raises(Usage):
            host.grant(rights, sessions)
    assert client.read_grant(host.grant(("read",), ("*",)))


def test_spake2_gives_both_sides_one_key_for_the_same_code_alone():
    """The library by itself, as its authors describe it."""
    keys = []
    for code in (b"1", b"2"):
        side_a, side_b = SPAKE2_A(b"1", idA=b"client", idB=b"host"), SPAKE2_B(code, idA=b"client", idB=b"host")
        first, second = side_a.start(), side_b.start()
        keys.append(side_a.finish(second) == side_b.finish(first))
    assert keys == [True, False]
