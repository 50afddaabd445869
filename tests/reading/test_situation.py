"""What the rules look at, worked out from the looks: the foreground, its use of the processor, and what works beside it."""

from __future__ import annotations

from typing import Any

import pytest
from reading.looks import KEYS, LINES, SECRET, drawing, evidence, kernel, look, program, steady, thread

from tmuxctl.evidence import Kernel, Look, Program, Thread
from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.evidence.tty_waits import POLLING, READING, RUNNING
from tmuxctl.reading.state import event_loops
from tmuxctl.reading.state.event_loops import is_unanswered
from tmuxctl.reading.state.judging import judge
from tmuxctl.reading.state.situation import Situation, build_situation

SLEEPS = kernel(program("agent", thread("clock_nanosleep")))
AGENT = kernel(program("agent", "epoll_wait"), tty=KEYS)
WORKS = kernel(program("agent", "running"), tty=KEYS)


def watched(*seen: Kernel | None, every: float = 0.06, **known: Any) -> Situation:
    """The situation after one look at each of these."""
    looks = [look("text", one, **{"at": 10 + every * count, **known}) for count, one in enumerate(seen)]
    return build_situation(evidence(*looks), None)


# An event loop that has only woken


def test_an_event_loop_that_has_just_woken_still_waits() -> None:
    found = watched(AGENT, AGENT, AGENT, WORKS)
    assert found.foreground is not None
    assert (found.foreground.wait, found.blinked) == (POLLING, True)
    # two of the three looks before, and no longer ago
    assert watched(AGENT, WORKS, AGENT, WORKS).blinked
    assert watched(AGENT, SLEEPS, AGENT, SLEEPS).blinked
    assert not watched(AGENT, WORKS, WORKS, WORKS).blinked
    assert not watched(AGENT, AGENT, WORKS, WORKS, WORKS).blinked
    assert not watched(AGENT, AGENT, AGENT, WORKS, every=2.0).blinked
    assert not watched(AGENT, AGENT, AGENT, AGENT).blinked
    assert not watched(AGENT, AGENT, AGENT, None).blinked


def test_what_waits_for_keys_alone_or_reads_has_not_only_woken() -> None:
    alone = kernel(program("agent", thread("poll", alone=True)), tty=KEYS)
    assert not watched(alone, alone, alone, WORKS).blinked
    reads = kernel(program("agent", "read"), tty=KEYS)
    assert not watched(reads, reads, reads, WORKS).blinked
    # on the alternate screen it may wake to draw
    found = watched(reads, reads, reads, WORKS, alternate=True)
    assert found.foreground is not None
    assert (found.foreground.wait, found.blinked) == (READING, True)


def test_a_new_process_means_work() -> None:
    new = kernel(*WORKS.programs, program("cc", "running", pid=200), tty=KEYS)
    assert not watched(AGENT, AGENT, AGENT, new).blinked
    another = kernel(program("agent", "running", pid=200), tty=KEYS)
    assert not watched(AGENT, AGENT, AGENT, another).blinked
    both = kernel(program("agent", "epoll_wait"), program("helper", "futex", pid=200), tty=KEYS)
    assert watched(both, both, both, WORKS).blinked
    helped = kernel(program("agent", "running"), both.programs[1], tty=KEYS)
    assert watched(both, both, both, helped).blinked
    assert not watched(AGENT, both, both, helped).blinked
    assert not watched(AGENT, both, both, kernel(*both.programs, program("cc", "running", pid=300), tty=KEYS)).blinked


# Its own terminal, and that of another program


def test_a_program_of_the_profile_is_no_relay() -> None:
    inner = kernel(program("bash", "read", pid=300))._replace(via="wrap", masters=1)
    seen = steady("text", kernel(program("wrap", "poll"), tty=KEYS, inner=inner))
    names = [
        found.foreground.name
        for profile in (None, Profile(name="wrap", foreground=("wrap",)), Profile(name="wrap", argv0=("wrap",)))
        if (found := build_situation(seen, profile)).foreground
    ]
    assert names == ["bash", "wrap", "wrap"]


def test_a_prompt_of_a_shell_is_none_of_what_runs_in_it() -> None:
    shell = Profile(name="bash", foreground=("bash",), prompt=(Rule("p", r"\$ ?$", "cursor-line"),))
    for seen, at_prompt in (
        (kernel(program("bash", "read")), True),
        (kernel(program("python3", "read")), False),
        (kernel(program("python3", "running")), True),
        (kernel(program("ssh", "poll"), tty=KEYS), True),
        (None, True),
    ):
        assert build_situation(steady("a$ ", seen), shell).at_prompt is at_prompt
    other = Profile(name="repl", foreground=("python3",), prompt=shell.prompt)
    assert build_situation(steady("a$ ", kernel(program("node", "read"))), other).at_prompt


