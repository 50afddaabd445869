"""Before a session is created the machine is looked at: what there is no room for is refused, and harms nobody."""

from __future__ import annotations

from typing import Any

import pytest
from programs import LINES

from tmuxctl import config
from tmuxctl.control import Control
from tmuxctl.control.sessions import capacity
from tmuxctl.errors import Failed, TmuxctlError
from tmuxctl.transport.base import Quota, Resources

MANY = Quota(10, 1000)


@pytest.mark.parametrize(
    ("room", "reason"),
    [
        (Resources(free=1000, ptys=MANY, descriptors=MANY), "disk_full"),
        (Resources(free=1 << 30, ptys=Quota(4094, 4096), descriptors=MANY), "no_ptys"),
        (Resources(free=1 << 30, ptys=MANY, descriptors=Quota(52, 64)), "no_descriptors"),
    ],
)
def test_what_there_is_no_room_for_is_refused(room: Resources, reason: str) -> None:
    with pytest.raises(Failed) as refused:
        capacity.check_room(room, "/home")
    assert refused.value.reason == reason
    assert refused.value.hint


def test_what_cannot_be_asked_is_no_reason_to_refuse() -> None:
    capacity.check_room(Resources(), "/home")
    capacity.check_room(Resources(free=1 << 30, ptys=Quota(4000, 4096), descriptors=Quota(51, 64)), "/home")


@pytest.mark.on("memory", "tmux")
def test_no_more_sessions_than_the_settings_allow(control: Control) -> None:
    control.machine.settings = config.load({"limits.sessions": 2})
    control.new("a", LINES)
    control.new("b", LINES)
    with pytest.raises(Failed) as refused:
        control.new("c", LINES)
    assert refused.value.reason == "too_many_sessions"
    control.kill(("a",))
    assert control.new("c", LINES).name == "c"


@pytest.mark.on("tmux", "pipe")
def test_show_tells_what_a_session_takes(control: Control) -> None:
    control.new("t", ("sh", "-c", "sleep 1000 & sleep 1000 & exec cat"), wait=False)
    assert control.wait("t", settle=0.2).matched
    shown = control.show("t")
    assert shown.processes == 3
    assert (shown.memory or 0) > 1 << 18
    assert shown.cpu is not None


@pytest.mark.on("memory")
def test_sessions_that_do_nothing_are_ended_only_where_the_settings_say_so(control: Control) -> None:
    assert control.new("t", LINES, dry_run=True).plugins == ()
    control.machine.settings = config.load({"limits.idle_kill": "2h"})
    planned = control.new("t", LINES, dry_run=True)
    assert planned.plugins == ("timeout",)
    assert any("expire.sh" in file for file in planned.files)


@pytest.mark.parametrize(("flag", "plugin"), [("worktree", "worktree"), ("sandbox", "sandbox"), ("env_file", "env")])
@pytest.mark.on("memory")
def test_a_flag_means_its_plugin(control: Control, flag: str, plugin: str) -> None:
    """Each refuses what it cannot do here under its own name."""
    options: Any = {flag: "no such thing"}
    with pytest.raises(TmuxctlError) as refused:
        control.new("t", LINES, **options)
    assert plugin in refused.value.message
