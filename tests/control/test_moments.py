"""Any moment again: what stood on a screen then, drawn from the journal, is what tmux showed at that time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, PYTHON

from tmuxctl.control import Control
from tmuxctl.control.output import moments
from tmuxctl.control.output.timestamps import TimeScale
from tmuxctl.errors import Conflict, NotFound, Usage
from tmuxctl.results import Screen
from tmuxctl.terminal.panes import keyframes
from tmuxctl.terminal.picture.replay import Cell, styled_cells
from tmuxctl.terminal.tmux.timeline import Moment, Timeline
from tmuxctl.vocabulary import MomentKind

pytestmark = pytest.mark.on("tmux")


def folder_of(control: Control, name: str) -> Path:
    return Path(control.machine.transport.home, "sessions", control.show(name).id)


def kept(control: Control, name: str) -> list[Moment]:
    return Timeline(control.machine.transport, str(folder_of(control, name))).read()


def settled(control: Control, name: str, text: str) -> Screen:
    """The screen once it shows a text and the journal has all that it shows."""
    assert control.wait(name, text=text, since="screen", timeout=20).matched
    while (first := control.screen(name, ansi=True, trim=False)) != control.screen(name, ansi=True, trim=False):
        pass
    return first


def cells(screen: Screen) -> list[list[Cell]]:
    return styled_cells((screen.ansi or "").encode(), screen.cols)


def same(then: Screen, now: Screen) -> None:
    assert cells(now) == cells(then)
    assert [row.rstrip() for row in now.text.split("\n")] == [row.rstrip() for row in then.text.split("\n")]
    assert (now.cols, now.rows, now.cursor, now.alt) == (then.cols, then.rows, then.cursor, then.alt)
    assert not now.approximate


@pytest.mark.night
def test_each_screen_that_was_seen_is_found_again_by_its_cursor(control: Control, needs: Callable[..., None]) -> None:
    needs("bash", "vim")
    control.new("sh", ("bash", "--norc"), size="90x24", env={"PS1": "$ "})
    seen = []
    steps = [
        (b"printf '\\033[1;31mred\\033[0m \\033[44mblue\\033[0m \\346\\274\\242e\\314\\201\\n'; echo o''ne", "one"),
        (b"seq 100; echo t''wo", "two"),
        (b"vim -u NONE -N +'set nu' /etc/passwd", "root"),
    ]
    for typed, shown in steps:
        control.send("sh", typed)
        seen.append(settled(control, "sh", shown))
    for keys, shown in ((("G",), "root|nobody"), (("g", "g", "O"), "INSERT")):
        control.keys("sh", keys)
        seen.append(settled(control, "sh", shown))
    # a point in the output at which the size changed is that of two screens: something has to be drawn between them
    control.keys("sh", ("x",))
    settled(control, "sh", "1 x")
    control.resize("sh", "70x20")
    seen.append(settled(control, "sh", "INSERT"))
    control.keys("sh", ("Escape",))
    control.send("sh", b":q!")
    # an editor that ends drops what was typed ahead
    assert control.wait("sh", prompt=True).matched
    control.send("sh", b"clear; echo th''ree")
    seen.append(settled(control, "sh", "three"))
    for screen in seen:
        assert screen.position is not None
        same(screen, control.screen("sh", at=screen.position, ansi=True, trim=False))
    control.kill(("sh",))
    assert seen[3].position is not None
    same(seen[3], control.screen("sh", at=seen[3].position, ansi=True, trim=False))


@pytest.mark.night
def test_a_moment_far_behind_a_flood_is_drawn_without_all_that_came_before(control: Control) -> None:
    control.new("t", ("sh", "-c", "seq 400000; echo MIDDLE; read x; seq 400000; read x"), size="80x24")
    then = settled(control, "t", "MIDDLE")
    assert moments.History(control.machine, "t").journal.end() > moments.NEAR
    control.keys("t", ("Enter",))
    control.wait("t", text="^400000$", timeout=20)
    assert then.position is not None
    same(then, control.screen("t", at=then.position, ansi=True, trim=False))


DRAWS = """
import sys
print("\\033[2J\\033[H", end="")
for row in range(1, 20):
    print(f"\\033[{row};1H\\033[3{row % 7 + 1}mrow {row}\\033[0m", end="")
for part in range(3):
    # never clears its screen again, and writes one row only
    for count in range(40000):
        print(f"\\033[22;1H{part} {count:040}\\033[K", end="")
    print(f"\\033[23;1Hpart {part} ended\\033[K", end="", flush=True)
    input()
