"""Killing: everything a session started is gone, its words stay until they are pruned, and nobody else is touched."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, SHELL, program

from tmuxctl.control import Control
from tmuxctl.control.lifecycle import ending
from tmuxctl.errors import NotFound, Usage
from tmuxctl.terminal.panes import captures
from tmuxctl.terminal.processes.process import find_tree
from tmuxctl.terminal.tmux import layout, server


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_a_killed_session_is_gone(control: Control) -> None:
    made = control.new("t", LINES)
    control.new("other", LINES)
    (end,) = control.kill(("t",)).killed
    assert (end.session, end.id, end.exit_status, end.signal, end.escaped) == ("t", made.id, None, "TERM", ())
    assert end.processes >= 1
    assert [one.name for one in control.ls().sessions] == ["other"]
    with pytest.raises(NotFound):
        control.show("t")


@pytest.mark.on("memory", "tmux")
def test_several_can_be_killed_at_once(control: Control) -> None:
    for name in ("a", "b", "c"):
        control.new(name, LINES)
    assert {end.session for end in control.kill(("a", "b")).killed} == {"a", "b"}
    assert [end.session for end in control.kill(all=True).killed] == ["c"]
    assert control.kill(all=True).killed == ()


@pytest.mark.night
@pytest.mark.on("memory", "tmux", "pipe", "resident")
def test_one_that_goes_meanwhile_costs_no_other_anything(control: Control) -> None:
    """Neither its screen nor its end; and what has its name by now is another session, which stays."""
    for name in ("a", "b", "c", "d"):
        control.new(name, LINES)
        control.send(name, f"I am {name}".encode())
        assert control.wait(name, text=f"^I am {name}$").matched
    panes = server.list_panes(control.machine.io)
    control.kill(("a", "c"))
    again = control.new("c", LINES)
    drawn = captures.capture_sessions(control.machine.transport, panes)
    assert [one.pane.name for one in drawn] == ["a", "b", "c", "d"]
    assert [f"I am {one.pane.name}".encode() in one.rows for one in drawn] == [False, True, False, True]
    ending._kill_sessions(control.machine, panes)
    assert [pane.id for pane in server.list_panes(control.machine.io)] == [again.id]


@pytest.mark.on("memory", "tmux")
def test_nothing_is_killed_if_one_name_is_wrong(control: Control) -> None:
    control.new("a", LINES)
    with pytest.raises(NotFound):
        control.kill(("a", "nobody"))
    assert control.show("a").state.value == "idle"


@pytest.mark.on("memory")
def test_what_to_kill_has_to_be_said(control: Control) -> None:
    control.new("a", LINES)
    for names, everything in ((), False), (("a",), True):
        with pytest.raises(Usage):
            control.kill(names, all=everything)
    with pytest.raises(Usage) as refused:
        control.kill(("a",), signal="NOSUCH")
    assert refused.value.reason == "bad_signal"
    assert control.show("a").state.value == "idle"


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_programs_that_ignore_polite_signals_end_too(control: Control, place: Path) -> None:
    control.new("t", program("stubborn"))
    assert control.wait("t", text=r"stubborn \d+", since="screen").matched
    made = control.show("t")
    (end,) = control.kill(("t",), grace=0.1).killed
    assert end.processes == 3
    assert end.escaped == ()
    assert not lives(made.pid or 0)
    assert not control.machine.transport.marked(made.id)


@pytest.mark.on("tmux")
def test_what_a_shell_left_in_the_background_ends_too(control: Control, until: Callable[[Any], Any]) -> None:
    made = control.new(
        "t", ("sh", "-c", "setsid sleep 1000 & nohup sleep 1001 >/dev/null 2>&1 & (sleep 1002 &) ; echo up; cat")
    )
    assert control.wait("t", text="up", since="screen").matched
    until(lambda: len([row for row in control.machine.transport.marked(made.id) if row.name == "sleep"]) == 3)
    pids = [row.pid for row in control.machine.transport.marked(made.id)]
    assert control.kill(("t",), grace=0.5).killed[0].escaped == ()
    assert not [pid for pid in pids if lives(pid)]


@pytest.mark.on("tmux")
def test_the_last_output_of_a_program_is_kept_where_its_journal_is_late(
    control: Control, place: Path, until: Callable[[Any], Any]
) -> None:
    """tmux has given it all to the journal's writer, which gets no time for a moment: the session ends no sooner than it has it."""
    printed = 1 << 12
    folder = (
        place / "state/tmuxctl/t/sessions" / str(control.new("t", ("sh", "-c", f"read x; yes | head -c {printed}")).id)
    )
    written = until(lambda: (path := folder / "journal.pid").exists() and path.read_text().strip())
    writer = find_tree(control.machine.transport.processes(), int(written))
    for row in writer:
        os.kill(row.pid, signal.SIGSTOP)
    control.keys("t", ("Enter",))
    until(lambda: control.show("t").state.value == "exited")
    killing = threading.Thread(target=control.kill, args=(("t",),))
    killing.start()
    until((folder / "ended.json").exists)
    for row in writer:
        os.kill(row.pid, signal.SIGCONT)
    killing.join()
    assert control.log("t", raw=True).data.count(b"y") == printed // 2


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_journal_that_never_ends_holds_up_no_kill(control: Control, place: Path, until: Callable[[Any], Any]) -> None:
    folder = place / "state/tmuxctl/t/sessions" / str(control.new("t", ("sh", "-c", "read x")).id)
    written = until(lambda: (path := folder / "journal.pid").exists() and path.read_text().strip())
    writer = find_tree(control.machine.transport.processes(), int(written))
    for row in writer:
        os.kill(row.pid, signal.SIGSTOP)
    control.keys("t", ("Enter",))
    until(lambda: control.show("t").state.value == "exited")
    killing = threading.Thread(target=control.kill, args=(("t",),), daemon=True)
    with (folder / "journal/seg.000000000000000").open("ab", buffering=0) as segment:
        killing.start()
        until(lambda: segment.write(b"x") and not killing.is_alive())
    for row in writer:
        os.kill(row.pid, signal.SIGKILL)


