"""Runs tmuxctl, and dies of SIGKILL right before the Nth thing it does to the world: `dying.py N LOG WORD...`.

What counts is told by Python's audit events, and by a few of our own where it has none: after a process was started, and
before bytes go to one or to a file. LOG names what was about to happen; it is what the last line says. N 0 never dies.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

EVENTS = {
    "fcntl.flock",
    "os.exec",
    "os.fork",
    "os.kill",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "shutil.rmtree",
    "socket.connect",
    "subprocess.Popen",
    "tests.signal",
    "tests.spawned",
    "tests.write",
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def main() -> None:
    last, log, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    count = 0

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if not changes(event, arguments):
            return
        count += 1
        if count <= last or not last:
            real_write(handle, f"{count} {event} {ascii(arguments)[:300]}\n".encode())
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    real_write = os.write
    announce()
    from tmuxctl.surfaces.cli import main as tmuxctl

    sys.argv = ["tmuxctl", *words]
    sys.addaudithook(seen)
    tmuxctl()


def changes(event: str, arguments: tuple[Any, ...]) -> bool:
    """True for an event after which the world may be another."""
    if event == "open":
        path, _, flags = arguments
        return isinstance(path, str) and bool((flags or 0) & WRITING) and not path.startswith("/dev/")
    if event == "os.mkdir":
        return not os.path.isdir(arguments[0])
    return event in EVENTS


def announce() -> None:
    """Tell of what Python has no event for."""
    import subprocess

    start = subprocess.Popen.__init__

    def starting(self: Any, *arguments: Any, **options: Any) -> None:
        start(self, *arguments, **options)
        sys.audit("tests.spawned", self.pid)

    subprocess.Popen.__init__ = starting  # type: ignore[method-assign]
    write, spawn, send = os.write, os.posix_spawnp, getattr(signal, "pidfd_send_signal", None)

    def writing(handle: int, data: Any) -> int:
        sys.audit("tests.write", handle, len(data))
        return write(handle, data)

    def spawning(*arguments: Any, **options: Any) -> int:
        pid = spawn(*arguments, **options)
        sys.audit("tests.spawned", pid)
        return pid

    def signalling(*arguments: Any) -> None:
        sys.audit("tests.signal", *arguments)
        assert send is not None
        send(*arguments)

    os.write, os.posix_spawnp = writing, spawning
    if send is not None:
        signal.pidfd_send_signal = signalling


if __name__ == "__main__":
    main()
