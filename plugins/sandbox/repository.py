"""The repository that a folder belongs to, and what of the folder git outside would obey."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tmuxctl.errors import Failed
from tmuxctl.untrusted import read_file

from .bubblewrap import system_program
from .view import READ, WRITE, View, is_within

SETTINGS_SECONDS = 10.0
SEARCH_SECONDS, MOST_REPOSITORIES = 20.0, 300
"""How long repositories below a workspace are looked for, and how many of them are guarded."""

UNFINISHED = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}
"""What git leaves in its folder while no branch is checked out: the end of that could not be brought back."""

WORDS = re.compile(r"""[^\s"'`();|&<>={}:$]+""")
"""What may be the path of a program in a setting that a shell runs."""

Setting = tuple[str, str, str]
"""The file, the key and the value."""


class Repository(NamedTuple):
    """A repository: its working tree's top, the folder of that tree's own facts, and the one that all its trees share."""

    top: str
    folder: str
    common: str
    settings: tuple[Setting, ...] = ()

    @property
    def linked(self) -> bool:
        """True for a working tree beside the one that the repository was made with."""
        return self.folder != self.common

    def author(self) -> dict[str, str]:
        """Who commits, as variables of git: the file that says so is hidden."""
        known = {key: value for _, key, value in self.settings}
        wanted = ((who, what) for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL"))
        return {
            f"GIT_{who}_{what}": known[f"user.{what.lower()}"]
            for who, what in wanted
            if f"user.{what.lower()}" in known
        }


def find(folder: str) -> Repository | None:
    """The repository that git would find from a physical path, if it says of itself that it belongs there: a `.git` file
    could name any. Failed `git` if its settings cannot be read: what git obeys would be unknown."""
    while True:
        dot = os.path.join(folder, ".git")
        if not os.path.islink(dot) and os.path.isfile(dot):
            found = _read_git_file(folder, dot)
            return _read_settings(found) if found and _is_repository_folder(found.common) else None
        if _is_repository_folder(dot):
            return _read_settings(Repository(folder, dot, dot))
        if folder == "/":
            return None
        folder = os.path.dirname(folder)


def _read_git_file(top: str, dot: str) -> Repository | None:
    """The repository that a `.git` file names: of a worktree if that is registered there, of a submodule if it says so."""
    folder = os.path.realpath(os.path.join(top, _read_beginning(dot).removeprefix("gitdir:").strip()))
    if is_within(folder, top):  # whoever writes there could name any folder
        return None
    if os.path.basename(os.path.dirname(folder)) == "worktrees":
        back = _read_beginning(os.path.join(folder, "gitdir")).strip()
        common = os.path.dirname(os.path.dirname(folder))
        return Repository(top, folder, common) if back and os.path.realpath(back) == dot else None
    config = _read_beginning(os.path.join(folder, "config"))
    back = "".join(re.findall(r'(?m)^\s*worktree\s*=\s*"?(.*?)"?\s*$', config)[-1:])
    right = back and os.path.realpath(os.path.join(folder, back)) == top
    return Repository(top, folder, folder) if right else None


def _is_repository_folder(folder: str) -> bool:
    """True if the folder itself, and not what a link in it leads to, is one that git takes for a repository."""
    kinds = [(f"{folder}/{name}", stat.S_ISREG) for name in ("HEAD", "config")]
    kinds += [(f"{folder}/{name}", stat.S_ISDIR) for name in (".", "objects", "refs")]
    try:
        return not os.path.islink(folder) and all(is_kind(os.lstat(path).st_mode) for path, is_kind in kinds)
    except OSError:
        return False


def _read_beginning(path: str) -> str:
    """The beginning of a file that a program may have put there."""
    try:
        return os.fsdecode(read_file(path, 1 << 16))
    except OSError:
        return ""


def _read_settings(repository: Repository) -> Repository:
    """The repository with its settings as git reads them; that runs nothing of the repository's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [system_program("git"), "-C", repository.top, "config", "--list", "--show-origin", "-z"]
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=SETTINGS_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        if not command[0]:
            return repository
        words = getattr(error, "stderr", None) or str(error).encode()
        message = f"the settings of the repository {ascii(repository.top)} cannot be read: {_last_line(words)}"
        hint = f"look at it: git -C {repository.top} config --list --show-origin"
        raise Failed(message, reason="git", hint=hint) from None
    words = os.fsdecode(done.stdout).split("\0")
    pairs = zip(words[::2], (setting.partition("\n") for setting in words[1::2]), strict=False)
    return repository._replace(
        settings=tuple((file.removeprefix("file:"), key, value) for file, (key, _, value) in pairs)
    )


def _last_line(words: bytes) -> str:
    text = words.decode(errors="replace").strip().rpartition("\n")[2]
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]


# what git outside obeys and the program could write


def guarded_view(workspace: str, repository: Repository | None) -> View:
    """What of a workspace the program may only read, though it writes there: files and folders that git outside takes
    settings or programs from, and the repositories below.

    A mount keeps its own place from being renamed, and not the folders above it: each of these is mounted on itself.
    Failed if a file that the settings name is not there: whoever made it would be obeyed.
    """
    paths = {path for path in _find_nested(workspace) if not repository or path != f"{repository.top}/.git"}
    below = (find(os.path.dirname(path)) for path in list(paths) if os.path.basename(path) == ".git")
    for other in (repository, *below):
        paths |= set(_list_obeyed(other, workspace)) if other else set()
    if repository and (repository.linked or not os.path.isdir(f"{repository.top}/.git")):
        paths |= {f"{repository.top}/.git"}
    outermost = {path for path in paths if not any(is_within(path, other) and path != other for other in paths)}
    view: View = {}
    for path in outermost:
        above = os.path.dirname(path)
        while is_within(above, workspace) and above != workspace:
            view.setdefault(above, WRITE)
            above = os.path.dirname(above)
    return view | dict.fromkeys(outermost, READ)


def _list_obeyed(repository: Repository, workspace: str) -> Iterator[str]:
    """Files and folders of the workspace that the settings name: more settings, hooks, programs."""
    top = repository.top
    with suppress(OSError):
        yield from _within_workspace(workspace, os.path.realpath(f"{repository.common}/hooks"))
        for entry in os.scandir(f"{repository.common}/hooks"):
            yield from _within_workspace(workspace, os.path.realpath(entry.path))
    for file, key, value in repository.settings:
        beside = os.path.dirname(os.path.join(top, file))
        yield from _within_workspace(workspace, os.path.join(top, file))
        if key == "core.hookspath":
            yield from _within_workspace(workspace, os.path.join(top, os.path.expanduser(value)), make=True)
        elif key == "include.path" or (key.startswith("includeif.") and key.endswith(".path")):
            yield from _within_workspace(workspace, os.path.join(beside, os.path.expanduser(value)), wanted=key)
        elif len(value) < 4096 and "/" in value:
            for word in {value, *WORDS.findall(value.replace("$PWD/", "./"))}:
                path = os.path.join(top, os.path.expanduser(word.lstrip("-")))
                yield from _within_workspace(workspace, path, only_file="PATH=" not in value)


def _within_workspace(
    workspace: str, path: str, *, make: bool = False, wanted: str = "", only_file: bool = False
) -> Iterator[str]:
    """The path, if it lies in the workspace and no link leads elsewhere."""
    path = os.path.normpath(path)
    if not is_within(path, workspace) or path == workspace or is_within(path, f"{workspace}/.git"):
        return
    if not os.path.lexists(path):
        if wanted:
            message = f"the setting {wanted} names {ascii(path)}, which does not exist: git would obey what a program puts there"
            raise Failed(message, reason="git", hint=f"make it, empty: touch {path}; or take the setting out")
        if not make:
            return
        _make_folders(workspace, path)
    if os.path.realpath(path) == path and (os.path.isfile(path) or not only_file):
        yield path


def _make_folders(top: str, path: str) -> None:
    """Make an empty folder of this path below the top, following no link."""
    descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in os.path.relpath(path, top).split("/"):
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=descriptor)
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
    except OSError as error:
        message = f"the folder of hooks {ascii(path)} cannot be made: {error.strerror}"
        raise Failed(message, reason="git", hint="look at it, or take core.hooksPath out of the settings") from None
    finally:
        os.close(descriptor)


def _find_nested(workspace: str) -> list[str]:
    """The `.git` of each repository below a folder. Failed if they are too many, or the folder too large to look at."""
    found: list[str] = []
    folders, until = [workspace], time.monotonic() + SEARCH_SECONDS
    while folders:
        if time.monotonic() > until or len(found) > MOST_REPOSITORIES:
            what = f"more than {MOST_REPOSITORIES} repositories" if len(found) > MOST_REPOSITORIES else "too many files"
            message = f"{ascii(workspace)} holds {what} to guard the settings of each repository in it"
            raise Failed(message, reason="too_large", hint="work in a smaller folder: --cwd DIR")
        try:
            entries = list(os.scandir(folder := folders.pop()))
        except OSError:
            continue
        dots = [entry for entry in entries if entry.name == ".git" and not entry.is_symlink()]
        found += [entry.path for entry in dots if folder != workspace or not entry.is_dir(follow_symlinks=False)]
        found += _bare_repository(folder, entries) if folder != workspace else []
        folders += [entry.path for entry in entries if entry.name != ".git" and entry.is_dir(follow_symlinks=False)]
    return found


def _bare_repository(folder: str, entries: list[os.DirEntry[str]]) -> list[str]:
    """The folder itself, if it is a repository without a working tree."""
    return [folder] if {"HEAD", "objects", "refs", "config"} <= {entry.name for entry in entries} else []


def find_unfinished(repository: Repository) -> str | None:
    """What is under way in the working tree whose end could not be brought back, in words."""
    found = (what for name, what in UNFINISHED.items() if os.path.lexists(os.path.join(repository.folder, name)))
    return next(found, None)
