"""The commands of a gateway: its server, the hosts and clients that may connect, and whether all is well."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from tmuxctl.model import parse_address
from tmuxctl.operations import RIGHTS, TEXT, FileName, ValueKind, set_up
from tmuxctl.results import (
    Doctor,
    GatewayKey,
    GatewayMember,
    GatewayMembers,
    GatewayPairing,
    GatewayRemoved,
    GatewayStatus,
)
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations, load_gateway, read_host_credentials
from tmuxctl.surfaces.cli.printing.output import note, tell, write
from tmuxctl.vocabulary import GatewayRole

if TYPE_CHECKING:
    from tmuxctl.gateway.credentials import Credentials
    from tmuxctl.gateway.server.certificates import ServerCertificate
    from tmuxctl.gateway.server.members import Members
    from tmuxctl.gateway.server.settings import GatewayFiles

STANDARD_OUTPUT = "-"

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
    ) -> None:
        """Run a gateway until it is interrupted: nats-server, which carries what hosts and clients send each other.

        It is reached from everywhere by default, since that is what it is for: before TLS it says nothing, and it takes only the
        keys that `gateway add-host` and add-client made. Without --cert it has an authority of its own, whose certificate is
        part of the credentials. What is carried is encrypted between host and client; the gateway sees ids, sizes and times.

        The options are kept for the next start. It needs the extra `gateway`: pip install 'tmux-control-plane[gateway]'.
        """
        running, settings = load_gateway("server.running"), load_gateway("server.settings")
        files = settings.GatewayFiles()
        made = settings.make_settings(
            files,
            parse_address(listen) if listen else None,
            names=name,
            websocket_port=websocket_port,
            monitor_port=monitor_port,
            cert=cert,
            key=key,
        )

        def tell(_certificate: ServerCertificate) -> None:
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
        examples=("gateway add-host", "gateway add-host build-box --out build-box.json"),
    )
    def gateway_add_host(self, label: Label = None, *, out: KeyFile = None) -> GatewayKey:
        """Add a host: write the credentials file that is copied to it. No connection is cut.

        The key in it is kept nowhere else. A host may use its own subjects, and none of other hosts.
        """
        return self._give_key(lambda members: members.add(GatewayRole.HOST, label), out)

    @set_up(
        right="create",
        examples=("gateway add-client", "gateway add-client laptop --out -"),
    )
    def gateway_add_client(self, label: Label = None, *, out: KeyFile = None) -> GatewayKey:
        """Add a client: write the credentials file that is copied to it. No connection is cut.

        The key in it is kept nowhere else. A client may send requests to all hosts: each host decides what it carries out.
        """
        return self._give_key(lambda members: members.add(GatewayRole.CLIENT, label), out)

    @set_up(right="write", examples=("gateway rotate k5wq7hl2mzt3ybvn --out new.json",))
    def gateway_rotate(self, id: MemberId, *, out: KeyFile = None) -> GatewayKey:
        """Give a host or client a new key: write a new credentials file with the same id. The old key ends at once."""
        return self._give_key(lambda members: members.rotate(id), out)

    @set_up(right="kill", examples=("gateway remove k5wq7hl2mzt3ybvn",))
    def gateway_remove(self, id: MemberId) -> GatewayRemoved:
        """Remove a host or client. Its key ends at once, and so does its connection."""
        running, files = load_gateway("server.running"), self._files()
        with files.locked():
            gone = self._members(files).remove(id)
            loaded = running.reload(files)
        return GatewayRemoved(gone.id, gone.role, gone.label, loaded)

    @set_up(right="read", examples=("gateway ls", "gateway ls --json"))
    def gateway_ls(self) -> GatewayMembers:
        """List the hosts and clients that may connect: ids, labels, and since when."""
        files = self._files()
        files.read_settings()
        found = self._members(files).list_members()
        return GatewayMembers(tuple(GatewayMember(one.id, one.role, one.label, one.created) for one in found))

    @set_up(right="read", examples=("gateway status", "gateway status --json"))
    def gateway_status(self) -> GatewayStatus:
        """Print who is connected, by id, how much of the events is stored, and what the server needs of memory."""
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

        Server, files, certificate, clock and ports: each line that fails says what to do.
        """
        checks = load_gateway("server.checks")
        found: Doctor = (
            checks.examine_gateway(self._files()) if credentials is None else checks.examine_credentials(credentials)
        )
        return found

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
        """Make a key, write its credentials, and have the server take it. What could not be written lets nothing in."""
        running, files = load_gateway("server.running"), self._files()
        from tmuxctl.gateway.credentials import write_credentials

        with files.locked():
            kept = self._members(files).list_members()
            made = make(self._members(files))
            path = None if out == STANDARD_OUTPUT else out or f"gateway-{made.id}.json"
            written = False
            try:
                if path is not None:
                    write_credentials(path, made)
                    written = True
                loaded = running.reload(files)
            except BaseException:
                self._members(files).restore(kept)
                if path is not None and written:
                    with suppress(OSError):
                        os.unlink(path)
                raise
        text = made.to_text() if path is None else None
        return GatewayKey(made.id, made.role, None if path is None else os.path.abspath(path), loaded, text)

    def _files(self) -> GatewayFiles:
        found: GatewayFiles = load_gateway("server.settings").GatewayFiles()
        return found

    def _members(self, files: GatewayFiles) -> Members:
        found: Members = load_gateway("server.members").Members(files)
        return found
