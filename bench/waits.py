"""Waits: what fifty asleep cost, what one look costs, that what holds returns at once, and that none hangs, whatever happens
to its session, its tmux server, or another wait in the process."""

from __future__ import annotations

import math
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from place import Place, Row

from tmuxctl.control import Control
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.sessions import finding
from tmuxctl.errors import TmuxctlError
from tmuxctl.results import Wait
from tools.processes import cpu_seconds

ASLEEP, ASLEEP_SECONDS = 50, 60.0
PROBES, LOOKS = 1000, 100
BASH = ("bash", "--norc")
BOMB = r"(a+)+b"
BOMB_SECONDS = 3.0
READERS, ROUNDS = 5, 24
TELLING = """
import time
while True:
    number = input()
    time.sleep(0.2)
    print(f"SAID {number} {time.time():.6f}", flush=True)
"""


def sleeping(place: Place) -> list[Row]:
    """Half wait for a text that never comes, half for a program that works to become idle."""
    with place.control() as control:
        for number in range(ASLEEP):
            busy = number % 2
            control.new(f"s{number}", ("sleep", "1000") if busy or number % 4 else BASH, wait=False)
        control.wait("s0", idle=True, timeout=10)
        waits = [threading.Thread(target=_asleep, args=(control, f"s{number}", number % 2)) for number in range(ASLEEP)]
        began, cpu, others = time.monotonic(), time.process_time(), _server_cpu(place)
        for one in waits:
            one.start()
        marks = []
        while time.monotonic() - began < ASLEEP_SECONDS:
            time.sleep(ASLEEP_SECONDS / 6)
            marks.append(time.process_time() - cpu)
        cpu, others = time.process_time() - cpu, _server_cpu(place) - others
        seconds = time.monotonic() - began
        alive = sum(one.is_alive() for one in waits)
        control.kill(all=True, signal="KILL", grace=0.1)
        for one in waits:
            one.join(10)
    left = sum(one.is_alive() for one in waits)
    share = cpu / seconds
    tenths = ", ".join(f"{mark:.2f}" for mark in marks)
    return [
        Row(
            f"CPU of a process with {ASLEEP} waits asleep over {seconds:.0f} s",
            "< 3 % of a core",
            f"{share:.1%} (tmux {others / seconds:.1%}; {alive} asleep at the end)",
            share < 0.03 and alive == ASLEEP,
            f"seconds of CPU after each sixth: {tenths}; waits that hung when all was killed: {left}",
        )
    ]


def _asleep(control: Control, session: str, busy: int) -> None:
    with suppress(TmuxctlError):
        if busy:
            control.wait(session, idle=True, timeout=2 * ASLEEP_SECONDS)
        else:
            control.wait(session, text="never seen", timeout=2 * ASLEEP_SECONDS)


def _server_cpu(place: Place) -> float:
    """Seconds of CPU the tmux server has used."""
    return cpu_seconds(int(place.tmux("display-message", "-p", "#{pid}")))


def probe(place: Place) -> list[Row]:
    """Processor time of one probe of the kernel, and of a whole look with its verdict."""
    with place.control() as control:
        rows = []
        for name, command, limit in (("an idle bash", ("bash",), 1.0), ("a node REPL", ("node",), None)):
            session = control.new(command[0], command)
            pane = finding.find_session(control.machine, session.id)
            cost = _cpu(partial(control.machine.transport.probe, [(pane.pid, pane.tty)]), PROBES)
            asked = f"< {limit:g} ms" if limit else "no limit"
            rows.append(
                Row(f"CPU of one kernel probe of {name}", asked, f"{cost:.2f} ms", cost < limit if limit else None)
            )
            watched = Observer(control.machine, pane)
            whole = _cpu(lambda watched=watched: (watched.observe(), watched.verdict()), LOOKS, 0.03)
            drawn = _cpu(lambda watched=watched: (watched.observe(fresh=True), watched.verdict()), LOOKS, 0.03)
            told = f"{whole:.2f} ms; {drawn:.2f} ms when it printed something and its screen is read"
            rows.append(Row(f"CPU of a whole observation of {name} with the verdict", "no limit", told, None))
    return rows


