"""What a later release keeps is refused with a sentence, and stays as it is; all else is listed and works."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import crash_server
from control.person import Person
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.untrusted import FORMAT, NewerFormat

pytestmark = pytest.mark.on("tmux")

LATER = FORMAT + 1


def make_later(path: Path) -> None:
    """As a later release would have written it."""
    path.write_text(json.dumps({"format": LATER, "what": "nobody here knows"}))


def folder(control: Control, session_id: str, place: str = "sessions") -> Path:
    return Path(control.machine.transport.home) / place / session_id


def listed(control: Control, **how: Any) -> dict[str, tuple[str, str | None]]:
    return {one.name: (one.state.value, one.detail) for one in control.ls(**how).sessions}


def refused(call: Callable[[], Any], path: Path | str) -> None:
    with pytest.raises(NewerFormat) as error:
        call()
    message = f"{path} has format {LATER}, and this tmuxctl reads formats up to {FORMAT}"
    assert (error.value.reason, error.value.exit) == ("newer_format", 1)
    assert message in error.value.message
    assert "upgrade" in error.value.hint


@pytest.fixture
def sessions(control: Control, needs: Callable[..., None]) -> tuple[str, str]:
    """A session that will be a later release's, and one of ours; their ids."""
    needs("bash")
    made = [control.new(name, ("bash",), tag=(name,)).id for name in ("later", "ours")]
    for name in ("later", "ours"):
        control.wait(name)
    return made[0], made[1]


def test_every_file_and_session_of_ours_says_its_format(
    control: Control, place: Path, person: Person, sessions: tuple[str, str]
) -> None:
    control.adopt(person.target("work:1"), "strange")
    control.send("strange", b"echo hi")
    control.new("ended", LINES)
    control.kill(("ended",))
    control.ls()
    files = list((place / "state").rglob("*.json"))
    of_sessions = {"spec.json", "profile.json", "last.json", "ended.json", "adopted.json", "options.json"}
    assert {file.name for file in files} == of_sessions | {"profiles.json"}
    kept = {str(file): json.loads(file.read_text()) for file in files}
    # no profile is no record
    assert {name for name, one in kept.items() if one and one.get("format") != FORMAT} == set()
    shown = control.machine.transport.run([("display-message", "-p", "-t", "=ours:", "#{@tmuxctl_format}")])
    assert int(shown) == FORMAT


def test_a_running_session_is_listed_and_nothing_is_done_to_it(control: Control, sessions: tuple[str, str]) -> None:
    spec = folder(control, sessions[0]) / "spec.json"
    make_later(spec)
    control.machine.transport.run([("set-option", "-t", "=later:", "@tmuxctl_format", str(LATER))])
    for call in (
        lambda: control.show("later"),
        lambda: control.ask("later", b"echo hi"),
        lambda: control.send("later", b"echo hi"),
        lambda: control.wait("later"),
        lambda: control.log("later"),
        lambda: control.rename("later", "other"),
    ):
        refused(call, "session later")
    refused(lambda: control.kill(("later", "ours")), spec)
    assert listed(control) == {"later": ("unknown", "newer_format"), "ours": ("idle", "shell")}
    assert control.ask("ours", b"echo $((6 * 7))").text == "42"
    control.kill(("ours",))
    assert json.loads(spec.read_text())["format"] == LATER


def test_a_profile_of_a_later_release_holds_up_no_other_session(control: Control, sessions: tuple[str, str]) -> None:
    profile = folder(control, sessions[0]) / "profile.json"
    make_later(profile)
    assert listed(control) == {"later": ("unknown", "newer_format"), "ours": ("idle", "shell")}
    refused(lambda: control.show("later"), profile)


def test_a_lost_session_is_listed_and_kept(control: Control, sessions: tuple[str, str]) -> None:
    later, _ = sessions
    spec = folder(control, later) / "spec.json"
    make_later(spec)
    before = set(spec.parent.rglob("*"))
    crash_server(control)
    assert listed(control) == {later: ("lost", "newer_format"), "ours": ("lost", None)}
    outcomes = {one.session: (one.outcome, one.reason) for one in control.restore().sessions}
    assert outcomes == {later: ("lost", "newer_format"), "ours": ("relaunched", None)}
    for call in (control.show, control.log, lambda name: control.kill((name,))):
        refused(lambda call=call: call(later), spec)  # type: ignore[misc]
    assert str(spec) in "".join(control.prune().left)
    assert before <= set(spec.parent.rglob("*"))


@pytest.mark.parametrize("name", ["spec.json", "ended.json"])
def test_an_ended_session_is_listed_and_kept(control: Control, sessions: tuple[str, str], name: str) -> None:
    later, ours = sessions
    control.kill(("later", "ours"))
    file = folder(control, later, "ended") / name
    make_later(file)
    assert listed(control, ended=True)[later] == ("exited", "newer_format")
    assert str(file) in "".join(control.prune().left)
    assert (file.exists(), folder(control, ours, "ended").exists()) == (True, False)


@pytest.mark.parametrize("name", ["adopted.json", "options.json"])
def test_an_adopted_pane_is_listed_and_kept(control: Control, person: Person, name: str) -> None:
    person.tmux("new-window", "-t", "work", "bash --norc")
    for window, called in ((1, "later"), (2, "ours")):
        control.adopt(person.target(f"work:{window}"), called)
        control.ask(called, b"echo hi")
    file = next(folder(control, "later", "adopted").rglob(name))
    make_later(file)
    found = listed(control)
    assert found["later"][1] == "newer_format" != found["ours"][1]
    refused(lambda: control.show("later"), file)
    control.prune()
    assert json.loads(file.read_text())["format"] == LATER
    assert control.ask("ours", b"echo $((6 * 7))").text == "42"


def test_what_can_be_made_anew_is(control: Control, sessions: tuple[str, str]) -> None:
    """The last observations and the profiles by the names of programs are a memory, no record."""
    home = Path(control.machine.transport.home)
    for file in (folder(control, sessions[1]) / "last.json", home / "profiles.json"):
        make_later(file)
    with Control() as another:
        assert another.ask("ours", b"echo $((6 * 7))").text == "42"
        assert another.new("third", ("bash",)).profile == "bash"


@pytest.mark.parametrize("profiles", [[], "words", {'started ["bash", "bash"]': 1}, None])
def test_a_damaged_memory_of_profiles_is_made_anew(control: Control, profiles: object) -> None:
    control.new("first", ("bash",))
    file = Path(control.machine.transport.home) / "profiles.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "profiles": profiles}))
    assert control.new("second", ("bash",)).profile == "bash"
