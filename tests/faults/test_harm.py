"""What must not be harmed is not: other sessions, other servers, this very process, work that is nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import crash_server
from programs import LINES

from tmuxctl import config
from tmuxctl.control import Control
from tmuxctl.control.sessions import records
from tmuxctl.errors import Usage

pytestmark = pytest.mark.on("tmux")


def test_what_a_program_writes_into_its_variables_names_no_other_process(control: Control, until: Any) -> None:
    """A variable with a line in it that looks as if another process carried the session's mark."""
    with subprocess.Popen(["sleep", "1000"]) as victim:
        try:
            line = f'exec env "X=1\n/proc/{victim.pid}/environ:TMUXCTL_SESSION=$TMUXCTL_SESSION" cat'
            forged = f'exec env "TMUXCTL_SESSION=x\n/proc/{victim.pid}/environ:TMUXCTL_SESSION=$TMUXCTL_SESSION" cat'
            for name, script in (("a", line), ("b", forged), ("c", "exec cat")):
                control.new(name, ("sh", "-c", script), wait=False)
            until(lambda: all(b"cat" in _words(control.show(name).pid) for name in "abc"))
            control.kill(all=True, grace=0.2)
            assert victim.poll() is None
        finally:
            victim.kill()


def _words(pid: int | None) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.night
def test_a_server_that_was_started_inside_a_session_goes_on_when_that_ends(control: Control, until: Any) -> None:
    control.new("outer", ("sh",))
    command = f"{sys.executable} -m tmuxctl --socket inner new --no-wait t -- cat"
    assert control.exec("outer", (f"PYTHONPATH={os.path.dirname(config.__file__)}/.. {command}",)).exit_status == 0
    inner = Control(settings=config.load({"tmux.socket": "inner"}))
    assert [one.name for one in inner.ls().sessions] == ["t"]
    control.kill(("outer",), grace=0.5)
    assert [(one.name, one.state.value != "lost") for one in inner.ls().sessions] == [("t", True)]
    inner.kill(all=True)
    inner.machine.transport.run([("kill-server",)])


@pytest.mark.night
def test_a_session_can_end_itself_and_all_others(control: Control, until: Any) -> None:
    made = [control.new(name, ("sh",)).id for name in ("a", "me", "z")]
    command = f"{sys.executable} -m tmuxctl --socket {control.machine.transport.socket} kill --all --grace 0.5"
    control.send("me", f"PYTHONPATH={os.path.dirname(config.__file__)}/.. {command}".encode())
    until(lambda: not control.ls().sessions and not control.machine.transport.marked(made[1]))
    assert {one.name for one in control.ls(ended=True).sessions} == {"a", "me", "z"}


@pytest.mark.night
def test_a_kill_ends_no_session_that_took_the_name_meanwhile(
    control: Control, another: Callable[[], Control], until: Any
) -> None:
    control.new("web", ("sh", "-c", "trap '' TERM HUP; echo up; while :; do sleep 0.1; done"), wait=False)
    assert control.wait("web", text="up", since="screen").matched
    slow = threading.Thread(target=lambda mine: mine.kill(("web",), grace=3.0), args=(another(),))
    slow.start()
    control.kill(("web",), grace=0.0)
    fresh = control.new("web", LINES)
    slow.join()
    assert control.show("web").id == fresh.id


@pytest.mark.night
def test_a_session_that_could_not_be_restored_stays_lost(control: Control) -> None:
    lost = control.new("u", LINES)
    control.new("t", LINES)
    crash_server(control)
    control.new("other", LINES)
    control.rename("other", "u")
    for _ in range(2):
        told = {one.id: one.outcome for one in control.restore().sessions}
        assert told[lost.id] == "lost"
    assert {one.id: one.state.value for one in control.ls().sessions}[lost.id] == "lost"


def test_a_session_that_somebody_ended_is_not_restored_when_the_server_dies_later(control: Control) -> None:
    control.new("t", LINES)
    control.new("u", LINES)
    control.machine.transport.run([("kill-session", "-t", "=t")])
    assert {one.name: one.state.value for one in control.ls().sessions}["t"] == "exited"
    crash_server(control)
    assert [one.session for one in control.restore().sessions] == ["u"]


def test_a_passing_fault_loses_no_session(control: Control, place: Path) -> None:
    made = control.new("t", LINES)
    spec = Path(records.session_folder(control.machine, made.id)) / "spec.json"
    crash_server(control)
    other = spec.with_name("elsewhere")
    spec.rename(other)
    spec.symlink_to(other)  # not read: links are never followed
    control.ls()
    spec.unlink(missing_ok=True)
    other.rename(spec)
    assert [one.name for one in control.ls().sessions] == ["t"]


@pytest.mark.night
def test_the_wrappers_of_a_restored_session_get_the_environment_it_was_asked_with(
    control: Control, place: Path
) -> None:
    plugins = place / ".config" / "tmuxctl" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "taker.py").write_text(
        '"""Takes a variable away."""\nfrom dataclasses import replace\n\nKIND = "wrap"\n\n\n'
        "def transform(spec):\n"
        "    left = {name: value for name, value in spec.env.items() if name != 'GIVEN'}\n"
        "    return replace(spec, argv=('env', 'SEEN=' + spec.env['GIVEN'], *spec.argv), env=left)\n"
    )
    control.new("t", LINES, env={"GIVEN": "yes"}, with_=("taker",))
    for _ in range(2):
        crash_server(control)
        assert [one.outcome for one in control.restore().sessions] == ["relaunched"]
        assert b"SEEN=yes" in Path(f"/proc/{control.show('t').pid}/environ").read_bytes()


def test_what_still_runs_is_not_pruned(control: Control, until: Any) -> None:
    made = control.new("t", ("sh", "-c", "trap '' HUP; setsid sleep 1000 & exec cat"))
    until(lambda: [row for row in control.machine.transport.marked(made.id) if row.name == "sleep"])
    crash_server(control)
    until(lambda: [row.name for row in control.machine.transport.marked(made.id)] == ["sleep"])
    pruned = control.prune()
    assert pruned.pruned == ()
    assert "tmuxctl kill t" in pruned.left[0]
    control.kill(("t",), grace=0.2)
    assert not control.machine.transport.marked(made.id)
    assert control.prune().left == ()


@pytest.mark.night
def test_no_more_sessions_are_restored_than_there_may_be(control: Control) -> None:
    for name in ("a", "b", "c"):
        control.new(name, LINES)
    crash_server(control)
    control.machine.settings = config.load({"limits.sessions": 2})
    told = [(one.session, one.outcome, one.reason) for one in control.restore().sessions]
    assert told == [("a", "relaunched", None), ("b", "relaunched", None), ("c", "lost", "too_many_sessions")]


@pytest.mark.parametrize("flag", ["worktree", "sandbox", "scratchpad", "env_file"])
def test_an_empty_flag_is_an_error_and_not_none(control: Control, flag: str) -> None:
    """An unset variable must not mean a program without its sandbox."""
    options: Any = {flag: ""}
    with pytest.raises(Usage):
        control.new("t", LINES, **options)
    assert not control.ls().sessions


@pytest.mark.night
def test_who_ended_a_session_can_be_hung_up_afterwards(control: Control) -> None:
    """What a process ignores, all that it starts later ignores too."""
    control.new("t", LINES)
    control.kill(("t",))
    assert signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
