"""Where the server listens: a Unix socket of the user's own, an address, or sockets that the service manager opened."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import shlex
import signal
import socket
import ssl
import stat
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tmuxctl.errors import Conflict, Denied, Failed, Usage
from tmuxctl.state_files import make_private_folder
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import read_file
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.surfaces.server.admission.guard import RequestGuard


HEAD_BYTES = 1 << 16

MESSAGE_BYTES = 1 << 20
"""Bytes of a WebSocket message at most."""

CERTIFICATE_BYTES = 1 << 20
"""Bytes of a certificate with those above it, at most."""

BACKLOG = 512
FIRST_PASSED = 3
"""The first descriptor that a service manager passes (sd_listen_fds(3))."""


class Address(Value):
    """An address to listen at: host and port."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Encryption(Value):
    """The files of a certificate and its key."""

    certificate: str
    key: str


def check_encryption(encryption: Encryption) -> None:
    """Usage `bad_certificate` for files that no TLS can be had with."""
    certificate, key = encryption.certificate, encryption.key
    for path, wanted, what in (
        (certificate, b"-----BEGIN CERTIFICATE-----", "certificate"),
        (key, b"PRIVATE KEY-----", "key of a certificate"),
    ):
        if wanted not in _read_certificate(path):
            hint = f"it has to be in PEM format, with a line that has {wanted.decode()}"
            raise Usage(f"{path} holds no {what}", reason="bad_certificate", hint=hint)

    def refuse_password() -> str:
        # OpenSSL would ask for it on the terminal
        hint = f"write it without one: openssl pkey -in {shlex.quote(key)} -out NEW, and --tls-key NEW"
        raise Usage(f"{key} has a password", reason="bad_certificate", hint=hint)

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            hint = f"openssl pkey -pubout -in {shlex.quote(key)} has to print what "
            hint += f"openssl x509 -noout -pubkey -in {shlex.quote(certificate)} prints"
            raise Usage(f"{key} is not the key of {certificate}", reason="bad_certificate", hint=hint) from None
        why = (error.reason or str(error)).replace("_", " ").lower()
        hint = f"try openssl x509 -noout -text -in {shlex.quote(certificate)}"
        raise Usage(f"{certificate} with {key}: {why}", reason="bad_certificate", hint=hint) from None


def _read_certificate(path: str) -> bytes:
    try:
        # what renews certificates puts links there
        return read_file(path, CERTIFICATE_BYTES, follow=True)
    except OSError as error:
        hint = f"look at it: ls -ld {shlex.quote(path)}"
        raise Usage(f"{path}: {error.strerror}", reason="bad_certificate", hint=hint) from None


def runtime_folder() -> str:
    """The folder of sockets: `$XDG_RUNTIME_DIR/tmuxctl`, else `/tmp/tmuxctl-UID`; made, and Denied where it is not ours."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    path = os.path.join(runtime, "tmuxctl") if runtime.startswith("/") else f"/tmp/tmuxctl-{os.getuid()}"
    try:
        make_private_folder(path)
    except OSError as error:
        raise Denied(f"{path}: {error.strerror}", reason="bad_folder", hint="export XDG_RUNTIME_DIR=DIR") from None
    return path


def socket_path(tmux_socket: str) -> str:
    """Where the server for this tmux server listens."""
    return os.path.join(runtime_folder(), f"serve-{tmux_socket}.sock")


def open_unix_socket(path: str) -> socket.socket:
    """A listening socket that only we can open; Conflict `exists` where a server listens already, Denied for anything else
    that is in its place."""
    _remove_stale(path)
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        opened.bind(path)
    except OSError as error:
        opened.close()
        why = "the path is too long" if "too long" in str(error) else error.strerror or str(error)
        raise Failed(f"{path}: {why}", reason="bad_socket", hint="export XDG_RUNTIME_DIR=DIR, a shorter one") from None
    finally:
        os.umask(before)
    opened.listen(BACKLOG)
    return opened


def _remove_stale(path: str) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise Denied(f"{path} is not a socket of yours", reason="bad_socket", hint=f"look at it: ls -l {path}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(TIMING.http.probe_seconds)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            with suppress(FileNotFoundError):
                os.unlink(path)
            return
        except OSError as error:
            raise Failed(f"{path}: {error.strerror}", reason="bad_socket", hint="is its server stopped?") from None
    raise Conflict(f"a server listens on {path} already", reason="exists", hint="use it, or end it first")


def open_tcp_socket(address: Address) -> socket.socket:
    """A listening socket at an address; Conflict `address_in_use`, Failed for any other that cannot be had."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Failed(f"{address}: {error.strerror}", reason="bad_address", hint="--listen 127.0.0.1:8765") from None
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(where)
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            hint = "choose another port"
            raise Conflict(f"{address} is in use", reason="address_in_use", hint=hint) from None
        raise Failed(f"{address}: {error.strerror}", reason="bad_address", hint="--listen 127.0.0.1:8765") from None
    return opened


