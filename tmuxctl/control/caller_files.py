"""What a caller names on its own machine: files, and places that hold a secret."""

from __future__ import annotations

import os

from tmuxctl.errors import Usage
from tmuxctl.terminal.input import paste

SECRET_LIMIT = 4000


def read_given_file(file: str) -> bytes:
    """What a file holds that the caller names, up to one byte more than one write may have; Usage `bad_file`."""
    try:
        with open(os.path.expanduser(file), "rb") as handle:
            return handle.read(paste.SIZE_LIMIT + 1)
    except OSError as error:
        raise Usage(f"{ascii(file)} cannot be read: {error.strerror}", reason="bad_file", hint="name a file") from None


def read_secret(env: str | None, file: str | None, fd: int | None) -> bytes | None:
    """A secret from the one place named: a variable, a file's first line, a descriptor. None if none is."""
    if (env, file, fd).count(None) < 2:
        hint = "--secret-from-env, --secret-from-file or --secret-from-fd"
        raise Usage("name one place for the secret", reason="bad_option", hint=hint)
    try:
        if env is not None:
            found = os.environb[env.encode()]
        elif file is not None:
            with open(os.path.expanduser(file), "rb") as handle:
                found = handle.readline(SECRET_LIMIT + 1)
        elif fd is not None:
            with os.fdopen(fd, "rb", closefd=False) as handle:
                found = handle.read(SECRET_LIMIT + 1)
        else:
            return None
    except (KeyError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such variable"
        hint = "set the variable, or name a file or descriptor that can be read"
        raise Usage(f"the secret cannot be read: {reason}", reason="no_secret", hint=hint) from None
    line = found.rstrip(b"\r\n")
    if not line or len(line) > SECRET_LIMIT or b"\n" in line or b"\r" in line or b"\0" in line:
        hint = f"one line of at most {SECRET_LIMIT} bytes"
        raise Usage("the secret is empty, too long, or more than one line", reason="bad_secret", hint=hint)
    return line
