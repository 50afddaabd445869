"""The server as a whole: settings, sockets, the application, and its end."""

from __future__ import annotations

import contextvars
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tmuxctl import config
from tmuxctl.control import Control
from tmuxctl.errors import Denied
from tmuxctl.surfaces.server import listening
from tmuxctl.surfaces.server.admission.guard import AdmissionRules
from tmuxctl.surfaces.server.admission.tokens import TokenFiles
from tmuxctl.surfaces.server.app import Part, make_server
from tmuxctl.surfaces.server.calls import NO_DEFAULTS, NewDefaults
from tmuxctl.surfaces.server.listening import Address, Encryption
from tmuxctl.surfaces.server.logs import RequestLog, standard_error
from tmuxctl.value import Value


class ServeOptions(Value):
    """What `tmuxctl serve` was told."""

    socket: str | None = None
    address: Address | None = None
    encryption: Encryption | None = None
    no_token: bool = False
    insecure: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    log: bool = False
    parts: tuple[Part, ...] = ()
    defaults: NewDefaults = NO_DEFAULTS


def serve(options: ServeOptions, started: Callable[[list[str]], None]) -> None:
    """Serve until SIGINT or SIGTERM. `started` is called with the addresses once they are listened at. No session ends with the
    server."""
    check_exposure(options)
    tokens = None if options.no_token else TokenFiles()
    if options.address and tokens:
        tokens.read_first()
    settings = config.load({"tmux.socket": options.socket})
    path = listening.socket_path(settings.tmux_socket)
    opened, own = _open_sockets(options, path)
    encrypted = options.encryption is not None
    hosts = tuple(host.lower() for host in (*options.hosts, *([options.address.host] if options.address else ())))
    rules = AdmissionRules(tokens, hosts, options.origins, encrypted)
    told = [listening.describe_socket(one, encrypted) for one in opened]
    try:
        with Control(settings=settings, resident=True) as control:
            log = RequestLog(standard_error()) if options.log else None
            guard = make_server(control, rules, log=log, parts=options.parts, defaults=options.defaults)
            run = partial(listening.run_server, guard, opened, options.encryption, lambda: started(told), guard.stop)
            # a context of its own: the command that serves takes its own result in pieces, and a caller takes each whole
            contextvars.Context().run(run)
    finally:
        if own:
            with suppress(FileNotFoundError):
                os.unlink(path)


def check_exposure(options: ServeOptions) -> None:
    """Denied for what would let strangers in: an address that others reach, without a token or without encryption."""
    address = options.address
    if address is None or address.loopback:
        return
    if options.no_token:
        hint = "leave --no-token out"
        raise Denied(f"without a token anybody who reaches {address} could run programs", reason="exposed", hint=hint)
    if options.encryption is None and not options.insecure:
        raise Denied(
            f"what is sent to {address} could be read on its way, the token too",
            reason="exposed",
            hint="give --tls-cert FILE and --tls-key FILE, or --insecure behind a proxy that encrypts",
        )


def _open_sockets(options: ServeOptions, path: str) -> tuple[list[socket.socket], bool]:
    """The sockets to listen on, and whether the Unix socket is ours to remove."""
    passed = listening.passed_sockets()
    if passed:
        return passed, False
    opened = [listening.open_unix_socket(path)]
    if options.address:
        try:
            opened.append(listening.open_tcp_socket(options.address))
        except BaseException:
            opened[0].close()
            os.unlink(path)
            raise
    return opened, True