"""


@pytest.mark.night
def test_a_keyframe_is_kept_of_a_quiet_program_and_drawn_from(control: Control) -> None:
    control.new("t", (PYTHON, "-c", DRAWS), size="80x24")
    seen = []
    for part in range(3):
        seen.append(settled(control, "t", f"part {part} ended"))
        control.machine.clock.sleep(control.machine.timing.observation.keyframe_seconds)
        control.wait("t", timeout=20)
        control.keys("t", ("Enter",))
    control.wait("t", exit=True, timeout=20)
    history = moments.History(control.machine, "t")
    found = keyframes.list_offsets(control.machine.transport, history.folder)
    assert len(found) == 3
    for screen in seen[1:]:
        assert screen.position is not None
        same(screen, control.screen("t", at=screen.position, ansi=True, trim=False))
    # without them, and with the clearing too far back, what was drawn then is not known, and said to be so
    for one in found:
        os.unlink(f"{history.folder}/keyframes/{one:015d}")
    moment = moments.History(control.machine, "t")
    end = moment.journal.end()
    drawn = moment._draw_from(moments._Start(end - moments.MIDDLE, None, False), end)
    assert drawn.approximate
    assert drawn.lines()[22].startswith("part 2 ended")


def test_turns_are_found_again_by_their_numbers(control: Control) -> None:
    control.new("py", (PYTHON, "-q"))
    for text in (b"6 * 7", b"print('a\\nb')", b"'x' * 3"):
        control.ask("py", text)
    assert [str(getattr(control.read("py", turn=number), "text", "")) for number in (1, 2, 3)] == [
        "42",
        "a\nb",
        "'xxx'",
    ]
    assert control.screen("py", at="1").text.endswith("42\n>>>")
    assert control.screen("py", at="-1").text.endswith("b\n>>>")
    assert control.screen("py", at="3").text == control.screen("py").text
    with pytest.raises(NotFound) as refused:
        control.read("py", turn=9)
    assert (refused.value.reason, refused.value.hint) == ("no_turn", "turns that are: 1, 2, 3")


def test_a_time_means_the_nearest_moment_that_is_known_and_says_so(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"first")
    control.wait("t", text="first")
    marked = control.mark("t", "half way")
    # a moment is told in thousandths of a second
    time.sleep(0.01)
    control.send("t", b"second")
    control.wait("t", text="second")
    assert control.screen("t", at="mark:half way").text == "first\nfirst"
    found = control.screen("t", at=marked.at)
    assert (found.text, found.moment, found.at) == ("first\nfirst", "mark", marked.at)
    assert control.screen("t", at="2001-01-01").text == ""
    for at, reason in (("soon", "bad_moment"), ("0", "bad_moment"), ("25:00", "bad_moment"), ("-x", "bad_moment")):
        with pytest.raises(Usage) as refused:
            control.screen("t", at=at)
        assert refused.value.reason == reason
    with pytest.raises(NotFound) as missing:
        control.screen("t", at="mark:other")
    assert missing.value.hint == "marks that it has: half way"
    with pytest.raises(Conflict) as lost:
        control.screen("t", at="c1:00000000.1:5")
    assert lost.value.reason == "cursor_lost"
    with pytest.raises(Usage):
        control.mark("t", "two\nlines")


def test_the_timeline_keeps_no_secret(control: Control, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control.new("sh", ("sh",))
    control.send("sh", b"stty -echo; read secret; stty echo")
    control.wait("sh", input=True)
    monkeypatch.setenv("PASSWORD", "d3pl0y")
    control.send("sh", secret_from_env="PASSWORD")
    # what is typed before the terminal shows text again is kept as a secret
    control.wait("sh", text="$ ")
    control.send("sh", b"stty -echo; read other; stty echo; echo d''one")
    control.wait("sh", input=True)
    control.send("sh", b"h1dden", insecure=True)
    control.wait("sh", text="done")
    control.keys("sh", ("a", "b", "Enter"))
    (path,) = (folder_of(control, "sh") / "timeline",)
    text = path.read_text()
    assert "d3pl0y" not in text
    assert "h1dden" not in text
    typed = [moment.text for moment in kept(control, "sh") if moment.kind is MomentKind.INPUT]
    assert typed == [
        "stty -echo; read secret; stty echo",
        "",
        "stty -echo; read other; stty echo; echo d''one",
        "",
        "<Enter>",
    ]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_a_program_puts_in_place_of_the_timeline_is_neither_followed_nor_waited_for(
    control: Control, place: Path, kind: str
) -> None:
    control.new("t", LINES)
    path, other = folder_of(control, "t") / "timeline", place / "other"
    path.unlink()
    other.write_text("kept")
    if kind == "link":
        path.symlink_to(other)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    control.send("t", b"typed")
    assert control.wait("t", text="typed", timeout=20).matched
    assert other.read_text() == "kept"
    assert control.screen("t", at="-1s").session == "t"


def test_lines_of_a_timeline_that_are_none_are_left_out_and_its_older_half_goes(control: Control) -> None:
    control.new("t", LINES)
    path = folder_of(control, "t") / "timeline"
    bad = [
        b'{"kind": "mark", "offset": 1, "at": NaN}\n',
        b'{"kind": "mark", "offset": 1, "at": Infinity}\n',
        b'{"kind": "mark", "offset": %d, "at": 1}\n' % 10**400,
        b'{"kind": "turn", "offset": 1, "at": 1, "until": 1e300}\n',
        b'{"kind": "size", "offset": 1, "at": 1, "cols": 100000, "rows": 1}\n',
        b'{"kind": "size", "offset": 1, "at": 1, "cols": 10000, "rows": 10000}\n',
        b'{"kind": "size", "offset": 1, "at": 1}\n',
        b"\xff\n",
        b"{\n",
        b"[]\n",
        b'{"kind": "none", "offset": 1, "at": 1}\n',
        b'{"kind": "mark", "offset": -1, "at": 1}\n',
    ]
    path.write_bytes(b"".join(bad))
    told = Timeline(control.machine.transport, str(path.parent), limit=1000)
    assert told.read() == []
    told.add(Moment(MomentKind.MARK, 7, 3.0, "here"))
    assert told.read() == [Moment(MomentKind.MARK, 7, 3.0, "here")]
    for number in range(60):
        told.add(Moment(MomentKind.MARK, number + 10, 4.0, f"mark {number}"))
        assert told.read()[-1].text == f"mark {number}"
    assert path.stat().st_size < 1200
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_a_question_is_kept_once(control: Control, needs: Callable[..., None]) -> None:
    needs("bash")
    control.new("sh", ("bash",))
    control.send("sh", b"read -p 'Go on? [y/N] ' answer")
    for _ in range(3):
        control.wait("sh", asking=True)
    asked = [moment for moment in kept(control, "sh") if moment.kind is MomentKind.QUESTION]
    assert [moment.text for moment in asked] == ["Go on? [y/N]"]
    assert control.screen("sh", at=f"c1:{control.show('sh').incarnation}:{asked[0].offset}").text.endswith("[y/N]")


def test_lines_come_with_the_times_at_which_they_were_printed(control: Control) -> None:
    control.new("t", LINES)
    for word in (b"one", b"two"):
        control.send("t", word)
        control.wait("t", text=word.decode())
    found: Any = control.log("t", timestamps=True)
    rows = found.text.splitlines()
    assert [row[14:] for row in rows] == ["one", "one", "two", "two"]
    assert all(re.fullmatch(r"[ ~]\d\d:\d\d:\d\d\.\d{3} .*", row) for row in rows)
    assert [row[0] for row in rows] == [" ", "~", " ", "~"]
    assert sorted(row[1:14] for row in rows) == [row[1:14] for row in rows]


def test_times_between_known_ones_are_spread_evenly() -> None:
    scale = TimeScale([(0, 100.0), (10, 110.0), (10, 105.0), (30, 120.0)])
    assert scale.time_at(0) == (100.0, True)
    assert scale.time_at(5) == (105.0, False)
    assert scale.time_at(10) == (110.0, True)
    assert scale.time_at(20) == (115.0, False)
    assert scale.time_at(99) == (120.0, False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("-5m", -300.0), ("-90", -90.0), ("11:58", -120.0), ("12:01", 60.0 - 86400), ("9:00:30.5", -3 * 3600 + 30.5)],
)
def test_a_moment_is_a_time_of_day_or_so_long_ago(text: str, seconds: float) -> None:
    noon = datetime(2026, 11, 26, 12).timestamp()
    assert moments.parse_moment(text, noon) == noon + seconds
    assert moments.parse_moment("2026-11-26T12:00:00", 0.0) == noon


@pytest.mark.on("memory", "tmux", "pipe")
def test_what_was_typed_is_kept_however_the_machine_is_reached(control: Control) -> None:
    control.new("t", LINES)
    control.send("t", b"typed")
    session = control.show("t").id
    found = Timeline(control.machine.transport, f"{control.machine.transport.home}/sessions/{session}").read()
    assert [(moment.kind, moment.text) for moment in found][1:] == [(MomentKind.INPUT, "typed")]


def test_the_sizes_that_a_person_gives_a_session_are_kept(
    control: Control, until: Callable[[Callable[[], Any]], Any]
) -> None:
    control.new("t", LINES, size="100x30")
    socket = control.machine.transport.socket
    outer = ("tmux", "-L", "outer", "-f", "/dev/null")
    words = ("new-session", "-d", "-x", "70", "-y", "22", f"tmux -L {socket} attach -t =t")
    subprocess.run(
        (*outer, *words), check=True, env={name: value for name, value in os.environ.items() if name != "TMUX"}
    )

    def sizes() -> list[tuple[int, int]]:
        return [(moment.cols, moment.rows) for moment in kept(control, "t") if moment.kind is MomentKind.SIZE]

    try:
        until(lambda: sizes() == [(100, 30), (70, 21)])
    finally:
        subprocess.run((*outer, "kill-server"), check=False)
    until(lambda: sizes() == [(100, 30), (70, 21), (100, 30)])
