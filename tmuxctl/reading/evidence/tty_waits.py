"""What one look of the kernel says of the terminal: somebody waits for its input, nobody does, or that is not told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmuxctl.evidence import FULL, NONE, Kernel, Program, Thread, Tty
from tmuxctl.reading.evidence import programs
from tmuxctl.value import Value

READS, POLLS = "reads", "polls"
"""A thread is blocked in a read of the terminal; a thread waits for it with poll, select or epoll."""

RUNS, NOBODY, STOPPED = "runs", "nobody", "stopped"
"""Nobody waits for the terminal, and somebody has the processor; all sleep for something else; all are stopped."""

UNREADABLE = "unreadable"
"""What they wait for is not told, and none of them has the processor."""

POLLING = frozenset(("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"))
READING = frozenset(("read", "readv", "pread64", "preadv", "preadv2"))
UNTOLD = frozenset(("restart_syscall", "io_uring_enter"))
"""Calls that do not say what they wait for."""

# wchan(5) names functions of the kernel: those a thread sleeps in while it waits for a terminal's input
READ_PLACES = ("wait_woken", "n_tty_read")
POLL_PLACES = ("poll_schedule_timeout", "do_sys_poll", "do_poll", "do_select", "core_sys_select", "ep_poll", "do_epoll_wait",
               "epoll_wait")  # fmt: skip

EVENT_LOOPS = (
    "poll",
    "select",
    "epoll",
    "ep_",
    "futex",
    "restart_syscall",
    "rt_sigtimedwait",
    "sigtimedwait",
    "io_uring",
)
"""Beginnings of the calls and places in which a main thread that has nothing to do sleeps."""

TICKS = 100.0
"""Clock ticks a second: USER_HZ is 100 on every machine Linux runs on today, but for alpha."""


class Waiter(Value):
    """A program and the thread of it that waits for the terminal."""

    program: Program
    thread: Thread

    @property
    def name(self) -> str:
        return self.program.name


class Says(Value):
    """One look at one terminal. `waiters` read or poll it; `alone`: the first waits for nothing else and without a timeout;
    `certain`: by its system call; `opaque` names a carrier of another machine's or server's terminal; `asleep` is what the
    others sleep in, `running` who has the processor; `maybe`: somebody sleeps where waiting for a terminal does, too.
    `timeout`: after how many seconds the first waiter gives up, None if never or unknown; `inward`: it waits for nothing
    else but what its own process writes; `clock` as Program.started, None if unknown."""

    word: str
    waiters: tuple[Waiter, ...]
    alone: bool
    certain: bool
    opaque: str | None
    asleep: tuple[str, ...]
    running: tuple[str, ...]
    maybe: bool
    tty: Tty | None
    programs: tuple[Program, ...]
    timeout: float | None = None
    inward: bool = False
    clock: int | None = None

    @property
    def waits(self) -> bool:
        """Somebody waits for the terminal's input."""
        return self.word in (READS, POLLS)

    @property
    def name(self) -> str:
        """The program the state is about: who waits, or else the first of the foreground."""
        found = self.waiters[0].program if self.waiters else self.programs[0]
        return found.name

    @property
    def call(self) -> str:
        """What the waiting thread sleeps in."""
        return self.waiters[0].thread.call or self.waiters[0].thread.wchan if self.waiters else ""

    @property
    def password(self) -> bool:
        """The terminal takes whole lines and shows nothing of them: only secrets are asked for so."""
        return self.tty is not None and self.tty.canonical and not self.tty.echo


def says(kernel: Kernel | None) -> Says | None:
    """What a look of the kernel says; None where it tells of no program."""
    if kernel is None or not kernel.programs:
        return None
    threads = _sort_threads(kernel)
    word, waiters, opaque = _find_waiters(kernel, threads)
    first = waiters[0].thread if waiters else None
    return Says(
        word=word,
        waiters=tuple(waiters),
        alone=first is not None and first.alone and not _gives_up(kernel.tty),
        certain=first.tty is True and first.call is not None
        if first
        else all(one.level == FULL for one in kernel.programs),
        opaque=opaque,
        asleep=tuple(dict.fromkeys(place(one.thread) for one in threads[NOBODY])),
        running=tuple(dict.fromkeys(one.name for one in threads[RUNS])),
        maybe=any(_could_wait(one.program, one.thread) for one in threads[NOBODY]),
        tty=kernel.tty,
        programs=kernel.programs,
        timeout=_timeout(first, kernel.tty) if first else None,
        inward=first is not None and first.inward,
        clock=kernel.clock,
    )


