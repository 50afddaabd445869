"""Further servers of a gateway: the nodes of its cluster, and leaf nodes. Each has a file that the first machine wrote, with its
certificates and all that it is to be told; the keys that sign stay on the first machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from tmuxctl.errors import Conflict, Failed, NotFound, Usage
from tmuxctl.gateway.credentials import is_url
from tmuxctl.gateway.server.authority.accounts import Accounts, TrustedAccounts
from tmuxctl.gateway.server.authority.certificates import (
    AUTHORITY,
    ROUTE,
    ROUTE_KEY,
    SERVER,
    SERVER_KEY,
    sign_certificate,
)
from tmuxctl.gateway.server.authority.claims import SignedUser, public_key
from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings, check_name
from tmuxctl.untrusted import FORMAT, fits, parse_record, read_file
from tmuxctl.value import Value, changed

KIND = "tmuxctl gateway node"
FILE_LIMIT = 16 << 20
NODE = "node.json"

_USER = {"seed!": str, "public!": str, "claims!": str}
_LEAF = {"account!": str, "urls!": [str], "user!": _USER, "observer!": _USER}
_SHAPE: Mapping[str, Any] = {
    "kind!": str,
    "name!": str,
    "port!": int,
    "websocket_port!": int,
    "nodes!": [str],
    "cluster_port!": int,
    "files!": dict,
    "operator!": str,
    "system!": str,
    "accounts!": dict,
    "leaf!": (dict, type(None)),
}


class LeafWay(Value):
    """How a leaf node reaches the cluster: the public key of the account of its tenant, where, and its two keys: with one it
    carries what its tenant sends, with the other it learns what is newly signed of accounts."""

    account: str
    urls: tuple[str, ...]
    user: SignedUser
    observer: SignedUser


class NodeFile(Value):
    """What a node is told. `files` are the contents of its certificates and keys, by their names in the gateway's folder."""

    name: str
    port: int
    websocket_port: int
    nodes: tuple[str, ...]
    cluster_port: int
    files: Mapping[str, str]
    trusted: TrustedAccounts
    leaf: LeafWay | None

    def __repr__(self) -> str:
        return f"NodeFile(name={self.name!r}, nodes={self.nodes!r})"

    def to_text(self) -> str:
        """The content of a node file."""
        about = {name: getattr(self, name) for name in NodeFile._names if name not in ("trusted", "leaf")}
        told = {name: getattr(self.trusted, name) for name in TrustedAccounts._names}
        leaf = None
        if self.leaf is not None:
            keys = {name: _user_to_json(getattr(self.leaf, name)) for name in ("user", "observer")}
            leaf = {"account": self.leaf.account, "urls": list(self.leaf.urls), **keys}
        value = {"format": FORMAT, "kind": KIND, **about, "nodes": list(self.nodes), **told, "leaf": leaf}
        return json.dumps(value, indent=1) + "\n"


def make_cluster_node(files: GatewayFiles, settings: GatewaySettings, name: str) -> NodeFile:
    """The file of another node of the cluster that these settings name. Raises as `sign_certificate`."""
    others = (settings.names[0], *(one for one in settings.nodes if one != name))
    about = _make_certificates(files, name, (ROUTE, ROUTE_KEY), node=True)
    made = _make_node(files, settings, name)
    return changed(made, nodes=others, files={**made.files, **about})


def make_leaf_node(files: GatewayFiles, settings: GatewaySettings, name: str, tenant: str) -> NodeFile:
    """The file of a leaf node, for the hosts and clients of a tenant. Usage `no_leaf_port`, NotFound `no_tenant`."""
    check_name(name)
    if not settings.leaf_port:
        hint = "start it with one, as `tmuxctl gateway up --leaf-port 7422`"
        raise Usage("the gateway has no port for leaf nodes", reason="no_leaf_port", hint=hint)
    accounts = Accounts(files)
    port = f":{settings.leaf_port}"
    urls = tuple(f"{url.rpartition(':')[0]}{port}" for url in settings.all_urls)
    account = public_key(accounts.find_tenant(tenant).account)
    way = LeafWay(account, urls, accounts.sign_leaf(tenant), accounts.sign_leaf_observer())
    return changed(_make_node(files, settings, name), leaf=way)


