"""What one look of the kernel says of a terminal: whether a program waits for its input, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from tmuxctl.evidence import FULL, NONE, PS, Kernel, Program, Thread, Tty
from tmuxctl.reading.evidence import programs
from tmuxctl.value import Value


class TtyWait(Enum):
    """What one look of the kernel says of a terminal's foreground: whether it waits for the terminal's input, and how."""

    READING = "a thread is blocked in a read of the terminal"
    POLLING = "a thread waits for it with poll, select or epoll"
    RUNNING = "no thread waits for it, and one has the processor"
    NOT_WAITING = "all threads sleep for something else"
    STOPPED = "all are stopped"
    UNREADABLE = "what they wait for cannot be read, and none has the processor"


READING, POLLING, RUNNING, NOT_WAITING, STOPPED, UNREADABLE = TtyWait

POLL_CALLS = frozenset(("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"))
READ_CALLS = frozenset(("read", "readv", "pread64", "preadv", "preadv2"))
UNCLEAR_CALLS = frozenset(("restart_syscall", "io_uring_enter"))
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


class WaitingThread(Value):
    """A program and the thread of it that waits for the terminal."""

    program: Program
    thread: Thread

    @property
    def name(self) -> str:
        return self.program.name


class Foreground(Value):
    """The foreground of one terminal at one look. `waiters` read or poll the terminal; `alone`: the first of them waits for
    nothing else and without a timeout; `certain`: its system call says so; `remote_wrapper` names a program that shows
    another machine's or server's terminal; `sleeps_in` are the calls and places in which the others sleep; `running` names
    the programs that have the processor; `may_wait`: a thread sleeps in a place where it may wait for the terminal, too.
    `timeout`: seconds after which the first waiter gives up, None if never or unknown; `inward`: beside the terminal it
    waits only for what its own process writes; `clock` is as `Program.started`, None if unknown."""

    wait: TtyWait
    waiters: tuple[WaitingThread, ...]
    alone: bool
    certain: bool
    remote_wrapper: str | None
    sleeps_in: tuple[str, ...]
    running: tuple[str, ...]
    may_wait: bool
    tty: Tty | None
    programs: tuple[Program, ...]
    timeout: float | None = None
    inward: bool = False
    clock: int | None = None

    @property
    def waits(self) -> bool:
        """A thread waits for the terminal's input."""
        return self.wait in (READING, POLLING)

    @property
    def by_ps(self) -> bool:
        """Only `ps` tells of it."""
        return self.programs[0].level == PS

    @property
    def listed(self) -> bool:
        """No more is told of it than a list of processes shows: by ps, or of another user's programs."""
        return self.programs[0].level in (PS, NONE)

    @property
    def name(self) -> str:
        """The program the state is about: the first that waits, else the first of the foreground."""
        return (self.waiters[0].program if self.waiters else self.programs[0]).name

    @property
    def call(self) -> str:
        """What the waiting thread sleeps in."""
        return self.waiters[0].thread.call or self.waiters[0].thread.wchan if self.waiters else ""

    @property
    def hides_input(self) -> bool:
        """The terminal takes whole lines and shows nothing of them: only secrets are asked for so."""
        return self.tty is not None and self.tty.canonical and not self.tty.echo


_assessed: dict[int, tuple[Kernel, Foreground]] = {}
"""What the newest looks said, by the identity of what was looked at: each is judged several times, from look to look."""

ASSESSED = 128


def assess_foreground(kernel: Kernel | None) -> Foreground | None:
    """What one look of the kernel says of the foreground; None where it tells of no program."""
    if kernel is None or not kernel.programs:
        return None
    known = _assessed.get(id(kernel))
    if known is None or known[0] is not kernel:
        if len(_assessed) >= ASSESSED:
            _assessed.clear()
        known = _assessed[id(kernel)] = kernel, _assess_foreground(kernel)
    return known[1]


def _assess_foreground(kernel: Kernel) -> Foreground:
    threads = _sort_threads(kernel)
    wait, waiters, remote_wrapper = _find_waiters(kernel, threads)
    first = waiters[0].thread if waiters else None
    return Foreground(
        wait=wait,
        waiters=tuple(waiters),
        alone=first is not None and first.alone and not _read_gives_up(kernel.tty),
        certain=first.tty is True and first.call is not None
        if first
        else all(program.level == FULL for program in kernel.programs),
        remote_wrapper=remote_wrapper,
        sleeps_in=tuple(dict.fromkeys(sleep_place(waiter.thread) for waiter in threads[NOT_WAITING])),
        running=tuple(dict.fromkeys(waiter.name for waiter in threads[RUNNING])),
        may_wait=any(_could_wait(waiter.program, waiter.thread) for waiter in threads[NOT_WAITING]),
        tty=kernel.tty,
        programs=kernel.programs,
        timeout=_find_timeout(first, kernel.tty) if first else None,
        inward=first is not None and first.inward,
        clock=kernel.clock,
    )


