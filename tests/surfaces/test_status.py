"""One line that tells who needs somebody, the way to the next of them, and being told of each question once."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from programs import SHELL

from tmuxctl.control import Control
from tmuxctl.control.waiting import status_line
from tmuxctl.control.waiting.status_line import wants_input
from tmuxctl.errors import NotFound, Usage
from tmuxctl.model import Asking, Session, State, Status
from tmuxctl.results import Event, StatusLine
from tmuxctl.surfaces.cli import attaching
from tmuxctl.surfaces.cli.printing import notices
from tmuxctl.vocabulary import InputKind

ON_TMUX = pytest.mark.on("tmux")
Until = Callable[[Callable[[], Any]], Any]

ASKS = ("sh", "-c", "printf 'Delete it? [y/n] '; read answer; exec sleep 1000")
WORKS = ("sh", "-c", "while :; do :; done")


def status(control: Control, form: Any = "plain") -> StatusLine:
    found = control.status(format=form)
    assert isinstance(found, StatusLine)
    return found


def run(*words: str) -> str:
    command = (sys.executable, "-m", "tmuxctl", *words)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.night
@ON_TMUX
def test_who_works_and_who_needs_somebody_is_one_line(control: Control) -> None:
    assert run("status") == ""
    control.new("shell", SHELL)
    control.wait("shell")
    assert status(control).line == ""
    control.new("fix", ASKS)
    assert run("status") == "!1\n"
    control.new("work", WORKS, wait=False)
    assert control.wait("work", text="never", timeout=1).timed_out
    found = status(control)
    assert (found.line, found.busy, found.wanting, found.sessions) == ("1 busy  !1", 1, ("fix",), 3)
    assert status(control, "tmux").line == "1 busy  #[bold]!1#[nobold]"
    bar = json.loads(run("status", "--format", "json"))
    assert (bar["text"], bar["class"], bar["urgent"], bar["wanting"]) == ("1 busy  !1", "input", True, ["fix"])
    control.kill(("fix", "work"))
    assert json.loads(status(control, "json").line)["class"] == "idle"


@pytest.mark.night
@ON_TMUX
def test_tmux_shows_the_line(control: Control, place: Path, until: Until) -> None:
    """In the status line of another tmux, which runs the command itself."""
    control.new("fix", ASKS)
    words = f"{sys.executable} -m tmuxctl status --follow --format tmux"
    env = {**os.environ, "TMUX_TMPDIR": str(place)}
    # a status line is drawn where a client is attached: one in a server of its own, since sessions of ours are counted
    outer, viewer = (["tmux", "-L", name, "-f", "/dev/null"] for name in ("outer", "viewer"))

    def seen() -> str:
        shown = subprocess.run([*viewer, "capture-pane", "-p"], env=env, capture_output=True, text=True, check=True)
        return shown.stdout

    try:
        subprocess.run(
            [*outer, "new-session", "-d", "cat", ";", "set", "-g", "status-right", f"[#({words})]", ";", "set", "-g",
             "status-interval", "1"],
            env=env, check=True,
        )  # fmt: skip
        attach = f"env -u TMUX {shlex.join([*outer, 'attach'])}"
        subprocess.run([*viewer, "new-session", "-d", "-x", "90", "-y", "10", attach], env=env, check=True)
        until(lambda: "[!1]" in seen())
        control.new("two", ASKS)
        until(lambda: "[!2]" in seen())
        control.kill(("fix", "two"))
        until(lambda: "[]" in seen())
    finally:
        for server in (viewer, outer):
            subprocess.run([*server, "kill-server"], env=env, check=False)


@pytest.mark.night
@ON_TMUX
def test_a_line_that_follows_is_printed_when_it_changes(control: Control, until: Until) -> None:
    control.new("shell", SHELL)
    lines: list[str] = []
    command = (sys.executable, "-m", "tmuxctl", "status", "--follow")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()))
        reader.start()
        try:
            until(lambda: lines)
            control.new("fix", ASKS)
            until(lambda: lines[-1] == "!1\n")
            control.rename("fix", "other")
            control.new("fix", ASKS)
            until(lambda: lines[-1] == "!2\n")
            control.decide("other", "no")
            control.kill(("fix",))
            until(lambda: "!" not in lines[-1])
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    reader.join(30)
    assert process.returncode == 130
    # no line is printed twice in a row
    assert all(before != after for before, after in pairwise(lines))


@pytest.mark.night
@ON_TMUX
def test_the_next_that_asks_is_the_one_that_has_waited_longest(control: Control) -> None:
    with pytest.raises(NotFound) as told:
        attaching.choose_session(control, None, next_asking=True)
    assert told.value.reason == "nobody_asks"
    for name in ("second", "first"):
        control.new(name, ASKS)
        # tmux tells the time of output in whole seconds
        control.wait(name, settle=1.1)
    assert attaching.choose_session(control, None, next_asking=True) == "second"
    control.decide("second", "no")
    assert attaching.choose_session(control, None, next_asking=True) == "first"
    for session, wanted in (("first", True), (None, False)):
        with pytest.raises(Usage):
            attaching.choose_session(control, session, next_asking=wanted)


# notices


def event(name: str = "fix", question: str | None = "Delete it?", **facts: Any) -> Event:
    asking = Asking(InputKind.CONFIRM, facts.pop("id", "7a"), question, ()) if question is not None else None
    status = Status(State.ASKING, kind=InputKind.CONFIRM if asking else None, asking=asking)
    return Event(time="", session=name, status=status, **{"wants": "input", **facts})


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(notices, "_write", found.append)
    for name in ("TMUX", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return found


def test_each_question_is_told_once(told: list[str]) -> None:
    notifier = notices.Notifier("terminal")
    notifier.see(event())
    notifier.see(event())
    assert told == ["\x1b]9;fix asks: Delete it?\a"]
    notifier.see(event(id="8b", question="Really?"))
    notifier.see(event("other"))
    assert told[1:] == ["\x1b]9;fix asks: Really?\a", "\x1b]9;other asks: Delete it?\a"]
    notifier.see(event(question=None, wants=None))
    notifier.see(event(id="8b", question="Really?"))
    assert len(told) == 4


def test_nothing_is_told_of_a_session_that_somebody_looks_at(told: list[str]) -> None:
    notifier = notices.Notifier("bell")
    notifier.see(event(attached=1))
    assert told == []
    notifier.see(event())
    assert told == ["\a"]


def test_a_question_steers_no_terminal(told: list[str]) -> None:
    notices.Notifier("terminal").see(event(question="a\x1b]52;c;eA==\ab\nc\x9b31m" + 400 * "x"))
    (text,) = told
    assert text.count("\x1b") == 1
    assert text.count("\a") == 1
    assert text.endswith("…\a")
    assert "\x9b" not in text


@pytest.mark.parametrize(
    ("environment", "sequence"),
    [
        ({"TERM": "foot"}, "\x1b]777;notify;fix asks;Delete it, now?\a"),
        ({"VTE_VERSION": "7200"}, "\x1b]777;notify;fix asks;Delete it, now?\a"),
        ({"TMUX": "/tmp/x,1,0"}, "\x1bPtmux;\x1b\x1b]9;fix asks: Delete it; now?\a\x1b\\"),
    ],
)
def test_each_terminal_is_told_in_its_own_sequence(
    told: list[str], monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], sequence: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    notices.Notifier("terminal").see(event(question="Delete it; now?"))
    assert told == [sequence]


def test_a_desktop_gets_text_and_no_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words that notify-send gets: nothing a program asks is an option or markup there."""
    kept = tmp_path / "words"
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{kept}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":7")
    notices.Notifier("auto").see(event(question="--urgency <b>x</b> & y"))
    assert kept.read_text().splitlines() == [
        "--app-name=tmuxctl", "--", "fix asks", "--urgency &lt;b>x&lt;/b> &amp; y"
    ]  # fmt: skip


