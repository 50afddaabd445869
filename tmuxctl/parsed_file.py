"""What a file says, read and parsed again only once it was written anew: for a process that reaches hundreds of machines, each of
which is looked up in the same few files."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ParsedFile(Generic[T]):
    """What `parse(PATH)` makes of a file, kept until the file is another one or was changed, its mode and owner too. Of several
    paths the last one is kept. May be used from any thread; while one parses, others wait for what it makes. An error of `parse`
    is raised, and not kept."""

    def __init__(self, parse: Callable[[str], T]) -> None:
        self._parse = parse
        self._kept: tuple[str, object, T] | None = None
        self._parsing = threading.Lock()

    def read(self, path: str) -> T:
        """What is made of the file at this path."""
        found = self._find(path)
        if found is None:
            with self._parsing:
                found = self._find(path)
                if found is None:
                    # before it is read: what is written meanwhile is not missed
                    stamp = stamp_file(path)
                    found = self._kept = path, stamp, self._parse(path)
        return found[2]

    def _find(self, path: str) -> tuple[str, object, T] | None:
        kept = self._kept
        return kept if kept is not None and kept[:2] == (path, stamp_file(path)) else None


def stamp_file(path: str) -> object:
    """What differs once a file was written anew, or the link that it is leads elsewhere; None without one."""
    try:
        found = os.lstat(path)
        target = os.stat(path) if stat.S_ISLNK(found.st_mode) else found
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns, target.st_ino, target.st_size, target.st_mtime_ns, target.st_ctime_ns
