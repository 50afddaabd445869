"""Pairing by a short code: a host and a client that share nothing but the code learn each other's static keys.

The host shows a code, a person types it at the client. SPAKE2 (by the package `spake2`; RFC 9382
is a later form of it) makes of it a key that only who knows the code has; whoever carries the messages can try one code, and both
sides see that it failed.

    1 client   format u8 | SPAKE2 message A
    2 host     SPAKE2 message B | encrypted: host's key, id and name
    3 client   encrypted: client's key, name, what it asks for, a MAC
    4 host     encrypted: what was granted, a MAC

Each encrypted part is bound to all messages before it. The MACs are made with the agreement of both static keys too: each side
shows that it has the private key it names. A side takes each message once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from spake2 import SPAKE2_A, SPAKE2_B, SPAKEError
from spake2.ed25519_basic import NotOnCurve

from tmuxctl.errors import Denied, Usage
from tmuxctl.sealed.keys import KeyPair, key_text, parse_key
from tmuxctl.sealed.trust import (
    AuthorizedClient,
    KnownMachine,
    check_authorized_client,
    check_grant,
    check_known_machine,
)
from tmuxctl.timing import TIMING, SealedTiming
from tmuxctl.untrusted import fits, parse_json

FORMAT = 1
CODE_DIGITS = 9
"""Digits of a code: 29.9 bits. One guess is wrong but once in a thousand million."""

SPAKE_BYTES = 33
MOST_MESSAGE = 16 << 10
"""Bytes of one message: a client may ask for 64 patterns."""


def make_code() -> str:
    """A code for one pairing, as it is shown: `482-913-507`."""
    digits = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
    return "-".join(digits[at : at + 3] for at in range(0, CODE_DIGITS, 3))


def parse_code(text: str) -> bytes:
    """The digits of a code as a person types it, with blanks or dashes anywhere. Usage `bad_code` for anything else."""
    digits = text.replace("-", "").replace(" ", "")
    if len(digits) != CODE_DIGITS or not (digits.isascii() and digits.isdigit()):
        hint = "nine digits, as 482-913-507"
        raise Usage(f"{ascii(text[:30])} is not a code of a pairing", reason="bad_code", hint=hint)
    return digits.encode()


class _PairingSide:
    """What both sides have in common: the order of their steps, the end of the code, and what is encrypted."""

    def __init__(self, keys: KeyPair, timing: SealedTiming, clock: Callable[[], float]) -> None:
        self._keys, self._clock = keys, clock
        self._ends = clock() + timing.pairing_seconds
        self._step = 0
        self._transcript = b""
        self._secret = b""

    def _enter(self, step: int) -> None:
        """Begin a step, which is taken once and after the one before it; after a failed one there is none."""
        before, self._step = self._step, -1
        if before != step - 1:
            hint = "begin again, with a new code"
            raise Denied("the code of this pairing was used already", reason="code_spent", hint=hint)
        if self._clock() > self._ends:
            raise Denied(
                "the code of this pairing is too old", reason="code_expired", hint="begin again, with a new code"
            )

    def _finish(self, spake: Any, message: bytes) -> None:
        """Take the other side's message of SPAKE2."""
        try:
            self._secret = spake.finish(message)
        except (SPAKEError, NotOnCurve, ValueError):
            raise _malformed() from None

    def _add(self, message: bytes) -> bytes:
        """Put a message into the transcript, which all that comes after it is bound to."""
        self._transcript += len(message).to_bytes(4, "big") + message
        return message

    def _derive(self, purpose: bytes, agreed: bytes = b"") -> bytes:
        """A key of 32 bytes for one purpose, of this pairing as it went until now."""
        info = b"tmuxctl pairing 1 " + purpose + hashlib.sha256(self._transcript).digest()
        return HKDF(SHA256(), 32, salt=None, info=info).derive(self._secret + agreed)

    def _encrypt(self, purpose: bytes, value: Mapping[str, Any]) -> bytes:
        text = json.dumps(value, separators=(",", ":")).encode()
        # the key is used for this text alone
        return ChaCha20Poly1305(self._derive(purpose)).encrypt(bytes(12), text, None)

    def _decrypt(self, purpose: bytes, data: bytes, shape: Mapping[str, Any]) -> dict[str, Any]:
        """What the other side encrypted; Denied `wrong_code` if it did not have the same code and see the same messages."""
        try:
            text = ChaCha20Poly1305(self._derive(purpose)).decrypt(bytes(12), data, None)
        except InvalidTag:
            hint = "that code is spent: begin again, with a new one"
            raise Denied(
                "the code was mistyped, or another program is between the two machines", reason="wrong_code", hint=hint
            ) from None
        try:
            value = parse_json(text, limit=MOST_MESSAGE)
        except ValueError:
            value = None
        if not fits(value, shape):
            raise _malformed()
        found: dict[str, Any] = value
        return found

    def _mac(self, purpose: bytes, host_key: bytes, client_key: bytes) -> str:
        """What shows that a side has the private key it names, and knows the code, and that both mean the same two keys."""
        mine = X25519PrivateKey.from_private_bytes(self._keys.private)
        other = client_key if host_key == self._keys.public else host_key
        try:
            agreed = mine.exchange(X25519PublicKey.from_public_bytes(other))
        except ValueError:
            raise _malformed() from None
        return hmac.new(self._derive(purpose, agreed), host_key + client_key, hashlib.sha256).hexdigest()

    def _check_mac(self, told: str, expected: str) -> None:
        if not hmac.compare_digest(told.encode(), expected.encode()):
            hint = "begin again, with a new code"
            raise Denied("the other side does not have the key that it names", reason="wrong_key", hint=hint)