def take_node(files: GatewayFiles, path: str) -> NodeFile:
    """Have this machine be the node whose file this is: what it needs is written to the gateway's folder. Usage `bad_file`,
    Conflict `exists` where a gateway of its own is."""
    try:
        made = parse_node(read_file(path, FILE_LIMIT + 1, follow=True), path)
    except OSError as error:
        hint = "name the file that `tmuxctl gateway add-leaf`, or `up --cluster`, wrote"
        raise Usage(f"{ascii(path)}: {error.strerror}", reason="bad_file", hint=hint) from None
    with files.locked():
        if Accounts(files).exist:
            hint = f"move it away, if it is not needed any more: {files.folder}"
            raise Conflict("this machine has a gateway of its own", reason="exists", hint=hint)
        for name, text in made.files.items():
            files.replace(name, text.encode())
        files.replace(NODE, made.to_text().encode())
    return made


def find_node(files: GatewayFiles) -> NodeFile | None:
    """What this node was told, None on the gateway's first machine. Failed `bad_file` for a file that was changed."""
    path = files.path(NODE)
    try:
        return parse_node(read_file(path, FILE_LIMIT + 1), path)
    except FileNotFoundError:
        return None
    except (OSError, Usage):
        hint = "start it with the file that the gateway's first machine wrote: tmuxctl gateway up --node FILE"
        raise Failed(f"{path} was changed", reason="bad_file", hint=hint) from None


def find_trusted(files: GatewayFiles) -> TrustedAccounts:
    """What the server of this machine is told of accounts. NotFound `no_gateway`."""
    accounts = Accounts(files)
    if accounts.exist:
        return accounts.trusted()
    node = find_node(files)
    if node is None:
        raise NotFound("there is no gateway on this machine", reason="no_gateway", hint="start one: tmuxctl gateway up")
    return node.trusted


def parse_node(data: bytes | str, where: str) -> NodeFile:
    """What a node file says; Usage `bad_file` for anything else."""
    try:
        found = parse_record(data, where, limit=FILE_LIMIT)
        if not fits(found, _SHAPE) or found["kind"] != KIND:
            raise ValueError("a key is missing, or of another type")
        for name in (found["name"], *found["nodes"]):
            check_name(name)
        if not _all_text(found["files"]) or not set(found["files"]) <= {
            AUTHORITY,
            SERVER,
            SERVER_KEY,
            ROUTE,
            ROUTE_KEY,
        }:
            raise ValueError("files are not those of a node")
        if not _all_text(found["accounts"]):
            raise ValueError("accounts are no texts")
        trusted = TrustedAccounts(found["operator"], found["system"], found["accounts"])
        about = {name: found[name] for name in NodeFile._names if name not in ("trusted", "leaf")}
        about["nodes"] = tuple(found["nodes"])
        return NodeFile(**about, trusted=trusted, leaf=_parse_leaf(found["leaf"]))
    except (ValueError, Usage) as error:
        hint = "copy the file that `tmuxctl gateway add-leaf`, or `up --cluster`, wrote"
        raise Usage(f"{ascii(where)} is no file of a node: {error}", reason="bad_file", hint=hint) from None


def _parse_leaf(value: Any) -> LeafWay | None:
    if value is None:
        return None
    if not fits(value, _LEAF) or not value["urls"] or not all(map(is_url, value["urls"])):
        raise ValueError("leaf is not what the gateway wrote")
    user, observer = (
        SignedUser(**{name.rstrip("!"): value[key][name.rstrip("!")] for name in _USER}) for key in ("user", "observer")
    )
    return LeafWay(value["account"], tuple(value["urls"]), user, observer)


def _all_text(value: Mapping[Any, Any]) -> bool:
    return all(isinstance(one, str) for one in value.values())


def _make_node(files: GatewayFiles, settings: GatewaySettings, name: str) -> NodeFile:
    """The file of a node of its own, with the same ports."""
    ports = settings.port, settings.websocket_port
    about = _make_certificates(files, name, (SERVER, SERVER_KEY))
    return NodeFile(name, *ports, (), settings.cluster_port, about, Accounts(files).trusted(), None)


def _make_certificates(files: GatewayFiles, name: str, paths: tuple[str, str], *, node: bool = False) -> dict[str, str]:
    """The contents of the authority's certificate, and of a new one for a name with its key, by their names."""
    cert, key = sign_certificate(files, (name,), time.time(), node=node)
    authority = read_file(files.path(AUTHORITY), FILE_LIMIT)
    return {AUTHORITY: authority.decode(), paths[0]: cert.decode(), paths[1]: key.decode()}


def _user_to_json(user: SignedUser) -> dict[str, str]:
    return {"seed": user.seed, "public": user.public, "claims": user.claims}
