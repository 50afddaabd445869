"""The file with which a host or client reaches a gateway: its addresses, its certificate authority, and the key of its user."""

from __future__ import annotations

import json
import os
import re
import ssl
import stat
from collections.abc import Mapping
from typing import Any

from tmuxctl.errors import Conflict, Denied, Failed, NotFound, Usage
from tmuxctl.gateway.subjects import is_id
from tmuxctl.ownership import refuse_unsafe
from tmuxctl.state_files import make_private_file
from tmuxctl.untrusted import FORMAT, fits, parse_record, read_file
from tmuxctl.value import Value
from tmuxctl.vocabulary import GatewayRole

KIND = "tmuxctl gateway credentials"
FILE_LIMIT = 64 << 10
MOST_URLS = 8

_URL = re.compile(r"tls://(\[[0-9a-f:.]{2,45}\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?):([1-9][0-9]{0,4})")
_SEED = re.compile(r"SU[A-Z2-7]{56}")
_CLAIMS = re.compile(r"(?:[A-Za-z0-9_-]{1,4096}\.){2}[A-Za-z0-9_-]{86}")
_SHAPE: Mapping[str, Any] = {
    "kind!": str,
    "id!": str,
    "role!": str,
    "urls!": [str],
    "ca!": (str, type(None)),
    "seed!": str,
    "jwt!": str,
}


class Credentials(Value):
    """What a host or client needs: its id and role, the addresses as tls://HOST:PORT, the certificate of the authority that
    signed the gateway's (PEM; None: one that this machine trusts anyway), the seed of its nkey (a secret), and what the gateway
    signed of that key (a JSON Web Token)."""

    id: str
    role: GatewayRole
    urls: tuple[str, ...]
    ca: str | None
    seed: str
    jwt: str

    def __repr__(self) -> str:
        return f"Credentials(id={self.id!r}, role={self.role.value!r}, urls={self.urls!r})"

    def to_json(self) -> dict[str, Any]:
        """What `parse_credentials` reads."""
        return {
            "format": FORMAT,
            "kind": KIND,
            "id": self.id,
            "role": self.role.value,
            "urls": list(self.urls),
            "ca": self.ca,
            "seed": self.seed,
            "jwt": self.jwt,
        }

    def to_text(self) -> str:
        """The content of a credentials file."""
        return json.dumps(self.to_json(), indent=1) + "\n"

    def tls_context(self) -> ssl.SSLContext:
        """TLS 1.2 or later that trusts the gateway's authority alone, and checks the name."""
        context = ssl.create_default_context(cadata=self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


def is_url(text: str) -> bool:
    """Whether a text is an address of a gateway: tls://HOST:PORT."""
    found = _URL.fullmatch(text)
    return found is not None and int(found[3]) <= 65535


def parse_credentials(data: bytes | str, where: str) -> Credentials:
    """Credentials from the content of a file, which anybody may have written; Usage `bad_credentials` for anything else."""
    try:
        value = parse_record(data, where, limit=FILE_LIMIT)
        if not fits(value, _SHAPE):
            raise ValueError("a key is missing, or of another type")
        role = GatewayRole.of(value["role"])
        if value["kind"] != KIND or role is None or not is_id(value["id"]):
            raise ValueError("kind, id or role cannot be")
        urls = tuple(value["urls"])
        if not 1 <= len(urls) <= MOST_URLS or not all(map(is_url, urls)):
            raise ValueError(f"urls are 1 to {MOST_URLS} of tls://HOST:PORT")
        if not _SEED.fullmatch(value["seed"]):
            raise ValueError("the seed is that of no user")
        if not _CLAIMS.fullmatch(value["jwt"]):
            raise ValueError("jwt is not what a gateway signed")
        found = Credentials(value["id"], role, urls, value["ca"], value["seed"], value["jwt"])
        if found.ca is not None:
            _check_authority(found)
    except ValueError as error:
        hint = "copy the file that `tmuxctl gateway add-host` or add-client wrote"
        raise Usage(
            f"{ascii(where)} holds no credentials of a gateway: {error}", reason="bad_credentials", hint=hint
        ) from None
    return found


def _check_authority(found: Credentials) -> None:
    """ValueError unless `ca` is one certificate of an authority: with none, every authority of this machine would be trusted."""
    text = (found.ca or "").strip()
    if text.count("-----BEGIN ") != 1 or not text.startswith("-----BEGIN CERTIFICATE-----"):
        raise ValueError("ca is not one certificate")
    try:
        held = found.tls_context().get_ca_certs()
    except ssl.SSLError:
        raise ValueError("ca is no certificate") from None
    if len(held) != 1:
        raise ValueError("ca is not the certificate of an authority")


def read_credentials(path: str) -> Credentials:
    """The credentials in a file of this user's that others can neither read nor change.

    Raises NotFound `no_credentials`, Denied `bad_mode` and `unsafe_file`, Usage `bad_credentials`; no link is followed.
    """
    path = os.path.abspath(path)
    try:
        mode = os.lstat(path).st_mode
        refuse_unsafe(path)
        if stat.S_ISREG(mode) and mode & 0o077:
            raise Denied(f"{ascii(path)} is open to others", reason="bad_mode", hint=f"chmod 600 {ascii(path)}")
        data = read_file(path, FILE_LIMIT + 1)
    except FileNotFoundError:
        hint = "make them where the gateway is: tmuxctl gateway add-host, or add-client"
        raise NotFound(f"there is no file {ascii(path)}", reason="no_credentials", hint=hint) from None
    except OSError as error:
        raise Usage(
            f"{ascii(path)}: {error.strerror}", reason="bad_credentials", hint="name a regular file, not a link"
        ) from None
    return parse_credentials(data, path)


def write_credentials(path: str, credentials: Credentials) -> None:
    """Write a new file that only this user can read. Conflict `exists`; Failed `bad_file` where it cannot be written."""
    try:
        make_private_file(path, credentials.to_text().encode())
    except FileExistsError:
        raise Conflict(f"{ascii(path)} is there already", reason="exists", hint="name another: --out FILE") from None
    except OSError as error:
        hint = "name a file you may write: --out FILE"
        raise Failed(f"{ascii(path)}: {error.strerror}", reason="bad_file", hint=hint) from None
