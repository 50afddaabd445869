"""What may go wrong around panes of a person's own tmux, and what is true all the same."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from control.person import Person

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Failed, NotFound, TmuxctlError


def pane_of(person: Person, window: str) -> str:
    return person.tmux("display-message", "-p", "-t", window, "#{pane_id}").strip()


@pytest.fixture
def attached(person: Person, until):
    """The name of a session, on a server of its own, in which a person is at their tmux."""
    there = Person(person.place)
    there.socket = "outer"
    inside = f"env -u TMUX tmux -L {person.socket} attach -t work"
    there.tmux("-f", "/dev/null", "new-session", "-d", "-s", "outer", "-x", "110", "-y", "40", inside)
    until(lambda: person.tmux("list-clients"))
    yield there
    subprocess.run(["tmux", "-L", there.socket, "kill-server"], capture_output=True, check=False)


@pytest.mark.on("tmux")
def test_keys_are_not_pressed_where_they_would_reach_other_panes(control: Control, person: Person, until):
    person.tmux("split-window", "-d", "-t", "work:1", "cat")
    person.tmux("set-option", "-w", "-t", "work:1", "synchronize-panes", "on")
    with pytest.raises(Conflict) as caught:
        control.keys(person.target("work:1.0"), ("x",))
    assert caught.value.reason == "shared"
    control.send(person.target("work:1.0"), b"echo here")
    until(lambda: "\nhere" in control.screen(person.target("work:1.0")).text)
    assert control.screen(person.target("work:1.1")).text == ""
    person.tmux("set-option", "-w", "-t", "work:1", "synchronize-panes", "off")
    assert control.keys(person.target("work:1.0"), ("x",)).result == "done"


@pytest.mark.on("tmux")
def test_a_person_who_types_into_all_panes_at_once_is_not_interrupted(
    control: Control, person: Person, attached: Person, until
):
    person.tmux("split-window", "-d", "-t", "work:1", "cat")
    person.tmux("set-option", "-w", "-t", "work:1", "synchronize-panes", "on")
    attached.tmux("send-keys", "-t", "outer", "half")
    until(lambda: "half" in control.screen(person.target("work:1.1")).text)
    with pytest.raises(Conflict) as caught:
        control.send(person.target("work:1.1"), b"between")
    assert caught.value.reason == "human"


@pytest.mark.on("tmux")
def test_a_pane_that_cannot_be_adopted_leaves_its_name_free(control: Control, person: Person, until):
    person.tmux("new-window", "-d", "-t", "work:2", "cat")
    person.tmux("set-option", "-w", "-t", "work:2", "remain-on-exit", "on")
    person.tmux("send-keys", "-t", "work:2", "C-d")
    until(lambda: person.tmux("display-message", "-p", "-t", "work:2", "#{pane_dead}").strip() == "1")
    with pytest.raises(TmuxctlError):
        control.adopt(person.target("work:2"), "mine")
    with pytest.raises(NotFound):
        control.release(("mine",))
    assert control.new("mine", ("cat",)).name == "mine"


@pytest.mark.on("tmux")
def test_adopting_that_was_broken_off_is_undone_by_release(control: Control, person: Person, place: Path):
    control.adopt(person.target("work"), "mine")
    # as a process leaves it that is killed before the last file
    next(place.glob("state/**/adopted.json")).unlink()
    control.release(("mine",))
    assert person.tmux("display-message", "-p", "-t", "work", "#{pane_pipe}").strip() == "0"
    assert control.adopt(person.target("work"), "mine").cursor is not None


@pytest.mark.night
@pytest.mark.on("tmux")
def test_options_of_our_names_on_their_server_mean_nothing(control: Control, person: Person):
    for strange in ("a\tb", "a\nb", "junk"):
        person.tmux("set-option", "-g", "@tmuxctl_id", strange)
        person.tmux("set-option", "-g", "@tmuxctl_lease", strange)
        assert control.ask(person.target("work"), b"echo $((40+2))").answer == "42"


@pytest.mark.on("tmux")
def test_a_session_of_a_tmuxctl_is_not_written_to_as_a_pane_of_somebody_else(control: Control, place: Path, until):
    control.new("own", ("cat",))
    folder = place / f"tmux-{os.getuid()}"
    (folder / "alias").symlink_to(control.machine.transport.socket)
    for target in (f"tmux@{control.machine.transport.socket}:own", "tmux@alias:own"):
        with pytest.raises(Conflict) as caught:
            control.send(target, b"past the lease")
        assert caught.value.reason == "ours"
        with pytest.raises(Conflict):
            control.adopt(target, "again")
    control.send("own", b"by its name")
    until(lambda: control.screen("own").text.count("by its name") == 2)


@pytest.mark.on("tmux")
def test_an_adopted_pane_is_one_session_by_its_target_too(control: Control, person: Person):
    control.adopt(person.target("work"), "mine")
    by_target = control.show(person.target("work:1.0"))
    assert (by_target.name, by_target.cursor is not None) == ("mine", True)
    first = control.send("mine", b"true")
    assert control.send(person.target("work"), b"true", id=first.id).result == "dup"


@pytest.mark.on("tmux")
def test_an_adopted_pane_is_told_by_what_stays_when_it_is_moved(control: Control, person: Person):
    person.tmux("split-window", "-d", "-t", "work:1", "cat")
    control.adopt(person.target("work:1.1"), "mine")
    person.tmux("break-pane", "-d", "-s", "work:1.1", "-t", "work:5")
    person.tmux("rename-session", "-t", "work", "other")
    assert control.send("mine", b"there").result == "done"
    told = control.show("mine").target
    assert told == person.target(pane_of(person, "other:5"))
    assert control.show(told).name == "mine"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_writer_that_is_stopped_does_not_keep_others_waiting_for_ever(control: Control, person: Person, place: Path):
    person.tmux("new-window", "-d", "-t", "work:2", "cat")
    control.send(person.target("work:2"), b"one")
    with open(next(place.glob("state/**/foreign/**/lock")), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Conflict) as caught:
            control.send(person.target("work:2"), b"two")
    assert (caught.value.reason, f"process {os.getpid()}" in caught.value.message) == ("leased", True)
    assert control.send(person.target("work:2"), b"three").result == "done"
    assert "two" not in control.screen(person.target("work:2")).text


@pytest.mark.on("tmux")
def test_what_a_killed_writer_may_have_typed_is_not_typed_again(
    control: Control, person: Person, place: Path, until, monkeypatch: pytest.MonkeyPatch
):
    person.tmux("new-window", "-d", "-t", "work:2", "cat")
    # a tmux that types, and whose caller is killed before it hears of that
    tmux = place / "tmux"
    tmux.write_text(f'#!/bin/sh\n{shutil.which("tmux")} "$@"\ncase "$*" in *paste-buffer*) kill -9 $PPID; esac\n')
    tmux.chmod(0o700)
    words = ("send", person.target("work:2"), "once", "--id", "0123456789abcdef")
    environment = os.environ | {"PATH": f"{place}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "tmuxctl", *words]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=30)
    assert done.returncode == -signal.SIGKILL
    until(lambda: "once" in control.screen(person.target("work:2")).text)
    assert control.send(person.target("work:2"), b"once", id="0123456789abcdef").result == "dup"
    assert control.send(person.target("work:2"), b"next").result == "done"


@pytest.mark.on("tmux")
def test_a_refused_write_can_be_made_again_with_its_id(control: Control, person: Person):
    person.tmux("select-pane", "-d", "-t", "work:1")
    with pytest.raises(Conflict):
        control.send(person.target("work"), b"true", id="0123456789abcdef")
    person.tmux("select-pane", "-e", "-t", "work:1")
    assert control.send(person.target("work"), b"true", id="0123456789abcdef").result == "done"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_server_that_hangs_keeps_nobody_from_seeing_the_rest(control: Control, person: Person):
    control.new("own", ("cat",))
    control.adopt(person.target("work"), "mine")
    server = int(person.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        listed = {one.name: (one.state.value, one.detail) for one in control.ls().sessions}
    finally:
        os.kill(server, signal.SIGCONT)
    assert listed["own"][0] == "idle"
    assert listed["mine"] == ("unknown", "backend_timeout")


@pytest.mark.night
@pytest.mark.on("tmux")
def test_an_answer_is_whole_in_a_scrollback_that_is_full(control: Control, person: Person):
    person.tmux("set-option", "-g", "history-limit", "200")
    person.tmux("new-window", "-d", "-t", "work:2", "bash --norc")
    shell = person.target("work:2")
    control.ask(shell, b"seq 300")
    for number in range(6):
        asked = control.ask(shell, f"seq {number}00 {number}12".encode())
        assert asked.answer == "\n".join(map(str, range(number * 100, number * 100 + 13)))
        assert (asked.complete, asked.truncated) == (True, False)
    control.send(shell, b"echo by $((40+2)); sleep 0.2; echo and $((40+3))")
    assert control.wait(shell, text="and 43").matched == "text"
    too_long = control.ask(shell, b"seq 500")
    assert (too_long.complete, too_long.truncated) == (False, True)


@pytest.mark.on("tmux")
def test_a_wait_for_output_ends_when_the_journal_is_taken_away(control: Control, person: Person, until):
    control.adopt(person.target("work"), "mine")
    cursor = control.show("mine").cursor
    code = "from tmuxctl.control import Control; Control().wait('mine', text='needle')"
    waiting = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    inotify = Path(f"/proc/{waiting.pid}/fd")
    until(lambda: any("inotify" in os.readlink(one) for one in inotify.iterdir() if one.is_symlink()))
    person.tmux("pipe-pane", "-t", "work", "cat >> theirs")
    assert "another program reads its output" in waiting.communicate(timeout=20)[1]
    assert control.show("mine").cursor is None
    with pytest.raises(Conflict) as caught:
        control.read("mine", since=cursor)
    assert caught.value.reason == "cursor_lost"
    control.release(("mine",))
    assert person.tmux("display-message", "-p", "-t", "work", "#{pane_pipe}").strip() == "1"


@pytest.mark.on("tmux")
def test_what_is_remembered_of_panes_that_are_gone_is_pruned(control: Control, person: Person, place: Path, until):
    person.tmux("new-window", "-d", "-t", "work:2", "cat")
    control.send(person.target("work:2"), b"one")
    control.send(person.target("work:1"), b"true")
    assert len(list(place.glob("state/**/options.json"))) == 2
    person.tmux("kill-window", "-t", "work:2")
    control.prune()
    assert len(list(place.glob("state/**/options.json"))) == 1


@pytest.mark.on("tmux")
def test_a_pane_adopted_by_many_at_once_has_one_name(control: Control, person: Person):
    code = "import sys; from tmuxctl.control import Control; Control().adopt(sys.argv[1], sys.argv[2])"
    names = [f"name{number}" for number in range(4)]
    words = [[sys.executable, "-c", code, person.target("work"), name] for name in names]
    started = [subprocess.Popen(one, stderr=subprocess.DEVNULL) for one in words]
    assert sorted(one.wait(timeout=30) for one in started) == [0, 1, 1, 1]
    (only,) = control.ls().sessions
    assert control.show(only.name).cursor is not None


@pytest.mark.on("tmux")
def test_what_was_released_meanwhile_does_not_take_its_name(control: Control, person: Person, place: Path):
    control.adopt(person.target("work"), "mine")
    still, called = control.reach("mine")
    control.release(("mine",))
    with pytest.raises(Failed) as error:
        still.send(called, b"true")
    assert error.value.reason == "folder_gone"
    assert control.new("mine", ("cat",)).name == "mine"
    control.prune()
    assert not list(place.glob("state/**/adopted/mine"))
