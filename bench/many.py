"""Many sessions: made beside tmux's own `new-session`, listed, used while others print, and what tmux remembers of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from place import Place, Row, interleaved, timed, tmuxctl

from tmuxctl.control import Control
from tmuxctl.terminal.tmux import server
from tmuxctl.timing import TIMING
from tools.processes import find_processes, resident_bytes

ROUNDS = 30


def new(place: Place) -> list[Row]:
    """`Control.new` in a process that stays, beside a spawned `tmux new-session`."""
    plain = ["tmux", "-L", "plain", "-f", "/dev/null"]
    place.sockets.append("plain")
    subprocess.run([*plain, "new-session", "-d", "-s", "first", "cat"], check=True)
    numbers = iter(range(10_000))
    with place.control() as control:
        control.new("first", ("cat",))

        def bare() -> None:
            name = f"s{next(numbers)}"
            subprocess.run([*plain, "new-session", "-d", "-s", name, "-x", "120", "-y", "40", "cat"], check=True)

        def ours() -> None:
            control.new(f"s{next(numbers)}", ("cat",), wait=False)

        seen = interleaved(ROUNDS, {"ours": timed(ours), "tmux": timed(bare)})
    ratio = seen["ours"] / seen["tmux"]
    measured = f"{ratio:.2f} x ({seen['ours'] * 1000:.1f} ms, {seen['tmux'] * 1000:.1f} ms; medians of {ROUNDS})"
    return [Row("`Control.new` beside `tmux new-session -d`", "≤ 3.0 x", measured, ratio <= 3.0)]


def ls200(place: Place) -> list[Row]:
    """`ls` with 200 sessions beside 10: the command cold, and the call in a process that stays."""
    controls = {}
    for number in (10, 200):
        os.environ["TMUXCTL_SOCKET"] = socket = f"with{number}"
        place.sockets.append(socket)
        controls[number] = Control(resident=True)
        for index in range(number):
            controls[number].new(f"s{index}", ("cat",), shell_marks=False, wait=False)
    rows = []
    for what, call, rounds in (("cold", _cold, 15), ("warm", lambda number: len(controls[number].ls().sessions), 30)):
        assert [call(number) for number in controls] == list(controls)
        seen = interleaved(rounds, {str(number): timed(partial(call, number)) for number in controls})
        few, many = seen["10"], seen["200"]
        measured = f"{many / few:.2f} x ({many * 1000:.1f} ms, {few * 1000:.1f} ms; medians of {rounds})"
        # warm, nearly all is tmux's own `list-panes`, which grows with the panes
        holds = many <= 3 * few if what == "cold" else None
        asked = "≤ 3.0 x" if what == "cold" else "no limit"
        rows.append(Row(f"`ls` with 200 sessions beside 10, {what}", asked, measured, holds))
    rows.append(_beside_tmux(controls[200]))
    for control in controls.values():
        control.close()
    return rows


def _beside_tmux(control: Control) -> Row:
    """`ls` of sessions to which nothing happens, beside tmux telling the same fields of them to the same client."""
    time.sleep(TIMING.observation.window_seconds)
    for _ in range(2):
        control.ls()
    listing = ("list-panes", "-a", "-F", server.FORMAT)
    subjects: dict[str, Callable[[], object]] = {
        "ours": control.ls,
        "tmux": lambda: control.machine.transport.run([listing]),
        "spawned": lambda: subprocess.run(
            ["tmux", "-L", control.machine.transport.socket, *listing], capture_output=True
        ),
    }
    seen = interleaved(30, {name: timed(call) for name, call in subjects.items()})
    ratio = seen["ours"] / seen["tmux"]
    numbers = ", ".join(f"{seconds * 1000:.1f} ms" for seconds in seen.values())
    return Row(
        "`ls` of 200 sessions at rest, warm, beside tmux's own `list-panes` of the same fields",
        "≤ 2.0 x",
        f"{ratio:.2f} x ({numbers} where that is spawned; medians of 30)",
        ratio <= 2.0,
    )


def _cold(number: int) -> int:
    done = tmuxctl("--socket", f"with{number}", "ls", "-q")
    assert done.status == 0, done.stderr
    return len(done.stdout.split())


PRINTER = """
import os, sys, time
pause, due = 1 / float(sys.argv[1]), time.monotonic()
while True:
    while os.path.exists(sys.argv[2]):
        time.sleep(0.05)
        due = time.monotonic()
    os.write(1, b"a line of what is being printed all the time, as long as a line is\\n")
    due += pause
    time.sleep(max(0.0, due - time.monotonic()))
