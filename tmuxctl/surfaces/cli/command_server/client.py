"""The caller's side of a command that the server of commands carries out, and what both sides agree on (ADR 47).

Every command loads this before all else: it needs nothing that Python has not loaded by itself, and `_socket` only where a server
listens (`socket` takes 4 ms to load, a quarter of a bare start, measured).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys

# `signal` makes enumerations of all numbers when it is loaded
from _signal import SIG_DFL, SIG_IGN, SIGCONT, SIGINT, SIGKILL, SIGSTOP, SIGTERM, SIGTSTP, getsignal, signal
from stat import S_ISSOCK

import tmuxctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Sequence
    from typing import Any

QUICK = frozenset(("ask", "exec", "keys", "ls", "screen", "send", "show", "status", "wait"))
"""The commands that go through the server."""

FLAGS = frozenset(("--json", "-q", "--quiet", "--no-color", "--no-input", "-v", "--verbose"))
"""The options of every command that may stand before its name, but for `--socket NAME`. With any other the command runs here."""

OWN = ("/fd/", "/proc/", "/dev/tty", "/dev/pts/", "--no-server", "--secret-from-fd")
"""Words with one of these in them may mean a descriptor or a terminal of this process, or say that no server is wanted."""

MAGIC = b"tmuxctl1"
NUMBER = 8
"""Bytes of the number behind MAGIC that says how long the request is."""

LARGEST = 16 << 20
"""Bytes of a request: Linux passes a program 6 MiB of arguments and variables at most (execve(2))."""

HELLO, READY, GO, BEGUN, ENDED, DIED = b"H", b"R", b"G", b"B", b"E", b"D"
"""A child takes requests; it is as this process is; carry it out; it is being carried out; its exit status follows, a byte; its
wait status follows. Until GO this process may still carry out the command itself, and after that only if BEGUN did not come."""

STATUS = 4
"""Bytes of a wait status."""

PATIENCE = 5.0
"""How long a server may take until the command can begin. A value of `tmuxctl.timing` would have to be loaded."""


def run(words: Sequence[str]) -> int | None:
    """Have the server carry out the command that these words are; returns its exit status. None where it was not begun: no server,
    one that does not fit, or a command that has to run here."""
    if not _may_go_through(words) or (connection := _connect()) is None:
        return None
    child = _request(connection, words)
    if child >= 0 and _begin(connection, child):
        return _await_status(connection, words)
    connection.close()
    return None


def find_socket() -> str:
    """The path of the socket at which the server of this user and version listens; empty where no home is known."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if not folder.startswith("/"):
        folder = os.environ.get("XDG_STATE_HOME", "")
    if not folder.startswith("/"):
        home = os.environ.get("HOME", "")
        folder = f"{home}/.local/state" if home.startswith("/") else ""
    return f"{folder}/tmuxctl/commands-{tmuxctl.__version__}.sock" if folder else ""


def describe_python() -> str:
    """What has to be the same on both sides: where the code is, and what a Python cannot change once it has started."""
    flags = sys.flags
    fixed = (
        flags.debug,
        flags.optimize,
        flags.bytes_warning,
        flags.hash_randomization,
        flags.dev_mode,
        flags.utf8_mode,
    )
    encoding = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    return f"{tmuxctl.__version__} {tmuxctl.__file__} {sys.version} {sys.prefix} {fixed} {encoding} {sys.warnoptions}"


