"""What a sleeping thread waits for: its system call as /proc/PID/syscall shows it, and whether the terminal is in it.

The numbers are those of linux/arch/x86/entry/syscalls/syscall_64.tbl and, for aarch64, of asm-generic/unistd.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Protocol

from tmuxctl.value import Value, changed

DESCRIPTORS = 256
"""How many of a set's descriptors are looked at."""

NUMBERS = """
read 0 63, readv 19 65, pread64 17 67, preadv 295 69, preadv2 327 286, splice 275 76, sendfile 40 71, tee 276 77,
copy_file_range 326 285, recvfrom 45 207, recvmsg 47 212, recvmmsg 299 243,
poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_wait 232 -, epoll_pwait 281 22, epoll_pwait2 441 441,
io_uring_enter 426 426, restart_syscall 219 128,
futex 202 98, futex_wait 455 455, futex_waitv 449 449, nanosleep 35 101, clock_nanosleep 230 115, wait4 61 260,
waitid 247 95, pause 34 -, rt_sigsuspend 130 133, rt_sigtimedwait 128 137, sched_yield 24 124, write 1 64, writev 20 66,
pwrite64 18 68, pwritev 296 70, pwritev2 328 287, sendto 44 206, sendmsg 46 211, sendmmsg 307 269, connect 42 203,
accept 43 202, accept4 288 242, ioctl 16 29, fcntl 72 25, flock 73 32, fsync 74 82, fdatasync 75 83, sync 162 81,
syncfs 306 267, sync_file_range 277 84, msync 26 227, fallocate 285 47, ftruncate 77 46, truncate 76 45, open 2 -,
openat 257 56, openat2 437 437, close 3 57, close_range 436 436, getdents64 217 61, stat 4 -, lstat 6 -, fstat 5 80,
newfstatat 262 79, statx 332 291, access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78,
unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38, renameat2 316 276, mkdir 83 -, mkdirat 258 34, rmdir 84 -,
link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36, mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226,
madvise 28 233, brk 12 214, fork 57 -, vfork 58 -, clone 56 220, clone3 435 435, execve 59 221, execveat 322 281,
exit 60 93, exit_group 231 94, kill 62 129, tgkill 234 131, getrandom 318 278, msgrcv 70 188, msgsnd 69 189,
semop 65 193, semtimedop 220 192, mq_timedreceive 243 183, mq_timedsend 242 182, io_getevents 208 4,
io_pgetevents 333 292, mount 165 40, umount2 166 39, ptrace 101 117
"""
"""Name, number on x86-64, number on aarch64: what reads, then what waits for several, then what does neither."""

POLLS, SELECTS = ("poll", "ppoll"), ("select", "pselect6")
"""Calls that wait for a set of descriptors in the process's memory."""

MILLISECONDS = ("poll", "epoll_wait", "epoll_pwait")
"""Calls whose timeout is a number; the others' is in the process's memory, as TIME."""

TIME = "=qq"

NESTED = 3
"""How deep one epoll descriptor is followed into the next."""

MACHINES = {"x86_64": 1, "aarch64": 2, "arm64": 2}

READS = dict.fromkeys(("read", "readv", "pread64", "preadv", "preadv2", "splice", "tee", "copy_file_range"), 0) | {
    "sendfile": 1,
    "recvfrom": 0,
    "recvmsg": 0,
    "recvmmsg": 0,
}
"""Calls that read one descriptor: which argument it is."""

UNKNOWN = ("io_uring_enter", "restart_syscall")
"""Calls whose arguments do not say what is waited for."""

# poll(2) and epoll(7): POLLIN or POLLRDNORM; the bits above belong to how epoll tells, not to what it waits for
INPUT, EVENTS = 0x41, 0x0FFF_FFFF


class ProcessView(Protocol):
    """What can be asked of a process and its descriptors."""

    def terminal(self, descriptor: int) -> bool | None:
        """Whether it is the terminal in question; None if it cannot be told."""

    def watched(self, descriptor: int) -> list[tuple[int, int]] | None:
        """The descriptors and events an epoll descriptor watches; None if it is not one."""

    def inward(self, descriptor: int) -> bool:
        """Whether it is one that the process itself writes to."""

    def memory(self, address: int, size: int) -> bytes:
        """That much of its memory, or nothing."""


class ThreadWait(Value):
    """`call`, `tty`, `alone`, `timeout` and `inward` as evidence.Thread has them; `readable` is False where the set of
    descriptors it waits for was not to be read."""

    call: str | None
    tty: bool | None
    alone: bool = False
    readable: bool = True
    timeout: float | None = None
    inward: bool = False


class AwaitedDescriptors(Value):
    """What a set of descriptors has: the terminal, None if unknown; `alone`: nothing else; `inward`: nothing else but
    what the process itself writes to."""

    tty: bool | None
    alone: bool
    inward: bool


FOREVER = None
UNKNOWN_TIME = -1.0
"""How long a call waits that has no timeout, and one of which it cannot be told."""


class _Unreadable(Exception):
    """The memory with a set of descriptors cannot be read."""


