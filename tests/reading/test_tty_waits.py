"""What one look of the kernel says of a terminal: who waits for its input, how, and through which programs input goes."""

from __future__ import annotations

from typing import Any

import pytest
from reading.looks import KEYS, LINES, SECRET, by_place, kernel, program, thread, unreadable

from tmuxctl.evidence import WCHAN, Kernel, Program, Thread, Tty
from tmuxctl.reading.evidence import tty_waits
from tmuxctl.reading.evidence.tty_waits import (
    NOT_WAITING,
    POLLING,
    READING,
    RUNNING,
    STOPPED,
    UNREADABLE,
    Foreground,
    TtyWait,
    assess_foreground,
)

TIMED = KEYS._replace(vmin=0, vtime=0.5)
"""A read that comes back after half a second."""


def assess(seen: Kernel) -> Foreground:
    found = assess_foreground(seen)
    assert found is not None
    return found


def placed(where: str, *, tty: Tty | None = LINES, sockets: int | None = 0, **known: Any) -> Kernel:
    """A program of which only the place in the kernel is known where its thread sleeps."""
    sleeps = Thread(100, "S", where, known.get("call"), known.get("tty_waits"))
    return kernel(program("p", sleeps, level=WCHAN, sockets=sockets))._replace(tty=tty)


@pytest.mark.parametrize(
    ("seen", "wait"),
    [
        (kernel(program("cat", "read")), READING),
        (kernel(program("cat", "preadv2")), NOT_WAITING),
        (kernel(program("cat", thread("preadv2", tty=True))), READING),
        (kernel(program("bash", "pselect6"), tty=KEYS), POLLING),
        (kernel(program("node", "epoll_wait"), tty=KEYS), POLLING),
        (kernel(program("cat", thread("read", tty=False))), NOT_WAITING),
        (kernel(program("less", "read"), tty=TIMED), POLLING),
        (kernel(program("python3", "running")), RUNNING),
        (kernel(program("dd", Thread(100, "D", "io_schedule"))), RUNNING),
        (kernel(program("cat", Thread(100, "I", "n_tty_read", "read", True))), READING),
        (kernel(program("cat", Thread(100, "Z", "", "read", True))), NOT_WAITING),
        # it has no file of this terminal open
        (kernel(program("cat", "read", holds=False)), NOT_WAITING),
        (unreadable("su"), UNREADABLE),
        (kernel(program("vim", Thread(100, "T"), state="T")), STOPPED),
        # one reads, another works
        (kernel(program("a", "running"), program("b", "read", pid=200)), READING),
        (kernel(program("a", "running"), program("b", "poll", pid=200), tty=KEYS), POLLING),
        (kernel(program("a", "wait4"), program("b", "running", pid=200)), RUNNING),
        (kernel(unreadable("su").programs[0], program("b", "wait4", pid=200)), UNREADABLE),
        (kernel(unreadable("su").programs[0], program("b", "running", pid=200)), RUNNING),
    ],
)
def test_a_terminal_is_waited_for_by_what_its_threads_do(seen: Kernel, wait: TtyWait) -> None:
    assert assess(seen).wait is wait
    assert assess(seen).waits is (wait in (READING, POLLING))


@pytest.mark.parametrize(
    ("seen", "wait"),
    [
        (placed("wait_woken"), READING),
        (placed("n_tty_read"), READING),
        (placed("wait_woken.constprop.0"), READING),
        (placed("wait_woken", tty=TIMED), POLLING),
        # a program with sockets may read one of these
        (placed("wait_woken", sockets=1), NOT_WAITING),
        (placed("wait_woken", sockets=None), NOT_WAITING),
        (placed("wait_woken", sockets=1, tty=KEYS), POLLING),
        (placed("wait_woken", sockets=1, tty=SECRET), READING),
        (placed("wait_woken", sockets=1, tty=None), NOT_WAITING),
        (placed("wait_woken", tty=None), READING),
        (placed("wait_woken", call="restart_syscall"), READING),
        (placed("wait_woken", call="restart_syscall", tty_waits=False), NOT_WAITING),
        (placed("do_poll"), NOT_WAITING),
        (placed("do_poll", tty=KEYS), POLLING),
        (placed("poll_schedule_timeout.constprop.0", tty=KEYS), POLLING),
        (placed("do_poll", tty=None), NOT_WAITING),
        (placed("do_poll", call="restart_syscall", tty_waits=True), POLLING),
        (placed("do_poll", call="restart_syscall", tty_waits=False, tty=KEYS), NOT_WAITING),
        (placed("pipe_read", tty=KEYS), NOT_WAITING),
        (placed(""), UNREADABLE),
        (placed("0"), UNREADABLE),
        (placed("?"), UNREADABLE),
        (placed("", call="restart_syscall"), UNREADABLE),
        (placed("", call="futex"), NOT_WAITING),
    ],
)
def test_where_only_the_place_is_known_it_tells_less(seen: Kernel, wait: TtyWait) -> None:
    assert assess(seen).wait is wait


