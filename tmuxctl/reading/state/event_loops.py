"""Whether a program that listens to the terminal works nonetheless: what runs beside it, at which pace it prints, and what
else could wake it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import inf

from tmuxctl.evidence import Look, Program
from tmuxctl.reading.evidence import programs, tty_waits
from tmuxctl.reading.evidence.tty_waits import NOT_WAITING, POLLING, Foreground
from tmuxctl.reading.state.situation import Situation
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern

BESIDE = 0.2
"""Of one processor: another process of the foreground that uses so much of it is at work."""

JUST_BEFORE = 0.15
"""Seconds: a process that began so short before the last output began with it."""

LONGEST_STEP = 1.5
"""Seconds: who waits longer for a key than this does not work in between."""

WAITS_FOR_CHILD = ("wait4", "waitid", "do_wait")
"""Calls and places in which a shell sleeps while its command runs."""

SHELL_COMMAND = Pattern(r"^:[^!]{0,40}!")
"""`:!make`, `:r !date`, `:%!sort`: a command for the shell, as vi and its like show it."""

SLEEPS = ("nanosleep", "clock_nanosleep", "hrtimer_nanosleep", "do_nanosleep")

NUMBER = Pattern(r"\d+")
COUNTS = Pattern(r"\d ?(?:of|/) ?\d|\d ?%")
"""`3 of 9`, `30 %`: a number that goes towards an end."""

STANDS = 0.3
"""Seconds without output and without a reader after which it is worth its cost to look through all processes for one."""

CLOCK = Pattern(r"\b\d{1,2}:\d{2}(?::\d{2})?\b")


def find_computing_program(situation: Situation, foreground: Foreground) -> str | None:
    """The name of another program of the foreground that uses the processor."""
    waiting = {program.program.pid for program in foreground.waiters}
    for program in foreground.programs:
        if program.foreground and program.pid not in waiting and situation.computes(program.pid, BESIDE):
            return program.name
    return None


def find_new_program(situation: Situation, foreground: Foreground) -> str | None:
    """The name of another program of the foreground that began after the last output, and goes on."""
    if foreground.clock is None or not situation.quiet_known:
        return None
    waiting = {program.program.pid for program in foreground.waiters}
    for program in foreground.programs:
        age = (foreground.clock - program.started) / tty_waits.TICKS
        if program.foreground and program.pid not in waiting and age < situation.quiet + JUST_BEFORE:
            return program.name
    return None


def find_editor_command(situation: Situation, foreground: Foreground) -> str | None:
    """The name of a program that an editor runs and waits for (`:!make`), while it listens only for a key that stops it.

    Helpers (a language server, a compiler in the background) are none: no shell waits for them, and no command for the
    shell stands on the screen. Nor is what runs on a terminal of its own, in a window of the editor.
    """
    if not foreground.waiters or not programs.is_editor(foreground.name):
        return None
    parents = {program.pid: program.parent for program in foreground.programs}
    inner = situation.look.kernel.inner if situation.look.kernel else None
    windows = {program.pid for program in inner.programs} if inner else set()
    below = {foreground.waiters[0].program.pid}
    for program in foreground.programs:
        if parents[program.pid] not in below or program.pid in windows:
            continue
        below.add(program.pid)
        places = [tty_waits.sleep_place(thread) for thread in program.threads]
        if programs.is_shell(program.name) and any(place.startswith(WAITS_FOR_CHILD) for place in places):
            return program.name
        if _program_age(program, foreground) < situation.quiet + JUST_BEFORE and _shows_shell_command(situation):
            return program.name
    return None


def _program_age(program: Program, foreground: Foreground) -> float:
    """Seconds since a program began; endless where no clock tells."""
    return inf if foreground.clock is None else (foreground.clock - program.started) / tty_waits.TICKS


def _shows_shell_command(situation: Situation) -> bool:
    """A command for the shell stands on one of the last rows."""
    return any(SHELL_COMMAND.search(row) for row in situation.text.bottom(2))


def prints_in_steps(situation: Situation) -> bool:
    """It prints about once a second, and more than a clock or its prompt."""
    return situation.activity.paced and not _only_clock_changed(situation) and not is_prompt_redrawn(situation)


def is_prompt_redrawn(situation: Situation) -> bool:
    """The last thing it printed was its prompt again, in the same place and with other numbers in it: `[3 jobs] >`."""
    left = situation.text.left
    if COUNTS.search(left) or not (situation.prompt or patterns.is_likely_prompt(patterns.extract_prompt(left) or "")):
        return False
    shape = _screen_shape(situation.look)
    run = list(takewhile(lambda look: _screen_shape(look) == shape, reversed(situation.looks)))
    return len({look.screen for look in run}) > 1


def _screen_shape(look: Look) -> tuple[int, str, tuple[str, ...]]:
    """The screen without its numbers and without what is typed behind the prompt."""
    rows = NUMBER.sub("0", look.screen).split("\n")
    prompt = NUMBER.sub("0", patterns.extract_prompt(look.left) or "")
    return look.y, prompt, tuple(rows[: look.y] + rows[look.y + 1 :])


def step_seconds(situation: Situation, foreground: Foreground) -> float:
    """How long it must be quiet, in seconds, because it waits only so long for a key: who prints each time such a wait
    ends is at work. Event loops that wake for other reasons do so by epoll."""
    timeout = foreground.timeout
    if timeout is None or timeout > LONGEST_STEP or foreground.call.startswith("epoll") or situation.full_screen:
        return 0.0
    return 0.0 if _only_clock_changed(situation) or is_prompt_redrawn(situation) else 1.3 * timeout + 0.1


def _only_clock_changed(situation: Situation) -> bool:
    """All that changed on the screen is the time of day."""
    screens = dict.fromkeys(look.screen for look in situation.looks)
    return len(screens) > 1 and len({CLOCK.sub("", screen) for screen in screens}) == 1


def has_sleeping_thread(situation: Situation, foreground: Foreground) -> bool:
    """It looks for a key every moment, after text that is not a prompt, while another thread of it sleeps as no event loop does."""
    if not step_seconds(situation, foreground) or not foreground.waiters:
        return False
    waiter = foreground.waiters[0]
    return any(
        thread.state == "S" and thread.id != waiter.thread.id and tty_waits.sleep_place(thread).startswith(SLEEPS)
        for thread in waiter.program.threads
    )


def find_sleeping_child(foreground: Foreground) -> str | None:
    """The name of a child in the foreground that sleeps for a time, where it is not certain that its parent listens: that may
    wait for the child's output as well."""
    if foreground.certain or not foreground.waiters:
        return None
    pid = foreground.waiters[0].program.pid
    for program in foreground.programs:
        if (
            program.foreground
            and program.parent == pid
            and all(tty_waits.sleep_place(thread).startswith(SLEEPS) for thread in program.threads)
        ):
            return program.name
    return None


