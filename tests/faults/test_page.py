"""The page that names the test for each fault: none is left out, and every test it names is there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parent / "README.md").read_text()
TESTS = Path(__file__).resolve().parents[1]

NUMBERS = {
    *map(str, (*range(1, 68), *range(70, 77), *range(80, 91), *range(101, 114))),
    *(f"12{letter}" for letter in "abcdef"),
    *("38a", "49a", "59a", "59b"),
}
"""The faults that concern the core: of text, names, panes, the server, several at once, programs, processes, resources,
secrets, parsers, sandboxes; and those found by attack. Tens begin at a round number, so 68, 69 and 77 to 79 are none."""


def named(first: str) -> list[str]:
    """The numbers in the first cell of a row."""
    begin, _, end = first.partition("-")
    return [str(number) for number in range(int(begin), int(end) + 1)] if end else [first]


def test_no_fault_is_left_out() -> None:
    rows = re.findall(r"^\| (\S+) \| .* \| `.*` \|$", PAGE, re.MULTILINE)
    numbers = [number for first in rows for number in named(first)]
    assert sorted(numbers) == sorted(NUMBERS)


def test_every_test_it_names_is_there() -> None:
    found = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
    assert len(found) > len(NUMBERS)
    missing = [f"{file}::{test}" for file, test in found if not defines(TESTS / file, test)]
    assert not missing


def defines(file: Path, test: str) -> bool:
    return file.exists() and re.search(rf"^def {test}\(", file.read_text(), re.MULTILINE) is not None


def test_every_test_of_this_folder_is_on_it() -> None:
    """But for those named as a whole, the page, and what a test itself rests on."""
    here = Path(__file__).parent
    others = {"test_page", "test_service", "test_escapes", "test_harm"}
    defined = {
        f"faults/{file.name}::{test}"
        for file in here.glob("test_*.py")
        if file.stem not in others
        for test in re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE)
    }
    named_here = {f"{file}::{test}" for file, test in re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)}
    assert defined - named_here == {"faults/test_clock.py::test_the_clock_of_these_tests_jumps"}