@pytest.mark.parametrize(
    ("seen", "may_wait"),
    [
        (placed("do_poll"), True),
        (placed("wait_woken", sockets=1), True),
        (placed("wait_woken", sockets=1, call="restart_syscall"), True),
        (placed("wait_woken", sockets=1, call="futex"), False),
        (placed("pipe_read"), False),
        (kernel(program("p", Thread(100, "S", "do_poll"), level=WCHAN, holds=False)), False),
        (kernel(program("p", Thread(100, "S", "do_poll"), level=WCHAN, foreground=False)), False),
        (kernel(program("p", Thread(100, "S", "do_poll", tty=False), level=WCHAN)), False),
        (kernel(program("p", thread("poll", tty=False))), False),
    ],
)
def test_a_thread_may_wait_for_the_terminal_where_only_its_place_is_known(seen: Kernel, may_wait: bool) -> None:
    assert assess(seen).wait is NOT_WAITING
    assert assess(seen).may_wait is may_wait


def test_without_a_program_nothing_is_told() -> None:
    assert assess_foreground(None) is None
    assert assess_foreground(Kernel(None, 0, ())) is None


def test_the_foreground_is_told_with_who_waits_and_who_does_not() -> None:
    seen = kernel(
        program("make", thread("wait4", id=1), thread("futex", id=2), pid=1),
        program("cc", "running", pid=3),
        program("cc", "running", pid=4),
        program("as", thread("futex", id=5), Thread(6, "Z"), pid=5),
        clock=77,
    )
    found = assess(seen)
    assert (found.name, found.call, found.waiters, found.alone, found.certain) == ("make", "", (), False, True)
    assert (found.sleeps_in, found.running, found.clock) == (("wait4", "futex"), ("cc",), 77)
    assert (found.remote_wrapper, found.timeout, found.inward) == (None, None, False)
    assert assess(by_place(seen)).certain is False


def test_who_waits_is_told_with_its_call_its_timeout_and_what_else_it_waits_for() -> None:
    poll = thread("poll", alone=True, timeout=2.0, inward=True)
    found = assess(kernel(program("a", "wait4"), program("b", poll, pid=200), tty=KEYS))
    assert (found.name, found.call, found.alone, found.certain) == ("b", "poll", True, True)
    assert (found.timeout, found.inward) == (2.0, True)
    assert not assess(kernel(program("a", "read"), tty=LINES)).alone
    assert assess(placed("wait_woken")).call == "wait_woken"
    assert not assess(placed("wait_woken")).certain
    # a call that does not say what it waits for
    assert not assess(placed("do_poll", call="restart_syscall", tty_waits=None, tty=KEYS)).certain


def test_a_read_that_gives_up_has_the_timeout_of_the_terminal() -> None:
    alone = thread("read", alone=True)
    found = assess(kernel(program("a", alone), tty=TIMED))
    assert (found.wait, found.alone, found.timeout) == (POLLING, False, 0.5)
    assert assess(kernel(program("a", alone), tty=KEYS)).timeout is None
    assert assess(kernel(program("a", alone), tty=KEYS)).alone
    # a terminal that takes lines has none
    assert assess(kernel(program("a", "read"), tty=TIMED._replace(canonical=True))).timeout is None
    assert assess(kernel(program("a", "read"), tty=TIMED._replace(canonical=True))).wait is READING
    assert assess(placed("wait_woken", tty=TIMED)).timeout == 0.5
    assert assess(kernel(program("a", thread("poll", timeout=9.0)), tty=TIMED)).timeout == 9.0


def test_only_a_secret_is_typed_where_lines_are_taken_and_not_shown() -> None:
    for tty, hides in ((LINES, False), (KEYS, False), (SECRET, True)):
        assert assess(kernel(program("sudo", "read"), tty=tty)).hides_input is hides
    assert not assess(placed("wait_woken", tty=None)).hides_input


# Remote wrappers


def test_a_remote_wrapper_in_raw_mode_polls_even_where_it_reads() -> None:
    found = assess(kernel(program("ssh", "read"), tty=KEYS))
    assert (found.wait, found.remote_wrapper, found.name) == (POLLING, "ssh", "ssh")
    # before the connection it asks for a passphrase
    asks = assess(kernel(program("ssh", "read"), tty=SECRET))
    assert (asks.wait, asks.remote_wrapper) == (READING, None)
    # another program reads as well
    both = assess(kernel(program("ssh", "read"), program("cat", "read", pid=200), tty=KEYS))
    assert (both.wait, both.remote_wrapper) == (READING, None)
    listed = assess(kernel(program("cat", "poll"), program("ssh", "read", pid=200), tty=KEYS))
    assert (listed.wait, listed.remote_wrapper, listed.name) == (POLLING, "ssh", "ssh")


