"""Plays one scenario in a session of its own and records what is seen of it; a process of its own: `python -m tools.states.play`.

Reads a job as JSON from standard input, writes the recording to standard output.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tmuxctl.control import Control
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.sessions import finding
from tmuxctl.errors import TmuxctlError
from tmuxctl.evidence import Look
from tmuxctl.machines import machines_path
from tmuxctl.terminal.tmux.server import Pane
from tools.states.recording import Recording, Window, to_lines
from tools.states.scenarios import Expect, Pause, Press, Scenario, Step, Type, Until, parse

STEP = 0.06
"""Seconds between two looks."""
SESSION = "scenario"
MACHINE = "far"


class Broken(Exception):
    """A scenario that did not get where its truth begins."""


class Player:
    """Does a scenario's steps in a session, looking at it all the while."""

    def __init__(self, control: Control, observer: Observer, session: str = SESSION) -> None:
        self.control, self.observer, self.session = control, observer, session
        self.looks: list[Look] = []
        self.windows: list[Window] = []
        self.typed: float | None = None
        self.base = time.monotonic()

    def do(self, step: Step) -> None:
        """One step; an expectation is a stretch of looking. Broken if what it waits for does not come."""
        if isinstance(step, Expect):
            since = None if step.since is None else self.base + step.since
            truth = step._replace(begin=self.base + step.begin, end=self.base + step.end, since=since)
            self.windows.append(Window(truth, self.base))
            self.watch(truth.end)
        elif isinstance(step, Pause):
            self.watch(time.monotonic() + step.seconds)
        elif isinstance(step, Until):
            pattern = re.compile(step.pattern, re.MULTILINE)
            if not self.watch(time.monotonic() + step.timeout, lambda look: bool(pattern.search(look.screen.rstrip()))):
                raise Broken(
                    f"{step.pattern!r} did not come in {step.timeout:g} s; the screen:\n{self.looks[-1].screen}"
                )
            self.base = time.monotonic()
        else:
            self.give(step)

    def give(self, step: Type | Press) -> None:
        """Type or press, and count from now."""
        if self.typed is None:
            self.typed = time.monotonic()
        if isinstance(step, Type):
            self.control.send(self.session, step.text.encode(), enter=False, insecure=True)
        else:
            self.control.keys(self.session, step.keys, insecure=True)
        self.base = time.monotonic()

    def watch(self, end: float, found: Callable[[Look], bool] | None = None) -> bool:
        """Look every STEP seconds until that moment, or until a look is what was to be found."""
        while True:
            began = time.monotonic()
            look = self.observer.observe()
            self.looks.append(look)
            if found and found(look):
                return True
            if look.at >= end:
                return False
            time.sleep(max(0.0, began + STEP - time.monotonic()))


def play(control: Control, scenario: Scenario, folder: Path, options: Mapping[str, Any]) -> Recording:
    """Play a scenario in this folder; what broke it is told in the recording."""
    began = time.monotonic()
    # a machine behind ssh has the programs that it needs in its PATH, and no others
    programs = {"PATH": os.environ["PATH"]} if control.machine.address else {}
    pane = start(control, SESSION, scenario, folder, options, programs)
    player = Player(control, Observer(control.machine, pane, level=options["level"]))
    broken = ""
    try:
        for step in scenario.steps:
            player.do(step)
    except (Broken, TmuxctlError) as error:
        broken = str(error)
    about = {name: value for name, value in player.observer.evidence._asdict().items() if name != "looks"}
    first = player.looks[0].at if player.looks else player.base
    return _from_start(
        Recording(
            scenario=scenario.id,
            group=scenario.group,
            hard=scenario.hard,
            windows=tuple(player.windows),
            typed=player.typed,
            age=first - began,
            about=about,
            looks=tuple(player.looks),
            profile=player.observer.profile.name if player.observer.profile else "",
            broken=broken,
        ),
        first,
    )


def start(
    control: Control,
    session: str,
    scenario: Scenario,
    folder: Path,
    options: Mapping[str, Any],
    variables: Mapping[str, str],
) -> Pane:
    """Start a scenario's program in a session, with these variables beside its own; gives the session's pane."""
    if scenario.setup:
        subprocess.run(
            ["sh", "-c", scenario.setup],
            cwd=folder,
            env=os.environ | variables,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    control.new(
        session,
        tuple(shlex.split(scenario.run)),
        cwd=str(folder / scenario.cwd),
        env={**variables, **scenario.env},
        size="120x40",
        shell_marks=options["marks"],
        profile=options["profile"],
        wait=False,
    )
    return finding.find_session(control.machine, session)


def _from_start(recording: Recording, start: float) -> Recording:
    """With moments counted from the first look."""
    windows = []
    for truth, base in recording.windows:
        since = None if truth.since is None else truth.since - start
        windows.append(
            Window(truth._replace(begin=truth.begin - start, end=truth.end - start, since=since), base - start)
        )
    return recording._replace(
        windows=tuple(windows),
        typed=None if recording.typed is None else recording.typed - start,
        looks=tuple(look._replace(at=look.at - start) for look in recording.looks),
    )


def _reach(here: Control, ssh: Sequence[str], own: Mapping[str, str]) -> Control:
    """The operations on the machine that this command of ssh leads to, with variables of this job's own there."""
    words = ("exec", "env", *(f"{name}={value}" for name, value in own.items()), "LC_ALL=C.UTF-8", "sh")
    file = Path(machines_path())
    file.parent.mkdir(parents=True)
    file.write_text(f"[{MACHINE}]\ncommand = {json.dumps([*ssh, shlex.join(words)])}\n")
    return here.reach(f"{MACHINE}/")[0]


def main() -> int:
    """Play the job on standard input; returns the exit status."""
    job = json.load(sys.stdin)
    folder = Path(job["folder"])
    home = folder / "home"
    home.mkdir(parents=True)
    own = {"HOME": str(home), "XDG_STATE_HOME": str(folder / "state"), "TMUX_TMPDIR": str(folder)}
    os.environ.update(own)
    with Control(resident=True) as here:
        control = _reach(here, job["ssh"], own) if job["ssh"] else here
        try:
            recording = play(control, parse(job["scenario"]), folder, job["options"])
        except TmuxctlError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            with suppress(TmuxctlError):
                control.kill(all=True, grace=0.5)
            for socket in folder.glob("tmux-*/*"):
                subprocess.run(["tmux", "-S", str(socket), "kill-server"], stderr=subprocess.DEVNULL, check=False)
    for line in to_lines(recording):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
