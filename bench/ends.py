"""How programs ended that end at once: exit status and signal, 8 at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from place import Place, Row, counted

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError

PROGRAMS, AT_ONCE = 200, 8
SIGNALS = ("TERM", "KILL", "SEGV", "HUP", "INT", "QUIT", "ABRT", "PIPE", "USR1", "ALRM")


class End(NamedTuple):
    """What a program was told to end with, or was said to have ended with."""

    status: int | None
    signal: str | None


def measure(place: Place) -> list[Row]:
    with place.control() as control, ThreadPoolExecutor(AT_ONCE) as pool:
        control.new("first", ("cat",))
        ends = list(pool.map(lambda number: (wanted_end(number), told_end(control, number)), range(PROGRAMS)))
    wrong = [f"{_text(wanted)} told as {_text(told)}" for wanted, told in ends if wanted != told]
    false_zero = sum(isinstance(told, End) and told.status == 0 and wanted.status != 0 for wanted, told in ends)
    return [
        counted("exit status and signal of programs that end at once, 8 at a time", wrong, PROGRAMS),
        Row("ends wrongly reported as status 0", "0", str(false_zero), not false_zero),
    ]


def wanted_end(number: int) -> End:
    if number % 5 == 4:
        return End(None, SIGNALS[number // 5 % len(SIGNALS)])
    # every kind of small, large and shell-special status
    return End((0, 1, 2, 126, 127, 128, 130, 137, 143, 255)[number % 10] if number % 3 else number % 256, None)


def told_end(control: Control, number: int) -> End | str:
    """What `wait --exit`, `show` or `run` says of the program's end."""
    wanted = wanted_end(number)
    script = f"exit {wanted.status}" if wanted.signal is None else f"kill -{wanted.signal} $$"
    command = ("sh", "-c", f"ulimit -c 0; {script}")
    try:
        if number % 2:
            ran = control.run(command, name=f"r{number}", timeout=60)
            return End(ran.exit_status, ran.signal)
        control.new(f"n{number}", command, wait=False)
        found = control.wait(f"n{number}", exit=True, timeout=60)
        shown = control.show(f"n{number}")
        told = End(found.exit_status, found.signal)
        return (
            told if told == End(shown.exit_status, shown.signal) else f"{told}, then {shown.exit_status} {shown.signal}"
        )
    except TmuxctlError as error:
        return f"{error.code} {error.reason}: {error.message}"


def _text(end: End | str) -> str:
    if isinstance(end, str):
        return end
    return end.signal or f"status {end.status}"
