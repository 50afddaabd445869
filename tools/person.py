"""An ordinary user of this machine with a password, for what asks for one: ssh, su, sudo, passwd."""

from __future__ import annotations

import fcntl
import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMENT = "made for a run of tmuxctl's own programs"
"""Tells a user of ours from one who was there before."""

LOCK = "/run/lock/tmuxctl-person.lock"
"""Several runs at once change the same files, and useradd(8) gives up where another one holds them."""


@contextmanager
def person(name: str, password: str) -> Iterator[bool]:
    """A user who may do everything by sudo, made if root may and removed behind it; gives whether there is one."""
    sudoers = Path(f"/etc/sudoers.d/tmuxctl-{name}")
    there = known(name)
    if (there is not None and there.pw_gecos != COMMENT) or os.getuid() != 0:
        yield there is not None
        return
    try:
        with _alone():
            if there is None:
                subprocess.run(["useradd", "-m", "-s", "/bin/bash", "-c", COMMENT, name], check=True)
            subprocess.run(["chpasswd"], input=f"{name}:{password}\n", text=True, check=True)
            if sudoers.parent.is_dir():
                sudoers.write_text(f"Defaults:{name} !lecture\n{name} ALL=(ALL) ALL\n")
                sudoers.chmod(0o440)
        yield True
    finally:
        with _alone():
            sudoers.unlink(missing_ok=True)
            subprocess.run(["userdel", "-rf", name], stderr=subprocess.DEVNULL, check=False)


def known(name: str) -> pwd.struct_passwd | None:
    """The user of this name, or None."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


@contextmanager
def _alone() -> Iterator[None]:
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
