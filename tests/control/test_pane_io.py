"""What is asked of a pane, and what forbids a change of it."""

from __future__ import annotations

import pytest
from control.person import Person

from tmuxctl.control import Control
from tmuxctl.errors import Denied
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux.pane_io import Comparison, FieldTest

TESTS = (
    FieldTest(options.ASKED),
    FieldTest(options.ASKED, Comparison.DIFFERS, "abc"),
    FieldTest(options.ASKED, Comparison.DIFFERS, ""),
    FieldTest(options.ASKED, Comparison.HOLDS, "b"),
    FieldTest(options.ASKED, Comparison.ABOVE, "9"),
)


@pytest.mark.on("tmux")
@pytest.mark.parametrize("text", ["", "0", "1", "9", "12", "007", "abc", "ab.c 1"])
def test_a_test_of_a_known_value_says_what_tmux_would_say(control: Control, text: str):
    control.new("t", ("cat",))
    io = control.machine.io
    io.change("t", {options.ASKED: text})
    for test in TESTS:
        reasons = io.change(
            "t", {options.LEFT: "changed"}, unless={"first": (test,), "other": (FieldTest("pane_dead"),)}
        )
        assert set(reasons) == ({"first"} if test.holds(text) else set()), test


@pytest.mark.on("tmux")
def test_a_change_that_is_forbidden_is_not_made(control: Control):
    control.new("t", ("cat",))
    io = control.machine.io
    unless = {"long": (FieldTest("pane_width"), FieldTest("pane_height", Comparison.ABOVE, "1"))}
    assert set(io.change("t", {options.LEFT: "changed"}, unless=unless)) == {"long"}
    assert io.look("t", (options.LEFT,)).values == [""]
    unless = {"both": (FieldTest("pane_width"), FieldTest("pane_dead"))}
    assert not io.change("t", {options.LEFT: "changed"}, unless=unless)
    assert io.look("t", (options.LEFT,)).values == ["changed"]


@pytest.mark.on("tmux")
def test_what_others_put_into_an_option_does_not_shift_the_values(control: Control):
    control.new("t", ("cat",))
    control.machine.transport.run([("set-option", "-t", "=t:", options.LEFT, "a\tb\nc")])
    looked = control.machine.io.look("t", ("session_name", options.LEFT, "pane_dead"), [(), ("-J",)])
    assert looked.values == ["t", "a\tb\nc", "0"]
    assert len(looked.captures) == 2


@pytest.mark.on("tmux")
def test_the_transport_to_a_pane_of_another_server_changes_nothing_there(control: Control, person: Person):
    before = person.everything()
    transport = control.reach(person.target("work"))[0].machine.transport
    assert transport.run([("display-message", "-p", "there")]) == b"there\n"
    for refused in (transport.run, transport.create):
        with pytest.raises(Denied) as caught:
            refused([("display-message", "-p", "there"), ("set-option", "-g", "@new", "1")])
        assert caught.value.reason == "foreign"
    assert person.everything() == before
