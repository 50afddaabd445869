"""What `explain` says of each piece of evidence: in words, since when, and for which state it argues."""

from __future__ import annotations

import pytest
from reading.looks import (
    KEYS,
    LINES,
    SECRET,
    by_place,
    drawing,
    evidence,
    kernel,
    look,
    marked,
    program,
    steady,
    thread,
)
from reading.looks import unreadable as unreadable_program

from tmuxctl.evidence import Evidence, Hook, Thread
from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.state.explanation import Argument, list_arguments

READS = kernel(program("python3", "read"))
SLEEPS = kernel(program("sleep", "clock_nanosleep"))
SSH = kernel(program("ssh", "poll"), tty=KEYS)
AGENT = Profile(
    name="agent",
    prompt=(Rule("input", "^❯ ?$", "cursor-line"),),
    continuation=(Rule("more", r"^\.\.\. ?$", "cursor-line"),),
    busy=(Rule("works", "^✻ [A-Z][a-z]+…", "bottom:6"),),
    asking=(Rule("may", "^Do you +want to", "bottom:6", kind="approval"),),
    title_busy="^⠋ ",
    title_idle="^✳ ",
)


def find_argument(source: str, seen: Evidence, profile: Profile | None = None) -> Argument:
    """What is told of one piece of evidence."""
    found = [argument for argument in list_arguments(seen, profile) if argument.source == source]
    assert len(found) == 1
    return found[0]


def test_an_end_is_told_with_its_status_or_signal() -> None:
    for about, words, state in (
        ({}, "the program runs", None),
        ({"dead": True, "status": 0}, "ended, status 0", "exited"),
        ({"dead": True}, "ended, how is not known", "exited"),
        ({"dead": True, "signal": "KILL"}, "ended, signal KILL", "exited"),
    ):
        found = find_argument("exit", steady("", SLEEPS, **about))
        assert (found.seen, found.age, found.state, found.used) == (words, 0.0, state, state == "exited")


@pytest.mark.parametrize(
    ("means", "state"), [("stop", "idle"), ("failure", "idle"), ("asking", "asking"), ("submit", "busy")]
)
def test_an_event_of_a_hook_is_told_with_its_age(means: str, state: str) -> None:
    found = find_argument("hook", steady("", READS, hook=Hook(means, 3.0)))
    assert (found.seen, found.age, found.state) == (f"{means} was its last report", 3.0, state)


def test_without_an_event_it_is_told_whether_there_could_be_one() -> None:
    none = find_argument("hook", steady("", READS))
    assert none == Argument("hook", "no hooks report its turns", None, None)
    none_yet = find_argument("hook", steady("", READS, about={"hooks": True}))
    assert none_yet == Argument("hook", "its hooks report turns, none so far", None, None)
    assert find_argument("shell-mark", steady("", READS)).seen == "the shell prints none"
    assert find_argument("shell-mark", steady("", READS, about={"marks": True})).seen == "none yet"


@pytest.mark.parametrize(
    ("letter", "status", "words", "state"),
    [
        ("A", None, "A: the prompt begins", "idle"),
        ("B", None, "B: the prompt is drawn", "idle"),
        ("C", None, "C: a command runs", "busy"),
        ("D", 7, "D: a command has ended with status 7", "idle"),
        ("D", 0, "D: a command has ended with status 0", "idle"),
        ("E", None, "E: unknown", "idle"),
    ],
)
def test_a_mark_is_told_by_what_it_means(letter: str, status: int | None, words: str, state: str) -> None:
    found = find_argument("shell-mark", steady("", READS, mark=marked(letter, status)))
    assert (found.seen, found.age, found.state) == (words, None, state)


LONG = "Do you want to " + "x" * 100

SCREENS = [
    ("asking-mark", "out", None, "no question on the screen", None),
    ("asking-mark", "Overwrite? [y/N] ", None, "confirm: Overwrite? [y/N]", "asking"),
    ("asking-mark", "Do you  want to go on?", AGENT, "rule may: Do you want to", "asking"),
    ("busy-mark", "out", None, "no busy sign at the bottom", None),
    ("busy-mark", "Working  (esc to interrupt)", None, "Working (esc to interrupt)", "busy"),
    ("busy-mark", "✻ Pondering…\n❯", AGENT, "busy sign works", "busy"),
    ("prompt", "out\n", None, "there is no text left of the cursor", None),
    ("prompt", "out", None, "left of the cursor: out", None),
    ("prompt", "me@box:~$ ", None, "left of the cursor: me@box:~$", "idle"),
    ("prompt", "me@box:~$ ls", None, "left of the cursor: me@box:~$ ls", "idle"),
    ("prompt", LONG, None, "left of the cursor: Do you want to " + "x" * 62 + "...", None),
    ("prompt", LONG[:80], None, f"left of the cursor: {LONG[:80]}", None),
    ("prompt", LONG[:81], None, f"left of the cursor: {LONG[:77]}...", None),
    ("prompt", "❯ ", AGENT, "rule input: ❯", "idle"),
    ("prompt", "... ", AGENT, "rule more: ...", "idle"),
]


