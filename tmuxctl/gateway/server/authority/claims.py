"""Claims that nats-server believes once they are signed: of the operator, of accounts and of users.

They are JSON Web Tokens with Ed25519 keys in the notation of nkeys (NATS ADR-14; github.com/nats-io/jwt, version 2 of the claims).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any

import nkeys

from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value

OPERATOR = nkeys.PREFIX_BYTE_OPERATOR
ACCOUNT = nkeys.PREFIX_BYTE_ACCOUNT
USER = nkeys.PREFIX_BYTE_USER
"""What a key is for; its first letters tell it."""

_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
_UNLIMITED = {"subs": -1, "data": -1, "payload": -1}


class SignedUser(Value):
    """A user of an account: its key's seed (a secret), its public key, and the claims that say whose user it is."""

    seed: str
    public: str
    claims: str


def make_seed(kind: int) -> str:
    """The seed of a new key: OPERATOR, ACCOUNT or USER."""
    return str(nkeys.encode_seed(os.urandom(32), kind).decode())


def public_key(seed: str) -> str:
    """The public key of a seed."""
    return str(nkeys.from_seed(seed.encode()).public_key.decode())


def sign(seed: str, data: bytes) -> bytes:
    """The signature of some bytes, 64 bytes."""
    return bytes(nkeys.from_seed(seed.encode()).sign(data))


def sign_claims(
    signer: str, subject: str, name: str, about: Mapping[str, Any], *, issued: int, ends: int | None = None
) -> str:
    """Claims of a public key, signed with the seed `signer`: issued, and ending, at these seconds since 1970."""
    claims: dict[str, Any] = {"iat": issued, "iss": public_key(signer), "sub": subject, "name": name, "nats": about}
    if ends is not None:
        claims["exp"] = ends
    claims["jti"] = hashlib.sha256(json.dumps(claims, sort_keys=True).encode()).hexdigest()
    text = ".".join(_encode(json.dumps(part, sort_keys=True).encode()) for part in (_HEADER, claims))
    return f"{text}.{_encode(sign(signer, text.encode()))}"


def renew_claims(kept: str | None, signer: str, subject: str, name: str, about: Mapping[str, Any]) -> str:
    """The kept claims if they say the same, else new ones. Those are issued later than the kept ones, whatever the clock says:
    of two, servers believe what was issued later."""
    before = _parse(kept)
    if (before.get("iss"), before.get("sub"), before.get("nats")) == (public_key(signer), subject, about):
        assert kept is not None
        return kept
    issued = before.get("iat", 0)
    return sign_claims(signer, subject, name, about, issued=max(int(time.time()), issued + 1))


def operator_claims(system: str) -> dict[str, Any]:
    """What the operator says of itself: which account, by its public key, is that of the servers themselves."""
    return {"type": "operator", "version": 2, "system_account": system}


def account_claims(**parts: Any) -> dict[str, Any]:
    """What is said of an account: without limits, but for what `limits` says, which has no stream where it says nothing."""
    limits = {**_UNLIMITED, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
    return {
        "type": "account",
        "version": 2,
        "default_permissions": {"pub": {}, "sub": {}},
        **parts,
        "limits": limits | parts.get("limits", {}),
    }


def role_key(public: str, role: str, publish: tuple[str, ...], subscribe: tuple[str, ...]) -> dict[str, Any]:
    """A key of an account, each user of which may do what the account says of it (a scoped signing key): these subjects, in
    which {{name()}} stands for the name of the user. None of them connects as a leaf node."""
    allowed = _allow(publish, subscribe, ("STANDARD", "WEBSOCKET"))
    return {"kind": "user_scope", "key": public, "role": role, "template": allowed}


def sign_role_user(role_seed: str, account: str, name: str) -> SignedUser:
    """A new user of an account, by its public key, with the role of a key of it."""
    return _sign_user(role_seed, name, {"issuer_account": account})


def sign_account_user(
    account_seed: str,
    name: str,
    publish: tuple[str, ...],
    subscribe: tuple[str, ...],
    *,
    seconds: int | None = None,
    leaf: bool = False,
) -> SignedUser:
    """A new user of an account that may publish and subscribe these subjects; `seconds`: for so long; `leaf`: as a leaf node, and
    as nothing else."""
    allowed = _allow(publish, subscribe, ("LEAFNODE",) if leaf else ("STANDARD",))
    return _sign_user(account_seed, name, allowed, seconds=seconds)


def _allow(publish: tuple[str, ...], subscribe: tuple[str, ...], connections: tuple[str, ...]) -> dict[str, Any]:
    allowed = {"pub": {"allow": list(publish)}, "sub": {"allow": list(subscribe)}}
    return {**allowed, **_UNLIMITED, "allowed_connection_types": list(connections)}


def read_name(signed: object) -> str:
    """The name in claims that a server has checked; empty where there is none."""
    return str(_parse(signed if isinstance(signed, str) else None).get("name", ""))


def _sign_user(signer: str, name: str, about: Mapping[str, Any], *, seconds: int | None = None) -> SignedUser:
    seed, now = make_seed(USER), int(time.time())
    public, ends = public_key(seed), None if seconds is None else now + seconds
    claims = sign_claims(signer, public, name, {"type": "user", "version": 2, **about}, issued=now, ends=ends)
    return SignedUser(seed, public, claims)


def _parse(claims: str | None) -> dict[str, Any]:
    """What claims of ours say; nothing where that cannot be read."""
    try:
        part = (claims or "").split(".")[1]
        found = parse_json(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), limit=1 << 20)
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("iat"), int) else {}


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
