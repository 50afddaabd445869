"""Which way to a machine was used last, where it has several: a small record for later processes, in the runtime folder."""

from __future__ import annotations

from contextlib import suppress

from tmuxctl.control.machines.ssh import runtime_folder
from tmuxctl.errors import TmuxctlError
from tmuxctl.state_files import write_record
from tmuxctl.untrusted import parse_record, read_file
from tmuxctl.value import Value
from tmuxctl.vocabulary import Way

FILE_LIMIT = 4096


class UsedWay(Value):
    """A way that was used: when it was chosen, and when it was last used, in seconds since 1970."""

    way: Way
    chosen: float
    used: float

    def is_fresh(self, now: float, seconds: float) -> bool:
        """Whether it was chosen at most so many seconds before `now`."""
        return 0 <= now - self.chosen < seconds


def find_used(name: str) -> UsedWay | None:
    """The way to a machine that was used last; None where nothing says so."""
    with suppress(OSError, TmuxctlError, ValueError, KeyError, TypeError):
        path = _path_of(name)
        record = parse_record(read_file(path, FILE_LIMIT + 1), path, limit=FILE_LIMIT)
        way = Way.of(record["way"])
        return None if way is None else UsedWay(way, float(record["chosen"]), float(record["used"]))
    return None


def note_used(name: str, used: UsedWay) -> None:
    """Write down which way to a machine is used. What cannot be written is not remembered."""
    with suppress(OSError, TmuxctlError):
        write_record(_path_of(name), {"way": used.way.value, "chosen": used.chosen, "used": used.used})


def _path_of(name: str) -> str:
    return f"{runtime_folder('ways')}/{name}.json"
