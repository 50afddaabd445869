"""Recording while it happens: a process for each recorded session, which keeps when its output came.

The journal has the output anyway. The recorder adds only times and, if a file was named, writes the recording at its end. It
ends with the session, or when its order says so; while nothing is printed its times go on, which shows that it still works.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import tmuxctl
from tmuxctl import config
from tmuxctl.control import Control
from tmuxctl.control.output.moments import History
from tmuxctl.control.sessions import finding
from tmuxctl.errors import Conflict, Exited, Failed, NotFound, TmuxctlError, Usage
from tmuxctl.operations import current
from tmuxctl.results import Recorded
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.timeline import OutputTime, OutputTimes
from tmuxctl.transport import spawn
from tmuxctl.transport.base import read_object
from tmuxctl.untrusted import fits

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

ORDER = {"start!": int, "began!": (int, float), "file": str, "stop": bool}
"""What the file for the recorder holds: the offset and the time of the beginning, the file to write, and whether to end."""


def rec(machine: Machine, session: str, file: str | None, *, stop: bool) -> Recorded:
    """Begin to record a session, or end it; `file` is written at the end. Conflict `recording` if it is recorded already,
    `not_recording` if there is nothing to end."""
    if file is not None:
        file = os.path.abspath(os.path.expanduser(file))
        if not file.endswith(".cast"):
            raise Usage("a recording is an asciicast", reason="bad_option", hint="name a file that ends in .cast")
        if not os.path.isdir(os.path.dirname(file)):
            raise Usage(f"{ascii(file)}: there is no such folder", reason="bad_file", hint="name another file")
    order = _Order(machine, session)
    return order.end(file) if stop else order.begin(file)


def record_new(machine: Machine, session: str) -> None:
    """Begin to record a session that was just started. One that was there before, or has ended, is as it is."""
    with suppress(Conflict, Exited):
        rec(machine, session, None, stop=False)


class _Order:
    """What the recorder of a session is told: a file in the session's folder, which is there as long as it is recorded."""

    def __init__(self, machine: Machine, session: str) -> None:
        self.machine, self.history = machine, History(machine, session)
        self.path = f"{self.history.folder}/{layout.RECORDER}"
        self.times = OutputTimes(machine.transport, self.history.folder)

    def read(self) -> dict[str, Any] | None:
        """The order; None if the session is not recorded."""
        with suppress(NotFound, OSError, ValueError):
            found = read_object(self.machine.transport, self.path)
            return found if fits(found, ORDER) else None
        return None

    def write(self, order: dict[str, Any]) -> None:
        """Give an order."""
        self.machine.transport.put(self.path, json.dumps(order).encode())

    def works(self) -> bool:
        """Whether a recorder has kept a time of late."""
        kept = self.machine.transport.files(self.history.folder).get(layout.OUTPUT_TIMES)
        oldest = self.machine.clock.wall() - self.machine.timing.recorder.silent_seconds
        return kept is not None and kept.modified > oldest

    def begin(self, file: str | None) -> Recorded:
        """Start a recorder, and return when it works."""
        pane = self.history.pane
        if pane.dead:
            raise Exited(
                f"the program in {pane.name} has ended: nothing more is printed",
                reason="exited",
                hint=f"what it printed: tmuxctl export {pane.name} {pane.name}.cast",
            )
        if self.read() is not None and self.works():
            raise Conflict(
                f"{pane.name} is recorded already", reason="recording", hint=f"end it: tmuxctl rec {pane.name} --stop"
            )
        # a session that was only just started is recorded from its beginning on
        start, began = 0, pane.created
        if self.machine.clock.wall() - began >= self.machine.timing.recorder.begin_seconds:
            start, began = self.history.journal.end(), self.machine.clock.wall()
        self.write({"start": start, "began": began, **({"file": file} if file else {})})
        try:
            _start_process(self.machine, self.machine.address_of(pane.id))
        except BaseException:
            self.machine.transport.remove(self.path)
            raise
        return Recorded(pane.name, True, finding.cursor_at(pane, start), file)

    def end(self, file: str | None) -> Recorded:
        """Stop the recorder, and write the file that was named now or in the beginning."""
        pane, order = self.history.pane, self.read()
        if order is None:
            hint = f"what it printed: tmuxctl export {pane.name} {pane.name}.cast"
            raise Conflict(f"{pane.name} is not recorded", reason="not_recording", hint=hint)
        self.write({**order, "stop": True})
        until = time.monotonic() + self.machine.timing.recorder.stop_seconds
        while self.read() is not None and time.monotonic() < until:
            current().check()
            time.sleep(self.machine.timing.recorder.pause_seconds)
        # one that was killed removes nothing
        self.machine.transport.remove(self.path)
        file = file or order.get("file")
        if file:
            self.save(order, file)
        return Recorded(pane.name, False, finding.cursor_at(pane, order["start"]), file)

    def save(self, order: dict[str, Any], file: str) -> None:
        """Write what was printed since the beginning."""
        from tmuxctl.control.recordings import exporting, played

        since = finding.cursor_at(self.history.pane, order["start"])
        recording = played.record(
            self.machine, self.history.pane.id, since=since, until=None, began=float(order["began"])
        )
        exporting.save_cast(recording, file)

    def keep_times(self) -> None:
        """Keep when output comes until the session ends or the order says so; then the order is gone."""
        timing, clock, journal = self.machine.timing.recorder, self.machine.clock, self.history.journal
        pane, end, kept, grown = self.history.pane, journal.end(), 0.0, clock.monotonic()
        with closing(self.machine.transport.watch([journal.folder, self.history.folder], pane.pid or None)) as watch:
            while True:
                order, extent, now = self.read(), journal.extent(), clock.wall()
                if extent.end < end:
                    break
                if extent.end > end:
                    grown = clock.monotonic()
                if extent.end > end or now - kept >= timing.alive_seconds:
                    self.times.add(OutputTime(end, extent.end, now))
                    end, kept = extent.end, now
                if order is None or order.get("stop"):
                    break
                # where the server died nothing says that the journal is finished
                gone = pane.pid and not self.machine.transport.processes([pane.pid])
                if extent.finished or (gone and clock.monotonic() - grown >= timing.alive_seconds):
                    if file := order.get("file"):
                        self.save(order, file)
                    break
                # output that comes at once has one time
                time.sleep(timing.together_seconds)
                watch.wait(timing.alive_seconds)
        self.machine.transport.remove(self.path)


