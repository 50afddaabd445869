"""The way to a machine by the system's own ssh: its options, its control sockets, and what its complaints mean."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from tmuxctl.errors import Denied, TmuxctlError, Unreachable
from tmuxctl.ownership import refuse_unsafe_parent
from tmuxctl.state_files import make_private_folder

REMOTE_SHELL = "exec env LC_ALL=C.UTF-8 sh"
"""What the login shell there becomes, be it bash, fish or csh: each reads this line alike."""

OPTIONS = (
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "EscapeChar=none",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
    "ConnectTimeout=10",
    "ConnectionAttempts=1",
    "LogLevel=ERROR",
    # the first words of the shell there are more than a connection sends before something is acknowledged
    "Compression=yes",
)
"""What the user's configuration cannot change: nothing is forwarded, all is compressed, and a connection that is cut is noticed
in ten seconds."""

UNATTENDED = "BatchMode=yes"
"""Never ask: neither for a password nor whether a key is the right one."""

UNSHARED = ("ControlMaster=no", "ControlPath=none")
"""A connection of its own."""

SOCKET_PATH_MOST = 100
"""Bytes that the path of a control socket may have; the kernel of macOS takes 104, that of Linux 108."""

SOCKET_NAME = 40 + 1 + 17
"""What `%C` takes of them, and the ending that ssh adds until the socket is there."""

Explained = tuple[str, str, str, str]

COMPLAINTS: Sequence[Explained] = (
    (
        r"Could not resolve hostname|Name or service not known",
        "unknown_host",
        "there is no host of this name",
        "is it spelled right? tmuxctl machine ls",
    ),
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key.*has changed",
        "host_key",
        "it shows another host key than the one that is known: it may be another machine",
        "find out why before you remove the known key: ssh-keygen -R HOST",
    ),
    (
        r"Host key verification failed|No .* host key is known",
        "host_key",
        "its host key is not known yet",
        "on a terminal `tmuxctl machine test {name}` asks you whether it is the right one",
    ),
    (
        r"Permission denied|Too many authentication failures|no such identity",
        "permission",
        "it lets nobody in by the keys that were tried",
        "on a terminal `tmuxctl machine setup {name}` asks for a password and puts a key there; one with a passphrase belongs into "
        "an agent: ssh-add",
    ),
    (
        r"Connection refused",
        "refused",
        "it refuses the connection: no ssh server listens there",
        "is the port right, and sshd running there?",
    ),
    (
        r"timed out|Operation timed out",
        "no_answer",
        "it does not answer",
        "is it switched on, and is the network there?",
    ),
    (
        r"No route to host|Network is unreachable",
        "no_route",
        "there is no way to it",
        "is the network there?",
    ),
    (
        r"Connection (?:closed|reset)|Broken pipe|not responding|client_loop|kex_exchange",
        "connection_lost",
        "the connection was lost",
        "try again; sessions there go on",
    ),
)
"""Complaints of ssh and what each means: a pattern, the reason, the message, the hint."""


def ssh_command(destination: str, *, terminal: bool = False, attended: bool = False, shared: bool = True) -> list[str]:
    """The ssh that runs a shell there for us. With `terminal` it brings a program there to this terminal. A person who is
    there, or is `attended`, may be asked. One that is not `shared` connects anew."""
    words = ["ssh", "-t" if terminal else "-T"]
    for option in (
        *OPTIONS,
        *(() if terminal or attended else (UNATTENDED,)),
        *(control_options() if shared else UNSHARED),
    ):
        words += ["-o", option]
    return [*words, "--", destination]


def control_options() -> tuple[str, ...]:
    """The options by which several commands share a connection, which stays for a minute; without one where there is no short
    path for its socket."""
    folder = control_folder()
    if len(folder) + 1 + SOCKET_NAME > SOCKET_PATH_MOST or not re.fullmatch(r"[A-Za-z0-9/._-]+", folder):
        return UNSHARED
    return ("ControlMaster=auto", f"ControlPath={folder}/%C", "ControlPersist=60")


def control_folder() -> str:
    """The folder of the control sockets, made; Denied as `runtime_folder`: whoever could put a socket there would be given what is
    typed."""
    return runtime_folder("ssh")


def runtime_folder(kind: str) -> str:
    """A folder for what lasts as long as the user is logged in, made; Denied where it is not ours alone."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    above = os.path.join(runtime, "tmuxctl") if runtime.startswith("/") else f"/tmp/tmuxctl-{os.getuid()}"
    folder = os.path.join(above, kind)
    try:
        refuse_unsafe_parent(above)
        make_private_folder(above)
        make_private_folder(folder)
    except OSError as error:
        raise Denied(f"{folder}: {error.strerror}", reason="bad_folder", hint="export XDG_RUNTIME_DIR=DIR") from None
    return folder


def explain(name: str, error: Unreachable) -> TmuxctlError:
    """What it means that the connection to a machine ended."""
    for pattern, reason, message, hint in COMPLAINTS:
        if re.search(pattern, error.message, re.IGNORECASE):
            hint = hint.format(name=name)
            return Unreachable(f"{name}: {message}", reason=reason, hint=hint, machine=name, said=_last_line(error))
    return explain_end(name, error)


def explain_end(name: str, error: Unreachable) -> TmuxctlError:
    """What it means that a command which is no ssh ended, or one of which nothing more is known."""
    said = _last_line(error)
    hint = f"what it has: tmuxctl machine test {name}"
    return Unreachable(f"{name}: {said}", reason=error.reason, hint=hint, machine=name)


def _last_line(error: Unreachable) -> str:
    lines = [line for line in error.message.splitlines() if line.strip()]
    return "".join(one if one.isprintable() else " " for one in lines[-1].strip()[:200]) if lines else ""
