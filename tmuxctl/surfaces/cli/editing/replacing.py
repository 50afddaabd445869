"""A user's own file with another text: whole or not at all, in the file a link leads to, with the owner and mode it has."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from tmuxctl.errors import Conflict, Failed, Usage
from tmuxctl.ownership import make_parents
from tmuxctl.surfaces.cli.editing.json_nodes import settings_error
from tmuxctl.transport.local import LocalTransport, explain_write_errors
from tmuxctl.untrusted import read_file

SIZE_LIMIT = 16 << 20
"""Bytes of a settings file that are read."""


def replace_text(path: str, text: str) -> None:
    """Put the text where the file's is; a file that is not there is made, with its folders. Raises as `explain_write_errors`."""
    target = os.path.realpath(path)
    transport = LocalTransport("")
    with explain_write_errors(path):
        try:
            old = os.stat(target)
        except FileNotFoundError:
            make_parents(target)
            transport.put(target, text.encode(), durable=True)
            return
        mode = stat.S_IMODE(old.st_mode)
        transport.put(target, text.encode(), mode=mode, durable=True)
        with suppress(PermissionError):
            os.chown(target, old.st_uid, old.st_gid)
        os.chmod(target, mode)


def read_settings(path: str) -> str | None:
    """The text of a program's settings, None if there are none. Usage `bad_file` for what is no file, Failed `bad_settings` for
    what is no UTF-8 or too large."""
    try:
        with explain_write_errors(path):
            data = read_file(path, SIZE_LIMIT + 1, follow=True)
        if len(data) > SIZE_LIMIT:
            raise settings_error(path, f"more than {SIZE_LIMIT >> 20} MiB")
        return data.decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        what = "is a folder" if os.path.isdir(path) else f"cannot be read: {error.strerror}"
        raise Usage(f"{path} {what}", reason="bad_file", hint="name a file: --settings FILE") from None
    except UnicodeDecodeError as error:
        raise settings_error(path, f"byte {error.start + 1} is not UTF-8") from None


def replace_settings(path: str, before: str | None, after: str) -> str | None:
    """Put the new text where the old one was. Returns the path of the copy of the old one, None if there was none.

    Conflict `edited` if another program wrote it meanwhile."""
    backup = None
    if before is not None:
        with explain_write_errors(path):
            backup = _write_backup(path, before, stat.S_IMODE(os.stat(path).st_mode))
        if read_settings(path) != before:
            # programs write their settings while they run
            raise Conflict(f"{path} was changed by another program meanwhile", reason="edited", hint="try again")
    replace_text(path, after)
    return backup


def _write_backup(path: str, text: str, mode: int) -> str:
    """Keep the text beside a file, named after it and the time."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(100):
        copy = f"{path}.{stamp}{f'-{number}' if number else ''}.bak"
        try:
            handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode & 0o600)
        except FileExistsError:
            continue
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return copy
    raise Failed(f"{path}: too many copies within one second", reason="bad_file", hint="try again")
