"""200 writes to a session of another machine, and its output followed, while the way there is cut in the middle of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tmuxctl.control import Control
from tmuxctl.errors import Unreachable

WRITES, LINES, PATIENCE = 200, 2000, 90.0


def check_writes_and_output(
    far: Control,
    machine: str,
    taken: Path,
    interrupt: Callable[[], threading.Thread],
    make_control: Callable[[], Control],
    *,
    cuts: int = 1,
    lines: int = LINES,
) -> list[str]:
    """What became of each write, and of those that were repeated under the same id. `taken` is a file on the machine; `interrupt`,
    which is called `cuts` times, cuts the way there, and returns a thread that ends when it is whole again. No write is lost or
    done twice, and no line of the output is missing."""
    far.new(f"{machine}/in", ("sh", "-c", f"cat >{taken}"))
    script = f"i=0; while [ $i -lt {lines} ]; do echo line $i; i=$((i + 1)); sleep 0.02; done"
    far.new(f"{machine}/out", ("sh", "-c", script))
    followed: list[str] = []

    def follow() -> None:
        with make_control() as control:
            since = control.log(f"{machine}/out", tail=0).cursor
            found = control.read(f"{machine}/out", follow=True, since=since)
            assert isinstance(found, Iterator)
            for piece in found:
                followed.append(piece.text)

    follower = threading.Thread(target=follow)
    follower.start()
    while not followed:
        assert follower.is_alive()
        time.sleep(0.01)
    results: list[str] = []
    healing: list[threading.Thread] = []
    for number in range(WRITES):
        if number and number % (WRITES // (cuts + 1)) == 0 and len(healing) < cuts:
            healing.append(interrupt())
        results.append(_write(far, f"{machine}/in", number))
        deadline = time.monotonic() + PATIENCE
        while results[-1] not in ("done", "dup"):
            assert time.monotonic() < deadline
            results.append(_write(far, f"{machine}/in", number))
    for one in healing:
        one.join()
    far.keys(f"{machine}/in", ("C-d",))
    far.wait(f"{machine}/in", exit=True, timeout=PATIENCE)
    assert taken.read_text().split("\n") == [*(f"write {number}" for number in range(WRITES)), ""]
    follower.join(PATIENCE)
    assert not follower.is_alive()
    found = "".join(followed).split("\n")
    assert found[-2:] == [f"line {lines - 1}", ""]
    first = int(found[0].split()[1])
    assert found[:-1] == [f"line {number}" for number in range(first, lines)]
    return results


def _write(control: Control, session: str, number: int) -> str:
    """Write a line under an id of its own: `done`, `dup`, `unknown`, or why the machine was not reached."""
    try:
        return control.send(session, f"write {number}".encode(), id=f"write{number:08d}").result
    except Unreachable as error:
        return "unknown" if error.reason == "outcome_unknown" else str(error.reason)
