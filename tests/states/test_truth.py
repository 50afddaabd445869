"""What is true of a played scenario, from lines as the recorder writes them: bases, windows, and what is told wrong in them."""

from __future__ import annotations

from typing import Any

import pytest

from tools.states import told
from tools.states.scenarios import parse
from tools.states.truth import Session, Truth, read_record

READING = {"wait": "reading", "alone": True, "certain": True, "waiter": "sh read", "running": [], "programs": ["sh"]}
SLEEPING = {"wait": "not_waiting", "alone": False, "certain": True, "running": [], "programs": ["sleep"]}
FACTS = {"journal": 10, "group": 7, "unread": 0, "state": "S", "wchan": ""}
STEPS = [
    {"wait_for": r"\$"},
    {"type": "sleep 2"},
    {"key": "Enter"},
    {"expect": "working", "from": 0.3, "to": 1.8},
    {"expect": "input", "from": 2.4, "to": 4, "true_at": 2.0},
]
CALLED = 100.0
"""When Enter was pressed; it was read half a second later, as on a busy machine."""


def lines(*more: dict[str, Any], terminal: str = "/dev/pts/3") -> list[dict[str, Any]]:
    """A session whose program reads its Enter at 100.5 and works until 102.8, longer than it would alone."""
    about = {"session": "s"}
    seen = [
        {"at": 90.0, **about, "facts": FACTS},
        {"at": 90.0, **about, "kernel": {**READING, "unread": 0, "terminal": terminal}},
        {"at": 99.9, "read": terminal},
        {"at": 100.001, **about, "facts": {**FACTS, "unread": 1}},
        {"at": 100.5, "read": terminal},
        {"at": 100.51, **about, "facts": {**FACTS, "group": 8}},
        {"at": 100.55, **about, "kernel": {**SLEEPING, "unread": 0, "terminal": "/dev/pts/3"}},
        {"at": 102.8, **about, "kernel": {**READING, "unread": 0, "terminal": "/dev/pts/3"}},
    ]
    return sorted([*seen, *more], key=lambda line: float(line["at"]))


def session(recorded: list[dict[str, Any]]) -> Session:
    steps = [
        {"number": 0, "called": 90.0, "returned": 92.0, "journal": 10, "settled": True},
        {"number": 1, "called": 99.8, "returned": 99.85},
        {"number": 2, "called": CALLED, "returned": CALLED + 0.01},
        {"number": 3, "called": 100.02, "returned": 102.5},
        {"number": 4, "called": 102.5, "returned": 106.0},
    ]
    played = {"terminal": "/dev/pts/3", "began": 90.0, "ended": 106.0, "steps": steps, "waits": []}
    scenario = parse({"id": "s", "run": "sh", "steps": STEPS})
    return Session(scenario, played, read_record(recorded))


def truths(recorded: list[dict[str, Any]]) -> tuple[Truth, Truth]:
    work, rest = session(recorded).truths()
    return work, rest


def tell(at: float, state: str, why: str = "") -> dict[str, Any]:
    return {"at": at, "told": "watch", "session": "s", "state": state, "kind": None, "why": why}


def test_work_begins_when_the_program_has_read_its_input() -> None:
    work, _ = truths(lines())
    assert (work.base, work.by, work.begun, work.typed) == (100.5, "read", 100.5, True)
    assert (work.begin, work.end) == pytest.approx((100.8, 102.3))


def test_a_program_that_opens_its_terminal_by_another_name_reads_too() -> None:
    recorded = [{**line, "read": "/dev/tty"} if "read" in line else line for line in lines()]
    work, _ = truths([*recorded, {"at": 100.2, "read": "/dev/tty"}])
    assert (work.base, work.by) == (100.5, "read"), "a read at which nothing changed here is another session's"


def test_an_input_for_which_nothing_waited_counts_from_the_first_change() -> None:
    recorded = [
        {**line, "kernel": {**line["kernel"], "wait": "not_waiting"}} if "kernel" in line else line for line in lines()
    ]
    work, _ = truths(recorded)
    assert (work.base, work.by) == (100.001, "change")


def test_an_input_that_comes_late_is_scored_from_then_and_for_as_long() -> None:
    _, rest = truths(lines())
    assert (rest.begin, rest.end) == pytest.approx((103.2, 104.8))


def test_idle_is_false_only_a_second_after_work_began_and_where_the_kernel_does_not_say_it() -> None:
    told_idle = [
        tell(95.0, "idle"),
        tell(100.6, "busy"),
        tell(101.2, "idle", "early"),
        tell(101.9, "busy"),
        tell(103.0, "idle"),
    ]
    window = next(one for one in told.score(session(lines(*told_idle)), []) if one.surface == "watch")
    figures = told.figures([window])
    assert window.delay == pytest.approx(0.1)
    assert figures.early_idle
    assert figures.false_idle
    assert figures.samples - figures.right == figures.early_idle + figures.false_idle
    assert [sample.at > 101.5 for sample in window.samples if sample.false_idle] == [True] * figures.false_idle

    waits = {"at": 101.2, "session": "s", "kernel": {**READING, "unread": 0, "terminal": "/dev/pts/3"}}
    recorded = lines(*told_idle, waits, {"at": 101.9, "session": "s", "kernel": {**SLEEPING, "unread": 0}})
    figures = told.figures(one for one in told.score(session(recorded), []) if one.surface == "watch")
    assert figures.unknown
    assert not figures.false_idle


def test_samples_in_a_gap_of_the_recorder_are_lost_and_counted() -> None:
    recorded = lines(tell(95.0, "idle"), tell(100.6, "busy"), {"at": 102.0, "gap": 0.5})
    figures = told.figures(one for one in told.score(session(recorded), []) if one.surface == "watch")
    assert 6 <= figures.lost <= 9
    assert not dict(told.must_hold("watch", figures))["at most 2 % of the samples unscored for the recorder"]
