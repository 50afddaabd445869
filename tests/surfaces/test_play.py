"""`tmuxctl play`: a recording on a real terminal, paused, stepped and left by keys."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from programs import SHELL

from tmuxctl.control import Control

pytestmark = pytest.mark.on("tmux")
Until = Callable[[Callable[[], Any]], Any]

LONG = 3600
"""Seconds of a pause that no test waits for."""


def write(path: Path, events: Sequence[tuple[float, str, str]]) -> str:
    lines = [{"version": 2, "width": 60, "height": 10}, *events]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


class Playing:
    """`tmuxctl play` in a session, started from a shell."""

    def __init__(self, control: Control, place: Path, until: Until) -> None:
        self.control, self.until = control, until
        env = {"TMUX_TMPDIR": str(place), "TMUXCTL_SOCKET": os.environ["TMUXCTL_SOCKET"]}
        control.new("at", SHELL, env=env, size="80x14")

    def start(self, *words: str) -> None:
        self.control.send("at", " ".join((sys.executable, "-m", "tmuxctl", "play", *words)).encode())

    @property
    def text(self) -> str:
        return self.control.screen("at").text

    def sees(self, *words: str) -> str:
        return str(self.until(lambda: (text := self.text) and all(word in text for word in words) and text))

    def press(self, *keys: str) -> None:
        self.control.keys("at", keys)

    def leave(self) -> None:
        """It is over, and the terminal is as it was."""
        self.until(lambda: not self.control.screen("at").alt)
        self.control.wait("at")
        assert self.control.screen("at").cursor.visible
        assert self.control.ask("at", b"echo status $?").answer == "status 0"


@pytest.fixture
def playing(control: Control, place: Path, until: Until) -> Playing:
    return Playing(control, place, until)


@pytest.mark.night
def test_a_recording_is_played_to_its_end(playing: Playing, place: Path) -> None:
    path = write(place / "a.cast", [(0, "o", "one\r\n"), (0.2, "o", "\x1b[31mtwo\x1b[0m\r\n"), (0.4, "m", "the mark")])
    playing.start(path)
    playing.sees("one", "two", "end  ", "the mark")
    assert playing.control.screen("at").alt
    assert "\x1b[0;31mtwo" in (playing.control.screen("at", ansi=True).ansi or "").replace("\x1b[31m", "\x1b[0;31m")
    playing.press("x")
    playing.leave()


def test_a_pause_is_stepped_over_and_left(playing: Playing, place: Path) -> None:
    path = write(place / "a.cast", [(0, "o", "one\r\n"), (LONG, "o", "two\r\n"), (2 * LONG, "o", "three\r\n")])
    playing.start(path)
    assert "two" not in playing.sees("one", "0:0")
    playing.press("Space")
    playing.sees("paused")
    playing.press(".")
    playing.sees("two", "paused  60:00")
    playing.press("Space")
    playing.until(lambda: "paused" not in playing.text)
    playing.press("+", "+")
    playing.sees("2.25x")
    playing.press("q")
    playing.leave()


def test_pauses_are_as_short_as_one_likes(playing: Playing, place: Path) -> None:
    path = write(place / "a.cast", [(0, "o", "one\r\n"), (LONG, "o", "two\r\n")])
    playing.start(path, "--idle-limit", "0.1s", "--speed", "2")
    playing.sees("two", "end  ")
    playing.press("q")
    playing.leave()


def test_what_a_recording_holds_beside_text_does_nothing_to_the_terminal(playing: Playing, place: Path) -> None:
    """A title, a clipboard, another screen, a question that the terminal would answer as if it were typed."""
    harm = "\x1b]0;taken\x07\x1b]52;c;dGFrZW4=\x07\x1b[?1049l\x1b[?1000h\x1b[6n\x1b[c\x1bP$qm\x1b\\\x1b[?5h\x1b(0"
    playing.start(write(place / "a.cast", [(0, "o", f"before{harm}\x1b(B after\r\n")]))
    playing.sees("before after", "end  ")
    shown = playing.control.screen("at")
    assert shown.alt
    assert "taken" not in shown.title
    playing.press("q")
    playing.leave()
    assert not re.search(r"\d;\d+R", playing.text)


@pytest.mark.night
def test_a_session_is_played_from_what_is_kept_of_it(playing: Playing) -> None:
    playing.control.new("t", ("sh", "-c", "echo hello; sleep 0.2; echo again"))
    playing.control.wait("t", exit=True)
    playing.start("t", "--idle-limit", "0.1s")
    playing.sees("hello", "again", "end  ")
    playing.press("q")
    playing.leave()


@pytest.mark.parametrize("words", [("--no-input",), ()])
def test_without_a_terminal_it_says_what_to_do_instead(control: Control, place: Path, words: Sequence[str]) -> None:
    path = write(place / "a.cast", [(0, "o", "one\r\n")])
    done = subprocess.run(
        [sys.executable, "-m", "tmuxctl", "play", path, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"tmuxctl export {path} FILE.html" in done.stderr
