"""End the program after a time, or after a time in which it was idle.

tmux itself keeps the time: no process of ours waits, and no `timeout` stands between the program and its terminal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from tmuxctl.errors import Usage
from tmuxctl.model import SessionSpec, parse_seconds

KIND = "wrap"
ORDER = 100

LONGEST = 365 * 86400.0


def transform(
    spec: SessionSpec,
    *,
    seconds: Annotated[str, "how long it may run: 90, 30s, 5m, 2h, 7d"] = "",
    idle: Annotated[str, "end it after this long without output, input and computation"] = "",
    grace: Annotated[str, "how long it may take to end after TERM, before it is killed (default 3s)"] = "",
) -> SessionSpec:
    """Note the limits for the launcher; of several the shortest counts, of several graces the longest."""
    if not seconds and not idle:
        raise Usage("seconds or idle has to be given", reason="bad_option", hint="timeout=2h, or timeout:idle=30m")
    notes: dict[str, Any] = dict(spec.notes)
    if seconds:
        notes["lifetime"] = _shorter_limit(_parse_limit(seconds, "lifetime"), notes.get("lifetime"))
    if idle:
        notes["idle"] = _shorter_limit(_parse_limit(idle, "idle time"), notes.get("idle"))
    if grace:
        notes["grace"] = max(_parse_grace(grace), notes.get("grace", 0.0))
    return replace(spec, notes=notes)


def example(folder: str) -> dict[str, str]:
    """The options `plugin test` tries it with."""
    return {"seconds": "1h", "idle": "30m", "grace": "5s"}


def _parse_limit(text: str, what: str) -> float:
    limit = parse_seconds(text)
    if not limit or limit > LONGEST:
        raise Usage(
            f"{ascii(text[:40])} is not a valid {what}", reason="bad_duration", hint="more than 0, at most 365d"
        )
    return limit


def _parse_grace(text: str) -> float:
    grace = parse_seconds(text)
    if grace is None or grace > LONGEST:
        raise Usage(
            f"{ascii(text[:40])} is not a valid grace", reason="bad_duration", hint="0 to 365d; it is 3s if not given"
        )
    return grace


def _shorter_limit(limit: float, before: float | None) -> float:
    return limit if before is None else min(limit, before)
