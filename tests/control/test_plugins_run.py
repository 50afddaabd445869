"""Plugins from end to end: variables from a file reach the program, and a lifetime ends it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, program

from tmuxctl.control import Control
from tmuxctl.errors import Failed, NotFound, TmuxctlError, Usage


def environment(control: Control, session: str) -> dict[str, str]:
    """The variables the program `about` was given."""
    found = control.wait(session, text=r"about ([0-9a-f\s]+)\.", since="screen").groups
    assert found
    told: dict[str, Any] = json.loads(bytes.fromhex(re.sub(r"\s", "", str(found[0]))))
    return dict(told["env"])


def test_variables_come_from_a_file(control: Control, place: Path) -> None:
    (place / "vars").write_text("# mine\nPLAIN=one two\nexport QUOTED=\"it's #{pid} $(touch x)\"\nLINES2='a\nb'\n")
    made = control.new("t", program("about"), env_file=str(place / "vars"), size="1000x60")
    env = environment(control, "t")
    assert env["PLAIN"] == "one two"
    assert env["QUOTED"] == "it's #{pid} $(touch x)"
    assert env["LINES2"] == "a\nb"
    assert made.plugins == ("env",)
    assert not (place / "x").exists()


@pytest.mark.on("memory", "tmux")
def test_a_single_variable_can_be_set_by_the_plugin(control: Control) -> None:
    control.new("t", program("about"), with_=("env:set=A=b",), size="1000x60")
    assert environment(control, "t")["A"] == "b"


def test_a_lifetime_ends_the_program(control: Control) -> None:
    made = control.new("t", LINES, lifetime="500ms", wait=False)
    assert made.plugins == ("timeout",)
    assert made.state.value == "starting"
    ended = control.wait("t", exit=True)
    assert (ended.matched, ended.signal) == ("exit", "TERM")


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_lifetime_ends_what_the_program_started_too(control: Control, until: Any) -> None:
    made = control.new("t", ("sh", "-c", "sleep 1000 & echo up; cat"), with_=("timeout=500ms",))
    assert control.wait("t", exit=True).matched
    until(lambda: not control.machine.transport.marked(made.id))
    assert "up" in control.screen("t").text


@pytest.mark.on("memory", "tmux")
def test_a_lifetime_that_is_none_is_refused(control: Control) -> None:
    for lifetime in ("0", "soon", "-1", "9999d"):
        with pytest.raises((Usage, Failed)):
            control.new("t", LINES, lifetime=lifetime)
    assert not control.ls().sessions


@pytest.mark.on("memory", "tmux")
def test_a_plugin_that_is_not_there_is_an_error_before_anything_starts(control: Control, place: Path) -> None:
    (place / "local.py").write_text("raise SystemExit('never loaded from the current folder')\n")
    for plugin in ("nosuch", "local", "./local", "../x", "env:nosuch=1"):
        with pytest.raises((NotFound, Usage)):
            control.new("t", LINES, with_=(plugin,))
    with pytest.raises(TmuxctlError):
        control.new("t", LINES, env_file="nowhere")
    assert not control.ls().sessions
    assert not control.machine.transport.files(control.machine.transport.home + "/sessions")
