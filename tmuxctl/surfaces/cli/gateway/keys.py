"""The commands of keys on a host: its own, and those of the clients that it lets in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from tmuxctl import config
from tmuxctl.errors import Conflict
from tmuxctl.operations import RIGHTS, set_up
from tmuxctl.results import AuthorizedHere, ClientUnpaired, OwnKey, PairedClient, PairedClients
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations, load_gateway, read_host_credentials
from tmuxctl.surfaces.cli.gateway.gateways import HostFile, Words

if TYPE_CHECKING:
    from tmuxctl.sealed.keys import StaticKeys


class GatewayKeyOperations(CommandLineOperations):
    """Operations of a host's keys."""

    @set_up(right="read", examples=("gateway key", "gateway key --json"))
    def gateway_key(self, *, credentials: HostFile = None) -> OwnKey:
        """Print the fingerprint of this user's key on this machine, by which its clients and hosts know it, and this host's id.

        There is one key for both. Where it was changed, the fingerprint of the old one is told too, and which clients may not
        know the new one yet.
        """
        load_gateway("carrier")
        from tmuxctl.sealed.keys import KeyFiles

        has_file = credentials is not None or config.load().serve_gateway is not None
        return _describe(KeyFiles().load(), read_host_credentials(credentials).id if has_file else None)

    @set_up(right="kill", examples=("gateway rotate-key",))
    def gateway_rotate_key(self) -> OwnKey:
        """Make a new key, which each client is told inside its channel when it calls next.

        The old key goes on being answered to until `tmuxctl gateway forget-key`. If the old key got known to others, this is not
        enough: they could tell clients a key of their own. Then forget the old one at once, and pair again.
        """
        load_gateway("carrier")
        from tmuxctl.sealed.keys import KeyFiles

        files = KeyFiles()
        if files.load().old is not None:
            hint = "first: tmuxctl gateway forget-key; who knows the old key: tmuxctl gateway clients"
            raise Conflict("there is an old key already", reason="exists", hint=hint)
        return _describe(files.rotate(), None)

    @set_up(right="kill", idempotent=True, examples=("gateway forget-key", "gateway forget-key --force"))
    def gateway_forget_key(
        self, *, force: Annotated[bool, "though clients that know only the old key have to pair again"] = False
    ) -> OwnKey:
        """Remove the old key: who knows only that is answered no more (`key_changed`), and who has it can do nothing with it."""
        load_gateway("carrier")
        from tmuxctl.sealed.keys import KeyFiles

        files = KeyFiles()
        found = _describe(files.load(), None)
        if found.untold and not force:
            hint = "wait until they have called, or have them pair again: --force"
            names = ", ".join(found.untold)
            raise Conflict(f"clients that may know only the old key: {names}", reason="untold", hint=hint)
        return _describe(files.forget_old(), None)

    @set_up(right="read", examples=("gateway clients", "gateway clients --json"))
    def gateway_clients(self) -> PairedClients:
        """List the clients that this host lets in: the fingerprints of their keys, what each may, and with which sessions."""
        load_gateway("carrier")
        from tmuxctl.sealed.keys import KeyFiles, fingerprint
        from tmuxctl.sealed.trust import AuthorizedClients

        files, clients = KeyFiles(), AuthorizedClients()
        keys = files.find()
        told = None if keys is None or keys.old is None else files.find_told()
        return PairedClients(
            clients.path,
            tuple(
                PairedClient(
                    one.name, fingerprint(one.key), one.rights, one.sessions, None if told is None else one.key in told
                )
                for one in clients.entries()
            ),
        )

    @set_up(
        right="kill",
        examples=("gateway authorize laptop UNhY4JhezH9gQYqvDMWrWH9CwlcKiECVqejMrND2VFw= --right read",),
    )
    def gateway_authorize(
        self,
        name: Annotated[str, "what the client is called in authorized_clients"],
        key: Annotated[str, "its public key, as `tmuxctl machine key` prints it there"],
        *,
        right: Annotated[Words, "what the client may: read, write, create, kill; default: all"] = (),
        only: Annotated[Words, "the sessions that are meant, as a pattern like 'build-*'; default: all"] = (),
        credentials: HostFile = None,
    ) -> AuthorizedHere:
        """Let a client in by its public key, on the host; print this host's id and key.

        `tmuxctl machine pair NAME --ssh DESTINATION` does so from the client. The key has to come by a way on which
        others cannot change it. What the same key had before is replaced.
        """
        own = read_host_credentials(credentials)
        from tmuxctl.sealed.keys import KeyFiles, fingerprint, key_text, parse_key
        from tmuxctl.sealed.trust import AuthorizedClient, AuthorizedClients

        client = AuthorizedClient(name, parse_key(key), right or RIGHTS, only or ("*",))
        keys = KeyFiles().load()
        AuthorizedClients().put(client)
        return AuthorizedHere(
            name, fingerprint(client.key), client.rights, client.sessions, own.id, key_text(keys.current.public)
        )

    @set_up(right="kill", examples=("gateway unpair laptop",))
    def gateway_unpair(
        self, name: Annotated[str, "the name of the client, as `gateway clients` lists it"]
    ) -> ClientUnpaired:
        """Let a client in no more. It is refused at once, and told nothing more of what it began."""
        load_gateway("carrier")
        from tmuxctl.sealed.keys import fingerprint
        from tmuxctl.sealed.trust import AuthorizedClients

        return ClientUnpaired(name, fingerprint(AuthorizedClients().remove(name).key))


def _describe(keys: StaticKeys, id: str | None) -> OwnKey:
    """What is told of keys; the clients that may know only the old one are looked up."""
    from tmuxctl.sealed.keys import KeyFiles, fingerprint, key_text
    from tmuxctl.sealed.trust import AuthorizedClients

    old = None if keys.old is None else fingerprint(keys.old.public)
    told = KeyFiles().find_told()
    untold = tuple(one.name for one in AuthorizedClients().entries() if one.key not in told) if old else ()
    return OwnKey(id, fingerprint(keys.current.public), key_text(keys.current.public), old, untold)