def passed_sockets() -> list[socket.socket]:
    """The sockets that a service manager opened for us (sd_listen_fds(3)); taken from the environment, so that no program of
    ours finds them there."""
    pid, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return []
    found = []
    for descriptor in range(FIRST_PASSED, FIRST_PASSED + min(int(count), 16)):
        os.set_inheritable(descriptor, False)
        found.append(socket.socket(fileno=descriptor))
    return found


def describe_socket(opened: socket.socket, encrypted: bool) -> str:
    """How a client reaches it."""
    name = opened.getsockname()
    if isinstance(name, str):
        return f"unix:{name}"
    return f"{'https' if encrypted else 'http'}://{Address(name[0], name[1])}"


class TimedProtocol(H11Protocol):
    """HTTP whose requests begin in time: uvicorn waits for the head of a request without end (slowloris)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as H11Protocol has it
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Wait for a head no more once there is one; for the next from its first byte on."""
        if self._late is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """A WebSocket has had its head."""
        self._stop_waiting()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """The request was answered, perhaps before all of it was read."""
        self._stop_waiting()
        super().on_response_complete()

    def _await_head(self) -> None:
        self._late = self.loop.call_later(TIMING.http.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        self.transport.close()


class StoppingServer(uvicorn.Server):
    """Ends what goes on without end, such as streams of events, once it is told to stop."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None], stopped: Callable[[], None]) -> None:
        super().__init__(config)
        self.tell_started, self.tell_stopped = started, stopped
        self.running_loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so. TLS is for addresses: who opens a Unix socket is on this machine, or reached it through ssh."""
        self.running_loop = asyncio.get_running_loop()
        local = [one for one in sockets or () if one.family == socket.AF_UNIX]
        await super().startup([one for one in sockets or () if one not in local])
        for one in local:
            self.servers.append(await self.running_loop.create_server(self._make_protocol, sock=one, backlog=BACKLOG))
        if not self.should_exit:
            self.tell_started()

    def _make_protocol(self) -> asyncio.Protocol:
        return TimedProtocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at the first signal, within `stop_seconds`. It is no failure: the signal is not raised again."""
        self.should_exit = True
        if self.running_loop is not None:
            with suppress(RuntimeError):
                self.running_loop.call_soon_threadsafe(self.tell_stopped)


def run_server(
    guard: RequestGuard,
    sockets: list[socket.socket],
    encryption: Encryption | None,
    started: Callable[[], None],
    stopped: Callable[[], None],
) -> None:
    """Serve on these sockets until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        guard,
        http=TimedProtocol,
        ws="websockets-sansio",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws_max_size=MESSAGE_BYTES,
        ws_per_message_deflate=False,
        timeout_keep_alive=TIMING.http.keep_alive_seconds,
        timeout_graceful_shutdown=TIMING.http.stop_seconds,
        ssl_certfile=encryption.certificate if encryption else None,
        ssl_keyfile=encryption.key if encryption else None,
    )
    server = StoppingServer(config, started, stopped)
    for number in (signal.SIGINT, signal.SIGTERM):
        # before uvicorn has its own handlers
        signal.signal(number, server.handle_exit)
    try:
        server.run(sockets)
    finally:
        # whoever presses Ctrl-C again finds a server that ends already
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stopped()
