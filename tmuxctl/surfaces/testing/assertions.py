"""What a test says of a session: each assertion waits until it holds, and shows the screen if it does not."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tmuxctl.errors import TmuxctlError
from tmuxctl.surfaces.library.driven import TerminalSession, to_seconds
from tmuxctl.timing import TIMING

if TYPE_CHECKING:
    from tmuxctl.surfaces.library.driven import Duration
    from tmuxctl.surfaces.library.screens import TerminalScreen

TIMES = TIMING.assertion


class Snapshots:
    """Where the kept screens of one test file are, and what is done with them."""

    def __init__(self, folder: Path, *, update: bool, style: bool) -> None:
        self.folder, self.update, self.style = folder, update, style


class SessionAssertions:
    """Assertions about one session; `expect(app)` makes it. `timeout` in seconds, or as `10s`."""

    def __init__(self, session: TerminalSession, snapshots: Snapshots, timeout: Duration | None = None) -> None:
        self._session, self._snapshots = session, snapshots
        self._timeout = TIMES.limit_seconds if timeout is None else to_seconds(timeout) or 0.0

    def to_have_text(self, text: str | re.Pattern[str], *, timeout: Duration | None = None) -> None:
        """The screen shows a text, or something that matches a compiled pattern."""
        __tracebackhide__ = True
        self._wait(lambda screen: _shows(screen, text), f"to have {_describe(text)}", timeout)

    def not_to_have_text(self, text: str | re.Pattern[str], *, timeout: Duration | None = None) -> None:
        """The screen does not show a text, or no more."""
        __tracebackhide__ = True
        self._wait(lambda screen: not _shows(screen, text), f"not to have {_describe(text)}", timeout)

    def to_be(self, state: str, *, timeout: Duration | None = None) -> None:
        """The program is `idle`, `busy`, `asking` or `exited`, at its `prompt`, or wants other `input`."""
        __tracebackhide__ = True
        seen = ""

        def holds(_: TerminalScreen) -> bool:
            nonlocal seen
            facts = self._session.info
            seen = facts.state.value + (f", wants {facts.wants}" if facts.wants else "")
            return state in (facts.state.value, facts.wants)

        self._wait(holds, f"to be {state}", timeout, lambda: f"it is {seen}")

    def to_have_exited(self, status: int = 0, *, timeout: Duration | None = None) -> None:
        """The program has ended with this exit status."""
        __tracebackhide__ = True
        self.to_be("exited", timeout=timeout)
        facts = self._session.info

        def is_told(_: TerminalScreen) -> bool:
            nonlocal facts
            facts = self._session.info
            return bool(facts.signal) or facts.exit_status is not None

        # a terminal is closed before its program has ended; tmux knows how only then
        self._wait(is_told, "to have exited with a status", timeout, lambda: "how it ended is not known")
        ended = f"signal {facts.signal}" if facts.signal else f"status {facts.exit_status}"
        if facts.signal or facts.exit_status != status:
            _fail(
                f"expected {facts.name} to have exited with status {status}: it ended with {ended}",
                self._session.screen,
            )

    def to_match_snapshot(self, name: str, *, style: bool | None = None, timeout: Duration | None = None) -> None:
        """The screen is as it is kept in the file `name`, beside the test; with `style` its colours and attributes too.

        `pytest --tmuxctl-update` keeps it as it is now, once nothing changes on it any more.
        """
        __tracebackhide__ = True
        styled = self._snapshots.style if style is None else style
        path = self._snapshots.folder / (f"{name}.styled" if styled else name)
        if path.resolve().parent != self._snapshots.folder.resolve():
            raise ValueError(f"{name!r} is no name of a file")
        if self._snapshots.update:
            self._keep(path, styled)
            return
        if not path.exists():
            _fail(f"no snapshot {path}: pytest --tmuxctl-update keeps the screen", self._session.screen)
        wanted = path.read_text()
        self._wait(
            lambda screen: _content(screen, styled) == wanted,
            f"to match {path.name}",
            timeout,
            lambda: _compare(wanted, _content(self._session.screen, styled)),
        )

    def _keep(self, path: Path, styled: bool) -> None:
        self._session.wait_settled(TIMES.settled_seconds, timeout=max(self._timeout, 1.0))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_content(self._session.screen, styled))

    def _wait(
        self,
        holds: Callable[[TerminalScreen], bool],
        wanted: str,
        timeout: Duration | None,
        explain: Callable[[], str] | None = None,
    ) -> None:
        """Look at the screen until something holds; it is looked at again when something was printed."""
        __tracebackhide__ = True
        limit = self._timeout if timeout is None else to_seconds(timeout) or 0.0
        deadline = time.monotonic() + limit
        while True:
            screen = self._session.screen
            if holds(screen):
                return
            left = deadline - time.monotonic()
            if left <= 0:
                why = f": {explain()}" if explain else ""
                _fail(f"expected {screen.session} {wanted} within {limit:g} s{why}", screen)
            self._await_change(screen, min(left, TIMES.look_seconds))

    def _await_change(self, screen: TerminalScreen, seconds: float) -> None:
        try:
            self._session.client.control.wait(
                self._session.id, change=True, since=screen.position, timeout=max(0.01, seconds)
            )
        except TmuxctlError:
            # it has ended
            time.sleep(min(TIMES.late_seconds, seconds))


def _shows(screen: TerminalScreen, text: str | re.Pattern[str]) -> bool:
    return text in screen.text if isinstance(text, str) else text.search(screen.text) is not None


def _describe(text: str | re.Pattern[str]) -> str:
    return f"text {text!r}" if isinstance(text, str) else f"a match of {text.pattern!r}"


def _content(screen: TerminalScreen, styled: bool) -> str:
    styles = ["", "-- styles", *screen.styles] if styled else []
    return "\n".join([screen.text.rstrip("\n"), *styles]) + "\n"


def _compare(wanted: str, found: str) -> str:
    """The differences of two screens, rows that differ with - and +."""
    rows = difflib.ndiff(wanted.splitlines(), found.splitlines())
    return "\n".join(["", *rows])


def _fail(message: str, screen: TerminalScreen) -> None:
    __tracebackhide__ = True
    line = "-" * screen.cols
    rows = "\n".join(f"|{row}" for row in screen.lines)
    raise AssertionError(f"{message}\n{line} {screen.session}, {screen.cols}x{screen.rows}\n{rows}\n{line}")
