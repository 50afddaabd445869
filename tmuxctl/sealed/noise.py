"""The handshake pattern IK of the Noise protocol framework (revision 34), by `noiseprotocol`: the only module that knows it.

The library was last released in 2020. It is checked against published vectors, and what it does after a handshake is not
used: the two keys are taken out of it.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from noise.connection import Keypair, NoiseConnection
from noise.exceptions import NoiseHandshakeError, NoiseValueError

from tmuxctl.value import Value

NAME = b"Noise_IK_25519_ChaChaPoly_BLAKE2s"

REQUEST_OVERHEAD, REPLY_OVERHEAD = 32 + 48 + 16, 32 + 16
"""Bytes of the two messages beside their payloads: an ephemeral key, the encrypted static key, a tag; a key and a tag."""


class NoiseFailed(Exception):
    """A handshake message that was not made with these keys and this prologue, or that is no such message."""


class SplitKeys(Value):
    """What a handshake leaves: the keys of ChaCha20-Poly1305 for both directions, 32 bytes each, and the handshake hash, which
    both sides share and no other handshake has."""

    send: bytes
    receive: bytes
    handshake_hash: bytes

    def __repr__(self) -> str:
        return "SplitKeys(...)"


class IkHandshake:
    """One handshake, as the side that begins it (`remote_key` is the other's static key) or the side that answers (None).

    Keys are 32 raw bytes. `ephemeral` replaces the random ephemeral private key: for published vectors alone.
    """

    def __init__(
        self, private_key: bytes, remote_key: bytes | None, prologue: bytes, *, ephemeral: bytes | None = None
    ) -> None:
        self._noise = NoiseConnection.from_name(NAME)
        if remote_key is None:
            self._noise.set_as_responder()
        else:
            self._noise.set_as_initiator()
            self._noise.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, remote_key)
        self._noise.set_keypair_from_private_bytes(Keypair.STATIC, private_key)
        if ephemeral is not None:
            self._noise.set_keypair_from_private_bytes(Keypair.EPHEMERAL, ephemeral)
        self._noise.set_prologue(prologue)
        self._noise.start_handshake()

    def write(self, payload: bytes) -> bytes:
        """The next message, with this payload. NoiseFailed if the other side's key gives no shared secret, or if the next
        message is the other side's."""
        try:
            return bytes(self._noise.write_message(payload))
        except (ValueError, NoiseHandshakeError) as error:
            raise NoiseFailed(str(error)) from None

    def read(self, message: bytes) -> bytes:
        """The payload of the other side's message. NoiseFailed for any but the right one, after which the handshake is of no
        use any more."""
        try:
            return bytes(self._noise.read_message(message))
        # a key of small order gives no shared secret: ValueError
        except (InvalidTag, ValueError, NoiseHandshakeError, NoiseValueError) as error:
            raise NoiseFailed(str(error)) from None

    def remote_key(self) -> bytes:
        """The other side's static key, once its first message was read."""
        found: bytes = self._noise.noise_protocol.handshake_state.rs.public_bytes
        return found

    def split(self) -> SplitKeys:
        """The keys of the finished handshake."""
        state = self._noise.noise_protocol
        return SplitKeys(state.cipher_state_encrypt.k, state.cipher_state_decrypt.k, state.handshake_hash)
