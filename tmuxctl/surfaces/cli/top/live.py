"""The live view of `tmuxctl top`: what one session shows, kept fresh by a thread of its own. It only looks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl import widths
from tmuxctl.control.sessions import records
from tmuxctl.errors import TmuxctlError
from tmuxctl.surfaces.cli.printing.output import shown
from tmuxctl.terminal.tmux.journal import Journal

if TYPE_CHECKING:
    from tmuxctl.control import Control

SGR = re.compile(r"(\x1b\[[0-9;:]*m)")

BESIDE_COLUMNS, BELOW_ROWS = 130, 32
"""How large a terminal is in which the view stands beside the table, or else below it, unless the person says otherwise."""


class ViewPlace(NamedTuple):
    """The part of the terminal that the view has: its first column and row, counted from 0, and its size. `beside` the table
    or below it."""

    beside: bool
    column: int
    row: int
    width: int
    height: int


def find_place(width: int, height: int, *, wanted: bool | None) -> ViewPlace | None:
    """Where the view stands on a terminal of this size; None where it does not. `wanted` is None unless the person said."""
    if wanted is False or height < 6:
        return None
    if width >= BESIDE_COLUMNS:
        left = min(90, width // 2)
        return ViewPlace(True, left + 1, 0, width - left - 1, height)
    if height >= BELOW_ROWS or wanted:
        top = max(3, height // 2)
        return ViewPlace(False, 0, top, width, height - top - 1)
    return None


class Shown(NamedTuple):
    """What a session showed: its rows with their styles (SGR), the row of its cursor, its size; or why that is not known."""

    session: str
    rows: Sequence[str] = ()
    cursor: int = 0
    cols: int = 0
    lines: int = 0
    problem: str = ""


class LiveView:
    """Follows the session that is selected. `ring` is called whenever it shows something else."""

    def __init__(self, control: Control, ring: Callable[[], None]) -> None:
        self._control, self._ring, self._timing = control, ring, control.machine.timing.page
        self._over = threading.Event()
        self.now: Shown | None = None
        self.followed: str | None = None

    def follow(self, session: str | None) -> None:
        """Follow the session with this lasting address from now on, and no other; None for none."""
        if session == self.followed:
            return
        self._over.set()
        self._over, self.followed = threading.Event(), session
        if session is None:
            self.now = None
        else:
            threading.Thread(target=self._run, args=(session, self._over), daemon=True).start()

    def _run(self, session: str, over: threading.Event) -> None:
        # whoever moves on at once, with a key that repeats, does not want to see each
        if over.wait(self._timing.passing_seconds):
            return
        machine, called = self._control.machine, session
        if "/" in session:
            place, called = self._control.reach(session)
            machine = place.machine
        if machine.remote is not None:
            while not over.is_set():
                self._show(session, over)
                over.wait(self._timing.table_seconds)
            return
        folder = Journal(machine.transport, records.session_folder(machine, called)).folder
        with closing(machine.transport.watch([folder])) as watch:
            while not over.is_set():
                self._show(session, over)
                # what a session prints is shown at once, and then not more often than this
                over.wait(self._timing.view_seconds)
                watch.wait(self._timing.table_seconds)

    def _show(self, session: str, over: threading.Event) -> None:
        found = self._look(session)
        if not over.is_set() and found != self.now:
            self.now = found
            self._ring()

    def _look(self, session: str) -> Shown:
        try:
            screen = self._control.call("screen", {"session": session, "ansi": True, "state": False})
        except TmuxctlError as error:
            return Shown(session, problem=error.message)
        return Shown(session, screen.ansi.split("\n"), screen.cursor.y, screen.cols, screen.rows)


def cut_rows(screen: Shown, width: int, height: int, *, colors: bool) -> list[str]:
    """The rows of a screen that fit: the last ones, and the one of the cursor."""
    last = max(len(screen.rows), screen.cursor + 1)
    first = max(0, min(last - height, screen.cursor))
    return [cut_row(row, width, colors=colors) for row in screen.rows[first : first + height]]


def cut_row(row: str, width: int, *, colors: bool) -> str:
    """As much of a row with SGR sequences as so many columns hold, filled up with blanks to that width."""
    parts: list[str] = []
    left, whole = width, True
    for part in SGR.split(row):
        if part.startswith("\x1b"):
            parts.append(part if colors else "")
        elif whole:
            text = part if part.isascii() else shown(part)
            fitting = widths.first_columns(text, left)
            # behind a wide character that does not fit comes nothing more
            whole = fitting == text
            left -= widths.columns(fitting)
            parts.append(fitting)
    return "".join([*parts, "\x1b[0m" if colors else "", " " * left])
