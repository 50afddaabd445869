"""The rule for messages of commits."""

from __future__ import annotations

import pytest

from tools.commit_message import find_faults

BODY = "\n\nThe reason."


@pytest.mark.parametrize(
    "message",
    [
        f"Give servers of tests ports that nothing else can take{BODY}",
        f"Process no more than a line{BODY}",
        f"{'Fix'.ljust(72, 'x')}{BODY}\n# Please enter the commit message\n# ------ >8 ------\ndiff --git a b",
        "Merge branch 'workshop'",
        'Revert "A gate."',
    ],
)
def test_a_message_that_is_as_it_should_be(message: str) -> None:
    assert not list(find_faults(message))


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (f"{'Fix'.ljust(73, 'x')}{BODY}", "73 characters"),
        (f"fix the gate{BODY}", "capital letter"),
        (f"Fix the gate.{BODY}", "full stop"),
        (f"Fixed the gate{BODY}", "imperative"),
        (f"Fixes the gate{BODY}", "imperative"),
        (f"Fixing the gate{BODY}", "imperative"),
        ("Fix the gate\nas CI needs it", "second line"),
        ("Fix the gate", "reason"),
        ("Fix the gate\n\n# Please enter the commit message", "reason"),
        ("", "capital letter"),
    ],
)
def test_a_message_that_breaks_the_rule(message: str, fault: str) -> None:
    assert [found for found in find_faults(message) if fault in found]
