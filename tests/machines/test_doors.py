"""Machines behind other commands than ssh: `sudo -u`, bubblewrap, a container of podman; and doors that do not open."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machines.conftest import tmuxctl
from machines.other_user import OtherUser

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import State
from tmuxctl.timing import TIMING, MachineTiming
from tmuxctl.value import changed

FILE = "config/tmuxctl/machines.toml"


class OpenDoor:
    """A door, the folder of the sessions' files behind it as this machine sees it, and who we are there."""

    def __init__(self, site: Path, words: list[str], home: Path, user: str) -> None:
        self.words, self.home, self.user = words, home, user
        write_door(site, words)


def write_door(site: Path, words: list[str]) -> None:
    """Have `web1` be the machine behind this command."""
    (site / FILE).parent.mkdir(parents=True, exist_ok=True)
    # a list of JSON is one of TOML
    (site / FILE).write_text(f'[web1]\ncommand = {json.dumps(words)}\nsocket = "inner"\n')


@pytest.fixture(params=["sudo", "bwrap", "podman"])
def door(request: pytest.FixtureRequest, site: Path, needs: Callable[..., None]) -> Iterator[OpenDoor]:
    """A door of each kind."""
    needs(request.param)
    opened = {"sudo": open_sudo, "bwrap": open_bwrap, "podman": open_podman}[request.param](site)
    found = next(opened)
    yield found
    with Control() as control:
        transport = control.reach("web1/")[0].machine.transport
        transport.shell('tmux -L "$1" kill-server', "inner")
    next(opened, None)


def open_sudo(site: Path) -> Iterator[OpenDoor]:
    with OtherUser("sudo") as user:
        yield OpenDoor(site, ["sudo", "-n", "-H", "-u", user.name, "sh"], user.home, user.name)