def _sort_threads(kernel: Kernel) -> dict[TtyWait, list[WaitingThread]]:
    """The threads of the foreground by how they wait; those that wait for something else only where they sleep."""
    sorted_threads: dict[TtyWait, list[WaitingThread]] = {
        wait: [] for wait in (READING, POLLING, RUNNING, UNREADABLE, NOT_WAITING)
    }
    for program in kernel.programs:
        for thread in program.threads or (_make_only_thread(program),):
            if (wait := _classify_thread(program, thread, kernel.tty)) != NOT_WAITING or thread.state == "S":
                sorted_threads[wait].append(WaitingThread(program, thread))
    return sorted_threads


def _find_waiters(
    kernel: Kernel, threads: Mapping[TtyWait, list[WaitingThread]]
) -> tuple[TtyWait, list[WaitingThread], str | None]:
    """How a terminal is waited for whose threads were sorted, the threads that wait, and the remote wrapper among them."""
    reads, polls = threads[READING], threads[POLLING]
    # a remote wrapper may block in a read of the keyboard for as long as the program behind it works
    if reads and _is_raw(kernel) and all(programs.is_remote_wrapper(waiter.name) for waiter in reads):
        reads, polls = [], [*reads, *polls]
    if reads:
        return READING, reads, None
    if polls:
        return (
            POLLING,
            polls,
            next((waiter.name for waiter in polls if programs.is_remote_wrapper(waiter.name)), None),
        )
    if _is_stopped(kernel.programs):
        return STOPPED, [], None
    if wrapper := _find_remote_wrapper(kernel):
        return POLLING, [], wrapper
    return ((RUNNING if threads[RUNNING] else UNREADABLE if threads[UNREADABLE] else NOT_WAITING), [], None)


def list_program_names(kernel: Kernel | None) -> tuple[str, ...]:
    """The names of the programs that have the terminal, the most telling first: those of the innermost terminal before
    those around it, those that wait for input before those of the foreground process group."""
    names: list[str] = []
    while kernel is not None:
        foreground = assess_foreground(kernel)
        led = [program.name for program in kernel.programs if program.foreground]
        waits = [waiter.name for waiter in foreground.waiters] if foreground else []
        names = [*dict.fromkeys([*waits, *led]), *names]
        kernel = kernel.inner
    return tuple(names)


def _read_gives_up(tty: Tty | None) -> bool:
    """A read of the terminal comes back without input after a while."""
    return tty is not None and not tty.canonical and tty.vmin == 0


def _find_timeout(thread: Thread, tty: Tty | None) -> float | None:
    reads = thread.call in READ_CALLS if thread.call else thread.wchan.startswith(READ_PLACES)
    return tty.vtime if tty is not None and reads and _read_gives_up(tty) else thread.timeout


def sleep_place(thread: Thread) -> str:
    """Where a thread sleeps: its system call, else the function of the kernel without the compiler's additions."""
    return thread.call or thread.wchan.partition(".")[0] or "?"


def _make_only_thread(program: Program) -> Thread:
    """A process whose threads are not told, as one thread."""
    return Thread(program.pid, program.state)


def _classify_thread(program: Program, thread: Thread, tty: Tty | None) -> TtyWait:
    """How one thread waits for the terminal; NOT_WAITING where it waits for something else."""
    if program.level == PS:
        # its state alone, a moment ago: what waits for keys runs for a moment as well
        return UNREADABLE
    if thread.state in ("R", "D") or thread.call == "running":
        return RUNNING
    if thread.state not in ("S", "I") or program.holds is False:
        return NOT_WAITING
    if program.level == NONE:
        return UNREADABLE
    if thread.call is not None and thread.call not in UNCLEAR_CALLS and thread.tty is not None:
        polls = thread.call in POLL_CALLS or _read_gives_up(tty)
        return (POLLING if polls else READING) if thread.tty else NOT_WAITING
    return _classify_by_place(program, thread, tty)


def _classify_by_place(program: Program, thread: Thread, tty: Tty | None) -> TtyWait:
    """The same where only the function of the kernel is known: it is the same for a socket as for a terminal."""
    raw = tty is not None and not tty.canonical
    where = thread.wchan.partition(".")[0]
    if not where or where in ("0", "?"):
        return UNREADABLE if thread.call is None or thread.call in UNCLEAR_CALLS else NOT_WAITING
    if where in READ_PLACES and thread.tty is not False:
        secret = tty is not None and tty.canonical and not tty.echo
        if program.sockets == 0 or secret:
            return POLLING if _read_gives_up(tty) else READING
        return POLLING if raw else NOT_WAITING
    if where.startswith(POLL_PLACES) and thread.tty is not False:
        return POLLING if raw or thread.tty else NOT_WAITING
    return NOT_WAITING


