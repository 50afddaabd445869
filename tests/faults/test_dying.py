"""The process that carries out a command is killed (-9) before each single thing it does: nothing is lost, doubled or half.

What comes next finds everything as if the command had been done or never been given, and works within its time.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from faults.command import PATIENCE, living, marked
from programs import HERE

from tmuxctl.control import Control
from tmuxctl.control.sessions import records
from tmuxctl.errors import NotFound, TmuxctlError

pytestmark = [pytest.mark.on("tmux"), pytest.mark.timeout(400)]

DYING = str(HERE / "dying.py")
MOST_STEPS = 200


class Death(NamedTuple):
    """Before what a command was killed: the number of the step, and the step; no step if it came to its end."""

    number: int
    step: str


@pytest.fixture
def deaths(place: Path) -> Callable[..., Iterator[Death]]:
    """Runs a command again and again, each time killed one step later, until it comes to its end.

    `words` are the command's, or made for each number.
    """

    def each(
        words: Callable[[int], tuple[str, ...]], stdin: Callable[[int], bytes] = lambda number: b""
    ) -> Iterator[Death]:
        for number in range(1, MOST_STEPS):
            command = [sys.executable, DYING, str(number), str(place / "log"), *words(number)]
            pipe = subprocess.PIPE
            done = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
            errors = done.communicate(stdin(number), timeout=PATIENCE)[1]
            # a tmux that it started goes on, and what that asks of the server may still come
            with suppress(ProcessLookupError):
                while True:
                    os.killpg(done.pid, 0)
                    time.sleep(0.002)
            step = (place / "log").read_text().splitlines()[-1]
            if done.returncode != -signal.SIGKILL:
                assert (done.returncode, number > 1) == (0, True), errors.decode()
                yield Death(number, "")
                return
            yield Death(number, step)
        raise AssertionError(f"more than {MOST_STEPS} steps")

    return each


@pytest.fixture
def whole(control: Control, place: Path, until: Callable[..., Any]) -> Callable[[str], list[str]]:
    """Checks that what is listed is there and what is there is listed; the names of the sessions that live."""

    def check(step: str) -> list[str]:
        until(lambda: set(marked(place).values()) <= {one.id for one in control.ls().sessions})
        listed = control.ls().sessions
        for one in listed:
            folder = Path(records.session_folder(control.machine, one.id))
            if one.state not in ("exited", "lost"):
                missing = [
                    name
                    for name in ("spec.json", "profile.json", "journal", "journal.sh")
                    if not (folder / name).exists()
                ]
                assert not missing, (step, one)
                assert json.loads((folder / "spec.json").read_bytes())["spec"]["name"] == one.name, step
        locks = [lock for lock in Path(control.machine.transport.home).glob("*.lock") if held(lock)]
        assert not locks, step
        return living(listed)

    return check


def held(lock: Path) -> bool:
    """True if somebody holds the lock file."""
    with lock.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def lines(control: Control, name: str) -> list[str]:
    return control.log(name).text.splitlines()


def kill_server(control: Control) -> None:
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}/exe").exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.night
@pytest.mark.parametrize("server", ["running", "not there"])
def test_new(control: Control, place: Path, deaths, whole, server: str) -> None:
    """A session that was not made whole is not listed, and its name is free."""
    if server == "running":
        control.new("keep", ("cat",))
    for death in deaths(lambda number: ("new", "t", "--no-wait", "--", "cat")):
        there = whole(death.step)
        assert "lost" not in [one.state for one in control.ls().sessions], death
        if death.step and "t" not in there:
            control.new("t", ("cat",))
        assert "t" in whole(death.step), death
        control.send("t", f"line {death.number}".encode())
        assert control.wait("t", text=f"^line {death.number}$").matched
        control.kill(("t",), signal="KILL")
        assert ("keep" in whole(death.step)) == (server == "running")
        if server != "running":
            kill_server(control)


@pytest.mark.night
def test_kill(control: Control, place: Path, deaths, whole) -> None:
    """Killed or not: asked again it is, and nothing of it is left. Other sessions go on."""
    control.new("keep", ("cat",))
    control.new("t", ("sh", "-c", "sleep 1000 & exec cat"))
    for death in deaths(lambda number: ("kill", "t")):
        whole(death.step)
        if death.step:
            try:
                control.kill(("t",))
            except NotFound:
                assert "ended" in death.step, death
        assert whole(death.step) == ["keep"], death
        assert [one.name for one in control.ls().sessions] == ["keep"], death
        assert set(marked(place).values()) == {control.show("keep").id}, death
        control.new("t", ("sh", "-c", "sleep 1000 & exec cat"))


@pytest.mark.night
def test_send(control: Control, deaths, whole) -> None:
    """What was typed is the whole line, once, or nothing."""
    control.new("t", ("cat",))
    before: list[str] = []
    for death in deaths(lambda number: ("send", "t", f"line {number}")):
        assert whole(death.step) == ["t"]
        end = f"end {death.number}"
        assert control.send("t", end.encode()).result == "done"
        assert control.wait("t", text=f"^{end}$").matched
        now = Counter(lines(control, "t")) - Counter(before)
        before = lines(control, "t")
        line = now.pop(f"line {death.number}", 0)
        assert (line, now) in [(0, {end: 2}), (2, {end: 2})], death
        assert line or death.step, death


@pytest.mark.night
def test_send_of_much(control: Control, place: Path, deaths, whole, until) -> None:
    """A text that does not fit into one pipe: all of it or nothing."""
    got = place / "got"
    control.new("t", ("sh", "-c", f"stty -echo; exec cat >{got}"))
    text = "".join(f"{number:05} {'x' * 40}\n" for number in range(3000)).encode()
    words = ("send", "t", "-", "--multiline", "--no-enter")
    expected = b""
    for death in deaths(lambda number: words, lambda number: text):
        assert whole(death.step) == ["t"]
        end = f"end {death.number}\n".encode()
        control.send("t", end[:-1])
        written = until(lambda end=end: got.read_bytes().endswith(end) and got.read_bytes())
        assert written in (expected + end, expected + text + end), (death, len(written))
        expected = written


@pytest.mark.night
def test_send_again_with_its_id(control: Control, deaths, whole) -> None:
    """Asked again with the same id it is typed if it was not, and only then."""
    control.new("t", ("cat",))

    def id(number: int) -> str:
        return f"{number:016x}"

    for death in deaths(lambda number: ("send", "t", f"line {number}", "--id", id(number))):
        control.send("t", f"line {death.number}".encode(), id=id(death.number))
        control.send("t", f"end {death.number}".encode())
        assert control.wait("t", text=f"^end {death.number}$").matched
        assert lines(control, "t").count(f"line {death.number}") == 2, death


@pytest.mark.night
def test_exec(control: Control, place: Path, deaths, whole, until) -> None:
    """A command is run once or not at all, and the shell takes the next one."""
    control.new("t", ("bash", "--norc"))
    ran = place / "ran"
    for death in deaths(lambda number: ("exec", "t", f"echo {number} >>{ran}")):
        assert whole(death.step) == ["t"]
        assert control.exec("t", ("echo next",)).output == "next\n", death
        count = ran.read_text().split().count(str(death.number)) if ran.exists() else 0
        assert count == 1 if not death.step else count in (0, 1), death


@pytest.mark.night
def test_rename(control: Control, deaths, whole) -> None:
    """It has the one name or the other, in tmux and on the disk, and can be renamed again."""
    control.new("a", ("cat",))
    made = control.show("a").id
    for death in deaths(lambda number: ("rename", "a", "b")):
        (name,) = whole_name(control)
        control.rename(name, "c")
        assert control.show("c").id == made
        control.rename("c", "a")
        assert whole(death.step) == ["a"], death


def whole_name(control: Control) -> list[str]:
    names = [one.name for one in control.ls().sessions]
    assert names in (["a"], ["b"])
    return names


@pytest.mark.night
def test_rename_that_was_broken_off_is_restored_by_one_of_its_names(control: Control, deaths, until) -> None:
    """What tmux called it, or what it was to be called; never by a name it no longer had."""
    control.new("a", ("cat",))
    for death in deaths(lambda number: ("rename", "a", "b")):
        (name,) = whole_name(control)
        kill_server(control)
        (restored,) = (one.name for one in until(lambda: control.ls().sessions))
        assert restored in (name, "b"), death
        control.restore(())
        if restored == "b":
            control.rename("b", "a")


@pytest.mark.night
def test_prune(control: Control, place: Path, deaths, whole) -> None:
    """Asked again, all is gone that had ended."""
    control.new("keep", ("cat",))
    for death in deaths(lambda number: prepared(control)):
        assert whole(death.step) == ["keep"]
        control.prune()
        assert [one.name for one in control.ls().sessions] == ["keep"], death
        assert not os.listdir(f"{control.machine.transport.home}/ended"), death
        assert os.listdir(f"{control.machine.transport.home}/sessions") == [control.show("keep").id], death


def prepared(control: Control) -> tuple[str, ...]:
    """One that ended by itself and one that was killed, and the word that clears both away."""
    for name in ("ended", "killed"):
        control.new(name, ("true",) if name == "ended" else ("cat",), if_exists="replace")
    control.wait("ended", exit=True)
    control.kill(("killed",), signal="KILL")
    return ("prune",)


@pytest.mark.night
def test_restore(control: Control, deaths, whole, until) -> None:
    """Asked again, the session is back, once, and what it printed before can be read."""
    control.new("t", ("sh", "-c", "sleep 1000 & exec cat"))
    made = control.show("t").id
    printed = [""]
    for death in deaths(lambda number: lost(control, until)):
        whole(death.step)
        (now,) = control.ls().sessions
        assert (now.name, now.id) == ("t", made), death
        assert now.state != "exited", death
        control.restore(())
        assert whole(death.step) == ["t"], death
        line = f"line {death.number}"
        control.send("t", line.encode())
        assert control.wait("t", text=f"^{line}$").matched, death
        printed += [line, line]
        assert [one for one in lines(control, "t") if one.startswith("line")] == printed[1:], death


def lost(control: Control, until: Callable[..., Any]) -> tuple[str, ...]:
    """Takes the server away, with all that runs in it, and gives the word that brings the sessions back."""
    kill_server(control)
    for one in until(lambda: [each for each in control.ls().sessions if each.state == "lost"]):
        for row in control.machine.transport.marked(one.id):
            os.kill(row.pid, signal.SIGKILL)
    return ("restore",)


@pytest.mark.night
@pytest.mark.parametrize("words", ["new t --no-wait --if-exists replace -- cat", "rename keep keep", "ls"])
def test_what_was_half_written_is_cleared_away(control: Control, place: Path, deaths, words: str) -> None:
    """Files that were never finished do not pile up."""
    control.new("keep", ("cat",))
    for _ in deaths(lambda number: again(control, words)):
        pass
    for one in (place / "state").rglob("*"):
        # as if all this had been an hour ago
        os.utime(one, (time.time() - 3600,) * 2, follow_symlinks=False)
    control.prune()
    home = Path(control.machine.transport.home)
    known = {one.id for one in control.ls().sessions}
    assert list(home.rglob("*.new")) == []
    assert set(os.listdir(home / "sessions")) <= known


def again(control: Control, words: str) -> tuple[str, ...]:
    """A command as it is where nothing was done before: what it has looked up is forgotten, and `new` has no server."""
    home = Path(control.machine.transport.home)
    (home / "profiles.json").unlink(missing_ok=True)
    for last in home.glob("sessions/*/last.json"):
        last.unlink()
    if words.startswith("new"):
        with suppress(TmuxctlError):
            kill_server(control)
    return tuple(words.split())