def test_a_remote_wrapper_whose_server_waits_for_the_keys_polls() -> None:
    sleeps = program("tmux: client", thread("poll", tty=False))
    found = assess(kernel(sleeps, tty=KEYS))
    assert (found.wait, found.waiters, found.remote_wrapper, found.call) == (POLLING, (), "tmux: client", "")
    assert assess(kernel(sleeps, tty=LINES)).wait is NOT_WAITING
    assert assess(kernel(sleeps)._replace(tty=None)).wait is NOT_WAITING
    assert assess(kernel(sleeps._replace(foreground=False), tty=KEYS)).wait is NOT_WAITING
    assert assess(kernel(program("agent", "wait4"), tty=KEYS)).wait is NOT_WAITING


# Stopped


@pytest.mark.parametrize(
    ("states", "stopped"),
    [
        ("T", True),
        ("t", True),
        ("TT", True),
        ("TS", True),
        ("TI", True),
        ("TZ", True),
        ("tS", False),
        ("S", False),
        ("Z", False),
        ("X", False),
    ],
)
def test_a_foreground_is_stopped_if_one_of_it_is_and_no_other_works(states: str, stopped: bool) -> None:
    programs = [program("p", Thread(pid, state), state=state, pid=pid) for pid, state in enumerate(states, 100)]
    assert (assess(kernel(*programs)).wait is STOPPED) is stopped
    # a program of which no thread is told counts as one
    alone = [one._replace(threads=()) for one in programs]
    assert (assess(kernel(*alone)).wait is STOPPED) is stopped
    away = [one._replace(foreground=False) for one in programs]
    assert assess(kernel(*away)).wait is not STOPPED


def test_a_program_of_which_no_thread_is_told_is_one_thread() -> None:
    assert assess(kernel(program("p", state="R")._replace(threads=(), state="R"))).wait is RUNNING
    assert assess(kernel(program("p")._replace(threads=(), state="S"))).wait is UNREADABLE


# Names


def test_the_most_telling_names_come_first() -> None:
    inner = kernel(program("bash", "wait4", pid=300), program("vim", "poll", pid=301), tty=KEYS)
    outer = kernel(
        program("sh", "wait4", pid=1),
        program("helper", "wait4", pid=2, foreground=False),
        program("script", "poll", pid=3),
        tty=KEYS,
        inner=inner,
    )
    assert tty_waits.list_program_names(outer) == ("vim", "bash", "script", "sh")
    assert tty_waits.list_program_names(None) == ()
    assert tty_waits.list_program_names(Kernel(None, 0, ())) == ()


# Inner terminals


def relay(via: str = "script", *, inner: Program | None = None, tty: Tty = KEYS, **known: Any) -> Kernel:
    """A program that holds an inner terminal, and listens to the outer one."""
    behind = kernel(inner or program("bash", "read", pid=300), tty=known.pop("inner_tty", LINES))
    behind = behind._replace(via=via, masters=known.pop("masters", 1))
    return kernel(program(via, known.pop("call", "poll"), **known), tty=tty, inner=behind)


def enters(seen: Kernel, *, alternate: bool = False, own: tuple[str, ...] = ()) -> bool:
    return tty_waits.enter_inner_terminals([seen], alternate=alternate, own=own) == [seen.inner]


def test_what_is_typed_goes_through_a_relay_to_the_inner_terminal() -> None:
    assert enters(relay("script"))
    assert enters(relay("ssh"))
    # whatever the terminals are
    assert enters(relay("script", tty=LINES), alternate=True)
    # one that treats the inner terminal as if it were the outer one
    assert enters(relay("wrap"))
    assert not enters(relay("wrap", tty=LINES))
    assert not enters(relay("wrap"), alternate=True)
    assert not enters(relay("wrap"), own=("wrap",))
    assert enters(relay("wrap"), own=("agent",))
    assert not enters(relay("vim"))


def test_an_inner_terminal_of_another_size_is_a_window() -> None:
    for outer, inner, whole in (
        ((80, 24), (80, 24), True),
        ((80, 24), (40, 24), False),
        ((80, 24), (0, 0), True),
        ((0, 0), (80, 24), False),
        (None, (80, 24), True),
        ((80, 24), None, True),
    ):
        seen = relay("wrap", tty=KEYS._replace(size=outer), inner_tty=LINES._replace(size=inner))
        assert enters(seen) is whole
    unknown = relay("wrap")
    assert unknown.inner is not None
    assert enters(unknown._replace(inner=unknown.inner._replace(tty=None)))


