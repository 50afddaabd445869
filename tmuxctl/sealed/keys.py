"""The static X25519 key of this user on this machine: made once, kept in a file of its own, and changed on demand.

Keys are 32 raw bytes (RFC 7748); as text a public one is their base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from tmuxctl.errors import Conflict, Denied, TmuxctlError, Usage
from tmuxctl.ownership import make_parents, refuse_unsafe
from tmuxctl.parsed_file import ParsedFile, stamp_file
from tmuxctl.state_files import make_private_folder, state_home, take_lock, write_record
from tmuxctl.timing import TIMING, SealedTiming
from tmuxctl.untrusted import open_file, parse_record, read_file
from tmuxctl.value import Value

KEY_BYTES = 32
FILE_LIMIT = 4096
TOLD_LIMIT = 1 << 20
MOST_CLIENTS = 1024
"""Clients that a host knows, and for which one event is sealed: with more an event would not fit into one message."""


class KeyPair(Value):
    """A private key and the public one that belongs to it, 32 bytes each."""

    private: bytes
    public: bytes

    def __repr__(self) -> str:
        return f"KeyPair({fingerprint(self.public)})"


class StaticKeys(Value):
    """The key in use, and the one before it as long as that is still answered to."""

    current: KeyPair
    old: KeyPair | None = None

    @property
    def all(self) -> tuple[KeyPair, ...]:
        """Both, the one in use first."""
        return (self.current,) if self.old is None else (self.current, self.old)


class KeyFiles:
    """The keys in a folder of mode 0700, `~/.local/state/tmuxctl/keys` unless another is given: `static.json`, mode 0600. Beside it
    `told.json` has the clients that have used the present key while there is an old one: they know it."""

    def __init__(self, folder: str | None = None, *, timing: SealedTiming = TIMING.sealed) -> None:
        self.folder = folder or os.path.join(state_home(), "tmuxctl", "keys")
        self.path = os.path.join(self.folder, "static.json")
        self._told_path = os.path.join(self.folder, "told.json")
        self._timing = timing

    def load(self) -> StaticKeys:
        """The keys, made where there are none.

        Denied `unsafe_file`, `bad_owner` or `bad_mode` for a file or folder that is a link, no regular one, or not this user's
        alone; Denied `bad_key` for a file that holds no key.
        """
        found = self.find()
        if found is not None:
            return found
        with self._locked():
            return self._read() or self._write(StaticKeys(make_key_pair()))

    def find(self) -> StaticKeys | None:
        """The keys, None where there are none yet; read again once the file was changed. Raises as `load`."""
        return _read_keys.read(self.path)

    def rotate(self) -> StaticKeys:
        """Make another key, and keep the present one as the old one. Raises as `load`."""
        with self._locked():
            found = self._read()
            return self._write(StaticKeys(make_key_pair(), found.current if found else None))

    def forget_old(self) -> StaticKeys:
        """Remove the old key: who knows only that one is answered no more. Raises as `load`."""
        with self._locked():
            found = self._read()
            with suppress(FileNotFoundError):
                os.unlink(self._told_path)
            return self._write(StaticKeys(found.current if found else make_key_pair()))

    def find_told(self) -> set[bytes]:
        """The keys of the clients that know the present key, as far as that is noted; none where there is no old key."""
        found = self._read()
        if found is None or found.old is None:
            return set()
        try:
            record = parse_record(read_file(self._told_path, TOLD_LIMIT + 1), self._told_path, limit=TOLD_LIMIT)
            if record["key"] != key_text(found.current.public):
                return set()
            return {parse_key(str(one)) for one in record["clients"]}
        except (OSError, TmuxctlError, ValueError, KeyError, TypeError):
            return set()

    def note_told(self, client: bytes) -> None:
        """Note that a client, by its public key, knows the present key. Raises as `load`."""
        with self._locked():
            found, told = self._read(), self.find_told()
            if found is None or found.old is None or client in told:
                return
            clients = [key_text(one) for one in (*told, client)][-MOST_CLIENTS:]
            write_record(self._told_path, {"key": key_text(found.current.public), "clients": clients})

    def stamp(self) -> object:
        """What differs once the keys were changed; None without any."""
        return stamp_file(self.path)

    def _read(self) -> StaticKeys | None:
        hint = f"look at it: ls -l {self.path}"
        try:
            handle = open_file(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Denied(f"{self.path}: {error.strerror}", reason="unsafe_file", hint=hint) from None
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if found.st_uid != os.geteuid():
                raise Denied(f"{self.path} belongs to another user", reason="bad_owner", hint=hint)
            if stat.S_IMODE(found.st_mode) & 0o077:
                raise Denied(f"{self.path} is open to others", reason="bad_mode", hint=f"chmod 600 {self.path}")
            data = file.read(FILE_LIMIT + 1)
        try:
            record = parse_record(data, self.path, limit=FILE_LIMIT)
            old = record.get("old")
            return StaticKeys(_key_pair(record["current"]), None if old is None else _key_pair(old))
        except (ValueError, KeyError):
            hint = "put back a copy of it, or remove it: a new key is made, and every pairing with it is void"
            raise Denied(f"{self.path} holds no key", reason="bad_key", hint=hint) from None

    def _write(self, keys: StaticKeys) -> StaticKeys:
        old = keys.old and base64.b64encode(keys.old.private).decode()
        record = {"current": base64.b64encode(keys.current.private).decode(), "old": old}
        write_record(self.path, record, durable=True)
        return keys

    def _read_safely(self) -> StaticKeys | None:
        """The keys, of a folder that no other user can change."""
        found = self._read()
        if found is not None:
            self._check_folder()
        return found

    def _check_folder(self) -> None:
        make_private_folder(self.folder)
        refuse_unsafe(os.path.abspath(self.folder))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from making or changing the keys meanwhile; Conflict `busy`."""
        make_parents(self.folder)
        self._check_folder()
        busy = Conflict("another process changes the keys", reason="busy", hint="try again")
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            take_lock(handle, self._timing.lock_seconds, lambda: busy)
            yield
        finally:
            os.close(handle)


