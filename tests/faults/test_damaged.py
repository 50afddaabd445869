"""A damaged file of ours costs no more than what it told: every other session is listed and works."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import crash_server
from control.person import Person
from faults.command import Command
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.errors import Failed

pytestmark = pytest.mark.on("tmux")

Damage = Callable[[Path], None]


def deep(path: Path) -> None:
    path.write_text("[" * 200_000)


def deep_inside(path: Path) -> None:
    """As deep as Python can read, and deeper than it can go on with."""
    known = json.loads(path.read_text() or "{}") if path.exists() and path.name.endswith(".json") else {}
    inner: Any = []
    for _ in range(900):
        inner = [inner]
    path.write_text(json.dumps(dict.fromkeys(known, inner)) or "[]")


def other_types(path: Path) -> None:
    """An object with the keys it had, and something else behind each."""
    known = json.loads(path.read_text() or "{}") if path.exists() and path.name.endswith(".json") else {}
    path.write_text(json.dumps({name: 5 if isinstance(value, (dict, list)) else [] for name, value in known.items()}))


def inner_types(path: Path) -> None:
    """Something else in each place inside."""
    known = json.loads(path.read_text() or "{}") if path.exists() and path.name.endswith(".json") else {}
    path.write_text(json.dumps(turned(known, 0)))


def turned(value: Any, level: int) -> Any:
    if isinstance(value, dict) and level < 3:
        return {name: turned(one, level + 1) for name, one in value.items()}
    if isinstance(value, list) and level < 3:
        return [turned(one, level + 1) for one in value] or [5]
    return 5 if isinstance(value, (str, dict, list)) or value is None else "x"


def endless(path: Path) -> None:
    """A gibibyte that takes no room on the disk."""
    path.write_text("{" + '"a":')
    os.truncate(path, 1 << 30)


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def link(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00{")


DAMAGES = (deep, deep_inside, other_types, inner_types, endless, pipe, folder, link, no_text)

damaged_by = pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)


ADOPTED = ("options.json", "spec.json", "last.json", "adopted.json")
FILES = ("spec.json", "profile.json", "last.json", "exit", "ended", "server", "pid", "cgroup")


def sessions(control: Control) -> Path:
    """A session for each file, which is to be damaged, and `good`; the folder of all."""
    for name in (*map(called, FILES), "good"):
        control.new(name, ("bash",))
    for name in (*map(called, FILES), "good"):
        control.wait(name)
    control.ls()
    return Path(control.machine.transport.home) / "sessions"


def called(file: str) -> str:
    return file.replace(".", "-")


@pytest.mark.night
@damaged_by
def test_of_sessions_that_run(control: Control, place: Path, damage: Damage) -> None:
    here = sessions(control)
    for file in FILES:
        damage(here / control.show(called(file)).id / file)
    states = Command().states()
    assert states.keys() == {*map(called, FILES), "good"}
    assert states["good"] == "idle"
    assert control.ask("good", b"echo $((40 + 2))").text == "42"
    assert [Command()("kill", called(file)).reason for file in FILES] == [""] * len(FILES)
    assert Command().states() == {"good": "idle"}


@pytest.mark.night
@damaged_by
def test_of_sessions_that_are_lost(control: Control, place: Path, damage: Damage) -> None:
    here = sessions(control)
    ids = {file: control.show(called(file)).id for file in FILES}
    crash_server(control)
    for file, one in ids.items():
        damage(here / one / file)
    assert Command().states()["good"] == "lost"
    outcomes = {one["session"]: one["outcome"] for one in json.loads(Command()("restore").output)["sessions"]}
    assert outcomes["good"] == "relaunched"
    assert Command().states()["good"] == "idle"
    assert Command()("prune").status == 0


@pytest.mark.night
@damaged_by
@pytest.mark.parametrize("name", ["spec.json", "ended.json"])
def test_of_a_session_that_was_ended(control: Control, place: Path, name: str, damage: Damage) -> None:
    made = control.new("damaged", LINES)
    control.new("good", LINES)
    control.kill(("damaged", "good"))
    damage(Path(control.machine.transport.home) / "ended" / made.id / name)
    listed = Command()("ls", "--ended")
    assert listed.reason == ""
    assert "good" in {one["name"] for one in listed.said["sessions"]}
    assert Command()("new", "damaged", "--", *LINES).reason == ""
    assert Command()("prune").reason == ""


@pytest.mark.night
@damaged_by
@pytest.mark.parametrize("name", ["profiles.json", "server"])
def test_of_all_sessions(control: Control, place: Path, name: str, damage: Damage) -> None:
    for one in ("good", "other"):
        control.new(one, ("bash",))
        control.wait(one)
    here = Path(control.machine.transport.home) / name
    if not here.exists():
        assert control.machine.known.find("bash")
    assert here.exists()
    damage(here)
    assert Command().states() == {"good": "idle", "other": "idle"}
    if here.is_dir() and not here.is_symlink():
        shutil.rmtree(here)
    assert Command()("new", "another", "--", *LINES).reason == ""


@pytest.mark.night
@damaged_by
def test_of_a_pane_that_was_adopted(control: Control, place: Path, person: Person, damage: Damage) -> None:
    control.new("good", ("bash",))
    control.wait("good")
    control.adopt(person.target("work:1"), "strange")
    control.send("strange", b"echo hi")
    assert "strange" in Command().states()
    found = {name: next((Path(control.machine.transport.home) / "adopted").rglob(name)) for name in ADOPTED}
    for name in ADOPTED:
        damage(found[name])
        assert Command().states()["good"] == "idle", name
    assert Command()("prune").reason == ""


@pytest.mark.night
def test_what_could_not_be_read_again_is_not_started(control: Control, place: Path) -> None:
    variables = {f"V{number}": "a b " * 25_000 for number in range(50)}
    with pytest.raises(Failed) as refused:
        control.new("large", LINES, env=variables)
    assert refused.value.reason == "too_large"
    assert control.ls().sessions == ()
