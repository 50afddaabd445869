"""Whether a path is safe to rely on: nobody but root and this user can change what it leads to.

The rule of sshd's StrictModes, for every folder up to `/` (sshd stops at the home folder) and for every link on the way.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from tmuxctl.errors import Denied

MOST_LINKS = 40
"""Links that the kernel follows in one path (path_resolution(7))."""


def refuse_unsafe(path: str) -> None:
    """Denied `unsafe_file` unless the file or folder at this absolute path, where its links end, and every folder and link
    on the way are root's or ours, and nobody else may write them. What does not exist is safe."""
    if end := _resolve_safely(path):
        _refuse_mode(end, os.lstat(end), others=stat.S_IWGRP | stat.S_IWOTH)


def refuse_unsafe_parent(path: str) -> None:
    """Denied `unsafe_file` unless what is at this absolute path can be made, moved and removed by root and us alone."""
    _resolve_safely(os.path.dirname(path))


def make_parents(path: str) -> None:
    """Make the missing folders above the path, 0700 each whatever the umask is (`os.makedirs` heeds it for all but the last)."""
    parent = os.path.dirname(path)
    if parent != path and not os.path.isdir(parent):
        make_parents(parent)
        with suppress(FileExistsError):
            os.mkdir(parent, 0o700)


def _resolve_safely(path: str) -> str:
    """Look at each name as the kernel resolves it; where the path ends, empty for nothing or a device."""
    # whoever owns / could replace Python itself. In a container that may be a user whom its user namespace does not know
    owners = {0, os.getuid(), os.lstat("/").st_uid}
    at, rest, links = "/", _path_names(path), 0
    while rest:
        name = rest.pop()
        if name == "..":
            at = os.path.dirname(at)
            continue
        step = os.path.join(at, name)
        try:
            found = os.lstat(step)
        except OSError:
            return ""
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > MOST_LINKS:
                return ""
            _refuse_owner(step, found, owners)
            target = os.readlink(step)
            at = "/" if target.startswith("/") else at
            rest += _path_names(target)
        elif stat.S_ISCHR(found.st_mode):  # /dev/null is anybody's and holds nothing
            return ""
        else:
            at = step
            _refuse_owner(step, found, owners)
            # nobody can replace what is another's in a sticky folder
            if stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_ISVTX:
                private = found.st_mode & stat.S_IWGRP and _is_private(step, found)
                _refuse_mode(step, found, others=stat.S_IWOTH if private else stat.S_IWGRP | stat.S_IWOTH)
    return at


def _path_names(path: str) -> list[str]:
    """The names in a path, the last one first."""
    return [name for name in path.split("/") if name not in ("", ".")][::-1]


def _refuse_owner(path: str, found: os.stat_result, owners: set[int]) -> None:
    if found.st_uid not in owners:
        message = f"{ascii(path)} belongs to user {found.st_uid} (mode {stat.S_IMODE(found.st_mode):04o})"
        hint = f"use one of your own; or if you trust what is in it: chown -h {os.getuid()} {_quote(path)}"
        raise Denied(message, reason="unsafe_file", hint=hint)


def _refuse_mode(path: str, found: os.stat_result, *, others: int) -> None:
    if found.st_mode & others:
        message = f"{ascii(path)} may be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
        raise Denied(message, reason="unsafe_file", hint=f"chmod go-w {_quote(path)}")


def _is_private(path: str, found: os.stat_result) -> bool:
    """Whether the folder's group is its owner's and nobody else's: where each user has such a group, the umask is 002 and a
    home folder 0775 (Debian's sshd allows that too)."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    members = {*group.gr_mem, *(account.pw_name for account in pwd.getpwall() if account.pw_gid == found.st_gid)}
    # of a folder with an access list the group's bits are those of everybody in the list (acl(5))
    listed = hasattr(os, "listxattr") and "system.posix_acl_access" in os.listxattr(path)
    return group.gr_name == user.pw_name and members == {user.pw_name} and not listed


def _quote(path: str) -> str:
    from shlex import quote

    return quote(path)