def parse_wait(line: bytes, process: ProcessView, machine: str) -> ThreadWait:
    """What a thread waits for, by its line of /proc/PID/task/TID/syscall; `machine` as uname(2) names it."""
    words = line.split()
    if words[0] == b"running":
        return ThreadWait("running", False)
    if len(words) < 9:
        # asleep, but in no system call: a page fault, or it is being traced
        return ThreadWait(None, False)
    if words[8] == b"0x0":
        # a worker of io_uring: a thread without a program counter, the call is that of its maker
        return ThreadWait(None, None)
    call = load_call_names(machine).get(int(words[0]))
    arguments = [int(word, 16) for word in words[1:7]]
    if call is None:
        return ThreadWait(words[0].decode(), None)
    if call in UNKNOWN:
        return ThreadWait(call, None)
    if call in READS:
        tty = process.terminal(arguments[READS[call]] & 0xFFFF_FFFF)
        return ThreadWait(call, tty, tty is True)
    try:
        entries = _list_awaited(call, arguments, process)
    except _Unreadable:
        return ThreadWait(call, None, readable=False)
    awaited = _judge_descriptors(entries, process, NESTED)
    if not awaited.tty:
        return ThreadWait(call, awaited.tty)
    seconds = _read_timeout(call, arguments, process)
    forever = seconds is FOREVER
    timeout = None if seconds is FOREVER or seconds < 0 else seconds
    return ThreadWait(call, True, awaited.alone and forever, timeout=timeout, inward=awaited.inward and forever)


@cache
def load_call_names(machine: str) -> dict[int, str]:
    """The names of the system calls by their numbers on this kind of machine; empty where they are not known."""
    column = MACHINES.get(machine)
    if column is None:
        return {}
    rows = (row.split() for row in NUMBERS.split(","))
    return {int(row[column]): row[0] for row in rows if row[column] != "-"}


def epoll_awaits_terminal(descriptor: int, process: ProcessView) -> bool | None:
    """Whether an epoll descriptor waits for the terminal's input."""
    return _judge_descriptors(_read_epoll_list(descriptor, process), process, NESTED).tty


def _list_awaited(call: str, arguments: list[int], process: ProcessView) -> list[tuple[int, bool]]:
    """The descriptors a call waits for, each with whether for input."""
    first, second, third, fourth, *_ = arguments
    if call in POLLS:
        return list(_read_poll_array(first, second, process))
    if call in SELECTS:
        return list(_read_select_sets(first & 0xFFFF_FFFF, (second, third, fourth), process))
    return _read_epoll_list(first & 0xFFFF_FFFF, process) if call.startswith("epoll") else []


def _read_timeout(call: str, arguments: list[int], process: ProcessView) -> float | None:
    """After how many seconds a call gives up: FOREVER, or UNKNOWN_TIME."""
    _, _, third, fourth, fifth, _ = arguments
    if call in MILLISECONDS:
        count = (third if call == "poll" else fourth) & 0xFFFF_FFFF
        return FOREVER if count & 0x8000_0000 else count / 1000
    address = third if call == "ppoll" else fourth if call == "epoll_pwait2" else fifth
    if not address:
        return FOREVER
    import struct

    packed = process.memory(address, struct.calcsize(TIME))
    if len(packed) != struct.calcsize(TIME):
        return UNKNOWN_TIME
    whole, part = struct.unpack(TIME, packed)
    seconds: float = whole + part / (1e6 if call == "select" else 1e9)
    return max(0.0, seconds)


def _read_poll_array(address: int, count: int, process: ProcessView) -> Iterator[tuple[int, bool]]:
    """The entries of an array of struct pollfd; one that is negative is skipped there too."""
    import struct

    count &= 0xFFFF_FFFF
    for descriptor, events, _ in struct.iter_unpack(
        "=ihh", _read_memory(address, 8 * min(count, DESCRIPTORS), process)
    ):
        if descriptor >= 0:
            yield descriptor, bool(events & INPUT)
    if count > DESCRIPTORS:
        # the rest was not looked at: what it waits for is something else
        yield -1, False


def _read_select_sets(count: int, addresses: tuple[int, ...], process: ProcessView) -> Iterator[tuple[int, bool]]:
    """The members of up to three fd_sets: for input, for output, for exceptions."""
    # the kernel knows no more descriptors than the process has room for, whatever is asked
    size = (min(count, 1024) + 63) // 64 * 8
    remaining = DESCRIPTORS
    for reads, address in zip((True, False, True), addresses, strict=True):
        bits = int.from_bytes(_read_memory(address, size, process), "little") if address else 0
        bits &= (1 << min(count, 1024)) - 1
        while bits and remaining:
            lowest = bits & -bits
            yield lowest.bit_length() - 1, reads
            bits, remaining = bits ^ lowest, remaining - 1
    if not remaining or count > 1024:
        yield -1, False


def _read_memory(address: int, size: int, process: ProcessView) -> bytes:
    data = process.memory(address, size) if size else b""
    if len(data) != size:
        raise _Unreadable
    return data


def _read_epoll_list(descriptor: int, process: ProcessView) -> list[tuple[int, bool]]:
    return [
        (target, bool(events & INPUT))
        for target, events in (process.watched(descriptor) or ())[:DESCRIPTORS]
        if events & EVENTS
    ]


def _judge_descriptors(entries: Iterable[tuple[int, bool]], process: ProcessView, depth: int) -> AwaitedDescriptors:
    """What is waited for among these; an empty set is `alone` and `inward`."""
    verdicts = [
        _judge_descriptor(descriptor, process, depth) if descriptor >= 0 and reads else OTHER
        for descriptor, reads in entries
    ]
    waits = {verdict.tty for verdict in verdicts}
    tty = True if True in waits else None if None in waits else False
    if not tty:
        return AwaitedDescriptors(tty, False, False)
    return AwaitedDescriptors(
        tty, all(verdict.alone for verdict in verdicts), all(verdict.inward for verdict in verdicts)
    )


OTHER = AwaitedDescriptors(False, False, False)


def _judge_descriptor(descriptor: int, process: ProcessView, depth: int) -> AwaitedDescriptors:
    tty = process.terminal(descriptor)
    if tty is not False:
        return AwaitedDescriptors(tty, bool(tty), bool(tty))
    if depth and (entries := _read_epoll_list(descriptor, process)):
        return _judge_descriptors(entries, process, depth - 1)
    return changed(OTHER, inward=process.inward(descriptor))