def test_the_marked_row_of_a_menu_is_no_prompt_of_an_agent() -> None:
    agent = Profile(name="agent", prompt=(Rule("input", "^❯ ", detail="agent"),))
    assert not build_situation(steady("❯ 1. Yes\n  2. No", AGENT, x=0, y=1), agent).at_prompt
    assert build_situation(steady("❯ 1. Yes", AGENT), agent).at_prompt
    plain = Profile(name="agent", prompt=(Rule("input", "^❯ "),))
    assert build_situation(steady("❯ 1. Yes\n  2. No", AGENT, x=0, y=1), plain).at_prompt


# The processor


def test_the_share_of_a_processor_is_that_of_the_last_moments() -> None:
    def used(*ticks: int, every: float) -> float:
        seen = [kernel(program("agent", "epoll_wait", cpu=cpu), tty=KEYS) for cpu in ticks]
        return watched(*seen, every=every).processor_share()

    assert used(0, 10, 20, 30, 40, every=0.125) == pytest.approx(0.8)
    assert used(0, 0, 0, 0, 0, 0, 0, 25, every=0.125) == pytest.approx(0.5)
    assert used(0, 90, every=0.1) == 0.0
    assert used(0, 18, every=0.25) == pytest.approx(0.72)
    assert used(0, 90, every=0.9) == 0.0
    assert used(7, every=0.1) == 0.0
    assert watched(None, None).processor_share() == 0.0


def test_the_quiet_of_a_waiter_is_since_it_woke() -> None:
    def quiet(*switches: int, known: float = 0.1) -> float:
        seen = [kernel(program("agent", thread("poll", switches=count)), tty=KEYS) for count in switches]
        return watched(*seen, every=0.25, quiet=known).waiter_quiet

    assert quiet(7, 7, 7, 7) == 0.75
    assert quiet(6, 7, 7, 7) == 0.5
    assert quiet(7, 6, 7, 7) == 0.25
    assert quiet(7, 7, 7, 7, known=3.0) == 3.0
    assert quiet(0, 0, 0, 0) == 0.1
    assert watched(WORKS, quiet=0.1).waiter_quiet == 0.1


# What works beside it


def beside(*programs: Program, clock: int | None = 10_000, **known: Any) -> Situation:
    """An event loop with these programs beside it."""
    seen = kernel(program("agent", "epoll_wait"), *programs, tty=KEYS, clock=clock)
    return build_situation(steady("text", seen, **known), None)


def new_program(situation: Situation) -> str | None:
    assert situation.foreground is not None
    return event_loops.find_new_program(situation, situation.foreground)


def test_a_process_that_began_after_the_last_output_is_new() -> None:
    # two seconds quiet: 200 ticks, and 15 for the one that printed
    for started, name in ((9_900, "cc"), (9_786, "cc"), (9_784, None), (1_000, None)):
        assert new_program(beside(program("cc", "futex", pid=200, started=started))) == name
    assert new_program(beside(program("cc", "futex", pid=200, started=9_900, foreground=False))) is None
    assert new_program(beside(program("cc", "futex", pid=200, started=9_900), clock=None)) is None
    assert new_program(beside(program("cc", "futex", pid=200, started=9_900), quiet=None)) is None
    assert new_program(beside(program("agent", "epoll_wait", pid=100, started=9_900))) is None


def test_a_child_that_sleeps_for_a_time_may_be_waited_for() -> None:
    def sleeping(*programs: Program, call: str | None = None) -> str | None:
        main = Thread(100, "S", "do_poll", call, True if call else None)
        seen = kernel(program("agent", main, level="wchan"), *programs, tty=KEYS)
        found = build_situation(steady("text", seen), None).foreground
        assert found is not None
        assert found.wait is POLLING
        return event_loops.find_sleeping_child(found)

    child = program("sleep", "clock_nanosleep", pid=200, parent=100)
    assert sleeping(child) == "sleep"
    assert sleeping(child, call="poll") is None
    assert sleeping(child._replace(parent=1)) is None
    assert sleeping(child._replace(foreground=False)) is None
    assert sleeping(program("cc", "clock_nanosleep", "futex", pid=200, parent=100)) is None
    assert sleeping() is None


