"""The server of commands: a process that has loaded all that quick commands need, and forks for each caller. `python -m` runs it.

A child is forked ahead and takes the next caller: a fork takes 2 ms (measured). It reads what the caller sends, under a deadline;
the server reads nothing of it, so no caller can make it wait.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import sys
import time
from contextlib import suppress

from tmuxctl.errors import Conflict, Denied, Failed, TmuxctlError
from tmuxctl.ownership import make_parents, refuse_unsafe_parent
from tmuxctl.state_files import make_private_folder, take_lock
from tmuxctl.surfaces.cli import collect_seldom
from tmuxctl.surfaces.cli.command_server.caller import Confinement, read_confinement
from tmuxctl.surfaces.cli.command_server.client import DIED, STATUS, find_socket, peer_of
from tmuxctl.surfaces.cli.command_server.loaded import STALE, Code, load_modules, take_pages
from tmuxctl.surfaces.cli.ending import Terminated, raise_on_sigterm
from tmuxctl.surfaces.cli.printing.output import Options, report
from tmuxctl.timing import TIMING
from tmuxctl.value import NamedTuple

MOST = 200
"""Commands at once; with more, callers run theirs themselves. Each takes two descriptors here, of the 1,024 that a process has."""

BACKLOG = 128
TOLD = (signal.SIGINT, signal.SIGTERM)
TAKEN = b"T"
LONGEST_PATH = 107
"""Bytes of a socket's path (unix(7))."""


class Child(NamedTuple):
    """A process that the server forked: its pid, and what tells of its end."""

    pid: int
    ended: int


class Spare(NamedTuple):
    """The child that waits for the next caller, and the connection on which it says that one has come."""

    child: Child
    control: socket.socket


