"""One command, carried out in a process of its own that the server forked: as the caller would have run it."""

from __future__ import annotations

import fcntl
import io
import locale
import os
import signal
import socket
import sys
import time
from contextlib import suppress

from tmuxctl.surfaces.cli import app, leave
from tmuxctl.surfaces.cli.command_server.caller import Confinement, NotAlike, become_like
from tmuxctl.surfaces.cli.command_server.client import BEGUN, ENDED, GO, HELLO, READY, peer_of
from tmuxctl.surfaces.cli.command_server.loaded import STALE, Code
from tmuxctl.surfaces.cli.command_server.request import CommandRequest, Refused, receive_request
from tmuxctl.timing import TIMING

REFUSED = 100
"""What a child ends with that carried out nothing."""

LARGEST_DESCRIPTOR = (1 << 31) - 1
MODES = ("r", "w", "w")


def carry_out(connection: socket.socket, code: Code, own: Confinement, mask: set[signal.Signals | int]) -> int:
    """Carry out what the caller at the other end requests. Ends the process, or returns the status for the rest of its end.

    SIGINT and SIGTERM are blocked until the caller knows that the command has begun; `mask` is what is blocked then.
    """
    keep_only(connection.fileno())
    with suppress(OSError):
        connection.sendall(HELLO)
    if not code.is_current():
        os._exit(STALE)
    try:
        request = _prepare(connection, own)
        _begin(connection)
    except (Refused, NotAlike, OSError, LookupError, ValueError):
        os._exit(REFUSED)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        status = app.run(request.words)
    except KeyboardInterrupt:
        status = app.report_interrupt(request.words)
    # the command is done: no signal changes how it ended
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return leave(status, lambda: _tell_status(connection, status))


def keep_only(number: int) -> None:
    """Close all descriptors but the three streams and this one: the server has connections of other callers."""
    os.closerange(3, number)
    os.closerange(number + 1, LARGEST_DESCRIPTOR)


def _prepare(connection: socket.socket, own: Confinement) -> CommandRequest:
    """Read the request, and become what the caller is. Raises what says that this cannot be."""
    request = receive_request(connection)
    pid, user, _ = peer_of(connection)
    if user != os.geteuid():
        raise Refused
    become_like(pid, own)
    *streams, folder = request.descriptors
    for target, source in enumerate(streams):
        os.dup2(source, target)
        os.close(source)
    os.fchdir(folder)
    os.close(folder)
    _replace_environment(request.environment)
    _replace_streams(request.streams, unbuffered=request.unbuffered)
    sys.argv[:], sys.path[:] = [request.program, *request.words], request.path
    sys.dont_write_bytecode = not request.bytecode
    return request


def _replace_environment(wanted: dict[bytes, bytes]) -> None:
    """Set the variables of this process, and what C keeps of them: the time zone and the locale."""
    found = dict(os.environb)
    for name in found.keys() - wanted.keys():
        del os.environb[name]
    for name, value in wanted.items():
        if found.get(name) != value:
            os.environb[name] = value
    time.tzset()
    # what Python does when it starts; an unknown locale is C
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "")


def _replace_streams(encodings: tuple[tuple[str, str], ...], *, unbuffered: bool) -> None:
    """The three streams as Python makes them when it starts."""
    made = []
    for number, (mode, (encoding, errors)) in enumerate(zip(MODES, encodings, strict=True)):
        size = 0 if unbuffered and mode == "w" else -1
        lines = not unbuffered and (number == 2 or os.isatty(number))
        file = open(number, f"{mode}b", size, closefd=False)  # noqa: SIM115  # it stays open
        made.append(io.TextIOWrapper(file, encoding, errors, "\n", line_buffering=lines, write_through=unbuffered))
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = made  # type: ignore[misc]


def _begin(connection: socket.socket) -> None:
    """Wait until the caller wants the command begun, and say that it is. Raises Refused if it does not want that any more."""
    socket.send_fds(connection, [READY], [os.pidfd_open(os.getpid())])
    connection.settimeout(TIMING.command_server.request_seconds)
    if connection.recv(1) != GO:
        raise Refused
    connection.settimeout(None)
    connection.sendall(BEGUN)
    _end_with(connection)


def _end_with(connection: socket.socket) -> None:
    """Be told from now on when the caller is gone, as a process is whose terminal goes away: by SIGHUP."""
    number = signal.SIGKILL if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else signal.SIGHUP
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETSIG, number)
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    with suppress(BlockingIOError):
        if not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            os.kill(os.getpid(), number)


def _tell_status(connection: socket.socket, status: int) -> None:
    """Tell the caller how the command ended. Nothing is open here then: who reads its output sees the end, locks are given back."""
    number = connection.fileno()
    fcntl.fcntl(number, fcntl.F_SETFL, fcntl.fcntl(number, fcntl.F_GETFL) & ~os.O_ASYNC)
    os.closerange(0, number)
    os.closerange(number + 1, LARGEST_DESCRIPTOR)
    with suppress(OSError):
        os.write(number, ENDED + bytes((status & 0xFF,)))