def runs(*programs: Program, screen: str = "text\n:!make", **known: Any) -> str | None:
    """What an editor is found to run."""
    editor = program("vim", thread("read"))
    seen = kernel(editor, *programs, tty=KEYS, clock=known.pop("clock", 10_000), inner=known.pop("inner", None))
    situation = build_situation(steady(screen, seen, alternate=True, **known), Profile("vim", argv0=("vim",)))
    assert situation.foreground is not None
    return event_loops.find_editor_command(situation, situation.foreground)


def test_an_editor_runs_a_command_that_a_shell_waits_for_or_that_has_just_begun() -> None:
    shell = program("sh", "wait4", pid=200, parent=100)
    assert runs(shell) == "sh"
    assert runs(program("sh", "wait4", pid=200, parent=1)) is None
    assert runs(program("sh", "read", pid=200, parent=100)) is None
    make = program("make", "futex", pid=200, parent=100, started=9_900)
    assert runs(make) == "make"
    # it began long ago, or no command stands on the screen
    assert runs(make._replace(started=9_000)) is None
    assert runs(make, clock=None) is None
    assert runs(make, screen="text\n:make") is None
    assert runs(make, screen=":!make\na\nb") is None
    assert runs(make, screen=":!make\na") == "make"
    # of a child of a helper, and of what runs in a window of the editor
    helper = program("helper", "futex", pid=200, parent=100, started=1_000)
    assert runs(helper, program("sh", "wait4", pid=300, parent=200)) == "sh"
    window = kernel(program("sh", "wait4", pid=200, parent=100))._replace(via="vim")
    assert runs(shell, inner=window) is None


def woken_by(main: Thread, *others: Thread, **known: Any) -> tuple[bool, bool]:
    """Whether only input, and whether only input or a timer can wake a program."""
    more = known.pop("more", ())
    seen = kernel(program("agent", main, *others, **{"sockets": 0, **known}), *more, tty=KEYS)
    found = build_situation(steady("text", seen), None).foreground
    assert found is not None
    return event_loops.only_input_wakes(found), event_loops.only_input_or_timer_wakes(found)


def test_what_can_wake_a_program_is_seen_from_what_it_waits_for() -> None:
    waits = thread("poll", inward=True)
    assert woken_by(waits) == (True, True)
    assert woken_by(thread("poll")) == (False, True)
    assert woken_by(waits, thread("futex", id=101)) == (True, True)
    assert woken_by(waits, thread("clock_nanosleep", id=101)) == (False, False)
    assert woken_by(waits, Thread(101, "R", "futex", "futex")) == (False, False)
    assert woken_by(waits, sockets=1) == (False, False)
    assert woken_by(waits, sockets=None) == (False, False)
    assert woken_by(waits, more=(program("helper", "futex", pid=200),)) == (False, False)
    assert woken_by(thread("read", inward=True)) == (False, False)


def step(timeout: float | None, call: str = "poll", screen: str = "text", **known: Any) -> float:
    seen = kernel(program("agent", thread(call, timeout=timeout)), tty=KEYS)
    situation = build_situation(steady(screen, seen, **known), None)
    assert situation.foreground is not None
    return event_loops.step_seconds(situation, situation.foreground)


def test_who_waits_a_moment_for_a_key_may_work_in_between() -> None:
    assert step(1.0) == pytest.approx(1.4)
    assert step(1.5) == pytest.approx(2.05)
    assert step(1.6) == 0.0
    assert step(None) == 0.0
    assert step(1.0, "epoll_wait") == 0.0
    assert step(1.0, alternate=True) == 0.0
    assert step(1.0, visible=False) == 0.0


def screens(*rows: str, profile: Profile | None = None, **known: Any) -> Situation:
    seen = kernel(program("agent", thread("poll", timeout=1.0)), tty=KEYS)
    looks = [look(row, seen, at=10 + 0.1 * number, journal=number, **known) for number, row in enumerate(rows)]
    return build_situation(evidence(*looks), profile)


def waits_in_steps(situation: Situation) -> bool:
    assert situation.foreground is not None
    return event_loops.step_seconds(situation, situation.foreground) > 0


