"""`wait --text`: never the echo of what was typed, at once when it holds, ended by exit and timeout only."""

from __future__ import annotations

import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from place import Place, Row

from tmuxctl.control import Control
from tmuxctl.errors import Exited

LATE = "sleep 2; echo MARK"
TYPED = {
    "bash": LATE,
    "zsh": LATE,
    "fish": LATE,
    "sh": LATE,
    "python": 'import time; time.sleep(2); print("MARK")',
    "python again": 'import time; time.sleep(2); print("MA" + "RK")',
}
COMMANDS = {"python": (sys.executable, "-q"), "python again": (sys.executable, "-q")}


def measure(place: Place) -> list[Row]:
    programs = [name for name in TYPED if name in COMMANDS or shutil.which(name)]
    with place.control() as control:
        with ThreadPoolExecutor(len(programs)) as pool:
            early = [text for text in pool.map(lambda name: _late(control, name), programs) if text]
        return [_row(programs, early), _at_once(control), _ended(control)]


def _row(programs: list[str], early: list[str]) -> Row:
    missing = [name for name in TYPED if name not in programs]
    measured = (
        f"{len(programs) - len(early)} of {len(TYPED)} {'; '.join([*early, *(name + ' missing' for name in missing)])}"
    )
    what = "`sleep 2; echo MARK` in bash, zsh, fish, sh and Python: `wait --text MARK` takes two seconds"
    return Row(what, f"{len(TYPED)} of {len(TYPED)} (≥ 1.9 s)", measured, not early and not missing)


def _late(control: Control, name: str) -> str:
    """What was wrong with three waits for a text that comes two seconds after it was typed."""
    session = name.replace(" ", "-")
    control.new(session, COMMANDS.get(name, (name,)))
    control.wait(session, settle=0.7, timeout=20)
    for _ in range(3):
        began = time.monotonic()
        control.send(session, TYPED[name].encode())
        found = control.wait(session, text="MARK", timeout=15)
        elapsed = time.monotonic() - began
        if found.matched != "text" or elapsed < 1.9:
            return f"{name}: {found.why} after {elapsed:.2f} s"
    return ""


def _at_once(control: Control) -> Row:
    """What was printed after the last input answers every later wait at once."""
    longest = 0.0
    held = 0
    for _ in range(10):
        began = time.monotonic()
        held += control.wait("python", text="MARK", timeout=10).matched == "text"
        longest = max(longest, time.monotonic() - began)
    return Row(
        "a text that already holds ends the wait at once",
        "10 of 10",
        f"{held} of 10 (longest {longest * 1000:.0f} ms)",
        held == 10 and longest < 1.0,
    )


def _ended(control: Control) -> Row:
    """Silence and other output do not end it; the program's end and the timeout do."""
    control.new("end", ("sh", "-c", "sleep 1; exit 3"), wait=False)
    told = []
    try:
        control.wait("end", text="never", timeout=15)
    except Exited as error:
        told.append("exit" if error.details.get("exit_status") == 3 else f"exit {error.details}")
    control.send("python", b"print('other')")
    began = time.monotonic()
    found = control.wait("python", text="never", timeout=1.5)
    elapsed = time.monotonic() - began
    if found.timed_out and found.matched is None and elapsed > 1.4:
        told.append("timeout")
    return Row("else it is ended by", "exit, timeout", ", ".join(told), told == ["exit", "timeout"])
