"""Plays one program's turns, in a process and a home of its own, and prints each as a line of JSON.

python -m tools.agents.play '{"program": "claude", "mode": "hooks", ...}'
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import Session, State
from tmuxctl.results import Answer, Output

from . import lab, model, truth
from .behaviours import RUN, Planned, Shape, plan
from .programs import PROGRAMS
from .recording import Recorder, save
from .screens import Sampler
from .turn import Turn

SESSION = SOCKET = "a"
PATIENCE, PATIENCE_FAILING = 120.0, 200.0
"""Seconds a turn may take; one that fails, by however many attempts: cn and Aider go on for two minutes, Gemini for ever."""
LATE = 12.0
"""Seconds in which a program may yet ask the model, though its turn was told to be over."""
UNDECIDED = 1.0
"""Seconds in which a program is watched to do nothing before it is told to."""
READY = 60.0
"""Seconds a program may take until it is ready: Aider takes ten."""
GIVEN_UP = 3.0
"""Seconds in which a program that has told of its failure is watched to ask the model no more."""
ANSWERING = 1.5
"""Seconds after which a program that asked the model is in the middle of its answer."""
AFTER_TURN = 1.2
"""Seconds in which a turn that is over is still looked at, where it is recorded."""
AFTER = 3.0
"""Seconds in which a killed program's processes must be gone."""


