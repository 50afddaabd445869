"""The tokens with which a caller on TCP shows who it is: made once, kept as hashes, and looked up in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tmuxctl.errors import Conflict, Denied, NotFound, Usage
from tmuxctl.operations import RIGHTS, check_rights
from tmuxctl.ownership import make_parents, refuse_unsafe
from tmuxctl.state_files import make_private_file, make_private_folder, state_home, take_lock, write_record
from tmuxctl.untrusted import parse_record, read_file
from tmuxctl.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_LIMIT = 1 << 20
FIRST = "first"
"""The name of the token that the server makes itself."""

PREFIX = "tmuxctl_"
"""What a token begins with, so that a search for secrets finds one."""


class Token(Value):
    """A token as it is kept: the SHA-256 of its text in hexadecimal, what its bearer may, and the names of the sessions that are
    meant by it, as patterns of fnmatch(3)."""

    name: str
    hash: str
    rights: tuple[str, ...] = RIGHTS
    sessions: tuple[str, ...] = ("*",)
    created: str = ""


class TokenFiles:
    """The tokens in the state folder. `tokens.json` has a hash for each; `token` has the text of the first one (mode 0600), or the
    file that TMUXCTL_TOKEN_FILE names."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self.folder = os.path.join(state_home(), "tmuxctl", "serve")
        self.first = environment.get("TMUXCTL_TOKEN_FILE") or os.path.join(self.folder, "token")
        self.kept = os.path.join(self.folder, "tokens.json")
        self._read: tuple[object, tuple[Token, ...]] | None = None

    def read_first(self) -> str:
        """The text of the first token, made where there is none. Denied for a file that others may read or write."""
        self._make_folder()
        if not os.path.lexists(self.first):
            text = PREFIX + secrets.token_urlsafe(32)
            make_private_file(self.first, f"{text}\n".encode())
            return text
        refuse_unsafe(os.path.abspath(self.first))
        if os.stat(self.first).st_mode & 0o077:
            raise Denied(f"{self.first} is open to others", reason="bad_mode", hint=f"chmod 600 {self.first}")
        text = read_file(self.first, 4096).decode("ascii", "replace").strip()
        if len(text) < 16 or not text.isascii() or not text.isprintable():
            raise Denied(f"{self.first} holds no token", reason="bad_token", hint="remove it: a new one is made")
        return text

    def list_tokens(self) -> tuple[Token, ...]:
        """The tokens that hold now, the first one ahead; read again where a file has changed."""
        stamp = tuple(stamp_file(path) for path in (self.first, self.kept))
        if self._read is None or self._read[0] != stamp:
            found = [Token(FIRST, hash_secret(self.read_first()))] if os.path.lexists(self.first) else []
            self._read = stamp, (*found, *self._read_kept())
        return self._read[1]

    def find(self, text: str) -> Token | None:
        """The token with this text; every one is compared, each in a time that does not tell how much is right."""
        given, found = hash_secret(text), None
        for token in self.list_tokens():
            if hmac.compare_digest(token.hash, given):
                found = token
        return found

    def add(self, name: str, rights: Iterable[str], sessions: Iterable[str]) -> str:
        """Make a token; its text, which is kept nowhere. Usage for a right or name there cannot be, Conflict `exists`."""
        sessions = tuple(sessions)
        if not name or len(name) > 64 or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            hint = "letters, digits, - and _"
            raise Usage(f"{ascii(name[:40])} cannot be the name of a token", reason="bad_name", hint=hint)
        rights = check_rights(rights)
        with self.locked():
            tokens = self._read_kept()
            if name == FIRST or any(token.name == name for token in tokens):
                hint = f"choose another, or: tmuxctl token revoke {name}"
                raise Conflict(f"there is a token named {name}", reason="exists", hint=hint)
            text = PREFIX + secrets.token_urlsafe(32)
            created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._write((*tokens, Token(name, hash_secret(text), rights, sessions, created)))
        return text

    def revoke(self, name: str) -> None:
        """Forget a token: its bearer is refused from now on. NotFound `no_token`."""
        with self.locked():
            if name == FIRST and os.path.lexists(self.first):
                return os.unlink(self.first)
            tokens = self._read_kept()
            if not any(token.name == name for token in tokens):
                raise NotFound(f"no token {ascii(name[:40])}", reason="no_token", hint="tmuxctl token ls")
            self._write(token for token in tokens if token.name != name)
        return None

    def _read_kept(self) -> tuple[Token, ...]:
        if not os.path.lexists(self.kept):
            return ()
        refuse_unsafe(self.kept)
        rows = parse_record(read_file(self.kept, FILE_LIMIT), self.kept).get("tokens", [])
        return tuple(
            Token(row["name"], row["hash"], tuple(row["rights"]), tuple(row["sessions"]), row["created"])
            for row in rows
        )

    def _write(self, tokens: Iterable[Token]) -> None:
        rows: list[dict[str, Any]] = [
            {
                "name": token.name,
                "hash": token.hash,
                "rights": list(token.rights),
                "sessions": list(token.sessions),
                "created": token.created,
            }
            for token in tokens
        ]
        write_record(self.kept, {"tokens": rows}, durable=True)

    def _make_folder(self) -> None:
        make_parents(self.folder)
        make_private_folder(self.folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else changes tokens or logins, while this holds."""
        self._make_folder()
        handle = os.open(os.path.join(self.folder, "tokens.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            hint = "try again"
            busy = Conflict("another process changes the tokens", reason="busy", hint=hint)
            take_lock(handle, 5.0, lambda: busy)
            yield
        finally:
            os.close(handle)


def hash_secret(text: str) -> str:
    """What is kept of a token, a code or a login."""
    # a token has 256 random bits: nothing is gained by a slow hash
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def stamp_file(path: str) -> object:
    """What differs once the file at a path was written anew; None without one."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
