"""A session whose files were removed under it: every command says so, and it can be ended."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from faults.command import Command
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.errors import Failed, TmuxctlError

pytestmark = pytest.mark.on("tmux")


@pytest.mark.night
@pytest.mark.parametrize("gone", ["", "journal"])
def test_a_session_whose_files_are_gone_says_so(control: Control, place: Path, gone: str) -> None:
    made = control.new("b", ("bash",))
    control.new("good", ("bash",))
    for name in ("b", "good"):
        control.wait(name)
    shutil.rmtree(Path(control.machine.transport.home) / "sessions" / made.id / gone)
    for words in (
        ("ask", "b", "echo hi"), ("read", "b"), ("log", "b"), ("wait", "b"), ("wait", "b", "--now"), ("send", "b", "x"),
        ("screen", "b"), ("show", "b"), ("exec", "b", "--", "true"), ("keys", "b", "Enter"), ("explain", "b"),
        ("wait", "--any", "b,good"), ("rename", "b", "c"),
    ):  # fmt: skip
        done = Command()(*words)
        assert (done.status, done.reason) == (125 if words[0] == "exec" else 1, "folder_gone"), words
    listed = {one["name"]: one for one in Command()("ls").said["sessions"]}
    assert (listed["b"]["state"], listed["b"]["detail"]) == ("unknown", "folder_gone")
    assert listed["good"]["state"] == "idle"
    assert Command()("kill", "b").reason == ""
    assert Command().states() == {"good": "idle"}


@pytest.mark.night
def test_a_resident_process_notices_that_files_are_gone(place: Path) -> None:
    with Control(resident=True) as resident:
        made = resident.new("b", LINES)
        resident.send("b", b"hi")
        shutil.rmtree(Path(resident.machine.transport.home) / "sessions" / made.id)
        for use in (lambda: resident.send("b", b"hi"), lambda: resident.read("b"), lambda: resident.show("b")):
            with pytest.raises(TmuxctlError) as refused:
                use()
            assert (type(refused.value), refused.value.reason) == (Failed, "folder_gone")
        resident.kill(("b",))