def _cpu(call: Callable[..., object], times: int, pause: float = 0.0) -> float:
    """Milliseconds of this process's CPU that one call takes."""
    call()
    spent = 0.0
    for _ in range(times):
        time.sleep(pause)
        began = time.process_time()
        call()
        spent += time.process_time() - began
    return spent / times * 1000


def already(place: Place) -> list[Row]:
    """What already holds, a resize in the middle, and ends from outside."""
    with place.control() as control:
        control.new("sh", BASH)
        control.new("marked", ("bash",))
        control.new("ended", ("true",))
        control.send("sh", b"echo SE'E'N")
        control.wait("sh", text="SEEN", timeout=10)
        rows = [_at_once(control), _resized(control), _killed(place, control)]
    return [*rows, _server_killed(place)]


def _at_once(control: Control) -> Row:
    waits = {
        "an idle shell": lambda: control.wait("sh", idle=True, timeout=10),
        "a marked one": lambda: control.wait("marked", idle=True, timeout=10),
        "a text": lambda: control.wait("sh", text="SEEN", timeout=10),
        "an end": lambda: control.wait("ended", exit=True, timeout=10),
    }
    took = {name: _median(call) for name, call in waits.items()}
    told = ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in took.items())
    return Row("a wait for what already holds, warm, medians of 30", "≤ 100 ms", told, max(took.values()) <= 0.1)


def _median(call: Callable[[], Wait], times: int = 30) -> float:
    found = []
    for _ in range(times):
        began = time.monotonic()
        assert call().matched
        found.append(time.monotonic() - began)
    return statistics.median(found)


def _resized(control: Control) -> Row:
    """Waits while the terminal changes its size twice; the last thing a command does is to make a file."""
    commands = {"bash": "sleep 1.5; : >{0}", "python3": "import time; time.sleep(1.5); open('{0}', 'w').close()"}
    wrong, late = [], []
    for name, line in commands.items():
        for marked in (True, False) if name == "bash" else (True,):
            session = name if marked else f"{name}-unmarked"
            file = Path(session)
            control.new(session, (name,), shell_marks=marked)
            control.send(session, line.format(file).encode())
            sizes = [threading.Timer(0.2 + at * 0.4, control.resize, (session, size)) for at, size in enumerate(SIZES)]
            for one in sizes:
                one.start()
            found = control.wait(session, idle=True, timeout=15)
            returned = time.time()
            if found.matched != "idle" or not file.exists():
                wrong.append(f"{session}: {found.state}, {found.why}")
                continue
            late.append(f"{session} {(returned - file.stat().st_mtime) * 1000:.0f} ms")
            for one in sizes:
                one.join()
    control.send("bash-unmarked", b"sleep 1.2; echo MA'R'K")
    change = threading.Timer(0.4, control.resize, ("bash-unmarked", "60x20"))
    change.start()
    if control.wait("bash-unmarked", text="^MARK", timeout=10).matched != "text":
        wrong.append("the text was not seen")
    total = len(commands) + 2
    told = f"{total - len(wrong)} of {total}; {', '.join(late)} after the true end"
    return Row("waits through resizes, idle and text", f"{total} of {total}", told, not wrong, "\n".join(wrong))


SIZES = ("70x20", "150x50", "100x30")


def _killed(place: Place, control: Control) -> Row:
    """`tmux kill-session` under a wait."""
    found = {}
    for what, wait in _WAITS.items():
        control.new("victim", ("sleep", "1000"), wait=False)
        found[what] = _told_after(
            lambda wait=wait: wait(control, "victim"), lambda: place.tmux("kill-session", "-t", "=victim")
        )
    return _ends("a wait whose session `tmux kill-session` ends", found)


def _server_killed(place: Place) -> Row:
    """The tmux server killed (-9) under a wait."""
    found = {}
    for what, wait in _WAITS.items():
        os.environ["TMUXCTL_SOCKET"] = socket = f"lost-{what}"
        place.sockets.append(socket)
        with Control(resident=True) as control:
            control.new("victim", ("sleep", "1000"), wait=False)
            pid = int(place.tmux("display-message", "-p", "#{pid}", socket=socket))
            found[what] = _told_after(
                lambda wait=wait, control=control: wait(control, "victim"), lambda pid=pid: os.kill(pid, signal.SIGKILL)
            )
    return _ends("a wait whose tmux server is killed (-9)", found)