@pytest.mark.parametrize(("source", "screen", "profile", "words", "state"), SCREENS)
def test_a_sign_on_the_screen_is_told_as_it_stands_there(
    source: str, screen: str, profile: Profile | None, words: str, state: str | None
) -> None:
    found = find_argument(source, steady(screen, READS, quiet=4.5), profile)
    assert (found.seen, found.age, found.state) == (words, 4.5, state)
    # no output was seen yet: since when is not known
    unseen = find_argument(source, steady(screen, READS, quiet=None), profile)
    assert (unseen.seen, unseen.age, unseen.state) == (words, None, state)


def test_a_prompt_that_the_cursor_does_not_stand_behind_is_told_by_its_rule() -> None:
    found = find_argument("prompt", steady("❯", READS, x=0), AGENT)
    assert (found.seen, found.state) == ("rule input: ❯", "idle")


@pytest.mark.parametrize(
    ("seen", "words", "age", "state"),
    [
        (None, "it shows no process here", None, None),
        (READS, "python3 blocked in read on the terminal", 0.0, "idle"),
        (kernel(program("agent", "poll"), tty=KEYS), "agent waits for the terminal (poll)", 0.0, "idle"),
        (SSH, "ssh behind ssh", 0.0, None),
        (kernel(program("make", "running"), program("cc", "running", pid=200)), "make, cc running, no process waits for the "
         "terminal", 0.0, "busy"),
        (SLEEPS, "sleep in clock_nanosleep, no process waits for the terminal", 0.0, "busy"),
        (kernel(program("a", "wait4"), program("a", "futex", pid=200)), "a in wait4, futex, no process waits for the "
         "terminal", 0.0, "busy"),
        (by_place(SLEEPS), "sleep in do_clock_nanosleep, no process waits for the terminal (wchan)", 0.0, "busy"),
        (kernel(program("vim", Thread(100, "T"), state="T")), "vim stopped", 0.0, "busy"),
        (kernel(program("zombie", Thread(100, "Z"), state="Z")), "zombie in another place, no process waits for the terminal",
         0.0, "busy"),
        (unreadable_program("su"), "su cannot be inspected (none)", 0.0, None),
    ],
)  # fmt: skip
def test_the_kernel_is_told_by_who_waits_for_what(
    seen: object, words: str, age: float | None, state: str | None
) -> None:
    found = find_argument("kernel", steady("", seen))  # type: ignore[arg-type]
    assert (found.seen, found.age, found.state) == (words, age, state)


def test_of_many_places_three_are_told() -> None:
    calls = [program(name, call, pid=pid) for pid, (name, call) in enumerate(zip("abcd", "wxyz", strict=True), 100)]
    found = find_argument("kernel", steady("", kernel(*calls)))
    assert found.seen.startswith("a, b, c, d in w, x, y, no process")


def test_the_pace_and_the_quiet_are_told_in_numbers() -> None:
    still = steady("out", READS, quiet=4.5)
    assert find_argument("activity", still) == Argument("activity", "0.0 updates a second", 4.5, None)
    assert find_argument("settle", still)[1:4] == ("quiet for 4.5 s", 4.5, "unknown")
    short = find_argument("settle", steady("out", READS, quiet=0.5))
    assert (short.seen, short.state) == ("quiet for 0.5 s", None)
    unknown = find_argument("settle", evidence(look("out", READS, quiet=None)))
    assert (unknown.seen, unknown.age, unknown.state) == ("quiet for at least 0.0 s", None, None)
    drawn = find_argument("activity", drawing("out", READS, every=0.12))
    assert (drawn.seen, drawn.state) == ("8.5 updates a second", "busy")


@pytest.mark.parametrize(
    ("title", "words", "state"),
    [("", "none", None), ("⠋ a  task", "⠋ a task", "busy"), ("✳ a task", "✳ a task", "idle"), ("task", "task", None)],
)
def test_a_title_argues_where_the_profile_knows_it(title: str, words: str, state: str | None) -> None:
    found = find_argument("title", steady("", READS, title=title), AGENT)
    assert (found.seen, found.age, found.state) == (words, None, state)
    assert find_argument("title", steady("", READS, title=title)) == Argument("title", words, None, None)


@pytest.mark.parametrize(
    ("tty", "words", "state"),
    [
        (LINES, "whole lines, echo on, nothing unread", None),
        (KEYS, "single keys, echo off, nothing unread", None),
        (SECRET, "whole lines, echo off, nothing unread", "asking"),
        (LINES._replace(unread=3), "whole lines, echo on, 3 typed bytes unread", "busy"),
    ],
)
def test_the_terminal_is_told_by_how_it_takes_input(tty: object, words: str, state: str | None) -> None:
    seen = kernel(program("cat", thread("read")), tty=tty)  # type: ignore[arg-type]
    found = find_argument("tty", steady("", seen))
    assert (found.seen, found.age, found.state) == (words, 0.0, state)
    assert find_argument("tty", steady("", None)) == Argument("tty", "cannot be read", None, None)
