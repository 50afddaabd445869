"""Share a folder with the other sessions of a group: each finds it as `.scratchpad` and in $TMUXCTL_SCRATCHPAD.

It lies in `$XDG_STATE_HOME/tmuxctl/scratchpads/NAME` and stays when its sessions are gone; beside it is noted which of them
have a link to it, and where.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from tmuxctl.errors import Conflict, Failed, Usage
from tmuxctl.model import NAME, SessionSpec
from tmuxctl.state_files import is_running, make_private_folder, state_home, take_lock, write_record
from tmuxctl.untrusted import parse_record, read_file

KIND = "cwd"
DEADLINE = 120.0
ORDER = 90
"""Behind a worktree: the link belongs into the folder where the program starts."""

LINK = ".scratchpad"
LOCATION = re.compile(r"GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|PREFIX)")
"""Variables that lead git to another repository than the one of its folder."""

GIT_SECONDS, LOCK_SECONDS = 20.0, 5.0
START_SECONDS = 60.0
"""How long a session may take from here until its folder exists."""

NOTE_LIMIT = 1 << 16
"""Bytes of a note that are read."""


class Group(NamedTuple):
    """What the sessions of a group share, and the folder with a note of each that does."""

    folder: str
    users: str


def transform(
    spec: SessionSpec, *, name: Annotated[str, "the group: its sessions see each other's files"] = "shared"
) -> SessionSpec:
    """Make the group's folder if it is not there, and show it to the program."""
    if not NAME.fullmatch(name):
        hint = "use letters, digits, _ and -, starting with a letter or digit, at most 63 characters"
        raise Usage(f"{ascii(name[:40])} is not a valid name for a scratchpad", reason="bad_name", hint=hint)
    if spec.machine:
        raise Usage("a scratchpad is on this machine only", reason="bad_option", hint="start without it")
    group, link = _make_group(name), os.path.join(spec.cwd, LINK)
    if spec.notes.get("dry_run"):
        return replace(spec, env={**spec.env, "TMUXCTL_SCRATCHPAD": group.folder})
    with _lock(group):
        made = _make_link(group, link)
        try:
            _hide_from_git(spec.cwd)
            _write_note(group, link, spec)
        except BaseException:
            if made:
                os.unlink(link)
            raise
    binds = [path for path in spec.notes.get("binds", ()) if path != group.folder]
    about = {"name": name, "path": group.folder, "users": group.users, "link": link}
    return replace(
        spec,
        env={**spec.env, "TMUXCTL_SCRATCHPAD": group.folder},
        notes={**spec.notes, "binds": [*binds, group.folder], "scratchpad": about},
    )


def example(folder: str) -> dict[str, str]:
    """The options `plugin test` tries it with."""
    return {"name": "example"}


def cleanup(spec: SessionSpec, ended: Any) -> str | None:
    """Remove the link once no session of the group has this folder; what is in the scratchpad stays."""
    about = spec.notes.get("scratchpad")
    if not about:
        return None
    group, link = Group(about["path"], about["users"]), about["link"]
    try:
        with _lock(group):
            with suppress(FileNotFoundError):
                os.unlink(_note_path(group, spec))
            if not _is_used(group, link):
                _remove_link(group, link)
    except FileNotFoundError:  # somebody removed the scratchpad, and the notes with it
        _remove_link(group, link)
    except (Conflict, OSError) as error:
        return f"{link} stays: {error}"
    return None


# the group's folder


def _make_group(name: str) -> Group:
    state = state_home()
    os.makedirs(state, mode=0o700, exist_ok=True)
    pads = os.path.join(state, "tmuxctl", "scratchpads")
    # no group may have a tilde in its name
    group = Group(os.path.join(pads, name), os.path.join(pads, f"{name}~users"))
    for folder in (os.path.dirname(pads), pads, *group):
        make_private_folder(folder)
    return group


