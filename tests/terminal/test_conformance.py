"""What our replay draws is what tmux draws: every stream is played to both and compared, cell by cell."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tmuxctl.results import CursorPosition
from tmuxctl.terminal.picture.replay import Cell, Replay, styled_cells
from tmuxctl.terminal.tmux import screen

STREAMS = Path(__file__).parent / "streams"
Part = bytes | tuple[int, int]
NUMBER = itertools.count()


class Stream(NamedTuple):
    """What is written to a terminal of `size`; a part that is a size resizes it. `differs` says why tmux does."""

    name: str
    size: tuple[int, int]
    parts: list[Part]
    differs: str


class Drawn(NamedTuple):
    """A terminal after a stream."""

    lines: list[str]
    history: list[str]
    cursor: CursorPosition
    alternate: bool
    cells: list[list[Cell]]


def unescaped(text: str) -> bytes:
    names = {b"e": b"\x1b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"\\": b"\\"}
    return re.sub(
        rb"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))",
        lambda found: (
            bytes([int(found[1], 16)]) if found[1] else chr(int(found[2], 16)).encode() if found[2] else names[found[3]]
        ),
        text.encode(),
    )


def part(text: str) -> Part:
    size = re.fullmatch(r"(\d+)x(\d+)", text)
    return (int(size[1]), int(size[2])) if size else unescaped(text)


def read_streams() -> list[Stream]:
    found = []
    for path in sorted(STREAMS.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            size = part(entry["size"])
            assert isinstance(size, tuple)
            parts = [part(text) for text in entry["parts"]]
            found.append(Stream(f"{path.stem}: {entry['name']}", size, parts, entry.get("differs", "")))
    return found


ALL = read_streams()


class Tmux:
    """A tmux server of our own that plays streams in panes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"tmuxctl-test-{os.getpid()}-{next(NUMBER)}"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMUX_TMPDIR": str(folder),
            "LC_ALL": "C.UTF-8",
        }
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.bind(str(folder / "peer"))
        self.peer.listen()
        self.peer.settimeout(20)
        self.run("new-session", "-d", "-s", "keeper", "sleep 1000")

    def run(self, *arguments: str) -> bytes:
        command = ["tmux", "-L", self.name, "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, timeout=20, check=True).stdout

    def close(self) -> None:
        self.run("kill-server")
        self.peer.close()

    def play(self, stream: Stream) -> Drawn:
        name = f"s{next(NUMBER)}"
        target = f"={name}:"
        files = []
        for number, data in enumerate(data for data in stream.parts if isinstance(data, bytes)):
            path = self.folder / f"{name}-{number}"
            path.write_bytes(data)
            files.append(str(path))
        columns, rows = map(str, stream.size)
        player = [sys.executable, "-I", "-S", str(STREAMS / "player.py"), str(self.folder / "peer"), *files]
        size = ["resize-window", "-t", target, "-x", columns, "-y", rows]
        self.run("new-session", "-d", "-s", name, "-x", columns, "-y", rows, *player, ";", *size)
        with self.peer.accept()[0] as line:  # closing it ends the player and its session
            line.settimeout(20)
            self.follow(stream, target, line)
            return self.look(target)

    def follow(self, stream: Stream, target: str, line: socket.socket) -> None:
        started = False
        for item in stream.parts:
            if isinstance(item, bytes):
                if started:
                    line.send(b"+")
                assert line.recv(1) == b"+"
                started = True
            else:
                self.run("resize-window", "-t", target, "-x", str(item[0]), "-y", str(item[1]))

    def look(self, target: str) -> Drawn:
        facts = "#{cursor_x} #{cursor_y} #{cursor_flag} #{alternate_on} #{history_size} #{pane_width}"
        capture = ["capture-pane", "-p", "-e", "-N", "-S", "-", "-t", target]
        answer = self.run("display-message", "-p", "-t", target, facts, ";", *capture)
        first, _, captured = answer.partition(b"\n")
        x, y, shown, alternate, scrolled, columns = map(int, first.split())
        rows = plain(captured)
        return Drawn(
            rows[scrolled:],
            rows[:scrolled],
            CursorPosition(x, y, bool(shown)),
            bool(alternate),
            written(captured, styled_cells(captured, columns))[scrolled:],
        )


def plain(captured: bytes) -> list[str]:
    return [row.rstrip(" ") for row in screen.plain_text(captured, trim=False).split("\n")[:-1]]


def written(captured: bytes, rows: list[list[Cell]]) -> list[list[Cell]]:
    """The cells as far as the capture goes: behind its text tmux shows no background."""
    found = []
    for text, row in zip(screen.plain_text(captured, trim=False).split("\n"), rows, strict=False):
        ends = itertools.accumulate(len(cell.text) for cell in row)
        found.append([cell for cell, end in zip(row, ends, strict=True) if end <= len(text)])
    return found


def replayed(stream: Stream, pieces: random.Random | None = None) -> Replay:
    """Our drawing; `pieces` cuts the output into feeds of random size."""
    replay = Replay(*stream.size)
    for item in stream.parts:
        if isinstance(item, tuple):
            replay.resize(*item)
            continue
        while item:
            size = pieces.randrange(1, 6) if pieces else len(item)
            replay.feed(item[:size])
            item = item[size:]
    return replay


def drawn(replay: Replay, like: Drawn) -> Drawn:
    rows = [row[: len(expected)] for row, expected in zip(replay.cells(), like.cells, strict=True)]
    return Drawn(replay.lines(), replay.history(), replay.cursor, replay.alternate, rows)


@pytest.fixture(scope="module")
def tmux() -> Iterator[Tmux]:
    folder = Path(tempfile.mkdtemp(prefix="tmuxctl-", dir="/tmp"))
    server = Tmux(folder)
    yield server
    server.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("stream", ALL, ids=lambda stream: stream.name)
def test_a_replay_shows_what_tmux_shows(tmux: Tmux, stream: Stream) -> None:
    expected = tmux.play(stream)
    found = drawn(replayed(stream), expected)
    if stream.differs:
        assert found != expected, "agrees now: take its `differs` away"
    else:
        assert found == expected


@pytest.mark.parametrize("stream", ALL, ids=lambda stream: stream.name)
def test_output_may_be_cut_anywhere(stream: Stream) -> None:
    whole = replayed(stream)
    for seed in range(3):
        cut = replayed(stream, random.Random(seed))
        assert (cut.lines(), cut.history(), cut.cursor) == (whole.lines(), whole.history(), whole.cursor)
        assert cut.cells() == whole.cells()


def test_the_corpus_is_large_and_agrees_almost_everywhere() -> None:
    assert len(ALL) >= 60
    assert len({stream.name for stream in ALL}) == len(ALL)
    assert sum(bool(stream.differs) for stream in ALL) <= 4
