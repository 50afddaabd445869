"""Plays one scenario beside others in one place, and tells what was done when; a process of its own.

`python -m tools.states.timed_play` reads a job as JSON from standard input, and writes what it did to standard output. What
is true at which moment is not known here but by the recorder (`recorder.py`), which is told of the session.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tmuxctl.control import Control
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.sessions.records import session_folder
from tmuxctl.errors import TmuxctlError
from tmuxctl.evidence import Look
from tmuxctl.reading.evidence.tty_waits import assess_foreground
from tools.states.play import Broken, Player, start
from tools.states.recorder import SOCKET
from tools.states.scenarios import Expect, Pause, Press, Scenario, Step, Type, Until, parse

NEW = 2.0
"""Seconds a session exists before anything is typed into it: until then a surface may not have told of it."""

LATE = 8.0
"""Seconds by which a busy machine may delay what a scenario waits for: a read of what was typed, an input, an end."""

Order = Callable[[Mapping[str, Any]], None]


class TimedPlayer(Player):
    """Does a scenario's steps and notes when each was done. It goes on only once the program has come as far as the scenario
    supposes: on a busy machine that takes longer than written."""

    def __init__(self, control: Control, observer: Observer, session: str, order: Order) -> None:
        super().__init__(control, observer, session)
        self.order = order
        self.steps: list[dict[str, Any]] = []
        self.started = time.monotonic()
        self.waits: list[tuple[dict[str, Any], subprocess.Popen[str]]] = []

    def play(self, steps: Sequence[Step]) -> None:
        """Do all steps; behind an input at which the program goes to work, have a command wait until it is idle."""
        for number, step in enumerate(steps):
            done = {"number": number, "called": time.monotonic()}
            self.steps.append(done)
            self.do(step)
            following = steps[number + 1] if number + 1 < len(steps) else None
            if isinstance(step, Until):
                done["journal"] = self.looks[-1].journal
                done["settled"] = not isinstance(following, Expect) or following.state == "input"
                if done["settled"]:
                    self._settle()
            done["returned"] = time.monotonic()
            if isinstance(step, Type | Press) and isinstance(following, Expect) and following.state != "input":
                self._start_wait(number)

    def do(self, step: Step) -> None:
        if isinstance(step, Expect):
            self._expect(step)
        elif isinstance(step, Pause):
            self.watch(time.monotonic() + LATE, _has_read)
            super().do(step)
        elif isinstance(step, Until):
            super().do(step._replace(timeout=step.timeout + 2 * LATE))
        else:
            super().do(step)

    def _settle(self) -> None:
        """Go on only where the program waits and the session is not new, and count from then."""
        self.watch(self.started + NEW)
        self.watch(time.monotonic() + NEW, _waits)
        self.base = time.monotonic()

    def _expect(self, step: Expect) -> None:
        """Look until the window's end, which is later by as much as its state began late."""
        begin = 0.0
        if step.state in REACHED:
            begin = step.begin if step.since is None else step.since
            self.watch(self.base + begin)
        before = len(self.looks)
        self.watch(time.monotonic() + LATE, REACHED.get(step.state, _has_read))
        # a state that had begun at the first look is not late
        begun = self.looks[-1].at if len(self.looks) > before + 1 else self.base + begin
        self.watch(begun + step.end - begin)

    def _start_wait(self, number: int) -> None:
        called = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "tmuxctl", "wait", self.session, "--idle", "--timeout", "60", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.order({"process": process.pid})
        self.waits.append(({"number": number, "called": called, "process": process.pid}, process))

    def end_waits(self) -> list[dict[str, Any]]:
        """What the commands that waited said; those that still wait are ended, and said nothing."""
        found = []
        for about, process in self.waits:
            if process.poll() is None:
                process.kill()
            text, _ = process.communicate()
            found.append({**about, "status": process.returncode, "said": text})
        return found


def _has_read(look: Look) -> bool:
    """Nothing that was typed is unread."""
    return look.dead or look.kernel is None or look.kernel.tty is None or not look.kernel.tty.unread


def _waits(look: Look) -> bool:
    """The program waits for the terminal, and has read what was typed."""
    kernel = look.kernel
    while kernel and kernel.inner and kernel.inner.programs:
        kernel = kernel.inner
    assessed = assess_foreground(kernel)
    return _has_read(look) and assessed is not None and assessed.waits


REACHED: Mapping[str, Callable[[Look], bool]] = {"input": _waits, "exited": lambda look: look.dead}
"""How a look shows that an expected state has begun, by the state; of the others, that the input was read."""


def play(control: Control, scenario: Scenario, job: Mapping[str, Any]) -> dict[str, Any]:
    """Play a scenario in a session with its id as its name; what broke it is told in the result."""
    folder, session, messages = Path(job["folder"]), scenario.id, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def order(message: Mapping[str, Any]) -> None:
        messages.sendto(json.dumps(message).encode(), f"{job['recorder']}/{SOCKET}")

    pane = start(control, session, scenario, folder, job["options"], {"HOME": str(folder / "home")})
    about = {"pid": pane.pid, "terminal": pane.tty, "folder": session_folder(control.machine, pane.id)}
    # to look at all processes of the machine takes the recorder long
    order({"session": session, "beyond": scenario.group == "beside", **about})
    player = TimedPlayer(control, Observer(control.machine, pane), session, order)
    began, broken = _find_start(pane.pid) or player.base, ""
    try:
        player.play(scenario.steps)
    except (Broken, TmuxctlError) as error:
        broken = str(error)
    ended = time.monotonic()
    order({"leave": session})
    found = {"scenario": scenario.id, "terminal": pane.tty, "began": began, "ended": ended}
    return {**found, "steps": player.steps, "waits": player.end_waits(), "broken": broken}


def _find_start(pid: int) -> float | None:
    """When a process began, on the monotonic clock; None if it has gone."""
    try:
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK") + time.monotonic() - time.clock_gettime(time.CLOCK_BOOTTIME)


def main() -> int:
    """Play the job on standard input; returns the exit status."""
    job = json.load(sys.stdin)
    (Path(job["folder"]) / "home").mkdir(parents=True)
    scenario = parse(job["scenario"])
    with Control(resident=True) as control:
        try:
            played = play(control, scenario, job)
        except (TmuxctlError, OSError) as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            with suppress(TmuxctlError):
                control.kill((scenario.id,), grace=0.5)
    print(json.dumps(played))
    return 0


if __name__ == "__main__":
    sys.exit(main())
