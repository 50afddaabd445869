"""Every failure a caller can act on.

    TmuxctlError
      Failed            1    refused or failed for a reason of its own
      Usage             2    a bad option, name, duration, pattern or file
      NotFound          3    no such session, machine, profile or plugin
      Conflict          4    exists already, busy, or another writer is typing
      Exited            5    the program ended too early
      DecisionNeeded    6    the program wants a decision before it goes on (code `asking`)
      Unreachable       7    machine, tmux server or socket cannot be reached
      Denied            8    token, policy or read-only forbids it
      Timeout         124    timed out; the session goes on

`code` is the word of the class, `reason` the finer one (`exists`, `bad_key`, `input_off`, `human`, `no_ptys`,
`outcome_unknown`, ...). A message says what happened and to what; `hint` says what would work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

SHOWN_ROWS = 10
"""How many rows of a screen a message shows."""


class TmuxctlError(Exception):
    """A failure with its code, reason, hint, exit status and HTTP status."""

    code: ClassVar[str] = "failed"
    exit: ClassVar[int] = 1
    http_status: ClassVar[int] = 422
    session: str | None = None
    """The name of the session that is meant, where the library knows it."""
    screen: str | None = None
    """What stood on its screen then, as text."""
    cursor: str | None = None
    """How far its output had come."""

    def __init__(self, message: str, *, reason: str = "", hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.code
        self.hint = hint
        self.details = details

    def __str__(self) -> str:
        """The message, and the last rows of the screen behind it where that is known."""
        rows = (self.screen or "").rstrip().split("\n")[-SHOWN_ROWS:]
        return self.message if self.screen is None else "\n".join([self.message, *(f"  | {row}" for row in rows)])

    def to_json(self) -> dict[str, Any]:
        """The error object of the documented surface, without its outer `error` key."""
        return {
            "code": self.code,
            "reason": self.reason,
            "message": self.message,
            "hint": self.hint or None,
            "exit": self.exit,
            "details": self.details or None,
        }


class Failed(TmuxctlError):
    """Refused, or failed for a reason of its own."""


class Usage(TmuxctlError):
    """A bad option, name, duration, pattern, key or file."""

    code, exit, http_status = "usage", 2, 400


class NotFound(TmuxctlError):
    """No such session, machine, profile or plugin."""

    code, exit, http_status = "not_found", 3, 404


class Conflict(TmuxctlError):
    """It exists already, is busy, or a person is typing."""

    code, exit, http_status = "conflict", 4, 409


class Exited(TmuxctlError):
    """The program ended while it was needed."""

    code, exit, http_status = "exited", 5, 410


class DecisionNeeded(TmuxctlError):
    """The program wants a decision before it can go on."""

    code, exit, http_status = "asking", 6, 409


class Unreachable(TmuxctlError):
    """The machine, tmux server or socket cannot be reached, or the outcome cannot be known."""

    code, exit, http_status = "unreachable", 7, 503


class Denied(TmuxctlError):
    """A token, a policy or read-only forbids it."""

    code, exit, http_status = "denied", 8, 403


class Timeout(TmuxctlError, TimeoutError):
    """The time given was not enough. What was seen so far is in `details`; the session goes on."""

    code, exit, http_status = "timeout", 124, 408


CLASSES: tuple[type[TmuxctlError], ...] = (
    Failed, Usage, NotFound, Conflict, Exited, DecisionNeeded, Unreachable, Denied, Timeout
)  # fmt: skip


def from_json(error: Mapping[str, Any]) -> TmuxctlError:
    """The error a remote call reported, as the class it was raised with there."""
    kind = next((kind for kind in CLASSES if kind.code == error.get("code")), Failed)
    details = error.get("details") or {}
    return kind(error["message"], reason=error.get("reason", ""), hint=error.get("hint") or "", **details)
