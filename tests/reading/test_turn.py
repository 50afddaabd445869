"""What programs tell of their turns, in the forms there are: paths into JSON, events, and transcripts however cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tmuxctl.program_profile import HookEventRule, Hooks, Transcript
from tmuxctl.reading.answers import transcripts
from tmuxctl.reading.answers.transcripts import TranscriptAnswer, find_answer, find_values, matches
from tmuxctl.untrusted import JSON_LIMIT
from tmuxctl.value import changed

DATA: dict[str, Any] = {
    "a": {"b": "x", "n": 3},
    "list": [{"b": 1}, {"b": 2, "c": "y"}, "no map"],
    "words": ["one", "two"],
    "text": "all of it",
    "deep": [[1, 2], [3]],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("text", ["all of it"]),
        ("a.b", ["x"]),
        ("list[].b", [1, 2]),
        ("list[].c", ["y"]),
        ("words[-1]", ["two"]),
        ("words[0]", ["one"]),
        ("words[2]", []),
        ("words[-3]", []),
        ("list[1].c", ["y"]),
        ("text[].text", ["all of it"]),
        ("text[].type", ["text"]),
        ("text.more", []),
        ("a[0]", []),
        ("none", []),
        ("none.b", []),
        ("a.none[].x", []),
    ],
)
def test_a_path_leads_to_what_stands_there(path: str, found: list[Any]) -> None:
    assert find_values(DATA, path) == found


@pytest.mark.parametrize("data", [None, 3, "text", [], [1], True, {"a": None}])
def test_a_path_into_something_else_leads_nowhere(data: Any) -> None:
    assert find_values(data, "a.b[].c") == []


def test_a_path_that_reaches_too_much_leads_nowhere() -> None:
    many = {"list": [{"b": 1}] * 100}
    assert find_values(many, "list[].b") == [1] * 100
    assert find_values({"list": [1] * (transcripts.VALUES_LIMIT + 1)}, "list[]") == []


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        ({}, True),
        ({"a.b": "^x$"}, True),
        ({"a.b": "^y$"}, False),
        ({"a.n": "^3$"}, True),
        ({"a.b": "x", "text": "it$"}, True),
        ({"a.b": "x", "text": "^it"}, False),
        ({"none": ""}, False),
        ({"words[]": "^two$"}, True),
    ],
)
def test_data_is_told_by_what_stands_in_it(where: dict[str, str], fits: bool) -> None:
    assert matches(DATA, where) is fits


# events

TOLD = Hooks(
    events=(
        HookEventRule(
            "Stop", "stop", {"type": "^turn$"}, text="said.text", input="given", transcript="path", tokens="use[].n"
        ),
        HookEventRule("Stop", "failure", text="error"),
        HookEventRule("Begin", "submit"),
    )
)


def event(name: str, **data: Any) -> transcripts.HookEvent | None:
    return transcripts.parse_event(name, json.dumps(data).encode(), TOLD)


def test_an_event_holds_what_its_profile_names() -> None:
    found = event("Stop", type="turn", said={"text": "hello"}, given="ask", path="/x", use=[{"n": 2}, {"n": 5}])
    assert found is not None
    assert (found.means, found.text, found.input, found.transcript, found.tokens) == ("stop", "hello", "ask", "/x", 7)


def test_of_several_events_of_a_name_the_first_that_fits_counts() -> None:
    found = event("Stop", type="other", error="no model")
    assert found is not None
    assert (found.means, found.text, found.input, found.tokens) == ("failure", "no model", None, None)


def test_an_event_the_profile_does_not_know_is_none() -> None:
    assert event("stop", type="turn") is None
    assert event("", type="turn") is None


HOSTILE = {
    "nothing": b"",
    "blanks": b" \n",
    "no JSON": b"{'said': 1}",
    "cut": b'{"error": "half',
    "no text of any encoding": b"\xff\xfe\x00{",
    "nested without end": b"[" * 200_000,
    "nested and closed": b'{"error":' * 100_000 + b"1" + b"}" * 100_000,
    "a number without end": b'{"error": ' + b"9" * 100_000 + b"}",
    "not a number": b'{"error": NaN}',
    "no map": b'["error"]',
    "a null": b"null",
    "other kinds": b'{"type": 1, "said": ["x"], "error": {"text": 3}, "use": [{"n": true}, {"n": "4"}]}',
}


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_an_event_says_that_it_happened_whatever_comes_with_it(payload: bytes) -> None:
    found = transcripts.parse_event("Stop", payload, TOLD)
    assert found is not None
    assert (found.means, found.text, found.input, found.transcript, found.tokens) == ("failure", None, None, None, None)


# transcripts

LINES = Transcript(
    user={"type": "^user$"},
    agent={"type": "^agent$"},
    input="content[].text",
    text="content[].text",
    id="id",
    tokens="used.out",
)


def said(text: str, *, id: str = "1", tokens: int | None = None, kind: str = "agent") -> dict[str, Any]:
    used = {} if tokens is None else {"used": {"out": tokens}}
    return {"type": kind, "id": id, "content": [{"type": "text", "text": text}], **used}


def given(text: str) -> dict[str, Any]:
    return {"type": "user", "content": text}


def lines(*entries: dict[str, Any]) -> bytes:
    return "".join(json.dumps(entry) + "\n" for entry in entries).encode()


TALK = (given("ask"), said("answer", tokens=3))


def test_the_answer_to_an_input_is_what_was_said_behind_it() -> None:
    data = lines(given("before"), said("no"), *TALK, given("after"), said("no"))
    assert find_answer(data, LINES, "ask") == TranscriptAnswer("answer", 3)


def test_an_input_that_does_not_stand_there_has_no_answer() -> None:
    for data in (b"", lines(*TALK), lines(given("other"), said("x")), lines(said("ask"))):
        assert find_answer(data, LINES, "something else") is None


def test_an_input_without_an_answer_yet_has_none() -> None:
    assert find_answer(lines(given("ask")), LINES, "ask") is None
    assert find_answer(lines(given("ask"), given("more"), said("no")), LINES, "ask") is None


def test_of_the_same_input_twice_the_last_counts() -> None:
    assert find_answer(lines(given("ask"), said("one"), given("ask"), said("two")), LINES, "ask") == TranscriptAnswer(
        "two", None
    )
    assert find_answer(lines(given("ask"), said("one"), given("ask")), LINES, "ask") is None


def test_blanks_that_a_program_changed_make_no_other_input() -> None:
    assert find_answer(lines(given("a b\n\n c"), said("x")), LINES, " a  b\r\n c\n") == TranscriptAnswer("x", None)


def test_a_line_that_is_half_written_is_left_out() -> None:
    assert find_answer(lines(*TALK) + b'{"type": "agent", "id": "2", "conte', LINES, "ask") == TranscriptAnswer(
        "answer", 3
    )
    assert find_answer(b'tent": 1}\n' + lines(*TALK) + b"\xff\n\n[]\n3\n", LINES, "ask") == TranscriptAnswer(
        "answer", 3
    )


def test_a_message_that_stands_there_again_is_said_once() -> None:
    data = lines(given("ask"), said("answer", tokens=1), said("answer", tokens=9))
    assert find_answer(data, LINES, "ask") == TranscriptAnswer("answer", 9)


def test_a_message_in_several_entries_is_one() -> None:
    data = lines(given("ask"), said("one", tokens=2), said("two", tokens=2))
    assert find_answer(data, LINES, "ask") == TranscriptAnswer("one\ntwo", 2)


def test_what_was_said_before_an_action_is_no_part_of_the_answer() -> None:
    result = {"type": "user", "content": [{"type": "result", "out": "x"}]}
    data = lines(given("ask"), said("I look.", tokens=2), result, said("Done.", id="2", tokens=5))
    assert find_answer(data, LINES, "ask") == TranscriptAnswer("Done.", 7)


def test_entries_are_in_the_order_of_their_time() -> None:
    how = changed(LINES, time="at")
    data = lines({**said("answer"), "at": "2026-01-01T00:00:02Z"}, {**given("ask"), "at": "2026-01-01T00:00:01Z"})
    assert find_answer(data, how, "ask") == TranscriptAnswer("answer", None)
    assert find_answer(data, LINES, "ask") is None


def test_the_beginning_of_a_long_input_is_enough() -> None:
    text = "".join(f"word {number} " for number in range(1000))
    data = lines(given(text), said("answer"))
    assert find_answer(data, LINES, text[:2000]) == TranscriptAnswer("answer", None)
    assert find_answer(lines(given("ask more"), said("answer")), LINES, "ask") is None


@pytest.mark.parametrize(("length", "same"), [(499, False), (500, True), (501, True)])
def test_of_an_input_only_the_first_five_hundred_characters_may_be_kept(length: int, same: bool) -> None:
    assert transcripts.is_same_input("x" * 600, "x" * length) is same
    assert transcripts.is_same_input("x" * length, "x" * 600) is False
    assert transcripts.is_same_input("x" * 600, "x " * 30, kept=30) is True
    assert transcripts.is_same_input("x" * 600, "x " * 30, kept=31) is False


def test_a_whole_file_may_be_one_value() -> None:
    how = changed(LINES, form="json", items="talk[]")
    data = json.dumps({"talk": TALK}).encode()
    assert find_answer(data, how, "ask") == TranscriptAnswer("answer", 3)
    assert find_answer(data[:-3], how, "ask") is None
    assert find_answer(json.dumps(TALK).encode(), changed(how, items=None), "ask") == TranscriptAnswer("answer", 3)
    assert find_answer(b"[" * 200_000, how, "ask") is None
    assert find_answer(b"3", changed(how, items=None), "ask") is None


def test_a_transcript_may_be_larger_than_other_files() -> None:
    whole = changed(LINES, form="json", items=None)
    talk = (given("ask"), said("x" * (JSON_LIMIT + 1)), said("answer", id="2"))
    assert find_answer(lines(*talk), LINES, "ask") == TranscriptAnswer("answer", None)
    assert find_answer(lines(*talk[:2]), LINES, "ask") == TranscriptAnswer("x" * (JSON_LIMIT + 1), None)
    assert find_answer(json.dumps(talk).encode(), whole, "ask") == TranscriptAnswer("answer", None)


MARKDOWN = Transcript(
    form="markdown", user={"line": r"^#### (.*?) *$"}, skip=("^> ",), until=r"^> Tokens: (?P<tokens>[\d.]+k?)"
)

PAGE = """\
> begun

