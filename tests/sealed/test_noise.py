"""The handshake pattern, against published vectors."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tmuxctl.sealed.keys import make_key_pair, pair_of
from tmuxctl.sealed.noise import NAME, REPLY_OVERHEAD, REQUEST_OVERHEAD, IkHandshake, NoiseFailed

VECTORS = json.loads((Path(__file__).parent / "noise_ik_vectors.json").read_text())


def both_sides(vector):
    value = {name: bytes.fromhex(text) for name, text in vector.items() if name.startswith(("init_", "resp_"))}
    with warnings.catch_warnings():
        # the library warns of every ephemeral key that is given
        warnings.simplefilter("ignore")
        client = IkHandshake(
            value["init_static"],
            value["init_remote_static"],
            value["init_prologue"],
            ephemeral=value["init_ephemeral"],
        )
        host = IkHandshake(value["resp_static"], None, value["resp_prologue"], ephemeral=value["resp_ephemeral"])
    return client, host


@pytest.fixture(params=VECTORS, ids=lambda vector: vector["source"].partition(".")[0])
def vector(request):
    return request.param


def messages(vector):
    return [tuple(bytes.fromhex(one[key]) for key in ("payload", "ciphertext")) for one in vector["messages"]]


def test_both_messages_are_those_of_the_vectors(vector):
    assert vector["protocol_name"].encode() == NAME
    client, host = both_sides(vector)
    (request, first), (reply, second) = messages(vector)[:2]
    assert client.write(request) == first
    assert host.read(first) == request
    assert host.remote_key() == pair_of(bytes.fromhex(vector["init_static"])).public
    assert host.write(reply) == second
    assert client.read(second) == reply
    assert len(first) - len(request) == REQUEST_OVERHEAD
    assert len(second) - len(reply) == REPLY_OVERHEAD


def test_the_keys_after_it_encrypt_as_the_vectors_do(vector):
    client, host = both_sides(vector)
    (request, first), (reply, second), *after = messages(vector)
    client.write(request)
    host.read(first)
    host.write(reply)
    client.read(second)
    at_client, at_host = client.split(), host.split()
    assert at_client.handshake_hash == at_host.handshake_hash
    if "handshake_hash" in vector:
        assert at_client.handshake_hash.hex() == vector["handshake_hash"]
    assert after
    for number, (payload, ciphertext) in enumerate(after):
        sender, receiver = (at_client, at_host) if number % 2 == 0 else (at_host, at_client)
        nonce = bytes(4) + (number // 2).to_bytes(8, "little")
        assert ChaCha20Poly1305(sender.send).encrypt(nonce, payload, None) == ciphertext
        assert ChaCha20Poly1305(receiver.receive).decrypt(nonce, ciphertext, None) == payload


def test_a_key_that_gives_no_secret_is_refused():
    keys = make_key_pair()
    with pytest.raises(NoiseFailed):
        IkHandshake(keys.private, bytes(32), b"").write(b"")
    client = IkHandshake(keys.private, keys.public, b"")
    message = client.write(b"")
    with pytest.raises(NoiseFailed):
        IkHandshake(keys.private, None, b"").read(bytes(32) + message[32:])