def _could_wait(program: Program, thread: Thread) -> bool:
    """Whether a thread that is taken to wait for something else may wait for the terminal: only its place is known."""
    if (
        program.holds is False
        or not program.foreground
        or (thread.call is not None and thread.call not in UNCLEAR_CALLS)
    ):
        return False
    return thread.tty is None and thread.wchan.startswith((*READ_PLACES, *POLL_PLACES))


def _is_stopped(programs: Sequence[Program]) -> bool:
    """All of the foreground are stopped, or some are while the others only sleep: C-z was pressed under a program that is
    no shell, or a signal came."""
    members = [program for program in programs if program.foreground and program.state not in ("Z", "X")]
    states = {thread.state for program in members for thread in (program.threads or (_make_only_thread(program),))}
    return bool(states) and (states <= {"T", "t"} or ("T" in states and states <= {"T", "t", "S", "I"}))


def _find_remote_wrapper(kernel: Kernel) -> str | None:
    """The name of a remote wrapper that has this terminal in raw mode while another process waits for the keys: the server
    of a multiplexer, the master of shared connections."""
    if not _is_raw(kernel):
        return None
    names = (program.name for program in kernel.programs if program.foreground)
    return next(filter(programs.is_remote_wrapper, names), None)


def enter_inner_terminals(
    kernels: Sequence[Kernel | None], *, alternate: bool, own: Sequence[str] = ()
) -> list[Kernel | None]:
    """The same looks (oldest first) at the innermost terminal that counts: through relays, but not into programs that run
    a terminal of their own in a window. `own` are names of the program itself, which is never taken for a relay."""
    found = list(kernels)
    while (newest := found[-1]) is not None and newest.inner is not None and newest.inner.programs:
        if not _passes_input_on(found, newest, newest.inner, alternate=alternate, own=own):
            break
        found = [kernel and kernel.inner for kernel in found]
    return found


def _passes_input_on(
    kernels: Sequence[Kernel | None], outer: Kernel, inner: Kernel, *, alternate: bool, own: Sequence[str]
) -> bool:
    """Whether what is typed at the outer terminal goes to the inner one, and all that the inner one shows comes out."""
    if inner.masters > 1 or _is_stopped(inner.programs) or not _may_relay(outer, inner, alternate=alternate, own=own):
        return False
    inner_pids = {program.pid for program in inner.programs}
    if any(program.holds for program in outer.programs if program.pid in inner_pids):
        # it was given the outer terminal, too, and keeps to that: the inner one is there for a password alone
        return False
    # a program that does not read the outer terminal passes nothing on: an expect script, a wrapper for output only
    foregrounds = [foreground for kernel in kernels[-4:] if (foreground := assess_foreground(kernel))]
    listens = any(waiter.program.pid not in inner_pids for found in foregrounds for waiter in found.waiters)
    if listens or all(found.certain for found in foregrounds):
        return listens
    # by ps, every program is unreadable
    return _is_raw(outer) or any(found.wait is UNREADABLE and not found.by_ps for found in foregrounds)


def _may_relay(outer: Kernel, inner: Kernel, *, alternate: bool, own: Sequence[str]) -> bool:
    """Whether the holder of the inner terminal may be no more than a relay: by its name, or because it treats the inner
    one as if it were the outer one."""
    via = inner.via or ""
    if programs.is_relay(via) or programs.is_remote_wrapper(via):
        return True
    if alternate or not _is_raw(outer) or programs.is_editor(via) or via in own:
        return False
    sizes = [kernel.tty.size if kernel.tty else None for kernel in (outer, inner)]
    return None in sizes or sizes[0] == sizes[1] or sizes[1] == (0, 0)


def _is_raw(kernel: Kernel) -> bool:
    return kernel.tty is not None and not kernel.tty.canonical


def main_thread_works(foreground: Foreground) -> bool:
    """The program's main thread is at work while another thread of it reads the terminal."""
    waiter = foreground.waiters[0]
    main = next((thread for thread in waiter.program.threads if thread.id == waiter.program.pid), None)
    if main is None or main.id == waiter.thread.id or any(other.thread.id == main.id for other in foreground.waiters):
        return False
    return main.state in ("R", "D") or not sleep_place(main).startswith(("?", *EVENT_LOOPS))


def count_switches(kernel: Kernel | None, waiter: WaitingThread) -> int | None:
    """How often the waiter had slept at another look; None if it was not seen there."""
    for program in kernel.programs if kernel else ():
        if program.pid == waiter.program.pid:
            return next((thread.switches for thread in program.threads if thread.id == waiter.thread.id), None)
    return None


def processor_share(before: Foreground | None, now: Foreground, seconds: float, pid: int | None = None) -> float:
    """How much of a processor the programs (or that one) used between two looks, 1.0 for one whole."""
    if before is None or seconds <= 0:
        return 0.0
    earlier = {program.pid: program.cpu for program in before.programs}
    used = [
        program.cpu - earlier.get(program.pid, program.cpu) for program in now.programs if pid in (None, program.pid)
    ]
    return sum(used) / TICKS / seconds
