"""An operation is declared once, and checked in one place."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Annotated, Literal

import pytest

from tmuxctl.config import RULES
from tmuxctl.control import Control
from tmuxctl.errors import Denied, Usage
from tmuxctl.operations import (
    Cancellation,
    Cancelled,
    Input,
    Seconds,
    SessionName,
    current,
    find,
    invoke,
    list_names,
    operation,
    to_json,
)
from tmuxctl.surfaces.cli.app import App
from tmuxctl.value import Value

SERVICES = [one.operations for one in App().services()]


class Result(Value):
    text: str
    data: bytes = b"raw"


class Service:
    @operation(right="write", group="Drive", examples=("say db hello",))
    def say(
        self,
        session: Annotated[SessionName, "who"],
        text: Input = b"",
        *,
        wait: Annotated[Seconds | None, "how long"] = None,
        mode: Literal["loud", "soft"] = "soft",
        words: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
    ) -> tuple[object, ...]:
        """Say it."""
        return (session, text, wait, mode, words, env, current().request_id)

    @operation(right="read", group="Look")
    def look(self) -> Result:
        """Look."""
        current().check()
        return Result("seen")

    def helper(self) -> None:
        """Not an operation."""


def test_only_what_is_declared_is_an_operation() -> None:
    assert list_names(Service) == ["say", "look"]
    with pytest.raises(Usage, match="no operation 'helper'"):
        find(Service, "helper")


def test_values_come_as_text_or_json() -> None:
    given = {"session": "db", "text": "ü", "wait": "500ms", "mode": "loud", "words": ["a"], "env": ["A=1=2"]}
    assert invoke(Service(), "say", given, request_id="abcdefgh") == (
        "db", "ü".encode(), 0.5, "loud", ("a",), {"A": "1=2"}, "abcdefgh"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "missing"),
        ({"session": "db", "txt": "a"}, "bad_parameter"),
        ({"session": 3}, "bad_type"),
        ({"session": "db", "text": "a\0b"}, "bad_text"),
        ({"session": "db", "text": "a\udc80"}, "bad_text"),
        ({"session": "db", "wait": "soon"}, "bad_duration"),
        ({"session": "db", "wait": -1}, "bad_duration"),
        ({"session": "db", "mode": "shrill"}, "bad_choice"),
        ({"session": "db", "env": ["A"]}, "bad_env"),
    ],
)
def test_wrong_arguments_are_usage_errors(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(Usage) as caught:
        invoke(Service(), "say", arguments)
    assert caught.value.reason == reason


class Elsewhere:
    """A service that drives the sessions of another one too."""

    def __init__(self, there: str = "here") -> None:
        self.there = there

    def reach(self, session: str) -> tuple[Elsewhere, str]:
        return Elsewhere("elsewhere"), session.removeprefix("tmux:")

    def carry_out(self, call: Callable[[], object], session: str, **how: object) -> object:
        return call()

    @operation(right="read", group="Look")
    def look(self, pane: Annotated[SessionName | None, "what to look at"] = None, *, again: bool = False) -> object:
        """Look."""
        return self.there, pane, again

    @operation(right="write", group="Sessions")
    def tell(self, text: str, *, session: SessionName = "none") -> object:
        """Tell."""
        return self.there, text, session


def test_the_first_argument_is_reached_where_its_type_is_that_of_a_session() -> None:
    here = Elsewhere()
    assert here.look("tmux:a", again=True) == here.look(pane="tmux:a", again=True) == ("elsewhere", "a", True)
    assert invoke(here, "look", {"pane": "tmux:a"}) == ("elsewhere", "a", False)
    assert here.look() == ("here", None, False)
    assert here.tell("tmux:a", session="tmux:b") == ("here", "tmux:a", "tmux:b")


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_called_a_session_has_the_type_of_one(service: type) -> None:
    parameters = [one for name in list_names(service) for one in find(service, name).parameters]
    assert [one for one in parameters if one.name == "session" and not one.kind.target] == []


@pytest.mark.parametrize("service", SERVICES)
def test_what_ends_a_wait_at_once_is_a_parameter_with_a_default(service: type) -> None:
    for one in (find(service, name) for name in list_names(service)):
        defaults = {parameter.name for parameter in one.parameters if not parameter.required}
        assert set(one.meta.waiting.unless if one.meta.waiting else ()) <= defaults, one.name


@pytest.mark.parametrize("service", SERVICES)
def test_a_value_that_may_be_left_out_is_told_from_the_next_word(service: type) -> None:
    flags = [one.flag for name in list_names(service) for one in find(service, name).parameters]
    assert [one for one in flags if bool(one.bare) != bool(one.value)] == []


def test_rights_are_checked_before_anything_else() -> None:
    with pytest.raises(Denied):
        invoke(Service(), "say", {"nonsense": 1}, rights=("read",))
    assert invoke(Service(), "look", {}, rights=("read",)) == Result("seen")


def test_a_cancellation_wakes_what_sleeps_even_if_that_begins_later() -> None:
    cancelled, woken = Cancellation(), list[str]()
    cancelled.wake_by(lambda: woken.append("before"))
    cancelled.set()
    cancelled.wake_by(lambda: woken.append("behind"))
    assert woken == ["before", "behind"]
    assert cancelled.is_set()


def test_a_cancelled_call_ends() -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        invoke(Service(), "look", {}, cancelled=cancelled)


def test_a_result_becomes_json_without_its_raw_bytes() -> None:
    assert to_json(Result("seen")) == {"text": "seen"}


def test_the_schema_names_types_defaults_and_what_is_required() -> None:
    schema = find(Service, "say").schema()
    assert schema["required"] == ["session"]
    assert schema["properties"]["mode"] == {"type": "string", "enum": ["loud", "soft"], "default": "soft"}


def test_a_default_that_is_a_setting_is_told_as_the_setting_has_it():
    told = {}
    for name in list_names(Control):
        for one in find(Control, name).parameters:
            if found := re.search(r"\(default: (\S+), the setting ([\w.]+)\)", one.help):
                assert found[1] == str(RULES[found[2]].default), f"{name} --{one.name}"
                told[name, one.name] = found[2]
    assert told["wait", "timeout"] == "wait.timeout"
    assert told["exec", "timeout"] == "wait.exec_timeout"
