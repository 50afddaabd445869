"""What commands are made of: classes of operations, how an object of each is had for one command, and what an extra brings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tmuxctl import operations
from tmuxctl.errors import Failed, Usage
from tmuxctl.operations import Meta, invoke
from tmuxctl.surfaces.cli.printing.output import Options
from tmuxctl.value import Value
from tmuxctl.vocabulary import GatewayRole

if TYPE_CHECKING:
    from types import ModuleType

    import click

    from tmuxctl.gateway.credentials import Credentials

GATEWAY_EXTRA = ("cryptography", "nats", "nkeys", "nacl", "noise", "spake2")

GROUPS = ("Drive", "Look", "Sessions", "Teams", "Set up")


class Service(Value):
    """A class of operations, and how an object of it is had for one command."""

    operations: type
    connect: Callable[[Options], Any]


class Listed(Value):
    """An operation as it is typed, its name, and whose it is."""

    typed: str
    name: str
    service: Service

    @property
    def function(self) -> Any:
        """The method that is the operation."""
        return getattr(self.service.operations, self.name)

    @property
    def meta(self) -> Meta:
        """What the operation was declared with."""
        meta: Meta = self.function.__operation__
        return meta


def list_operations(services: Iterable[Service]) -> Iterator[Listed]:
    """Each operation of these classes."""
    for service in services:
        for name in operations.list_names(service.operations):
            yield Listed(getattr(service.operations, name).__operation__.spoken(name), name, service)


class CommandLineOperations:
    """Operations that only a command line has. `connect` gives the Control they need, if they need one; `app` is the group of
    all commands."""

    def __init__(self, connect: Callable[[Options], Any], options: Options, app: click.Group) -> None:
        self.connect = connect
        self.options = options
        self.app = app

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """As `Control.call`."""
        return invoke(self, name, arguments)

    def close(self) -> None:
        """Nothing is kept open."""


def load_gateway(name: str) -> ModuleType:
    """A module of `tmuxctl.gateway`; Failed `no_gateway_extra` where the extra is not installed."""
    from importlib import import_module

    try:
        return import_module(f"tmuxctl.gateway.{name}")
    except ModuleNotFoundError as error:
        # the one-file form has none
        missing = error.name or ""
        if missing.partition(".")[0] not in GATEWAY_EXTRA and not missing.startswith(
            ("tmuxctl.gateway", "tmuxctl.sealed")
        ):
            raise
        hint = "install the extra: pip install 'tmux-control-plane[gateway]'"
        raise Failed("what the gateway needs is not installed", reason="no_gateway_extra", hint=hint) from None


def read_host_credentials(path: str | None) -> Credentials:
    """The credentials of this host: those in the file, by default in that of the setting serve.gateway. Usage `missing` for none,
    `bad_credentials` for those of a client; the rest as of `gateway.credentials.read_credentials`."""
    from tmuxctl import config

    carrier, credentials = load_gateway("carrier"), load_gateway("credentials")
    path = path or config.load().serve_gateway
    if path is None:
        hint = "the file that `tmuxctl gateway add-host` wrote: --credentials FILE, or: tmuxctl config set serve.gateway FILE"
        raise Usage("there are no credentials of a host", reason="missing", hint=hint)
    found: Credentials = carrier.check_role(credentials.read_credentials(path), GatewayRole.HOST, path)
    return found