class PairingClient(_PairingSide):
    """The client of a pairing: its messages are `first`, and what `read_host` and `read_grant` make of the host's.

    `wish` has the name that it is to have there, and the rights and patterns of sessions that it asks for, of which the host grants
    what it likes; its key is that of `keys`. `clock` gives seconds.
    """

    def __init__(
        self,
        code: str,
        keys: KeyPair,
        wish: AuthorizedClient,
        *,
        timing: SealedTiming = TIMING.sealed,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(keys, timing, clock)
        self._wish = check_authorized_client(wish)
        self._spake = SPAKE2_A(parse_code(code), idA=b"client", idB=b"host")
        self.first = self._add(bytes((FORMAT,)) + self._spake.start())
        """The first message, for the host."""
        self._host: KnownMachine | None = None

    def read_host(self, message: bytes) -> bytes:
        """The third message, from the host's second. Denied `wrong_code`, `code_spent`, `code_expired`, and `pairing` for bytes
        that are no such message."""
        self._enter(1)
        _check_length(message, SPAKE_BYTES)
        self._finish(self._spake, message[:SPAKE_BYTES])
        self._add(message[:SPAKE_BYTES])
        told = self._decrypt(b"host", message[SPAKE_BYTES:], {"key!": str, "id!": str, "name!": str})
        self._add(message[SPAKE_BYTES:])
        self._host = _read_told(
            lambda: check_known_machine(KnownMachine(told["name"], told["id"], parse_key(told["key"])))
        )
        wish = {
            "key": key_text(self._keys.public),
            "name": self._wish.name,
            "rights": list(self._wish.rights),
            "sessions": list(self._wish.sessions),
            "mac": self._mac(b"client mac", self._host.key, self._keys.public),
        }
        self._step = 1
        return self._add(self._encrypt(b"client", wish))

    def read_grant(self, message: bytes) -> tuple[KnownMachine, AuthorizedClient]:
        """The host, whose key is now known, and what it granted, from its fourth message. Denied as `read_host` says, and
        `wrong_key`."""
        self._enter(2)
        _check_length(message, 0)
        host = self._host
        assert host is not None
        told = self._decrypt(b"grant", message, {"rights!": [str], "sessions!": [str], "mac!": str})
        self._check_mac(told["mac"], self._mac(b"host mac", host.key, self._keys.public))
        rights, sessions = tuple(told["rights"]), tuple(told["sessions"])
        _read_told(lambda: check_grant(rights, sessions))
        self._step = 2
        return host, AuthorizedClient(self._wish.name, self._keys.public, rights, sessions)


class PairingHost(_PairingSide):
    """The host of a pairing, with the code that it shows: answers a first message with the second, reads the third, and grants.

    `name` is what it proposes to be called. The first message that is answered uses up the code. `clock` gives seconds.
    """

    def __init__(
        self,
        code: str,
        keys: KeyPair,
        *,
        host_id: str,
        name: str,
        timing: SealedTiming = TIMING.sealed,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(keys, timing, clock)
        self._about = check_known_machine(KnownMachine(name, host_id, keys.public))
        self._spake = SPAKE2_B(parse_code(code), idA=b"client", idB=b"host")
        self._wish: AuthorizedClient | None = None

    def answer(self, message: bytes) -> bytes:
        """The second message, from the client's first. Denied `code_spent`, `code_expired`, `pairing` for bytes that are no such
        message."""
        self._enter(1)
        if len(message) != 1 + SPAKE_BYTES or message[0] != FORMAT:
            raise _malformed()
        own: bytes = self._spake.start()
        self._finish(self._spake, message[1:])
        self._add(message)
        self._add(own)
        about = {"key": key_text(self._about.key), "id": self._about.host_id, "name": self._about.name}
        self._step = 1
        return own + self._add(self._encrypt(b"host", about))

    def read_client(self, message: bytes) -> AuthorizedClient:
        """The client and what it asks for, from the third message. Denied `wrong_code`, `wrong_key`, `code_spent`, `code_expired`,
        `pairing`."""
        self._enter(2)
        _check_length(message, 0)
        shape = {"key!": str, "name!": str, "rights!": [str], "sessions!": [str], "mac!": str}
        told = self._decrypt(b"client", message, shape)
        self._wish = _read_told(
            lambda: check_authorized_client(
                AuthorizedClient(told["name"], parse_key(told["key"]), tuple(told["rights"]), tuple(told["sessions"]))
            )
        )
        self._check_mac(told["mac"], self._client_mac())
        self._add(message)
        self._step = 2
        return self._wish

    def grant(self, rights: tuple[str, ...], sessions: tuple[str, ...]) -> bytes:
        """The fourth message: what the host grants, once it has put the client among the authorized ones. Usage `bad_right` or
        `bad_config` for what cannot be granted; Denied as `read_client`."""
        check_grant(rights, sessions)
        self._enter(3)
        assert self._wish is not None
        mac = self._mac(b"host mac", self._keys.public, self._wish.key)
        return self._encrypt(b"grant", {"rights": list(rights), "sessions": list(sessions), "mac": mac})

    def _client_mac(self) -> str:
        assert self._wish is not None
        return self._mac(b"client mac", self._keys.public, self._wish.key)


def _check_length(message: bytes, before: int) -> None:
    """Denied `pairing` unless a message has some bytes more than these, and not too many."""
    if not before < len(message) <= MOST_MESSAGE:
        raise _malformed()


def _read_told(read: Callable[[], Any]) -> Any:
    """What `read` makes of what the other side told; Denied `pairing` for names, keys or rights that there cannot be."""
    try:
        return read()
    except Usage as error:
        what = f"the other side told what cannot be: {error.message}"
        raise Denied(what, reason="pairing", hint="the two machines need versions of tmuxctl that fit") from None


def _malformed() -> Denied:
    hint = "begin again, with a new code; both machines need versions of tmuxctl that fit"
    return Denied("this is no message of this pairing", reason="pairing", hint=hint)
