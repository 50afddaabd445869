"""Renaming and resizing: the same session, under another name or in another size."""

from __future__ import annotations

import pytest
from programs import LINES, SHELL

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, NotFound, Usage


def test_a_renamed_session_is_the_same_session(control: Control) -> None:
    made = control.new("old", LINES)
    renamed = control.rename("old", "new")
    assert (renamed.name, renamed.id, renamed.incarnation) == ("new", made.id, made.incarnation)
    with pytest.raises(NotFound):
        control.show("old")
    control.send("new", b"alive")
    assert control.wait("new", text="^alive$").matched


@pytest.mark.on("memory", "tmux")
def test_a_name_that_is_taken_is_not_taken_twice(control: Control) -> None:
    control.new("a", LINES)
    control.new("b", LINES)
    with pytest.raises(Conflict) as refused:
        control.rename("a", "b")
    assert refused.value.reason == "exists"
    assert str(refused.value.message) == "a session named b exists"
    assert "--if-exists" not in (refused.value.hint or ""), "an option of `new`"
    assert [one.name for one in control.ls().sessions] == ["a", "b"]


@pytest.mark.parametrize("name", ["", "-x", "a.b", "#(touch x)", "_hidden", "a b"])
@pytest.mark.on("memory", "tmux")
def test_a_bad_new_name_is_refused(control: Control, name: str) -> None:
    control.new("a", LINES)
    with pytest.raises(Usage) as refused:
        control.rename("a", name)
    assert refused.value.reason == "bad_name"
    assert control.show("a").name == "a"


def test_a_session_can_be_given_another_size(control: Control) -> None:
    control.new("t", LINES)
    now = control.resize("t", "90x21")
    assert (now.cols, now.rows) == (90, 21)
    screen = control.screen("t")
    assert (screen.cols, screen.rows) == (90, 21)


@pytest.mark.on("tmux")
def test_the_program_is_told_of_its_new_size(control: Control) -> None:
    control.new("t", SHELL)
    control.resize("t", "77x33")
    assert control.exec("t", ("stty size",)).output == "33 77\n"


@pytest.mark.on("memory")
@pytest.mark.parametrize("size", ["", "0x0", "1x1", "90", "90x", "9999x20", "axb"])
def test_a_bad_size_is_refused(control: Control, size: str) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage):
        control.resize("t", size)
    assert (control.show("t").cols, control.show("t").rows) == (120, 40)
