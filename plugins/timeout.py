"""End the program after a while, however busy it is.

tmux itself keeps the time: no process of ours waits, and no `timeout` stands between the program and its terminal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from tmuxctl.errors import Usage
from tmuxctl.model import SessionSpec, parse_seconds

KIND = "wrap"
ORDER = 100

LONGEST = 365 * 86400.0


def transform(spec: SessionSpec, *, seconds: Annotated[str, "how long it may run: 90, 30s, 5m, 2h, 7d"]) -> SessionSpec:
    """Note the lifetime for the launcher; the shortest of several counts."""
    lifetime = parse_seconds(seconds)
    if not lifetime or lifetime > LONGEST:
        raise Usage(f"{ascii(seconds[:40])} is no lifetime", reason="bad_duration", hint="more than 0, at most 365d")
    sooner = min(lifetime, spec.notes.get("lifetime", lifetime))
    return replace(spec, notes={**spec.notes, "lifetime": sooner})
