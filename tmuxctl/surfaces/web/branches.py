"""Which git branch a folder is on, read from `.git/HEAD` by a thread of its own: git is never run, as a repository names programs
for it to run."""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Callable, Iterable

from tmuxctl.untrusted import read_file

LEVELS = 24
"""Folders above one that are looked into for its repository."""

FILE_BYTES = 4096
FOLDERS_MOST = 2000
HEAD = re.compile(r"ref: refs/heads/([^\x00-\x20\x7f~^:?*\\\[]{1,120})\n?")
COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\n?")
GIT_FOLDER = re.compile(r"gitdir: (.{1,1000}/\.git/(?:worktrees|modules)/[^\n]{1,1000})\n?")
"""What a `.git` that is a file holds: where the repository of a worktree or a submodule is."""


def read_branch(folder: str) -> str | None:
    """The branch of the repository that a folder is in, the first digits of its commit where it is on none; None outside of one.
    No link is followed in the place of `.git` or `HEAD`, and nothing is told that does not look like a branch."""
    place = find_repository(folder)
    try:
        text = read_file(os.path.join(place, "HEAD"), FILE_BYTES).decode("utf-8", "replace") if place else ""
    except OSError:
        return None
    if found := HEAD.fullmatch(text):
        return found[1] if found[1].isprintable() else None
    return text[:8] if COMMIT.fullmatch(text) else None


def find_repository(folder: str) -> str | None:
    """The folder that has the HEAD of the repository that a folder is in."""
    at = os.path.abspath(folder)
    for _ in range(LEVELS):
        place = os.path.join(at, ".git")
        try:
            mode = os.lstat(place).st_mode
        except OSError:
            mode = 0
        if stat.S_ISDIR(mode):
            return place
        if stat.S_ISREG(mode):
            return _read_pointer(place)
        if at == os.path.dirname(at):
            break
        at = os.path.dirname(at)
    return None


def _read_pointer(path: str) -> str | None:
    try:
        found = GIT_FOLDER.fullmatch(read_file(path, FILE_BYTES).decode("utf-8", "replace"))
    except OSError:
        return None
    return os.path.normpath(os.path.join(os.path.dirname(path), found[1])) if found else None


class Branches:
    """The branches of folders as they were read last. A folder on a file system that hangs holds up the thread that reads, and
    nobody who asks. `told` is called where a branch has changed."""

    def __init__(self, told: Callable[[], None]) -> None:
        self.told = told
        self.known: dict[str, str | None] = {}
        self._wanted: tuple[str, ...] = ()
        self._woken = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def find(self, folder: str | None) -> str | None:
        """The branch of a folder, as far as it is known."""
        return self.known.get(folder) if folder else None

    def renew(self, folders: Iterable[str]) -> None:
        """Have the branches of these folders read again soon."""
        with self._lock:
            self._wanted = tuple(dict.fromkeys(folders))[:FOLDERS_MOST]
            if self._wanted and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tmuxctl-branches", daemon=True)
                self._thread.start()
        self._woken.set()

    def stop(self) -> None:
        """Read no more."""
        with self._lock:
            self._wanted = ()
        self._woken.set()

    def _run(self) -> None:
        while True:
            self._woken.wait()
            self._woken.clear()
            with self._lock:
                wanted = self._wanted
                if not wanted:
                    self._thread = None
                    return
            found = {folder: read_branch(folder) for folder in wanted}
            if found != self.known:
                self.known = found
                self.told()