class Player:
    """One program in a session, the model it talks to, and what is seen of both."""

    def __init__(self, control: Control, server: model.Model, place: lab.Place, mode: str, version: str) -> None:
        self.control, self.server, self.place, self.mode, self.version = control, server, place, mode, version
        self.sampler: Sampler | None = None
        self.question: tuple[float, float] | None = None

    # the session

    def start(self) -> None:
        """Start the program in a session, by its name or (without its hooks) through a script."""
        plain, about = self.mode == "screen", PROGRAMS[self.place.program]
        made = self.control.new(
            SESSION,
            self.place.plain if plain else (self.place.program,),
            cwd=str(self.place.work),
            profile=about.profile if plain or about.guest else "auto",
            if_exists="replace",
        )
        assert isinstance(made, Session)
        if made.profile != self.place.program:
            raise RuntimeError(f"{self.place.program} got the profile {made.profile}")
        self.sampler = Sampler(SOCKET, SESSION)
        waited = self.control.wait(SESSION, idle=True, timeout=READY)
        if waited.state is not State.IDLE:
            raise RuntimeError(f"it does not become ready: {waited.why}\n{self.screen()}")

    def stop(self) -> list[str]:
        """End the session; what of the program is left then."""
        if self.sampler:
            self.sampler.close()
            self.sampler = None
        with suppress(TmuxctlError):
            self.control.kill((SESSION,), grace=AFTER)
        deadline = time.monotonic() + AFTER
        while (left := lab.processes(self.place)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for one in left:
            with suppress(ProcessLookupError):
                os.kill(int(one.split()[0]), signal.SIGKILL)
        return left

    def screen(self) -> str:
        return self.sampler.screen if self.sampler else ""

    def healthy(self, turn: Turn) -> bool:
        """True if the next turn can be given: this one was taken, and the program takes a prompt again."""
        if turn.error or not turn.requests:
            return False
        try:
            held = self.control.wait(SESSION, idle=True, timeout=READY)
        except TmuxctlError:
            return False
        return held.state is State.IDLE

    # a turn

    def record(self, planned: Planned, folder: Path) -> Turn:
        """One turn, and what was seen of it kept in that folder."""
        recorder = Recorder(SESSION)
        try:
            turn = self.play(planned)
            time.sleep(AFTER_TURN)
            recorder.stop()
            if not turn.broken:
                save(recorder.told(turn, self.question), folder)
        finally:
            recorder.close()
        return turn

    def play(self, planned: Planned) -> Turn:
        """One turn, and the promises it breaks."""
        self.question = None
        run = RUN.get(self.place.program, "run")
        turn = Turn(
            program=self.place.program,
            mode=self.mode,
            version=self.version,
            behaviour=planned.behaviour.name,
            round=planned.round,
            id=planned.id,
            prompt=planned.behaviour.prompt(planned.id, run),
            asked=time.time(),
            returned=0.0,
            shape=planned.behaviour.shape.value,
            # in every second round the decision is given beforehand, as a policy
            policy=planned.round % 2 == 1,
        )
        how: dict[Shape, Callable[[Turn], Turn]] = {
            Shape.ALLOW: self.decided,
            Shape.DENY: self.decided,
            Shape.INTERRUPT: self.interrupted,
            Shape.FAILED: self.failed,
            Shape.LOST: self.failed,
        }
        try:
            turn = how.get(planned.behaviour.shape, self.asked)(turn)
        except TmuxctlError as error:
            turn = turn._replace(returned=time.time(), error=f"{type(error).__name__} {error.reason}: {error}")
        return self.checked(turn, planned)

    def asked(self, turn: Turn, timeout: float = PATIENCE, **how: Any) -> Turn:
        """Asked and answered."""
        answer = self.control.ask(SESSION, turn.prompt.encode(), timeout=timeout, **how)
        return told(turn, answer, time.time())

    def failed(self, turn: Turn) -> Turn:
        """Every attempt fails, until the program gives up and says so."""
        turn = self.asked(turn, PATIENCE_FAILING)
        time.sleep(GIVEN_UP)
        return turn

    def decided(self, turn: Turn) -> Turn:
        """The program asks whether it may run a command: nothing may happen before it is told."""
        option = turn.shape
        if turn.policy:
            turn = self.asked(turn, decide=(f"approval={option}",))
            return turn._replace(decided=turn.state == "idle")
        turn = self.asked(turn)
        if turn.state != "asking":
            return turn
        time.sleep(UNDECIDED)
        self.question = turn.returned, time.time()
        early = self.made(turn).exists()
        standing = self.control.decide(SESSION)
        assert standing.asking
        after = self.control.decide(SESSION, option, id=standing.asking.id, wait=True, timeout=PATIENCE)
        return turn._replace(decided=True, early=early, state=after.state.value, returned=time.time())

    def interrupted(self, turn: Turn) -> Turn:
        """Stopped by the next prompt while it answers."""
        assert self.sampler
        begun: list[Turn] = []
        first = threading.Thread(target=lambda: begun.append(self.begun(turn)))
        first.start()
        # not every program shows an answer before a paragraph of it is there: the model's log tells that it answers
        deadline = time.monotonic() + PATIENCE
        while not self.requests(turn) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(ANSWERING)
        following = turn._replace(id=f"{turn.id}-next", prompt=f"fake:echo#{turn.id}-next after the interrupt")
        try:
            following = self.asked(following._replace(shape="answer", asked=time.time()), interrupt=True)
        finally:
            first.join(PATIENCE)
        # the turn that counts is the one after the interrupt; of the first only whether it was stopped
        first_ones = [one for one in self.requests(turn) if not one.auxiliary]
        return following._replace(stopped=bool(first_ones) and all(one.outcome != "done" for one in first_ones))

    def begun(self, turn: Turn) -> Turn:
        try:
            return self.asked(turn)
        except TmuxctlError as error:
            return turn._replace(error=str(error))

    # what became of it

    def made(self, turn: Turn) -> Path:
        return self.place.work / f"made-{turn.id}"

    def requests(self, turn: Turn) -> tuple[model.Request, ...]:
        """What the model was asked with this very prompt, not with one whose id begins like it."""
        prompt = re.compile(rf"fake:[a-z]+#{re.escape(turn.id)}(?![\w.-])")
        return tuple(one for one in self.server.requests(f"#{turn.id}") if prompt.search(one.user))

    def came(self, turn: Turn) -> tuple[model.Request, ...]:
        """The model's requests for a turn; a turn that ended before the model was even asked is waited for, to tell."""
        deadline = time.monotonic() + LATE
        while True:
            found = self.requests(turn)
            if any(not one.auxiliary for one in found) or time.monotonic() > deadline:
                return found
            time.sleep(0.2)

    def checked(self, turn: Turn, planned: Planned) -> Turn:
        """The turn with what the model and the screen tell of it."""
        assert self.sampler
        requests = self.came(turn)
        last = next((one for one in reversed(requests) if not one.auxiliary and one.outcome == "done"), None)
        wanted = None
        if last and (last.results or turn.shape not in ("allow", "deny")):
            wanted = model.text(last, planned.behaviour.fails + 1)
        marks = [mark for mark in (wanted or "").split() if mark.startswith("FAKE-END:")]
        seen = self.sampler.wait(marks[-1], 1.0) if marks else None
        if turn.shape in ("allow", "deny"):
            turn = turn._replace(ran=self.made(turn).exists())
        turn = turn._replace(requests=requests, wanted=wanted, seen=seen, printed=self.printed(turn))
        return turn._replace(broken=truth.broken(turn), undrawn=truth.undrawn(turn))

    def printed(self, turn: Turn) -> str:
        """Every byte the program printed since it was given the turn's text, where no more than that can be known."""
        if turn.source != "screen":
            return ""
        output = self.control.read(SESSION, raw=True)
        assert isinstance(output, Output)
        return output.text


def told(turn: Turn, answer: Answer, returned: float) -> Turn:
    """The turn with the result of `ask`."""
    return turn._replace(
        returned=returned,
        answer=answer.answer,
        state=answer.state.value,
        kind=answer.kind,
        detail=answer.detail,
        by=answer.by,
        confidence=answer.confidence.value if answer.confidence else None,
        source=answer.source,
        complete=answer.complete,
        failure=answer.error or "",
        submitted=answer.submitted.ok,
        evidence=answer.submitted.evidence,
    )


@contextmanager
def ready(job: dict[str, Any]) -> Iterator[Player]:
    """A program made ready in a place of its own; nothing of it is left afterwards."""
    folder = Path(job["folder"])
    home = folder / "home"
    home.mkdir(parents=True)
    server = model.Model()
    place = lab.make_place(job["program"], job["version"], job["run"], server.port)
    if job["mode"] == "hooks":
        lab.install_hooks(place)
    kept = {name: os.environ[name] for name in ("LAB", "PATH") if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
    os.environ.update(
        HOME=str(home),
        XDG_STATE_HOME=str(folder / "state"),
        TMUX_TMPDIR=str(folder),
        TMUXCTL_SOCKET=SOCKET,
        PATH=f"{place.bin}:{kept['PATH']}",
        LANG="C.UTF-8",
        TERM="xterm-256color",
        SHELL="/bin/sh",
    )
    try:
        with Control() as control:
            yield Player(control, server, place, job["mode"], job["number"])
    finally:
        # the sessions' server outlives its last session, and then its folder
        subprocess.run(["tmux", "-L", SOCKET, "kill-server"], capture_output=True, check=False)
        server.close()
        lab.remove(place)


def main() -> int:
    """Play the job named on the command line; one line of JSON a turn, and a last one with what was left behind."""
    job = json.loads(sys.argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ready(job) as player:
        left: list[str] = []
        try:
            player.start()
            asks = PROGRAMS[job["program"]].asks
            for planned in plan(job["rounds"], job["quick"], job["only"], asks, job["done"]):
                turn = player.record(planned, Path(job["record"])) if job["record"] else player.play(planned)
                say(turn=turn.line(), **({"screen": player.screen()} if turn.broken else {}))
                if not player.healthy(turn):
                    say(note=f"does not take the next prompt after {turn.id}", screen=player.screen())
                    left += player.stop()
                    player.start()
        except (RuntimeError, TmuxctlError) as error:
            say(failed=str(error))
        finally:
            left += player.stop()
            say(left=left)
    return 0


def say(**about: Any) -> None:
    """Tell the suite: a line of JSON."""
    print(json.dumps(about, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    sys.exit(main())
