"""The accounts of a gateway: one of the servers themselves, and two of each tenant.

Hosts and clients are users of a tenant's first account, which has no stream; the stream EVENTS belongs to the second one, which has
no users, and four of whose subjects the first imports. So no member can name a subject of the stream's own interface, not even as
the subject for a reply: stock NATS publishes an answer of a stream wherever the question wanted it, with the rights of the server.
In one account a client that may do no more than read events deleted the stream so (measured on 2.15.1; docs/adr/0059).

What a server has to know of them is signed, and no secret; the keys that sign are on the machine of the first server alone
(docs/adr/0064).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tmuxctl.errors import Conflict, Failed, NotFound, Usage
from tmuxctl.gateway import subjects
from tmuxctl.gateway.server.authority import claims
from tmuxctl.gateway.server.settings import GatewayFiles
from tmuxctl.state_files import write_record
from tmuxctl.untrusted import fits, parse_record, read_file
from tmuxctl.value import Value, changed
from tmuxctl.vocabulary import GatewayRole

FILE_LIMIT = 16 << 20
MOST_TENANTS = 64
MOST_REVOKED = 8192
"""Keys of a tenant that hold no more. All of them are in the claims of its account, which a message of 1 MiB carries."""

DEFAULT_TENANT = "main"

DIRECT_GET = f"$JS.API.DIRECT.GET.{subjects.STREAM}"
"""Where the stream is asked for what it holds (NATS ADR-31)."""

_TENANT = {"name!": str, "account!": str, "store!": str, "host!": str, "client!": str, "revoked!": dict}
_SHAPE = {"operator!": str, "system!": str, "tenants!": [_TENANT], "claims!": dict}


class TrustedAccounts(Value):
    """What a server is told: the operator's claims, the public key of the servers' own account, and the claims of all accounts by
    their public keys. None of it is a secret."""

    operator: str
    system: str
    accounts: Mapping[str, str]


class Tenant(Value):
    """Hosts and clients that know nothing of those of other tenants: its name, the seeds of its two accounts and of the keys with
    which its hosts and clients are signed, and the public keys that hold no more, each with since when, in seconds since 1970."""

    name: str
    account: str
    store: str
    host: str
    client: str
    revoked: Mapping[str, int]

    def __repr__(self) -> str:
        return f"Tenant(name={self.name!r})"


class Accounts:
    """The accounts in the gateway's folder. What changes them is called inside `GatewayFiles.locked`."""

    def __init__(self, files: GatewayFiles) -> None:
        self._path = files.path("accounts.json")
        self._operator = self._system = ""
        self.tenants: tuple[Tenant, ...] = ()
        self._claims: dict[str, str] = {}
        self._read()

    @property
    def exist(self) -> bool:
        """Whether there are any yet; on a node that another machine made there are none."""
        return bool(self._operator)

    def make(self) -> None:
        """Make the keys of the gateway, if there are none yet, and sign what this release says otherwise than what is kept."""
        if not self.exist:
            self._operator, self._system = claims.make_seed(claims.OPERATOR), claims.make_seed(claims.ACCOUNT)
            self.tenants = (_make_tenant(DEFAULT_TENANT),)
        self._write()

    def find_tenant(self, name: str) -> Tenant:
        """The tenant of this name. NotFound `no_tenant`."""
        for one in self.tenants:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.tenants)
        raise NotFound(
            f"no tenant {ascii(name[:40])}",
            reason="no_tenant",
            hint=f"there is {known}; tmuxctl gateway add-tenant NAME",
        )

    def add_tenant(self, name: str) -> None:
        """Add a tenant. Usage `bad_label`, Conflict `exists`, Failed `too_many`."""
        if not 0 < len(name) <= 32 or not name.isascii() or not name.replace("-", "").isalnum():
            hint = "at most 32 letters, digits and -"
            raise Usage(f"{ascii(name[:40])} cannot be the name of a tenant", reason="bad_label", hint=hint)
        if any(one.name == name for one in self.tenants):
            raise Conflict(f"tenant {name} is there already", reason="exists", hint="tmuxctl gateway ls")
        if len(self.tenants) >= MOST_TENANTS:
            raise Failed(
                f"a gateway has at most {MOST_TENANTS} tenants", reason="too_many", hint="run another gateway for more"
            )
        self.tenants = (*self.tenants, _make_tenant(name))
        self._write()

    def revoke(self, tenant: str, key: str) -> None:
        """Let a public key of a tenant hold no more. Failed `too_many`."""
        found = self.find_tenant(tenant)
        if len(found.revoked) >= MOST_REVOKED:
            hint = "move its hosts and clients to a new tenant: tmuxctl gateway add-tenant NAME"
            raise Failed(f"{MOST_REVOKED} keys of tenant {tenant} were removed", reason="too_many", hint=hint)
        made = changed(found, revoked={**found.revoked, key: int(time.time())})
        self.tenants = tuple(made if one.name == tenant else one for one in self.tenants)
        self._write()

    def restore(self, tenants: tuple[Tenant, ...]) -> None:
        """Have these tenants, as they were before a change that servers were not told of."""
        self.tenants = tenants
        self._write()

    def sign_member(self, tenant: str, role: GatewayRole, member: str) -> claims.SignedUser:
        """A new key of a host or client with this id."""
        found = self.find_tenant(tenant)
        signer = found.host if role is GatewayRole.HOST else found.client
        return claims.sign_role_user(signer, claims.public_key(found.account), member)

    def sign_leaf(self, tenant: str) -> claims.SignedUser:
        """The key of a leaf node: it carries all that its tenant sends, as any node does, and nothing of others."""
        return claims.sign_account_user(
            self.find_tenant(tenant).account, "leaf", (subjects.ALL,), (subjects.ALL,), leaf=True
        )

    def sign_leaf_observer(self) -> claims.SignedUser:
        """The key with which a leaf node learns what is newly signed of accounts."""
        learned = ("$SYS.REQ.CLAIMS.PACK", "$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP")
        told = ("$SYS._INBOX.>", "$SYS.REQ.CLAIMS.UPDATE")
        return claims.sign_account_user(self._system, "leaf", learned, told, leaf=True)

    def sign_administrator(self, seconds: int) -> claims.SignedUser:
        """A key of the servers' own account, for so many seconds: it asks the servers what they do, and tells them new claims."""
        asked = ("$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.SERVER.PING.*")
        return claims.sign_account_user(self._system, "administrator", asked, ("_INBOX.>",), seconds=seconds)

    def sign_store_administrator(self, tenant: Tenant, seconds: int) -> claims.SignedUser:
        """A key that may change the stream of a tenant, for so many seconds."""
        return claims.sign_account_user(tenant.store, "administrator", ("$JS.API.>",), ("_INBOX.>",), seconds=seconds)

    def trusted(self) -> TrustedAccounts:
        """What a server is told of them."""
        system = claims.public_key(self._system)
        accounts = {key: text for key, text in self._claims.items() if key.startswith("A")}
        return TrustedAccounts(self._claims[claims.public_key(self._operator)], system, accounts)

    def _read(self) -> None:
        try:
            found = parse_record(read_file(self._path, FILE_LIMIT + 1), self._path, limit=FILE_LIMIT)
            if not fits(found, _SHAPE):
                raise ValueError
            self.tenants = tuple(Tenant(**{name: row[name] for name in Tenant._names}) for row in found["tenants"])
            self._operator, self._system, self._claims = found["operator"], found["system"], found["claims"]
        except FileNotFoundError:
            return
        except (OSError, ValueError):
            hint = "restore it: without it no host or client can be added or removed"
            raise Failed(f"{self._path} was changed", reason="bad_file", hint=hint) from None

    def _write(self) -> None:
        self._sign()
        rows = [{name: getattr(one, name) for name in Tenant._names} for one in self.tenants]
        about = {"operator": self._operator, "system": self._system, "tenants": rows, "claims": self._claims}
        write_record(self._path, about, durable=True)

    def _sign(self) -> None:
        """Have claims of everything as it is now; what did not change stays as it was signed."""
        system, operator = claims.public_key(self._system), claims.public_key(self._operator)
        said = {operator: ("gateway", claims.operator_claims(system)), system: ("system", claims.account_claims())}
        for one in self.tenants:
            store = claims.public_key(one.store)
            # leaf nodes of other tenants can read what is said of it, so its name is no part of that
            said[store] = "store", claims.account_claims(exports=_EXPORTS, limits=_STORE_LIMITS)
            said[claims.public_key(one.account)] = "tenant", _tenant_claims(one, store)
        self._claims = {
            key: claims.renew_claims(self._claims.get(key), self._operator, key, name, about)
            for key, (name, about) in said.items()
        }


