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
from tmuxctl.state_files import make_private_folder, state_home, take_lock, write_record
from tmuxctl.untrusted import fits, parse_record, read_file
from tmuxctl.value import Value

FILE_LIMIT = 1 << 20

PORT, WEBSOCKET_PORT, MONITOR_PORT = 4222, 4223, 8222
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
}


class GatewaySettings(Value):
    """What a gateway's server is told: its random id, the address it listens at, the port for WebSocket at the same address,
    the port on loopback for monitoring, the names and addresses by which others reach it, and the operator's own certificate
    and key (PEM files), if it has some."""

    server: str
    host: str
    port: int
    websocket_port: int
    monitor_port: int
    names: tuple[str, ...]
    cert: str | None = None
    key: str | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        """How hosts and clients reach it."""
        return tuple(f"tls://{_bracketed(name)}:{self.port}" for name in self.names)

    @property
    def websocket_urls(self) -> tuple[str, ...]:
        """How browsers reach it."""
        return tuple(f"wss://{_bracketed(name)}:{self.websocket_port}" for name in self.names)


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
        return GatewaySettings(
            **{key.rstrip("!"): found[key.rstrip("!")] for key in _SHAPE} | {"names": tuple(found["names"])}
        )

    def write_settings(self, settings: GatewaySettings) -> None:
        """Keep what the server is told."""
        self.make_folder()
        about = {name: getattr(settings, name) for name in GatewaySettings._names}
        write_record(self.path("server-settings.json"), about | {"names": list(settings.names)}, durable=True)


def make_settings(
    files: GatewayFiles,
    listen: tuple[str, int] | None = None,
    *,
    names: tuple[str, ...] = (),
    websocket_port: int | None = None,
    monitor_port: int | None = None,
    cert: str | None = None,
    key: str | None = None,
) -> GatewaySettings:
    """The settings of last time with what is given now. Usage for what does not fit together."""
    try:
        kept: GatewaySettings | None = files.read_settings()
    except NotFound:
        kept = None
    if (cert is None) != (key is None):
        raise Usage("a certificate needs its key", reason="missing", hint="--cert FILE --key FILE")
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        hint = "a name or address by which others reach this machine, without a port"
        raise Usage(f"{ascii(wrong[0][:60])} is no name of a machine", reason="bad_name", hint=hint)
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
    )
    ports = (made.port, made.websocket_port, made.monitor_port)
    if len(set(ports)) != len(ports) or not all(1 <= one <= 65535 for one in ports):
        hint = "--listen HOST:PORT --websocket-port PORT --monitor-port PORT"
        raise Usage(
            f"three different ports are needed, not {', '.join(map(str, ports))}", reason="bad_address", hint=hint
        )
    return made


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


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name
