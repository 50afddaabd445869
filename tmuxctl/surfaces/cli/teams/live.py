"""A run as a person sees it: a line for each thing that happens, and below them what its agents do now."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from types import TracebackType

from tmuxctl.fleet.connector import Connector
from tmuxctl.fleet.running.runs import AgentProgress
from tmuxctl.fleet.running.transcript import Record
from tmuxctl.surfaces.cli.printing import progress
from tmuxctl.surfaces.cli.printing.cells import age, cut
from tmuxctl.surfaces.cli.printing.output import Options, flat, tell, width, with_socket
from tmuxctl.surfaces.cli.printing.team_lines import record_line
from tmuxctl.timing import TIMING
from tmuxctl.vocabulary import RunEvent

STATUS_MOST = 8
"""So many agents stand in the line of what is done now."""


class RunDisplay:
    """Shows the records of a run on standard error. On a terminal a last line tells who works, since when, and who waits for
    whom; it is gone at the end."""

    def __init__(self, options: Options, connector: Connector) -> None:
        self.options, self.connector = options, connector
        self._lock = threading.Lock()
        self._agents: dict[str, AgentProgress] = {}
        self._since: dict[str, float] = {}
        self._turns = 0
        self._over = threading.Event()
        self._painter = threading.Thread(target=self._paint, daemon=True) if progress.shown(options) else None

    def __enter__(self) -> RunDisplay:
        if self._painter:
            self._painter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._painter:
            self._painter.join()
            self._write(progress.ERASE)

    def show(self, record: Record) -> None:
        """Show what happened."""
        with self._lock:
            name = record.to[0] if record.event is RunEvent.TURN else record.sender
            if name is not None:
                self._agents.setdefault(name, AgentProgress(name)).note(record)
                if record.event is RunEvent.TURN:
                    self._since[name] = time.monotonic()
                    self._turns += not record.about.get("tries")
            if self.options.quiet or self.options.json:
                return
            if self._painter:
                self._write(progress.ERASE)
            tell(record_line(record.to_json()))
            waiting = record.event is RunEvent.ASKING and self._agents[record.sender or ""].session
            if waiting:
                tell(with_socket(f"          answer it: tmuxctl decide {flat(waiting)}", self.options))
            if record.event is RunEvent.STOPPED:
                file, name = shlex.quote(self.connector.path), self.connector.name
                hint = f"go on: tmuxctl connect up {file} --resume; or end its sessions: tmuxctl connect down {name}"
                tell(with_socket(f"          {flat(hint)}", self.options))

    def _paint(self) -> None:
        while not self._over.wait(TIMING.page.table_seconds):
            with self._lock:
                self._write(progress.ERASE + cut(self._format_status(), (width(sys.stderr) or 80) - 1))

    def _format_status(self) -> str:
        now = time.monotonic()
        busy = [
            f"{one.name} {'waits for you' if one.waits else age(now - self._since.get(one.name, now))}"
            for one in self._agents.values()
            if one.turn
        ]
        more = f" and {len(busy) - STATUS_MOST} more" if len(busy) > STATUS_MOST else ""
        return f"turn {self._turns}/{self.connector.stop.turns}  {', '.join(busy[:STATUS_MOST])}{more}   (Ctrl-C stops the run)"

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
