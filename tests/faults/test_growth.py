"""What is done with sessions leaves nothing in the tmux server but what it remembers for them, however often it is done.

A heap has a size of its own and grows in steps: so everything is done before it is measured, and what is allowed for a turn lies
above those steps (a turn leaves less than 100 bytes: bench/soak.py) and below what lists and screens come to that are never freed
(9 KB a turn).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tmuxctl.control import Control
from tmuxctl.errors import Conflict
from tmuxctl.results import Check

pytestmark = [pytest.mark.on("tmux", "resident", "pipe"), pytest.mark.timeout(300)]

WARM, TURNS = 20, 40
SLACK = 4000
"""Bytes for each time that something is done."""


def grown(control: Control, figures: Callable[..., None], do: Callable[[], None]) -> float:
    """The bytes that the server's memory grew by while this was done, beyond what histories and screens came to."""
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))

    def size() -> int:
        told = control.machine.transport.run([("list-panes", "-a", "-F", "#{history_bytes}")])
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        anonymous = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
        return (anonymous << 10) - sum(map(int, told.split()))

    before = size()
    do()
    figures("bytes the server grew by", size() - before)
    return size() - before


@pytest.mark.night
def test_turns_and_looks_leave_nothing_in_the_server(control: Control, figures: Callable[..., None]) -> None:
    control.new("t", ("bash", "--norc", "--noprofile"), history=100)

    def work(turns: int) -> None:
        for turn in range(turns):
            answer = control.ask("t", b"echo v$((%d * 7))" % turn).text.strip()
            control.keys("t", ("Enter",))
            assert (answer, answer in control.screen("t").text) == (f"v{turn * 7}", True)

    work(WARM)
    assert grown(control, figures, lambda: work(TURNS)) < SLACK * TURNS
    assert control.machine.transport.run([("list-buffers",)]) == b""


@pytest.mark.night
def test_screens_with_all_that_scrolled_away_leave_nothing_in_the_server(
    control: Control, figures: Callable[..., None]
) -> None:
    control.new("t", ("bash", "--norc", "--noprofile"))
    lines = "for i in $(seq 3000); do printf '\\033[3%dm%0100d\\n' $((i % 8)) $i; done"
    assert control.ask("t", lines.encode()).text.count("\n") >= 2999

    def look() -> None:
        for _ in range(20):
            assert f"{2900:0100}" in (control.screen("t", scrollback=0).scrollback or ())

    look()
    # each is 350 KB
    assert grown(control, figures, look) < 3 << 20
    assert control.machine.transport.run([("list-buffers",)]) == b""


@pytest.mark.night
def test_what_is_refused_leaves_nothing_in_the_server(control: Control, figures: Callable[..., None]) -> None:
    control.new("t", ("cat",))
    here = ("-t", "=t:")
    control.machine.transport.run([("select-pane", "-d", *here)])

    def refused(times: int) -> None:
        for _ in range(times):
            with pytest.raises(Conflict, match="switched off"):
                control.send("t", b"x" * 500)

    refused(TURNS)
    # the allocator takes pages in steps, now and then: what is leaked is leaked each time
    assert min(grown(control, figures, lambda: refused(4 * TURNS)) for _ in range(2)) < SLACK * TURNS / 2
    # nor is the text kept
    assert control.machine.transport.run([("list-buffers",)]) == b""


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_a_server_that_has_grown_is_told(control: Control) -> None:
    control.new("t", ("cat",))

    def memory() -> Check:
        (check,) = [one for one in control.doctor().checks if one.name == "memory"]
        return check

    assert memory().ok
    # more than a program may leave in it by all it does: somebody's own use of the server
    control.machine.transport.run(
        [("set-option", "-g", "@there", "1")], buffer=("theirs", b"x" * (100 << 20)), timeout=60
    )
    grown = memory()
    assert grown.ok is False
    assert "tmuxctl restore" in (grown.hint or "")
    control.machine.transport.run([("delete-buffer", "-b", "theirs")])
    assert memory().ok
