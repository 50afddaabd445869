"""`__main__` of the one-file form: runs the command, and keeps its compiled modules in the user's cache folder.

Python compiles each module of a zip anew in every process. The first run that loads a module keeps its code; see
docs/adr/0038-the-one-file-form-keeps-what-it-compiled.md. Only modules that Python has loaded anyway are imported here.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
import time
import zipimport
from types import CodeType

DIGEST = "@DIGEST@"
"""Of this file and all others in the zip."""

OLD_SECONDS = 30 * 86400
"""Code that another version or Python kept is removed when it is this old; it is made again where it is still used."""


class Importer(zipimport.zipimporter):
    """Finds modules in the zip, and their code in what was kept."""

    kept: dict[str, bytes] = {}  # noqa: RUF012
    grown = False

    def get_filename(self, fullname: str) -> str:
        """The path of a module, which Python's own importer compiles it for."""
        end = "/__init__.py" if self.is_package(fullname) else ".py"
        return f"{self.archive}/{self.prefix}{fullname.rpartition('.')[2]}{end}"

    def get_code(self, fullname: str) -> CodeType:
        """The code of a module, compiled only where it was not kept."""
        try:
            code = marshal.loads(self.kept[fullname])
            if isinstance(code, CodeType):
                return code
        except (KeyError, ValueError, EOFError, TypeError):
            pass
        code = super().get_code(fullname)
        self.kept[fullname] = marshal.dumps(code)
        Importer.grown = True
        return code


def main() -> int:
    """Run the command; returns the exit status."""
    path = cache_path()
    Importer.kept = load(path)
    sys.path_hooks[:] = [Importer if hook is zipimport.zipimporter else hook for hook in sys.path_hooks]
    sys.path_importer_cache.pop(sys.path[0], None)
    from tmuxctl.surfaces import cli

    try:
        return cli.run()
    finally:
        if Importer.grown and path and not sys.dont_write_bytecode:
            save(path, Importer.kept)


def cache_path() -> str:
    """Where the code of these modules is kept for this Python; empty where there is no place for it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            return ""
        base = os.path.join(home, ".cache")
    name = f"one-file-{DIGEST}-{sys.implementation.cache_tag}-{sys.hexversion:x}-{sys.flags.optimize}"
    return os.path.join(os.path.realpath(base), "tmuxctl", name)


def load(path: str) -> dict[str, bytes]:
    """What was kept; nothing where it is not there, is damaged, or others could have changed it."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if stat.S_ISREG(found.st_mode) and is_ours(found) and is_safe(os.path.dirname(path)):
                kept = marshal.loads(file.read())
                return kept if isinstance(kept, dict) else {}
    except (OSError, ValueError, EOFError, TypeError):
        pass
    return {}


def save(path: str, kept: dict[str, bytes]) -> None:
    """Keep these, whole or not at all; where that is not possible or not safe, nothing is kept."""
    folder = os.path.dirname(path)
    temporary = f"{folder}/new-{os.urandom(8).hex()}"
    try:
        if not make_folder(folder):
            return
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(marshal.dumps(kept))
            file.flush()
            # a name that outlives a power failure without its content would stop every later run
            os.fsync(file.fileno())
        os.replace(temporary, path)
        remove_old(folder)
    except OSError:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def make_folder(folder: str) -> bool:
    """Make the folder and those above it, each for us alone; False where others could change what is there."""
    if os.path.isdir(folder):
        return is_safe(folder) and os.stat(folder).st_uid == os.geteuid()
    above = os.path.dirname(folder)
    if not make_folder(above):
        return False
    os.mkdir(folder, 0o700)
    return True


def remove_old(folder: str) -> None:
    """Remove what was kept long ago."""
    before = time.time() - OLD_SECONDS
    for entry in os.scandir(folder):
        if entry.name.startswith(("one-file-", "new-")) and entry.stat(follow_symlinks=False).st_mtime < before:
            os.unlink(entry.path)


def is_ours(found: os.stat_result) -> bool:
    """Whether a file is ours, and nobody else may write it."""
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def is_safe(path: str) -> bool:
    """Whether a folder and all above it can be changed by root and us alone. `path` has no links; one that took the place of a
    folder since is none."""
    owners = {0, os.geteuid(), os.lstat("/").st_uid}
    while path != "/":
        found = os.lstat(path)
        open_to_others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners or open_to_others:
            return False
        path = os.path.dirname(path)
    return True


if __name__ == "__main__":
    status = main()
    from tmuxctl.surfaces.cli import leave

    sys.exit(leave(status))
