"""The checks of a gateway, each with what to do if it fails: on its own machine, and on that of a host or client."""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator

from tmuxctl.errors import Denied, TmuxctlError
from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.credentials import Credentials, read_credentials
from tmuxctl.gateway.server import running
from tmuxctl.gateway.server.authority.certificates import find_certificate
from tmuxctl.gateway.server.monitoring import ask_server
from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings
from tmuxctl.results import Check, Doctor
from tmuxctl.timing import TIMING
from tmuxctl.value import changed

PRIVATE = (
    *("server-settings.json", "members.json", "accounts.json", "node.json", "leaf.creds", "leaf-observer.creds"),
    *("ca.pem", "ca.key", "server.pem", "server.key", "route.pem", "route.key", running.CONFIG),
)
DAY = 86400


def examine_gateway(files: GatewayFiles) -> Doctor:
    """Every check of the gateway on this machine. NotFound `no_gateway` where there is none."""
    settings = files.read_settings()
    examinations: tuple[Callable[[GatewayFiles, GatewaySettings], Iterator[Check]], ...] = (
        _check_server,
        _check_files,
        _check_certificate,
        _check_process,
        _check_addresses,
    )
    checks: list[Check] = []
    for examination in examinations:
        try:
            checks += examination(files, settings)
        except TmuxctlError as error:
            checks.append(Check(examination.__name__.removeprefix("_check_"), False, error.message, error.hint or None))
    return _judge(checks)


def examine_credentials(path: str) -> Doctor:
    """Every check of a host's or client's way to its gateway, by its credentials file."""
    try:
        credentials = read_credentials(path)
    except TmuxctlError as error:
        return _judge([Check("credentials", False, error.message, error.hint or None)])
    checks = [Check("credentials", True, f"{credentials.role} {credentials.id}")]
    for url in credentials.urls:
        checks.append(_check_login(changed(credentials, urls=(url,))))
    return _judge(checks, any_of="gateway")


def _judge(checks: list[Check], any_of: str = "") -> Doctor:
    """Whether all is well. Of the checks called `any_of` one that holds is enough: the others then do not count."""
    reached = any(one.name == any_of and one.ok for one in checks)
    checks = [changed(one, ok=None) if reached and one.name == any_of and not one.ok else one for one in checks]
    return Doctor(all(one.ok is not False for one in checks), tuple(checks))


def _check_login(credentials: Credentials) -> Check:
    url = credentials.urls[0]
    with Connection(credentials) as connection:
        try:
            connection.wait_connected(TIMING.gateway.open_seconds)
        except TmuxctlError as error:
            hint = error.hint
            if isinstance(error, Denied) and error.reason == "bad_certificate" and "not yet valid" in error.message:
                hint = "the clock of this machine is behind: set it (timedatectl)"
            elif not isinstance(error, Denied):
                hint = f"does it run, and may this machine reach {url}? where it is: tmuxctl gateway doctor"
            return Check("gateway", False, error.message, hint)
    return Check("gateway", True, f"{url} takes the key")


def _check_server(_files: GatewayFiles, _settings: GatewaySettings) -> Iterator[Check]:
    server = running.find_server()
    oldest = ".".join(map(str, running.OLDEST))
    hint = f"{oldest} or later is needed: pip install -U 'tmux-control-plane[gateway]'"
    yield Check("server", server.is_recent, f"nats-server {server.version} ({server.path})", hint)


def _check_files(files: GatewayFiles, settings: GatewaySettings) -> Iterator[Check]:
    open_to_others = []
    for path in (files.folder, *map(files.path, PRIVATE), settings.key):
        if path is not None and os.path.exists(path) and os.stat(path).st_mode & 0o077:
            open_to_others.append(path)
    hint = f"chmod go= {' '.join(open_to_others)}" if open_to_others else None
    found = f"{', '.join(open_to_others)} open to others" if open_to_others else f"{files.folder} is private"
    yield Check("files", not open_to_others, found, hint)


def _check_certificate(files: GatewayFiles, settings: GatewaySettings) -> Iterator[Check]:
    certificate = find_certificate(files, settings)
    now = time.time()
    days = int((certificate.ends - now) // DAY)
    ends = time.strftime("%Y-%m-%d", time.gmtime(certificate.ends))
    again = (
        "name a new one: tmuxctl gateway up --cert FILE --key FILE"
        if settings.cert
        else "restart it: tmuxctl gateway up"
    )
    if certificate.ends < now:
        yield Check("certificate", False, f"it ended on {ends}", again)
    elif days < TIMING.gateway.renewal_days // 2:
        yield Check("certificate", None, f"it ends on {ends}, in {days} days", again)
    else:
        yield Check("certificate", True, f"it holds until {ends}")
    missing = [name for name in settings.names if name not in certificate.names]
    if missing:
        hint = f"others reach it by other names: tmuxctl gateway up {' '.join(f'--name {one}' for one in certificate.names)}"
        yield Check("names", False, f"the certificate is not for {', '.join(missing)}", hint)
    newest = max(certificate.begins, os.stat(files.path("server-settings.json")).st_mtime - DAY)
    hint = "set the clock (timedatectl): certificates are refused otherwise"
    yield Check("clock", now >= newest, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)), hint)


def _check_process(files: GatewayFiles, settings: GatewaySettings) -> Iterator[Check]:
    process = running.find_process(files)
    yield Check("process", process is not None, str(process or "not running"), "start it: tmuxctl gateway up")
    if process is not None:
        ask_server(settings.monitor_port, "/varz")
        yield Check("monitoring", True, f"127.0.0.1:{settings.monitor_port}")


def _check_addresses(files: GatewayFiles, settings: GatewaySettings) -> Iterator[Check]:
    """Whether the server answers with its certificate by each name, from here: a firewall before other machines is not seen."""
    if running.find_process(files) is None:
        return
    certificate = find_certificate(files, settings)
    context = ssl.create_default_context(cadata=certificate.authority)
    for name in settings.names:
        for what, port in (("address", settings.port), ("websocket", settings.websocket_port)):
            found = f"{name}:{port}"
            try:
                with (
                    socket.create_connection((name, port), TIMING.gateway.probe_seconds) as plain,
                    context.wrap_socket(plain, server_hostname=name),
                ):
                    yield Check(what, True, found)
            except OSError as error:
                hint = f"name what reaches this machine: tmuxctl gateway up --name NAME; or let {port} through the firewall"
                yield Check(what, False, f"{found}: {error.strerror or error}", hint)
