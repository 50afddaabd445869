"""Who may type: one writer at a time, and a dead one stops nobody."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable

import pytest
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.errors import Conflict
from tmuxctl.terminal.tmux import lease
from tmuxctl.terminal.tmux.lease import LeaseHolder
from tmuxctl.terminal.tmux.server import read_pane


def holds(control: Control, holder: LeaseHolder) -> bool:
    """Whether this holder gets the lease of session `t`."""
    return lease.take_lease(control.machine.io, holder, read_pane(control.machine.io, "t"))


@pytest.fixture
def living() -> LeaseHolder:
    """Another writer, which lives."""
    return LeaseHolder("other0000000", os.getppid(), lease.read_start_time(os.getppid()))


def test_while_another_writer_has_the_lease_nothing_is_typed(control: Control, living: LeaseHolder) -> None:
    control.new("t", LINES)
    assert holds(control, living)
    assert holds(control, living)
    for write in (lambda: control.send("t", b"mine"), lambda: control.keys("t", ("x",))):
        with pytest.raises(Conflict) as refused:
            write()
        assert refused.value.reason == "leased"
    lease.release_lease(control.machine.io, living, "t")
    control.send("t", b"mine")
    assert control.wait("t", text="^mine$").matched


@pytest.mark.on("memory", "tmux")
def test_the_lease_of_a_dead_writer_is_broken_at_once(control: Control) -> None:
    gone = subprocess.Popen(["sleep", "60"])
    began = lease.read_start_time(gone.pid)
    control.new("t", LINES)
    assert holds(control, LeaseHolder("dead00000000", gone.pid, began))
    with pytest.raises(Conflict):
        control.send("t", b"mine")
    gone.kill()
    gone.wait()
    control.send("t", b"mine")
    assert control.wait("t", text="^mine$").matched


@pytest.mark.on("memory", "tmux")
def test_a_pid_used_again_does_not_keep_a_dead_writers_lease(control: Control) -> None:
    control.new("t", LINES)
    assert holds(control, LeaseHolder("dead00000000", os.getppid(), 1))
    control.send("t", b"mine")
    assert control.wait("t", text="^mine$").matched


@pytest.mark.on("memory", "tmux")
def test_a_lease_that_ran_out_counts_no_more(control: Control, living: LeaseHolder) -> None:
    control.new("t", LINES)
    assert holds(control, living)
    past = str(int(control.machine.transport.clock()) - 1)
    control.machine.transport.run([("set-option", "-t", "=t:", "@tmuxctl_lease_until", past)])
    control.send("t", b"mine")
    assert control.wait("t", text="^mine$").matched


@pytest.mark.on("memory", "tmux")
def test_only_the_holder_gives_a_lease_back(control: Control, living: LeaseHolder) -> None:
    control.new("t", LINES)
    assert holds(control, living)
    lease.release_lease(control.machine.io, control.machine.holder, "t")
    with pytest.raises(Conflict):
        control.send("t", b"mine")


def test_of_many_writers_at_once_exactly_one_gets_it(control: Control, another: Callable[[], Control]) -> None:
    control.new("t", LINES)
    got: list[bool] = []
    controls = [another() for _ in range(4)]
    threads = [
        threading.Thread(target=lambda mine: got.append(holds(mine, mine.machine.holder)), args=(one,))
        for one in controls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False, False, False, True]


@pytest.mark.on("memory", "tmux")
def test_a_write_leaves_no_lease_behind(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"x")
    now = read_pane(control.machine.io, "t")
    assert not now.lease