def _sort_threads(kernel: Kernel) -> dict[str, list[Waiter]]:
    """The threads of the foreground by what each does, as `_doing` says; who waits for something else only if it sleeps."""
    found: dict[str, list[Waiter]] = {word: [] for word in (READS, POLLS, RUNS, UNREADABLE, NOBODY)}
    for program in kernel.programs:
        for thread in program.threads or (_only_thread(program),):
            if (word := _doing(program, thread, kernel.tty)) != NOBODY or thread.state == "S":
                found[word].append(Waiter(program, thread))
    return found


def _find_waiters(kernel: Kernel, threads: Mapping[str, list[Waiter]]) -> tuple[str, list[Waiter], str | None]:
    """The word for a terminal whose threads were sorted, who waits for its input, and the carrier of a terminal elsewhere."""
    reads, polls = threads[READS], threads[POLLS]
    # a carrier may block in a read of the keyboard for as long as the program behind it works
    if reads and _raw(kernel) and all(programs.is_opaque(one.name) for one in reads):
        reads, polls = [], [*reads, *polls]
    if reads:
        return READS, reads, None
    if polls:
        return POLLS, polls, next((one.name for one in polls if programs.is_opaque(one.name)), None)
    if _stopped(kernel.programs):
        return STOPPED, [], None
    if carrier := _carrier(kernel):
        return POLLS, [], carrier
    return (RUNS if threads[RUNS] else UNREADABLE if threads[UNREADABLE] else NOBODY), [], None


def names(kernel: Kernel | None) -> tuple[str, ...]:
    """What the programs are called that have the terminal, the most telling first: of the innermost terminal before
    those around it, who waits for input before who leads the foreground."""
    found: list[str] = []
    while kernel is not None:
        told = says(kernel)
        led = [one.name for one in kernel.programs if one.foreground]
        waits = [one.name for one in told.waiters] if told else []
        found = [*dict.fromkeys([*waits, *led]), *found]
        kernel = kernel.inner
    return tuple(found)


def _gives_up(tty: Tty | None) -> bool:
    """A read of the terminal comes back without input after a while."""
    return tty is not None and not tty.canonical and tty.vmin == 0


def _timeout(thread: Thread, tty: Tty | None) -> float | None:
    reads = thread.call in READING if thread.call else thread.wchan.startswith(READ_PLACES)
    return tty.vtime if tty is not None and reads and _gives_up(tty) else thread.timeout


def place(thread: Thread) -> str:
    """Where a thread sleeps: its system call, else the function of the kernel without the compiler's additions."""
    return thread.call or thread.wchan.partition(".")[0] or "?"


def _only_thread(program: Program) -> Thread:
    """A process whose threads are not told, as one thread."""
    return Thread(program.pid, program.state)


def _doing(program: Program, thread: Thread, tty: Tty | None) -> str:
    """READS, POLLS, RUNS, UNREADABLE, or NOBODY for a thread that waits for something else."""
    if thread.state in ("R", "D") or thread.call == "running":
        return RUNS
    if thread.state not in ("S", "I") or program.holds is False:
        return NOBODY
    if program.level == NONE:
        return UNREADABLE
    if thread.call is not None and thread.call not in UNTOLD and thread.tty is not None:
        polls = thread.call in POLLING or _gives_up(tty)
        return (POLLS if polls else READS) if thread.tty else NOBODY
    return _by_place(program, thread, tty)


def _by_place(program: Program, thread: Thread, tty: Tty | None) -> str:
    """The same where only the function of the kernel is known: it is the same for a socket as for a terminal."""
    raw = tty is not None and not tty.canonical
    where = thread.wchan.partition(".")[0]
    if not where or where in ("0", "?"):
        return UNREADABLE if thread.call is None or thread.call in UNTOLD else NOBODY
    if where in READ_PLACES and thread.tty is not False:
        secret = tty is not None and tty.canonical and not tty.echo
        if program.sockets == 0 or secret:
            return POLLS if _gives_up(tty) else READS
        return POLLS if raw else NOBODY
    if where.startswith(POLL_PLACES) and thread.tty is not False:
        return POLLS if raw or thread.tty else NOBODY
    return NOBODY


def _could_wait(program: Program, thread: Thread) -> bool:
    """Whether a thread that is taken to wait for something else may wait for the terminal: only its place is known."""
    if program.holds is False or not program.foreground or (thread.call is not None and thread.call not in UNTOLD):
        return False
    return thread.tty is None and thread.wchan.startswith((*READ_PLACES, *POLL_PLACES))


