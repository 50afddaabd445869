"""What goes wrong on the way to a machine, or there: told by the machine's name and a reason, with exit status 7, and never a
question that a script waits for."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest
from machines.conftest import Ran, is_below, tmuxctl
from machines.ssh_server import SshServer, configure_ssh, make_key

from tmuxctl.control import Control
from tmuxctl.errors import NotFound, TmuxctlError
from tmuxctl.machines import parse_machine, read_ssh_hosts
from tmuxctl.timing import TIMING, MachineTiming
from tmuxctl.value import changed
from tools.ports import free_ports

EVIL = "-oProxyCommand=touch${IFS}owned"


def fails(ran: Ran, reason: str, status: int = 7) -> None:
    """The run ended with this error of web1, and said what to do."""
    assert (ran.status, ran.error["reason"]) == (status, reason), ran.errors
    assert ran.error["message"].startswith("web1: ")
    assert ran.error["details"]["machine"] == "web1"
    assert ran.error["hint"]


def test_a_host_that_nobody_knows(site: Path):
    fails(tmuxctl("ls", "web1/", "--json"), "unknown_host")


def test_a_connection_that_is_refused(site: Path):
    configure_ssh(site, [], f"Host web1\n  HostName 127.0.0.1\n  Port {free_ports(1)[0]}\n")
    fails(tmuxctl("screen", "web1/t", "--json"), "refused")


def test_a_key_that_is_refused(site: Path, web1: SshServer):
    (web1.folder / "authorized_keys").write_text("")
    fails(tmuxctl("screen", "web1/t", "--json"), "permission")


@pytest.mark.night
def test_another_host_key_than_the_known_one(site: Path, web1: SshServer):
    make_key(site / "other")
    key = (site / "other.pub").read_text()
    (web1.folder / "known_hosts").write_text(f"[127.0.0.1]:{web1.port} {key}")
    ran = tmuxctl("new", "web1/t", "--json", "--", "cat")
    fails(ran, "host_key")
    assert "ssh-keygen -R" in ran.error["hint"]
    assert not list(web1.home.iterdir())


def test_a_host_key_that_is_not_known_yet(site: Path, web1: SshServer):
    (web1.folder / "known_hosts").write_text("")
    # a person would be asked: ssh is told to ask nobody
    configure_ssh(site, [web1])
    config = site / ".ssh" / "config"
    config.write_text(config.read_text().replace("StrictHostKeyChecking yes", "StrictHostKeyChecking ask"))
    ran = tmuxctl("new", "web1/t", "--json", "--", "cat")
    fails(ran, "host_key")
    assert "tmuxctl machine test web1" in ran.error["hint"]


def test_a_machine_without_tmux(site: Path, web1: SshServer):
    (web1.programs / "tmux").unlink()
    fails(tmuxctl("new", "web1/t", "--json", "--", "cat"), "no_tmux")


@pytest.mark.night
def test_a_tmux_that_is_too_old(site: Path, web1: SshServer):
    web1.script("tmux", 'echo "usage: tmux [-2CluvV] [-c shell-command] [-f file]" >&2; exit 1')
    fails(tmuxctl("new", "web1/t", "--json", "--", "cat"), "tmux_too_old", status=1)


@pytest.mark.night
def test_a_machine_without_a_locale_of_utf8(site: Path, web1: SshServer):
    web1.script("tmux", 'echo "tmux: need UTF-8 locale (LC_CTYPE) but have ANSI_X3.4-1968" >&2; exit 1')
    fails(tmuxctl("new", "web1/t", "--json", "--", "cat"), "no_utf8", status=1)


@pytest.mark.night
def test_a_home_that_cannot_be_written(site: Path, web1: SshServer):
    # root may write anywhere; where a file is, nobody can make a folder
    (web1.home / ".local").write_text("")
    fails(tmuxctl("new", "web1/t", "--json", "--", "cat"), "bad_folder", status=8)


@pytest.mark.night
def test_a_full_disk(site: Path, web1: SshServer):
    web1.script("df", 'echo head; echo "disk 100 100 0 100% /"')
    fails(tmuxctl("new", "web1/t", "--json", "--", "cat"), "disk_full", status=1)


@pytest.mark.night
def test_a_file_that_finds_no_room(site: Path, web1: SshServer):
    web1.script("chmod", 'echo "write error: No space left on device" >&2; exit 1')
    fails(tmuxctl("new", "web1/t", "--json", "--", "cat"), "disk_full", status=1)


def test_an_account_that_runs_no_shell(site: Path, web1: SshServer):
    config = web1.folder / "sshd_config"
    config.write_text(config.read_text().partition("ForceCommand")[0] + "ForceCommand exit 1\n")
    web1.stop()
    web1.process = web1.start()
    fails(tmuxctl("ls", "web1/", "--json"), "no_machine")


@pytest.mark.night
def test_a_machine_that_answers_nothing_ends_with_the_time_for_it(site: Path):
    (site / "config/tmuxctl").mkdir(parents=True)
    (site / "config/tmuxctl/machines.toml").write_text('[web1]\ncommand = ["sleep", "60"]\n')
    timing = changed(TIMING, machine=MachineTiming(start_seconds=0.2))
    with Control(timing=timing) as control, pytest.raises(TmuxctlError) as raised:
        control.reach("web1/t")[0].machine.transport.shell(":", timeout=0.2)
    assert (raised.value.exit, raised.value.reason) == (7, "backend_timeout")
    assert "web1" in raised.value.message


@pytest.mark.parametrize(
    "words",
    [
        ["screen", f"{EVIL}/t"],
        ["ls", EVIL],
        ["ls", f"{EVIL}/"],
        ["new", f"{EVIL}/t"],
        ["kill", f"{EVIL}/t"],
        ["watch", f"{EVIL}/t"],
        ["wait", "--any", f"{EVIL}/t"],
        ["run", f"--machine={EVIL}", "--", "true"],
        ["attach", f"{EVIL}/t"],
        ["machine", "test", EVIL],
        ["machine", "add", EVIL],
        ["machine", "add", "x", f"--ssh={EVIL}"],
        ["machine", "add", "x", f"--ssh=user@{EVIL}"],
        ["machine", "add", "x", f"--ssh=a {EVIL}"],
        ["machine", "add", "x", f"--ssh={EVIL}@host"],
        ["machine", "add", "x", f"--command={EVIL} sh"],
        ["machine", "add", "x", f"--tmux={EVIL}"],
        ["machine", "add", "x", f"--tmux-socket={EVIL}"],
    ],
)
def test_no_name_becomes_an_option_of_ssh(site: Path, words: list[str]):
    command, *rest = words
    separated = [command, "--", *rest] if rest[0].startswith("-o") else words
    ran = tmuxctl(*separated)
    assert ran.status in (2, 3, 125), ran.errors
    assert not (site / "ssh-calls").exists()
    assert not is_below(site, "owned")
    assert not (site / "config/tmuxctl/machines.toml").exists()


@pytest.mark.parametrize("key", ["ssh", "tmux", "socket"])
@pytest.mark.parametrize("value", [EVIL, "a b", "a\nb", "a\x1bb", "", 7])
def test_no_value_of_the_file_becomes_one(site: Path, key: str, value: object):
    if key == "tmux" and value == "a b":
        assert parse_machine("x", {key: value}).tmux == "a b"
        return
    with pytest.raises(TmuxctlError):
        parse_machine("x", {key: value})


def test_what_ssh_gets_stands_behind_the_end_of_its_options(site: Path, web1: SshServer):
    assert tmuxctl("ls", "web1/").status == 0
    (call, *_) = (site / "ssh-calls").read_text().splitlines()
    options, _, rest = call.partition(" -- ")
    assert rest.split(" ", 1)[0] == "web1"
    for option in ("BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "ConnectTimeout=10"):
        assert f"-o {option}" in options


def test_a_file_of_machines_that_others_may_write_is_refused(site: Path):
    folder = site / "config/tmuxctl"
    folder.mkdir(parents=True)
    (folder / "machines.toml").write_text('[web1]\nssh = "web1"\n')
    (folder / "machines.toml").chmod(0o666)
    ran = tmuxctl("ls", "web1/", "--json")
    assert (ran.status, ran.error["reason"]) == (8, "unsafe_file")


def test_a_folder_of_control_sockets_that_is_open_to_others_is_not_used(site: Path, web1: SshServer):
    folder = site / "run/tmuxctl/ssh"
    folder.mkdir(parents=True)
    (site / "run/tmuxctl").chmod(0o700)
    folder.chmod(0o777)
    ran = tmuxctl("ls", "web1/", "--json")
    assert (ran.status, ran.error["reason"]) == (8, "bad_mode")
    assert not (site / "ssh-calls").exists()


@pytest.mark.night
def test_a_control_socket_that_nobody_listens_at_is_not_followed(site: Path, web1: SshServer):
    assert tmuxctl("ls", "web1/").status == 0
    (control,) = (site / "run/tmuxctl/ssh").iterdir()
    control.unlink()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(control))
    assert tmuxctl("ls", "web1/").status == 0


@pytest.mark.night
def test_a_server_reaches_only_machines_of_the_file(site: Path, web1: SshServer):
    with Control() as control:
        control.machine.listed_only = True
        with pytest.raises(NotFound) as raised:
            control.call("ls", {"machine": "web1"})
        assert raised.value.reason == "no_machine"
        assert not (site / "ssh-calls").exists()
        assert tmuxctl("machine", "add", "web1").status == 0
        assert control.call("ls", {"machine": "web1"}).sessions == ()


def test_hosts_are_read_from_the_ssh_configuration_with_what_it_includes(site: Path):
    folder = site / ".ssh"
    (folder / "more").write_text('Host inner\nInclude more\nHost "quoted one" plain\n')
    (folder / "config").write_text("Host a b !c *.d\n  HostName e\ninclude more nosuch*\nhost=f\nMatch host g\n")
    os.chmod(folder / "config", 0o600)
    os.chmod(folder / "more", 0o600)
    assert read_ssh_hosts(str(folder / "config")) == ["a", "b", "inner", "quoted one", "plain", "f"]
    shutil.rmtree(folder)
    assert read_ssh_hosts(str(folder / "config")) == []