def is_quick(words: Sequence[str]) -> bool:
    """True for the words of a quick command, with or without options before its name."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--socket":
            at += 2
        elif word in FLAGS or word.startswith("--socket="):
            at += 1
        else:
            return word in QUICK
    return False


def _may_go_through(words: Sequence[str]) -> bool:
    if not is_quick(words) or "_TMUXCTL_COMPLETE" in os.environ:
        return False
    text = "\0".join(words)
    return not any(part in text for part in OWN) and _are_streams_as_usual(reads_input="-" in words)


def _are_streams_as_usual(*, reads_input: bool) -> bool:
    """True if all three are open, as Python opens them, and a terminal among them belongs to this process group: the kernel stops
    who reads a terminal in the background, and of another session it stops nobody."""
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        try:
            if stream.fileno() != number:
                return False
            os.fstat(number)
        except (AttributeError, OSError, ValueError):
            return False
        if os.isatty(number) and ((reads_input and number == 0) or _is_in_background(number)):
            return False
    return True


def _is_in_background(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) != os.getpgrp()
    except OSError:
        # not the terminal of this session
        return False


def _connect() -> Socket | None:
    """A connection to the server of this user; None for none."""
    path = find_socket()
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return None
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(PATIENCE)
        connection.connect(path)
        # who listens may be another than who owns the file
        if peer_of(connection)[1] == os.geteuid():
            return connection
    except OSError:
        pass
    connection.close()
    return None


def peer_of(connection: Any) -> tuple[int, int, int]:
    """Process, user and group at the other end (unix(7), SO_PEERCRED)."""
    # the constants are those of Linux, the only system where a server listens
    found = connection.getsockopt(1, 17, 12)
    process, user, group = (int.from_bytes(found[at : at + 4], sys.byteorder, signed=True) for at in (0, 4, 8))
    return process, user, group


def _request(connection: Socket, words: Sequence[str]) -> int:
    """Send the command with all that it depends on; returns a descriptor of the process that is ready to carry it out, -1 if none
    is."""
    import _socket

    try:
        body = pack_request(words)
        # what is sent to a process that is stopped stays open there: who reads our output would wait for its end
        if len(body) > LARGEST or connection.recv(1) != HELLO:
            return -1
        _send_request(connection, MAGIC + len(body).to_bytes(NUMBER, "little") + body)
        answer, given, *_ = connection.recvmsg(1, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
    except (OSError, ValueError):
        return -1
    return int.from_bytes(given[0][2][:4], sys.byteorder) if answer == READY and given else -1


def _send_request(connection: Socket, message: bytes) -> None:
    """Send it with the three streams and the folder that this process is in."""
    import _socket

    folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, folder))
        sent = connection.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    finally:
        os.close(folder)
    if sent < len(message):
        connection.sendall(message[sent:])


def pack_request(words: Sequence[str]) -> bytes:
    """The command, and what it depends on: its words, the folders that Python looks into, the streams, the environment."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    is_unbuffered = getattr(sys.stdout, "write_through", False)
    texts = [
        describe_python(),
        f"{len(words)} {len(sys.path)} {int(sys.dont_write_bytecode)} {int(is_unbuffered)}",
        *(f"{stream.encoding} {stream.errors}" for stream in streams),
        sys.argv[0],
        *words,
        *sys.path,
    ]
    variables = (name + b"=" + value for name, value in os.environb.items())
    return b"\0".join([*map(os.fsencode, texts), *variables])


def _forward_signals(child: int) -> dict[int, Any]:
    """From now on pass on to the child what this process is told; returns how each of these signals was handled before."""

    def forward(number: int, _frame: object) -> None:
        _send_signal(child, number)

    def stop(number: int, _frame: object) -> None:
        _send_signal(child, SIGSTOP)
        signal(number, SIG_DFL)
        os.kill(os.getpid(), number)
        # this process goes on
        signal(number, stop)
        _send_signal(child, SIGCONT)

    handlers = {SIGINT: forward, SIGTERM: forward, SIGTSTP: stop}
    return {number: signal(number, done) for number, done in handlers.items() if getsignal(number) != SIG_IGN}


def _send_signal(child: int, number: int) -> None:
    try:
        _signal.pidfd_send_signal(child, number)
    except OSError:
        return  # it has ended


def _begin(connection: Socket, child: int) -> bool:
    """Let the child begin, and pass on signals to it; False if it has not begun, and all is as before."""
    before = _forward_signals(child)
    connection.settimeout(None)
    try:
        connection.sendall(GO)
        if connection.recv(1) == BEGUN:
            return True
    except OSError:
        pass
    for number, handler in before.items():
        signal(number, handler)
    os.close(child)
    return False


def _await_status(connection: Socket, words: Sequence[str]) -> int:
    """Wait for the end of the command; returns its exit status, or ends this process by the signal that ended the child."""
    try:
        answer = _receive(connection, 1)
        if answer == ENDED:
            return _receive(connection, 1)[0]
        if answer == DIED:
            status = os.waitstatus_to_exitcode(int.from_bytes(_receive(connection, STATUS), "little"))
            return status if status >= 0 else _end_by_signal(-status)
    except (OSError, IndexError, ValueError):
        pass
    return _report_lost(words)


def _receive(connection: Socket, count: int) -> bytes:
    """So many bytes, fewer if no more come."""
    data = b""
    while len(data) < count and (more := connection.recv(count - len(data))):
        data += more
    return data


def _end_by_signal(number: int) -> int:
    if number != SIGKILL:
        signal(number, SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _report_lost(words: Sequence[str]) -> int:
    """Tell that it is not known how the command ended; returns the exit status for that."""
    from tmuxctl.control.service import Control
    from tmuxctl.errors import Unreachable
    from tmuxctl.operations import find
    from tmuxctl.surfaces.cli.printing.output import Options, report

    error = Unreachable(
        "the process that carried out the command is gone, and did not say how the command ended",
        reason="outcome_unknown",
        hint="look before you repeat it: tmuxctl log NAME",
    )
    report(error, Options(json="--json" in words))
    verb = next(word for word in words if word in QUICK)
    return find(Control, verb).meta.error_status(error)