class CommandServer:
    """Keeps one child ready for the next caller, and tells callers whose command was killed."""

    def __init__(self, path: str, code: Code) -> None:
        self.path, self.code = path, code
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self.own: Confinement = read_confinement(os.getpid())
        self.lock = _take_place(path)
        self.listener = _listen(path)
        self.inode = os.lstat(path).st_ino
        self.spare: Spare | None = None
        self.running: dict[int, tuple[Child, socket.socket]] = {}
        self.stale = self.resting = False
        # what started this process holds the other end
        self.lifeline = 0 if _is_pipe(0) else -1

    def serve(self) -> socket.socket | None:
        """Serve until nothing holds the other end of our standard input, or the code has changed. In a child: its connection."""
        while not self.stale:
            if self.spare is None and self._has_room() and not self.resting and not self._fork_spare():
                return self._await_caller()
            ready = self._wait()
            self.resting = False
            for number in ready:
                if number in self.running:
                    self._reap(*self.running.pop(number))
                elif self.spare and number == self.spare.control.fileno():
                    self._note_caller(self.spare)
                elif number == self.listener.fileno():
                    self._send_away_if_full()
                elif number == self.lifeline and not os.read(number, 1 << 10):
                    return None
        return None

    def close(self) -> None:
        """Let callers find nothing here any more. Commands that are being carried out go on to their end."""
        with suppress(OSError):
            if os.lstat(self.path).st_ino == self.inode:
                os.unlink(self.path)

    def _has_room(self) -> bool:
        return len(self.running) < MOST

    def _wait(self) -> list[int]:
        """Wait for whatever is next; the descriptors that tell of it."""
        waiting = select.poll()
        for number in (*self.running, self.lifeline):
            if number >= 0:
                waiting.register(number, select.POLLIN)
        waiting.register(self.spare.control if self.spare else self.listener, select.POLLIN)
        rest = TIMING.command_server.rest_seconds * 1000 if self.resting else None
        return [number for number, _ in waiting.poll(rest)]

    def _fork_spare(self) -> int:
        """Fork a child for the next caller; 0 in the child."""
        control, theirs = socket.socketpair()
        # a child must not end as this process does when it is told to
        signal.pthread_sigmask(signal.SIG_BLOCK, TOLD)
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if not pid:
            self._leave_to_parent(control, theirs)
            return 0
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        theirs.close()
        if pid > 0:
            self.spare = Spare(Child(pid, os.pidfd_open(pid)), control)
        else:
            control.close()
            time.sleep(TIMING.command_server.retry_seconds)
        return pid

    def _leave_to_parent(self, control: socket.socket, theirs: socket.socket) -> None:
        """In a child: what belongs to the server is not to be closed by its number later."""
        control.close()
        self.spare = Spare(Child(os.getpid(), -1), theirs)
        for _, connection in self.running.values():
            connection.close()
        # in a session without a terminal, and not its leader: no terminal that it opens becomes its own
        if os.getsid(0) == os.getppid():
            os.setpgid(0, 0)
        else:
            os.setsid()

    def _await_caller(self) -> socket.socket | None:
        """In a child: wait for a caller, and give the server its connection, too; None if the server is gone."""
        assert self.spare
        take_pages()
        waiting = select.poll()
        waiting.register(self.listener, select.POLLIN)
        waiting.register(self.spare.control, select.POLLIN)
        while True:
            if self.spare.control.fileno() in dict(waiting.poll()):
                os._exit(0)
            with suppress(OSError):
                connection, _ = self.listener.accept()
                if peer_of(connection)[1] == os.geteuid():
                    socket.send_fds(self.spare.control, [TAKEN], [connection.fileno()])
                    self.listener.close()
                    self.spare.control.close()
                    return connection
                connection.close()

    def _note_caller(self, spare: Spare) -> None:
        """The child that was ready has a caller, or has ended without one."""
        self.spare = None
        taken, given, *_ = socket.recv_fds(spare.control, len(TAKEN), 1, socket.MSG_CMSG_CLOEXEC)
        if taken == TAKEN and given:
            self.running[spare.child.ended] = spare.child, socket.socket(fileno=given[0])
            spare.control.close()
            self.resting = True
        else:
            self._reap(spare.child, spare.control)

    def _send_away_if_full(self) -> None:
        """More callers than there may be run their commands themselves; for any other a child is forked now."""
        if not self._has_room():
            with suppress(OSError):
                self.listener.accept()[0].close()

    def _reap(self, child: Child, connection: socket.socket) -> None:
        """A child has ended: tell its caller how, in case that it could not do so itself."""
        _, status = os.waitpid(child.pid, 0)
        os.close(child.ended)
        with suppress(OSError):
            message = DIED + status.to_bytes(STATUS, "little")
            connection.send(message, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        connection.close()
        self.stale = self.stale or os.waitstatus_to_exitcode(status) == STALE


def _fill_streams() -> None:
    """Open what is closed of the three streams: else a connection would get its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(number)


def _is_pipe(number: int) -> bool:
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _take_place(path: str) -> int:
    """A lock that this process holds as long as it serves; Conflict if another one does. Its folder is made."""
    refuse_unsafe_parent(os.path.dirname(path))
    make_parents(path)
    make_private_folder(os.path.dirname(path))
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    lock = os.open(f"{path}.lock", flags, 0o600)
    take_lock(lock, 0.0, lambda: Conflict(f"{ascii(path)[1:-1]} is served already", reason="served"))
    return lock


def _listen(path: str) -> socket.socket:
    """Listen at the path, in the place of what a server that is gone left there; Denied for what is no such."""
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            hint = f"look at it: ls -ld {path}"
            raise Denied(f"{ascii(path)[1:-1]} is no socket of yours", reason="bad_owner", hint=hint)
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(BACKLOG)
    return listener


def main() -> int:
    """Serve until this process is told to end; the status of a command in a child of it."""
    code = Code()
    _fill_streams()
    collect_seldom()
    path = find_socket()
    try:
        if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
            raise Failed("a server of commands needs Linux 5.3 or newer", reason="not_here")
        if not path or len(os.fsencode(path)) > LONGEST_PATH:
            hint = "export XDG_RUNTIME_DIR=DIR, a folder with a short path"
            raise Denied(f"no place for a socket: {ascii(path)}", reason="bad_folder", hint=hint)
        with suppress(PermissionError):
            # it leads a session already
            os.setsid()
        load_modules()
        server = CommandServer(path, code)
    except TmuxctlError as error:
        report(error, Options())
        return error.exit
    connection = _serve(server)
    if connection is None:
        server.close()
        return 0
    from tmuxctl.surfaces.cli.command_server.child import carry_out

    return carry_out(connection, server.code, server.own, server.mask)


def _serve(server: CommandServer) -> socket.socket | None:
    raise_on_sigterm(0)
    try:
        return server.serve()
    except (KeyboardInterrupt, Terminated):
        return None


if __name__ == "__main__":
    sys.exit(main())
