"""Whether a program that listens to the terminal works nonetheless: what runs beside it, at which pace it prints, and what
else could wake it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import inf

from tmuxctl.evidence import Look, Program
from tmuxctl.reading.evidence import programs, tty_waits
from tmuxctl.reading.evidence.tty_waits import POLLS, Says
from tmuxctl.reading.state.situation import Scene
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


def computes_beside(seen: Scene, now: Says) -> str | None:
    """The name of another program of the foreground that uses the processor."""
    waiting = {one.program.pid for one in now.waiters}
    for one in now.programs:
        if one.foreground and one.pid not in waiting and seen.computes(one.pid, BESIDE):
            return one.name
    return None


def begun_since(seen: Scene, now: Says) -> str | None:
    """The name of another program of the foreground that began after the last output, and goes on."""
    if now.clock is None or not seen.activity.told:
        return None
    waiting = {one.program.pid for one in now.waiters}
    for one in now.programs:
        age = (now.clock - one.started) / tty_waits.TICKS
        if one.foreground and one.pid not in waiting and age < seen.activity.quiet + JUST_BEFORE:
            return one.name
    return None


def command_of_editor(seen: Scene, now: Says) -> str | None:
    """The name of a program that an editor runs and waits for (`:!make`), while it listens only for a key that stops it.

    Helpers (a language server, a compiler in the background) are none: no shell waits for them, and no command for the
    shell stands on the screen. Nor is what runs on a terminal of its own, in a window of the editor.
    """
    if not now.waiters or not programs.is_editor(now.name):
        return None
    parents = {one.pid: one.parent for one in now.programs}
    inner = seen.look.kernel.inner if seen.look.kernel else None
    windows = {one.pid for one in inner.programs} if inner else set()
    below = {now.waiters[0].program.pid}
    for one in now.programs:
        if parents[one.pid] not in below or one.pid in windows:
            continue
        below.add(one.pid)
        places = [tty_waits.place(thread) for thread in one.threads]
        if programs.is_shell(one.name) and any(place.startswith(WAITS_FOR_CHILD) for place in places):
            return one.name
        if _age(one, now) < seen.activity.quiet + JUST_BEFORE and _command_line(seen):
            return one.name
    return None


def _age(program: Program, now: Says) -> float:
    """Seconds since a program began; endless where no clock tells."""
    return inf if now.clock is None else (now.clock - program.started) / tty_waits.TICKS


def _command_line(seen: Scene) -> bool:
    """A command for the shell stands on one of the last rows."""
    return any(SHELL_COMMAND.search(row) for row in seen.text.bottom(2))


def steps(seen: Scene) -> bool:
    """It prints about once a second, and more than a clock or its prompt."""
    return seen.activity.paced and not _only_a_clock(seen) and not prompt_redrawn(seen)


def prompt_redrawn(seen: Scene) -> bool:
    """The last thing it printed was its prompt again, in the same place and with other numbers in it: `[3 jobs] >`."""
    left = seen.text.left
    if COUNTS.search(left) or not (seen.prompt or patterns.alone_a_prompt(patterns.prompt_of(left) or "")):
        return False
    shape = _shape(seen.look)
    run = list(takewhile(lambda look: _shape(look) == shape, reversed(seen.looks)))
    return len({look.screen for look in run}) > 1


def _shape(look: Look) -> tuple[int, str, tuple[str, ...]]:
    """The screen without its numbers and without what is typed behind the prompt."""
    rows = NUMBER.sub("0", look.screen).split("\n")
    prompt = NUMBER.sub("0", patterns.prompt_of(look.left) or "")
    return look.y, prompt, tuple(rows[: look.y] + rows[look.y + 1 :])


def step_seconds(seen: Scene, now: Says) -> float:
    """How long it must be quiet, in seconds, because it waits only so long for a key: who prints each time such a wait
    ends is at work. Event loops that wake for other reasons do so by epoll."""
    timeout = now.timeout
    if timeout is None or timeout > LONGEST_STEP or now.call.startswith("epoll") or seen.full_screen:
        return 0.0
    return 0.0 if _only_a_clock(seen) or prompt_redrawn(seen) else 1.3 * timeout + 0.1


def _only_a_clock(seen: Scene) -> bool:
    """All that changed on the screen is the time of day."""
    screens = dict.fromkeys(look.screen for look in seen.looks)
    return len(screens) > 1 and len({CLOCK.sub("", screen) for screen in screens}) == 1


def idles_beside(seen: Scene, now: Says) -> bool:
    """It looks for a key every moment, behind what is no prompt, while another thread of it sleeps as no event loop does."""
    if not step_seconds(seen, now) or not now.waiters:
        return False
    waiter = now.waiters[0]
    return any(
        one.state == "S" and one.id != waiter.thread.id and tty_waits.place(one).startswith(SLEEPS)
        for one in waiter.program.threads
    )


def sleeps_beside(now: Says) -> str | None:
    """The name of a child in the foreground that sleeps for a time, where it is not certain that its parent listens: that may
    wait for the child's output as well."""
    if now.certain or not now.waiters:
        return None
    pid = now.waiters[0].program.pid
    for one in now.programs:
        if (
            one.foreground
            and one.parent == pid
            and all(tty_waits.place(thread).startswith(SLEEPS) for thread in one.threads)
        ):
            return one.name
    return None


def nothing_else(now: Says) -> bool:
    """Nothing but input can wake it: no timeout, nobody else writes to what it waits for, and no thread of it works."""
    return now.inward and no_work(now)


def no_work(now: Says) -> bool:
    """Nothing but input and a timer can wake it: it is the only process, has no socket, and no other thread of it works."""
    if now.word != POLLS or len(now.programs) != 1:
        return False
    waiter = now.waiters[0]
    others = [one for one in waiter.program.threads if one.id != waiter.thread.id]
    return waiter.program.sockets == 0 and all(
        one.state == "S" and tty_waits.place(one).startswith(tty_waits.EVENT_LOOPS) for one in others
    )


def unanswered(looks: Sequence[Look]) -> bool:
    """For a while something is asked for, by the text or by the terminal's settings, and no program of the foreground
    listens: a process that does not belong to the terminal may, as a daemon that asks for a passphrase there."""
    now = looks[-1]
    if now.quiet is None or now.quiet < STANDS:
        return False
    since = list(takewhile(_unanswered, reversed(looks)))
    return bool(since) and (len(since) == len(looks) or now.at - since[-1].at >= STANDS)


def _unanswered(look: Look) -> bool:
    if look.kernel is None or look.kernel.inner is not None:
        return False
    pids = {one.pid for one in look.kernel.programs}
    own = tuple(one for one in look.kernel.programs if one.foreground or one.parent in pids)
    told = tty_waits.says(look.kernel._replace(programs=own))
    if told is None or told.word != tty_waits.NOBODY:
        return False
    tty = told.tty
    return (tty is not None and not (tty.canonical and tty.echo)) or patterns.alone_a_question(patterns.text(look).left)


def asks_plainly(seen: Scene) -> bool:
    """A prompt stands there, so that a process which began since may be of any kind."""
    left = seen.text.left
    return bool(seen.prompt or seen.continuation) or patterns.ends_like_prompt(left) or patterns.plain_question(left)
