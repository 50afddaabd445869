"""How many sessions are at work and how many need somebody, in one line for status bars and prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tmuxctl.control.lifecycle import listing
from tmuxctl.model import Session, State
from tmuxctl.results import StatusLine

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


def status(machine: Machine, form: str) -> StatusLine:
    """The line in the form `plain`, `tmux` (with its styles) or `json` (an object as bars read it); empty, except as `json`,
    where no session is busy or needs anybody."""
    sessions = listing.ls(machine).sessions
    asking = [one for one in sessions if wants_somebody(one)]
    busy = sum(one.state is State.BUSY for one in sessions)
    return StatusLine(
        _format_json(busy, asking) if form == "json" else _join_counts(busy, len(asking), MARKUP[form]),
        busy=busy,
        asking=tuple(one.name for one in asking),
        sessions=len(sessions),
    )


def wants_somebody(session: Session) -> bool:
    """Whether a session waits for what only somebody who reads its screen can give."""
    return session.wants == "input"


MARKUP: Mapping[str, str] = {"plain": "!{}", "tmux": "#[bold]!{}#[nobold]"}
"""How the number of sessions that need somebody is written. Nothing that a program chose is in a line."""


def _join_counts(busy: int, asking: int, markup: str) -> str:
    return "  ".join([*([f"{busy} busy"] if busy else []), *([markup.format(asking)] if asking else [])])


def _format_json(busy: int, asking: Sequence[Session]) -> str:
    """What waybar (`text`, `tooltip`, `class`), i3blocks and i3bar (`full_text`, `urgent`) read, and the numbers."""
    line = _join_counts(busy, len(asking), MARKUP["plain"])
    return json.dumps(
        {
            "text": line,
            "full_text": line,
            "tooltip": "\n".join(f"{one.name} asks" for one in asking),
            "class": "asking" if asking else "busy" if busy else "idle",
            "urgent": bool(asking),
            "busy": busy,
            "asking": [one.name for one in asking],
        }
    )
