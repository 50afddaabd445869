"""What `gateway up` was told, and where the files of a gateway are: a private folder in the state folder."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tmuxctl.errors import Conflict, NotFound, Usage
from tmuxctl.gateway.subjects import make_id
from tmuxctl.ownership import make_parents
from tmuxctl.state_files import make_private_file, make_private_folder, state_home, take_lock, write_record
from tmuxctl.untrusted import fits, parse_record, read_file
from tmuxctl.value import Value

FILE_LIMIT = 1 << 20

PORT, WEBSOCKET_PORT, MONITOR_PORT, CLUSTER_PORT, LEAF_PORT = 4222, 4223, 8222, 6222, 7422
MOST_NODES = 7
LISTEN = f"0.0.0.0:{PORT}"

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9a-f:.]{2,45}")
_SHAPE = {
    "server!": str,
    "host!": str,
    "port!": int,
    "websocket_port!": int,
    "monitor_port!": int,
    "names!": [str],
    "cert!": (str, type(None)),
    "key!": (str, type(None)),
    "nodes": [str],
    "cluster_port": int,
    "leaf_port": int,
}


class GatewaySettings(Value):
    """What a gateway's server is told: a random id, the address it listens at, the port for WebSocket at the same address,
    the port on loopback for monitoring, the names and addresses by which others reach it, the operator's own certificate
    and key (PEM files), if it has some, the names of the other nodes of its cluster, all of which have the same ports, the port for
    them, and the one for leaf nodes (0: it takes none)."""

    server: str
    host: str
    port: int
    websocket_port: int
    monitor_port: int
    names: tuple[str, ...]
    cert: str | None = None
    key: str | None = None
    nodes: tuple[str, ...] = ()
    cluster_port: int = CLUSTER_PORT
    leaf_port: int = 0

    @property
    def urls(self) -> tuple[str, ...]:
        """How hosts and clients reach it."""
        return tuple(_url("tls", name, self.port) for name in self.names)

    @property
    def all_urls(self) -> tuple[str, ...]:
        """How hosts and clients reach it, and the other nodes of its cluster."""
        return (*self.urls[:2], *(_url("tls", name, self.port) for name in self.nodes)) if self.nodes else self.urls

    @property
    def replicas(self) -> int:
        """On how many nodes each event is stored: three of a cluster, however many it has."""
        return 3 if self.nodes else 1

    @property
    def server_name(self) -> str:
        """What it is called among servers. Nodes know each other by it, so it is the same after a restart."""
        return self.names[0] if self.nodes else self.server

    @property
    def own_address(self) -> str:
        """How it is reached from its own machine, as a URL."""
        return _url("tls", {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host), self.port)

    def urls_of(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        """How hosts and clients reach other nodes, which have the same port. Usage `bad_name`."""
        for name in nodes:
            check_name(name)
        return tuple(_url("tls", name, self.port) for name in nodes)

    @property
    def route_urls(self) -> tuple[str, ...]:
        """How the other nodes of its cluster are reached by it."""
        return tuple(_url("tls", name, self.cluster_port) for name in self.nodes)

    @property
    def websocket_urls(self) -> tuple[str, ...]:
        """How browsers reach it."""
        return tuple(_url("wss", name, self.websocket_port) for name in self.names)


class GatewayFiles:
    """The files of this user's gateway. `folder` is made by the first method that writes."""

    def __init__(self) -> None:
        self.folder = os.path.join(state_home(), "tmuxctl", "gateway")

    def path(self, name: str) -> str:
        """The path of a file in the folder."""
        return os.path.join(self.folder, name)

    def make_folder(self) -> None:
        """Make the folder, private to this user; Denied `bad_mode`, `bad_owner` for one that is not."""
        make_parents(self.folder)
        make_private_folder(self.folder)

    def replace(self, name: str, data: bytes) -> str:
        """Put a private file in the place of another in the folder, whole; its path."""
        made = self.path(f".{name}.new")
        with suppress(FileNotFoundError):
            os.unlink(made)
        make_private_file(made, data)
        os.rename(made, self.path(name))
        return self.path(name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other process changes the members or certificates, while this holds; Conflict `busy`."""
        self.make_folder()
        handle = os.open(self.path("members.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            busy = Conflict("another process changes the gateway", reason="busy", hint="try again")
            take_lock(handle, 5.0, lambda: busy)
            yield
        finally:
            os.close(handle)

    def read_settings(self) -> GatewaySettings:
        """What `gateway up` was told last. NotFound `no_gateway` where it never was; Usage `bad_file`."""
        path = self.path("server-settings.json")
        try:
            found = parse_record(read_file(path, FILE_LIMIT), path, limit=FILE_LIMIT)
        except FileNotFoundError:
            raise NotFound(
                "there is no gateway on this machine",
                reason="no_gateway",
                hint="start one: tmuxctl gateway up; on a host or client: tmuxctl gateway doctor --credentials FILE",
            ) from None
        except (OSError, ValueError):
            found = {}
        if not fits(found, _SHAPE):
            hint = "move it away, and start the gateway again: tmuxctl gateway up"
            raise Usage(f"{path} was changed", reason="bad_file", hint=hint)
        known = {name: found[name] for name in GatewaySettings._names if name in found}
        return GatewaySettings(**known | {name: tuple(found.get(name, ())) for name in ("names", "nodes")})

    def write_settings(self, settings: GatewaySettings) -> None:
        """Keep what the server is told."""
        self.make_folder()
        about = {name: getattr(settings, name) for name in GatewaySettings._names}
        lists = {name: list(about[name]) for name in ("names", "nodes")}
        write_record(self.path("server-settings.json"), about | lists, durable=True)


def make_settings(
    files: GatewayFiles,
    listen: tuple[str, int] | None = None,
    *,
    names: tuple[str, ...] = (),
    websocket_port: int | None = None,
    monitor_port: int | None = None,
    cert: str | None = None,
    key: str | None = None,
    nodes: tuple[str, ...] = (),
    cluster_port: int | None = None,
    leaf_port: int | None = None,
) -> GatewaySettings:
    """The settings of last time with what is given now. Usage for what does not fit together."""
    try:
        kept: GatewaySettings | None = files.read_settings()
    except NotFound:
        kept = None
    if (cert is None) != (key is None):
        raise Usage("a certificate needs its key", reason="missing", hint="--cert FILE --key FILE")
    for name in (*names, *nodes):
        check_name(name)
    if nodes and (len(nodes) % 2 or len(nodes) >= MOST_NODES):
        hint = "a majority of them has to run, so three or five, with this one: --cluster NAME --cluster NAME"
        raise Usage(f"a cluster has an odd number of nodes, not {len(nodes) + 1}", reason="bad_cluster", hint=hint)
    host, port = listen or ((kept.host, kept.port) if kept else ("0.0.0.0", PORT))
    moved = kept is None or listen is not None
    made = GatewaySettings(
        kept.server if kept else make_id(),
        host,
        port,
        websocket_port or (port + 1 if moved or kept is None else kept.websocket_port),
        monitor_port or (kept.monitor_port if kept else MONITOR_PORT),
        names or (_own_names(host) if moved or kept is None else kept.names),
        os.path.abspath(cert) if cert else kept.cert if kept else None,
        os.path.abspath(key) if key else kept.key if kept else None,
        nodes or (kept.nodes if kept else ()),
        cluster_port or (kept.cluster_port if kept else CLUSTER_PORT),
        leaf_port if leaf_port is not None else kept.leaf_port if kept else 0,
    )
    ports = [made.port, made.websocket_port, made.monitor_port]
    ports += [made.cluster_port] if made.nodes else []
    ports += [made.leaf_port] if made.leaf_port else []
    if len(set(ports)) != len(ports) or not all(1 <= one <= 65535 for one in ports):
        hint = "--listen HOST:PORT --websocket-port PORT --monitor-port PORT --cluster-port PORT --leaf-port PORT"
        raise Usage(f"each needs a port of its own, not {', '.join(map(str, ports))}", reason="bad_address", hint=hint)
    return made


def check_name(name: str) -> None:
    """Usage `bad_name` for what is no name or address of a machine."""
    if not _NAME.fullmatch(name):
        hint = "a name or address by which others reach the machine, without a port"
        raise Usage(f"{ascii(name[:60])} is no name of a machine", reason="bad_name", hint=hint)


def _own_names(host: str) -> tuple[str, ...]:
    """The names by which others reach a server that listens at this address."""
    if host not in ("0.0.0.0", "::"):
        return (host,)
    found = [socket.getfqdn(), socket.gethostname()]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # which address leads outward: nothing is sent (TEST-NET-1, RFC 5737)
        probe.connect(("192.0.2.1", 9))
        found.append(probe.getsockname()[0])
    usable = [name for name in dict.fromkeys(found) if _NAME.fullmatch(name) and not name.startswith("localhost")]
    return tuple(usable[:4]) or ("localhost",)


def _url(scheme: str, name: str, port: int) -> str:
    return f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"
