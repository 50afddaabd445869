"""At the limits of the machine: what there is no room for is refused in words, and nobody else is harmed.

Limits are those of processes of the tests' own, of a user who has no others, and of a private mount; the host's are left alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from faults.command import Command, allow_sessions, crowd

from tmuxctl.control import Control
from tmuxctl.control.sessions.records import server_pid

pytestmark = [pytest.mark.on("tmux"), pytest.mark.timeout(300)]

USER = 1_000_000 + os.getpid()
"""A user id that nobody has here, nor a test beside this one: it has no processes."""


def all_answer(tmuxctl: Command, names: Sequence[str]) -> None:
    """Every session takes a line and repeats it."""
    assert list(tmuxctl.states()) == sorted(names)
    for name in names:
        answers(tmuxctl, name)


def answers(tmuxctl: Command, name: str) -> None:
    assert tmuxctl("send", name, f"to {name}").reason == ""
    assert tmuxctl("wait", name, "--text", f"^to {name}$").said["matched"] == "text"


def recovers(tmuxctl: Command, names: Sequence[str]) -> None:
    """With two sessions less there is room for one more, and all others are there."""
    assert tmuxctl("kill", *names[-2:]).reason == ""
    assert tmuxctl("new", "again", "--", "cat").reason == ""
    assert sorted(tmuxctl.states()) == sorted([*names[:-2], "again"])
    for name in ("again", names[0]):
        answers(tmuxctl, name)


def named(number: int) -> list[str]:
    return [f"s{each:04}" for each in range(number)]


# descriptors


@pytest.mark.night
@pytest.mark.parametrize("descriptors", [64, pytest.param(1024, marks=pytest.mark.night)])
def test_sessions_are_refused_before_the_server_has_no_descriptors_left(
    control: Control, place: Path, needs, descriptors: int
) -> None:
    """Hard limit and soft limit: nothing can be had beyond it, and tmux 3.3a at its limit spins and loses sessions."""
    needs("prlimit")
    allow_sessions(place, descriptors)
    tmuxctl = Command("prlimit", f"--nofile={descriptors}:{descriptors}", "--")
    made, reason = crowd(descriptors, *tmuxctl.behind)
    server = control.machine.transport.read(f"{control.machine.transport.home}/server")
    assert reason == "no_descriptors", (made, server, nofile(server_pid(control.machine)))
    assert made >= descriptors // 4
    names = named(made)
    for name in names:
        control.send(name, f"to {name}".encode())
    for name in names:
        assert control.wait(name, text=f"^to {name}$").matched
    # a client of tmux that was there when the last one was refused had descriptors too
    more = [f"more-{number}" for number in range(3)]
    reasons = [tmuxctl("new", name, "--", "cat").reason for name in more]
    assert reasons[-1] == "no_descriptors", reasons
    for name, reason in zip(more, reasons, strict=True):
        assert reason or not tmuxctl("kill", name).reason
    recovers(tmuxctl, names)


@pytest.mark.night
def test_a_low_soft_limit_alone_is_no_limit(control: Control, needs) -> None:
    """The server has what the hard limit allows; the program what its caller had."""
    needs("prlimit")
    tmuxctl = Command("prlimit", "--nofile=64:4096", "--")
    assert crowd(40, *tmuxctl.behind) == (40, "")
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    assert nofile(pid) == ("4096", "4096")
    assert nofile(control.show("s0000").pid) == ("64", "4096")


def nofile(pid: int | None) -> tuple[str, ...]:
    """A process's soft and hard limit of descriptors."""
    found = re.search(r"^Max open files +(\S+) +(\S+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)
    assert found
    return found.groups()


# terminals


@pytest.fixture
def few_terminals(root: None, control: Control, place: Path) -> Iterator[Command]:
    """Commands where there are ten terminals, in a mount namespace of its own."""
    script = (
        "mount -t devpts -o newinstance,max=10,ptmxmode=0666,mode=620 devpts /dev/pts && echo ready && exec sleep 1000"
    )
    words = ["unshare", "-m", "sh", "-c", script]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert holder.stdout
    ready = holder.stdout.readline() == "ready\n"
    try:
        if not ready:
            pytest.skip("no terminals of its own are to be had here")
        yield Command("nsenter", "-t", str(holder.pid), "-m", f"--wd={place}", "--")
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.night
def test_without_a_terminal_left_a_session_is_refused(few_terminals: Command) -> None:
    assert crowd(12, *few_terminals.behind) == (10, "no_ptys")
    all_answer(few_terminals, named(10))
    recovers(few_terminals, named(10))


# processes


@pytest.fixture
def nobody(root: None, needs, place: Path) -> Iterator[list[str]]:
    """Words behind which a command runs as a user without any other process; it may read what root may."""
    needs("setpriv", "prlimit")
    reading = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    words = [
        "prlimit",
        "--nproc=1000:1000",
        "setpriv",
        f"--reuid={USER}",
        f"--regid={USER}",
        "--clear-groups",
        *reading,
    ]
    shutil.chown(place, USER, USER)
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("no process can be run as another user here")
    yield words
    end_all_of(USER)


def processes_of(user: int) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == user:
                found.append(int(name))
        except OSError:
            continue
    return found


def limit(nobody: list[str], pid: int, processes: int) -> None:
    """Change the soft limit of a running process, as its user may."""
    subprocess.run([*nobody, "prlimit", f"--nproc={processes}:", "--pid", str(pid)], check=True)


def end_all_of(user: int) -> None:
    for pid in processes_of(user):
        with suppress(ProcessLookupError):
            os.kill(pid, 9)


@pytest.mark.night
def test_without_a_process_left_a_session_is_refused(nobody: list[str]) -> None:
    free = Command(*nobody)
    assert free("new", "first", "--", "cat").reason == ""
    assert free("new", "second", "--", "cat").reason == ""
    server = int(
        subprocess.run([*nobody, "tmux", "-L", "t", "display-message", "-p", "#{pid}"], capture_output=True).stdout
    )
    # what the server may have from now on: itself, and what runs
    limit(nobody, server, len(processes_of(USER)))
    assert free("new", "t", "--", "cat").reason == "no_processes"
    all_answer(free, ["first", "second"])
    limit(nobody, server, 1000)
    assert free("new", "t", "--", "cat").reason == ""
    all_answer(free, ["first", "second", "t"])


@pytest.mark.night
def test_a_caller_without_a_process_left_is_told_so(nobody: list[str]) -> None:
    free = Command(*nobody)
    assert free("new", "first", "--", "cat").reason == ""
    none = Command(*nobody, "prlimit", "--nproc=1:", "--")
    for verb in ("ls", "screen first", "send first no", "exec first -- no", "new t -- cat", "kill first", "restore"):
        assert none(*verb.split()).reason == "no_processes", verb
    assert not none("doctor").said["ok"]
    all_answer(free, ["first"])


@pytest.mark.night
def test_a_session_is_there_or_not_however_many_processes_its_start_may_have(nobody: list[str]) -> None:
    free = Command(*nobody)
    assert free("new", "first", "--", "cat").reason == ""
    for more in range(1, 8):
        few = Command(*nobody, "prlimit", f"--nproc={len(processes_of(USER)) + more}:", "--")
        said = few("new", "t", "--no-wait", "--", "cat").reason
        assert said in ("", "no_processes"), more
        assert list(free.states()) == (["first"] if said else ["first", "t"]), more
        assert said or free("kill", "t").reason == ""
    all_answer(free, ["first"])
