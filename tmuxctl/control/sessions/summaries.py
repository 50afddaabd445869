"""What tmux knows of a session, as the value that is shown."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.control.sessions.finding import cursor_at, open_journal
from tmuxctl.control.sessions.records import ended_status
from tmuxctl.model import Session, State, Status
from tmuxctl.terminal.tmux.server import Pane

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.reading.state.judging import Verdict


def describe_session(machine: Machine, pane: Pane) -> Session:
    """What is known of a session, with the point its output has reached."""
    return summarize(pane, cursor_at(pane, open_journal(machine, pane).end()))


def limit_end(verdict: Verdict) -> str | None:
    """When the usage limit on the program's screen ends, ISO-8601; None if there is none, or no time with it."""
    if verdict.until is None:
        return None
    from datetime import datetime

    from tmuxctl.reading.questions import usage_limits

    return usage_limits.parse_moment(verdict.until, datetime.now().astimezone())


def status_of(verdict: Verdict, detail: str | None = None) -> Status:
    """The status of a result, from a verdict; `detail` is that of the pane, for a verdict that has none."""
    return Status(
        verdict.state,
        verdict.kind,
        verdict.detail or detail,
        limit_end(verdict),
        verdict.by,
        verdict.confidence,
        verdict.asking,
    )


def summarize(pane: Pane, cursor: str | None = None) -> Session:
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
        created=format_time(pane.created),
        active=format_time(pane.active),
        attached=pane.attached,
        tags=pane.tags,
        plugins=tuple(spec.get("plugins", ())),
        # without a journal a cursor would be a position on a screen, which does not stay
        cursor=cursor if spec.get("journal", True) else None,
        owner=spec.get("owner"),
        target=spec.get("target"),
    )


def pane_detail(pane: Pane) -> str | None:
    """The detail that tmux keeps: why tmuxctl ended the program, or that what it prints is not kept."""
    if pane.dead:
        return pane.ended or None
    return None if pane.piped else "journal_stopped"


def format_time(seconds: float) -> str | None:
    """ISO-8601 UTC; None for what is no time."""
    with suppress(OverflowError, OSError, ValueError):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) if seconds else None
    return None
