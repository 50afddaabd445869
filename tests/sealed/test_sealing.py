"""An event is opened by the clients it was sealed for, and only the host can have made it."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given, settings
from hypothesis import strategies as some

from tmuxctl.errors import Denied
from tmuxctl.sealed import sealing
from tmuxctl.sealed.keys import MOST_CLIENTS, make_key_pair
from tmuxctl.sealed.sealing import (
    HEAD_BYTES,
    MOST_CONTENT,
    NONCE,
    WRAPPED_BYTES,
    open_event,
    seal_event,
)

HOST, FIRST, SECOND, STRANGER = (make_key_pair() for _ in range(4))
EVENT = {"stream": "events", "number": 7}


def seal(content=b"the state is idle", recipients=(FIRST.public, SECOND.public), host=HOST, **event):
    return seal_event(recipients, content, host=host, **{**EVENT, **event})


def opened(client, sealed, host=HOST, **event):
    return open_event(client, sealed, host_key=host.public, **{**EVENT, **event})


def refuse(*arguments, **named) -> None:
    with pytest.raises(Denied) as error:
        opened(*arguments, **named)
    assert error.value.reason == "sealed"


def test_each_recipient_opens_it():
    sealed = seal()
    assert opened(FIRST, sealed) == opened(SECOND, sealed) == b"the state is idle"
    assert opened(FIRST, seal(b"", (FIRST.public,))) == b""


def test_no_other_does():
    refuse(STRANGER, seal())
    refuse(HOST, seal())


def test_the_content_and_the_recipients_are_not_in_it():
    sealed = seal()
    for secret in (b"idle", FIRST.public, SECOND.public, HOST.public, b"events"):
        assert secret not in sealed
    assert sealed != seal()


def test_who_is_not_the_host_makes_no_event():
    """With all public keys, and a pair of keys of its own."""
    refuse(FIRST, seal(host=STRANGER))
    # not even a client can make one for another client
    refuse(SECOND, seal(host=FIRST))
    assert opened(SECOND, seal(host=FIRST), host=FIRST)


def test_a_client_cannot_put_another_content_under_the_keys_of_the_others():
    sealed = seal(b"old")
    begin = HEAD_BYTES + 2 * WRAPPED_BYTES
    # the first client finds the content key, as it does to open the event
    secret = sealing._agree(FIRST.private, sealed[1:33]) + sealing._agree(FIRST.private, HOST.public)
    wrap = ChaCha20Poly1305(sealing._wrapping_key(secret, sealed[1:33], HOST.public, FIRST.public))
    bound = hashlib.sha256(sealed[begin:]).digest()
    content_key = wrap.decrypt(NONCE, sealed[HEAD_BYTES : HEAD_BYTES + WRAPPED_BYTES], bound)
    associated = sealing._bind(sealed[:HEAD_BYTES], "events", 7)
    assert ChaCha20Poly1305(content_key).decrypt(NONCE, sealed[begin:], associated) == b"old"
    forged = sealed[:begin] + ChaCha20Poly1305(content_key).encrypt(NONCE, b"new", associated)
    refuse(SECOND, forged)


def test_the_key_of_the_host_is_bound_as_it_is_written():
    """X25519 ignores the highest bit of a public key (RFC 7748, section 5): the agreement is the same."""
    other = HOST.public[:31] + bytes((HOST.public[31] ^ 0x80,))
    with pytest.raises(Denied):
        open_event(FIRST, seal(), host_key=other, stream="events", number=7)


def test_an_event_is_not_taken_for_another_one():
    sealed = seal()
    refuse(FIRST, sealed, number=8)
    refuse(FIRST, sealed, stream="event")
    refuse(FIRST, sealed, host=STRANGER)


@given(some.integers(0, 10_000), some.integers(1, 255))
@settings(max_examples=300, deadline=None)
def test_every_changed_byte_is_noticed(at, mask):
    sealed = bytearray(seal(recipients=(FIRST.public,)))
    sealed[at % len(sealed)] ^= mask
    refuse(FIRST, bytes(sealed))


@given(some.binary(max_size=300))
@settings(deadline=None)
def test_any_bytes_are_refused(data):
    refuse(FIRST, data)
    refuse(FIRST, seal()[: len(data)])


def test_what_is_no_event_is_refused_before_anything_is_computed():
    sealed = seal()
    no_version = "this is no sealed event of a version that is known here"
    for wrong, told in (
        (b"\2" + sealed[1:], no_version),
        (sealed[:33] + b"\0\0" + sealed[HEAD_BYTES:], no_version),
        (sealed[:33] + (MOST_CLIENTS + 1).to_bytes(2, "big") + sealed[HEAD_BYTES:], no_version),
        (sealed + bytes(MOST_CONTENT), "this is no sealed event: it is too long"),
    ):
        with pytest.raises(Denied) as error:
            opened(FIRST, wrong)
        assert error.value.message == told


def test_a_key_of_small_order_is_refused():
    sealed = seal()
    refuse(FIRST, sealed[:1] + bytes(32) + sealed[33:])
    with pytest.raises(ValueError, match="any recipient"):
        seal(recipients=(bytes(32),))


def test_a_recipient_with_a_key_of_small_order_does_not_keep_the_event_from_the_others():
    sealed = seal(recipients=(FIRST.public, bytes(32), SECOND.public))
    assert opened(FIRST, sealed) == opened(SECOND, sealed) == b"the state is idle"


def test_the_bounds_are_those_named():
    assert opened(FIRST, seal(bytes(MOST_CONTENT))) == bytes(MOST_CONTENT)
    for content, recipients in (
        (bytes(MOST_CONTENT + 1), (FIRST.public,)),
        (b"", ()),
        (b"", (FIRST.public,) * (MOST_CLIENTS + 1)),
    ):
        with pytest.raises(ValueError, match="recipients"):
            seal(content, recipients)