@pytest.mark.on("tmux")
def test_children_of_an_ended_program_end_with_its_session(control: Control, until: Callable[[Any], Any]) -> None:
    made = control.new("t", ("sh", "-c", "setsid sh -c '>up; sleep 1000' & until [ -e up ]; do sleep 0.02; done"))
    assert control.wait("t", exit=True).matched
    assert control.machine.transport.marked(made.id)
    control.kill(("t",), grace=0.5)
    assert not control.machine.transport.marked(made.id)


@pytest.mark.on("memory", "tmux")
def test_an_interactive_shell_is_not_waited_for_in_vain(control: Control) -> None:
    control.new("t", SHELL)
    assert control.wait("t", settle=0.2).matched
    (end,) = control.kill(("t",), signal="HUP").killed
    assert end.signal == "HUP"


def test_prune_removes_what_has_ended_and_nothing_else(control: Control) -> None:
    control.new("living", LINES)
    control.new("ended", ("sh", "-c", "exit 0"))
    control.new("killed", LINES)
    assert control.wait("ended", exit=True).matched
    control.kill(("killed",))
    assert control.prune(dry_run=True).pruned == ("ended",)
    assert control.show("ended").state.value == "exited"
    assert control.prune().pruned == ("ended",)
    assert [one.name for one in control.ls().sessions] == ["living"]
    for name in ("ended", "killed"):
        with pytest.raises(NotFound):
            control.log(name)
    assert control.prune().pruned == ()
    control.send("living", b"alive")
    assert control.wait("living", text="alive").matched


@pytest.mark.on("memory", "tmux")
def test_a_name_is_free_again_after_a_kill(control: Control) -> None:
    first = control.new("t", LINES)
    control.kill(("t",))
    assert control.new("t", LINES).id != first.id


@pytest.mark.on("tmux")
def test_another_process_with_the_same_pid_is_not_signalled(control: Control) -> None:
    control.new("t", LINES)
    me = next(row for row in control.machine.transport.processes([os.getpid()]))
    control.machine.transport.signal([me._replace(started=me.started - 1)], "KILL")
    assert re.match("cat", control.show("t").argv[0])


@pytest.mark.on("resident")
def test_a_resident_process_whose_control_client_is_gone_can_end_sessions_and_type(control: Control) -> None:
    control.new("t", LINES)
    control.new("u", LINES)
    control.send("t", b"before")
    control.machine.transport.close()
    control.send("t", b"after")
    assert control.wait("t", text="after").matched == "text"
    control.machine.transport.close()
    control.machine.transport.run([("kill-session", "-t", "=u")], timeout=5)
    assert [(one.name, one.state.value == "exited") for one in control.ls().sessions] == [("t", False), ("u", True)]


