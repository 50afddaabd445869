"""What `adopt`, `doctor` and `profile check` tell about a machine behind ssh: never anything of this one."""

from __future__ import annotations

import sys

import pytest
from machines.conftest import tmuxctl
from machines.ssh_server import SshServer

from tmuxctl.control import Control
from tmuxctl.errors import Failed, Usage


@pytest.mark.parametrize("target", ["web1/tmux:work:1.0", "web1/tmux@other:%3"])
def test_panes_of_other_tmux_servers_over_there_are_refused_with_the_reason(far: Control, target: str):
    with pytest.raises(Usage) as caught:
        far.call("adopt", {"target": target})
    assert caught.value.reason == "bad_target"
    assert "tmux servers of web1" in caught.value.message
    with pytest.raises(Usage) as caught:
        far.call("screen", {"session": target})
    assert "tmux servers of web1" in caught.value.message


@pytest.mark.night
def test_a_doctor_looks_at_the_machine_it_is_told(far: Control, web1: SshServer):
    far.call("new", {"name": "web1/t", "command": ["cat"]})
    checks = {one.name: one for one in far.call("doctor", {"machine": "web1"}).checks}
    assert checks["state folder"].found.startswith(str(web1.home / ".local/state/tmuxctl/"))
    assert checks["sessions"].found.startswith("1 of ")
    assert checks["process table"].found == "/proc"
    assert checks["orphans"].ok
    assert not checks.keys() & {"python", "locale", "inside tmux"}
    ran = tmuxctl("doctor", "--machine", "web1")
    assert ran.status == 0, ran.output + ran.errors
    assert sys.version.split()[0] not in ran.output


def test_a_doctor_tells_of_a_tmux_that_is_missing_there(far: Control, web1: SshServer):
    (web1.programs / "tmux").unlink()
    found = far.call("doctor", {"machine": "web1"})
    assert not found.ok
    assert next(one for one in found.checks if one.name == "tmux").ok is False


@pytest.mark.night
def test_a_profile_is_checked_with_the_program_over_there(far: Control, web1: SshServer):
    checked = far.call("profile_check", {"name": "bash", "machine": "web1"})
    assert checked.ok, checked
    with pytest.raises(Failed) as caught:
        far.call("profile_check", {"name": "python", "machine": "web1"})
    assert caught.value.reason == "not_installed"
    assert not far.call("ls", {"machine": "web1"}).sessions
