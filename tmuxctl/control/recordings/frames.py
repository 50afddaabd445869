"""A recording as screens: what stood on the terminal, whenever that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tmuxctl.control.recordings.recording import MARKER, OUTPUT, RESIZE, CastEvent, Recording
from tmuxctl.operations import current
from tmuxctl.terminal.picture.film import Frame
from tmuxctl.terminal.picture.replay import Replay

RATE = 25.0
"""Screens a second at most; what changes within one of them is shown at its end."""


def list_frames(recording: Recording, events: Iterable[CastEvent], *, rate: float = RATE) -> Iterator[Frame]:
    """The screens of a recording in order, the first at 0; the last one is at the end of the events."""
    replay = Replay(recording.cols, recording.rows, history=0)
    frame = Frame(0.0, replay.cells(), replay.cursor)
    due, changed_since, marker = 0.0, False, ""
    last = 0.0
    for event in events:
        current().check()
        if changed_since and event.at >= due + 1 / rate:
            frame = _next_frame(frame, replay, due, marker)
            yield frame
            changed_since, marker = False, ""
        if not changed_since:
            due = event.at
        last = event.at
        if event.code == OUTPUT:
            replay.feed(event.data.encode("utf-8", "replace"))
            changed_since = True
        elif event.code == RESIZE:
            cols, _, rows = event.data.partition("x")
            replay.resize(int(cols), int(rows))
            changed_since = True
        elif event.code == MARKER:
            marker, changed_since = event.data, True
    yield _next_frame(frame, replay, due if changed_since else last, marker)


def _next_frame(before: Frame, replay: Replay, at: float, marker: str) -> Frame:
    rows = replay.cells()
    # drawn anew with the same characters
    kept = [old if old is not new and old == new else new for old, new in zip(before.rows, rows, strict=False)]
    return Frame(at, kept + rows[len(kept) :], replay.cursor, marker)


def largest_size(recording: Recording) -> tuple[int, int]:
    """The most columns and rows that the terminal of a recording ever had."""
    cols, rows = recording.cols, recording.rows
    for event in recording.events():
        if event.code == RESIZE:
            wide, _, high = event.data.partition("x")
            cols, rows = max(cols, int(wide)), max(rows, int(high))
    return cols, rows