def _start_process(machine: Machine, session: str) -> None:
    """Start a recorder. It goes on alone once this returns; Failed if it does not get so far."""
    root = os.path.dirname(os.path.dirname(tmuxctl.__file__))
    begin = f"import sys; sys.path.insert(0, {root!r}); from {__name__} import main; main()"
    try:
        done = spawn.run(
            [sys.executable, "-P", "-c", begin, machine.transport.socket, session],
            timeout=machine.timing.recorder.start_seconds,
        )
    except (OSError, spawn.SpawnTimeout) as error:
        raise _not_started(str(error)) from None
    if done.status:
        raise _not_started(done.errors.decode(errors="replace").strip().rpartition("\n")[2])


def _not_started(why: str) -> Failed:
    return Failed(f"the recorder did not start: {why[:200]}", reason="not_started", hint="tmuxctl doctor")


def main() -> None:
    """The recorder: `SOCKET SESSION` as arguments, the id of a session or its address. Its first process ends when the second
    one is at work."""
    socket, session = sys.argv[1:]
    with Control(settings=config.load({"tmux.socket": socket})) as control:
        place, called = control.reach(session)
        order = _Order(place.machine, called)
        end = order.history.journal.end()
        order.times.add(OutputTime((order.read() or {}).get("start", end), end, place.machine.clock.wall()))
        if os.fork():
            os._exit(0)
        os.setsid()
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        with suppress(TmuxctlError):
            order.keep_times()
