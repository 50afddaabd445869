"""`Control.call`: what every surface uses. Rights, arguments, deadline and the caller's change of mind."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.errors import Denied, TmuxctlError, Usage

pytestmark = pytest.mark.on("memory")

NEEDS: dict[str, dict[str, dict[str, Any]]] = {
    "read": {"ls": {}, **{name: {"session": "t"} for name in ("show", "screen", "read", "log")}},
    "write": {
        "send": {"session": "t", "text": "x"},
        "keys": {"session": "t", "keys": ["x"]},
        "resize": {"session": "t", "size": "80x24"},
    },
    "create": {"new": {"name": "u", "command": ["cat"]}},
    "kill": {"kill": {"session": ["t"]}, "prune": {}},
}


@pytest.mark.parametrize("right", NEEDS)
def test_a_caller_may_do_only_what_it_has_the_right_to(control: Control, right: str) -> None:
    control.new("t", LINES)
    others = [one for one in NEEDS if one != right]
    for name, arguments in NEEDS[right].items():
        with pytest.raises(Denied) as refused:
            control.call(name, arguments, rights=others)
        assert refused.value.reason == "right"
        with pytest.raises(Denied):
            control.call(name, arguments, rights=())
    assert control.log("t").text == ""
    assert [one.name for one in control.ls().sessions] == ["t"]
    for name, arguments in NEEDS[right].items():
        control.call(name, arguments, rights=(right,))


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("nothing", {}, "bad_operation"),
        ("close", {}, "bad_operation"),
        ("__init__", {}, "bad_operation"),
        ("transport", {}, "bad_operation"),
        ("send", {}, "missing"),
        ("send", {"session": "t", "txt": "x"}, "bad_parameter"),
        ("send", {"session": 5, "text": "x"}, "bad_type"),
        ("send", {"session": "t", "text": "x", "enter": "yes"}, "bad_type"),
        ("send", {"session": "t", "text": "x", "enter": 1}, "bad_type"),
        ("keys", {"session": "t", "keys": ["x"], "repeat": "many"}, "bad_number"),
        ("keys", {"session": "t", "keys": ["x"], "repeat": True}, "bad_number"),
        ("keys", {"session": "t", "keys": [5]}, "bad_type"),
        ("keys", {"session": "t", "keys": {"x": 1}}, "bad_type"),
        ("wait", {"session": "t", "text": "x", "timeout": "soon"}, "bad_duration"),
        ("wait", {"session": "t", "text": "x", "timeout": -1}, "bad_duration"),
        ("wait", {"session": "t", "text": "x", "timeout": True}, "bad_duration"),
        ("ls", {"state": "happy"}, "bad_choice"),
        ("new", {"name": "u", "if_exists": "perhaps"}, "bad_choice"),
        ("new", {"name": "u", "size": "big"}, "bad_size"),
        ("new", {"name": "u", "command": ["a\ud800"]}, "bad_text"),
        ("new", {"name": "u", "env": {"A": 5}}, "bad_type"),
        ("new", {"name": "u", "history": -1}, "bad_number"),
        ("exec", {"session": "t", "command": ["x"], "max_bytes": "lots"}, "bad_bytes"),
    ],
)
def test_a_wrong_argument_is_told_by_its_name(
    control: Control, name: str, arguments: dict[str, Any], reason: str
) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage) as refused:
        control.call(name, arguments)
    assert refused.value.reason == reason
    assert refused.value.to_json()["exit"] == 2
    assert [one.name for one in control.ls().sessions] == ["t"]


def test_a_near_miss_is_told_what_was_meant(control: Control) -> None:
    with pytest.raises(Usage) as refused:
        control.call("screeen", {})
    assert "screen" in refused.value.hint
    with pytest.raises(Usage) as refused:
        control.call("send", {"session": "t", "txt": "x"})
    assert "text" in refused.value.hint


def test_plain_values_become_what_the_operation_takes(control: Control) -> None:
    control.call("new", {"name": "t", "command": ["cat"], "size": "90x20", "env": {"A": "b"}})
    control.call("send", {"session": "t", "text": "hello"})
    assert control.call("wait", {"session": "t", "text": "^hello$", "timeout": "20s"}).matched == "text"
    assert control.call("wait", {"session": "t", "text": "never", "timeout": "100ms"}).timed_out


@pytest.mark.night
def test_a_calls_deadline_bounds_a_wait(control: Control) -> None:
    control.new("t", LINES)
    assert control.call("wait", {"session": "t", "text": "never", "timeout": 3600}, timeout=0.2).timed_out
    assert control.call("wait", {"session": "t", "exit": True}, timeout=0.2).timed_out


def test_a_caller_that_gives_up_ends_the_wait_and_not_the_program(control: Control) -> None:
    control.new("t", LINES)
    gone = threading.Event()
    outcome: list[TmuxctlError] = []

    def call() -> None:
        try:
            control.call("wait", {"session": "t", "text": "never", "timeout": 3600}, cancelled=gone)
        except TmuxctlError as error:
            outcome.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0)
    gone.set()
    thread.join(20)
    assert outcome[0].reason == "cancelled"
    assert outcome[0].exit == 130
    control.send("t", b"alive")
    assert control.wait("t", text="alive").matched


@pytest.mark.parametrize("request_id", ["", "short", "x" * 65, "has space", "ünïcödéünï", "a*aaaaaaaa"])
def test_a_request_id_is_letters_and_digits(control: Control, request_id: str) -> None:
    with pytest.raises(Usage) as refused:
        control.call("ls", {}, request_id=request_id)
    assert refused.value.reason == "bad_id"
