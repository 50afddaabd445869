"""What commands print of results that another machine made up: nothing in them reaches the terminal as it is."""

from __future__ import annotations

import pytest

from tmuxctl.control import Control
from tmuxctl.model import Session, State, Status
from tmuxctl.operations import find
from tmuxctl.results import Batch, BatchStep, Event, Explained, Inbox, InboxMessage, Marked, Reason
from tmuxctl.surfaces.cli.printing import table
from tmuxctl.surfaces.cli.printing.output import Options
from tmuxctl.surfaces.cli.printing.show import Printer

HOSTILE = "\u202ea\nb\U000e0041"
"""Shows other text than there is, and begins another line."""


def test_a_session_is_told_line_by_line() -> None:
    told = table.facts(Session("far", "1234", incarnation=HOSTILE, cursor=HOSTILE, signal=HOSTILE), Options())
    assert not any(character in line for line in told for character in HOSTILE if not character.isascii())
    assert not any("\n" in line for line in told)


def test_an_explanation_without_a_status_is_told() -> None:
    status = Status(State.IDLE, detail=HOSTILE)
    reasons = (Reason(HOSTILE, HOSTILE, None, State.IDLE, used=True),)
    for one in (status, Status()):
        told = table.explained(Explained("far", one, HOSTILE, None, "", reasons))
        assert all(line.isprintable() for line in told)


def test_a_change_of_state_and_a_message_are_told_on_a_line_each(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    Printer(Options()).show(Event("2026-11-27T15:00:00Z", "far", Status(State.IDLE)))
    Printer(Options()).show(Inbox("far", (InboxMessage(HOSTILE, HOSTILE, HOSTILE, HOSTILE),)))
    told = capsysbinary.readouterr().out.decode()
    assert told.count("\n") == 2
    assert all(line.isprintable() for line in told.splitlines())


def test_steps_of_a_batch_are_told_whatever_they_gave(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    steps = (
        BatchStep(1, HOSTILE, HOSTILE, result=HOSTILE),
        BatchStep(2, "send", "failed", error={}),
        BatchStep(3, "send", "failed", error={"message": HOSTILE, "hint": 5}),
    )
    Printer(Options()).show(Batch("far", False, 1, 2, False, steps, 0.1))
    told = capsysbinary.readouterr()
    assert all(line.isprintable() for line in f"{told.out.decode()}{told.err.decode()}".splitlines())


def test_a_mark_and_tags_are_told_on_a_line_each(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    Printer(Options()).show(Marked("far", HOSTILE, HOSTILE, HOSTILE))
    Printer(Options(), meta=find(Control, "tag").meta).show(Session("far", "1234", tags=(HOSTILE,)))
    told = capsysbinary.readouterr().out.decode()
    assert told.count("\n") == 2
    assert all(line.isprintable() for line in told.splitlines())
