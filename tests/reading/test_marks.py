"""Marks are found whole, once, by the real ESC byte and their token, however the bytes arrive."""

from __future__ import annotations

from itertools import pairwise

import pytest
from terminal.stretch import Stretch, stretch

from tmuxctl.reading.text.marks import ShellMark, find_last_mark, find_marks, scan_marks, undo_newlines

SAMPLE = (
    b"^[]133;C;tmuxctl=t\x07 typed \x1b]133;A;tmuxctl=t\x07$ \x1b]133;B;aid=1;tmuxctl=t\x1b\\ls\r\n\x1b]133;C\x07"
    b"\x1b]133;C;tmuxctl=t\x07one\r\n\x1b]133;D;9\x07\x1b]133;D;8;tmuxctl=other\x07\x1b]133;D;3;tmuxctl=t\x1b\\\x1b[m"
)


def test_marks_carry_letter_status_and_token() -> None:
    found = find_marks(SAMPLE)
    assert [(one.letter, one.status, one.token) for one in found] == [
        *(("A", None, "t"), ("B", None, "t"), ("C", None, None), ("C", None, "t")),
        *(("D", 9, None), ("D", 8, "other"), ("D", 3, "t")),
    ]
    assert SAMPLE[found[0].start : found[0].end] == b"\x1b]133;A;tmuxctl=t\x07"
    assert "".join(one.letter for one in find_marks(SAMPLE, "t")) == "ABCD"
    # a field of another's mark may hold anything
    (mark,) = find_marks(b"\x1b]133;D;7;\xff;tmuxctl=t\x07")
    assert (mark.status, mark.token) == (7, "t")
    assert find_marks(b"\x1b]133;D;x;tmuxctl=t\x07\x1b]133;D;\x07") == [
        ShellMark("D", None, 0, 20, "t"),
        ShellMark("D", None, 20, 29, None),
    ]


def test_only_a_status_of_digits_is_one() -> None:
    for field, status in ((b"0", 0), (b"255", 255), (b"1" * 10, 1111111111), (b"1" * 11, None), (b"-1", None)):
        assert find_marks(b"\x1b]133;D;" + field + b"\x07")[0].status == status
    assert find_marks("\x1b]133;D;\u0663\x07".encode())[0].status is None


def test_marks_that_are_none() -> None:
    for data in (
        b"\x1b]133;E\x07",
        b"\x1b]133;Ax\x07",
        b"\x1b]133;A;a\nb\x07",
        b"\x1b]133;A;" + b"x" * 300 + b"\x07",
        b"\x1b]1337;A\x07",
    ):
        assert find_marks(data) == []
        assert scan_marks(data).resume == len(data)


def test_any_cut_finds_each_mark_once() -> None:
    whole = find_marks(SAMPLE)
    for first in range(len(SAMPLE)):
        for second in range(first, len(SAMPLE) + 1):
            found, resume = scan_marks(SAMPLE[:first])
            more, resume = scan_marks(SAMPLE[:second], start=resume)
            found = found + more + scan_marks(SAMPLE, start=resume).marks
            assert found == whole


def test_a_stretch_grows() -> None:
    before = None
    for end in range(len(SAMPLE)):
        before = stretch(SAMPLE[:end], "t", before)
        assert before.resume >= end - 280
        if before.end is not None:
            break
    assert before is not None
    assert SAMPLE[before.start : before.end] == b"one\r\n\x1b]133;D;9\x07\x1b]133;D;8;tmuxctl=other\x07"
    assert before.status == 3
    assert before == stretch(SAMPLE, "t") == stretch(SAMPLE + SAMPLE, "t", before)


def test_the_shells_own_mark_ends_a_stretch() -> None:
    data = (
        b"\x1b]133;D;0;tmuxctl=s\x07\x1b]133;C;tmuxctl=t\x07^C\x1b]133;D;130;tmuxctl=s\x07\x1b]133;D;130;tmuxctl=t\x07"
    )
    found = stretch(data, "t", session="s")
    assert data[found.start : found.end] == b"^C"
    assert stretch(data[:-22], "t") == Stretch(found.start, None, None, len(data) - 22)


def test_a_long_stretch_is_searched_once() -> None:
    data = b"\x1b]133;C;tmuxctl=t\x07" + b"x\r\n" * 1_000_000
    seen = [stretch(data[: len(data) * part // 10], "t") for part in (1, 5, 10)]
    assert all(after.resume - before.resume > 1_000_000 for before, after in pairwise(seen))


def test_output_undoes_what_the_terminal_did() -> None:
    for written in (b"", b"\n", b"\r\n", b"\r\r\n\n\r", b"a\nb\r\n\0\xff\r", b"\r" * 5 + b"\n" * 5):
        assert undo_newlines(written.replace(b"\n", b"\r\n")) == written


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no mark",
        b"\x1b]133;A;tmuxctl=t\x07$ ls\x1b]133;C;tmuxctl=t\x07",
        b"\x1b]133;A;tmuxctl=t\x07$ \x1b]133;C;tmuxctl=other\x07",
        b"\x1b]133;A;tmuxctl=t\x07$ \x1b]133;C\x1b\\x",
        b"\x1b]133;D;3;tmuxctl=t\x1b\\ and \x1b]133;A;tmuxctl=t",
        b"\x1b]133;\x1b]133;D;0;tmuxctl=t\x07\x1b]133;\x1b]",
        b"\x1b]133;C;tmuxctl=other\x07",
    ],
)
def test_the_last_mark_is_the_last_of_all(data: bytes) -> None:
    marks = find_marks(data, "t")
    assert find_last_mark(data, "t") == (marks[-1] if marks else None)
