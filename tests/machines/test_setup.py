"""`machine setup`: what a machine needs is told first, and then done, once."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from machines.conftest import Ran, tmuxctl
from machines.other_user import OtherUser
from machines.ssh_server import SshServer, configure_ssh

from tmuxctl.control import Control


def states(ran: Ran) -> dict[str, str]:
    """What is with each step."""
    return {one["name"]: one["state"] for one in ran.result["steps"]}


@pytest.mark.night
def test_a_plan_changes_nothing(web1: SshServer):
    ran = tmuxctl("machine", "setup", "web1", "--dry-run", "--json")
    assert (ran.status, ran.result["dry_run"]) == (0, True)
    assert states(ran) == {"key": "done", "files": "needed", "linger": "done", "locale": "done", "tmux": "done"}
    assert not list(web1.home.iterdir())


@pytest.mark.night
def test_nothing_is_done_that_nobody_agreed_to(web1: SshServer):
    ran = tmuxctl("machine", "setup", "web1", "--json")
    assert (ran.status, ran.error["reason"]) == (2, "not_agreed")
    assert ran.error["message"].startswith("web1: ")
    assert not list(web1.home.iterdir())


@pytest.mark.night
def test_twice_is_as_once(web1: SshServer):
    first = tmuxctl("machine", "setup", "web1", "--yes")
    assert first.status == 0
    assert "needed  files" in first.errors
    assert "done    files" in first.output
    folder = web1.home / ".local/state/tmuxctl/t"
    assert folder.stat().st_mode & 0o777 == 0o700
    again = tmuxctl("machine", "setup", "web1", "--json")
    assert (again.status, set(states(again).values())) == (0, {"done"})
    assert not any(one["changed"] for one in again.result["steps"])
    assert tmuxctl("new", "web1/t", "--", "cat").status == 0


@pytest.mark.night
def test_programs_stay_at_a_logout(web1: SshServer):
    script = 'case $* in "show-user "*) cat "$HOME/linger" ;; *enable-linger*) echo Linger=yes >"$HOME/linger" ;; esac'
    web1.script("loginctl", script)
    (web1.home / "linger").write_text("Linger=no\n")
    planned = tmuxctl("machine", "setup", "web1", "--dry-run")
    assert "loginctl enable-linger" in planned.output
    assert (web1.home / "linger").read_text() == "Linger=no\n"
    assert states(tmuxctl("machine", "setup", "web1", "--yes", "--json"))["linger"] == "done"
    assert (web1.home / "linger").read_text() == "Linger=yes\n"


def test_what_is_refused_there_is_left_and_the_rest_is_done(web1: SshServer):
    web1.script("loginctl", 'case $1 in show-user) echo Linger=no ;; *) echo "Access denied" >&2; exit 1 ;; esac')
    ran = tmuxctl("machine", "setup", "web1", "--yes", "--json")
    found = {one["name"]: one for one in ran.result["steps"]}
    assert (ran.status, found["linger"]["state"], found["files"]["state"]) == (0, "left", "done")
    assert found["linger"]["found"] == "loginctl: Access denied"
    assert "sudo loginctl enable-linger" in found["linger"]["hint"]


@pytest.mark.night
def test_a_missing_tmux_is_installed_if_that_is_said_and_not_else(web1: SshServer):
    (web1.programs / "tmux").unlink()
    tmux = shutil.which("tmux")
    web1.script("apt-get", f'echo "$*" >>"$HOME/apt"; ln -s {tmux} "{web1.programs}/tmux"')
    told = tmuxctl("machine", "setup", "web1", "--yes", "--json")
    step = told.result["steps"][-1]
    assert (told.status, step["name"], step["state"]) == (1, "tmux", "left")
    assert "apt-get install -y tmux" in step["command"]
    assert not (web1.home / "apt").exists()
    if os.getuid():
        return
    done = tmuxctl("machine", "setup", "web1", "--yes", "--install", "--json")
    assert (done.status, states(done)["tmux"]) == (0, "done")
    assert (web1.home / "apt").read_text() == "install -y tmux\n"


def test_a_package_manager_that_fails_is_told(web1: SshServer):
    (web1.programs / "tmux").unlink()
    web1.script("apt-get", 'echo "E: no space" >&2; exit 100')
    web1.script("sudo", 'shift; exec "$@"')
    ran = tmuxctl("machine", "setup", "web1", "--yes", "--install", "--json")
    step = ran.result["steps"][-1]
    assert (ran.status, step["state"]) == (1, "left")
    assert "E: no space" in step["found"]


@pytest.mark.night
def test_a_locale_that_is_missing_is_told(web1: SshServer):
    web1.script("locale", "echo ANSI_X3.4-1968")
    ran = tmuxctl("machine", "setup", "web1", "--yes", "--json")
    assert (ran.status, states(ran)["locale"]) == (0, "left")


@pytest.mark.night
def test_a_folder_that_cannot_be_made_is_left(web1: SshServer):
    (web1.home / ".local").write_text("")
    ran = tmuxctl("machine", "setup", "web1", "--yes", "--json")
    assert (ran.status, states(ran)["files"]) == (1, "left")


def test_a_machine_that_cannot_be_reached(site: Path):
    ran = tmuxctl("machine", "setup", "nosuch.invalid", "--yes", "--json")
    assert (ran.status, ran.error["reason"], ran.error["details"]["machine"]) == (7, "unknown_host", "nosuch.invalid")


@pytest.fixture
def ada(site: Path) -> Iterator[OtherUser]:
    """A user with a password."""
    with OtherUser("setup") as user:
        yield user


@pytest.mark.night
def test_a_key_is_made_and_brought_there_by_a_password(site: Path, ada: OtherUser):
    server = SshServer(site, "web1")
    config = server.folder / "sshd_config"
    text = config.read_text().replace("PasswordAuthentication no", "PasswordAuthentication yes")
    text = text.replace(f"{server.folder}/authorized_keys", f"{ada.home}/.ssh/authorized_keys")
    config.write_text(text.replace(f"HOME={server.home}", f"HOME={ada.home}").replace(str(server.programs), ada.path))
    server.stop()
    server.process = server.start()
    server.client = server.client.replace("User root", f"User {ada.name}").replace("client_key", "id_ed25519")
    configure_ssh(site, [server])
    assert tmuxctl("machine", "setup", "web1", "--yes", "--json").error["reason"] == "permission"
    with Control() as control:
        control.new("person", (sys.executable, "-m", "tmuxctl", "machine", "setup", "web1"))
        control.wait("person", text="password:", since="screen")
        control.send("person", ada.password.encode(), insecure=True)
        control.wait("person", text="Do this on web1", since="screen")
        key = server.folder / "id_ed25519"
        assert not key.exists()
        control.send("person", b"y")
        control.wait("person", exit=True)
        assert control.show("person").exit_status == 0, control.read("person")
    assert key.stat().st_mode & 0o777 == 0o600
    assert (ada.home / ".ssh/authorized_keys").read_text() == (server.folder / "id_ed25519.pub").read_text()
    assert not list(server.folder.glob(".tmuxctl-*"))
    again = tmuxctl("machine", "setup", "web1", "--json")
    assert (again.status, states(again)["key"]) == (0, "done")
    # one that exists is brought to a machine that does not have it
    (ada.home / ".ssh/authorized_keys").write_text("# mine, without a newline")
    before = key.read_text()
    done = tmuxctl("machine", "setup", "web1", "--yes", "--json")
    assert (done.status, states(done)["key"], key.read_text()) == (0, "done", before)
    lines = (ada.home / ".ssh/authorized_keys").read_text().splitlines()
    assert lines == ["# mine, without a newline", (server.folder / "id_ed25519.pub").read_text().strip()]
