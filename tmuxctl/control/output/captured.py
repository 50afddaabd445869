"""The screen of a session as it is now."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.control.sessions import finding
from tmuxctl.errors import NotFound, Unreachable, Usage
from tmuxctl.model import State, is_addressable
from tmuxctl.results import CursorPosition, Screen
from tmuxctl.terminal.panes import captures
from tmuxctl.terminal.panes.captures import Capture
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.untrusted import check_format
from tmuxctl.value import changed
from tmuxctl.vocabulary import EvidenceKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.reading.state.judging import Verdict


def screen(
    machine: Machine,
    session: str,
    *,
    ansi: bool = False,
    html: bool = False,
    svg: bool = False,
    scrollback: int | None = None,
    trim: bool = True,
    wide: bool = False,
    state: bool = True,
) -> Screen:
    """The screen and its facts from one instant: one chained query; with `state` also what the program does."""
    if scrollback is not None and scrollback < 0:
        raise Usage(f"{scrollback} lines cannot be shown", reason="bad_number", hint="0 shows all, 200 the last 200")
    drawn = capture_session(machine, session, scrollback=scrollback, trim=trim, wide=wide)
    check_format(drawn.pane.format, f"session {drawn.pane.name}")
    position = finding.cursor_at(drawn.pane, finding.output_end(machine, drawn.pane))
    shown = show(drawn, position, trim=trim, ansi=ansi, html=html, svg=svg)
    if state:
        verdict = _observe_captured(machine, drawn)
        found = (verdict.state, verdict.by) if verdict else (State.EXITED, EvidenceKind.EXIT)
        shown = changed(shown, state=found[0], by=found[1])
    if scrollback is not None:
        above = tuple(screens.plain_text(drawn.scrollback, trim=trim).split("\n")) if drawn.scrollback else ()
        shown = changed(shown, scrollback=above)
    return shown


def to_screen(machine: Machine, capture: Capture) -> Screen:
    """A captured screen as text, without what its program does. Failed `folder_gone` if its session's files are gone."""
    pane = capture.pane
    check_format(pane.format, f"session {pane.name}")
    return show(capture, finding.cursor_at(pane, finding.output_end(machine, pane)))


def show(
    capture: Capture, position: str, *, trim: bool = True, ansi: bool = False, html: bool = False, svg: bool = False
) -> Screen:
    """A screen in the forms that are asked for; `position` is the session's cursor behind what it shows."""
    pane, title, rows, *_ = capture
    cursor = CursorPosition(pane.x, pane.y, pane.cursor_visible)
    if html or svg:
        from tmuxctl.terminal.picture import render

        # rows that are joined (-J) are not those in which the cursor is told
        drawn = cursor if rows.count(b"\n") == pane.rows else None
    return Screen(
        session=pane.name,
        text=screens.plain_text(rows, trim=trim),
        cols=pane.cols,
        rows=pane.rows,
        cursor=cursor,
        alt=pane.alternate,
        title=title,
        state=None,
        by=None,
        position=position,
        ansi=screens.styled_text(rows) if ansi else None,
        html=render.render_html(rows, pane.cols, title, pane.tmux, drawn) if html else None,
        svg=render.render_svg(rows, pane.cols, pane.rows, title, pane.tmux, drawn) if svg else None,
    )


def _observe_captured(machine: Machine, capture: Capture) -> Verdict | None:
    """The state by one look around a captured screen; None of a program that has ended."""
    if capture.pane.dead:
        return None
    from tmuxctl.control.observation import observing

    return observing.observe_captured(machine, capture)


def capture_session(
    machine: Machine, session: str, *, scrollback: int | None = None, trim: bool = True, wide: bool = False
) -> Capture:
    """A session's facts, title, visible rows and rows that scrolled away, as tmux draws them (capture-pane -e)."""
    try:
        if is_addressable(session):
            pane_before = machine.panes.get(session) if machine.panes else None
            name = finding.known_name(machine, session)
            found = captures.capture_session(machine.io, name, pane_before, scrollback=scrollback, trim=trim, wide=wide)
            finding.check_found(found.pane, session)
            return found
    except (NotFound, Unreachable) as error:
        if error.reason not in ("no_session", "no_server"):
            raise
    name = finding.find_session(machine, session).name
    return captures.capture_session(machine.io, name, scrollback=scrollback, trim=trim, wide=wide)


def capture_pane(machine: Machine, pane: Pane, *, wide: bool = False) -> Capture:
    """The screen of this very session, whatever its name is by now; NotFound if it is gone."""
    with suppress(NotFound):
        found = captures.capture_session(machine.io, pane.name, None if pane.dead else pane, wide=wide)
        if found.pane.id == pane.id:
            return found
    return capture_session(machine, pane.id, wide=wide)
