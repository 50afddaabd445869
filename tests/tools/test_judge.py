"""What a log must not say, and that the judge tells it; that a schedule is drawn and read back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.errors import NotFound
from tools.chaos.judge import MARGIN, judge
from tools.chaos.schedule import MACHINES, draw, read_log, schedule_of
from tools.chaos.worker import Untyped, read_result

Row = dict[str, Any]


def text(words: str, outcome: str = "done") -> Row:
    return {"row": "text", "session": "s", "text": words, "outcome": outcome, "said": ""}


def taken(*texts: str) -> Row:
    return {"row": "taken", "session": "s", "texts": list(texts)}


def action(outcome: str = "done", seconds: float = 1.0) -> Row:
    told = {"worker": "w", "kind": "send", "number": 1, "at": 0.0, "said": "", "timeout": 30.0}
    return {"row": "action", "outcome": outcome, "seconds": seconds, **told}


def stream(printed: str, *pieces: str, gap: bool = False, whole: bool = True) -> Row:
    found = [{"text": one, "gap": gap and number > 0} for number, one in enumerate(pieces)]
    return {"row": "stream", "session": "s", "printed": printed, "pieces": found, "whole": whole}


END = {"row": "end", "unhealed": []}


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([text("a"), taken()], "lost"),
        ([text("a"), text("b"), taken("b")], "lost"),
        ([text("a"), text("b"), text("", "died"), taken("b")], "lost"),
        ([text("a"), taken("a", "a")], "doubled"),
        ([text("a", "open"), taken("a", "a")], "doubled"),
        ([text("a", "not_done"), taken("a")], "untrue"),
        ([text("a"), taken("a", "A")], "altered"),
        ([text("a"), text("b"), taken("b", "a")], "order"),
        ([action("hang")], "hang"),
        ([action(seconds=30.0 + MARGIN + 1)], "hang"),
        ([action("untyped")], "untyped"),
        ([action("unsettled")], "unsettled"),
        ([action("wrong")], "wrong"),
        ([stream("abcd", "ab", "d")], "stream"),
        ([stream("abcd", "ab")], "stream"),
        ([stream("abcd", "ab", "x", gap=True)], "stream"),
        ([{"row": "leftover", "what": "a process"}], "leftover"),
        ([{"row": "end", "unhealed": ["s"]}], "unhealed"),
    ],
)
def test_what_must_not_be_is_told(rows: list[Row], word: str) -> None:
    assert [one.partition(":")[0] for one in judge([*rows, END])] == [word]


@pytest.mark.parametrize(
    "rows",
    [
        [text("a"), text("b"), taken("a", "b")],
        [text("a", "not_done"), text("b"), taken("b")],
        [text("a", "open"), text("b", "open"), taken("b")],
        [text("a"), text("b"), text("", "died"), text("", "renewed"), text("c"), taken("a", "c")],
        [action(seconds=30.0 + MARGIN - 1), action("refused"), action("died")],
        [stream("abcd", "ab", "cd"), stream("abcd", "ab", whole=False), stream("abcd", "a", "d", gap=True)],
    ],
)
def test_what_may_be_is_not_told(rows: list[Row]) -> None:
    assert judge([*rows, END]) == []


def test_a_run_that_did_not_end_is_told() -> None:
    assert judge([action()]) == ["end: the run did not come to its end"]


def test_a_seed_draws_the_same_again_and_another_one_something_else() -> None:
    assert draw(7, 60.0) == draw(7, 60.0)
    assert draw(7, 60.0).faults != draw(8, 60.0).faults
    assert draw(7, 60.0).actions != draw(8, 60.0).actions
    assert {one.worker.partition("-")[0] for one in draw(7, 60.0).actions} == set(MACHINES)


def test_the_schedule_of_a_log_is_that_of_its_run(tmp_path: Path) -> None:
    drawn = draw(7, 60.0)
    (tmp_path / "log").write_text(json.dumps({"row": "schedule", **drawn.to_json()}) + "\n" + json.dumps(END) + "\n")
    assert schedule_of(read_log(tmp_path / "log")) == drawn


def test_what_a_command_says_is_its_result_or_its_error() -> None:
    failed = {
        "session": "s",
        "ok": False,
        "exit": 7,
        "failed": 1,
        "steps": [{"result": None, "error": {"code": "unreachable"}}],
    }
    assert read_result(7, json.dumps(failed, separators=(",", ":")), "") == failed
    assert read_result(0, '{"session":"s"}', "") == {"session": "s"}
    error = {
        "code": "not_found",
        "reason": "no_session",
        "message": "no session 's'",
        "hint": "",
        "exit": 3,
        "details": None,
    }
    with pytest.raises(NotFound):
        read_result(3, "", json.dumps({"error": error}))
    for status, output in ((7, ""), (7, '{"session":"s"}'), (0, "")):
        with pytest.raises(Untyped):
            read_result(status, output, "killed")
