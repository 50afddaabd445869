"""How soon `watch` tells the right state after an input that prints nothing: a password's Enter, a key of a menu.

python -m tools.states.silent [ROUNDS]     types as another tmuxctl does and as a person does, and prints what it took
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tmuxctl.control import Control
from tmuxctl.model import State

PROGRAM = """
import sys, termios, time, tty
way, taken = sys.argv[1:]
kept = termios.tcgetattr(0)
print('Password: ' if way == 'line' else 'Delete it? [y/n] ', end='', flush=True)
if way == 'key':
    tty.setcbreak(0)
else:
    kept[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, kept)
while True:
    sys.stdin.read(1) if way == 'key' else sys.stdin.readline()
    with open(taken, 'a') as file:
        print(time.monotonic(), file=file)
    time.sleep(1)
"""

QUIET = (0.3, 0.8, 1.5, 2.5, 4.0, 6.0)
"""Seconds without anything before an input: the longer, the more seldom it is looked."""

WORKING = (State.BUSY, State.STARTING)

MEDIAN, EACH = 0.15, 0.3
"""What must hold, in seconds."""


def measured(control: Control, way: str, who: str, rounds: int, folder: Path) -> list[float]:
    """Seconds from the moment the program took each input until `watch` said that it works."""
    name, taken = f"{way}-{who}", folder / f"{way}-{who}"
    taken.touch()
    control.new(name, (sys.executable, "-I", "-c", PROGRAM, way, str(taken)), profile="none")
    seen: list[tuple[float, State]] = []

    def watch() -> None:
        with Control(resident=True) as other:
            for event in other.watch((name,)):
                seen.append((time.monotonic(), event.state))

    threading.Thread(target=watch, daemon=True).start()
    found = []
    for number in range(rounds):
        _until(lambda: bool(seen) and seen[-1][1] is State.ASKING)
        time.sleep(QUIET[number % len(QUIET)])
        _type(control, name, way, who)
        _until(lambda count=number: len(taken.read_text().splitlines()) > count)
        moment = float(taken.read_text().split()[number])
        _until(lambda since=moment: any(at > since and state in WORKING for at, state in seen))
        found.append(next(at for at, state in seen if at > moment and state in WORKING) - moment)
    return found


def _type(control: Control, name: str, way: str, who: str) -> None:
    if who == "tmuxctl":
        control.keys(name, ("y" if way == "key" else "Enter",), insecure=True)
    else:
        # what a person's client does, and nothing that tmuxctl hears of
        socket = os.environ["TMUXCTL_SOCKET"]
        subprocess.run(
            ["tmux", "-L", socket, "send-keys", "-t", f"={name}:", "y" if way == "key" else "Enter"], check=True
        )


def _until(holds: object, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)


def main() -> int:
    """Measure and print; returns the exit status: 0 if what must hold holds."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2 * len(QUIET)
    with tempfile.TemporaryDirectory(prefix="tcs-", dir="/tmp") as folder:
        os.environ.update(HOME=folder, XDG_STATE_HOME=f"{folder}/state", TMUX_TMPDIR=folder, TMUXCTL_SOCKET="s")
        with Control(resident=True) as control:
            found = []
            for way in ("line", "key"):
                for who in ("tmuxctl", "person"):
                    found += measured(control, way, who, rounds, Path(folder))
            control.kill(all=True, grace=0.5)
            subprocess.run(["tmux", "-L", "s", "kill-server"], stderr=subprocess.DEVNULL, check=False)
    median, longest = statistics.median(found), max(found)
    print(" ".join(f"{one:.3f}" for one in found))
    print(f"{len(found)} silent inputs: told after {median:.3f} s (median), {longest:.3f} s (the longest)")
    holds = median <= MEDIAN and longest <= EACH
    print(f"-- {'holds' if holds else 'DOES NOT HOLD'}: {MEDIAN} s in the median and {EACH} s each")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
