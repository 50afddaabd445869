"""What a program in a sandbox has of the machine: everything that differs from reading it as it is."""

from __future__ import annotations

import glob
import os
import pwd
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from tmuxctl.errors import Usage
from tmuxctl.model import SessionSpec
from tmuxctl.state_files import state_home
from tmuxctl.untrusted import read_file

PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm", "/home", "/root", "/Users", "/private/var/folders")
"""Folders of which the program gets empty ones of its own, as it does of your home."""

SECRET = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh/ssh_host_*_key",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
)
"""What root may read even without a single capability. A copy that passwd(1) has for a moment is not waited for."""

KERNEL = ("/dev", "/proc", "/sys")

SETTLED_SECONDS = 10.0
"""The age at which a socket is taken for one that stays."""


class Access(Enum):
    """What the program has of a path."""

    READ = "read"
    WRITE = "write"
    PRIVATE = "an empty folder of its own"
    NOTHING = "nothing"


class Part(NamedTuple):
    """What the program has of one path: what lies at `source` (the path itself, if empty); `optional` if that may be missing."""

    access: Access
    source: str = ""
    optional: bool = False


READ, WRITE, EMPTY, NOTHING = (Part(access) for access in Access)

View = dict[str, Part]
"""By physical path: of several that hold a path the longest counts, and where there is none the program may read."""


def machine_view(spec: SessionSpec) -> View:
    """What every program in a sandbox has: no homes, no temporary files, no passwords, nothing of tmux."""
    # the whole folder of tmux's folder: made anew outside, that one would be seen again (a mount goes with its place)
    view = dict.fromkeys([*private_folders(), *home_folders(), *_tmux_folder()], EMPTY) | _secret_files()
    return view | home_inside(spec, view) | secret_view(spec)


def private_folders() -> Iterator[str]:
    """The folders that are hidden, as far as they are there."""
    places = [*PRIVATE, *(os.environ.get(f"XDG_{word}_HOME", "") for word in ("CONFIG", "DATA", "CACHE", "STATE"))]
    yield from (os.path.realpath(path) for path in places if os.path.isabs(path) and os.path.isdir(path))


def _tmux_folder() -> Iterator[str]:
    """Where tmux keeps its sockets, if you say so."""
    path = os.path.realpath(os.environ.get("TMUX_TMPDIR") or "/tmp")
    if path != "/" and os.path.isdir(path):
        yield path


def home_folders() -> Iterator[str]:
    """Your home, as you call it and as the machine does."""
    named = [os.path.expanduser("~")]
    with suppress(KeyError):
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    paths = (os.path.realpath(home) for home in named if os.path.isabs(home) and os.path.isdir(home))
    yield from (path for path in paths if path != "/")


def home_inside(spec: SessionSpec, view: View) -> View:
    """An empty home where the program will look for it, unless it lies in what the program was given."""
    home, real = (way(spec.env.get("HOME", "/")) for way in (os.path.normpath, os.path.realpath))
    places = [path for path in {home, real} - {"/"} if hidden(view, path) or (path == real and os.path.isdir(path))]
    return {path: EMPTY for path in places if access(view, path) is not Access.WRITE}


def state_folder() -> str:
    """Where tmuxctl keeps its own, whatever server a session is on."""
    return os.path.realpath(os.path.join(state_home(), "tmuxctl"))


def secret_view(spec: SessionSpec) -> View:
    """What nobody may be given: whoever reaches a socket of tmux is out of the sandbox."""
    temporary, states = os.environ.get("TMUX_TMPDIR") or "/tmp", [state_folder()]
    if folder := spec.notes.get("folder"):
        states.append(os.path.dirname(os.path.dirname(os.path.realpath(folder))))
    paths = {path for path in states if os.path.isdir(path)}
    if os.path.isdir(temporary):
        paths.add(os.path.join(os.path.realpath(temporary), f"tmux-{os.getuid()}"))
    caller = os.path.realpath(os.environ.get("TMUX", "").partition(",")[0])
    asking = {caller: NOTHING} if os.path.exists(caller) and stat.S_ISSOCK(os.stat(caller).st_mode) else {}
    return asking | dict.fromkeys(paths, EMPTY)


def _secret_files() -> View:
    paths = [path for pattern in SECRET for path in glob.glob(pattern) if os.access(path, os.R_OK)]
    return {path: EMPTY if os.path.isdir(path) else NOTHING for path in paths}


