"""Sessions of an earlier release go on: they are listed, asked, restored and ended by this one. `record.py` adds a release."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import crash_server
from upgrade.kept import RELEASES, TMUX, Kept, run

from tmuxctl import plugin
from tmuxctl.control import Control
from tmuxctl.errors import Denied

pytestmark = pytest.mark.on("tmux")

BEFORE = "before the upgrade"


@pytest.fixture(params=RELEASES)
def kept(request: Any, control: Control, place: Path, needs: Callable[..., None]) -> Kept:
    """The sessions of a release, as they stand after an upgrade."""
    needs("bash", "git", "bwrap", "python3")
    if not Path("/proc/self/stat").exists():
        pytest.skip("what was recorded is of Linux")
    found = Kept(request.param, place)
    if platform.machine() != found.about["machine"]:
        pytest.skip(f"what was recorded runs on {found.about['machine']}: the filter of a sandbox is of its machine")
    if reason := plugin.find_obstacle(plugin.load("sandbox")):
        pytest.skip(reason)
    found.lay_out()
    return found


@pytest.fixture
def crash(control: Control) -> Callable[[], None]:
    """Kills the tmux server, as kill -9 does."""

    def kill() -> None:
        crash_server(control)

    return kill


def states(control: Control) -> dict[str, str]:
    return {one.name: one.state.value for one in control.ls().sessions}


RUNNING = {"shell": "idle", "agent": "idle", "tree": "idle", "box": "idle", "limited": "idle", "done": "exited"}
LOST = {f"lost-{name}": "lost" for name in ("shell", "agent", "tree", "box")}


def test_every_session_is_listed(control: Control, kept: Kept) -> None:
    for name in set(RUNNING) - {"done"}:
        control.wait(name)
    control.wait("done", exit=True)
    assert states(control) == {**RUNNING, **LOST, "adopted": "idle"}
    found = {one.name: one for one in control.ls(ended=True).sessions}
    assert (found["done"].exit_status, found["ended"].signal) == (3, "HUP")
    assert found["shell"].id == kept.new[kept.about["sessions"]["shell"]["id"]]
    assert found["shell"].tags == found["lost-shell"].tags == ("nightly",)
    assert (found["tree"].plugins, found["box"].plugins) == (("worktree",), ("sandbox",))
    assert found["agent"].argv == found["lost-agent"].argv == ("./agent.py",)
    assert found["adopted"].target == "tmux@person:%0"


def test_what_a_session_printed_before_can_be_read(control: Control, kept: Kept) -> None:
    for name in ("shell", "agent", "tree", "box", "lost-shell", "lost-box", "ended", "adopted"):
        assert BEFORE in control.log(name).text, name


def test_sessions_are_asked(control: Control, kept: Kept) -> None:
    for name in ("shell", "tree", "box", "adopted"):
        assert control.ask(name, b"echo $((6 * 7))").text == "42", name
    assert control.ask("agent", b"hello").text == "You gave me 5 characters."


def test_an_input_that_was_typed_before_is_known(control: Control, kept: Kept) -> None:
    for name, answer in (("shell", BEFORE), ("agent", f"You gave me {len(BEFORE)} characters.")):
        control.wait(name)
        assert answer in control.read(name, answer_to=BEFORE).text, name


def test_what_is_changed_of_a_session_holds_in_its_next_life(
    control: Control, kept: Kept, crash: Callable[[], None]
) -> None:
    control.rename("shell", "renamed")
    control.tag("renamed", ("one",))
    control.resize("renamed", "90x20")
    crash()
    assert control.restore(("renamed",)).ok
    found = control.show("renamed")
    assert (found.tags, found.cols, found.rows) == (("nightly", "one"), 90, 20)


@pytest.mark.night
def test_lost_sessions_are_restored(control: Control, kept: Kept) -> None:
    done = control.restore()
    assert {one.session: (one.outcome, one.reason) for one in done.sessions} == dict.fromkeys(
        LOST, ("relaunched", None)
    )
    assert states(control).keys() == {*RUNNING, *LOST, "adopted"}
    for name in ("lost-shell", "lost-tree", "lost-box"):
        assert control.ask(name, b"pwd; echo $MARK").text.split("\n")[0] == control.show(name).cwd
    assert control.ask("lost-shell", b"echo $MARK").text == "a b"
    assert control.ask("lost-agent", b"hello").text == "You gave me 5 characters."
    assert BEFORE in control.log("lost-shell").text


def test_sessions_that_ran_are_lost_with_their_server_and_restored(
    control: Control, kept: Kept, crash: Callable[[], None]
) -> None:
    control.wait("done", exit=True)
    crash()
    assert states(control) == {**dict.fromkeys(RUNNING, "lost"), "done": "exited", **LOST, "adopted": "idle"}
    assert control.restore().ok
    for name in ("shell", "tree", "box"):
        assert control.ask(name, b"echo $((6 * 7))").text == "42"


def test_sessions_are_killed_and_leave_nothing(control: Control, kept: Kept) -> None:
    trees = [Path(one.cwd or "") for one in (control.show("tree"), control.show("lost-tree"))]
    control.kill(all=True)
    assert states(control) == {"adopted": "idle"}
    assert {one.name for one in control.ls(ended=True).sessions} == {*RUNNING, *LOST, "ended", "adopted"}
    assert not any(tree.exists() for tree in (kept.home / one.relative_to(kept.home) for one in trees))


@pytest.mark.night
def test_an_adopted_pane_is_given_back(control: Control, kept: Kept) -> None:
    with pytest.raises(Denied):
        control.kill(("adopted",))
    control.release(("adopted",))
    assert "adopted" not in states(control)
    assert run(*TMUX, "person", "display-message", "-p", "#{pane_pipe}") == "0\n"
