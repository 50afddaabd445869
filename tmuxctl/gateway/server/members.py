"""The hosts and clients of a gateway: what is kept of each is its id, its role, the public part of its key, and a label."""

from __future__ import annotations

import os
import re
import time

import nkeys

from tmuxctl.errors import Failed, NotFound, Usage
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.gateway.server.certificates import find_certificate
from tmuxctl.gateway.server.settings import FILE_LIMIT, GatewayFiles
from tmuxctl.gateway.subjects import is_id, make_id, parse_id
from tmuxctl.state_files import write_record
from tmuxctl.untrusted import fits, parse_record, read_file
from tmuxctl.value import Value, changed
from tmuxctl.vocabulary import GatewayRole

MOST_MEMBERS = 4096

_NKEY = re.compile(r"U[A-Z2-7]{55}\Z")
_ROW = {"id!": str, "role!": str, "nkey!": str, "label!": (str, type(None)), "created!": str}


class Member(Value):
    """A host or client that may connect: its id, its role, the public nkey of its user, the operator's label for it, and since
    when (ISO 8601, UTC). The label is kept on the gateway's machine alone."""

    id: str
    role: GatewayRole
    nkey: str
    label: str | None
    created: str


class Members:
    """The hosts and clients in the gateway's folder. What changes them is called inside `GatewayFiles.locked`."""

    def __init__(self, files: GatewayFiles) -> None:
        self._files = files
        self._path = files.path("members.json")

    def list_members(self) -> tuple[Member, ...]:
        """All, in the order in which they were added. Failed `bad_file` for a file that was changed."""
        try:
            found = parse_record(read_file(self._path, FILE_LIMIT * 2 + 1), self._path, limit=FILE_LIMIT * 2)
            if not fits(found, {"members!": [_ROW]}):
                raise ValueError
            return tuple(map(_parse_row, found["members"]))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError):
            hint = "restore it: hosts and clients that are not in it cannot connect"
            raise Failed(f"{self._path} was changed", reason="bad_file", hint=hint) from None

    def add(self, role: GatewayRole, label: str | None) -> Credentials:
        """Add a host or client with a new id and key; its credentials, of which the seed is kept nowhere. Usage `bad_label`,
        Failed `too_many`."""
        if label is not None and (not 0 < len(label) <= 64 or not label.isprintable()):
            hint = "at most 64 printable characters"
            raise Usage(f"{ascii(label[:40])} cannot be the label of a {role}", reason="bad_label", hint=hint)
        found = self.list_members()
        if len(found) >= MOST_MEMBERS:
            hint = "remove those that are not used: tmuxctl gateway remove ID"
            raise Failed(f"a gateway has at most {MOST_MEMBERS} hosts and clients", reason="too_many", hint=hint)
        seed, nkey = _make_key()
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        made = Member(make_id(), role, nkey, label, created)
        credentials = self._credentials(made, seed)
        self._write((*found, made))
        return credentials

    def rotate(self, member: str) -> Credentials:
        """Give a host or client a new key; the old one does not hold any more. NotFound `no_member`."""
        found = self.find(member)
        seed, nkey = _make_key()
        credentials = self._credentials(found, seed)
        self._write(tuple(changed(one, nkey=nkey) if one.id == found.id else one for one in self.list_members()))
        return credentials

    def remove(self, member: str) -> Member:
        """Let it not connect any more; what it was. NotFound `no_member`."""
        found = self.find(member)
        self._write(tuple(one for one in self.list_members() if one.id != found.id))
        return found

    def find(self, member: str) -> Member:
        """The host or client with this id. Usage `bad_id`, NotFound `no_member` and `no_gateway`."""
        parse_id(member)
        self._files.read_settings()
        for one in self.list_members():
            if one.id == member:
                return one
        raise NotFound(f"no host or client {member}", reason="no_member", hint="ids are listed by: tmuxctl gateway ls")

    def restore(self, members: tuple[Member, ...]) -> None:
        """Keep these and no others, as they were listed before."""
        self._write(members)

    def _credentials(self, member: Member, seed: str) -> Credentials:
        settings = self._files.read_settings()
        authority = find_certificate(self._files, settings).authority
        return Credentials(member.id, member.role, settings.urls, authority, seed)

    def _write(self, members: tuple[Member, ...]) -> None:
        rows = [{name: getattr(one, name) for name in Member._names} for one in members]
        write_record(self._path, {"members": rows}, durable=True)


def _parse_row(row: dict[str, str]) -> Member:
    """What goes from here into the server's configuration has to be what we wrote."""
    role = GatewayRole.of(row["role"])
    if role is None or not is_id(row["id"]) or not _NKEY.match(row["nkey"]):
        raise ValueError
    return Member(row["id"], role, row["nkey"], row["label"], row["created"])


def _make_key() -> tuple[str, str]:
    """The seed and the public nkey of a new user."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    return seed.decode(), nkeys.from_seed(seed).public_key.decode()