def test_a_clock_or_a_prompt_that_is_drawn_again_is_no_work() -> None:
    assert waits_in_steps(screens("10:15:01 text", "10:15:01 text"))
    assert not waits_in_steps(screens("10:15:01 text", "10:15:02 text"))
    assert waits_in_steps(screens("10:15:01 text", "10:15:02 more"))
    assert not waits_in_steps(screens("out\n[3 jobs] > ", "out\n[2 jobs] > "))
    assert waits_in_steps(screens("out\n[3 jobs] > ", "more\n[2 jobs] > "))
    assert waits_in_steps(screens("out\n[3 of 9] > ", "out\n[2 of 9] > "))
    assert waits_in_steps(screens("out\n[3 jobs] text", "out\n[2 jobs] text"))
    mine = Profile(name="mine", prompt=(Rule("p", r"jobs: ?$", "cursor-line"),))
    assert not waits_in_steps(screens("out\n3 jobs: ", "out\n2 jobs: ", profile=mine))
    assert event_loops.is_prompt_redrawn(screens("out\n[3 jobs] > ls", "out\n[2 jobs] > "))
    assert not event_loops.is_prompt_redrawn(screens("out\n[3 jobs] > ", "out\n(3 tasks) > "))
    assert event_loops.is_prompt_redrawn(screens("[3 jobs] > \nfooter", "[2 jobs] > \nfooter", x=11, y=0))
    assert not event_loops.is_prompt_redrawn(screens("[3 jobs] > \nfooter", "[2 jobs] > \nother", x=11, y=0))


def test_a_thread_that_sleeps_beside_one_that_looks_for_keys_is_work() -> None:
    def sleeps(*threads: Thread) -> bool:
        situation = build_situation(steady("text", kernel(program("agent", *threads), tty=KEYS)), None)
        assert situation.foreground is not None
        return event_loops.has_sleeping_thread(situation, situation.foreground)

    looks = thread("poll", timeout=0.1)
    assert sleeps(looks, thread("clock_nanosleep", id=101))
    assert not sleeps(looks, thread("futex", id=101))
    assert not sleeps(looks, Thread(101, "R", "", "nanosleep"))
    assert not sleeps(thread("poll"), thread("clock_nanosleep", id=101))


def test_what_prints_each_second_prints_in_steps_unless_it_is_a_clock() -> None:
    assert event_loops.prints_in_steps(build_situation(drawing("text", AGENT, every=1.0, seconds=5), None))
    assert not event_loops.prints_in_steps(build_situation(drawing("text", AGENT, every=0.3, seconds=5), None))


# Questions that no program of the foreground reads the answer to


def asked(*seen: Kernel | None, screen: str = "Passphrase: ", every: float = 0.1, **known: Any) -> list[Look]:
    return [look(screen, one, at=10 + every * number, **known) for number, one in enumerate(seen)]


def test_a_question_is_unanswered_once_it_stands_for_a_while_without_a_reader() -> None:
    sleeps = kernel(program("gpg", thread("read", tty=False)))
    reads = kernel(program("gpg", "read"))
    assert is_unanswered(asked(sleeps))
    assert is_unanswered(asked(sleeps, quiet=0.3))
    assert not is_unanswered(asked(sleeps, quiet=0.29))
    assert not is_unanswered(asked(sleeps, quiet=None))
    assert is_unanswered(asked(reads, sleeps, sleeps, sleeps, sleeps, sleeps))
    assert not is_unanswered(asked(reads, sleeps, sleeps, sleeps))
    assert not is_unanswered(asked(None))
    assert not is_unanswered(asked(sleeps._replace(inner=reads)))
    # what the terminal's settings ask for counts whatever the text is
    for tty, unanswered in ((SECRET, True), (KEYS, True), (LINES, False)):
        assert is_unanswered(asked(sleeps._replace(tty=tty), screen="text")) is unanswered
    # a child of the foreground that reads is no stranger
    child = program("pinentry", "read", pid=200, parent=100, foreground=False)
    assert not is_unanswered(asked(kernel(*sleeps.programs, child)))


def test_a_question_of_a_profile_counts_at_once_unless_the_program_has_just_worked() -> None:
    profile = Profile(name="agent", asking=(Rule("may", "^Go on", kind="approval"),))
    for before, rule in ((AGENT, "may"), (WORKS, None), (SLEEPS, None), (None, "may")):
        looks = [
            look("Go on?", seen, at=10 + 0.06 * number) for number, seen in enumerate((AGENT, AGENT, before, AGENT))
        ]
        assert judge(evidence(*looks), profile).rule == rule
    alone = evidence(look("Go on?", AGENT))
    assert judge(alone, profile).rule == "may"
    assert build_situation(evidence(look("", WORKS)), profile).foreground is not None
    assert [found and found.wait for found in watched(WORKS, AGENT).earlier_foregrounds] == [RUNNING]
