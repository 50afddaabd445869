"""Events that outlive a channel: sealed by a host for the static keys of its clients, so that each can open them at any time.

    version u8 | ephemeral key (32 bytes) | count u16 | wrapped content key (48 bytes), one for each client | encrypted content

A content key is wrapped for a client with a key from two agreements of X25519: of an ephemeral key and the client's, and of the
host's static key and the client's. The second one makes it the host's: who does not have either private key can make no such
event. What is wrapped is bound to the encrypted content, so a client that opens an event cannot put another content under the
other clients' keys. Stream and number are bound too. The names of clients are not in it; their count and the length are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tmuxctl.errors import Denied
from tmuxctl.sealed.keys import KEY_BYTES, MOST_CLIENTS, KeyPair, make_key_pair

VERSION = 1
MOST_CONTENT = 256 << 10
"""Bytes of the content of one event."""

HEAD_BYTES, WRAPPED_BYTES, TAG_BYTES = 1 + KEY_BYTES + 2, KEY_BYTES + 16, 16

HINT = "an event that cannot be opened is passed over; the others can be read"

NONCE = bytes(12)
"""Every key here encrypts one text."""


def seal_event(recipients: Sequence[bytes], content: bytes, *, host: KeyPair, stream: str, number: int) -> bytes:
    """An event that the owners of these static keys can open, and no other.

    `stream` and `number` say which event it is: who opens it has to name the same. A recipient with whose key nothing can be
    agreed is left out, as no private key belongs to it. ValueError for more than MOST_CLIENTS or MOST_CONTENT, or if there is
    no recipient.
    """
    if not 0 < len(recipients) <= MOST_CLIENTS or len(content) > MOST_CONTENT:
        raise ValueError(f"an event has 1 to {MOST_CLIENTS} recipients and at most {MOST_CONTENT} bytes")
    ephemeral, content_key = make_key_pair(), os.urandom(KEY_BYTES)
    agreed: dict[bytes, bytes] = {}
    for recipient in recipients:
        with suppress(ValueError):
            agreed[recipient] = _agree(ephemeral.private, recipient) + _agree(host.private, recipient)
    if not agreed:
        raise ValueError("nothing can be agreed with the key of any recipient")
    head = bytes((VERSION,)) + ephemeral.public + len(agreed).to_bytes(2, "big")
    encrypted = ChaCha20Poly1305(content_key).encrypt(NONCE, content, _bind(head, stream, number))
    bound = hashlib.sha256(encrypted).digest()
    wrapped = []
    for recipient, secret in agreed.items():
        wrap = ChaCha20Poly1305(_wrapping_key(secret, ephemeral.public, host.public, recipient))
        wrapped.append(wrap.encrypt(NONCE, content_key, bound))
    return head + b"".join(wrapped) + encrypted


def open_event(client: KeyPair, sealed: bytes, *, host_key: bytes, stream: str, number: int) -> bytes:
    """The content of an event that the host with this static key sealed for the client. Denied `sealed` for any other bytes."""
    count = int.from_bytes(sealed[HEAD_BYTES - 2 : HEAD_BYTES], "big")
    begin = HEAD_BYTES + count * WRAPPED_BYTES
    if sealed[:1] != bytes((VERSION,)) or not 0 < count <= MOST_CLIENTS:
        raise _refuse("this is no sealed event of a version that is known here")
    if len(sealed) > begin + MOST_CONTENT + TAG_BYTES:
        raise _refuse("this is no sealed event: it is too long")
    head, encrypted = sealed[:HEAD_BYTES], sealed[begin:]
    ephemeral_key = head[1 : 1 + KEY_BYTES]
    try:
        secret = _agree(client.private, ephemeral_key) + _agree(client.private, host_key)
    except ValueError:
        raise _refuse("the event has a key that is none of X25519") from None
    unwrap = ChaCha20Poly1305(_wrapping_key(secret, ephemeral_key, host_key, client.public))
    bound = hashlib.sha256(encrypted).digest()
    for at in range(HEAD_BYTES, begin, WRAPPED_BYTES):
        try:
            content_key = unwrap.decrypt(NONCE, sealed[at : at + WRAPPED_BYTES], bound)
            return ChaCha20Poly1305(content_key).decrypt(NONCE, encrypted, _bind(head, stream, number))
        except InvalidTag:
            continue
    raise Denied(
        "the event was not sealed for this client by the host that is known here, or it is another event",
        reason="sealed",
        hint=HINT,
    )


def _agree(private: bytes, public: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))


def _wrapping_key(secret: bytes, ephemeral_key: bytes, host_key: bytes, client_key: bytes) -> bytes:
    """The key that a content key is wrapped with (HKDF, RFC 5869)."""
    info = b"tmuxctl event 1" + ephemeral_key + host_key + client_key
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(secret)


def _bind(head: bytes, stream: str, number: int) -> bytes:
    """What is authenticated beside the content."""
    return head + number.to_bytes(8, "big") + stream.encode()


def _refuse(message: str) -> Denied:
    return Denied(message, reason="sealed", hint=HINT)
