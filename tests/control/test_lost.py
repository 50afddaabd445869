"""Lost sessions: when the tmux server dies, that is told, what was printed stays, and work goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SOCKET, crash_server
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.control.sessions import finding, records
from tmuxctl.errors import Exited, NotFound, Unreachable
from tmuxctl.terminal.launch.tmux_conf import CONFIG
from tmuxctl.transport.pipe import PipeTransport


@pytest.fixture
def crash(control: Control, backend: str) -> Callable[[], None]:
    """Kills the tmux server, as kill -9 does."""

    def kill() -> None:
        if backend == "memory":
            control.machine.transport.kill_server()  # type: ignore[attr-defined]
            return
        crash_server(control)

    return kill


@pytest.fixture
def lost(control: Control, crash: Callable[[], None]) -> Control:
    """A Control whose session `t` printed `last words` and was lost."""
    control.new("t", LINES)
    control.send("t", b"last words")
    assert control.wait("t", text="^last words$").matched
    crash()
    return control


@pytest.mark.on("memory", "tmux")
def test_a_lost_session_is_listed_as_lost(lost: Control) -> None:
    (session,) = lost.ls().sessions
    assert (session.name, session.state.value, session.argv) == ("t", "lost", LINES)
    assert lost.show("t").state.value == "lost"
    assert [one.name for one in lost.ls(state="lost").sessions] == ["t"]


def test_what_a_lost_session_printed_stays(lost: Control) -> None:
    assert lost.log("t").text.split("\n") == ["last words", "last words"]


def test_a_lost_session_cannot_be_used(lost: Control) -> None:
    for use in (
        lambda: lost.send("t", b"x"), lambda: lost.keys("t", ("x",)), lambda: lost.screen("t"),
        lambda: lost.wait("t", text="x"), lambda: lost.exec("t", ("true",)), lambda: lost.rename("t", "u"),
    ):  # fmt: skip
        with pytest.raises(Unreachable) as refused:
            use()
        assert refused.value.reason == "lost"
    with pytest.raises(NotFound):
        lost.show("nobody")


@pytest.mark.on("memory", "tmux")
def test_the_name_of_a_lost_session_can_be_used_again(lost: Control) -> None:
    before = lost.ls().sessions[0].id
    again = lost.new("t", LINES)
    assert again.id != before
    lost.send("t", b"new life")
    assert lost.wait("t", text="^new life$").matched
    assert "last words" not in lost.log("t").text


@pytest.mark.on("memory", "tmux")
def test_a_lost_session_can_be_pruned(lost: Control) -> None:
    assert lost.prune().pruned == ("t",)
    assert not lost.ls().sessions
    with pytest.raises(NotFound):
        lost.log("t")


def test_a_lost_session_can_be_killed(lost: Control) -> None:
    assert [end.session for end in lost.kill(("t",)).killed] == ["t"]
    assert not lost.ls().sessions
    assert lost.log("t").text.startswith("last words")


@pytest.mark.night
@pytest.mark.on("tmux")
def test_many_lost_sessions_are_killed_by_one_list(
    control: Control, crash: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"t{number}" for number in range(4))
    for name in names:
        control.new(name, LINES)
    crash()
    list_lost, lists = records.list_lost, [0]

    def count(*given: Any) -> Any:
        lists[0] += 1
        return list_lost(*given)

    monkeypatch.setattr(records, "list_lost", count)
    assert [end.session for end in control.kill(names).killed] == [*names]
    assert lists == [1]


@pytest.mark.on("tmux")
def test_processes_of_a_lost_session_do_not_outlive_its_kill(control: Control, crash: Callable[[], None]) -> None:
    made = control.new("t", ("sh", "-c", "trap '' HUP; echo up; while :; do sleep 1; done"))
    assert control.wait("t", text="up", since="screen").matched
    crash()
    control.kill(("t",), grace=0.2)
    assert not control.machine.transport.marked(made.id)


@pytest.fixture
def cut(place: Path) -> Iterator[tuple[Control, Callable[[str], object]]]:
    """A Control whose connection is lost, once, before tmux over there does what has the given word in it; and what gives it."""
    word, tmux = place / "word", place / "cut-tmux"
    tmux.write_text(
        f"#!/bin/sh\n"
        f'if [ -s {word} ]; then case "$*" in *"$(cat {word})"*) : >{word}; kill -9 0; esac; fi\n'
        f'exec tmux "$@"\n'
    )
    tmux.chmod(0o755)
    control = Control(PipeTransport(socket=SOCKET, config=CONFIG, tmux=str(tmux)))
    yield control, lambda text: word.write_text(text)
    control.kill(all=True)
    control.close()


def test_a_session_of_which_nothing_is_known_is_not_called_gone(cut: tuple[Control, Callable[[str], object]]) -> None:
    control, lose = cut
    control.new("t", LINES)
    for call, word in (
        (lambda: control.send("t", b"x"), "display-message"),
        (lambda: control.rename("t", "u"), "display-message"),
        (lambda: control.kill(("t",)), "kill-session"),
    ):
        lose(word)
        with pytest.raises(Unreachable) as caught:
            call()
        assert caught.value.reason == "connection_lost"
    # what was not ended is there to be ended
    assert [one.name for one in control.ls().sessions] == ["t"]
    assert [one.session for one in control.kill(("t",)).killed] == ["t"]


@pytest.mark.on("memory", "tmux")
def test_without_a_server_there_are_no_sessions(control: Control) -> None:
    assert control.ls().sessions == ()
    with pytest.raises(NotFound):
        control.show("t")
    assert control.kill(all=True).killed == ()
    assert control.prune().pruned == ()


@pytest.fixture
def dying(lost: Control) -> Iterator[Callable[[], None]]:
    """Records a process as the server that session `t` had: one that still is, but answers nobody, and is gone when it is
    looked at again."""
    process = subprocess.Popen(["sleep", "1000"])

    def record() -> None:
        home = lost.machine.transport.home
        lost.machine.transport.record_server(process.pid)
        gone = next(
            one
            for one in lost.machine.transport.files(f"{home}/sessions")
            if records.read_spec(lost.machine, one)["spec"]["name"] == "t"
        )
        lost.machine.transport.put(f"{home}/sessions/{gone}/server", lost.machine.transport.read(f"{home}/server"))
        assert records.server_pid(lost.machine) == process.pid

    yield record
    process.kill()
    process.wait()


@pytest.mark.on("tmux", "resident", "pipe")
def test_a_server_that_was_killed_and_is_still_a_process_ended_no_session(
    lost: Control, dying: Callable[[], None]
) -> None:
    dying()
    assert [one.state.value for one in records.list_lost(lost.machine, [])] == ["lost"]
    assert [one.state.value for one in lost.ls().sessions] == ["lost"]


@pytest.mark.on("tmux", "resident", "pipe")
def test_a_server_that_answers_in_place_of_one_that_is_still_a_process_ended_no_session_of_it(
    lost: Control, dying: Callable[[], None]
) -> None:
    lost.new("u", LINES)
    dying()
    assert [
        (one.name, one.state.value) for one in records.list_lost(lost.machine, finding.list_panes(lost.machine))
    ] == [("t", "lost")]


@pytest.mark.on("tmux", "pipe")
def test_a_session_that_somebody_ended_with_tmux_itself_is_not_called_lost(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"last words")
    control.wait("t", text="last words")
    control.machine.transport.run([("kill-session", "-t", "=t")])
    assert [(one.state.value, one.exit_status) for one in control.ls().sessions] == [("exited", None)]
    with pytest.raises(Exited) as ended:
        control.send("t", b"more")
    assert ended.value.reason == "ended_elsewhere"
    assert "last words" in control.log("t").text
    assert control.prune().pruned == ("t",)
    assert control.new("t", LINES).name == "t"


@pytest.mark.on("tmux")
def test_a_new_session_takes_the_place_of_a_lost_one_of_its_name(lost: Control) -> None:
    before = lost.ls().sessions[0]
    made = lost.new(before.name, LINES)
    assert [(one.name, one.id) for one in lost.ls().sessions if one.name == before.name] == [(made.name, made.id)]
    assert "last words" in lost.log(before.id).text


@pytest.mark.on("tmux")
def test_a_renamed_session_is_lost_under_its_new_name(control: Control):
    control.new("first", ("cat",))
    control.rename("first", "second")
    control.machine.transport.run([("kill-session", "-t", "=second")])
    assert [one.name for one in control.ls().sessions] == ["second"]
