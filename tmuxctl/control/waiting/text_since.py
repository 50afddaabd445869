"""What a wait for text looks at: output after a cursor without the echo of what was typed, or the whole screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tmuxctl.control.sessions import finding
from tmuxctl.errors import NotFound
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.tmux.journal import Journal, JournalSlice
from tmuxctl.terminal.tmux.server import Pane

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.waiting.searching import Found, Search
    from tmuxctl.reading.text.lines import Lines

WINDOW = 200_000
"""Characters of the newest output a pattern is tried on at once."""

STEP, ROWS = 1 << 17, 8_000
"""Bytes taken in at once, and rows: so much of new output is within the window, and among the lines that are kept."""


class Seen:
    """The text a pattern may match: output after the cursor without the echo, or the whole screen."""

    def __init__(
        self, machine: Machine, pane: Pane, journal: Journal, since: str | None, given: LastInput | None
    ) -> None:
        from tmuxctl.control.output import printed

        self.machine, self.pane, self.journal = machine, pane, journal
        offset = printed.offset_of(pane, since)
        self.whole = offset is None and given is None
        self.input = given
        self.offset = offset if offset is not None else given.offset if given else journal.end()
        self.lines = _lines(pane, given)
        self.marks = pane.spec.get("marks", "")
        edited = given and given.echo == "editor" and finding.was_at_prompt(journal, self.marks, given.offset)
        self.pending: bytes | None = b"" if edited else None
        self.fresh = True
        self.behind = False
        """Whether there is output that was not taken in yet."""
        self.base = self.offset
        self.feed()

    def feed(self) -> int:
        """Take in new output, at most a step of it: a pattern has to be tried on each; how far the journal was read."""
        if not self.journal.streams:
            return self._look_again()
        part = self._next()
        if part.data:
            self.offset, self.fresh = part.end, True
            self.lines.feed(part.data)
            if self.pending is not None:
                self._look_for_command(part.data)
        return self.offset

    def skip(self) -> None:
        """Take in the newest step of output, and leave out what is before it."""
        newest = max(self.offset, self.journal.end() - min(STEP, ROWS * self.lines.cols))
        part = self.journal.read(newest)
        # where its first line began is not known
        self.lines.feed(b"\r\n" + part.data.partition(b"\n")[2])
        self.offset, self.fresh, self.behind, self.pending = part.end, True, False, None

    def _next(self) -> JournalSlice:
        """The next step of output: so little of it that neither its rows nor its characters push others out unseen."""
        limit = min(STEP, ROWS * self.lines.cols)
        part = self.journal.read(self.offset, limit)
        self.behind = bool(part.data) and (part.truncated or len(part.data) == limit)
        if part.data.count(b"\n") <= ROWS:
            return part
        end = 0
        for _ in range(ROWS):
            end = part.data.index(b"\n", end) + 1
        self.behind = True
        return self.journal.read(self.offset, end)

    def _look_again(self) -> int:
        """All that is shown since the cursor: a screen cannot be read on."""
        end = self.journal.end()
        if end != self.offset or not self.lines.text():
            self.lines = _lines(self.pane, self.input)
            self.lines.feed(self.journal.read(self.base).data)
            self.offset, self.fresh = end, True
        return end

    def _look_for_command(self, data: bytes) -> None:
        """Where the marked shell says that the command it was given starts, output begins; what was before is echo."""
        from tmuxctl.reading.text.marks import find_marks

        pending = (self.pending or b"") + data
        begun = next((mark for mark in find_marks(pending, self.marks) if mark.letter == "C"), None)
        if begun is None:
            self.pending = pending[-STEP:]
            return
        self.pending = self.input = None
        self.lines = _lines(self.pane, None)
        self.lines.feed(pending[begun.end :])

    def search(self, pattern: Search, deadline: float | None) -> Found | None:
        """Try the pattern on what has been seen, if anything came since the last time."""
        if not self.fresh:
            return None
        self.fresh = False
        for text in self._texts():
            if found := pattern.find(text, start=max(0, len(text) - WINDOW), deadline=deadline):
                return found
        return None

    def _texts(self) -> Iterator[str]:
        yield self.text()
        if self.whole and self.journal.streams and not (self.pane.alternate or self.lines.alternate):
            yield self._passed()

    def _passed(self) -> str:
        """What was printed since it is looked at the screen: much of it may have left the screen between two looks. Where the
        first line of it began is not known."""
        from tmuxctl.terminal.tmux import screen as screens

        newest, all_of_it = self.lines.newest(WINDOW)
        return screens.strip_escapes(newest.partition("\n")[2] if all_of_it else newest)

    def text(self) -> str:
        """The text a pattern is tried on."""
        if self.whole or self.lines.alternate or (self.input and self.input.alternate):
            return self._rows()
        from tmuxctl.terminal.tmux import screen as screens

        newest, all_of_it = self.lines.newest(WINDOW)
        text = screens.strip_escapes(newest)
        if self.input is None or self.input.echo == "none":
            return text
        from tmuxctl.reading.text.echo import without_echo

        return without_echo(text, self.input.typed, first=all_of_it, again=self.input.echo == "tty" or not all_of_it)

    def tail(self) -> str:
        """The last of what was seen, for a result that is not a match."""
        return self.text()[-4000:].strip()

    def _rows(self) -> str:
        """A full-screen program's rows that changed since the input, as tmux shows them; all of them for the whole screen."""
        from tmuxctl.control.output import captured
        from tmuxctl.terminal.tmux import screen as screens

        try:
            pane, _, rows, *_ = captured.capture_pane(self.machine, self.pane, wide=self.whole)
        except NotFound:
            return ""
        text = screens.plain_text(rows)
        given = self.input
        if self.whole or given is None or not given.alternate or (given.cols, given.rows) != (pane.cols, pane.rows):
            return text
        from tmuxctl.reading.text.echo import without_echo

        touched = self.lines.touched()
        kept = "\n".join(row for index, row in enumerate(text.split("\n")) if index in touched)
        return without_echo(kept, given.typed, first=True, again=False) if given.echo != "none" else kept


def _lines(pane: Pane, given: LastInput | None) -> Lines:
    from tmuxctl.reading.text.lines import Lines

    if given is None:
        return Lines(pane.cols, pane.rows, tmux=pane.tmux)
    return Lines(given.cols, given.rows, x=given.x, y=given.y, tmux=pane.tmux)
