"""A person at the session: their terminal is another tmux, in which `tmuxctl attach` runs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.errors import Conflict
from tmuxctl.terminal.tmux import server

pytestmark = pytest.mark.on("tmux")
Until = Callable[[Callable[[], Any]], Any]


class Person:
    """Somebody at a terminal of 70 x 20 cells."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def attach(self) -> None:
        command = [sys.executable, "-m", "tmuxctl", "attach", *self.words]
        self.outer("-f", "/dev/null", "new-session", "-d", "-x", "70", "-y", "20", "-s", "desk", *command)

    def press(self, *keys: str) -> None:
        self.outer("send-keys", "-t", "=desk:", *keys)

    def has_left(self) -> bool:
        """Whether the session is left by C-b d, which is pressed: again where it came together with other keys, as tmux takes that
        for a paste (`assume-paste-time`)."""
        try:
            self.press("C-b", "d")
        except subprocess.CalledProcessError:
            return True
        time.sleep(0.1)
        return False

    def sees(self) -> str:
        return self.outer("capture-pane", "-p", "-t", "=desk:")

    @staticmethod
    def outer(*words: str) -> str:
        return subprocess.run(["tmux", "-L", "desk", *words], check=True, capture_output=True, text=True).stdout


def size(control: Control) -> tuple[int, int]:
    pane = server.read_pane(control.machine.io, "t")
    return pane.cols, pane.rows


def test_a_session_fits_the_person_and_gets_its_size_back(control: Control, until: Until) -> None:
    control.new("t", LINES, size="100x30")
    person = Person("t")
    person.attach()
    until(lambda: size(control) == (70, 19))
    assert control.show("t").attached == 1
    until(lambda: "C-b d leaves" in person.sees())
    person.press("C-b", "d")
    until(lambda: size(control) == (100, 30))
    assert control.show("t").attached == 0


def test_a_session_can_keep_its_size(control: Control, until: Until) -> None:
    control.new("t", LINES, size="60x10")
    person = Person("t", "--keep-size")
    person.attach()
    until(lambda: control.show("t").attached == 1)
    until(lambda: "C-b d leaves" in person.sees())
    assert size(control) == (60, 10)


@pytest.mark.night
def test_a_typing_person_holds_off_writers_until_they_pause(control: Control, until: Until) -> None:
    control.new("t", LINES)
    person = Person("t")
    person.attach()
    until(lambda: control.show("t").attached == 1)
    person.press("h", "i")
    with pytest.raises(Conflict) as held:
        control.send("t", b"from a script")
    assert (held.value.reason, held.value.exit) == ("human", 4)
    assert "from a script" not in control.screen("t").text

    def sent() -> bool:
        try:
            control.send("t", b"from a script")
        except Conflict:
            return False
        return True

    until(sent)
    assert control.wait("t", text="from a script").matched == "text"
    until(lambda: "driven by tmuxctl" in person.sees())


@pytest.mark.night
def test_a_spectator_only_looks(control: Control, until: Until) -> None:
    control.new("t", LINES)
    person = Person("t", "--read-only")
    person.attach()
    until(lambda: "read-only" in person.sees())
    person.press("x", "y", "z", "Enter")
    until(lambda: person.has_left())
    assert control.show("t").attached == 0
    control.send("t", b"only this")
    control.wait("t", text="only this")
    assert "xyz" not in control.screen("t").text


@pytest.mark.night
def test_a_person_reading_history_is_not_disturbed(control: Control, until: Until) -> None:
    control.new("t", LINES)
    person = Person("t")
    person.attach()
    until(lambda: control.show("t").attached == 1)
    person.press("C-b", "[")
    until(lambda: server.read_pane(control.machine.io, "t").in_mode)

    def refused() -> str:
        with pytest.raises(Conflict) as conflict:
            control.send("t", b"not now")
        return conflict.value.reason

    until(lambda: refused() == "copy_mode")
    assert server.read_pane(control.machine.io, "t").in_mode