def only_input_wakes(foreground: Foreground) -> bool:
    """Nothing but input can wake it: no timeout, no other process writes to what it waits for, and no thread of it works."""
    return foreground.inward and only_input_or_timer_wakes(foreground)


def only_input_or_timer_wakes(foreground: Foreground) -> bool:
    """Nothing but input and a timer can wake it: it is the only process, has no socket, and no other thread of it works."""
    if foreground.wait is not POLLING or len(foreground.programs) != 1:
        return False
    waiter = foreground.waiters[0]
    others = [thread for thread in waiter.program.threads if thread.id != waiter.thread.id]
    return waiter.program.sockets == 0 and all(
        thread.state == "S" and tty_waits.sleep_place(thread).startswith(tty_waits.EVENT_LOOPS) for thread in others
    )


def is_unanswered(looks: Sequence[Look]) -> bool:
    """For a while something is asked for, by the text or by the terminal's settings, and no program of the foreground
    listens: a process that does not belong to the terminal may, as a daemon that asks for a passphrase there."""
    foreground = looks[-1]
    if foreground.quiet is None or foreground.quiet < STANDS:
        return False
    since = list(takewhile(_asks_without_reader, reversed(looks)))
    return bool(since) and (len(since) == len(looks) or foreground.at - since[-1].at >= STANDS)


def _asks_without_reader(look: Look) -> bool:
    if look.kernel is None or look.kernel.inner is not None:
        return False
    pids = {program.pid for program in look.kernel.programs}
    own = tuple(program for program in look.kernel.programs if program.foreground or program.parent in pids)
    foreground = tty_waits.assess_foreground(look.kernel._replace(programs=own))
    if foreground is None or foreground.wait != NOT_WAITING:
        return False
    tty = foreground.tty
    return (tty is not None and not (tty.canonical and tty.echo)) or patterns.is_likely_question(
        patterns.read_screen(look).left
    )


def shows_prompt_or_question(situation: Situation) -> bool:
    """A prompt stands there, so that a process which began since may be of any kind."""
    left = situation.text.left
    return bool(situation.at_prompt) or patterns.ends_like_prompt(left) or patterns.names_answers(left)
