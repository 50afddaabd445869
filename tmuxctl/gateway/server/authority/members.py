"""The hosts and clients of a gateway: what is kept of each is its id, its role, the public part of its key, and a label."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tmuxctl.errors import Failed, NotFound, Usage
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.gateway.server.authority.accounts import DEFAULT_TENANT, Accounts
from tmuxctl.gateway.server.authority.certificates import find_authority, find_certificate
from tmuxctl.gateway.server.authority.claims import SignedUser
from tmuxctl.gateway.server.settings import FILE_LIMIT, GatewayFiles
from tmuxctl.gateway.subjects import is_id, make_id, parse_id
from tmuxctl.state_files import write_record
from tmuxctl.untrusted import fits, parse_record, read_file
from tmuxctl.value import Value, changed
from tmuxctl.vocabulary import GatewayRole

MOST_MEMBERS = 4096

_NKEY = re.compile(r"U[A-Z2-7]{55}\Z")
_ROW = {"id!": str, "role!": str, "nkey!": str, "label!": (str, type(None)), "created!": str, "tenant": str}


class Member(Value):
    """A host or client that may connect: its id, its role, the public nkey of its user, the operator's label for it, since when
    (ISO 8601, UTC), and its tenant. The label is kept on the gateway's machine alone."""

    id: str
    role: GatewayRole
    nkey: str
    label: str | None
    created: str
    tenant: str = DEFAULT_TENANT


class Members:
    """The hosts and clients in the gateway's folder. What changes them is called inside `GatewayFiles.locked`.

    Servers know none of them: whoever has a key that the gateway signed may connect, until it is revoked.
    """

    def __init__(self, files: GatewayFiles) -> None:
        self._files, self.accounts = files, Accounts(files)
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

    def add(
        self, role: GatewayRole, label: str | None, tenant: str | None = None, nodes: tuple[str, ...] = ()
    ) -> Credentials:
        """Add a host or client with a new id and key; its credentials, of which the seed is kept nowhere. `nodes`: by which it
        connects, if not by those of the cluster. Usage `bad_label` and `bad_name`, NotFound `no_tenant`, `no_keys` and
        `no_gateway`, Failed `too_many`."""
        if label is not None and (not 0 < len(label) <= 64 or not label.isprintable()):
            hint = "at most 64 printable characters"
            raise Usage(f"{ascii(label[:40])} cannot be the label of a {role}", reason="bad_label", hint=hint)
        found = self.list_members()
        if len(found) >= MOST_MEMBERS:
            hint = "remove those that are not used: tmuxctl gateway remove ID"
            raise Failed(f"a gateway has at most {MOST_MEMBERS} hosts and clients", reason="too_many", hint=hint)
        self.check_own()
        member, created = make_id(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        key = self.accounts.sign_member(tenant or DEFAULT_TENANT, role, member)
        made = Member(member, role, key.public, label, created, tenant or DEFAULT_TENANT)
        credentials = self._credentials(made, key, nodes)
        self._write((*found, made))
        return credentials

    def rotate(self, member: str, nodes: tuple[str, ...] = ()) -> Credentials:
        """Give a host or client a new key; the old one does not hold any more. NotFound `no_member`."""
        found = self.find(member)
        key = self.accounts.sign_member(found.tenant, found.role, found.id)
        credentials = self._credentials(found, key, nodes)
        self.accounts.revoke(found.tenant, found.nkey)
        self._write(tuple(changed(one, nkey=key.public) if one.id == found.id else one for one in self.list_members()))
        return credentials

    def remove(self, member: str) -> Member:
        """Let it not connect any more; what it was. NotFound `no_member`."""
        found = self.find(member)
        self.accounts.revoke(found.tenant, found.nkey)
        self._write(tuple(one for one in self.list_members() if one.id != found.id))
        return found

    def find(self, member: str) -> Member:
        """The host or client with this id. Usage `bad_id`, NotFound `no_member` and `no_gateway`."""
        parse_id(member)
        self.check_own()
        for one in self.list_members():
            if one.id == member:
                return one
        raise NotFound(f"no host or client {member}", reason="no_member", hint="ids are listed by: tmuxctl gateway ls")

    @contextmanager
    def unchanged_by_errors(self) -> Iterator[None]:
        """What an error ends has changed nothing."""
        members, tenants = self.list_members(), self.accounts.tenants
        try:
            yield
        except BaseException:
            self._write(members)
            if self.accounts.tenants != tenants:
                self.accounts.restore(tenants)
            raise

    def check_own(self) -> None:
        """NotFound `no_gateway` without a gateway, `no_keys` on a node whose hosts and clients another machine adds."""
        self._files.read_settings()
        if not self.accounts.exist:
            raise NotFound(
                "this node of the gateway has no keys to sign with",
                reason="no_keys",
                hint="add and remove hosts and clients on the gateway's first machine",
            )

    def _credentials(self, member: Member, key: SignedUser, nodes: tuple[str, ...]) -> Credentials:
        settings = self._files.read_settings()
        authority, urls = find_certificate(self._files, settings).authority, settings.all_urls
        if nodes:
            # their certificates are of the gateway's own authority, whatever the first machine shows
            authority, urls = find_authority(self._files), settings.urls_of(nodes)
        # the first one is tried first: not all are to be connected to one node of a cluster
        start = random.randrange(len(urls)) if settings.nodes else 0
        return Credentials(member.id, member.role, urls[start:] + urls[:start], authority, key.seed, key.claims)

    def _write(self, members: tuple[Member, ...]) -> None:
        rows = [{name: getattr(one, name) for name in Member._names} for one in members]
        write_record(self._path, {"members": rows}, durable=True)


def _parse_row(row: dict[str, str]) -> Member:
    """What is revoked by it has to be what we wrote."""
    role = GatewayRole.of(row["role"])
    if role is None or not is_id(row["id"]) or not _NKEY.match(row["nkey"]):
        raise ValueError
    return Member(row["id"], role, row["nkey"], row["label"], row["created"], row.get("tenant", DEFAULT_TENANT))
