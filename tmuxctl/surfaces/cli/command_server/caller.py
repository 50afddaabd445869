"""Who calls: a process that may do what this one may, whose limits, priority, umask and ignored signals count for its command."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import resource
import signal
from _signal import SIG_DFL, SIG_IGN, SIGINT, default_int_handler

from tmuxctl.value import Value

ALIKE = (
    "Uid", "Gid", "Groups", "SigBlk", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"
)  # fmt: skip
"""Fields of /proc/PID/status that say what a process may do (proc(5)). Where one differs the caller runs its command itself: a
program in a sandbox must not reach beyond it through a server outside."""

SIGNALS = tuple(
    int(number)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}
    if number < signal.SIGRTMIN
)
"""No process can ignore the first two of these, and every Python ignores the others."""

LIMITS = tuple({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})


class NotAlike(Exception):
    """The caller differs from this process in what cannot be handed over."""


class Confinement(Value):
    """What a process may do, and what it sees of the machine."""

    status: dict[str, str]
    namespaces: dict[str, str]
    root: str


def read_confinement(pid: int) -> Confinement:
    """Raises OSError for a process that is gone, or that this one may not look at."""
    return _find_confinement(pid, _read_status(pid))


def become_like(pid: int, own: Confinement) -> None:
    """Take over what the caller has of the kernel; raises NotAlike where that is not possible, OSError where it is gone."""
    fields = _read_status(pid)
    if _find_confinement(pid, fields) != own:
        raise NotAlike
    os.umask(int(fields["Umask"], 8))
    _ignore_signals(int(fields["SigIgn"], 16))
    try:
        for kind in LIMITS:
            wanted = resource.prlimit(pid, kind)
            if wanted != resource.getrlimit(kind):
                resource.setrlimit(kind, wanted)
        nice = os.getpriority(os.PRIO_PROCESS, pid)
        if nice != os.getpriority(os.PRIO_PROCESS, 0):
            os.setpriority(os.PRIO_PROCESS, 0, nice)
    except (OSError, ValueError):
        # a lower priority or limit cannot be raised again
        raise NotAlike from None


def _find_confinement(pid: int, fields: dict[str, str]) -> Confinement:
    folder = f"/proc/{pid}/ns"
    return Confinement(
        {name: fields.get(name, "") for name in ALIKE},
        # those for children do not show until there are some
        {name: os.readlink(f"{folder}/{name}") for name in os.listdir(folder) if not name.endswith("_for_children")},
        os.readlink(f"/proc/{pid}/root"),
    )


def _read_status(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def _ignore_signals(mask: int) -> None:
    """Ignore the signals of this mask, and no others; SIGINT is Python's own to handle, as ever."""
    for number in SIGNALS:
        ignored = mask >> (number - 1) & 1
        # not `signal.signal`, which makes an enumeration of each handler: 0.3 ms for all (measured)
        _signal.signal(number, SIG_IGN if ignored else default_int_handler if number == SIGINT else SIG_DFL)
