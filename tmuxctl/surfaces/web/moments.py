"""When something happened in a session: what the page's slider goes by."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tmuxctl.control.sessions import records
from tmuxctl.terminal.tmux.journal import Journal, parse_cursor
from tmuxctl.terminal.tmux.timeline import Moment, Timeline
from tmuxctl.vocabulary import MomentKind

if TYPE_CHECKING:
    from tmuxctl.control import Control
    from tmuxctl.model import Session

MOMENTS_MOST = 2000
"""The newest are told."""


def list_moments(control: Control, session: Session) -> dict[str, Any]:
    """The turns, questions and marks of a session, with the offsets between which its output is kept; of one on a machine that is
    reached through a gateway alone, the offsets that may be kept."""
    machine = control.reach(session.lasting_address)[0].machine
    if machine.remote is not None:
        end = parse_cursor(session.cursor).offset if session.cursor else 0
        return {"start": 0, "end": end, "incarnation": session.incarnation, "moments": []}
    folder = records.session_folder(machine, session.id)
    extent = Journal(machine.transport, folder).extent()
    moments = [one for one in Timeline(machine.transport, folder).read() if one.kind is not MomentKind.SIZE]
    kept = [one for one in moments if max(one.offset, one.end) >= extent.start][-MOMENTS_MOST:]
    return {
        "start": extent.start,
        "end": extent.end,
        "incarnation": session.incarnation,
        "moments": list(map(_describe_moment, kept)),
    }


def _describe_moment(moment: Moment) -> dict[str, Any]:
    return {
        "kind": moment.kind.value,
        "offset": moment.offset,
        "at": _format_moment(moment.at),
        "turn": moment.turn or None,
        "text": moment.text,
        "end": moment.end or None,
        "until": _format_moment(moment.until) if moment.until else None,
    }


def _format_moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
