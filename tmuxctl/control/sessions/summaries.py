"""What tmux knows of a session, as the value that is shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tmuxctl.control.sessions.finding import cursor, journal
from tmuxctl.control.sessions.records import ended_status
from tmuxctl.model import (
    Session,
    State,
    Status,
)
from tmuxctl.terminal.tmux.server import Pane

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.reading.state.judging import Verdict


def describe(machine: Machine, pane: Pane) -> Session:
    """What is known of a session, with the point its output has reached."""
    return summary(pane, cursor(pane, journal(machine, pane).end()))


def until(verdict: Verdict) -> str | None:
    """When the limit that a program tells of ends, ISO-8601; None if it tells none, or not when."""
    if verdict.until is None:
        return None
    from datetime import datetime

    from tmuxctl.reading.questions import usage_limits

    return usage_limits.parse_moment(verdict.until, datetime.now().astimezone())


def status_of(verdict: Verdict, detail: str | None = None) -> Status:
    """What a verdict says of a program, for a result; `detail` is told where the verdict has none."""
    return Status(
        verdict.state,
        verdict.kind,
        verdict.detail or detail,
        until(verdict),
        verdict.by,
        verdict.confidence,
        verdict.asking,
    )


def summary(pane: Pane, point: str | None = None) -> Session:
    """What tmux knows of a session."""
    spec = pane.spec
    return Session(
        name=pane.name,
        id=pane.id,
        incarnation=pane.incarnation,
        status=ended_status(pane_detail(pane)) if pane.dead else Status(State.UNKNOWN, detail=pane_detail(pane)),
        profile=spec.get("profile"),
        argv=tuple(spec.get("argv", ())),
        cwd=spec.get("cwd"),
        cols=pane.cols,
        rows=pane.rows,
        pid=pane.pid or None,
        exit_status=pane.status,
        signal=pane.signal,
        created=when(pane.created),
        active=when(pane.active),
        attached=pane.attached,
        tags=pane.tags,
        plugins=tuple(spec.get("plugins", ())),
        # a place on a screen is nothing to come back to
        cursor=point if spec.get("journal", True) else None,
        target=spec.get("target"),
    )


def pane_detail(pane: Pane) -> str | None:
    """What else tmux tells: why tmuxctl ended the program, or that what it prints is not kept."""
    if pane.dead:
        return pane.ended or None
    return None if pane.piped else "journal_stopped"


def when(seconds: float) -> str | None:
    """ISO-8601 UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) if seconds else None
