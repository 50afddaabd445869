"""A session as a recording: its journal, with the times that are known, and others spread evenly between them."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tmuxctl.control.output.moments import History, Point
from tmuxctl.control.output.timestamps import TimeScale, scale_of
from tmuxctl.control.recordings.recording import EXIT, INPUT, MARKER, OUTPUT, RESIZE, CastEvent, Recording
from tmuxctl.operations import current
from tmuxctl.terminal.tmux.timeline import Moment
from tmuxctl.vocabulary import MomentKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

LARGEST, SMALLEST = 1 << 16, 16
"""Bytes of one event: of output that came at once, and of output whose times are estimated."""

RATE = 20
"""Events a second into which output is cut whose times are estimated."""


def record(
    machine: Machine,
    session: str,
    *,
    since: str | None,
    until: str | None,
    only_end: bool = False,
    began: float | None = None,
    last_bytes: int | None = None,
) -> Recording:
    """What a session printed between two moments (`History.find_point`), or all that is kept of it; with `last_bytes` no more of
    it, with `only_end` nothing but the screen at the end. `began`: when the recording began, in seconds of the wall clock, if that
    is known better than from the output."""
    history = History(machine, session, since if since and since.startswith("c1:") else None)
    end = history.find_point(until).offset if until else history.journal.end()
    point = history.find_point(since) if since else Point(history.journal.start())
    if only_end or last_bytes is not None:
        point = Point(max(point.offset, end - (last_bytes or 0)))
    start = point.offset
    scale = scale_of(history)
    if began is None:
        began = point.at if point.at is not None else scale.reached_at(start)
    cols, rows = history.size_at(start)
    return Recording(
        cols,
        rows,
        lambda: _list_events(history, scale, start, max(start, end), began),
        began,
        history.title_at(end) or history.pane.name,
        shlex.join(history.pane.spec.get("argv") or ()),
        scale.is_estimated(start, end),
    )


def _list_events(history: History, scale: TimeScale, start: int, end: int, began: float) -> Iterator[CastEvent]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    if start:
        # what stood there: a recording may begin in the middle of the output
        replay = history.draw(start)
        place = f"\x1b[{replay.cursor.y + 1};{replay.cursor.x + 1}H"
        rows = replay.capture().decode().removesuffix("\n").replace("\n", "\r\n")
        yield CastEvent(0.0, OUTPUT, f"{'' if not replay.alternate else chr(27) + '[?1049h'}\x1b[H\x1b[2J{rows}{place}")
    moments = [moment for moment in history.moments if start <= moment.offset <= end]
    position = start
    for moment in (*moments, None):
        stop = moment.offset if moment else end
        while position < stop:
            current().check()
            size = _choose_size(scale, position, stop)
            part = history.journal.read(position, size)
            if not part.data:
                break
            at = scale.time_at(part.start)[0] - began
            position = part.end
            if text := decoder.decode(part.data):
                yield CastEvent(max(0.0, at), OUTPUT, text)
        if moment and not (moment.kind is MomentKind.SIZE and moment.offset == start):
            yield from _told(moment, max(0.0, moment.at - began))
    if history.pane.dead and history.pane.status is not None and end >= history.journal.end():
        yield CastEvent(max(0.0, scale.time_at(end)[0] - began), EXIT, str(history.pane.status))


def _choose_size(scale: TimeScale, position: int, stop: int) -> int:
    """So many bytes as one event has: all up to the next known moment, or less where that takes longer than an event may."""
    known = min(stop, scale.next_known(position, stop))
    seconds = scale.reached_at(known) - scale.time_at(position)[0]
    pieces = max(1, int(seconds * RATE))
    return min(LARGEST, max(SMALLEST, (known - position) // pieces), known - position)


def _told(moment: Moment, at: float) -> Iterator[CastEvent]:
    """What a moment is in a recording."""
    if moment.kind is MomentKind.SIZE and moment.cols:
        yield CastEvent(at, RESIZE, f"{moment.cols}x{moment.rows}")
    elif moment.kind is MomentKind.INPUT and moment.text:
        yield CastEvent(at, INPUT, moment.text)
    elif moment.kind is MomentKind.MARK:
        yield CastEvent(at, MARKER, moment.text)
    elif moment.kind is MomentKind.TURN:
        yield CastEvent(at, MARKER, f"turn {moment.turn}")
