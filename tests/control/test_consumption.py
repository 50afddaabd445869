"""Whether the last input was read by the program, by one observation."""

from __future__ import annotations

import pytest
from reading.looks import KEYS, LINES, kernel, program, thread

from tmuxctl.control.observation.consumption import input_consumed
from tmuxctl.evidence import Kernel, LastMark, Tty
from tmuxctl.terminal.input.paste import LastInput


def typed(echo: str = "editor") -> LastInput:
    return LastInput("x", 100, 0, 0, 80, 24, False, echo, b"1+1\n", 10.0)


def waits(tty: Tty, *, name: str = "bash", inner: Kernel | None = None) -> Kernel:
    return kernel(program(name, thread("pselect6", alone=True, switches=9)), tty=tty)._replace(inner=inner)


@pytest.mark.parametrize("tty", [KEYS, LINES])
def test_what_was_delivered_and_is_not_unread_has_been_read(tty: Tty) -> None:
    assert input_consumed(typed(), 100, waits(tty), delivered=True)
    assert input_consumed(typed(), 100, waits(tty), delivered=False) is False
    # what is printed may be of earlier: it was on its way to the journal
    assert input_consumed(typed(), 150, waits(tty), delivered=False) is False
    assert input_consumed(typed(), 150, waits(tty._replace(unread=4)), delivered=True) is False


def test_a_shell_that_marked_what_came_after_the_input_has_read_it() -> None:
    busy = waits(KEYS._replace(unread=4))
    assert input_consumed(typed(), 150, waits(KEYS), LastMark("C", None, 120), delivered=False)
    assert input_consumed(typed(), 150, waits(KEYS), LastMark("B", None, 90), delivered=False) is False
    # the mark may be of the first of several lines
    assert input_consumed(typed(), 150, busy, LastMark("B", None, 120), delivered=True) is False


def test_behind_a_remote_wrapper_only_output_tells() -> None:
    """ssh reads what is typed at once, whatever the program on the other side does."""
    assert input_consumed(typed(), 100, waits(KEYS, name="ssh"), delivered=True) is None
    assert input_consumed(typed(), 101, waits(KEYS, name="ssh"), delivered=True)
    # where it leaves the terminal as it is, that echoes
    assert input_consumed(typed("tty"), 105, waits(LINES, name="ssh"), delivered=True) is None
    assert input_consumed(typed("tty"), 110, waits(LINES, name="ssh"), delivered=True)


@pytest.mark.parametrize(
    ("echo", "journal", "before", "consumed"),
    [
        ("editor", 100, None, None),
        ("editor", 101, None, True),
        # the terminal echoes before the program reads: the text, and Enter as two bytes
        ("tty", 101, None, None),
        ("tty", 107, None, None),
        ("tty", 108, None, True),
        ("tty", 101, 8, True),
        ("tty", 101, 9, None),
        ("none", 100, 9, None),
        ("none", 100, 8, True),
        ("none", 101, None, True),
    ],
)
def test_where_unread_bytes_are_not_counted_output_and_a_thread_that_woke_tell(
    echo: str, journal: int, before: int | None, consumed: bool | None
) -> None:
    seen = waits(KEYS._replace(unread=None))
    pid = seen.programs[0].pid
    switches = None if before is None else {(pid, seen.programs[0].threads[0].id): before}
    assert input_consumed(typed(echo), journal, seen, delivered=True, switches_before=switches) is consumed


def test_a_marked_shell_over_there_tells_by_its_next_mark_alone() -> None:
    seen = waits(KEYS._replace(unread=None))
    assert input_consumed(typed(), 150, seen, delivered=True, shell_marks=True) is None


def test_an_input_that_a_relay_has_still_to_pass_on_was_not_read() -> None:
    inner = waits(KEYS, name="python3")._replace(via="script", holder=7, masters=1)
    outer = kernel(program("script", thread("poll", switches=3), pid=7), tty=KEYS)._replace(inner=inner)
    inner = inner._replace(programs=(inner.programs[0]._replace(pid=8),))
    outer = outer._replace(inner=inner)
    assert input_consumed(typed(), 100, outer, delivered=True)
    unread = outer._replace(inner=inner._replace(tty=KEYS._replace(unread=1)))
    assert input_consumed(typed(), 100, unread, delivered=True) is False
    # `script` was just seen to wait, and runs now
    both = outer._replace(programs=(*outer.programs, program("make", "running", pid=9, foreground=False)))
    assert input_consumed(typed(), 100, both, delivered=True), "what else runs passes nothing on"