"""
PRINTERS, LINES_A_SECOND, USES_A_SECOND = 20, 20, 10
BLOCK_SECONDS, BLOCKS = 3.0, 8
ALL_USED = 100_000
"""Lines of a session of which tmux keeps some."""


def printing(place: Place) -> list[Row]:
    """20 sessions that print 20 lines a second each, and one that is used ten times a second: type, see it, take the screen."""
    pause = place.folder / "pause"
    pause.touch()
    quiet, busy = _Share(), _Share()
    with place.control() as control:
        control.new("used", ("bash", "--norc", "--noprofile"))
        for index in range(PRINTERS):
            words = ("python3", "-c", PRINTER, str(LINES_A_SECOND), str(pause))
            control.new(f"p{index}", words, shell_marks=False, wait=False)
        _use(control, 2.0)
        for _ in range(BLOCKS):
            quiet.measure(place, control)
            pause.unlink()
            time.sleep(0.3)
            busy.measure(place, control)
            pause.touch()
            time.sleep(0.3)
    used, others = busy.total, {name: busy.share(name) - quiet.share(name) for name in ("tmux", "writers", "ours")}
    parts = ", ".join(f"{name} {busy.share(name):.1%} ({more:+.1%} by the printing)" for name, more in others.items())
    before, during = statistics.median(quiet.trips), statistics.median(busy.trips)
    numbers = f"({during * 1000:.1f} ms, {before * 1000:.1f} ms; medians of {len(busy.trips)} and {len(quiet.trips)})"
    what = f"{PRINTERS} sessions print {LINES_A_SECOND} lines a second each, one is used {USES_A_SECOND} times a second"
    return [
        Row(
            f"{what}: tmux, writers and our process together", "≤ 15 % of a core", f"{used:.1%}: {parts}", used <= 0.15
        ),
        Row(
            f"{what}: its round trip beside none printing",
            "≤ 2.0 x",
            f"{during / before:.2f} x {numbers}",
            during <= 2 * before,
        ),
    ]


class _Share:
    """How much of a core each part takes in blocks of some seconds, and how long round trips take meanwhile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.used: Counter[str] = Counter()
        self.trips: list[float] = []

    def measure(self, place: Place, control: Control) -> None:
        before, began = _processor_time(place), time.monotonic()
        self.trips += _use(control, BLOCK_SECONDS)
        self.seconds += time.monotonic() - began
        for pid, (name, spent) in _processor_time(place).items():
            self.used[name] += spent - before.get(pid, (name, 0))[1]

    def share(self, name: str) -> float:
        return self.used[name] / 1e9 / self.seconds

    @property
    def total(self) -> float:
        return self.share("tmux") + self.share("writers") + self.share("ours")


def _use(control: Control, seconds: float) -> list[float]:
    """Round trips, so many a second."""
    trips, until_then = [], time.monotonic() + seconds
    while time.monotonic() < until_then:
        began = time.perf_counter()
        control.send("used", b"echo m''ark")
        assert control.wait("used", text="mark", timeout=20).matched
        assert "mark" in control.screen("used").text
        trips.append(time.perf_counter() - began)
        time.sleep(max(0.0, 1 / USES_A_SECOND - trips[-1]))
    return trips


def _processor_time(place: Place) -> dict[int, tuple[str, int]]:
    """What each process of this place is, and how long its first thread has run, in nanoseconds."""
    found = {}
    for pid in (os.getpid(), *find_processes(place.folder)):
        with suppress(OSError, IndexError):
            folder = Path(f"/proc/{pid}")
            words = (folder / "cmdline").read_bytes().split(b"\0")
            found[pid] = (_part(pid, words), int((folder / "schedstat").read_bytes().split()[0]))
    return found


def _part(pid: int, words: list[bytes]) -> str:
    if pid == os.getpid() or b"-C" in words:
        return "ours"
    if words[0] == b"dd" or any(word.endswith(b"journal.sh") for word in words):
        return "writers"
    return "tmux" if words[0].endswith(b"tmux") else "programs"


def history(place: Place) -> list[Row]:
    """The memory of a tmux server whose 20 sessions printed 100,000 lines each, by how many of those it keeps."""
    found = {}
    default = 0
    for kept in (0, 500, None, 10_000, 20_000, 50_000):
        os.environ["TMUXCTL_SOCKET"] = socket = f"keeps{kept}"
        place.sockets.append(socket)
        with Control(resident=True) as control:
            count = f"for n in range({ALL_USED}): print('a line of what was printed, as long as a line is, number', n)"
            for index in range(PRINTERS):
                words = ("python3", "-c", f"{count}\ninput()")
                control.new(f"p{index}", words, shell_marks=False, wait=False, history=kept)
            for index in range(PRINTERS):
                assert control.wait(f"p{index}", text=f"number {ALL_USED - 1}$", timeout=300).matched
            default = default or (control.machine.settings.tmux_history if kept is None else 0)
            told = control.machine.transport.run([("display-message", "-p", "#{pid}")])
            time.sleep(0.5)
            found[default if kept is None else kept] = resident_bytes(int(told))
        subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True)
    measured = ", ".join(f"{kept:,}: {memory / 1e6:.0f} MB" for kept, memory in found.items())
    what = f"memory of tmux with {PRINTERS} sessions that printed {ALL_USED:,} lines each, by the lines it keeps"
    return [Row(what, f"{default:,} (default) ≤ 50 MB", measured, found[default] <= 50e6)]