_read_keys = ParsedFile(lambda path: KeyFiles(os.path.dirname(path))._read_safely())  # noqa: SLF001


def make_key_pair() -> KeyPair:
    """A new random key."""
    return pair_of(os.urandom(KEY_BYTES))


def pair_of(private: bytes) -> KeyPair:
    """The pair that a private key of 32 bytes belongs to."""
    return KeyPair(private, X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw())


def fingerprint(public: bytes) -> str:
    """What a person compares: the SHA-256 of the 32 bytes of a public key, written as ssh-keygen(1) writes that of its keys."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(public).digest()).decode().rstrip("=")


def key_text(public: bytes) -> str:
    """A public key as files have it: base64, 44 characters."""
    return base64.b64encode(public).decode()


def parse_key(text: str) -> bytes:
    """The 32 bytes of a public key from its text. Usage `bad_key` for what is not exactly that, and as `check_public_key`."""
    with_bytes = _decode(text)
    if with_bytes is None:
        raise Usage(
            f"{ascii(text[:50])} is not a public key", reason="bad_key", hint="32 bytes in base64, 44 characters"
        )
    return check_public_key(with_bytes)


def check_public_key(public: bytes) -> bytes:
    """The key itself; Usage `bad_key` for what is not 32 bytes, and for a point of small order, with which every agreement is all
    zeros (RFC 7748, section 6.1): none can be made with it."""
    try:
        # any private key does: each is a multiple of 8, the order that such a point has at most
        X25519PrivateKey.from_private_bytes(bytes(KEY_BYTES)).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        hint = "a key that tmuxctl makes is none of these: `tmuxctl gateway key` shows it"
        raise Usage("a public key with which nothing can be agreed", reason="bad_key", hint=hint) from None
    return public


def _key_pair(text: Any) -> KeyPair:
    private = _decode(text)
    if private is None:
        raise ValueError("not a key")
    return pair_of(private)


def _decode(text: Any) -> bytes | None:
    """The 32 bytes that a text is the base64 of; None for any other text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (TypeError, binascii.Error, ValueError):
        return None
    return data if len(data) == KEY_BYTES and base64.b64encode(data).decode() == text else None