@pytest.mark.on("tmux")
def test_what_was_killed_can_be_listed_until_it_is_pruned(control: Control) -> None:
    made = control.new("t", LINES)
    control.new("living", LINES)
    control.kill(("t",))
    assert [one.name for one in control.ls().sessions] == ["living"]
    (ended,) = [one for one in control.ls(ended=True).sessions if one.name == "t"]
    assert (ended.id, ended.state.value, ended.signal, ended.argv, ended.left) == (made.id, "exited", "TERM", LINES, ())
    control.prune()
    assert [one.name for one in control.ls(ended=True).sessions] == ["living"]


@pytest.mark.night
@pytest.mark.on("tmux")
def test_what_a_plugin_keeps_is_told_until_it_is_gone_or_forced(control: Control, place: Path) -> None:
    plugins = place / ".config" / "tmuxctl" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "holder.py").write_text(
        '"""Keeps a folder while it holds anything."""\n'
        "import os, shutil\n\n"
        'KIND = "cwd"\n\n\n'
        "def transform(spec, *, folder: str):\n    os.makedirs(folder, exist_ok=True)\n    return spec\n\n\n"
        "def cleanup(spec, ended):\n"
        f"    folder = {str(place / 'held')!r}\n"
        "    if os.path.isdir(folder) and os.listdir(folder) and not ended.force:\n"
        "        return f'{folder} is not empty'\n"
        "    shutil.rmtree(folder, ignore_errors=True)\n"
    )
    held = place / "held"
    for work in ("pruned", "forced", "emptied"):
        control.new("t", LINES, with_=(f"holder={held}",))
        (held / "work").write_text("x")
        assert control.kill(("t",)).killed[0].left == (f"{held} is not empty",)
        assert [one.left for one in control.ls(ended=True).sessions] == [(f"{held} is not empty",)]
        if work == "pruned":
            assert control.prune().left == (f"{held} is not empty",)
            assert held.exists()
        if work == "emptied":
            (held / "work").unlink()
        assert control.prune(force=work != "emptied").left == ()
        assert not held.exists()
        assert not control.ls(ended=True).sessions


@pytest.mark.on("tmux")
def test_what_was_half_written_goes_with_prune(control: Control, place: Path) -> None:
    made = control.new("t", LINES)
    home = Path(control.machine.transport.home)
    long_ago = (1, 1)
    for name in ("server.1.1.new", f"sessions/{made.id}/spec.json.1.1.new", "sessions/never/launch.sh"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("half")
        os.utime(home / name, long_ago)
    os.utime(home / "sessions" / "never", long_ago)
    assert [one.name for one in control.ls().sessions] == ["t"]
    control.prune()
    assert not (home / "server.1.1.new").exists()
    assert not (home / "sessions" / "never").exists()
    assert not list((home / "sessions" / made.id).glob("*.new"))
    assert control.show("t").state.value != "exited"


@pytest.mark.on("tmux")
def test_a_lock_whose_holder_was_killed_goes_with_prune(control: Control, until: Any) -> None:
    control.new("t", LINES)
    home = Path(control.machine.transport.home)
    with subprocess.Popen(("sleep", "60")) as holder:
        begun = Path(f"/proc/{holder.pid}/stat").read_text().rpartition(") ")[2].split()[19]
        lock, candidates = home / layout.RESTORE_LOCK, home / layout.TURNS_LOCK
        for one in (lock, candidates):
            one.symlink_to(f"{holder.pid}:{begun}")
        control.prune()
        assert lock.is_symlink()
        assert candidates.is_symlink()
        holder.kill()
    control.prune()
    assert not lock.is_symlink()
    assert not candidates.is_symlink()


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_that_ends_in_an_orderly_way_is_given_the_time(control: Control, place: Path, until: Any) -> None:
    """A hang-up, which it does not expect, would cut it off."""
    line = "trap 'sleep 0.5; echo saved >saved; exit 0' TERM; : >ready; while :; do sleep 0.05; done"
    control.new("t", ("sh", "-c", line), wait=False)
    until(lambda: (place / "ready").exists())
    (end,) = control.kill(("t",), grace=20).killed
    assert (place / "saved").exists()
    assert (end.exit_status, end.escaped) == (0, ())


@pytest.mark.on("tmux")
def test_a_shell_that_ignores_polite_signals_is_hung_up_at_once(control: Control) -> None:
    control.new("t", ("bash", "--norc"))
    (end,) = control.kill(("t",), grace=1000).killed
    assert end.signal == "HUP"
