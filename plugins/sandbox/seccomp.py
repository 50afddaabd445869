"""The filter of system calls that closes what a view of the machine leaves open: seccomp(2), in classic BPF."""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping
from typing import NamedTuple


class Architecture(NamedTuple):
    """A processor as the kernel calls it, its system calls by number, and where numbers of another kind begin."""

    audit: int
    calls: Mapping[str, int]
    foreign: int


REFUSED = {
    **dict.fromkeys(("add_key", "request_key", "keyctl"), errno.EPERM),  # keys are shared by all of a user's programs
    **dict.fromkeys(("bpf", "userfaultfd", "perf_event_open", "open_by_handle_at", "setns"), errno.EPERM),
    # what a filter cannot look into, as a kernel answers that does not have it: programs then use the older ones
    **dict.fromkeys(("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"), errno.ENOSYS),
}
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
CLONE_NEWUSER = 0x10000000
FAMILIES = (1, 2, 10, 16)
"""Of sockets: unix, inet, inet6 and netlink. A namespace does not keep all others (vsock) on this machine."""

ALIKE = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435}
MACHINES = {
    "x86_64": Architecture(
        0xC000003E,
        ALIKE
        | {"ioctl": 16, "socket": 41, "clone": 56, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272}
        | {"perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "bpf": 321, "userfaultfd": 323},
        0x40000000,
    ),
    "aarch64": Architecture(
        0xC00000B7,
        ALIKE
        | {"ioctl": 29, "unshare": 97, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220}
        | {"perf_event_open": 241, "open_by_handle_at": 265, "setns": 268, "bpf": 280, "userfaultfd": 282},
        0xFFFFFFFF,
    ),
}

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24
"""Offsets in seccomp_data; of an argument the low half, which is all that the kernel looks at in these."""
ALLOW, FAIL, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def filter_for(machine: str) -> bytes:
    """The program that the kernel runs at every system call."""
    kind = MACHINES[machine]
    code = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, kind.audit), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    code += [(AT_LEAST, 0, 1, kind.foreign), (RETURN, 0, 0, FAIL | errno.ENOSYS)]
    for name, error in REFUSED.items():
        code += [(EQUAL, 0, 1, kind.calls[name]), (RETURN, 0, 0, FAIL | error)]
    for name in ("clone", "unshare"):
        code += _judge_calls(kind.calls[name], FIRST, ANY_BIT, (CLONE_NEWUSER,), FAIL | errno.EPERM, ALLOW)
    code += _judge_calls(kind.calls["ioctl"], SECOND, EQUAL, (TIOCSTI, TIOCLINUX), FAIL | errno.EPERM, ALLOW)
    code += _judge_calls(kind.calls["socket"], FIRST, EQUAL, FAMILIES, ALLOW, FAIL | errno.EAFNOSUPPORT)
    return b"".join(struct.pack("<HBBI", *one) for one in [*code, (RETURN, 0, 0, ALLOW)])


def _judge_calls(
    number: int, argument: int, compare: int, values: tuple[int, ...], match: int, otherwise: int
) -> list[tuple[int, int, int, int]]:
    """One system call by the value of an argument."""
    code = [(LOAD, 0, 0, argument)]
    for value in values:
        code += [(compare, 0, 1, value), (RETURN, 0, 0, match)]
    code.append((RETURN, 0, 0, otherwise))
    return [(EQUAL, 0, len(code), number), *code]
