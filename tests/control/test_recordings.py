"""Recordings: what a session printed, as a file that others read, and as pictures that move."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, PYTHON

from tmuxctl.control import Control
from tmuxctl.control.recordings import casts, exporting, frames
from tmuxctl.control.recordings.recording import INPUT, MARKER, OUTPUT, RESIZE, CastEvent, Recording, pace
from tmuxctl.errors import NotFound, TmuxctlError, Usage
from tmuxctl.terminal.picture import film
from tmuxctl.terminal.picture.replay import Replay

ON_TMUX = pytest.mark.on("tmux")


def played(recording: Recording) -> Replay:
    """The terminal at the end of a recording."""
    replay = Replay(recording.cols, recording.rows)
    for event in recording.events():
        if event.code == OUTPUT:
            replay.feed(event.data.encode())
        elif event.code == RESIZE:
            cols, _, rows = event.data.partition("x")
            replay.resize(int(cols), int(rows))
    return replay


@ON_TMUX
@pytest.mark.parametrize("version", [2, 3])
def test_a_recording_of_a_session_plays_to_its_screen(control: Control, place: Path, version: int) -> None:
    control.new("py", (PYTHON, "-q"), size="80x20")
    control.ask("py", b"print('\\033[31mred\\033[0m caf\xc3\xa9 \xe6\xbc\xa2')")
    control.mark("py", "half way")
    control.resize("py", "60x15")
    control.ask("py", b"6 * 7")
    for number, since in enumerate((None, "mark:half way")):
        path = str(place / f"{number}.cast")
        told = control.export("py", path, since=since, cast_version=version)
        assert told is not None
        found = casts.read_cast(path)
        assert told.file == path
        assert told.estimated
        # the program may have drawn its prompt after the mark, or before
        assert (found.cols, found.rows) in ((80, 20), (60, 15))[: 1 if since is None else 2]
        assert "\n".join(played(found).lines()).rstrip() == control.screen("py").text
        events = list(found.events())
        assert told.count == len(events)
        assert [event.at for event in events] == sorted(event.at for event in events)
        assert told.seconds == pytest.approx(events[-1].at, abs=0.01)
        assert "half way" in [event.data for event in events if event.code == MARKER]
        assert "6 * 7" in [event.data for event in events if event.code == INPUT]
        header = json.loads(Path(path).read_text().partition("\n")[0])
        assert header["version"] == version


@ON_TMUX
def test_a_recording_has_no_secret_that_was_typed(
    control: Control, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control.new("sh", ("sh",))
    control.send("sh", b"stty -echo; read secret; stty echo; echo t''hanks")
    control.wait("sh", input=True)
    monkeypatch.setenv("PASSWORD", "d3pl0y")
    control.send("sh", secret_from_env="PASSWORD")
    control.wait("sh", text="thanks")
    for form in exporting.FORMS:
        path = place / f"out{form}"
        control.export("sh", str(path))
        assert b"d3pl0y" not in path.read_bytes()
        assert path.stat().st_mode & 0o111 == 0


def test_pauses_are_shortened_before_the_rest_is_made_quicker() -> None:
    events = [
        CastEvent(0.0, OUTPUT, "a"),
        CastEvent(10.0, OUTPUT, "b"),
        CastEvent(11.0, OUTPUT, "c"),
        CastEvent(11.0, OUTPUT, "d"),
    ]
    assert [event.at for event in pace(events, idle_limit=2.0, speed=2.0)] == [0.0, 1.0, 1.5, 1.5]
    assert list(pace(events)) == events
    assert [event.data for event in pace(events, speed=0.5)] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("{}\n", 1),
        ('{"version": 1, "width": 80, "height": 24}\n', 1),
        ('{"version": 2, "width": 80}\n', 1),
        ('{"version": 2, "width": 0, "height": 24}\n', 1),
        ('{"version": 3, "term": {"cols": 80, "rows": 1000000}}\n', 1),
        ('{"version": 3, "term": {"cols": 9999, "rows": 9999}}\n', 1),
        ('{"version": 3, "term": {"cols": 80, "rows": 24}}\n# comment\n\n[1, "o"]\n', 4),
        ('{"version": 3, "term": {"cols": 80, "rows": 24}}\n[-1, "o", "a"]\n', 2),
        ('{"version": 3, "term": {"cols": 80, "rows": 24}}\n[1e999, "o", "a"]\n', 2),
        ('{"version": 3, "term": {"cols": 80, "rows": 24}}\n[NaN, "o", "a"]\n', 2),
        ('{"version": 2, "width": 80, "height": 24}\n[1, "o", 5]\n', 2),
    ],
)
def test_what_is_no_asciicast_is_refused_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "bad.cast"
    path.write_text(text)
    with pytest.raises(Usage) as refused:
        list(casts.read_cast(str(path)).events())
    assert refused.value.reason == "bad_cast"
    assert f"line {line}: " in refused.value.message


@pytest.mark.parametrize("began", ["NaN", "Infinity", "-1", "1e300", '"now"'])
def test_a_time_of_no_calendar_is_left_out(tmp_path: Path, began: str) -> None:
    path = tmp_path / "other.cast"
    path.write_text(f'{{"version": 2, "width": 80, "height": 24, "timestamp": {began}}}\n')
    assert casts.read_cast(str(path)).began is None


def test_a_cast_may_hold_what_others_write(tmp_path: Path) -> None:
    path = tmp_path / "other.cast"
    lines = [
        {"version": 2, "width": 80, "height": 24, "idle_time_limit": 2, "env": {"TERM": "xterm"}, "timestamp": 5},
        [0.5, "o", "a"],
        [0.25, "o", "b"],
        [1, "r", "100x30"],
        [1, "r", "0x0"],
        [2, "z", "unknown"],
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = casts.read_cast(str(path))
    # times never go back
    assert [event.at for event in found.events()] == [0.5, 0.5, 1.0, 2.0]
    assert frames.largest_size(found) == (100, 30)
    shown = list(frames.list_frames(found, found.events()))
    assert [len(frame.rows) for frame in shown][-1] == 30


@pytest.mark.parametrize("kind", ["fifo", "folder", "missing"])
def test_a_source_that_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.cast"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(Usage) as refused:
        casts.read_cast(str(path))
    assert refused.value.reason == "bad_file"


def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.cast"
    path.write_text("before")

    def fails(file: Any) -> tuple[int, float]:
        file.write("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exporting.write_whole(str(path), fails)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.cast"]
    (tmp_path / "folder.cast").mkdir()
    for place in ("no/out.cast", "folder.cast"):
        with pytest.raises(Usage) as refused:
            exporting.write_whole(str(tmp_path / place), lambda file: (0, 0.0))
        assert refused.value.reason == "bad_file"
    assert sorted(os.listdir(tmp_path)) == ["folder.cast", "out.cast"]


@ON_TMUX
def test_standard_output_has_the_cast_alone(control: Control, capsys: pytest.CaptureFixture[str]) -> None:
    control.new("t", LINES)
    assert control.export("t", "-") is None
    assert json.loads(capsys.readouterr().out.splitlines()[0])["version"] == 3


@ON_TMUX
def test_what_cannot_be_exported_is_told(control: Control, place: Path) -> None:
    control.new("t", LINES)
    for arguments, reason in (
        (("t", "out.doc"), "bad_option"),
        (("none", "out.cast"), "no_session"),
        (("./none.cast", "out.svg"), "bad_file"),
    ):
        with pytest.raises(TmuxctlError) as refused:
            control.export(*arguments)
        assert refused.value.reason == reason
    with pytest.raises(Usage):
        control.export("t", "out.cast", idle_limit=0.0)
    with pytest.raises(Usage):
        control.export("t", "out.cast", cast_version=7)
    with pytest.raises(NotFound):
        control.export("t", "out.cast", since="mark:none")
    assert not [path for path in os.listdir() if path.startswith("out.")]


def recording(*events: tuple[float, str, str]) -> Recording:
    return Recording(20, 5, lambda: iter([CastEvent(*event) for event in events]), title='a <b> & "c"')


TALK = (
    (0.0, OUTPUT, "one\r\n"),
    (0.01, OUTPUT, "two\r\n"),
    (1.0, MARKER, "here"),
    (1.0, OUTPUT, "\x1b[1;31m<three>\x1b[0m\r\n"),
    (2.0, OUTPUT, "\x1b]0;title\x07\x1b[2J\x1b[H\x1b[?25lfour"),
)


def shown(*events: tuple[float, str, str]) -> list[film.Frame]:
    found = recording(*events)
    return list(frames.list_frames(found, found.events()))


def test_frames_are_the_screens_that_stood_for_a_moment() -> None:
    found = shown(*TALK)
    assert [round(frame.at, 2) for frame in found] == [0.0, 1.0, 2.0]
    assert [["".join(cell.text for cell in row).rstrip() for row in frame.rows[:3]] for frame in found] == [
        ["one", "two", ""],
        ["one", "two", "<three>"],
        ["four", "", ""],
    ]
    assert [frame.marker for frame in found] == ["", "here", ""]
    assert [frame.cursor.visible for frame in found] == [True, True, False]
    # what did not change is not drawn again
    assert found[1].rows[0] is found[0].rows[0]


def test_the_moving_picture_is_well_formed_and_shares_its_rows() -> None:
    file = io.StringIO()
    assert film.write_svg(iter(shown(*TALK)), file, cols=20, rows=5, title='a <b> & "c"') == (3, 2.0)
    picture = file.getvalue()
    root = xml.etree.ElementTree.fromstring(picture)
    assert root.findtext("{http://www.w3.org/2000/svg}title") == 'a <b> & "c"'
    assert picture.count(">one<") == 1
    assert picture.count("<use ") == 2
    assert "&lt;three&gt;" in picture
    assert "50.0000% { transform: translateY(-212px) }" in picture


def test_the_page_holds_one_script_and_no_markup_of_the_program() -> None:
    file = io.StringIO()
    events = (*TALK, (3.0, OUTPUT, "</script><script>alert(1)</script><!--"))
    film.write_page(iter(shown(*events)), file, cols=20, rows=5, title="</title><script>alert(1)</script>")
    page = file.getvalue()
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    data = page.partition('type="application/jsonl">\n')[2].partition("</script>")[0]
    told = [json.loads(line) for line in data.splitlines()]
    assert [frame["at"] for frame in told] == [0, 1.0, 2.0, 3.0]
    assert told[1]["marker"] == "here"
    assert told[0]["whole"]
    assert list(told[1]["rows"]) == ["2"]


@pytest.fixture
def long_cast(tmp_path: Path) -> Path:
    path = tmp_path / "long.cast"
    with path.open("w") as file:
        file.write(json.dumps({"version": 2, "width": 80, "height": 24}) + "\n")
        for number in range(60_000):
            file.write(json.dumps([number / 100, "o", f"line {number} {'x' * 60}\r\n"]) + "\n")
    return path


MEASURED = """
import re, sys
from tmuxctl.control.recordings import exporting
from tmuxctl.control.recordings import casts
recording = casts.read_cast(sys.argv[1])
from tmuxctl.control.recordings.recording import pace
exporting.write_whole(sys.argv[2], lambda file: exporting._write(recording, pace(recording.events()), file, sys.argv[3], 3))
# getrusage(2) counts what the process had before it became this program
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.night
def test_ten_minutes_of_output_are_exported_in_little_memory(long_cast: Path, tmp_path: Path) -> None:
    for form in (".cast", ".html"):
        words = [sys.executable, "-c", MEASURED, str(long_cast), str(tmp_path / f"out{form}"), form]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
        assert int(done.stdout) < 100_000
