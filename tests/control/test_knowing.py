"""What a session is doing: told with its evidence, waited for, watched and explained."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from control.conftest import Held
from programs import SHELL, program

from tmuxctl.control import Control
from tmuxctl.errors import DecisionNeeded, Exited, NotFound, Unreachable, Usage
from tmuxctl.model import Confidence, State
from tmuxctl.operations import Caller, Cancelled
from tmuxctl.terminal.tmux import server
from tmuxctl.timing import TIMING, Timing, WaitTiming
from tmuxctl.value import changed


def test_a_shell_that_waits_is_idle(control: Control) -> None:
    found = control.new("s", SHELL)
    assert (found.state, found.kind) == (State.IDLE, "prompt")
    assert control.show("s").state is State.IDLE
    assert [one.state for one in control.ls().sessions] == [State.IDLE]
    assert control.screen("s").state is State.IDLE


@pytest.mark.night
def test_a_silent_command_is_busy_until_it_ends(control: Control, held: Held) -> None:
    control.new("s", SHELL)
    control.send("s", held.words.encode())
    assert control.wait("s", text="never", timeout=0.5).timed_out
    assert control.show("s").state is State.BUSY
    held.go()
    found = control.wait("s")
    assert (found.matched, found.state) == ("idle", State.IDLE)


@pytest.mark.night
def test_idle_counts_only_when_what_was_typed_was_taken(control: Control, another: Callable[[], Control]) -> None:
    control.new("s", SHELL)
    for _ in range(5):
        control.send("s", b"sleep 0.2; echo over")
        assert another().wait("s").matched == "idle"
        assert another().wait("s", text="^over$", now=True).matched, "it was still the prompt before the command"


def test_what_is_idle_already_returns_at_once(control: Control) -> None:
    control.new("s", SHELL)
    assert control.wait("s", now=True).matched == "idle"
    control.send("s", b"sleep 1000")
    assert control.wait("s", now=True).matched is None


def test_a_password_question_is_asking(control: Control) -> None:
    control.new("s", program("secret"))
    found = control.wait("s", asking=True)
    assert (found.matched, found.kind) == ("asking", "password")
    with pytest.raises(DecisionNeeded) as error:
        control.wait("s")
    assert "tmuxctl decide s" in error.value.hint


@pytest.mark.night
def test_the_end_of_the_program_ends_a_wait_for_idle(control: Control) -> None:
    control.new("s", ("sh", "-c", "sleep 0.5; exit 3"))
    with pytest.raises(Exited) as error:
        control.wait("s")
    assert error.value.details["exit_status"] == 3


def test_a_new_session_says_that_it_ended(control: Control) -> None:
    assert control.new("s", ("sh", "-c", "exit 4")).exit_status == 4


def test_new_does_not_wait_if_told_so(control: Control) -> None:
    assert control.new("s", ("sh", "-c", "sleep 5"), wait=False).state is State.STARTING


@pytest.mark.night
def test_waits_for_one_of_several_sessions(control: Control) -> None:
    control.new("a", SHELL)
    control.new("b", SHELL)
    control.send("a", b"sleep 1000")
    control.send("b", b"sleep 0.3")
    found = control.wait(any=("a", "b"))
    assert found.ok
    assert [one.session for one in found.waits] == ["b"]


@pytest.mark.night
def test_waits_for_all_of_several_sessions(control: Control) -> None:
    for name, seconds in (("a", "0.4"), ("b", "0.1")):
        control.new(name, SHELL)
        control.send(name, f"sleep {seconds}".encode())
    found = control.wait(all=("a", "b"))
    assert found.ok
    assert [one.session for one in found.waits] == ["a", "b"]
    control.send("a", b"sleep 1000")
    assert not control.wait(all=("a", "b"), timeout=0.5).ok


@pytest.mark.parametrize("arguments", [{}, {"session": "a", "any": ("b",)}, {"any": ("a",), "all": ("b",)}])
def test_a_wait_names_its_sessions_in_one_way(control: Control, arguments: dict[str, Any]) -> None:
    with pytest.raises(Usage):
        control.wait(**arguments)


def test_a_missing_session_among_several_is_told(control: Control) -> None:
    control.new("a", SHELL)
    with pytest.raises(NotFound):
        control.wait(any=("a", "nosuch"))


def test_text_that_goes_is_waited_for(control: Control) -> None:
    control.new("s", SHELL)
    control.send("s", b"echo working")
    control.wait("s", text="working")
    control.send(
        "s", b"sleep 0.3; printf '\\033[2J\\033[H'" if control.machine.transport.socket != "memory" else b"sleep 0.3"
    )
    if control.machine.transport.socket == "memory":
        assert control.wait("s", gone="nosuchtext").matched == "gone"
        return
    assert control.wait("s", gone="^working").matched == "gone"


def test_a_change_is_waited_for(control: Control) -> None:
    control.new("s", SHELL)
    control.send(
        "s", b"sleep 3; echo x" if control.machine.transport.socket == "memory" else b"while sleep 0.3; do echo x; done"
    )
    control.wait("s", text="sleep", since="screen")
    found = control.wait("s", change=True)
    assert found.matched == "change"


@pytest.mark.night
def test_a_wait_for_idle_survives_a_new_size(control: Control, another: Callable[[], Control]) -> None:
    control.new("s", SHELL)
    control.send("s", b"sleep 0.6")
    resize = threading.Timer(0.2, lambda: another().resize("s", "70x20"))
    resize.start()
    assert control.wait("s").matched == "idle"
    resize.join()


def test_a_cancelled_wait_ends(control: Control) -> None:
    control.new("s", ("sh", "-c", "sleep 30"), wait=False)
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    with pytest.raises(Cancelled):
        control.call("wait", {"session": "s"}, cancelled=cancelled)


# real programs


@pytest.fixture
def python(control: Control) -> Control:
    control.new("p", ("python3", "-q"))
    return control


@pytest.mark.night
@pytest.mark.on("tmux", "resident")
def test_a_computation_is_busy_though_it_prints_nothing(python: Control, place: Path) -> None:
    python.send("p", b"import os\nwhile not os.path.exists('go'): pass\n", multiline=True)
    assert python.wait("p", text="never", timeout=0.6).timed_out
    seen = python.show("p")
    assert (seen.state, seen.by) == (State.BUSY, "kernel")
    (place / "go").touch()
    assert python.wait("p").matched == "idle"


@pytest.mark.night
@pytest.mark.on("resident")
def test_a_process_that_stays_writes_the_same_state_only_now_and_then(
    control: Control, another: Callable[..., Control], held: Held
) -> None:
    def writes_while_asked(seconds: float, do: Callable[[Control], object]) -> bool:
        observation = changed(TIMING.observation, written_seconds=seconds)
        resident = another(timing=changed(TIMING, observation=observation))
        (path,) = Path().glob("state/tmuxctl/*/sessions/*/last.json")
        resident.show("s")
        before = path.read_bytes()
        do(resident)
        return path.read_bytes() != before

    control.new("s", SHELL)
    assert not writes_while_asked(600, lambda resident: resident.show("s"))
    assert writes_while_asked(0, lambda resident: resident.show("s"))

    def work(resident: Control) -> None:
        resident.send("s", held.words.encode())
        assert resident.wait("s", text="never", timeout=0.5).timed_out
        assert resident.show("s").state is State.BUSY

    assert writes_while_asked(600, work)
    # a process that starts now finds the newest state that was written
    assert another().show("s").state is State.BUSY


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_prompt_in_the_output_is_not_believed(control: Control) -> None:
    control.new("s", SHELL)
    control.send("s", b"printf 'Proceed? [y/N] '; sleep 1; echo done")
    control.wait("s", text=r"N\] ")
    found = control.wait("s")
    assert found.matched == "idle"
    assert "done" in control.read("s").text


@pytest.mark.on("tmux")
def test_a_stopped_job_is_told(control: Control, until: Callable[[Callable[[], Any]], Any]) -> None:
    control.new("s", ("sh", "-c", "echo up; sleep 60; true"), wait=False)
    # before it is up, its launcher may have children
    assert control.wait("s", text="up", since="screen").matched
    pid = control.show("s").pid
    # tmux itself continues a pane's first process that stops
    children = Path(f"/proc/{pid}/task/{pid}/children")
    child = int(until(lambda: children.read_text().split())[0])
    os.kill(child, signal.SIGSTOP)
    seen = until(lambda: (found := control.show("s")).detail == "stopped" and found)
    assert seen.state is State.BUSY


@pytest.mark.on("tmux")
def test_the_death_of_the_server_ends_a_wait_for_idle(control: Control) -> None:
    control.new("s", ("sh", "-c", "sleep 60"), wait=False)
    server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    threading.Timer(0.3, lambda: os.kill(server, signal.SIGKILL)).start()
    with pytest.raises((Unreachable, Exited)):
        control.wait("s")


# watch


def events(stream: Iterator[Any], until: Callable[[Any], bool]) -> list[Any]:
    found = []
    for one in stream:
        found.append(one)
        if until(one):
            return found
    return found


@pytest.mark.night
def test_watch_tells_the_present_state_then_each_change(
    control: Control, another: Callable[[], Control], held: Held
) -> None:
    control.new("s", SHELL)
    stream = another().watch(("s",))
    first = next(stream)
    assert (first.session, first.state) == ("s", State.IDLE)
    control.send("s", held.words.encode())
    assert next(stream).state is State.BUSY
    held.go()
    assert next(stream).state is State.IDLE
    control.send("s", b"exit 3")
    last = events(stream, lambda one: one.state is State.EXITED)[-1]
    assert last.exit_status == 3
    assert list(stream) == []


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_watch_hears_of_new_sessions(control: Control, another: Callable[[], Control]) -> None:
    control.new("a", SHELL)
    stream = another().watch()
    assert next(stream).session == "a"
    threading.Timer(0.1, lambda: control.new("b", SHELL)).start()
    assert events(stream, lambda one: one.session == "b")[-1].session == "b"


def test_who_watches_all_sessions_from_one_of_them_is_not_told_of_that(
    control: Control, another: Callable[[], Control]
) -> None:
    own = control.new("a", SHELL)
    control.new("b", SHELL)
    stream = another().call("watch", {}, caller=Caller(session=own.id))
    assert next(stream).session == "b"
    control.send("a", b"echo seen")
    assert control.wait("a").matched
    control.send("b", b"exit")
    told = events(stream, lambda one: one.state is State.EXITED)
    assert {one.session for one in told} == {"b"}
    assert next(another().call("watch", {"session": ["a"]}, caller=Caller(session=own.id))).session == "a"


def test_watch_asks_for_all_facts_only_where_a_session_came(
    control: Control, another: Callable[[], Control], until: Callable[[Callable[[], object]], object]
) -> None:
    watching = another()
    machine, asked = watching.machine, [0, 0]
    machine.timing = Timing(wait=WaitTiming(sessions_seconds=0.01))
    list_values = machine.io.list_values

    def count(fields: Sequence[str]) -> list[list[str]]:
        asked[fields == server.FIELDS] += 1
        return list_values(fields)

    machine.io.list_values = count  # type: ignore[method-assign]
    control.new("a", SHELL)
    stream = watching.watch()
    assert next(stream).session == "a"
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(next(stream).session))
    thread.start()
    rounds, whole = asked
    until(lambda: asked[0] > rounds + 5)
    assert asked[1] == whole
    control.new("b", SHELL)
    thread.join(30)
    assert told == ["b"]
    assert asked[1] > whole


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_watch_tells_the_new_name_of_a_session_that_prints_nothing(
    control: Control, another: Callable[[], Control]
) -> None:
    made = control.new("a", SHELL)
    stream = another().watch()
    first = next(stream)
    assert first.session == "a"
    control.rename("a", "b")
    then = next(stream)
    assert (then.session, then.id, then.state) == ("b", made.id, first.state)


def test_watch_of_a_session_that_is_not_there_is_an_error(control: Control) -> None:
    with pytest.raises(NotFound):
        next(control.watch(("nosuch",)))


# explain


def test_explain_tells_each_piece_of_evidence(control: Control) -> None:
    control.new("s", SHELL)
    found = control.explain("s")
    assert found.state is State.IDLE
    assert {"kernel", "activity"} <= {one.source for one in found.reasons}
    assert any(one.used for one in found.reasons)


def test_recorded_evidence_is_judged_as_it_was(control: Control, place: Path) -> None:
    control.new("s", SHELL)
    live = control.explain("s", evidence=True)
    assert live.evidence
    path = place / "why.json"
    path.write_text("\n".join(json.dumps(one) for one in live.evidence))
    again = control.explain(file=str(path))
    assert (again.state, again.kind, again.why) == (live.state, live.kind, live.why)


@pytest.mark.on("memory")
def test_a_saved_screen_is_never_believed_more_than_it_can_tell(control: Control, place: Path) -> None:
    path = place / "screen.txt"
    path.write_text("$ ls\na  b\n$ ")
    found = control.explain(file=str(path))
    assert found.confidence is not Confidence.SURE
    path.write_text("Do you want to continue? [Y/n] ")
    found = control.explain(file=str(path))
    assert (found.state, found.kind) == (State.ASKING, "confirm")


@pytest.mark.on("memory")
def test_between_two_screens_stands_the_answer(control: Control, place: Path) -> None:
    (place / "before").write_text("$ ")
    (place / "after").write_text("$ echo hello; echo world\nhello\nworld\n$ ")
    assert control.explain(file=str(place / "after"), before=str(place / "before")).answer == "hello\nworld"


@pytest.mark.on("memory")
@pytest.mark.parametrize("arguments", [{}, {"file": "/nosuch"}, {"session": "s", "file": "x"}])
def test_explain_needs_a_session_or_a_file(control: Control, arguments: dict[str, Any]) -> None:
    with pytest.raises(Usage):
        control.explain(**arguments)


@pytest.mark.on("tmux")
def test_a_program_that_never_printed_is_silent_at_the_first_look(
    control: Control, until: Callable[[Callable[[], Any]], Any]
) -> None:
    program = psutil.Process(control.new("t", ("sleep", "1000"), wait=False).pid)
    until(lambda: (program.name(), program.status()) == ("sleep", "sleeping"))
    until(lambda: control.ls().sessions[0].state is not State.STARTING)
    assert [(one.state, one.detail) for one in control.ls().sessions] == [(State.BUSY, "silent")]
