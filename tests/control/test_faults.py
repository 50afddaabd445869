"""When tmux hangs: what is reported is true, and nothing is typed twice."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from programs import LINES, SHELL

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Denied, Unreachable
from tmuxctl.terminal.input import paste
from tmuxctl.terminal.tmux import server

pytestmark = pytest.mark.on("tmux", "pipe")


@contextmanager
def stopped(control: Control) -> Iterator[None]:
    """The tmux server does not answer meanwhile."""
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.night
def test_a_write_into_a_hanging_tmux_is_unknown_and_typed_at_most_once(control: Control) -> None:
    control.new("t", LINES)
    pane = server.read_pane(control.machine.io, "t")
    one = paste.Write("abcdefgh12345678", data=b"only once", enter=True)
    remember = paste.LastInput.remember(1, one.id, 0, "tty", one.data)
    with stopped(control), pytest.raises(Unreachable) as unknown:
        paste.carry_out(control.machine.io, control.machine.holder, pane, one, remember, timeout=0.5)
    assert unknown.value.reason == "outcome_unknown"
    assert unknown.value.details["id"] == one.id
    assert one.id in unknown.value.hint
    assert control.send("t", one.data, id=one.id).result in ("done", "dup")
    assert control.send("t", one.data, id=one.id).result == "dup"
    control.send("t", b"the end")
    assert control.wait("t", text="^the end$").matched
    assert control.log("t").text.count("only once") == 2  # echo and answer


@pytest.mark.night
def test_looking_at_a_hanging_tmux_ends_in_time(control: Control) -> None:
    control.new("t", LINES)
    with stopped(control), pytest.raises(Unreachable) as silent:
        server.read_pane(control.machine.io, "t", timeout=0.3)
    assert silent.value.reason == "backend_timeout"
    assert control.show("t").state.value == "idle"


@pytest.mark.on("tmux")
def test_a_socket_that_was_deleted_comes_back_with_its_sessions(control: Control, place: Path, until: Any) -> None:
    control.new("t", LINES)
    pid = control.machine.transport.run([("display-message", "-p", "#{pid}")])
    socket = next(place.glob("tmux-*/t"))
    socket.unlink()
    control.new("u", LINES)
    assert [one.name for one in control.ls().sessions] == ["t", "u"]
    assert control.machine.transport.run([("display-message", "-p", "#{pid}")]) == pid


@pytest.mark.night
@pytest.mark.on("tmux")
def test_the_last_session_can_be_killed_and_another_started_again_and_again(control: Control) -> None:
    for _ in range(5):
        control.new("t", LINES)
        control.kill(("t",), signal="KILL")
    assert not control.ls().sessions


@pytest.mark.on("tmux")
def test_state_is_for_its_owner_only(control: Control, place: Path) -> None:
    control.new("t", LINES)
    control.send("t", b"x")
    assert control.wait("t", text="^x$").matched
    for one in (place / "state" / "tmuxctl").rglob("*"):
        assert not one.lstat().st_mode & 0o077, one


@pytest.mark.on("tmux")
def test_a_state_folder_open_to_others_is_refused(control: Control, place: Path) -> None:
    home = place / "state" / "tmuxctl"
    home.mkdir(parents=True, mode=0o700)
    home.chmod(0o755)
    with pytest.raises(Denied) as refused:
        control.new("t", LINES)
    assert refused.value.reason == "bad_mode"


@pytest.mark.on("tmux")
def test_a_damaged_file_costs_no_other_session(control: Control, place: Path) -> None:
    damaged = control.new("damaged", LINES)
    control.new("good", LINES)
    spec = next(place.rglob(f"{damaged.id}/spec.json"))
    spec.write_text("{not json")
    os.kill(int(control.machine.transport.run([("display-message", "-p", "#{pid}")])), signal.SIGKILL)
    deadline = time.monotonic() + 10
    while [one.state.value for one in control.ls().sessions] != ["lost"]:
        assert time.monotonic() < deadline
    assert [one.name for one in control.ls().sessions] == ["good"]
    assert spec.with_name("spec.json.corrupt").exists()


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_process_that_is_stopped_while_it_opens_a_client_leaves_no_doubt_about_a_write(control: Control) -> None:
    control.new("t", LINES)
    pane = server.read_pane(control.machine.io, "t")
    one = paste.Write("abcdefgh12345678", data=b"not at all", enter=True)
    remember = paste.LastInput.remember(1, one.id, 0, "tty", one.data)
    with open(f"{control.machine.transport.home}/control.lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Conflict) as refused:
            paste.carry_out(control.machine.io, control.machine.holder, pane, one, remember, timeout=0.5)
    assert refused.value.reason == "locked"
    assert control.send("t", b"not at all", id=one.id).result == "done"


OPEN_AND_DIE = """
import os, random, sys, time
import tmuxctl.transport.control_mode
from tmuxctl.transport.local import LocalTransport
socket, home, seed, rounds = sys.argv[1:]
chance = random.Random(int(seed))
for _ in range(int(rounds)):
    opened, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            LocalTransport(socket, resident=True, home=home).run([("display-message", "-p", "x")])
            os.write(tell, b"x")
            time.sleep(60)
        finally:
            os._exit(0)
    os.close(tell)
    os.read(opened, 1)
    time.sleep(chance.random() * 0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(opened)
"""


def _open_and_die(control: Control, seed: int, rounds: int) -> list[str]:
    transport = control.machine.transport
    return [sys.executable, "-c", OPEN_AND_DIE, transport.socket, transport.home, str(seed), str(rounds)]


@pytest.mark.night
@pytest.mark.on("tmux")
def test_processes_that_are_killed_take_no_session_with_them(control: Control) -> None:
    """tmux before 3.7 dies of a notification while a control client opens: that of a client which leaves because its process
    was killed, too (ADR 8)."""
    control.new("t", SHELL)
    asked = [("display-message", "-p", "#{pid}")]
    before = control.machine.transport.run(asked)
    killers = [subprocess.Popen(_open_and_die(control, seed, 40)) for seed in range(6)]
    assert [killer.wait(120) for killer in killers] == [0] * 6
    assert control.machine.transport.run(asked) == before
    assert control.ask("t", b"echo still here").answer == "still here"


@pytest.mark.on("tmux")
def test_while_a_client_is_half_open_no_other_opens_though_its_process_was_killed(control: Control, until: Any) -> None:
    control.new("t", LINES)
    server_pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    path = Path(control.machine.transport.home, "control.lock")

    def is_held() -> bool:
        with path.open("r+b") as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        return True

    os.kill(server_pid, signal.SIGSTOP)
    try:
        with subprocess.Popen(_open_and_die(control, 1, 1)) as killer:
            keeper = until(lambda: _find_keeper(psutil.Process(killer.pid)))
            assert is_held()
            (opener,) = psutil.Process(killer.pid).children()
            opener.kill()
            while True:
                held = is_held()
                if not keeper.is_running() or keeper.status() == psutil.STATUS_ZOMBIE:
                    break
                # as long as somebody looks after it
                assert held
    finally:
        os.kill(server_pid, signal.SIGCONT)
    until(lambda: not is_held())


def _find_keeper(parent: psutil.Process) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        return next((one for one in parent.children(recursive=True) if one.name() == "sh"), None)
    return None


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_process_that_is_killed_leaves_no_client(control: Control, until: Any) -> None:
    control.new("t", SHELL)
    assert subprocess.run(_open_and_die(control, 1, 3), timeout=60).returncode == 0
    until(lambda: not control.machine.transport.run([("list-clients", "-F", "#{client_pid}")]).strip())
