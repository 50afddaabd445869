"""What a plugin can rely on of the machine that it is given, wherever that is and however little is installed there."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmuxctl.errors import Conflict, Denied, Failed, NotFound
from tmuxctl.plugin_machine import NOT_FOUND, NOT_STARTED, CommandResult, PluginMachine, this_machine
from tmuxctl.transport.pipe import PipeTransport

LITTLE = "cat chmod cut date env grep head id ln ls mkdir mktemp mv printf ps pwd readlink rm sed sh sleep stat sync tr uname wc"
"""Programs of a system that has neither timeout(1) nor setsid(1)."""

SHELLS = {"bash": ("bash", "--posix"), "busybox": ("busybox", "sh"), "little": ("sh",)}


@pytest.fixture(params=["here", "pipe", *SHELLS])
def machine(request: pytest.FixtureRequest, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginMachine]:
    """This machine, and one behind each of these shells, the last with few programs."""
    if request.param == "here":
        yield this_machine()
        return
    words = SHELLS.get(request.param, ("sh",))
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    if request.param in SHELLS:
        programs = place / "programs"
        programs.mkdir()
        names = [*LITTLE.split(), *(["timeout", "setsid"] if request.param != "little" else []), words[0]]
        for name in names:
            if name != "sh" and (found := shutil.which(name)):
                (programs / name).symlink_to(found)
        script = f'#!/bin/sh\nexec {shutil.which(words[0])} {" ".join(words[1:])} "$@"\n'
        (programs / "sh").write_text(script)
        (programs / "sh").chmod(0o755)
        words = ("env", f"PATH={programs}", "sh")
    transport = PipeTransport(words)
    yield PluginMachine(transport.shell, os.environ, name="there")
    transport.close()


def sh(machine: PluginMachine, script: str, *words: str, stdin: str = "", seconds: float = 20.0) -> CommandResult:
    return machine.run(("sh", "-c", script, "sh", *words), "/", stdin=stdin, seconds=seconds)


def test_a_program_gets_its_words_and_its_input_and_tells_how_it_ended(machine: PluginMachine) -> None:
    script = "cat; printf '%s|' \"$@\"; printf 'a\\000b'; echo oh >&2; exit 3"
    ran = sh(machine, script, "it's", "", "a b\n", stdin="given\0\n")
    assert ran == CommandResult(3, "given\0\nit's||a b\n|a\0b", "oh\n")
    assert sh(machine, "cat; exit 0") == CommandResult(0, "", "")


def test_a_program_starts_in_its_folder_with_its_variables(machine: PluginMachine, place: Path) -> None:
    folder = place / "it's a folder"
    folder.mkdir()
    command = ("sh", "-c", 'pwd; echo "$ONE-${HOME-none}"')
    ran = machine.run(command, str(folder), seconds=20.0, variables={"ONE": "1 $x"}, without=("HOME",))
    assert ran.out.splitlines() == [str(folder), "1 $x-none"]
    assert machine.run(("tmuxctl-no-such-program",), "/", seconds=20.0).status == NOT_FOUND
    ran = machine.run(command, str(place / "none"), seconds=20.0)
    assert (ran.status, ran.error) == (NOT_STARTED, f"{place}/none cannot be entered")


@pytest.mark.night
def test_a_program_that_takes_too_long_is_ended_with_what_it_said(
    machine: PluginMachine, place: Path, until: Callable[..., None]
) -> None:
    with pytest.raises(Failed) as caught:
        sh(machine, 'echo begun; echo $$ >"$1"; sleep 1000', str(place / "pid"), seconds=1.0)
    assert caught.value.reason == "timeout"
    assert "begun" in caught.value.message
    pid = (place / "pid").read_text().strip()
    until(lambda: not Path(f"/proc/{pid}").exists() or "Z (" in Path(f"/proc/{pid}/status").read_text())
    assert sh(machine, "echo next").out == "next\n"


def test_what_stands_at_a_path_is_told(machine: PluginMachine, place: Path) -> None:
    top = place / "top\nline"
    (top / "in").mkdir(parents=True)
    (top / "file").touch()
    (top / "link").symlink_to("in")
    (top / "broken").symlink_to("no\nthing")
    os.mkfifo(top / "fifo")
    paths = [str(top / name) for name in ("in", "file", "link", "broken", "fifo", "none", "link/more/none")]
    found = machine.look(*paths)
    assert [one.kind for one in found] == ["folder", "file", "link", "link", "other", "", ""]
    assert [one.is_folder for one in found] == [True, False, True, False, False, False, False]
    assert [one.target for one in found] == ["", "", "in", "no\nthing", "", "", ""]
    assert found[2].real == str(top / "in")
    assert found[6].real == str(top / "in/more/none")
    assert sorted(machine.names(str(top))) == ["broken", "fifo", "file", "in", "link"]
    assert machine.names(str(top / "none")) == []
    assert machine.resolve("/") == "/"


def test_records_are_read_as_they_were_written_and_no_link_is_followed(machine: PluginMachine, place: Path) -> None:
    path, aim = str(place / "record"), place / "aim"
    machine.write_record(path, {"word": "ü\n", "number": 1}, durable=True)
    assert machine.read_record(path) == {"word": "ü\n", "number": 1} | {"format": machine.read_record(path)["format"]}
    machine.remove(path)
    machine.remove(path)
    with pytest.raises(NotFound):
        machine.read(path, 10)
    aim.write_text("mine")
    os.symlink(aim, path)
    with pytest.raises(Denied):
        machine.read(path, 10)
    os.unlink(path)
    os.mkfifo(path)
    with pytest.raises(Denied):
        machine.read(path, 10)
    with pytest.raises(Failed):
        machine.write_record(str(place / "none/record"), {})


def test_folders_are_private_or_refused(machine: PluginMachine, place: Path) -> None:
    one, two = str(place / "above/one"), str(place / "above/one/two")
    machine.make_private_folders(one, two)
    machine.make_private_folders(one, two)
    assert os.stat(two).st_mode & 0o777 == 0o700
    os.chmod(two, 0o755)
    with pytest.raises(Denied) as caught:
        machine.make_private_folders(one, two)
    assert (caught.value.reason, two in caught.value.message) == ("bad_mode", True)
    os.rmdir(two)
    os.symlink(one, two)
    with pytest.raises(Denied) as caught:
        machine.make_private_folders(one, two)
    assert caught.value.reason == "bad_owner"


def test_one_at_a_time_has_a_lock(machine: PluginMachine, place: Path) -> None:
    path, inside, most = str(place / "lock"), [0], [0]

    def work() -> None:
        with machine.lock(path, "busy", "wait", 60.0):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            sh(machine, ":")
            inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert not os.path.lexists(path)


def test_a_lock_whose_holder_has_ended_is_free_and_one_that_is_held_is_not(machine: PluginMachine, place: Path) -> None:
    path = str(place / "lock")
    with subprocess.Popen(["sleep", "1000"]) as holder:
        started = Path(f"/proc/{holder.pid}/stat").read_text().rpartition(")")[2].split()[19]
        os.symlink(f"{holder.pid}:{started}", path)
        with pytest.raises(Conflict) as caught, machine.lock(path, "held by another", "wait", 0.0):
            pass
        assert (caught.value.reason, caught.value.message) == ("busy", "held by another")
        machine.remove_dead_locks((str(place / "none"), path))
        assert os.path.islink(path)
        holder.kill()
    with machine.lock(path, "held by another", "wait", 20.0):
        assert os.path.islink(path)
    os.symlink(f"{holder.pid}:{started}", path)
    machine.remove_dead_locks((str(place / "none"), path))
    assert not os.path.islink(path)
    os.symlink("/etc/passwd", path)
    machine.remove_dead_locks((path,))
    assert os.path.islink(path)
    with pytest.raises(Denied), machine.lock(path, "held", "wait", 0.0):
        pass
    with pytest.raises(NotFound), machine.lock(str(place / "none/lock"), "held", "wait", 0.0):
        pass


def test_programs_and_processes_are_found(machine: PluginMachine) -> None:
    assert machine.which("cat")
    assert not machine.which("tmuxctl-no-such-program")
    assert machine.is_running(os.getpid())
    with subprocess.Popen(["true"]) as ended:
        pass
    assert not machine.is_running(ended.pid)
    assert machine.expand("~/a/../b", "/x") == f"{os.environ['HOME']}/b"
    assert machine.expand("a", "/x") == "/x/a"
