"""The plugin `timeout`: a session ends when its time is over or when it does nothing, with all it started, and says why."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import SOCKET
from programs import LINES

from tmuxctl import plugin
from tmuxctl.control import Control
from tmuxctl.errors import Failed
from tmuxctl.model import SessionSpec

SILENT = ("sleep", "1000")
SPEC = SessionSpec(("make",), "/src", notes={"mine": 1})
Until = Callable[[Callable[[], Any]], Any]

ESCAPES = r"""
stay='trap "" TERM HUP; echo $$ >>pids; sleep 1001; sleep 1001'
trap '' TERM HUP INT
setsid sh -c "$stay" &
(setsid sh -c "sh -c '$stay' &" &)
sh -c 'echo $$ >>pids; kill -STOP $$; sleep 1002' &
env -i PATH="$PATH" sh -c "$stay" &
(env -i PATH="$PATH" sh -c "$stay" &)
echo $$ >>pids
while :; do sleep 1003; done
"""
"""A program that ignores polite signals. It has one process that left its session, one that left its tree too, one that is
stopped, and two without the session's marker, one of them not in the tree."""


def notes(*options: dict[str, str]) -> dict[str, Any]:
    spec, _ = plugin.apply(SPEC, [("timeout", one) for one in options])
    assert spec.argv == SPEC.argv
    return dict(spec.notes)


def pane(control: Control, session: str, wanted: str) -> str:
    """What tmux says of a session."""
    return control.machine.transport.run([("display-message", "-p", "-t", f"={session}:", wanted)]).decode().strip()


def living(control: Control, pids: list[int]) -> list[int]:
    return [row.pid for row in control.machine.transport.processes(pids) if row.state not in ("Z", "X")]


# what is asked for


def test_of_several_limits_the_shortest_counts_and_of_several_graces_the_longest() -> None:
    assert notes({"seconds": "2h"}) == {"mine": 1, "lifetime": 7200.0}
    assert notes({"idle": "90"}) == {"mine": 1, "idle": 90.0}
    both = {"seconds": "1h", "idle": "10m", "grace": "0"}
    assert notes(both) == {"mine": 1, "lifetime": 3600.0, "idle": 600.0, "grace": 0.0}
    assert notes(both, {"seconds": "30m", "idle": "1h", "grace": "500ms"}) == {
        "mine": 1,
        "lifetime": 1800.0,
        "idle": 600.0,
        "grace": 0.5,
    }


@pytest.mark.parametrize(
    "options",
    [{"seconds": "none"}, {"idle": "0"}, {"idle": "soon"}, {"idle": "366d"},
     {"seconds": "1h", "grace": "none"}, {"seconds": "1h", "grace": "366d"}],
)  # fmt: skip
def test_what_is_no_duration_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(Failed) as error:
        notes(options)
    assert error.value.details["cause"] == "bad_duration"


@pytest.mark.parametrize("options", [{}, {"grace": "5s"}])
def test_no_limit_at_all_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(Failed) as error:
        notes(options)
    assert error.value.details["cause"] == "bad_option"


# a lifetime


