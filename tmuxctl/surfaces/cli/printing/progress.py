"""One status line on the terminal while a command waits, gone when it ends."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tmuxctl.operations import Operation
from tmuxctl.surfaces.cli.printing.output import Options, flat, width
from tmuxctl.timing import TIMING, PageTiming

NAMES_MOST = 4
"""So many of several sessions are looked at."""

ERASE = "\r\x1b[K"


@contextmanager
def waiting(
    operation: Operation,
    arguments: Mapping[str, Any],
    options: Options,
    service: Any = None,
    *,
    timing: PageTiming = TIMING.page,
) -> Iterator[None]:
    """Show what is waited for, its state and how long it lasts, if this command waits and a person looks on.

    States are asked of `service`, which may be called from another thread.
    """
    about = operation.meta.waiting
    if about is None or not shown(options) or not _waits(operation, arguments):
        yield
        return
    stop = "Ctrl-C ends it" if about.transient else "Ctrl-C stops waiting"
    line = _Line(_what(operation, arguments), stop, _names(operation, arguments), service, timing)
    line.start()
    try:
        yield
    finally:
        line.done.set()
        line.writer.join()


def shown(options: Options) -> bool:
    """True if standard error is a terminal that can erase a line, and nobody asked for less."""
    quiet = options.quiet or options.json or sys.stderr is None
    return not quiet and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def watched(operation: Operation, arguments: dict[str, Any], options: Options) -> dict[str, Any]:
    """The arguments, with a name for a session that is there for this call only, so that a person is told what it does and
    can answer its questions."""
    if operation.meta.waiting and operation.meta.waiting.transient and shown(options):
        name = next(one.name for one in operation.parameters if one.kind.word == "newname")
        return {name: f"{operation.name}-{os.urandom(4).hex()}", **arguments}
    return arguments


def _waits(operation: Operation, arguments: Mapping[str, Any]) -> bool:
    ends = [one for one in operation.parameters if operation.meta.waiting and one.name in operation.meta.waiting.unless]
    return all(arguments.get(one.name, one.default) == one.default for one in ends)


def _what(operation: Operation, arguments: Mapping[str, Any]) -> str:
    """What a command waits for."""
    about, parameters = operation.meta.waiting, operation.parameters
    assert about is not None
    command = next((arguments.get(one.name) for one in parameters if one.positional and one.many), None)
    program = os.path.basename((command or [""])[0])
    names = ",".join(_names(operation, arguments)) or program or "the program"
    until = " or ".join(one.until for one in parameters if one.until and arguments.get(one.name)) or about.until
    return flat(f"waiting for {about.phrase.format(names=names, program=program, until=until)}")


def _names(operation: Operation, arguments: Mapping[str, Any]) -> Sequence[str]:
    """The sessions that are waited for."""
    for one in operation.parameters:
        if given := arguments.get(one.name):
            if one.kind.word in ("name", "newname"):
                return (given,)
            if one.kind.word == "names":
                return given.split(",") if isinstance(given, str) else tuple(given)
    return ()


class _Line:
    """The line, written by a thread of its own; another one asks for the states, and may hang without harm."""

    def __init__(self, what: str, stop: str, names: Sequence[str], service: Any, timing: PageTiming) -> None:
        self.what, self.stop, self.names, self.service = what, stop, names[:NAMES_MOST], service
        self.timing, self.began = timing, time.monotonic()
        self.done = threading.Event()
        self.states: dict[str, str] = {}

    def start(self) -> None:
        """Begin, with the first line after a second."""
        self.writer = threading.Thread(target=self._write, daemon=True)
        self.writer.start()

    def _write(self) -> None:
        if self.done.wait(self.timing.line_seconds):
            return
        if self.service is not None:
            threading.Thread(target=self._look, daemon=True).start()
        while True:
            _put(ERASE + self._text())
            if self.done.wait(self.timing.line_seconds):
                _put(ERASE)
                return

    def _text(self) -> str:
        from tmuxctl.surfaces.cli.printing.cells import columns, cut, length

        room = (width(sys.stderr) or 80) - 1
        line = f"{cut(self.what, 60)}, {length(time.monotonic() - self.began)}"
        states = [self.states[name] for name in self.names if name in self.states]
        line += f": {'; '.join(states)}" if states else ""
        stop = f"  ({self.stop})"
        return line + stop if columns(line + stop) <= room else cut(line, room)

    def _look(self) -> None:
        """Ask for the states, less and less often."""
        while not self.done.is_set():
            began = time.monotonic()
            for name in self.names:
                self._ask(name)
            self.done.wait(
                min(self.timing.rare_pause_seconds, max(self.timing.line_seconds, (began - self.began) / 10))
            )

    def _ask(self, name: str) -> None:
        from tmuxctl.surfaces.cli.printing import table

        try:
            found = self.service.call("show", {"session": name})
        except Exception:
            # what is wrong is told by the wait itself; and when that is over, all it stands on may be gone
            self.states.pop(name, None)
            return
        kind = found.kind or found.detail
        state = table.state(found) + (f" ({flat(kind)})" if kind else "")
        if found.asking:
            state = f"{table.state(found)}: {table.asked(found)[0]}"
        self.states[name] = f"{name} {state}" if len(self.names) > 1 else state


def _put(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
