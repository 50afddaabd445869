"""What stood on a session's screen at a moment: the journal up to there, drawn again by the rules of tmux.

Drawing begins where the screen is known: at the session's beginning, at a keyframe, or where the program cleared it. If none of
these is near, it begins in the middle of the output. What was drawn before that and still stands is then not known, and the
result says `approximate`.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.control.output import captured, printed
from tmuxctl.control.sessions import finding
from tmuxctl.errors import NotFound, TmuxctlError, Usage
from tmuxctl.model import parse_seconds
from tmuxctl.operations import current
from tmuxctl.results import Marked, Output, Screen
from tmuxctl.terminal.panes import keyframes
from tmuxctl.terminal.panes.captures import Capture
from tmuxctl.terminal.panes.keyframes import Keyframe
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.terminal.tmux import timeline
from tmuxctl.terminal.tmux.timeline import Moment, OutputTimes, Timeline
from tmuxctl.value import changed
from tmuxctl.vocabulary import MomentKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.terminal.picture.replay import Replay

NEAR, FAR = 1 << 20, 8 << 20
"""Bytes that are drawn from a known screen on: if the program cleared its screen since, and if everything else is a guess."""

MIDDLE = 1 << 18
"""Bytes before a moment at which drawing begins if no screen is known near it: more than most programs take to draw all of one."""

HISTORY = 1000
"""Rows that scrolled away are kept where the size of the terminal changes."""

STEP = 1 << 20
"""Bytes drawn, or searched, at once."""

CLEARED = re.compile(rb"\x1bc|\x1b\[\?(?:1049|1047|47)h|\x1b\[2J")
"""Where a program began a screen anew: RIS, the alternate screen (xterm), ED 2 (ECMA-48, 8.3.39)."""

ANEW = re.compile(rb"\x1b\[2J|\x1b\[(?:1;1)?H")
REDRAWN = 1 << 14
"""Where a program draws its screen for another size, and bytes of the output before the moment of a new size that may do so."""

SWITCHED = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
LONGEST = 16
"""Bytes of the longest sequence above, which two pieces of the journal may share."""

TITLE = re.compile(rb"\x1b\][02];([^\x07\x1b]{0,500})(?:\x07|\x1b\\)")
TITLE_BACK = 1 << 16

HINT = "a cursor, a turn (3; -1: the one before the last), a time (14:05, 2026-11-26T14:05:30), so long ago (-5m), or mark:TEXT"


class Point(NamedTuple):
    """A point in a session's output; the time of it in seconds of the wall clock, if that is known, and what happened then."""

    offset: int
    at: float | None = None
    what: str = ""


class _Start(NamedTuple):
    """Where drawing begins: an offset, and the keyframe there, if it is one; `known` is False where what stood there is not."""

    offset: int
    keyframe: Keyframe | None = None
    known: bool = True


