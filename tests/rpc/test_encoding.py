"""Results and errors of operations survive their way as JSON, and nothing else becomes one."""

from __future__ import annotations

import copy
import json
import types
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmuxctl.control import Control
from tmuxctl.errors import CLASSES, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import Session, Status
from tmuxctl.operations import Cancelled, list_names, read_result, to_json
from tmuxctl.results import Answer, Batch, BatchStep, CursorPosition, Output, Screen, Written
from tmuxctl.rpc.encoding import (
    TIMES,
    classes_of,
    decode,
    decode_any,
    decode_error,
    encode,
    encode_any,
    encode_error,
    field_kinds,
    result_classes,
)
from tmuxctl.value import Value

OPERATIONS = list_names(Control)

TEXT = st.text(st.characters(min_codepoint=0x20, exclude_categories=("Cc", "Cs")), max_size=8)
NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)
MOMENT = st.datetimes(min_value=datetime(1970, 1, 1)).map(lambda one: f"{one.isoformat(timespec='milliseconds')}Z")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


def instances(kind: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Values of an annotation, as the program makes them."""
    simple = {str: TEXT, bytes: st.binary(max_size=8), bool: st.booleans(), int: st.integers(), type(None): st.none()}
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return PLAIN | instances(Written)
    if kind is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if kind is str and name in TIMES:
        return MOMENT
    if kind in simple:
        return simple[kind]
    if origin in (Union, types.UnionType):
        return st.one_of([instances(part, name) for part in parts])
    if origin is tuple:
        return st.lists(instances(parts[0], name), max_size=2).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(TEXT, PLAIN if parts[1] is Any else instances(parts[1]), max_size=2)
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    return values(kind)


def values(kind: type[Value]) -> st.SearchStrategy[Any]:
    """Values of a class; a name of a session is one, and no session names another machine."""
    kinds = dict(field_kinds(kind))  # type: ignore[arg-type]  # a class is hashable
    named = {"session", "name", "id"} if kind is Session else {"session"}
    fields: dict[str, st.SearchStrategy[Any]] = {
        field: (NAME | st.none() if type(None) in get_args(of) else NAME) if field in named else instances(of, field)
        for field, of in kinds.items()
    }
    if kind is Session:
        fields["machine"] = st.none()
    if kind is Screen:
        # they are drawn where they are wanted
        fields["html"] = fields["svg"] = st.none()
    return st.builds(kind, **fields)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_result_of_an_operation_survives(operation: str) -> None:
    allowed = classes_of(Control, operation)
    assert allowed

    @settings(max_examples=25, deadline=None, database=None)
    @given(st.one_of([values(kind) for kind in allowed.values()]))
    def survives(result: Value) -> None:
        sent = json.loads(json.dumps(encode_any(result)))
        came = decode_any(sent, allowed, raw=True)
        assert came == result
        assert to_json(came) == to_json(result)
        assert encode_any(came) == sent

    survives()


@settings(max_examples=100, deadline=None, database=None)
@given(
    st.sampled_from(CLASSES),
    TEXT,
    st.from_regex(r"[a-z_]{1,12}", fullmatch=True).filter(lambda word: word != "cancelled"),
    TEXT,
    st.dictionaries(st.from_regex(r"d_[a-z]{1,6}", fullmatch=True), PLAIN, max_size=3),
    st.none() | TEXT,
)
def test_every_error_survives(
    kind: type[TmuxctlError], message: str, reason: str, hint: str, details: dict[str, Any], screen: str | None
) -> None:
    error = kind(message, reason=reason, hint=hint, **details)
    error.screen = error.session = screen
    came = decode_error(json.loads(json.dumps(encode_error(error))))
    assert type(came) is kind
    assert came.to_json() == to_json(error.to_json())
    assert (came.screen, came.session, came.exit) == (screen, screen, kind.exit)


def test_an_error_keeps_its_own_exit_status_and_what_was_done_before_it() -> None:
    error = Cancelled()
    done = Batch(
        "sh", False, 130, None, False, (BatchStep(1, "send", "done", 0, 0.1, Written("sh", "done", "a1", 3)),), 0.1
    )
    error.__dict__["tmuxctl_result"] = done
    came = decode_error(json.loads(json.dumps(encode_error(error))))
    assert isinstance(came, Cancelled)
    assert came.exit == 130
    assert read_result(came) == done


SCREEN = encode(Screen("sh", "text", 80, 24, CursorPosition(0, 0, True), False, "", None, None, None))

LIES = {
    "no object": [],
    "no text": {**SCREEN, "text": 3},
    "no number": {**SCREEN, "cols": "80"},
    "a truth for a number": {**SCREEN, "rows": True},
    "no word": {**SCREEN, "state": "dancing"},
    "nothing for something": {**SCREEN, "title": None},
    "a field is missing": {name: one for name, one in SCREEN.items() if name != "cols"},
    "a list for a value": {**SCREEN, "cursor": [1, 2]},
    "a name with a machine": {**SCREEN, "session": "other/sh"},
    "a name with an escape": {**SCREEN, "session": "sh\x1b[2J"},
    "lines are no lines": {**SCREEN, "scrollback": "text"},
    "half of a surrogate pair": {**SCREEN, "text": "a\ud83d"},
    "a byte that is no character": {**SCREEN, "title": "a\udcff"},
}

NO_TIMES = [
    "",
    "now",
    "-1",
    "2026-11-27",
    "2026-13-01T00:00:00Z",
    "2026-11-27T15:00:00",
    "2026-11-27T15:00:00Z\n",
    "٢" * 4 + "-11-27T15:00:00Z",
]


@pytest.mark.parametrize("lie", LIES)
def test_what_does_not_fit_is_told_as_a_bad_answer(lie: str) -> None:
    with pytest.raises(Unreachable) as caught:
        decode(Screen, LIES[lie])
    assert caught.value.reason == "bad_answer"


@pytest.mark.parametrize("half", [0xD83D, 0xDCFF], ids=hex)
def test_what_is_no_character_is_refused_wherever_it_stands(half: int) -> None:
    error = {"code": "failed", "message": "m"}
    for take in (
        lambda: decode_error({**error, "message": chr(half)}),
        lambda: decode_error({**error, "details": {"a": [{"b": chr(half)}]}}),
        lambda: decode_error({**error, "details": {chr(half): 1}}),
        lambda: decode_any(
            {"class": "Output", "value": {"session": chr(half), "text": "", "data": ""}}, result_classes()
        ),
    ):
        with pytest.raises(Unreachable) as caught:
            take()
        assert caught.value.reason == "bad_answer"


def test_a_name_of_a_file_that_is_not_utf8_survives_and_other_halves_are_replaced() -> None:
    session = Session("sh", "1234", argv=("cat", "\udcff", "\ud83d"), cwd="/\udcff", tags=("\udcff",))
    came = decode(Session, json.loads(json.dumps(encode(session))))
    assert (came.argv, came.cwd, came.tags) == (("cat", "\udcff", "\ufffd"), "/\udcff", ("\ufffd",))
    error = NotFound("no \ud83d", reason="no_session", hint="\udcff", path="\udcff")
    told = decode_error(json.loads(json.dumps(encode_error(error))))
    assert (told.message, told.hint, told.details) == ("no \ufffd", "\ufffd", {"path": "\ufffd"})


@pytest.mark.parametrize("field", ["created", "active"])
@pytest.mark.parametrize("text", NO_TIMES)
def test_a_time_is_one(field: str, text: str) -> None:
    sent = encode(Session("sh", "1234", created="2026-11-27T15:00:00Z"))
    assert decode(Session, sent).created
    with pytest.raises(Unreachable):
        decode(Session, {**sent, field: text})


def test_the_screen_that_the_lies_begin_with_is_one() -> None:
    assert decode(Screen, copy.deepcopy(SCREEN)).cols == 80


@pytest.mark.parametrize("data", [None, [], {}, {"message": 3}, {"message": "x", "details": []}, {"code": "usage"}])
def test_an_error_that_is_none_is_told_as_a_bad_answer(data: Any) -> None:
    with pytest.raises(Unreachable) as caught:
        decode_error(data)
    assert caught.value.reason == "bad_answer"


def test_a_result_of_another_operation_is_refused() -> None:
    sent = encode_any(Output("sh", "", "c1:1.1:0"))
    with pytest.raises(Unreachable):
        decode_any(sent, classes_of(Control, "screen"))
    with pytest.raises(Unreachable):
        decode_any({"class": "Value", "value": {}}, classes_of(Control, "screen"))


def test_a_session_of_yet_another_machine_is_refused() -> None:
    sent = encode(Session("sh", "1234"))
    assert decode(Session, sent) == Session("sh", "1234")
    with pytest.raises(Unreachable):
        decode(Session, {**sent, "machine": "web1"})


def test_an_error_cannot_say_that_it_comes_from_another_machine() -> None:
    sent = encode_error(Usage("no", machine="web1"))
    assert "machine" not in decode_error(sent).details


def test_text_for_readers_has_no_control_characters() -> None:
    evil = "a\x1b]52;c;aGk=\x07b\x9b2Jc\r\td\n"
    screen = decode(Screen, {**SCREEN, "text": evil, "title": evil, "ansi": evil})
    assert screen.text == screen.title == "a]52;c;aGk=b2Jc\td\n"
    coloured = decode(Screen, {**SCREEN, "ansi": f"\x1b[1;31mred\x1b[0m{evil}"})
    assert coloured.ansi == f"\x1b[1;31mred\x1b[0m{screen.text}"
    output = encode(Output("sh", evil, "c1:1.1:0", data=evil.encode()))
    assert decode(Output, output).text == screen.text
    assert decode(Output, output, raw=True).text == evil
    assert decode(Output, output).data == b""
    assert decode(Output, output, raw=True).data == evil.encode()
    error = decode_error({"message": evil, "code": "usage", "hint": evil, "details": {"a\x1b": [evil]}})
    assert "\x1b" not in f"{error.message}{error.hint}{error.details}"


def test_documents_that_another_machine_drew_are_left_out() -> None:
    for raw in (False, True):
        screen = decode(Screen, {**SCREEN, "html": "<script>", "svg": "<script>"}, raw=raw)
        assert (screen.html, screen.svg) == (None, None)


def test_fields_of_another_release_are_left_out_or_as_their_defaults() -> None:
    sent = encode(Answer("sh", "42", Status()))
    del sent["turn"]
    came = decode(Answer, {**sent, "mood": "good"})
    assert came.turn == 0
    assert came.answer == "42"
