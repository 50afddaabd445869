"""A tmux that is missing, too old, set up by somebody else, or started anew is told and taken for no other."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.command import Command
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.control.setup import doctor
from tmuxctl.errors import TmuxctlError, Unreachable
from tmuxctl.transport import versions

pytestmark = pytest.mark.on("tmux")


@pytest.fixture
def programs_without_tmux(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all programs there are for the commands of a test."""
    folder = place / "bin"
    folder.mkdir()
    for name in ("cat", "env", "rm", "sh", "sleep", "stty"):
        (folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.night
def test_without_tmux_every_command_says_what_to_install(control: Control, programs_without_tmux: Path) -> None:
    for words in ("ls", "new t -- cat", "send t x", "kill t"):
        done = Command()(*words.split())
        assert (done.status, done.reason) == (7, "no_tmux"), words
        assert "3.2" in done.errors
    checks = {one["name"]: one for one in Command()("doctor").said["checks"]}
    assert checks["tmux"]["ok"] is False


def test_a_tmux_that_is_too_old_is_told_with_the_oldest_that_works(
    control: Control, programs_without_tmux: Path
) -> None:
    old = programs_without_tmux / "tmux"
    old.write_text(
        '#!/bin/sh\n[ "$*" = -V ] && echo tmux 2.6 && exit\n'
        'for one; do [ "$one" != -N ] || { echo "tmux: invalid option -- N\nusage: tmux [-2CluvV]" >&2; exit 1; }; done\n'
    )
    old.chmod(0o755)
    done = Command()("new", "t", "--", "cat")
    assert done.reason == "tmux_too_old"
    assert "3.2" in done.errors
    checks = {one["name"]: one for one in Command()("doctor").said["checks"]}
    assert (checks["tmux"]["ok"], "2.6" in checks["tmux"]["found"]) == (False, True)


@pytest.mark.parametrize(
    ("version", "ok"), [("3.3a", True), ("3.7c", True), ("next-3.8", None), ("4.1", None), ("master", None)]
)
def test_doctor_tells_a_tmux_that_was_never_tried(
    control: Control, programs_without_tmux: Path, version: str, ok: bool | None
) -> None:
    new = programs_without_tmux / "tmux"
    new.write_text(f"#!/bin/sh\n[ $1 = -V ] && echo tmux {version} && exit\nexit 1\n")
    new.chmod(0o755)
    (check,) = [one for one in Command()("doctor").said["checks"] if one["name"] == "tmux"]
    assert (check["ok"], version in check["found"], bool(check["hint"])) == (ok, True, ok is None)


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_a_server_that_does_not_understand_the_installed_tmux_is_told_and_not_to_be_ended(
    control: Control, place: Path, monkeypatch: pytest.MonkeyPatch, another: Callable[[], Control]
) -> None:
    """As a server of 3.6 or later with the tmux of before, once that is installed again."""
    pid = control.show(control.new("t", LINES).name).pid
    monkeypatch.setenv("PATH", f"{place}/older:{os.environ['PATH']}")
    _put_older_tmux(place / "older")
    with pytest.raises(Unreachable) as told:
        another().ls()
    assert told.value.reason == "other_version"
    assert "kill" not in str(told.value.hint)
    os.kill(pid or 0, 0)
    monkeypatch.setenv("PATH", os.environ["PATH"].removeprefix(f"{place}/older:"))
    assert [one.name for one in another().ls().sessions] == ["t"]


@pytest.mark.night
@pytest.mark.on("pipe")
def test_a_server_that_does_not_understand_the_installed_tmux_is_told_where_that_stops_answering(
    control: Control, place: Path, monkeypatch: pytest.MonkeyPatch, another: Callable[[], Control]
) -> None:
    """As on a busy machine, where the last question before the deadline gets no answer."""
    control.new("t", LINES)
    monkeypatch.setenv("PATH", f"{place}/older:{os.environ['PATH']}")
    _put_older_tmux(place / "older", "echo >>$0.asked; [ $(wc -l <$0.asked) -gt 6 ] && sleep 30")
    with pytest.raises(Unreachable) as told:
        another().ls()
    assert told.value.reason == "other_version"


def _put_older_tmux(folder: Path, before: str = "") -> None:
    """A tmux in this folder that the running server hangs up on; it runs the shell line `before` each time."""
    folder.mkdir()
    (folder / "tmux").write_text(
        f'#!/bin/sh\n[ "$1" = -V ] && echo tmux 3.3a && exit\n{before}\necho server exited unexpectedly >&2\nexit 1\n'
    )
    (folder / "tmux").chmod(0o755)


def test_doctor_tells_a_server_of_a_version_that_was_never_tried(control: Control) -> None:
    """A server goes on as it is when the program is replaced."""
    control.new("t", LINES)
    version = control.machine.transport.run([("display-message", "-p", "#{version}")]).decode().strip()
    server = next(one for one in control.doctor().checks if one.name == "server")
    assert (server.ok, server.hint) == doctor._judge_version(version)
    assert doctor._judge_version(versions.TRIED[-1]) == (True, None)
    ok, hint = doctor._judge_version("99.9")
    assert (ok, versions.TRIED[-1] in (hint or "")) == (None, True)


@pytest.mark.on("resident")
def test_an_id_of_a_server_that_died_is_nobody_elses(control: Control, until: Callable[..., Any]) -> None:
    """tmux gives its own numbers out again; a session is known by its id alone."""
    first = control.new("t", LINES)
    control.send("t", b"to the first")
    os.kill(int(control.machine.transport.run([("display-message", "-p", "#{pid}")])), signal.SIGKILL)
    until(lambda: [one.state for one in control.ls().sessions] == ["lost"])
    second = control.new("t", LINES)
    assert second.id != first.id
    with pytest.raises(TmuxctlError):
        control.send(first.id, b"to the first again")
    assert control.send(second.id, b"to the second").result == "done"
    assert control.wait("t", text="^to the second$").matched
    assert "first" not in control.screen("t").text


@pytest.mark.night
@pytest.mark.on("tmux", "resident")
@pytest.mark.timeout(300)
def test_the_last_session_is_killed_and_another_started_a_hundred_times(control: Control) -> None:
    for number in range(100):
        control.new("t", LINES, wait=False)
        control.kill(("t",), signal="KILL")
        assert not control.ls().sessions, number


def test_a_link_in_place_of_the_sockets_folder_is_refused(control: Control, place: Path) -> None:
    """tmux itself looks whose folder it is."""
    (place / "planted").mkdir(mode=0o700)
    (place / f"tmux-{os.getuid()}").symlink_to(place / "planted")
    done = Command()("new", "t", "--", "cat")
    assert done.status
    assert "Traceback" not in done.errors
    assert not list((place / "planted").iterdir())


@pytest.mark.night
def test_a_profile_that_lies_in_the_folder_one_works_in_is_not_read(control: Control, place: Path) -> None:
    project = place / "project"
    for folder in (".", "profiles", "tmuxctl/profiles", ".config/tmuxctl/profiles", ".tmuxctl/profiles"):
        (project / folder).mkdir(parents=True, exist_ok=True)
        (project / folder / "cat.yaml").write_text(
            "schema: tmuxctl/profile@1\nname: cat\nprompt: {id: planted, re: planted}\n"
        )
    os.chdir(project)
    assert Command()("new", "t", "--", "cat").said["profile"] is None
    assert Command()("new", "u", "--profile", "cat", "--", "cat").reason == "no_profile"


@pytest.mark.night
def test_an_end_that_tmux_overlooks_twice_does_not_fail_a_wait(
    control: Control, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control.new("t", ("cat",))
    folder = place / "overlooking"
    folder.mkdir()
    tmux = folder / "tmux"
    tmux.write_text(f'#!/bin/sh\ncase "$*" in *run-shell*) exec sleep 1000; esac\nexec {shutil.which("tmux")} "$@"\n')
    tmux.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    pid = control.show("t").pid
    assert pid
    ends = threading.Timer(0.5, lambda: os.kill(pid, signal.SIGKILL))
    # as long as tmux has not noticed, a process that has ended is none that lives
    monkeypatch.setattr(control.machine.transport, "processes", lambda pids: [])
    ends.start()
    assert control.wait("t", exit=True).matched == "exit"
    ends.join()
