"""Which way to a machine was used last, where it has several: a small record for later processes, in the runtime folder."""

from __future__ import annotations

import os
from contextlib import suppress

from tmuxctl.control.machines.ssh import runtime_folder
from tmuxctl.errors import TmuxctlError
from tmuxctl.state_files import is_running, write_record
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


def note_path(name: str, number: int, link: str) -> None:
    """Write down that this process reaches a machine behind a gateway by a direct path, over `tcp` or `webrtc`, or not any more
    (empty). `number` tells several paths of a process apart."""
    with suppress(OSError, TmuxctlError):
        path = f"{runtime_folder('paths')}/{name},{os.getpid()},{number}"
        if link:
            write_record(path, {"link": link})
        else:
            os.unlink(path)


def find_path(name: str) -> str | None:
    """By what a process reaches a machine directly now: `tcp` or `webrtc`; None where no process does."""
    found = None
    with suppress(OSError, TmuxctlError):
        folder = runtime_folder("paths")
        for file in sorted(os.listdir(folder)):
            machine, _, process = file.partition(",")
            pid = process.partition(",")[0]
            with suppress(OSError, TmuxctlError, ValueError, KeyError):
                if machine != name or not pid.isdecimal():
                    continue
                path = os.path.join(folder, file)
                if not is_running(int(pid)):
                    os.unlink(path)
                    continue
                link = parse_record(read_file(path, FILE_LIMIT + 1), path, limit=FILE_LIMIT)["link"]
                found = link if link in ("tcp", "webrtc") else found
    return found


def _path_of(name: str) -> str:
    return f"{runtime_folder('ways')}/{name}.json"