@contextmanager
def _lock(group: Group) -> Iterator[None]:
    """Nobody else makes or removes a link to this scratchpad meanwhile."""
    handle = os.open(group.users, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        what = f"another tmuxctl is busy with {group.folder}"
        take_lock(handle, LOCK_SECONDS, lambda: Conflict(what, reason="busy", hint="try again"))
        yield
    finally:
        os.close(handle)


# the link, and who has it


def _make_link(group: Group, link: str) -> bool:
    """Have the link lead to the group's folder; True if it was made now."""
    there = _link_target(link)
    if there == group.folder:
        return False
    if there and os.path.dirname(there) == os.path.dirname(group.folder):
        other = Group(there, f"{there}~users")
        if _is_used(other, link):
            message = f"{link} leads to the scratchpad {os.path.basename(there)} of other sessions here"
            raise Conflict(message, reason="in_use", hint=f"join them: --with scratchpad={os.path.basename(there)}")
        os.unlink(link)
    try:
        os.symlink(group.folder, link)
    except FileExistsError:
        message = f"{link} is in the way of the scratchpad"
        raise Failed(message, reason="exists", hint="look at it, then rename it") from None
    except OSError as error:
        hint = "start in a folder you may write to: --cwd DIR"
        raise Failed(f"{link} cannot be made: {error.strerror}", reason="bad_cwd", hint=hint) from None
    return True


def _remove_link(group: Group, link: str) -> None:
    if _link_target(link) == group.folder:
        os.unlink(link)


def _link_target(link: str) -> str | None:
    """Where a link leads, None for whatever is no link."""
    with suppress(OSError):
        return os.readlink(link)
    return None


def _note_path(group: Group, spec: SessionSpec) -> str:
    return os.path.join(group.users, os.path.basename(spec.notes["folder"]))


def _write_note(group: Group, link: str, spec: SessionSpec) -> None:
    note = {"workspace": os.path.realpath(os.path.dirname(link)), "folder": spec.notes["folder"], "pid": os.getpid()}
    write_record(_note_path(group, spec), note | {"since": time.time()})


def _is_used(group: Group, link: str) -> bool:
    """True if a session of the group that lives, or is about to, has this link. Notes of others are dropped."""
    here, used = os.path.realpath(os.path.dirname(link)), False
    for name in os.listdir(group.users) if os.path.isdir(group.users) else ():
        path = os.path.join(group.users, name)
        note = _read_note(path)
        if not _is_living(note):
            with suppress(OSError):
                os.unlink(path)
        elif note["workspace"] == here:
            used = True
    return used


def _read_note(path: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        note = parse_record(read_file(path, NOTE_LIMIT), path)
        if {"workspace", "folder", "pid", "since"} <= note.keys():
            return note
    return {}


def _is_living(note: dict[str, Any]) -> bool:
    if not note:
        return False
    starting = abs(time.time() - note["since"]) < START_SECONDS and is_running(note["pid"])
    return starting or os.path.isdir(note["folder"])


# git


def _hide_from_git(folder: str) -> None:
    """Have git overlook the link, by the repository's own list that is never committed."""
    if not shutil.which("git"):
        return
    inside = _run_git(folder, "rev-parse", "--is-inside-work-tree")
    if "not a git repository" in inside.stderr or inside.stdout == "false\n":
        return
    if inside.returncode:
        raise _git_failed(inside.stderr)
    ignored = _run_git(folder, "check-ignore", "--quiet", "--no-index", LINK)
    if ignored.returncode == 1:
        path = _run_git(folder, "rev-parse", "--git-path", "info/exclude").stdout.removesuffix("\n")
        _add_to_exclude(os.path.join(folder, path))
    elif ignored.returncode:
        raise _git_failed(ignored.stderr)


def _add_to_exclude(path: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags, 0o644), "r+b") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.read()
            if LINK.encode() not in lines.splitlines():
                file.write((b"\n" if lines and not lines.endswith(b"\n") else b"") + LINK.encode() + b"\n")
    except OSError as error:
        hint = f"add {LINK} to another ignore list of git, such as .gitignore"
        raise Failed(f"{path}: {error.strerror}", reason="bad_exclude", hint=hint) from None


def _run_git(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not LOCATION.fullmatch(name)}
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ["git", "-c", "core.fsmonitor=false", *words]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=GIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"git did not answer within {GIT_SECONDS:g} s"
        raise Failed(message, reason="timeout", hint="is the disk or the network slow?") from None


def _git_failed(said: str) -> Failed:
    words = " ".join(line.strip() for line in said.splitlines() if line.strip())
    shown = "".join(letter if letter.isprintable() else "?" for letter in words)
    return Failed(f"git: {shown[:1000]}", reason="git", hint="look at it: git status")