_WAITS: dict[str, Callable[[Control, str], Wait]] = {
    "idle": lambda control, name: control.wait(name, idle=True, timeout=20),
    "text": lambda control, name: control.wait(name, text="never", timeout=20),
    "exit": lambda control, name: control.wait(name, exit=True, timeout=20),
}


def _told_after(wait: Callable[..., Wait], end: Callable[..., object]) -> tuple[float, str]:
    """Seconds from an end to the wait's return, and what the wait said."""
    told: list[tuple[float, str]] = []

    def run() -> None:
        try:
            found = wait()
            said = f"{found.state}, {found.why}"
        except TmuxctlError as error:
            said = f"{error.code} {error.reason}"
        told.append((time.monotonic(), said))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(1.0)
    if told:
        return math.inf, f"before: {told[0][1]}"
    began = time.monotonic()
    end()
    thread.join(25)
    return (told[0][0] - began, told[0][1]) if told else (math.inf, "nothing")


def _ends(what: str, found: dict[str, tuple[float, str]]) -> Row:
    told = "; ".join(f"{name} {seconds:.2f} s ({said})" for name, (seconds, said) in found.items())
    return Row(what, "≤ 1 s", told, all(seconds <= 1.0 for seconds, _ in found.values()))


def bombs(place: Place) -> list[Row]:
    """Waits for text that comes meanwhile, with and without a wait whose pattern needs years."""
    with place.control() as control:
        names = [f"said{number}" for number in range(READERS)]
        for name in names:
            control.new(name, (sys.executable, "-c", TELLING), wait=False)
        control.new("bomb", ("sh", "-c", f"printf '{'a' * 60}!\\n'; exec cat"))
        alone = _delays(control, names)
        over = threading.Event()
        ends: list[tuple[float, str]] = []
        bomb = threading.Thread(target=_bomb, args=(control, over, ends))
        bomb.start()
        beside = _delays(control, names)
        over.set()
        bomb.join(BOMB_SECONDS + 5)
    quiet, loaded = statistics.median(alone), statistics.median(beside)
    right = [seconds for seconds, said in ends if said and seconds <= BOMB_SECONDS + 0.5]
    told = (
        f"{loaded * 1000:.1f} ms, at most {max(beside) * 1000:.0f} ms; without {quiet * 1000:.1f} ms, at most "
        f"{max(alone) * 1000:.0f} ms ({len(beside)} waits each)"
    )
    longest = max((seconds for seconds, _ in ends), default=math.inf)
    said = ", ".join(sorted({said for _, said in ends}))
    return [
        Row(
            f"waits whose pattern would need years, timeout {BOMB_SECONDS:g} s",
            "an error within 3.5 s",
            f"{len(right)} of {len(ends)} (longest {longest:.2f} s: {said})",
            bool(ends) and len(right) == len(ends),
        ),
        Row(
            f"{READERS} other waits for text in that process meanwhile: median delay",
            "≤ 2.0 x, at most 200 ms",
            told,
            loaded <= 2 * quiet + 0.005 and max(beside) <= 0.2,
        ),
    ]


def _bomb(control: Control, over: threading.Event, ends: list[tuple[float, str]]) -> None:
    """One wait after the other; how long each took, and the error it ended in."""
    while not over.is_set():
        began, said = time.monotonic(), ""
        try:
            control.wait("bomb", text=BOMB, since="screen", timeout=BOMB_SECONDS)
        except TmuxctlError as error:
            said = f"{error.code} {error.reason}"
        ends.append((time.monotonic() - began, said))


def _delays(control: Control, names: Sequence[str]) -> list[float]:
    """Seconds between the moment each program printed something and the end of the wait for it."""
    found: list[float] = []

    def run(name: str) -> None:
        for number in range(ROUNDS):
            control.send(name, str(number).encode())
            said = control.wait(name, text=rf"SAID {number} (\d+\.\d{{6}})", timeout=15)
            printed = said.groups[0] if said.groups else None
            found.append(time.time() - float(printed) if printed else math.inf)

    readers = [threading.Thread(target=run, args=(name,)) for name in names]
    for one in readers:
        one.start()
    for one in readers:
        one.join(60)
    assert len(found) == READERS * ROUNDS, len(found)
    return found
