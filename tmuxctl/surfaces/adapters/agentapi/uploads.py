"""Files that are given to a session: in a folder of its own, where they end with it.

What a caller names and what a program may have put there is not trusted: names are checked, links are not followed, and number
and size have a limit.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress

from tmuxctl.errors import Denied, Failed
from tmuxctl.surfaces.adapters.agentapi.problems import InvalidRequest
from tmuxctl.value import Value

FILE_BYTES = 10 << 20
"""Bytes of a file at most, as in agentapi."""

ALL_BYTES = 200 << 20
FILES = 200
"""What the files of a session may have together."""

NAME_BYTES = 200
FOLDER = "uploads"
ANY_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UploadFull(Failed):
    """A session has as many files as it may have, or as many bytes."""

    http_status = 507


class UploadTooLarge(Failed):
    """A file with more bytes than one may have; agentapi answers so."""

    http_status = 400


class _Used(Value):
    files: int
    bytes: int


def too_large() -> UploadTooLarge:
    """What is said of a file that is too large."""
    hint = f"it may have {FILE_BYTES} bytes"
    return UploadTooLarge("file size exceeds 10MB limit", reason="too_large", hint=hint)


def clean_name(given: str | None) -> str:
    """The last part of the name that a caller gave a file. InvalidRequest for one that cannot be a file's."""
    name = (given or "").replace("\\", "/").rpartition("/")[2]
    fine = name not in ("", ".", "..") and name.isprintable() and not name.startswith("-")
    try:
        fine = fine and len(name.encode()) <= NAME_BYTES
    except UnicodeEncodeError:
        fine = False
    if not fine:
        hint = f"at most {NAME_BYTES} bytes, without control characters and - at the beginning"
        raise InvalidRequest(
            "the file has no name that can be used", reason="bad_name", hint=hint, location="body.file"
        )
    return name


def save(folder: str, name: str, data: bytes) -> str:
    """Write a file below a session's folder, where it has a folder of its own by its content; its path. The same file again is
    one file."""
    place = hashlib.sha256(data).hexdigest()[:16]
    try:
        outer = os.open(folder, ANY_FOLDER)
        try:
            uploads = _enter(outer, FOLDER)
        finally:
            os.close(outer)
        try:
            _write(uploads, place, name, data)
        finally:
            os.close(uploads)
    except OSError as error:
        why = f"the file cannot be kept: {error.strerror}"
        raise Failed(why, reason="not_saved", hint="is the disk full?") from None
    return os.path.join(folder, FOLDER, place, name)


def _write(uploads: int, place: str, name: str, data: bytes) -> None:
    used = _count(uploads)
    if used.files >= FILES or used.bytes + len(data) > ALL_BYTES:
        hint = f"a session may have {FILES} files, and {ALL_BYTES} bytes in them; they end with it"
        raise UploadFull("the session has too many files", reason="full", hint=hint)
    inner = _enter(uploads, place)
    try:
        try:
            handle = _create(inner, name)
        except FileExistsError:
            # it was given before, or a program has put something there
            os.unlink(name, dir_fd=inner)
            handle = _create(inner, name)
        with open(handle, "wb") as file:
            file.write(data)
    finally:
        os.close(inner)


def _create(folder: int, name: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, 0o600, dir_fd=folder)


def _enter(parent: int, name: str) -> int:
    """A descriptor of a folder in another, which is made unless it is there. Denied for one that is not ours alone."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    try:
        folder = os.open(name, ANY_FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise _not_ours() from None
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        os.close(folder)
        raise _not_ours()
    return folder


def _not_ours() -> Denied:
    hint = "somebody has put something else in its place"
    return Denied("the session's folder of files is not ours", reason="bad_folder", hint=hint)


def _count(uploads: int) -> _Used:
    files = size = 0
    for place in os.listdir(uploads):
        try:
            inner = os.open(place, ANY_FOLDER, dir_fd=uploads)
        except OSError:
            files += 1
            continue
        try:
            for name in os.listdir(inner):
                files += 1
                size += os.stat(name, dir_fd=inner, follow_symlinks=False).st_size
        finally:
            os.close(inner)
    return _Used(files, size)
