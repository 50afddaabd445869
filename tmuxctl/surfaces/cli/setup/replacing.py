"""A user's own file with another text: whole or not at all, in the file a link leads to, with the owner and mode it has."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from tmuxctl.ownership import make_parents
from tmuxctl.transport.local import LocalTransport, explain_write_errors


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
