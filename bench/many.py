"""Making sessions beside tmux's own `new-session`, and listing 200 of them beside 10."""

from __future__ import annotations

import os
import subprocess
from functools import partial

from place import Place, Row, interleaved, timed, tmuxctl

from tmuxctl.control import Control

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
        # warm, nearly all is tmux's own `list-panes`, which grows with the panes (73 microseconds each, measured)
        holds = many <= 3 * few if what == "cold" else None
        asked = "≤ 3.0 x" if what == "cold" else "no limit"
        rows.append(Row(f"`ls` with 200 sessions beside 10, {what}", asked, measured, holds))
    for control in controls.values():
        control.close()
    return rows


def _cold(number: int) -> int:
    done = tmuxctl("--socket", f"with{number}", "ls", "-q")
    assert done.status == 0, done.stderr
    return len(done.stdout.split())