@pytest.mark.on("memory", "tmux", "pipe")
def test_a_session_says_that_its_lifetime_was_over(control: Control) -> None:
    control.new("t", LINES, with_=("timeout=1s",))
    control.new("other", ("sh", "-c", "exit 0"))
    ended = control.wait("t", exit=True)
    assert (ended.signal, ended.detail) == ("TERM", "lifetime")
    assert control.wait("other", exit=True).detail is None
    assert {one.name: one.detail for one in control.ls().sessions} == {"t": "lifetime", "other": None}
    assert control.show("t").detail == "lifetime"


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("then", ["", "kill -STOP $$; "], ids=["running", "stopped"])
def test_a_program_may_end_in_its_own_way_and_its_words_stay(control: Control, then: str) -> None:
    # it stays when what it waits for is told first (a shell says so on its standard error), and a moment after its words:
    # tmux 3.3a may drop the last of them
    ending = "sleep 0.3; echo bye; sleep 0.3; exit 3"
    words = f"""exec 2>/dev/null; trap "{ending}" TERM; echo up; {then}while :; do sleep 0.1 & wait $!; done"""
    # below another: tmux itself wakes a pane's first process
    script = f"trap : TERM; sh -c '{words}'; exit $?"
    control.new("t", ("sh", "-c", script), lifetime="3s", wait=False)
    ended = control.wait("t", exit=True)
    assert (ended.exit_status, ended.signal) == (3, None)
    assert control.screen("t").text.split() == ["up", "bye"]
    assert control.log("t").text.split() == ["up", "bye"]
    assert pane(control, "t", "#{pane_in_mode}") == "0"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_an_interactive_shell_ends_as_when_its_terminal_closes(control: Control, needs: Callable[..., None]) -> None:
    needs("bash")
    control.new("t", ("bash", "--norc"), lifetime="2s")
    assert control.wait("t", exit=True).signal == "HUP"


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
@pytest.mark.parametrize("grouped", [True, False], ids=["in its control group", "without one"])
def test_the_whole_tree_ends_whatever_it_did_to_get_away(
    control: Control, place: Path, until: Until, grouped: bool
) -> None:
    made = control.new("t", ("sh", "-c", ESCAPES), with_=("timeout:seconds=4s,grace=100ms",), wait=False)
    if not grouped:
        group_file(place, made.id).unlink(missing_ok=True)
    pids = until(lambda: written(place, 6))
    assert len(living(control, pids)) == 6
    assert control.wait("t", exit=True).signal == "KILL"
    until(lambda: not living(control, pids))


@pytest.mark.night
@pytest.mark.on("tmux")
def test_what_stays_when_the_program_itself_has_gone_ends_too(control: Control, place: Path, until: Until) -> None:
    script = """env -i setsid sh -c 'trap "" TERM HUP; echo $$ >>pids; sleep 1001; sleep 1001' & wait"""
    made = control.new("t", ("sh", "-c", script), with_=("timeout:seconds=3s,grace=500ms",), wait=False)
    group_file(place, made.id).unlink(missing_ok=True)
    pids = until(lambda: written(place, 1))
    assert control.wait("t", exit=True).signal == "TERM"
    until(lambda: not living(control, pids))


def group_file(place: Path, session_id: str) -> Path:
    """Names the session's control group, where it has one."""
    return place / f"state/tmuxctl/t/sessions/{session_id}/cgroup"


def written(place: Path, count: int) -> list[int] | None:
    """The pids that a program wrote down, once there are so many."""
    pids = (place / "pids").read_text().split() if (place / "pids").exists() else []
    return [int(pid) for pid in pids] if len(pids) == count else None


@pytest.mark.night
@pytest.mark.on("tmux")
def test_what_left_everything_behind_ends_where_there_are_control_groups(
    control: Control, place: Path, until: Until
) -> None:
    script = "(env -i setsid sh -c 'echo $$ >>pids; sleep 1000' &); cat"
    made = control.new("t", ("sh", "-c", script), lifetime="3s", wait=False)
    pids = until(lambda: written(place, 1))
    if not group_file(place, made.id).exists():
        pytest.skip("no control group can be made here")
    assert living(control, pids)
    assert control.wait("t", exit=True).matched
    until(lambda: not living(control, pids))


@pytest.mark.on("tmux")
def test_no_process_waits_for_the_time_to_be_over(control: Control) -> None:
    control.new("t", LINES, with_=("timeout:seconds=1h,idle=1h",))
    server = int(pane(control, "t", "#{pid}"))
    started = [row for row in control.machine.transport.processes() if row.parent == server]
    assert sorted(words(row.pid) for row in started) == ["cat", "sh journal.sh"]


