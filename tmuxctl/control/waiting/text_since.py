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
    from tmuxctl.control.waiting.skimming import Skimmer
    from tmuxctl.reading.text.lines import Lines

WINDOW = 200_000
"""Characters of the newest output a pattern is tried on at once."""

STEP, ROWS = 1 << 17, 8_000
"""Bytes taken in at once, and rows: so much of new output is within the window, and among the lines that are kept."""


class Seen:
    """The text a pattern may match: output after the cursor without the echo, or the whole screen."""

    def __init__(
        self,
        machine: Machine,
        pane: Pane,
        journal: Journal,
        since: str | None,
        given: LastInput | None,
        *,
        window: int = WINDOW,
    ) -> None:
        """What was printed by now; a pattern's match may begin in the newest `window` characters of it."""
        from tmuxctl.control.output import printed

        self.machine, self.pane, self.journal = machine, pane, journal
        offset = printed.offset_of(pane, since)
        self.whole = offset is None and given is None
        self.input = given
        self.offset = offset if offset is not None else given.offset if given else journal.end()
        self._lines = _lines(pane, given)
        self._skimmer: Skimmer | None = None
        self._window, self._newest = window, ""
        self._searched: list[str] | None = None
        self.marks = pane.spec.get("marks", "")
        edited = given and given.echo == "editor" and finding.was_at_prompt(journal, self.marks, given.offset)
        self.pending: bytes | None = b"" if edited else None
        self.fresh = True
        self.behind = False
        """Whether there is output that was not taken in yet."""
        self.may_be_more = False
        """Whether there may be such, though none was seen."""
        self.base = self.offset
        self.feed()

    def feed(self, *, quick: bool = False) -> int:
        """Take in new output, at most a step of it: a pattern has to be tried on each; how far the journal was read. `quick`
        takes what is found without a look at the journal's folder."""
        if not self.journal.streams:
            return self._look_again()
        part = self.journal.read_on(self.offset, STEP) if quick else self.journal.read(self.offset, STEP)
        self.may_be_more = quick and bool(part.data)
        self.behind = bool(part.data) and (part.truncated or len(part.data) == STEP)
        if self._skimmer and not part.truncated and part.data and self._skimmer.take(part.data):
            self.offset = part.end
            return self.offset
        part = self._shortened(part)
        if part.data:
            self.offset, self.fresh = part.end, True
            self.lines.feed(part.data)
            if self.pending is not None:
                self._look_for_command(part.data)
        return self.offset

    @property
    def lines(self) -> Lines:
        """What came so far, drawn."""
        if self._skimmer:
            self._skimmer.give_back(self._lines)
        return self._lines

    def skip(self) -> None:
        """Take in the newest step of output, and leave out what is before it."""
        newest = max(self.offset, self.journal.end() - min(STEP, ROWS * self.lines.cols))
        part = self.journal.read(newest)
        # where its first line began is not known
        self.lines.feed(b"\r\n" + part.data.partition(b"\n")[2])
        self.offset, self.fresh, self.behind, self.pending = part.end, True, False, None

    def _shortened(self, part: JournalSlice) -> JournalSlice:
        """So much of the next output that neither its rows nor its characters push others out unseen."""
        limit = min(STEP, ROWS * self._lines.cols)
        if part.data.count(b"\n") <= ROWS and len(part.data) <= limit:
            return part
        end = 0
        for _ in range(ROWS):
            end = part.data.find(b"\n", end) + 1
            if not 0 < end < limit:
                break
        self.behind = True
        return self.journal.read(self.offset, min(limit, end or limit))

    def _look_again(self) -> int:
        """All that is shown since the cursor: a screen cannot be read on."""
        end = self.journal.end()
        if end != self.offset or not self.lines.text():
            self._lines = _lines(self.pane, self.input)
            self._lines.feed(self.journal.read(self.base).data)
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
        self._lines = _lines(self.pane, None)
        self._lines.feed(pending[begun.end :])

    def search(self, pattern: Search, deadline: float | None) -> Found | None:
        """Try the pattern on what has been seen, if anything came since the last time."""
        if not self.fresh:
            return None
        self.fresh = False
        self._searched, searched = None, []
        for text in self._texts():
            if found := pattern.find(text, start=max(0, len(text) - self._window), deadline=deadline):
                return found
            searched.append(text)
        self._searched = searched
        if self._skimmer:
            self._begin_skimming(self._skimmer, searched)
        return None

    def skim(self, pattern: Search) -> None:
        """From now on, do not draw output in which this pattern surely is not; no other may be searched for."""
        from tmuxctl.control.waiting.skimming import Skimmer

        if self._skimmer or not self.journal.streams:
            return
        self._skimmer = Skimmer(pattern, self._window)
        if self._searched is not None and not self.fresh:
            self._begin_skimming(self._skimmer, self._searched)

    def _begin_skimming(self, skimmer: Skimmer, searched: list[str]) -> None:
        """Go on without drawing what comes, where it is only added to what was searched."""
        given = self.input
        if self.pending is not None or (given and given.alternate):
            return
        if self.whole and self._lines.newest(1)[1]:
            # where its first line began is not known
            return
        if self.whole:
            skimmer.begin(self._lines, "\n".join(searched), None)
        else:
            skimmer.begin(self._lines, self._newest, given.typed if given and given.echo != "none" else b"")

    def _texts(self) -> Iterator[str]:
        yield self.text()
        if self.whole and self.journal.streams and not (self.pane.alternate or self.lines.alternate):
            yield self._passed()

    def _passed(self) -> str:
        """What was printed since it is looked at the screen: much of it may have left the screen between two looks. Where the
        first line of it began is not known."""
        from tmuxctl.terminal.tmux import screen as screens

        newest, all_of_it = self.lines.newest(self._window)
        return screens.strip_escapes(newest.partition("\n")[2] if all_of_it else newest)

    def text(self) -> str:
        """The text a pattern is tried on."""
        if self.whole or self.lines.alternate or (self.input and self.input.alternate):
            return self._rows()
        from tmuxctl.terminal.tmux import screen as screens

        self._newest, all_of_it = self.lines.newest(self._window)
        text = screens.strip_escapes(self._newest)
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