#### before

no

> Tokens: 9

#### ask
#### in two lines

The answer.

    set in

> a quotation
Its end.

> Tokens: 1.2k

#### after
"""


def test_a_page_of_markdown_is_read_by_its_lines() -> None:
    found = find_answer(PAGE.encode(), MARKDOWN, "ask\nin two lines")
    assert found == TranscriptAnswer("The answer.\n\n    set in\n\n> a quotation\nIts end.", 1200)
    assert find_answer(PAGE.encode(), MARKDOWN, "ask") is None
    assert find_answer(PAGE.encode(), MARKDOWN, "after") is None


def test_a_page_that_is_not_written_to_its_end_says_what_it_has() -> None:
    cut = PAGE[: PAGE.index("Its end")] + "half a li"
    assert find_answer(cut.encode() + b"\xe6", MARKDOWN, "ask in two lines") == TranscriptAnswer(
        "The answer.\n\n    set in\n\nhalf a li\ufffd", None
    )


SEVERAL = """\
#### ask

I look.

> Tokens: 5

> Applied the edit.
Done.
More.

> Tokens: 7
> Cost: nothing
"""


def test_of_several_answers_in_a_turn_the_last_counts_and_the_tokens_of_all() -> None:
    assert find_answer(SEVERAL.encode(), MARKDOWN, "ask") == TranscriptAnswer("Done.\nMore.", 12)
    without = SEVERAL.replace("\n> Applied the edit.\n", "")
    assert find_answer(without.encode(), MARKDOWN, "ask") == TranscriptAnswer("Done.\nMore.", 12)
    silent = SEVERAL.replace("Done.\nMore.\n", "")
    assert find_answer(silent.encode(), MARKDOWN, "ask") is None


def test_what_a_profile_drops_is_no_part_of_an_answer() -> None:
    dropping = changed(MARKDOWN, drop=("(?s)<think>.*?</think>",))
    page = "#### ask\n<think>\nWell.\n</think>Done.\n"
    assert find_answer(page.encode(), dropping, "ask") == TranscriptAnswer("Done.", None)


def test_a_page_of_which_no_line_is_known_to_be_typed_holds_no_answer() -> None:
    assert find_answer(PAGE.encode(), changed(MARKDOWN, user={}), "before") is None
