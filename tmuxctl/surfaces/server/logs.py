"""What the server writes down: a line for each request, and an append-only line for each call that changes something.

Neither has a text, a secret or anything of a screen in it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from tmuxctl.errors import TmuxctlError
from tmuxctl.ownership import make_parents
from tmuxctl.state_files import append_line, make_private_folder, state_home

if TYPE_CHECKING:
    from tmuxctl.access import CallerAccess

AUDIT_BYTES = 16 << 20
"""Bytes of the audit log before it becomes `audit.log.1`, in the place of an older one."""


class RequestLog:
    """A line of JSON for each request: time, id, method, path without its query, status, seconds, and the token's name."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def note(self, scope: Mapping[str, Any], status: int, seconds: float) -> None:
        """Write down how a request ended. Of a reader of ours that has gone away nothing is said."""
        if self.stream is None:
            return
        access = scope.get("tmuxctl.access")
        line = {
            "time": format_time(),
            "request": scope.get("tmuxctl.request"),
            "method": scope.get("method", "WS"),
            "path": ascii(scope["path"][:200])[1:-1],
            "status": status,
            "seconds": round(seconds, 4),
            "token": access.token if access else None,
        }
        try:
            self.stream.write(json.dumps(line) + "\n")
            self.stream.flush()
        except (OSError, ValueError):
            self.stream = None

    def note_bug(self, scope: Mapping[str, Any], error: Exception) -> None:
        """Write where a failure of the server's own came from to standard error."""
        if sys.stderr is not None:
            sys.stderr.write(f"tmuxctl serve: internal error in request {scope.get('tmuxctl.request')}\n")
            traceback.print_exception(error, file=sys.stderr)


class AuditLog:
    """The file of calls that change something: `audit.log` in the server's state folder."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder or os.path.join(state_home(), "tmuxctl", "serve")
        self.path = os.path.join(self.folder, "audit.log")
        self._lock = threading.Lock()
        self._told = False

    def note(self, access: CallerAccess, request: str, operation: str, session: str | None, result: str) -> None:
        """Append a line: when, who, which session, which operation, and how it ended. The first line that cannot be written is
        told on standard error."""
        line = {
            "time": format_time(),
            "request": request,
            "by": f"{access.kind} {access.token}"
            if access.token
            else "remote"
            if access.remote
            else f"user {os.geteuid()}",
            "session": session,
            "operation": operation,
            "result": result,
        }
        with self._lock:
            try:
                make_parents(self.folder)
                make_private_folder(self.folder)
                append_line(self.path, json.dumps(line).encode(), AUDIT_BYTES)
                self._told = False
            except (OSError, TmuxctlError) as error:
                if not self._told and sys.stderr is not None:
                    sys.stderr.write(f"tmuxctl serve: {self.path} cannot be written: {error}\n")
                self._told = True


def format_time() -> str:
    """Now, as ISO 8601 in UTC with milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"


def standard_error() -> TextIO | None:
    """Where the log goes."""
    return sys.stderr
