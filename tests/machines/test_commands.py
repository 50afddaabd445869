"""`machine ls|add|rm|test`, and machines that are reached by another command than ssh."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines.conftest import tmuxctl
from machines.ssh_server import SshServer, configure_ssh

from tmuxctl.control import Control
from tmuxctl.model import State

FILE = "config/tmuxctl/machines.toml"


def test_machines_of_the_file_and_of_ssh_are_listed(site: Path, web1: SshServer):
    assert tmuxctl("machine", "add", "box", "--command", "env A=1 sh").status == 0
    listed = tmuxctl("machine", "ls", "--json").result["machines"]
    assert [(one["name"], one["source"]) for one in listed] == [("box", "machines.toml"), ("web1", "ssh config")]
    assert listed[0]["command"] == ["env", "A=1", "sh"]


def test_all_else_in_the_file_stays(site: Path):
    before = '# mine\n[a]\nssh = "a.example.org" # far\n\n# about b\n["b.c"]\ncommand = ["sh"]\n'
    (site / FILE).parent.mkdir(parents=True)
    (site / FILE).write_text(before)
    assert tmuxctl("machine", "add", "d.e", "--ssh", "ada@d.example.org", "--tmux-socket", "s").status == 0
    assert (site / FILE).read_text() == before + '\n["d.e"]\nssh = "ada@d.example.org"\nsocket = "s"\n'
    assert tmuxctl("machine", "add", "a").status == 4
    assert tmuxctl("machine", "rm", "d.e").status == 0
    assert (site / FILE).read_text() == before
    assert tmuxctl("machine", "rm", "b.c").status == 0
    assert (site / FILE).read_text() == '# mine\n[a]\nssh = "a.example.org" # far\n\n# about b\n'
    assert tmuxctl("machine", "rm", "b.c").status == 3


def test_a_machine_is_changed(site: Path):
    assert tmuxctl("machine", "add", "a", "--ssh", "one").status == 0
    assert tmuxctl("machine", "add", "a", "--ssh", "two", "--replace").status == 0
    (listed,) = tmuxctl("machine", "ls", "--json").result["machines"]
    assert listed["ssh"] == "two"


def test_a_test_tells_what_the_machine_has(web1: SshServer):
    ran = tmuxctl("machine", "test", "web1", "--json")
    found = {one["name"]: one for one in ran.result["checks"]}
    assert (ran.status, ran.result["ok"], ran.result["machine"]) == (0, True, "web1")
    assert found["tmux"]["found"] == f"tmux {ran.result['tmux']}"
    assert found["files"]["found"] == str(web1.home / ".local/state/tmuxctl/t")
    assert found["bwrap"]["found"] == "not installed"
    assert ran.result["round_trip"] > 0


def test_a_test_of_a_machine_without_tmux_fails_and_says_so(web1: SshServer):
    (web1.programs / "tmux").unlink()
    ran = tmuxctl("machine", "test", "web1")
    assert ran.status == 1
    assert "tmux was not found" in ran.output


def test_a_command_is_a_door_to_another_place(site: Path, control_of_box: Control):
    made = control_of_box.call("new", {"name": "box/t", "command": ["cat"]})
    assert (made.machine, made.state) == ("box", State.IDLE)
    assert (site / "box/.local/state/tmuxctl/inner/sessions" / made.id).is_dir()
    control_of_box.call("send", {"session": "box/t", "text": "hello", "wait_text": "hello"})
    assert control_of_box.call("kill", {"session": ["box/t"]}).killed[0].session == "box/t"


@pytest.mark.night
def test_two_machines_at_once(site: Path, web1: SshServer, control_of_box: Control):
    control = control_of_box
    for name in ("here", "web1/there", "box/inside"):
        control.call("new", {"name": name, "command": ["cat"]})
    found = control.call("wait", {"all": ["here", "web1/there", "box/inside"], "idle": True})
    assert {one.session for one in found.waits} == {"here", "web1/there", "box/inside"}
    ended = control.call("kill", {"session": ["here", "web1/there", "box/inside"]})
    assert {one.session for one in ended.killed} == {"here", "web1/there", "box/inside"}


@pytest.fixture
def control_of_box(site: Path):
    """The operations of this machine, from which `box` is reached: another home, by a command."""
    (site / "box").mkdir()
    words = f"env -u XDG_STATE_HOME HOME={site}/box sh"
    assert tmuxctl("machine", "add", "box", "--command", words, "--tmux-socket", "inner").status == 0
    with Control() as control:
        yield control


@pytest.mark.night
def test_a_second_machine_is_another_one(site: Path, web1: SshServer):
    web2 = SshServer(site, "web2")
    configure_ssh(site, [web1, web2])
    for name in ("web1/t", "web2/t"):
        assert tmuxctl("new", name, "--", "cat").status == 0
    assert tmuxctl("send", "web2/t", "only on the second").status == 0
    assert tmuxctl("wait", "web2/t", "--text", "only on the second", "--since", "screen").status == 0
    assert "second" not in tmuxctl("screen", "web1/t").output
    web2.stop()
    assert tmuxctl("screen", "web1/t").status == 0


@pytest.mark.night
def test_attach_needs_a_way_with_a_terminal(site: Path, control_of_box: Control):
    control_of_box.call("new", {"name": "box/t", "command": ["cat"]})
    ran = tmuxctl("attach", "box/t", "--json")
    assert (ran.status, ran.error["reason"]) == (2, "no_terminal")
