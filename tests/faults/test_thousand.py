"""A thousand sessions at once, with a soft limit of 1024 descriptors: all are there, each answers, and nothing of them is left."""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from faults.command import Command, allow_sessions, crowd, marked

from tmuxctl.control import Control

pytestmark = [pytest.mark.on("resident"), pytest.mark.timeout(900), pytest.mark.night]

MANY = 1000


def test_a_thousand_sessions(
    control: Control, place: Path, needs: Callable[..., None], until: Callable[..., Any], figures: Callable[..., None]
) -> None:
    needs("prlimit")
    allow_sessions(place, 2 * MANY)
    few = Command("prlimit", "--nofile=1024:", "--")
    assert few("new", "alone", "--profile", "none", "--no-shell-marks", "--", "cat").reason == ""
    alone = turns(control, "alone")
    began = time.monotonic()
    assert crowd(MANY, *few.behind) == (MANY, "")
    figures("seconds to create one", (time.monotonic() - began) / MANY)
    names = [f"s{number:04}" for number in range(MANY)]
    seconds = []
    for _ in range(3):
        listed = few("ls")
        assert [one["name"] for one in listed.said["sessions"]] == ["alone", *names]
        seconds.append(listed.seconds)
    figures("seconds of `ls`, cold", statistics.median(seconds))
    among = turns(control, "s0500")
    figures("seconds of a line sent and waited for, alone", alone)
    figures("seconds of a line sent and waited for, among them", among)
    figures("ratio of the two", among / alone)
    server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    figures("KiB of the tmux server a session", resident(server) / MANY)
    for name, (number, memory) in journals(place).items():
        figures(f"processes `{name}` of the journal a session, KiB of their own", number / MANY, memory / MANY)
    for name in names:
        control.send(name, f"to {name}".encode())
    for name in names:
        assert control.wait(name, text=f"^to {name}$").matched
    ids = [one.id for one in control.ls().sessions]
    began = time.monotonic()
    killed = few("kill", "--all", patience=300)
    figures("seconds of `kill --all`", time.monotonic() - began)
    assert killed.reason == ""
    assert few("ls").said["sessions"] == []
    assert few("prune").reason == ""
    assert nothing_left(control, place, ids, until)


def nothing_left(control: Control, place: Path, ids: list[str], until: Callable[..., Any]) -> bool:
    """No process, folder or control group of the sessions is there any more."""
    until(lambda: not marked(place) and not journals(place))
    home = Path(control.machine.transport.home)
    assert [*os.listdir(home / "sessions"), *os.listdir(home / "ended")] == []
    groups = {name for _, folders, _ in os.walk("/sys/fs/cgroup") for name in folders if name.startswith("tmuxctl-")}
    assert not groups & {f"tmuxctl-{one}" for one in ids}
    return True


def turns(control: Control, name: str) -> float:
    """The median time of a line that is sent and waited for."""
    seen = []
    for number in range(20):
        began = time.monotonic()
        control.send(name, f"line {number}".encode())
        assert control.wait(name, text=f"^line {number}$").matched
        seen.append(time.monotonic() - began)
    return statistics.median(seen)


def resident(pid: int) -> int:
    """The KiB of memory a process has."""
    line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1])


def journals(place: Path) -> dict[str, tuple[int, int]]:
    """Of the processes that write journals here: how many of a name, and the KiB nobody shares with them."""
    number: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/cwd").startswith(f"{place}/state") and Path(f"/proc/{pid}/exe").exists():
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                number[name] += 1
                memory[name] += sum(int(row.split()[1]) for row in rows if row.startswith("Private_"))
    return {name: (number[name], memory[name]) for name in number}
