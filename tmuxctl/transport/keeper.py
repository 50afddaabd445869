"""A process that outlives this one for a moment, so that its control client does not leave while another one opens (ADR 8)."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress

SCRIPT = """\
read -r _ <&3 && exit
command -v flock >/dev/null && flock -s 6
exec 4>&-
sleep 0.2
"""
"""It waits for a line from us. Where none comes we were killed: then it waits until no client opens, closes the input of our
client, which leaves (tmux(1), CONTROL MODE), and lets no other open until tmux has told that. The lock of descriptor 6 is
the one under which our client opens, so it is still held if we were killed meanwhile; flock(1) makes it a shared one."""

NUMBERS = (3, 4, 5, 6)
FREE = 10
"""Descriptors from here on are none of those."""


class ClientKeeper:
    """Keeps a control client's input and output open for as long as this process lives, and a moment longer."""

    def __init__(self, lock: int, to_client: int, from_client: int) -> None:
        """`lock` is the descriptor of the lock under which clients open, the others are our ends of the client's pipes.
        OSError if no process can be started."""
        import fcntl

        with ExitStack() as ends:
            told, self._tell = os.pipe()
            ends.callback(os.close, told)
            moved = []
            for descriptor in (told, to_client, from_client, lock):
                moved.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FREE))
                ends.callback(os.close, moved[-1])
            actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
                (os.POSIX_SPAWN_DUP2, *pair) for pair in zip(moved, NUMBERS, strict=True)
            ]
            actions += [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
            try:
                # a group of its own: Ctrl-C at our terminal is not meant for it
                self._pid = os.posix_spawnp("sh", ["sh", "-c", SCRIPT], os.environ, file_actions=actions, setpgroup=0)
            except BaseException:
                os.close(self._tell)
                raise

    def end(self) -> None:
        """Let it go: the client was ended."""
        with suppress(BrokenPipeError):
            os.write(self._tell, b"\n")
        os.close(self._tell)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
