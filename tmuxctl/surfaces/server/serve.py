"""The server as a whole: settings, sockets, the application, and its end."""

from __future__ import annotations

import contextvars
import os
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any

from tmuxctl import config
from tmuxctl.control import Control
from tmuxctl.errors import Denied
from tmuxctl.ownership import make_parents
from tmuxctl.state_files import is_running, make_private_folder, state_home, write_record
from tmuxctl.surfaces.server import listening
from tmuxctl.surfaces.server.admission.guard import AdmissionRules
from tmuxctl.surfaces.server.admission.logins import LoginFiles
from tmuxctl.surfaces.server.admission.tokens import TokenFiles
from tmuxctl.surfaces.server.app import Part, make_server
from tmuxctl.surfaces.server.calls import NO_DEFAULTS, NewDefaults
from tmuxctl.surfaces.server.listening import Address, Encryption
from tmuxctl.surfaces.server.logs import RequestLog, standard_error
from tmuxctl.untrusted import fits, parse_record, read_file
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
    all_machines: bool = False


def serve(
    options: ServeOptions,
    started: Callable[[list[str]], None],
    beside: Callable[[Control], AbstractContextManager[object]] = lambda control: nullcontext(),
) -> None:
    """Serve until SIGINT or SIGTERM. `started` is called with the addresses once they are listened at; what `beside` makes is
    entered before that, and left at the end. No session ends with the server."""
    check_options(options)
    tokens = None if options.no_token else TokenFiles()
    if options.address and tokens:
        tokens.read_first()
    settings = config.load({"tmux.socket": options.socket})
    path = listening.socket_path(settings.tmux_socket)
    opened, own = _open_sockets(options, path)
    encrypted = options.encryption is not None
    hosts = tuple(host.lower() for host in (*options.hosts, *([options.address.host] if options.address else ())))
    logins = LoginFiles(tokens) if tokens else None
    rules = AdmissionRules(tokens, hosts, options.origins, encrypted, logins)
    told = [listening.describe_socket(one, encrypted) for one in opened]
    url = find_url(told, options.hosts)
    kept = RunningAddress(settings.tmux_socket)

    def tell_started() -> None:
        kept.save(url)
        started(told)

    try:
        with Control(settings=settings, resident=True) as control, beside(control):
            log = RequestLog(standard_error()) if options.log else None
            guard = make_server(
                control,
                rules,
                log=log,
                parts=options.parts,
                defaults=options.defaults,
                all_machines=options.all_machines,
            )
            run = partial(listening.run_server, guard, opened, options.encryption, tell_started, guard.stop)
            # a context of its own: the command that serves takes its own result in pieces, and a caller takes each whole
            contextvars.Context().run(run)
    finally:
        kept.remove()
        if own:
            with suppress(FileNotFoundError):
                os.unlink(path)


class RunningAddress:
    """Where the server for a tmux server can be reached by a browser, kept in the state folder while it runs."""

    def __init__(self, tmux_socket: str) -> None:
        self.path = os.path.join(state_home(), "tmuxctl", "serve", f"address-{tmux_socket}.json")

    def save(self, url: str | None) -> None:
        """Keep it; nothing where no address is listened at."""
        if url is not None:
            make_parents(self.path)
            make_private_folder(os.path.dirname(self.path))
            write_record(self.path, {"url": url, "pid": os.getpid()})

    def remove(self) -> None:
        """Forget it, if it is this process's."""
        if self._read().get("pid") == os.getpid():
            with suppress(FileNotFoundError):
                os.unlink(self.path)

    def find(self) -> str | None:
        """The address of a server that runs; None without one."""
        found = self._read()
        runs = isinstance(found.get("pid"), int) and is_running(found["pid"])
        return str(found["url"]) if runs and fits(found, {"url!": str}) else None

    def _read(self) -> dict[str, Any]:
        try:
            return parse_record(read_file(self.path, 4096), self.path)
        except (OSError, ValueError):
            return {}


def find_url(told: Sequence[str], hosts: Sequence[str]) -> str | None:
    """The address that a browser opens, of those that are listened at: with the first name that the server was told is its own,
    where it listens at all addresses of this machine."""
    found = next((one for one in told if not one.startswith("unix:")), None)
    everywhere = found and re.fullmatch(r"(https?://)(?:0\.0\.0\.0|\[::\])(:[0-9]+)", found)
    return f"{everywhere[1]}{hosts[0]}{everywhere[2]}" if everywhere and hosts else found


def check_options(options: ServeOptions) -> None:
    """Raise what would end a server with these options before it listens."""
    _check_exposure(options)
    if options.encryption:
        listening.check_encryption(options.encryption)


def _check_exposure(options: ServeOptions) -> None:
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
