"""Waits that cannot lie: a text counts only after the last input and never in its echo; silence ends none but `settle`."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from tmuxctl.control import sessions
from tmuxctl.errors import Exited, NotFound, Unreachable, Usage
from tmuxctl.model import Confidence, State
from tmuxctl.operations import current
from tmuxctl.results import Wait
from tmuxctl.terminal import server
from tmuxctl.terminal.journal import Journal
from tmuxctl.terminal.paste import Input, ended
from tmuxctl.terminal.server import Pane

if TYPE_CHECKING:
    from tmuxctl.control.service import Control
    from tmuxctl.reading.lines import Lines
    from tmuxctl.transport.base import Watch

LOOK_SECONDS = 1.0
"""So often tmux is asked whether the session is still there when nothing else is heard."""

WINDOW = 200_000
"""Characters of the newest output a pattern is tried on at once."""

STEP = 1 << 18


class Found(NamedTuple):
    """What a pattern matched."""

    text: str
    groups: tuple[str | None, ...]


def wait(
    control: Control,
    session: str,
    *,
    exit: bool,
    text: str | None,
    settle: float | None,
    timeout: float | None,
    since: str | None,
    now: bool,
) -> Wait:
    """Wait until the first of the conditions holds. Raises Exited when the program ends without, Usage for a bad pattern."""
    if not exit and text is None and settle is None:
        raise Usage(
            "say what to wait for", reason="missing", hint="tmuxctl wait NAME --exit, --text RE or --settle 500ms"
        )
    pattern = _compiled(text)
    call = current()
    limit = call.left(control.settings.wait_timeout if timeout is None else timeout)
    pane, given = sessions.find_with_input(control, session)
    last = Input.parse(given) if since is None else None
    waiter = _Waiter(control, pane, pattern, since, last, settle, exit)
    with waiter:
        return waiter.test() if now else waiter.until(limit)


def _compiled(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise Usage(
            f"{ascii(text[:60])} is no pattern: {error}", reason="bad_pattern", hint="it is a Python regular expression"
        ) from None


class _Waiter:
    """One wait: the output since its cursor, fed as it comes, and the conditions tried on it."""

    def __init__(
        self,
        control: Control,
        pane: Pane,
        pattern: re.Pattern[str] | None,
        since: str | None,
        last: Input | None,
        settle: float | None,
        exit: bool,
    ) -> None:
        self.control, self.pane, self.pattern, self.settle, self.exit = control, pane, pattern, settle, exit
        self.began = self.changed = time.monotonic()
        self.journal: Journal = sessions.journal(control, pane)
        self.seen: Seen | None = None
        if pattern:
            self.seen = Seen(control, pane, self.journal, since, last)
        self.offset = self.seen.offset if self.seen else self.journal.end()
        self.watch: Watch | None = None

    def __enter__(self) -> _Waiter:
        return self

    def __exit__(self, *_: object) -> None:
        if self.watch:
            self.watch.close()

    def test(self) -> Wait:
        """Whether it holds now."""
        if self.settle is not None:
            files = self.control.transport.files(self.journal.folder).values()
            newest = max((one.modified for one in files), default=self.pane.created)
            self.changed -= max(0.0, time.time() - newest)
        return self.holds(None) or self.result(None, "it does not hold now")

    def until(self, limit: float | None) -> Wait:
        """Sleep until it holds; `limit` in seconds."""
        call = current()
        if found := self.holds(None if limit is None else self.began + limit):
            return found
        self.watch = self.control.transport.watch([self.journal.folder], None if self.pane.dead else self.pane.pid)
        deadline = None if limit is None else self.began + limit
        asked = time.monotonic()
        while True:
            finished = self.journal.finished()
            grown = self._grow()
            if found := self.holds(deadline):
                return found
            moment = time.monotonic()
            if self.pane.dead:
                raise self._ended()
            if finished and not grown and self._ask():
                continue
            call.check()
            if deadline is not None and moment >= deadline:
                return self.result(None, self._missing(limit), timed_out=True)
            if moment - asked >= LOOK_SECONDS or finished or not self._alive():
                asked = moment
                if self._ask():
                    continue
            self.watch.wait(self._nap(moment, deadline))

    def holds(self, deadline: float | None) -> Wait | None:
        """The result if a condition holds at this moment."""
        if self.pattern and self.seen:
            found = self.seen.search(self.pattern, deadline)
            if found:
                return self.result("text", f"text: {ascii(found.text[:60])}", text=found.text, groups=found.groups)
        if self.exit and self.pane.dead:
            return self.result("exit", "exit: " + _how(self.pane))
        quiet = time.monotonic() - self.changed
        if self.settle is not None and quiet >= self.settle:
            return self.result("settle", f"settle: nothing printed for {self.settle:g} s")
        return None

    def _grow(self) -> bool:
        """Take in what came since the last look."""
        end = self.seen.feed() if self.seen else self.journal.end()
        grown = end != self.offset
        if grown:
            self.offset, self.changed = end, time.monotonic()
        return grown

    def _alive(self) -> bool:
        rows = self.control.transport.processes([self.pane.pid])
        return self.pane.dead or any(row.state not in ("Z", "X") for row in rows)

    def _ask(self) -> bool:
        """Look whether the session is still there; True if its program has ended."""
        try:
            if not self._alive():
                # tmux 3.3a may not have noticed yet: a job of its own makes it look (measured)
                self.control.transport.run([("run-shell", "true")])
            now = next((one for one in server.panes(self.control.transport) if one.id == self.pane.id), None)
        except Unreachable as error:
            if error.reason != "no_server":
                raise
            raise Unreachable(
                f"session {self.pane.name} was lost: its tmux server died",
                reason="lost",
                hint=f"its output is still there: tmuxctl log {self.pane.name}",
            ) from None
        if now is None:
            self.pane = self._killed()
            return True
        if now.dead and not self.journal.finished() and self.changed + 2.0 > time.monotonic():
            return False
        self.pane = now
        return now.dead

    def _killed(self) -> Pane:
        """The facts of a session that was killed meanwhile: its tombstone knows how it ended."""
        import json

        path = f"{self.control.transport.home}/ended/{self.pane.id}/ended.json"
        about: dict[str, Any] = {}
        deadline = time.monotonic() + 1.0
        while not about and time.monotonic() < deadline:
            try:
                about = json.loads(self.control.transport.read(path))
            except (NotFound, ValueError):
                time.sleep(0.02)
        return self.pane._replace(dead=True, status=about.get("exit_status"), signal=about.get("signal"))

    def _ended(self) -> Exited:
        error = ended(self.pane)
        error.details["elapsed"] = round(time.monotonic() - self.began, 3)
        return error

    def _nap(self, moment: float, deadline: float | None) -> float:
        left = [LOOK_SECONDS]
        if deadline is not None:
            left.append(deadline - moment)
        if self.settle is not None:
            left.append(self.changed + self.settle - moment)
        return max(0.0005, min(left))

    def _missing(self, limit: float | None) -> str:
        wanted = [
            *(["the end of the program"] if self.exit else []),
            *([f"text {ascii(self.pattern.pattern[:60])}"] if self.pattern else []),
            *([f"{self.settle:g} s of silence"] if self.settle is not None else []),
        ]
        return f"timeout: {' or '.join(wanted)} not seen within {limit:g} s"

    def result(
        self,
        matched: str | None,
        why: str,
        *,
        text: str | None = None,
        groups: tuple[str | None, ...] | None = None,
        timed_out: bool = False,
    ) -> Wait:
        """What the caller gets."""
        dead = self.pane.dead
        return Wait(
            session=self.pane.name,
            matched=matched,
            why=why,
            text=text if matched else self.seen.tail() if self.seen else None,
            groups=groups,
            state=State.EXITED if dead else State.UNKNOWN,
            by="exit" if dead else "settle" if matched == "settle" else None,
            confidence=Confidence.SURE if dead else Confidence.GUESS if matched == "settle" else None,
            elapsed=round(time.monotonic() - self.began, 3),
            cursor=sessions.cursor(self.pane, self.offset),
            timed_out=timed_out,
            exit_status=self.pane.status if dead else None,
            signal=self.pane.signal if dead else None,
        )


class Seen:
    """The text a pattern may match: output after the cursor without the echo, or the whole screen."""

    def __init__(self, control: Control, pane: Pane, journal: Journal, since: str | None, given: Input | None) -> None:
        from tmuxctl.control import look

        self.control, self.pane, self.journal = control, pane, journal
        offset = look.offset_of(pane, since)
        self.whole = offset is None and given is None
        self.input = given
        self.offset = offset if offset is not None else given.offset if given else journal.end()
        self.lines = _lines(pane, given)
        self.marks = pane.spec.get("marks", "")
        self.pending: bytes | None = b"" if given and given.echo == "editor" and self._at_prompt(given) else None
        self.fresh = True
        self.feed()

    def _at_prompt(self, given: Input) -> bool:
        """True if the input went to the marked shell itself, not to a program it runs."""
        if not self.marks:
            return False
        from tmuxctl.reading.marks import marks

        before = self.journal.read(max(0, given.offset - STEP), min(STEP, given.offset)).data
        found = marks(before, self.marks)
        return bool(found) and found[-1].letter != "C"

    def feed(self) -> int:
        """Take in new output; how far the journal was read."""
        while True:
            part = self.journal.read(self.offset, STEP)
            if not part.data:
                return self.offset
            self.offset, self.fresh = part.end, True
            self.lines.feed(part.data)
            if self.pending is not None:
                self._look_for_command(part.data)
            if len(part.data) < STEP and not part.truncated:
                return self.offset

    def _look_for_command(self, data: bytes) -> None:
        """Where the marked shell says that the command it was given starts, output begins; what was before is echo."""
        from tmuxctl.reading.marks import marks

        pending = (self.pending or b"") + data
        begun = next((mark for mark in marks(pending, self.marks) if mark.letter == "C"), None)
        if begun is None:
            self.pending = pending[-STEP:]
            return
        self.pending = self.input = None
        self.lines = _lines(self.pane, None)
        self.lines.feed(pending[begun.end :])

    def search(self, pattern: re.Pattern[str], deadline: float | None) -> Found | None:
        """Try the pattern on what has been seen, if anything came since the last time."""
        if not self.fresh and not self.whole:
            return None
        from tmuxctl.control.alarm import searching

        self.fresh = False
        text = self.text()
        with searching(pattern.pattern, deadline):
            found = pattern.search(text, max(0, len(text) - WINDOW))
        return Found(found[0], found.groups()) if found else None

    def text(self) -> str:
        """The text a pattern is tried on."""
        if self.whole or self.lines.alternate or (self.input and self.input.alternate):
            return self._rows()
        from tmuxctl.terminal import screen as screens

        text = screens.clean(self.lines.text())
        if self.input is None or self.input.echo == "none":
            return text
        from tmuxctl.reading.echo import without_echo

        return without_echo(text, self.input.typed, again=self.input.echo == "tty")

    def tail(self) -> str:
        """The last of what was seen, for a result that is not a match."""
        return self.text()[-4000:].strip()

    def _rows(self) -> str:
        """A full-screen program's rows that changed since the input, as tmux shows them; all of them for the whole screen."""
        from tmuxctl.control import look
        from tmuxctl.terminal import screen as screens

        try:
            pane, _, rows, _ = look.capture(self.control, self.pane.id, wide=self.whole)
        except NotFound:
            return ""
        text = screens.text(rows)
        given = self.input
        if self.whole or given is None or not given.alternate or (given.cols, given.rows) != (pane.cols, pane.rows):
            return text
        from tmuxctl.reading.echo import without_echo

        touched = self.lines.touched()
        kept = "\n".join(row for index, row in enumerate(text.split("\n")) if index in touched)
        return without_echo(kept, given.typed, again=False) if given.echo != "none" else kept


def _lines(pane: Pane, given: Input | None) -> Lines:
    from tmuxctl.reading.lines import Lines

    if given is None:
        return Lines(pane.cols, pane.rows)
    return Lines(given.cols, given.rows, x=given.x, y=given.y)


def _how(pane: Pane) -> str:
    if pane.signal:
        return f"signal {pane.signal}"
    return "status unknown" if pane.status is None else f"status {pane.status}"
