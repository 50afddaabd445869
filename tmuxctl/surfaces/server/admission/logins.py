"""Signing in with a browser: one-time codes, each for a token, and the logins that they are exchanged for.

A browser cannot keep a token safely: pages, history and logs see what is in an address. So a person takes a code to it, which holds
once and for minutes, and the browser gets a cookie that no script can read. Codes and logins are kept as hashes.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tmuxctl.errors import Denied, NotFound
from tmuxctl.ownership import refuse_unsafe
from tmuxctl.state_files import write_record
from tmuxctl.surfaces.server.admission.tokens import FILE_LIMIT, Token, TokenFiles, hash_secret, stamp_file
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import parse_record, read_file
from tmuxctl.value import Value

LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Those of a code: Crockford's base 32, in which no two look alike."""

CODE_LETTERS, GROUP_LETTERS = 12, 4
"""60 bits: too many to be guessed in the time that a code holds."""

WRONG_CODES = 10
"""Wrong codes that are looked at in a minute."""

CODES_KEPT, LOGINS_KEPT = 20, 200
"""Beyond these the oldest are forgotten."""

COOKIE, SECURE_COOKIE = "tmuxctl_login", "__Host-tmuxctl_login"
"""The cookie of a login, and its name under TLS: by this prefix browsers take it from this host alone, encrypted (RFC 6265bis)."""


class TooManyCodes(Denied):
    """More wrong codes than are looked at in a minute."""

    http_status = 429


class WrongCode(Denied):
    """A code that is none, was used, or holds no more."""

    http_status = 401


class Login(Value):
    """What is kept of a code or a login: the SHA-256 of its text, the name and the hash of its token, and when it ends, in seconds
    of the wall clock. A token that gets the name later has another hash."""

    hash: str
    token: str
    token_hash: str
    until: float


class LoginFiles:
    """The codes and logins in the state folder, `login-codes.json` and `logins.json`, both for the user alone."""

    def __init__(self, tokens: TokenFiles, clock: Callable[[], float] = time.time) -> None:
        self.tokens, self.clock = tokens, clock
        self.codes = os.path.join(tokens.folder, "login-codes.json")
        self.logins = os.path.join(tokens.folder, "logins.json")
        self._read: tuple[object, tuple[Login, ...]] | None = None
        self._wrong: deque[float] = deque(maxlen=WRONG_CODES)

    def make_code(self, name: str) -> str:
        """A new code for the token of this name. NotFound `no_token`."""
        token = self._find_token(name)
        code = "".join(secrets.choice(LETTERS) for _ in range(CODE_LETTERS))
        made = Login(hash_secret(code), token.name, token.hash, self.clock() + TIMING.http.code_seconds)
        with self.tokens.locked():
            self._write(self.codes, [*self._load(self.codes), made][-CODES_KEPT:])
        groups = (code[at : at + GROUP_LETTERS] for at in range(0, CODE_LETTERS, GROUP_LETTERS))
        return "-".join(groups)

    def redeem(self, code: str) -> str:
        """The text of a new login, for a code that nobody can use again. WrongCode `bad_code`, TooManyCodes."""
        now = self.clock()
        if len(self._wrong) == WRONG_CODES and now - self._wrong[0] < TIMING.http.wrong_codes_seconds:
            hint = "wait a minute"
            raise TooManyCodes("too many wrong codes were given", reason="too_many_codes", hint=hint)
        given = hash_secret(normalize_code(code))
        with self.tokens.locked():
            kept = self._load(self.codes)
            found = [one for one in kept if secrets.compare_digest(one.hash, given) and self._holds(one)]
            if not found:
                self._wrong.append(now)
                hint = "make a new one on the server's machine: tmuxctl token login"
                raise WrongCode("this code is not valid, or was used already", reason="bad_code", hint=hint)
            self._write(self.codes, [one for one in kept if one.hash != given])
            text = secrets.token_urlsafe(32)
            login = Login(hash_secret(text), found[0].token, found[0].token_hash, now + TIMING.http.login_seconds)
            self._write(self.logins, [*self._load(self.logins), login][-LOGINS_KEPT:])
        return text

    def find(self, texts: Sequence[str]) -> tuple[str, Token] | None:
        """The hash of a login, and the token it stands for; None for what is none. Of several texts, which a page on another port
        of this host may have set, all that hold must be for one token."""
        found: dict[str, tuple[str, Token]] = {}
        for text in texts[:4]:
            given = hash_secret(text)
            for login in self._list_logins():
                if secrets.compare_digest(login.hash, given) and (token := self._token_of(login)):
                    found[token.hash] = given, token
        return next(iter(found.values())) if len(found) == 1 else None

    def holds(self, given: str) -> bool:
        """Whether the login with this hash still holds."""
        return any(login.hash == given and self._holds(login) for login in self._list_logins())

    def forget(self, given: str) -> None:
        """End the login with this hash."""
        with self.tokens.locked():
            self._write(self.logins, [one for one in self._load(self.logins) if one.hash != given])

    def _find_token(self, name: str) -> Token:
        found = next((token for token in self.tokens.list_tokens() if token.name == name), None)
        if found is None:
            raise NotFound(f"no token {ascii(name[:40])}", reason="no_token", hint="tmuxctl token ls")
        return found

    def _token_of(self, login: Login) -> Token | None:
        if login.until <= self.clock():
            return None
        tokens = self.tokens.list_tokens()
        return next((one for one in tokens if (one.name, one.hash) == (login.token, login.token_hash)), None)

    def _holds(self, login: Login) -> bool:
        return self._token_of(login) is not None

    def _list_logins(self) -> tuple[Login, ...]:
        """The logins that are kept; read again where the file has changed."""
        stamp = stamp_file(self.logins)
        if self._read is None or self._read[0] != stamp:
            self._read = stamp, tuple(self._load(self.logins))
        return self._read[1]

    def _load(self, path: str) -> list[Login]:
        if not os.path.lexists(path):
            return []
        refuse_unsafe(path)
        rows = parse_record(read_file(path, FILE_LIMIT), path).get("logins", [])
        return [Login(row["hash"], row["token"], row["token_hash"], row["until"]) for row in rows]

    def _write(self, path: str, logins: Sequence[Login]) -> None:
        """Keep those that still hold."""
        rows: list[dict[str, Any]] = [
            {"hash": one.hash, "token": one.token, "token_hash": one.token_hash, "until": one.until}
            for one in logins
            if self._holds(one)
        ]
        write_record(path, {"logins": rows}, durable=True)


def normalize_code(text: str) -> str:
    """A code as it was made, from what a person typed: small letters, blanks and dashes, `o` for 0, `i` and `l` for 1."""
    bare = re.sub(r"[\s-]", "", text[:100]).upper()
    return bare.translate(str.maketrans("OIL", "011"))


def read_cookies(headers: Mapping[str, str], encrypted: bool) -> list[str]:
    """The texts of the login cookies that a browser sent; under TLS only those that are bound to this host."""
    name = SECURE_COOKIE if encrypted else COOKIE
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "")[:8192].split(";"))
    return [value for key, _, value in pairs if key == name and value]


def write_cookie(text: str, encrypted: bool) -> str:
    """The header Set-Cookie of a login; of one that has ended for an empty text."""
    about = ["Path=/", "HttpOnly", "SameSite=Strict", f"Max-Age={int(TIMING.http.login_seconds) if text else 0}"]
    name = SECURE_COOKIE if encrypted else COOKIE
    return "; ".join([f"{name}={text}", *about, *(["Secure"] if encrypted else [])])
