"""What is loaded before the first command, and whether its code is still that of the files."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections.abc import Iterator

import tmuxctl
from tmuxctl.surfaces.cli.command_server.client import QUICK
from tmuxctl.surfaces.cli.kept_code import Stamp, read_stamp

MODULES = (
    "click._textwrap",
    "ctypes",
    "difflib",
    "shutil",
    "tmuxctl.control.input.following",
    "tmuxctl.control.input.passwords",
    "tmuxctl.control.lifecycle.listing",
    "tmuxctl.control.output.printed",
    "tmuxctl.control.turns.commands",
    "tmuxctl.control.turns.turn",
    "tmuxctl.control.waiting.searching",
    "tmuxctl.control.waiting.status_line",
    "tmuxctl.control.waiting.text_since",
    "tmuxctl.profile_files.library",
    "tmuxctl.surfaces.cli.command_server.child",
    "tmuxctl.surfaces.cli.commands.help",
    "tmuxctl.surfaces.cli.commands.usage_errors",
    "tmuxctl.surfaces.cli.printing.show",
    "tmuxctl.surfaces.cli.printing.table",
    "tmuxctl.terminal.launch.tmux_conf",
    "tmuxctl.transport.local",
    "tmuxctl.transport.notify",
    "tmuxctl.transport.procfs",
)
"""With what these import, all that quick commands load, whatever they are told to do; a test compares."""


STALE = 101
"""What a child ends with that carried out nothing because its code has changed since it was loaded."""


class Code:
    """The files that the code of a process comes from, as they were."""

    def __init__(self) -> None:
        self.stamps: dict[str, Stamp] = {path: read_stamp(path) for path in _list_files()}

    def is_current(self) -> bool:
        """False if one of the files has changed. It takes 1 ms, for 260 of them (measured)."""
        try:
            return all(read_stamp(path) == stamp for path, stamp in self.stamps.items())
        except OSError:
            return False


def _list_files() -> Iterator[str]:
    """Our modules and click's, those too that are not loaded yet: a command must not run with some old and some new ones. Of Python
    itself, the program and one of its modules."""
    click = importlib.util.find_spec("click")
    for package in (tmuxctl.__file__, click.origin if click else None):
        for folder, _, names in os.walk(os.path.dirname(package or "")):
            yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))
    yield from (os.path.realpath(sys.executable), str(os.__file__))


def load_modules() -> None:
    """Load what quick commands need, and make what each would make anew: their declarations and patterns. It is kept out of the
    garbage collector's way, as looking through it would copy every page in each child."""
    for name in MODULES:
        importlib.import_module(name)
    _prepare_operations()
    gc.collect()
    gc.freeze()


def _prepare_operations() -> None:
    from tmuxctl.control.service import Control
    from tmuxctl.operations import find
    from tmuxctl.reading.text.lazy_pattern import Pattern

    for name in sorted(QUICK):
        find(Control, name)
    for module in [found for name, found in sys.modules.items() if name.startswith("tmuxctl.")]:
        for value in list(vars(module).values()):
            if isinstance(value, Pattern):
                _ = value.compiled


POPULATE = {"r": 22, "w": 23}
"""MADV_POPULATE_READ and MADV_POPULATE_WRITE (madvise(2), Linux 5.14)."""


def take_pages() -> None:
    """Have the kernel give this process all pages that it shares with the one that forked it, as far as it will use them: else each
    is copied when it is first written, 5 ms of a quick command (measured). Elsewhere they come one by one."""
    import ctypes

    library = ctypes.CDLL(None)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
        mappings = [line.split() for line in file]
    for place, rights, *_ in mappings:
        if rights in ("rw-p", "r-xp", "r--p"):
            begin, end = (int(one, 16) for one in place.split("-"))
            library.madvise(begin, end - begin, POPULATE["w" if rights == "rw-p" else "r"])
