"""Who may type: one writer at a time, and a dead one stops nobody."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable

import pytest
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.control.input import sending
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.observation.observing import StabilityTracker
from tmuxctl.errors import Conflict
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.tmux import lease, options
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


@pytest.mark.on("memory", "tmux", "pipe")
def test_what_is_set_as_a_lease_is_given_back_is_set_though_it_was_lost(control: Control, living: LeaseHolder) -> None:
    control.new("t", LINES)
    io, ours = control.machine.io, control.machine.holder
    for holder, left in ((ours, ""), (living, str(living))):
        assert holds(control, holder)
        lease.release_lease(io, ours, "t", values={options.TURN: left or "7"})
        assert io.look("t", (options.LEASE, options.TURN)).values == [left, left or "7"]


@pytest.mark.on("memory", "tmux")
def test_a_turn_is_taken_from_a_dead_process_and_from_no_living_one(control: Control, living: LeaseHolder) -> None:
    control.new("t", LINES)
    io, pane = control.machine.io, read_pane(control.machine.io, "t")
    gone = subprocess.Popen(["sleep", "60"])
    dead = LeaseHolder("dead00000000", gone.pid, lease.read_start_time(gone.pid))
    assert lease.take_turn(io, dead, pane)
    assert not lease.take_turn(io, living, pane)
    gone.kill()
    gone.wait()
    assert lease.take_turn(io, living, pane)
    assert lease.take_turn(io, living, pane)
    assert not lease.take_turn(io, control.machine.holder, pane)


@pytest.mark.on("memory", "tmux")
def test_with_the_lease_comes_what_was_typed_before_it(control: Control) -> None:
    control.new("t", LINES)
    io, pane = control.machine.io, read_pane(control.machine.io, "t")
    tracker = StabilityTracker(control.machine, Observer(control.machine, pane), None)
    for number in range(3):
        written = control.send("t", b"other")
        values = lease.take_lease_and_look(io, control.machine.holder, pane, (options.INPUT, options.TURN))
        assert values is not None
        seen = LastInput.parse(values[0])
        assert seen is not None
        assert seen.id == written.id, number
        # what was looked at before that counts no more, once
        assert not sending.is_untouched(control.machine, tracker, values[0])
        assert sending.is_untouched(control.machine, tracker, values[0])
