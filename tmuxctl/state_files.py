"""Files of ours in the state folder, as tmuxctl and its plugins keep them: private folders, locks, records."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from errno import EINVAL
from typing import Any

from tmuxctl.errors import Denied
from tmuxctl.untrusted import to_record


def state_home() -> str:
    """The folder of state by the XDG base directory specification; Denied `bad_folder` where no home is known."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return state
    home = os.path.expanduser("~")
    if not home.startswith("/"):
        what = f"HOME is {home!r}, which is not an absolute path" if os.environ.get("HOME") else "there is no HOME"
        raise Denied(what, reason="bad_folder", hint="export XDG_STATE_HOME=DIR, or HOME")
    return os.path.join(home, ".local", "state")


def make_private_folder(path: str) -> None:
    """Make it unless it is there; Denied `bad_owner` or `bad_mode` for one that is not ours, or that others may enter."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Denied(
            f"{path} is not a folder that belongs to you", reason="bad_owner", hint=f"look at it: ls -ld {path}"
        )
    if found.st_mode & 0o077:
        raise Denied(f"{path} is open to others", reason="bad_mode", hint=f"chmod 700 {path}")


def make_private_file(path: str, data: bytes) -> None:
    """Make a file that only we can read; FileExistsError where anything is in its place, a link too."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(data)


def append_line(path: str, line: bytes, most: int) -> None:
    """Write a line at the end of a file that only we can read, in one step. A file of more than `most` bytes becomes `PATH.1`
    first. Raises OSError for what is no regular file; links are never followed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(path, flags, 0o600)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(EINVAL, "not a regular file", path)
        if found.st_size > most:
            os.replace(path, f"{path}.1")
            os.close(handle)
            handle = os.open(path, flags, 0o600)
        os.write(handle, line + b"\n")
    finally:
        os.close(handle)


def take_lock(
    handle: int, seconds: float, busy: Callable[[], Exception], *, shared: bool = False, pause: float = 0.02
) -> None:
    """Lock an open file, alone or with others who share it; closing it gives the lock back. Raises what `busy` makes if
    another process has it for so long."""
    import fcntl

    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise busy() from None
            time.sleep(pause)


def give_lock_back(handle: int) -> None:
    """Unlock an open file that another process has by the same opening."""
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_UN)


def write_record(path: str, record: Mapping[str, Any], *, durable: bool = False) -> None:
    """Put JSON in the place of the file, whole or not at all; `durable`: a machine that loses power keeps one of the two."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".")
    with open(handle, "wb") as file:
        file.write(to_record(record))
        if durable:
            file.flush()
            os.fsync(handle)
    os.rename(name, path)


def is_running(pid: int) -> bool:
    """Whether there is a process with this number, ours or not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