class History:
    """The output of a session, and the moments of which the time is known."""

    def __init__(self, machine: Machine, session: str, since: str | None = None) -> None:
        self.machine = machine
        self.pane, self.journal = printed.find_with_journal(machine, session, since)
        if not self.journal.streams:
            raise NotFound(
                f"{self.pane.name} has no journal: what it showed earlier is not known",
                reason="no_journal",
                hint=f"tmuxctl screen {self.pane.name}",
            )
        self.folder = os.path.dirname(self.journal.folder)
        moments = Timeline(machine.transport, self.folder).read()
        self.times = OutputTimes(machine.transport, self.folder).read()
        found = [self._place_size(moment) if moment.late else moment for moment in moments]
        self.moments = sorted(found, key=lambda moment: moment.offset)

    def _place_size(self, moment: Moment) -> Moment:
        """A size whose offset is a little late: where the program began its screen anew for it, if it did so just before."""
        begin = max(self.journal.start(), moment.offset - REDRAWN)
        redrawn = list(ANEW.finditer(self.journal.read(begin, moment.offset - begin).data))
        return changed(moment, offset=begin + redrawn[-1].start()) if redrawn else moment

    def size_at(self, offset: int) -> tuple[int, int]:
        """Columns and rows of the terminal when the output had come to an offset."""
        return timeline.size_at(self.moments, offset, (self.pane.cols, self.pane.rows))

    def find_turn(self, number: int) -> Moment:
        """A turn by its number, or counted back from the last (-1 is the one before it). NotFound `no_turn`."""
        turns = [moment for moment in self.moments if moment.kind is MomentKind.TURN]
        if number < 0:
            found = turns[number - 1] if 1 - number <= len(turns) else None
        else:
            found = next((moment for moment in reversed(turns) if moment.turn == number), None)
        if found is None:
            known = ", ".join(str(moment.turn) for moment in turns[-8:])
            raise NotFound(
                f"turn {number} of {self.pane.name} is not known",
                reason="no_turn",
                hint=f"turns that are: {known}" if known else "a turn is what `ask` does: tmuxctl ask NAME TEXT",
            )
        return found

    def find_point(self, at: str) -> Point:
        """The point that a cursor, a turn, a time or a mark names. Usage `bad_moment`, NotFound, Conflict `cursor_lost`."""
        if at.startswith("c1:"):
            offset = printed.offset_of(self.pane, at)
            assert offset is not None
            return Point(min(offset, self.journal.end()))
        if re.fullmatch(r"-?[1-9][0-9]{0,8}", at):
            turn = self.find_turn(int(at))
            return Point(turn.end, turn.until, f"end of turn {turn.turn}")
        if at.startswith("mark:"):
            return self._find_mark(at.removeprefix("mark:"))
        return self._nearest(parse_moment(at, self.machine.clock.wall()))

    def _find_mark(self, text: str) -> Point:
        marks = [moment for moment in self.moments if moment.kind is MomentKind.MARK]
        for moment in reversed(marks):
            if moment.text == text:
                return Point(moment.offset, moment.at, f"mark {text}")
        known = ", ".join(moment.text for moment in marks[-5:])
        raise NotFound(
            f"{self.pane.name} has no mark {ascii(text[:40])}",
            reason="no_mark",
            hint=f"marks that it has: {known}" if known else f"set one: tmuxctl mark {self.pane.name} TEXT",
        )

    def _nearest(self, wanted: float) -> Point:
        """The point at a time, if that was recorded, else the nearest of those whose time is known."""
        after = bisect_right(self.times, wanted, key=lambda one: one.at)
        if 0 < after < len(self.times):
            return Point(self.times[after - 1].end, wanted, "output")
        return min(self.list_known(), key=lambda point: abs((point.at or 0.0) - wanted))

    def list_known(self) -> list[Point]:
        """All points whose time is known, by their offsets: what was typed, asked, answered and marked, and the last output."""
        extent = self.journal.extent()
        found = [Point(extent.end, extent.grown, "last output")] if extent.grown else []
        if not extent.start and self.pane.created:
            found.append(Point(0, self.pane.created, "start"))
        for moment in self.moments:
            found.append(Point(moment.offset, moment.at, moment.kind.value))
            if moment.until:
                found.append(Point(moment.end, moment.until, f"end of turn {moment.turn}"))
        for one in self.times:
            # until then it had not come
            found += (Point(one.start, one.at, "output"), Point(one.end, one.at, "output"))
        if not found:
            raise NotFound(
                f"no time of {self.pane.name} is known", reason="no_moment", hint=f"tmuxctl log {self.pane.name}"
            )
        return sorted(found, key=lambda point: (point.offset, point.at))

    def draw(self, offset: int) -> Replay:
        """The screen when the output had come to `offset`."""
        start = self._find_start(offset)
        replay = self._draw_from(start, offset)
        if replay.approximate and not start.known and start.offset > self.journal.start():
            # so much more may reach back to what still stands
            replay = self._draw_from(_Start(max(self.journal.start(), offset - NEAR), None, False), offset)
        return replay

    def _find_start(self, offset: int) -> _Start:
        known = self._find_known(offset)
        if known and offset - known.offset <= NEAR:
            return known
        if cleared := self._find_cleared(offset):
            return cleared
        middle = _Start(max(self.journal.start(), offset - MIDDLE), None, False)
        if known and offset - known.offset <= FAR and self._draw_from(middle, offset).approximate:
            return known
        return middle

    def _find_known(self, offset: int) -> _Start | None:
        """The nearest point before at which the whole screen is known."""
        transport, begun = self.machine.transport, self.journal.start()
        before = [one for one in keyframes.list_offsets(transport, self.folder) if begun <= one <= offset]
        for one in reversed(before):
            if keyframe := keyframes.read(transport, self.folder, one):
                return _Start(one, keyframe)
        return None if begun else _Start(0)

    def _find_cleared(self, offset: int) -> _Start | None:
        """The last point before at which the program began its screen anew, if it is near enough."""
        for begin, data in self._read_back(offset, FAR // 2):
            if found := list(CLEARED.finditer(data)):
                return _Start(begin + found[-1].start())
        return None

    def _read_back(self, offset: int, most: int) -> Iterable[tuple[int, bytes]]:
        """The journal before an offset in pieces, the last first; each reaches a little into the one after it."""
        first, end = max(self.journal.start(), offset - most), offset
        while end > first:
            current().check()
            begin = max(first, end - STEP)
            part = self.journal.read(begin, min(end + LONGEST, offset) - begin)
            yield part.start, part.data
            end = begin

    def _draw_from(self, start: _Start, offset: int) -> Replay:
        """Draw the output between a start and an offset, with the sizes that the terminal had."""
        from tmuxctl.terminal.picture.replay import Replay

        keyframe = start.keyframe
        size = (keyframe.cols, keyframe.rows) if keyframe else self.size_at(start.offset)
        sizes = [moment for moment in self.moments if moment.kind is MomentKind.SIZE]
        # a terminal that grows shows again what scrolled away
        replay = Replay(*size, history=HISTORY if sizes[1:] else 0)
        if keyframe:
            if keyframe.alternate:
                replay.forget()
                replay.feed(b"\x1b[?1049h")
            replay.draw(keyframe.drawn)
            replay.feed(b"\x1b[%d;%dH\x1b[?25%b" % (keyframe.y + 1, keyframe.x + 1, b"h" if keyframe.visible else b"l"))
        elif start.offset:
            if self._was_alternate(start.offset):
                replay.feed(b"\x1b[?1049h")
            replay.forget()
        position = start.offset
        for moment in (*(one for one in sizes if start.offset < one.offset <= offset), None):
            self._feed(replay, position, moment.offset if moment else offset)
            if moment:
                position = moment.offset
                replay.resize(*self.size_at(position))
        return replay

    def _feed(self, replay: Replay, start: int, end: int) -> None:
        while start < end:
            current().check()
            part = self.journal.read(start, min(STEP, end - start))
            if not part.data or part.start >= end:
                return
            if part.start > start:
                # bytes are missing: what they drew is not known
                replay.forget()
            replay.feed(part.data[: end - part.start])
            start = part.end

    def _was_alternate(self, offset: int) -> bool:
        """Whether the alternate screen was shown at an offset, by the last switch that is kept."""
        for _, data in self._read_back(offset, offset):
            if found := list(SWITCHED.finditer(data)):
                return found[-1][1] == b"h"
        return False

    def title_at(self, offset: int) -> str:
        """The terminal's title then; empty if the program set none shortly before."""
        begin = max(0, offset - TITLE_BACK)
        found = list(TITLE.finditer(self.journal.read(begin, offset - begin).data))
        return screens.strip_escapes(found[-1][1]).replace("\n", " ") if found else ""


def screen_at(machine: Machine, session: str, at: str, *, ansi: bool, html: bool, svg: bool, trim: bool) -> Screen:
    """The screen at a cursor, at the end of a turn, at a mark, or at the known moment nearest to a time; errors as
    `History.find_point`."""
    history = History(machine, session, at if at.startswith("c1:") else None)
    point = history.find_point(at)
    replay = history.draw(point.offset)
    (cols, rows), cursor = history.size_at(point.offset), replay.cursor
    then = changed(
        history.pane,
        cols=cols,
        rows=rows,
        x=cursor.x,
        y=cursor.y,
        cursor_visible=cursor.visible,
        alternate=replay.alternate,
    )
    capture = Capture(then, history.title_at(point.offset), replay.capture())
    shown = captured.show(capture, finding.cursor_at(then, point.offset), trim=trim, ansi=ansi, html=html, svg=svg)
    return changed(shown, approximate=replay.approximate, at=to_time(point.at), moment=point.what or None)


def answer_of_turn(machine: Machine, session: str, number: int) -> Output:
    """The answer that a turn had, as far as it was kept. NotFound `no_turn`."""
    history = History(machine, session)
    turn = history.find_turn(number)
    cursor = finding.cursor_at(history.pane, turn.end)
    return Output(history.pane.name, turn.answer, cursor, len(turn.answer) >= timeline.ANSWER_LIMIT, turn.whole)


def mark(machine: Machine, session: str, text: str) -> Marked:
    """Give the present moment of a session a name. Usage `bad_text` for a name that no line can show."""
    if not text.strip() or not text.isprintable() or len(text) > timeline.TEXT_LIMIT:
        hint = f"one line of at most {timeline.TEXT_LIMIT} characters"
        raise Usage("the name of a moment is empty, too long, or no line of text", reason="bad_text", hint=hint)
    history = History(machine, session)
    moment = Moment(MomentKind.MARK, history.journal.end(), machine.clock.wall(), text)
    Timeline(machine.transport, history.folder).add(moment)
    at = to_time(moment.at)
    assert at is not None
    return Marked(history.pane.name, text, finding.cursor_at(history.pane, moment.offset), at)


def to_time(at: float | None) -> str | None:
    """A moment as ISO 8601 in the local time zone, to the millisecond."""
    return None if at is None else datetime.fromtimestamp(at).astimezone().isoformat(timespec="milliseconds")


def parse_moment(text: str, now: float) -> float:
    """Seconds of the wall clock for `14:05`, `14:05:30`, ISO 8601, or so long ago: `-5m`. A time of day is the last such one.
    Usage `bad_moment`."""
    try:
        if text.startswith("-"):
            return now - (parse_seconds(text[1:]) or 0.0)
        if re.fullmatch(r"[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?", text):
            clock = time.fromisoformat(text if text[1] != ":" else f"0{text}")
            today = datetime.fromtimestamp(now)
            found = datetime.combine(today, clock)
            return (found if found <= today else found - timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError, TmuxctlError):
        raise Usage(f"{ascii(text[:60])} is no moment", reason="bad_moment", hint=f"give {HINT}") from None