@pytest.mark.parametrize("ways", ["loud", "bell,loud", ""])
def test_ways_there_are_not_are_refused(ways: str) -> None:
    with pytest.raises(Usage):
        notices.Notifier(ways)


def test_where_no_desktop_can_be_told_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Usage) as told:
        notices.Notifier("desktop")
    assert "notify-send" in told.value.message


@pytest.mark.night
@ON_TMUX
def test_watch_tells_a_person_at_a_terminal(control: Control, place: Path, until: Until) -> None:
    """The bell of a real terminal rings once for a question, and not for one that somebody sees already."""
    control.new("shell", SHELL)
    env = {"TMUX_TMPDIR": str(place), "TMUXCTL_SOCKET": os.environ["TMUXCTL_SOCKET"]}
    control.new("at", (sys.executable, "-m", "tmuxctl", "watch", "shell", "--notify=bell"), env=env, wait=False)
    until(lambda: "shell" in control.screen("at").text)
    control.send("shell", b"read -p 'Delete it? ' a; read -p 'Really delete it? ' b")

    def bells() -> int:
        return int(control.log("at", raw=True).data.count(b"\a"))

    until(lambda: bells() == 1)
    control.send("shell", b"yes")
    until(lambda: "Really" in control.screen("at").text)
    until(lambda: bells() == 2)
    os.kill(control.show("at").pid or 0, signal.SIGINT)
    assert control.wait("at", exit=True).exit_status == 130


def test_a_session_says_who_it_waits_for() -> None:
    assert wants_input(Session("a", "1-1", wants="input"))
    assert not wants_input(Session("a", "1-1", wants="prompt"))


def test_no_line_for_tmux_is_empty_when_nothing_wants_input_any_more() -> None:
    """tmux drops an empty line that comes together with the one before it."""
    asks = Status(state=State.ASKING)
    sessions = [Session(id=name, name=name, status=asks, wants="input") for name in ("fix", "two")]
    ended = [Event("", one.name, Status(state=State.EXITED), "ended") for one in sessions]
    lines = [one.line for one in status_line.follow(sessions, iter(ended), "tmux")]
    assert lines == ["#[bold]!2#[nobold]", "#[bold]!1#[nobold]", "#[nobold]"]