def open_bwrap(site: Path) -> Iterator[OpenDoor]:
    (site / "inside/home").mkdir(parents=True)
    words = ["bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", f"{site}/inside", "/tmp"]
    for name, value in {"HOME": "/tmp/home", "TMPDIR": "/tmp", "TMUX_TMPDIR": "/tmp"}.items():
        words += ["--setenv", name, value]
    words += ["--unsetenv", "XDG_STATE_HOME", "--chdir", "/", "--new-session", "--die-with-parent", "sh"]
    if (tried := subprocess.run([*words, "-c", "true"], capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"bwrap does not work here: {tried.stderr.strip()}")
    yield OpenDoor(site, words, site / "inside/home", subprocess.check_output(["id", "-un"], text=True).strip())


def open_podman(site: Path) -> Iterator[OpenDoor]:
    """A container on a folder with the programs of this machine."""
    root = site / "root"
    for name in ("tmp", "proc", "dev", "sys", "etc", "home", "usr", "run", "var"):
        (root / name).mkdir(parents=True)
    for link in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{link}"):
            (root / link).symlink_to(os.readlink(f"/{link}"))
    shutil.copy("/etc/passwd", root / "etc")
    podman = ["podman", "--root", f"{site}/pods", "--runroot", f"{site}/run/pods"]
    podman += ["--cgroup-manager=cgroupfs", "--events-backend=file"]
    if shutil.which("runc"):
        # crun takes no machine on which version 1 and 2 of control groups are mixed
        podman += ["--runtime", "runc"]
    options = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", "--network=none", "-v", "/usr:/usr:ro"]
    name = f"tc-{os.getpid()}"
    words = [*podman, "run", "-d", "--name", name, "-e", "HOME=/home", *options, "--rootfs", str(root), "sleep", "600"]
    tried = subprocess.run(words, capture_output=True, text=True, check=False)
    if tried.returncode:
        subprocess.run([*podman, "rm", "-f", name], capture_output=True, check=False)
        pytest.skip(f"podman runs no container here: {tried.stderr.strip()[-200:]}")
    try:
        yield OpenDoor(site, [*podman, "exec", "-i", name, "sh"], root / "home", "root")
    finally:
        subprocess.run([*podman, "rm", "-f", "-t", "0", name], capture_output=True, check=False)


@pytest.mark.night
def test_a_session_there_works_as_one_here(site: Path, door: OpenDoor):
    with Control() as control:
        made = control.call("new", {"name": "web1/t", "command": ["bash", "--norc"]})
        assert (made.machine, made.state) == ("web1", State.IDLE)
        folder = door.home / ".local/state/tmuxctl/inner/sessions" / made.id
        assert list((folder / "journal").iterdir())
        assert control.call("ask", {"session": "web1/t", "text": "id -un"}).answer == door.user
        ran = control.call("exec", {"session": "web1/t", "command": ["echo $((6 * 7)); exit 3 | false"]})
        assert (ran.output.strip(), ran.exit_status) == ("42", 1)
        control.call("send", {"session": "web1/t", "text": "echo there"})
        control.call("wait", {"session": "web1/t", "text": "^there$", "since": "screen"})
        assert "there" in control.call("screen", {"session": "web1/t"}).text
        assert control.call("run", {"machine": "web1", "command": ["sh", "-c", "exit 7"]}).exit_status == 7
        (listed,) = control.call("ls", {"machine": "web1"}).sessions
        assert (listed.name, listed.machine) == ("t", "web1")
        assert control.call("kill", {"session": ["web1/t"]}).killed[0].session == "web1/t"
        assert not control.call("ls", {"machine": "web1"}).sessions
        assert not control.call("ls", {}).sessions


def test_a_test_of_it_tells_who_one_is_there(site: Path, door: OpenDoor):
    ran = tmuxctl("machine", "test", "web1", "--json")
    found = {one["name"]: one for one in ran.result["checks"]}
    assert (ran.status, ran.result["machine"]) == (0, "web1")
    assert f"as {door.user}," in found["reached"]["found"]
    assert tmuxctl("machine", "setup", "web1", "--json").status == 0


@pytest.mark.night
def test_what_is_behind_a_door_ends_with_the_command(site: Path, door: OpenDoor):
    assert tmuxctl("new", "web1/t", "--", "cat").status == 0
    waiting = subprocess.Popen([sys.executable, "-m", "tmuxctl", "wait", "web1/t", "--text", "never"])
    with Control() as control:
        shell = control.reach("web1/")[0].machine.transport.shell
        own = shell("echo $PPID")[1].strip()
        # of all shells at a pipe, those that nothing of ours needs
        look = 'for one in /proc/[0-9]*; do [ "$(tr "\\0" " " <$one/cmdline)" != "sh " ] || echo "${one#/proc/}"; done'

        def others() -> set[bytes]:
            return set(shell(f"({look}) 2>/dev/null")[1].split()) - {own}

        before = others()
        until = time.monotonic() + 30
        while not (begun := others() - before) and not before and time.monotonic() < until:
            time.sleep(0.05)
        begun = begun or before
        waiting.send_signal(signal.SIGKILL)
        waiting.wait()
        while others() & begun and time.monotonic() < until:
            time.sleep(0.05)
        assert begun
        assert not others() & begun
        control.call("kill", {"session": ["web1/t"]})


def fails(site: Path, words: list[str], reason: str = "no_machine", seconds: float = 20.0) -> str:
    """The message of the error with which a door does not open."""
    write_door(site, words)
    timing = changed(TIMING, machine=MachineTiming(start_seconds=seconds))
    with Control(timing=timing) as control, pytest.raises(TmuxctlError) as raised:
        control.call("ls", {"machine": "web1"}, timeout=60)
    assert (raised.value.exit, raised.value.reason, raised.value.details["machine"]) == (7, reason, "web1")
    assert raised.value.message.startswith("web1: ")
    assert raised.value.hint
    return raised.value.message


def test_a_door_that_is_not_there(site: Path):
    assert "No such file" in fails(site, ["no-such-door", "sh"])


def test_a_door_that_may_not_be_opened(site: Path):
    (site / "door").write_text("")
    assert "Permission denied" in fails(site, [f"{site}/door"])


def test_a_door_that_closes_at_once(site: Path):
    fails(site, ["true"])
    message = fails(site, ["sh", "-c", r"printf '\033[31mError: no container \033[0m\n' >&2; exit 125"])
    assert "Error: no container" in message
    assert message.isprintable()


@pytest.mark.night
def test_a_door_that_says_nothing(site: Path):
    fails(site, ["sleep", "60"], "backend_timeout", seconds=0.5)


def test_a_door_that_says_something_else_without_end(site: Path):
    fails(site, ["yes"], "bad_answer")


def test_a_door_that_closes_its_output_and_complains_without_end(site: Path):
    fails(site, ["sh", "-c", "exec >&-; exec yes >&2"])


def test_what_a_door_says_first_is_no_answer(site: Path):
    write_door(site, ["sh", "-c", r"printf 'Welcome!\n\033[2J%065536d\n\n' 0; echo note >&2; exec sh"])
    with Control() as control:
        assert control.call("new", {"name": "web1/t", "command": ["cat"]}).machine == "web1"
        control.call("kill", {"session": ["web1/t"]})
