"""What callers of a server may do on other machines: a token of one gives no right on another, and no caller has the server
connect to a host that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from machines.conftest import tmuxctl
from machines.ssh_server import SshServer

from tmuxctl.access import CallerAccess, ServiceAccess, check_arguments, find_meant, still_means
from tmuxctl.control import Control
from tmuxctl.errors import Denied, NotFound, TmuxctlError
from tmuxctl.operations import find
from tmuxctl.surfaces.mcp.client import read_settings
from tmuxctl.surfaces.mcp.server import ToolServer
from tmuxctl.surfaces.server.admission.guard import AdmissionRules
from tmuxctl.surfaces.server.app import make_server


@pytest.fixture
def served(site: Path) -> Iterator[Control]:
    """The operations of a server, which reaches `box` by a command, with sessions on both machines."""
    (site / "box").mkdir()
    words = f"env -u XDG_STATE_HOME HOME={site}/box sh"
    assert tmuxctl("machine", "add", "box", "--command", words, "--tmux-socket", "inner").status == 0
    with Control() as control:
        control.machine.listed_only = True
        for name in ("web-1", "box/web-1", "box/db"):
            control.call("new", {"name": name, "command": ["cat"]})
        yield control


def allowed(access: CallerAccess, control: Control, operation: str, **arguments: object) -> bool:
    """Whether the caller may make this call."""
    try:
        check_arguments(access, find(Control, operation), arguments, control)
    except TmuxctlError:
        return False
    return True


@pytest.mark.night
def test_a_token_for_sessions_of_this_machine_is_for_no_other(served: Control):
    access = CallerAccess(sessions=("web-*", "d?"), remote=True)
    assert allowed(access, served, "screen", session="web-1")
    for session in ("box/web-1", "box/db", "box/missing", "other/web-1"):
        assert not allowed(access, served, "screen", session=session)
        assert not allowed(access, served, "kill", session=["web-1", session])
    assert not allowed(access, served, "wait", any=["web-1", "box/web-1"])
    assert not allowed(access, served, "new", name="box/web-2")
    assert not allowed(access, served, "ls", machine="box")
    assert not allowed(access, served, "run", command=["true"], machine="box")
    assert allowed(access, served, "ls")


def test_a_wait_for_several_names_none_but_sessions_that_are_meant(served: Control):
    access = CallerAccess(sessions=("web-*",), remote=True)
    served.call("new", {"name": "db", "command": ["cat"]})
    for wrong in (["web-1", "db"], "web-1,db", "db", {"db": 1}, True, 7, [["db"]], ""):
        assert not allowed(access, served, "wait", any=wrong), wrong
        assert not allowed(access, served, "wait", session="web-1", any=wrong), wrong
    checked = check_arguments(access, find(Control, "wait"), {"any": "web-1"}, served)
    service = ServiceAccess(access, served)
    service.check_followed(find(Control, "wait"), checked)
    served.call("rename", {"session": "web-1", "name": "db-2"})
    with pytest.raises(NotFound):
        service.check_followed(find(Control, "wait"), checked)


def test_what_was_called_by_name_is_told_no_more_to_whom_the_name_does_not_mean(served: Control):
    wait, kill = find(Control, "wait"), find(Control, "kill")
    narrowed = ServiceAccess(CallerAccess(sessions=("db",)), served)
    for name in ("web-1", "gone"):
        with pytest.raises(NotFound):
            narrowed.check_followed(wait, {"session": name})
    narrowed.check_followed(wait, {"session": "db"})
    narrowed.check_followed(kill, {"session": ("db",), "all": False})
    with pytest.raises(Denied):
        ServiceAccess(CallerAccess(rights=("write",)), served).check_followed(wait, {"session": "db"})


def test_a_pattern_that_names_the_machine_is_for_its_sessions(served: Control):
    access = CallerAccess(sessions=("box/web-*",), remote=True)
    assert allowed(access, served, "screen", session="box/web-1")
    assert allowed(access, served, "new", name="box/web-2")
    for session in ("web-1", "box/db"):
        assert not allowed(access, served, "screen", session=session)
    assert not allowed(access, served, "new", name="web-2")
    found = find_meant(access, served, "box/web-1")
    assert found.startswith("box/")
    assert found != "box/web-1"
    served.call("rename", {"session": found, "name": "db-2"})
    assert not still_means(access, served, found)


def test_a_pattern_for_every_name_of_this_machine_is_for_no_other():
    assert not CallerAccess(sessions=("w*",)).means("web1/build")
    assert not CallerAccess(sessions=("*b*",)).means("web1/build")
    assert CallerAccess(sessions=("*/build",)).means("web1/build")
    assert not CallerAccess(sessions=("*/build",)).means("build")


def test_no_host_is_tried_for_a_token_that_names_no_such_machine(site: Path, web1: SshServer):
    assert tmuxctl("machine", "add", "web1").status == 0
    with Control() as control:
        control.machine.listed_only = True
        assert not allowed(CallerAccess(sessions=("t",)), control, "screen", session="web1/t")
    assert not (site / "ssh-calls").exists()


@pytest.mark.night
def test_the_owner_of_a_server_reaches_the_machines_of_the_file_alone(served: Control, site: Path, web1: SshServer):
    assert served.call("show", {"session": "box/db"}).machine == "box"
    for call in (
        {"session": "web1/t"},
        {"session": "127.0.0.1/t"},
    ):
        with pytest.raises(TmuxctlError) as raised:
            served.call("screen", call)
        assert raised.value.reason == "no_machine"
    assert not (site / "ssh-calls").exists()


def test_servers_reach_the_machines_of_the_file_alone(site: Path):
    rules = AdmissionRules(None, (), (), False, None)
    for serve in (lambda control: make_server(control, rules), lambda control: ToolServer(control, read_settings({}))):
        with Control() as control:
            serve(control)
            with pytest.raises(TmuxctlError) as raised:
                control.call("new", {"name": "web1/t", "command": ["cat"]})
            assert raised.value.reason == "no_machine"
    assert not (site / "ssh-calls").exists()