def _stopped(seen: Sequence[Program]) -> bool:
    """All of the foreground are stopped, or some are while the others only sleep: a person pressed C-z under a program that
    is no shell, or a signal came."""
    front = [one for one in seen if one.foreground and one.state not in ("Z", "X")]
    states = {thread.state for one in front for thread in (one.threads or (_only_thread(one),))}
    return bool(states) and (states <= {"T", "t"} or ("T" in states and states <= {"T", "t", "S", "I"}))


def _carrier(kernel: Kernel) -> str | None:
    """A carrier of another terminal that has this one in raw mode, though another process waits for the keys: the server
    of a multiplexer, the master of shared connections."""
    if not _raw(kernel):
        return None
    return next((one.name for one in kernel.programs if one.foreground and programs.is_opaque(one.name)), None)


def inside(kernels: Sequence[Kernel | None], *, alternate: bool, own: Sequence[str] = ()) -> list[Kernel | None]:
    """The same looks (oldest first) at the innermost terminal that counts: through relays, but not into programs that run
    a terminal of their own in a window. `own` are names of the program itself, which is never taken for a relay."""
    found = list(kernels)
    while (newest := found[-1]) is not None and newest.inner is not None and newest.inner.programs:
        if not _passes_on(found, newest, newest.inner, alternate=alternate, own=own):
            break
        found = [one.inner if one is not None and one.inner is not None else None for one in found]
    return found


def _passes_on(
    kernels: Sequence[Kernel | None], outer: Kernel, inner: Kernel, *, alternate: bool, own: Sequence[str]
) -> bool:
    """Whether what is typed at the outer terminal goes to the inner one, and all that the inner one shows comes out."""
    if inner.masters > 1 or _stopped(inner.programs) or not _may_relay(outer, inner, alternate=alternate, own=own):
        return False
    within = {one.pid for one in inner.programs}
    if any(one.holds for one in outer.programs if one.pid in within):
        # it was given the outer terminal, too, and keeps to that: the inner one is there for a password alone
        return False
    # who does not listen to the outer terminal passes nothing on: a script that expects, a wrapper for output only
    seen = [found for one in kernels[-4:] if (found := says(one))]
    listens = any(one.program.pid not in within for found in seen for one in found.waiters)
    if listens or all(found.certain for found in seen):
        return listens
    return _raw(outer) or any(found.word == UNREADABLE for found in seen)


def _may_relay(outer: Kernel, inner: Kernel, *, alternate: bool, own: Sequence[str]) -> bool:
    """Whether the holder of the inner terminal may be no more than a relay: by its name, or because it treats the inner
    one as if it were the outer one."""
    via = inner.via or ""
    if programs.is_relay(via) or programs.is_opaque(via):
        return True
    if alternate or not _raw(outer) or programs.is_editor(via) or via in own:
        return False
    sizes = [one.tty.size if one.tty else None for one in (outer, inner)]
    return None in sizes or sizes[0] == sizes[1] or sizes[1] == (0, 0)


def _raw(kernel: Kernel) -> bool:
    return kernel.tty is not None and not kernel.tty.canonical


def works_beside(found: Says) -> bool:
    """The program's main thread is at work while another thread of it reads the terminal."""
    waiter = found.waiters[0]
    main = next((one for one in waiter.program.threads if one.id == waiter.program.pid), None)
    if main is None or main.id == waiter.thread.id or any(one.thread.id == main.id for one in found.waiters):
        return False
    return main.state in ("R", "D") or not place(main).startswith(("?", *EVENT_LOOPS))


def switches(kernel: Kernel | None, waiter: Waiter) -> int | None:
    """How often the waiter had slept at another look; None if it was not seen there."""
    for program in kernel.programs if kernel else ():
        if program.pid == waiter.program.pid:
            return next((one.switches for one in program.threads if one.id == waiter.thread.id), None)
    return None


def busy_share(before: Says | None, now: Says, seconds: float, pid: int | None = None) -> float:
    """How much of a processor the programs (or that one) used between two looks, 1.0 for one whole."""
    if before is None or seconds <= 0:
        return 0.0
    earlier = {one.pid: one.cpu for one in before.programs}
    used = [one.cpu - earlier.get(one.pid, one.cpu) for one in now.programs if pid in (None, one.pid)]
    return sum(used) / TICKS / seconds
