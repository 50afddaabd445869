"""The commands of a gateway: its server, the hosts and clients that may connect, and whether all is well."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from tmuxctl.errors import Conflict, Failed, TmuxctlError, Usage
from tmuxctl.model import parse_address
from tmuxctl.operations import RIGHTS, TEXT, FileName, ValueKind, set_up
from tmuxctl.results import (
    Check,
    Doctor,
    GatewayKey,
    GatewayLeaf,
    GatewayMember,
    GatewayMembers,
    GatewayPairing,
    GatewayRemoved,
    GatewayStatus,
    GatewayTenant,
)
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations, load_gateway, read_host_credentials
from tmuxctl.surfaces.cli.printing.output import note, tell, write
from tmuxctl.vocabulary import GatewayRole

if TYPE_CHECKING:
    from tmuxctl.gateway.credentials import Credentials
    from tmuxctl.gateway.server.authority.certificates import ServerCertificate
    from tmuxctl.gateway.server.authority.members import Members
    from tmuxctl.gateway.server.nodes import NodeFile
    from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings
    from tmuxctl.gateway.spool import SpoolFiles

STANDARD_OUTPUT = "-"
DEFAULT_TENANT = "main"

MemberId = Annotated[
    str, ValueKind("id", TEXT.schema, TEXT.parse), "the id of the host or client, as `gateway ls` lists it"
]
Label = Annotated[str | None, "a label for it in `gateway ls`; it is kept on this machine alone"]
KeyFile = Annotated[FileName | None, "write the credentials here; - prints them; default: gateway-ID.json"]
HostFile = Annotated[FileName | None, "this host's credentials (default: serve.gateway)"]
Words = Annotated[
    tuple[str, ...],
    ValueKind("text", {"type": "array", "items": {"type": "string"}}, lambda value: tuple(value)),
]

TenantName = Annotated[
    str | None,
    ValueKind("name", TEXT.schema, TEXT.parse),
    "the tenant that it belongs to; default: main, the first one",
]
MemberNodes = Annotated[
    Words, "a node by which it connects, if not those of the cluster: that of a leaf node, by its name"
]


class GatewayOperations(CommandLineOperations):
    """Operations of a gateway, through which machines are reached that no connection can be opened to."""

    @set_up(
        right="kill",
        examples=("gateway up", "gateway up --name gateway.example.org"),
    )
    def gateway_up(
        self,
        *,
        listen: Annotated[
            str | None, "listen at this address: HOST:PORT; default: as last time, at first 0.0.0.0:4222"
        ] = None,
        name: Annotated[
            Words,
            "a name or address by which others reach this machine; it is put into the certificate and the credentials",
        ] = (),
        websocket_port: Annotated[
            int | None, "the port for WebSocket at the same address; default: the one after that of --listen"
        ] = None,
        monitor_port: Annotated[
            int | None, "the port on loopback at which the server tells of itself; default: 8222"
        ] = None,
        cert: Annotated[FileName | None, "your own certificate (PEM), which hosts and clients trust anyway"] = None,
        key: Annotated[FileName | None, "its key (PEM)"] = None,
        cluster: Annotated[
            Words,
            "another node of the same gateway, by the name at which it is reached; two or four, kept for the next start",
        ] = (),
        cluster_port: Annotated[int | None, "the port at which nodes reach each other; default: 6222"] = None,
        leaf_port: Annotated[int | None, "the port for leaf nodes, as 7422; default: none, 0 closes it again"] = None,
        node: Annotated[
            FileName | None, "be the node, or leaf node, whose file this is; the first machine of the gateway wrote it"
        ] = None,
    ) -> None:
        """Run a gateway until it is interrupted: nats-server, which carries what hosts and clients send each other.

        It is reached from everywhere by default, since that is what it is for: before TLS it says nothing, and it takes only the
        keys that `gateway add-host` and add-client made. Without --cert it has an authority of its own, whose certificate is
        part of the credentials. What is carried is encrypted between host and client; the gateway sees ids, sizes and times.

        With --cluster it is one of three or five nodes, and goes on while a majority of them runs. It writes a file for each other
        node, gateway-node-NAME.json, which is copied there and named once: `tmuxctl gateway up --node FILE`. Hosts and clients
        are added and removed on the first machine alone.

        The options are kept for the next start. It needs the extra `gateway`: pip install 'tmux-control-plane[gateway]'.
        """
        running, settings, nodes = (load_gateway(f"server.{one}") for one in ("running", "settings", "nodes"))
        files = settings.GatewayFiles()
        if node and (name or cluster or websocket_port is not None or cluster_port is not None):
            raise Usage(
                "the file of a node says its name, its ports and the other nodes",
                reason="conflicting",
                hint="give --node without --name, --websocket-port, --cluster and --cluster-port",
            )
        told: NodeFile | None = nodes.take_node(files, node) if node else None
        made = settings.make_settings(
            files,
            parse_address(listen) if listen else ("0.0.0.0", told.port) if told else None,
            names=(told.name,) if told else name,
            websocket_port=told.websocket_port if told else websocket_port,
            monitor_port=monitor_port,
            cert=cert,
            key=key,
            nodes=told.nodes if told else cluster,
            cluster_port=told.cluster_port if told else cluster_port,
            leaf_port=leaf_port,
        )

        def tell(_certificate: ServerCertificate) -> None:
            for one in cluster:
                self._write_node(files, made, one)
            if self.options.json:
                import json

                write(json.dumps({"listening": [*made.urls, *made.websocket_urls]}) + "\n")
            else:
                write("".join(f"listening on {url}\n" for url in (*made.urls, *made.websocket_urls)))
            note("add a host and a client: tmuxctl gateway add-host, tmuxctl gateway add-client", self.options)
            sys.stdout.flush()
            sys.stderr.flush()

        running.start(files, made, tell)

    @set_up(
        right="create",
        examples=(
            "gateway add-leaf gateway.site.example.org",
            "gateway add-leaf 10.0.8.2 --tenant lab --out leaf.json",
        ),
    )
    def gateway_add_leaf(
        self,
        name: Annotated[str, "the name or address by which hosts and clients of its site reach it"],
        *,
        tenant: TenantName = None,
        out: Annotated[FileName | None, "write its file here; - prints it; default: gateway-leaf-NAME.json"] = None,
    ) -> GatewayLeaf:
        """Add a leaf node: write the file with which it is started, `tmuxctl gateway up --node FILE`.

        It is the gateway's server of a site: hosts and clients there connect to it (`add-host --node NAME`), and reach each other
        while the way to the gateway is cut. It serves one tenant. Events are kept by the gateway alone: hosts keep theirs until it
        is there again. The gateway needs a port for it: `tmuxctl gateway up --leaf-port 7422`.
        """
        nodes, files = load_gateway("server.nodes"), self._files()
        made: NodeFile = nodes.make_leaf_node(files, files.read_settings(), name, tenant or DEFAULT_TENANT)
        path = None if out == STANDARD_OUTPUT else out or f"gateway-leaf-{name}.json"
        if path is not None:
            _write_key_file(path, made.to_text())
        text = made.to_text() if path is None else None
        return GatewayLeaf(name, tenant or DEFAULT_TENANT, None if path is None else os.path.abspath(path), text)

    @set_up(right="create", examples=("gateway add-tenant lab",))
    def gateway_add_tenant(self, name: Annotated[str, "what it is called: letters, digits and -"]) -> GatewayTenant:
        """Add a tenant: hosts and clients that know nothing of those of others, and events of their own.

        `tmuxctl gateway add-host --tenant NAME` and add-client add to it. The first tenant is called main.
        """
        administration, files = load_gateway("server.administration"), self._files()
        with files.locked():
            members = self._members(files)
            members.check_own()
            members.accounts.add_tenant(name)
        return GatewayTenant(name, administration.make_tenants(files))

    @set_up(
        right="create",
        examples=("gateway add-host", "gateway add-host build-box --out build-box.json"),
    )
    def gateway_add_host(
        self, label: Label = None, *, out: KeyFile = None, tenant: TenantName = None, node: MemberNodes = ()
    ) -> GatewayKey:
        """Add a host: write the credentials file that is copied to it. No connection is cut.

        The key in it is kept nowhere else. A host may use its own subjects, and none of other hosts.
        """
        return self._give_key(lambda members: members.add(GatewayRole.HOST, label, tenant, node), out)

    @set_up(
        right="create",
        examples=("gateway add-client", "gateway add-client laptop --out -"),
    )
    def gateway_add_client(
        self, label: Label = None, *, out: KeyFile = None, tenant: TenantName = None, node: MemberNodes = ()
    ) -> GatewayKey:
        """Add a client: write the credentials file that is copied to it. No connection is cut.

        The key in it is kept nowhere else. A client may send requests to all hosts: each host decides what it carries out.
        """
        return self._give_key(lambda members: members.add(GatewayRole.CLIENT, label, tenant, node), out)

    @set_up(right="write", examples=("gateway rotate k5wq7hl2mzt3ybvn --out new.json",))
    def gateway_rotate(self, id: MemberId, *, out: KeyFile = None, node: MemberNodes = ()) -> GatewayKey:
        """Give a host or client a new key: write a new credentials file with the same id. The old key ends at once."""
        return self._give_key(lambda members: members.rotate(id, node), out)

    @set_up(right="kill", examples=("gateway remove k5wq7hl2mzt3ybvn",))
    def gateway_remove(self, id: MemberId) -> GatewayRemoved:
        """Remove a host or client. Its key ends at once, and so does its connection."""
        administration, files = load_gateway("server.administration"), self._files()
        with files.locked():
            gone = self._members(files).remove(id)
            loaded = administration.tell_accounts(files)
        return GatewayRemoved(gone.id, gone.role, gone.label, loaded)

    @set_up(right="read", examples=("gateway ls", "gateway ls --json"))
    def gateway_ls(self) -> GatewayMembers:
        """List the hosts and clients that may connect: ids, labels, and since when."""
        files = self._files()
        files.read_settings()
        found = self._members(files).list_members()
        return GatewayMembers(
            tuple(GatewayMember(one.id, one.role, one.label, one.created, one.tenant) for one in found)
        )

    @set_up(right="read", examples=("gateway status", "gateway status --json"))
    def gateway_status(self) -> GatewayStatus:
        """Print who is connected, by id, how much of the events is stored, and what the server needs of memory.

        On the first machine of a cluster also which nodes run, which leads, and how far the copies of the events are behind.
        """
        found: GatewayStatus = load_gateway("server.status").look(self._files())
        return found

    @set_up(right="read", examples=("gateway doctor", "gateway doctor --credentials gateway.json"))
    def gateway_doctor(
        self,
        *,
        credentials: Annotated[
            FileName | None, "check how a host or client reaches its gateway from here, by this file of credentials"
        ] = None,
    ) -> Doctor:
        """Check the gateway of this machine, or with --credentials the way of a host or client to it.

        Server, files, certificate, clock and ports, and on a host how many events wait to be stored: each line that fails says what
        to do.
        """
        checks = load_gateway("server.checks")
        if credentials is None:
            found: Doctor = checks.examine_gateway(self._files())
            return found
        found = checks.examine_credentials(credentials)
        waiting = _count_waiting(credentials)
        if waiting is None:
            return found
        hint = "they are stored once the gateway is reached, and a majority of its nodes runs"
        spool = Check("events", None if waiting else True, f"{waiting} wait to be stored", hint if waiting else None)
        return Doctor(found.ok, (*found.checks, spool))

    @set_up(
        right="kill",
        examples=(
            "gateway pair laptop --credentials host.json",
            "gateway pair ci --credentials host.json --right read --only 'build-*'",
        ),
    )
    def gateway_pair(
        self,
        name: Annotated[str, "what the client is called in authorized_clients"],
        *,
        credentials: HostFile = None,
        right: Annotated[Words, "what the client may: read, write, create, kill; default: all"] = (),
        only: Annotated[Words, "the sessions that are meant, as a pattern like 'build-*'; default: all"] = (),
        client: Annotated[
            str | None, "the id of the client at the gateway, as it has it: no other can use the code, or use it up"
        ] = None,
    ) -> GatewayPairing:
        """Let one client in, on the host: print a code, and wait until the client has used it.

        On the client `tmuxctl machine pair NAME ID` asks for the code. Both then know the other's key, and the gateway learns
        neither the code nor a key. A code is good for one attempt, within five minutes. A client that may write to a shell may do
        all that you may. The line of a client in authorized_clients says what it may; `tmuxctl gateway unpair` takes it out, and
        the client is refused at once. One client at a time can be let in.
        """
        pairing, own = load_gateway("pairing"), read_host_credentials(credentials)
        from tmuxctl.sealed.keys import fingerprint

        def show(code: str) -> None:
            tell(f"code: {code}\non the client: tmuxctl machine pair NAME {own.id}")

        def tell_use(user: str) -> None:
            tell(f"client {user} uses the code, which is good for no other attempt")

        let_in = pairing.let_client_in(own, name, right or RIGHTS, only or ("*",), show, client=client, used=tell_use)
        return GatewayPairing(let_in.name, None, fingerprint(let_in.key), let_in.rights, let_in.sessions)

    def _give_key(self, make: Callable[[Members], Credentials], out: str | None) -> GatewayKey:
        """Make a key, write its credentials, and have the servers know which one ended. What cannot be written changes nothing."""
        administration, files = load_gateway("server.administration"), self._files()
        with files.locked():
            members = self._members(files)
            with members.unchanged_by_errors():
                made = make(members)
                path = None if out == STANDARD_OUTPUT else out or f"gateway-{made.id}.json"
                if path is not None:
                    _write_key_file(path, made.to_text())
            loaded = administration.tell_accounts(files)
        text = made.to_text() if path is None else None
        return GatewayKey(made.id, made.role, None if path is None else os.path.abspath(path), loaded, text)

    def _write_node(self, files: GatewayFiles, settings: GatewaySettings, name: str) -> None:
        """Write the file of another node of the cluster, unless it is there."""
        nodes, path = load_gateway("server.nodes"), f"gateway-node-{name}.json"
        if os.path.lexists(path):
            return
        _write_key_file(path, nodes.make_cluster_node(files, settings, name).to_text())
        note(f"copy {path} to {name}, then there: tmuxctl gateway up --node {path}", self.options)

    def _files(self) -> GatewayFiles:
        found: GatewayFiles = load_gateway("server.settings").GatewayFiles()
        return found

    def _members(self, files: GatewayFiles) -> Members:
        found: Members = load_gateway("server.authority.members").Members(files)
        return found


def _count_waiting(credentials: str) -> int | None:
    """How many events of a host wait to be stored; None for a client, and for a file that cannot be read."""
    from tmuxctl.gateway.credentials import read_credentials

    try:
        own = read_credentials(credentials)
        folder = load_gateway("events.recording").spool_folder(own.id)
        if own.role is not GatewayRole.HOST or not os.path.isdir(folder):
            return None
        files: SpoolFiles = load_gateway("spool").SpoolFiles(folder)
        return files.newest - files.confirmed
    except (TmuxctlError, OSError):
        return None


def _write_key_file(path: str, text: str) -> None:
    """Write a new file that only this user can read. Conflict `exists`; Failed `bad_file` where it cannot be written."""
    from tmuxctl.state_files import make_private_file

    try:
        make_private_file(path, text.encode())
    except FileExistsError:
        raise Conflict(f"{ascii(path)} is there already", reason="exists", hint="name another: --out FILE") from None
    except OSError as error:
        hint = "name a file you may write: --out FILE"
        raise Failed(f"{ascii(path)}: {error.strerror}", reason="bad_file", hint=hint) from None