def words(pid: int) -> str:
    """A process's command without folders."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return " ".join(word.rpartition("/")[2] for word in command if word)


# nobody else's time


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_timer_ends_no_other_session_and_no_later_life(control: Control) -> None:
    control.new("killed", LINES, lifetime="4s")
    marked = control.new("respawned", LINES, lifetime="4s").id
    control.kill(("killed",))
    control.new("killed", LINES)
    control.new("renamed", LINES, lifetime="4s")
    control.rename("renamed", "another")
    control.new("renamed", LINES)
    control.machine.transport.run(
        [("respawn-pane", "-k", "-t", "=respawned:", f"exec env TMUXCTL_SESSION={marked} cat")]
    )
    control.new("last", LINES, lifetime="5s")
    assert control.wait("last", exit=True).matched
    assert control.wait("another", exit=True).matched
    dead = {name: pane(control, name, "#{pane_dead}") for name in ("killed", "respawned", "renamed")}
    assert dead == {"killed": "0", "respawned": "0", "renamed": "0"}


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_restored_session_has_its_whole_time_again(control: Control, place: Path) -> None:
    made = control.new("t", LINES, lifetime="2s")
    control.machine.transport.run([("kill-session", "-t", "=t")])
    path = place / f"state/tmuxctl/t/sessions/{made.id}/spec.json"
    kept = json.loads(path.read_text())
    assert kept["asked"]["applied"] == [{"name": "timeout", "options": {"seconds": "2"}}]
    kept["asked"]["applied"][0]["options"]["seconds"] = "1h"
    path.write_text(json.dumps(kept))
    assert control.restore(("t",)).ok
    control.new("last", LINES, lifetime="3s")
    assert control.wait("last", exit=True).matched
    assert (control.show("t").id, pane(control, "t", "#{pane_dead}")) == (made.id, "0")


@pytest.mark.night
@pytest.mark.on("tmux")
def test_it_works_from_a_folder_of_any_name(control: Control, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = place / "state #{pid} %H $HOME 'q' \"d\" #(touch planted)"
    odd.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(odd))
    control.new("t", SILENT, with_=("timeout:seconds=1h,idle=1s",))
    assert control.wait("t", exit=True).signal == "TERM"
    assert pane(control, "t", "#{@tmuxctl_ended}") == "idle"


# doing nothing


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_a_session_that_does_nothing_ends_and_says_so(control: Control) -> None:
    control.new("t", SILENT, with_=("timeout:idle=2s,seconds=1h",))
    ended = control.wait("t", exit=True)
    assert (ended.signal, ended.detail) == ("TERM", "idle")
    assert control.show("t").detail == "idle"


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize(
    "script",
    ["while :; do :; done", "(while :; do :; done) & sleep 1000", "while :; do printf .; sleep 0.2; done"],
    ids=["computes", "computes in the background", "prints"],
)
def test_a_session_that_does_something_goes_on(control: Control, script: str) -> None:
    control.new("busy", ("sh", "-c", script), with_=("timeout:idle=2s",), wait=False)
    control.new("silent", SILENT, with_=("timeout:idle=4s",), wait=False)
    assert control.wait("silent", exit=True).matched
    assert pane(control, "busy", "#{pane_dead}") == "0"


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("who", ["a program", "a person"])
def test_a_session_that_is_typed_into_goes_on_until_nobody_does(control: Control, until: Until, who: str) -> None:
    script = "stty -echo; printf quiet; exec sleep 1000"
    control.new("typed", ("sh", "-c", script), with_=("timeout:idle=4s",), wait=False)
    control.wait("typed", text="quiet")
    if who == "a person":
        tmux("-f", "/dev/null", "new-session", "-d", "-s", "desk", f"env -u TMUX tmux -L {SOCKET} attach -t =typed")
        until(lambda: control.show("typed").attached)
    control.new("silent", SILENT, with_=("timeout:idle=8s",), wait=False)
    with meanwhile(
        lambda: tmux("send-keys", "-t", "=desk:", "x") if "person" in who else control.keys("typed", ("x",))
    ):
        assert control.wait("silent", exit=True).matched
        assert pane(control, "typed", "#{pane_dead}") == "0"
    assert control.wait("typed", exit=True).matched
    assert control.screen("typed").text == "quiet"


def tmux(*words: str) -> None:
    """The tmux in which a person sits."""
    subprocess.run(["tmux", "-L", "desk", *words], check=True, capture_output=True)


@contextmanager
def meanwhile(act: Callable[[], Any]) -> Iterator[None]:
    """Do it again and again beside what is done inside."""
    enough, failed = threading.Event(), []

    def go_on() -> None:
        while not enough.wait(0.3):
            try:
                act()
            except Exception as error:
                failed.append(error)
                return

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
    assert not failed