def socket_view(view: View) -> View:
    """What hides the sockets of services, as far as the view shows them for reading."""
    return {path: NOTHING for path in _listening_sockets() if access(view, path) is Access.READ}


def _listening_sockets() -> Iterator[str]:
    """Where something listens that could be told to do things. One that has just come may go before it is hidden, and then
    nothing would start: only those that stay."""
    with suppress(OSError), open("/proc/net/unix", errors="surrogateescape") as table:
        paths = {line.rstrip("\n").split(" ", 7)[-1].lstrip() for line in table}
        for path in sorted(path for path in paths if path.startswith("/") and os.access(path, os.W_OK)):
            with suppress(FileNotFoundError):
                if os.stat(path).st_mtime < time.time() - SETTLED_SECONDS:
                    yield os.path.realpath(path)


# what may be given


def refuse_reason(path: str, hiding: Iterable[str], kept: Iterable[str]) -> str | None:
    """Why a path cannot be given as it is, or None. `hiding` are hidden folders, `kept` those that hold what is tmuxctl's."""
    if path == "/":
        return "it is the whole machine"
    if any(is_within(path, folder) for folder in KERNEL):
        return "it is the kernel's"
    if path in hiding:
        return "it holds what a sandbox hides"
    if any(is_within(path, folder) and not is_within(path, f"{folder}/worktrees") for folder in kept):
        return "tmuxctl keeps its own there"
    return None


def parse_bind(text: str, spec: SessionSpec) -> tuple[str, Part]:
    """A path and what is given of it, from `PATH` or `ro:PATH`. Usage if it is not there, or a program may have chosen it."""
    given = text.removeprefix("ro:")
    path = os.path.join(spec.cwd, os.path.expanduser(given))
    if not given or not os.path.exists(path):
        hint = "write PATH or ro:PATH; a path that begins with ro: as ./ro:"
        raise Usage(f"there is no {ascii(given)} to bind", reason="bad_option", hint=hint)
    return resolve_links(path), WRITE if given == text else READ


def resolve_links(path: str) -> str:
    """The path without links. Usage `bad_path` for a link that lies where a program in a sandbox can write, or could once:
    it chose where that leads."""
    written = None
    done, left, followed = "/", path.split("/"), 0
    while left:
        name = left.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            done = os.path.dirname(done)
            continue
        step = os.path.join(done, name)
        if not os.path.islink(step):
            done = step
            continue
        written = _read_written() if written is None else written
        followed += 1
        if followed > 40 or any(is_within(done, folder) for folder in written):
            hint = f"look at it: ls -l {step}; then name where it leads"
            message = f"{ascii(step)} is a link in a folder that programs in a sandbox can write"
            raise Usage(message, reason="bad_path", hint=hint)
        target = os.readlink(step)
        done, left = "/" if target.startswith("/") else done, [*target.split("/"), *left]
    return done


def remember_written(view: View) -> None:
    """Write down which folders a program in a sandbox may write, for `physical`."""
    known = set(_read_written())
    paths = [path for path, part in view.items() if part.access is Access.WRITE and not part.source]
    folder = os.path.join(state_folder(), "sandboxes")
    for path in paths:
        if not any(is_within(path, other) for other in known) and os.path.isdir(path):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            known.add(path)
            # a name that two who start at once choose alike
            name = f"{os.stat(path).st_dev:x}-{os.stat(path).st_ino:x}"
            with open(
                os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w"
            ) as file:
                file.write(path)


def _read_written() -> list[str]:
    """The folders that programs in a sandbox could ever write, as far as they are still there."""
    folder, paths = os.path.join(state_folder(), "sandboxes"), []
    with suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            path = os.fsdecode(read_file(entry.path, 4096))
            if os.path.isdir(path):
                paths.append(path)
            else:
                os.unlink(entry.path)
    return paths


# reading a view


def access(view: View, path: str) -> Access:
    """What the program has of a path."""
    holding = [place for place in view if is_within(path, place)]
    return view[max(holding, key=len)].access if holding else Access.READ


def hidden(view: View, path: str) -> bool:
    """True if the program does not see what lies there."""
    return access(view, path) in (Access.PRIVATE, Access.NOTHING)


def is_within(path: str, folder: str) -> bool:
    """True if the path is the folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