_STORE_LIMITS = {"mem_storage": 0, "disk_storage": -1, "streams": 1, "consumer": -1}

_EXPORTS = [
    {"name": "events", "type": "service", "subject": subjects.events(subjects.ANY)},
    {"name": "last", "type": "service", "subject": f"{DIRECT_GET}.{subjects.events(subjects.ANY)}"},
    {"name": "read", "type": "service", "subject": DIRECT_GET, "response_type": "Stream"},
    {"name": "feed", "type": "stream", "subject": subjects.feed(subjects.ANY)},
]


def _tenant_claims(tenant: Tenant, store: str) -> dict[str, Any]:
    """What is said of the account of a tenant's hosts and clients."""
    keys = []
    for role, seed in ((GatewayRole.HOST, tenant.host), (GatewayRole.CLIENT, tenant.client)):
        allowed = subjects.permissions(role, "{{name()}}")
        keys.append(claims.role_key(claims.public_key(seed), role.value, allowed.publish, allowed.subscribe))
    # an import's own subject has $1 for the first word that is free in the other one
    imported = (subjects.events(subjects.ANY), subjects.last("$1"), subjects.READ, subjects.feed(subjects.ANY))
    imports = [
        {**export, "account": store} | ({} if local == export["subject"] else {"local_subject": local})
        for export, local in zip(_EXPORTS, imported, strict=True)
    ]
    for one in imports:
        one.pop("response_type", None)
    return claims.account_claims(imports=imports, signing_keys=keys, revocations=dict(tenant.revoked))


def _make_tenant(name: str) -> Tenant:
    account, store, host, client = (claims.make_seed(claims.ACCOUNT) for _ in range(4))
    return Tenant(name, account, store, host, client, {})
