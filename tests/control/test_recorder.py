"""A recorder: it keeps when output came, and writes the recording at its end."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.control.output.moments import History, to_time
from tmuxctl.control.output.timestamps import TimeScale
from tmuxctl.control.recordings import played
from tmuxctl.errors import Conflict, Exited, Usage
from tmuxctl.terminal.tmux.timeline import OutputTime, OutputTimes
from tmuxctl.transport.local import LocalTransport

ON_TMUX = pytest.mark.on("tmux")
Until = Callable[[Callable[[], object]], object]

TICKS = "import time\nfor one in range(4): print('tick', one, flush=True); time.sleep(0.4)\ninput()\n"


def read_events(path: Path) -> list[tuple[float, str, str]]:
    """The events of an asciicast of version 3, each with its time from the beginning."""
    found, at = [], 0.0
    for line in path.read_text().splitlines()[1:]:
        interval, code, data = json.loads(line)
        at += interval
        found.append((at, code, data))
    return found


@pytest.mark.night
@ON_TMUX
def test_the_times_of_what_a_recorder_saw_are_known(control: Control, place: Path) -> None:
    """A program prints, sleeps, prints: between two known moments its lines would be spread evenly; with a recorder each
    has its own time."""
    control.new("t", ("sh", "-c", f'read go; exec {sys.executable} -c "$0"', TICKS))
    out = place / "t.cast"
    begun = control.rec("t", str(out))
    assert (begun.recording, begun.file) == (True, str(out))
    control.send("t", b"go")
    assert control.wait("t", text="^tick 3$", timeout=20).matched
    seen = time.time()
    ended = control.rec("t", stop=True)
    assert (ended.recording, ended.file, ended.cursor) == (False, str(out), begun.cursor)
    ticks = [at for at, code, data in read_events(out) if code == "o" and "tick" in data]
    assert len(ticks) == 4
    # the program sleeps at least so long between two of them: this is no bound on how quick we are
    assert all(later - earlier > 0.3 for earlier, later in itertools.pairwise(ticks))
    header = json.loads(out.read_text().splitlines()[0])
    assert header["timestamp"] <= seen
    assert not played.record(control.machine, "t", since=begun.cursor, until=None).estimated


@pytest.mark.night
@ON_TMUX
def test_without_a_recorder_the_same_times_are_estimated(control: Control, place: Path) -> None:
    control.new("t", ("sh", "-c", f'read go; exec {sys.executable} -c "$0"', TICKS))
    control.send("t", b"go")
    assert control.wait("t", text="^tick 3$", timeout=20).matched
    assert played.record(control.machine, "t", since=None, until=None).estimated


@ON_TMUX
def test_a_recording_ends_with_its_session(control: Control, place: Path, until: Until) -> None:
    control.new("t", LINES)
    out = place / "t.cast"
    control.rec("t", str(out))
    control.send("t", b"last words")
    assert control.wait("t", text="^last words$").matched
    control.keys("t", ("C-d",))
    assert control.wait("t", exit=True).matched
    until(out.exists)
    assert "last words" in out.read_text()
    until(lambda: not _recorders(control))
    with pytest.raises(Conflict) as told:
        control.rec("t", stop=True)
    assert told.value.reason == "not_recording"
    with pytest.raises(Exited):
        control.rec("t")


def _recorders(control: Control) -> list[int]:
    """The processes of recorders on this test's server; another test's has the same socket name in another folder."""
    own = f"TMUX_TMPDIR={os.environ['TMUX_TMPDIR']}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"recordings.recorder" in words and own in variables:
                found.append(int(entry.name))
    return found


@ON_TMUX
def test_a_recorder_ends_when_its_session_is_killed(control: Control, place: Path, until: Until) -> None:
    control.new("t", LINES)
    control.rec("t")
    until(lambda: len(_recorders(control)) == 1)
    control.kill(("t",))
    until(lambda: not _recorders(control))


@pytest.mark.night
@ON_TMUX
def test_a_session_is_recorded_once_and_again_after_its_recorder_died(
    control: Control, place: Path, until: Until
) -> None:
    control.new("t", LINES)
    control.rec("t")
    with pytest.raises(Conflict) as told:
        control.rec("t", str(place / "other.cast"))
    assert told.value.reason == "recording"
    (recorder,) = _recorders(control)
    os.kill(recorder, 9)
    until(lambda: not _recorders(control))
    # what it was told to write is written by who ends it
    control.send("t", b"unseen")
    assert control.wait("t", text="^unseen$").matched
    out = place / "t.cast"
    ended = control.rec("t", str(out), stop=True)
    assert not ended.recording
    assert "unseen" in out.read_text()
    assert control.rec("t").recording
    control.rec("t", stop=True)


@ON_TMUX
def test_new_records_from_the_start(control: Control, place: Path, until: Until) -> None:
    control.new("t", LINES, rec=True)
    until(lambda: len(_recorders(control)) == 1)
    control.new("t", LINES, rec=True, if_exists="reuse")
    assert len(_recorders(control)) == 1
    ended = control.rec("t", stop=True)
    assert ended.cursor.endswith(":0")


@ON_TMUX
@pytest.mark.parametrize("file", ["out.svg", "nowhere/out.cast"])
def test_a_file_that_will_not_do_is_refused_before_anything_starts(control: Control, place: Path, file: str) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage):
        control.rec("t", str(place / file))
    assert not _recorders(control)


@pytest.mark.night
@ON_TMUX
def test_a_moment_between_two_outputs_shows_what_stood_there(control: Control, place: Path) -> None:
    """Without a recorder the nearest known moment may be a later one."""
    control.new("t", LINES)
    control.rec("t")
    control.send("t", b"first")
    assert control.wait("t", text="^first$").matched
    time.sleep(0.3)
    between = control.machine.clock.wall()
    time.sleep(1.2)
    control.send("t", b"second")
    assert control.wait("t", text="^second$").matched
    control.rec("t", stop=True)
    at = to_time(between)
    assert at is not None
    shown = control.screen("t", at=at)
    assert "first" in shown.text
    assert "second" not in shown.text


@pytest.mark.parametrize(
    "line",
    [
        b"5 3 1700000000.000",
        b"-1 5 1700000000.000",
        b"1 2 nan",
        b"1 2",
        b"x",
        b"1 99999999999999999999 1.000",
        b"\xff\xfe",
    ],
)
def test_lines_that_are_no_times_are_left_out(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "times").write_bytes(b"0 4 1700000000.000\n" + line + b"\n4 9 1700000001.500\n")
    times = OutputTimes(LocalTransport("unused"), str(tmp_path)).read()
    assert times == [OutputTime(0, 4, 1700000000.0), OutputTime(4, 9, 1700000001.5)]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_a_file_of_times_that_is_none_is_neither_followed_nor_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "times"
    if kind == "link":
        (tmp_path / "other").write_bytes(b"0 4 1700000000.000\n")
        path.symlink_to(tmp_path / "other")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert OutputTimes(LocalTransport("unused"), str(tmp_path)).read() == []


def test_of_many_times_the_newer_half_is_kept(tmp_path: Path) -> None:
    times = OutputTimes(LocalTransport("unused"), str(tmp_path), limit=2000)
    for number in range(200):
        times.add(OutputTime(number, number + 1, 1700000000.0 + number))
    kept = times.read()
    assert kept[-1] == OutputTime(199, 200, 1700000199.0)
    assert (tmp_path / "times").stat().st_size <= 2000
    assert kept[0].start > 0


def test_output_that_came_at_once_has_the_time_when_it_came() -> None:
    recorded = [OutputTime(0, 100, 10.0), OutputTime(100, 160, 20.0), OutputTime(160, 160, 25.0)]
    known = [(0, 10.0), (100, 10.0), (100, 20.0), (160, 20.0), (160, 25.0), (200, 25.0)]
    scale = TimeScale(known, recorded)
    assert scale.time_at(50) == (10.0, True)
    assert scale.time_at(100) == (20.0, True)
    assert scale.time_at(130) == (20.0, True)
    assert scale.time_at(180) == (25.0, False)
    assert (scale.reached_at(100), scale.reached_at(160)) == (10.0, 20.0)
    assert [scale.is_estimated(0, end) for end in (100, 160, 161, 200)] == [False, False, True, True]
    assert TimeScale(known).is_estimated(0, 100)


@ON_TMUX
def test_known_moments_of_a_recorded_session_are_in_order(control: Control) -> None:
    control.new("t", LINES)
    control.rec("t")
    control.send("t", b"one")
    assert control.wait("t", text="^one$").matched
    control.rec("t", stop=True)
    known = [(point.offset, point.at) for point in History(control.machine, "t").list_known()]
    assert known == sorted(known)