def test_nothing_is_passed_on_to_what_is_stopped_or_by_what_does_not_listen() -> None:
    assert not enters(relay(inner=program("bash", Thread(300, "T"), pid=300, state="T")))
    assert not enters(relay(masters=2))
    assert enters(relay(masters=0))
    assert not enters(relay(call="wait4"))
    # what it holds open is the outer terminal: the inner one is there for a password alone
    asking = program("sudo", "read", pid=300)
    outer = kernel(program("script", "poll"), asking, tty=KEYS, inner=relay(inner=asking).inner)
    assert not enters(outer)
    given_away = kernel(program("script", "poll"), asking._replace(holds=False), tty=KEYS, inner=outer.inner)
    assert enters(given_away)


def test_where_the_kernel_is_not_certain_a_raw_terminal_is_taken_for_one_that_is_listened_to() -> None:
    asleep = program("script", Thread(100, "S", "pipe_read"), level=WCHAN)
    inner = relay().inner
    assert enters(kernel(asleep, tty=KEYS, inner=inner))
    assert not enters(kernel(asleep, tty=LINES, inner=inner))
    hidden = kernel(*unreadable("su").programs, tty=LINES, inner=inner)
    assert enters(hidden)


def test_the_innermost_terminal_counts_and_earlier_looks_follow() -> None:
    innermost = kernel(program("cat", "read", pid=400))
    middle = relay()
    assert middle.inner is not None
    between = kernel(program("script", "poll", pid=300), tty=KEYS, inner=innermost._replace(via="script", masters=1))
    outer = middle._replace(inner=between._replace(via="script", masters=1))
    found = tty_waits.enter_inner_terminals([None, middle, outer], alternate=False)
    assert found == [None, None, innermost._replace(via="script", masters=1)]
    # an earlier look at which it listened is enough
    busy = relay(call="wait4")
    assert tty_waits.enter_inner_terminals([relay(), busy, busy, busy], alternate=False)[-1] == busy.inner
    assert tty_waits.enter_inner_terminals([relay(), busy, busy, busy, busy], alternate=False)[-1] == busy
    empty = busy._replace(inner=Kernel(None, 0, ()))
    assert tty_waits.enter_inner_terminals([empty], alternate=False) == [empty]


# Work


def threads(main: Thread, *others: Thread, waiter: Thread | None = None) -> Foreground:
    reader = waiter or thread("read", id=101)
    return assess(kernel(program("repl", main, reader, *others)))


def test_a_main_thread_works_unless_it_sleeps_as_event_loops_do() -> None:
    assert tty_waits.main_thread_works(threads(thread("clock_nanosleep")))
    assert tty_waits.main_thread_works(threads(thread("running")))
    assert tty_waits.main_thread_works(threads(Thread(100, "D", "futex_wait")))
    for call in ("futex", "poll", "epoll_wait", "rt_sigtimedwait"):
        assert not tty_waits.main_thread_works(threads(thread(call, tty=False)))
    assert not tty_waits.main_thread_works(threads(Thread(100, "S", "ep_poll.isra.0")))
    assert not tty_waits.main_thread_works(threads(Thread(100, "S")))
    # it reads itself, or is not known
    assert not tty_waits.main_thread_works(assess(kernel(program("repl", "read"))))
    assert not tty_waits.main_thread_works(
        assess(kernel(program("repl", thread("read", id=5), thread("running", id=6))))
    )
    assert not tty_waits.main_thread_works(
        assess(kernel(program("repl", thread("read", id=101), thread("read", id=100), thread("read", id=102))))
    )


def test_how_often_the_waiter_slept_is_known_where_it_was_seen() -> None:
    seen = kernel(program("a", "wait4"), program("b", thread("read", id=200, switches=7), pid=200))
    waiter = assess(seen).waiters[0]
    assert tty_waits.count_switches(seen, waiter) == 7
    assert tty_waits.count_switches(None, waiter) is None
    assert tty_waits.count_switches(kernel(program("a", "read")), waiter) is None
    assert tty_waits.count_switches(kernel(program("b", thread("read", id=201), pid=200)), waiter) is None


def test_the_share_of_a_processor_is_what_was_used_since_an_earlier_look() -> None:
    before = assess(kernel(program("a", cpu=100), program("b", cpu=50, pid=200)))
    now = assess(kernel(program("a", cpu=140), program("b", cpu=60, pid=200), program("new", cpu=99, pid=300)))
    assert tty_waits.processor_share(before, now, 0.5) == pytest.approx(1.0)
    assert tty_waits.processor_share(before, now, 0.5, 100) == pytest.approx(0.8)
    assert tty_waits.processor_share(before, now, 0.5, 200) == pytest.approx(0.2)
    assert tty_waits.processor_share(None, now, 0.5) == 0.0
    assert tty_waits.processor_share(before, now, 0.0) == 0.0
