"""Being told to end: SIGTERM ends this process, whatever it is at."""

from __future__ import annotations

import os
import threading
import time

# what `signal` is made from: that module makes enumerations of all numbers, a hundredth of a quick command (measured)
from _signal import SIG_DFL, SIGTERM, signal  # type: ignore[import-not-found]
from contextlib import suppress
from types import FrameType

from tmuxctl.timing import TIMING


class Terminated(BaseException):
    """This process was told to end, and is to do so with `status`. No Exception and no SystemExit: code of others, as that
    of a plugin, raises and catches these."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def raise_on_sigterm(status: int) -> None:
    """From now on SIGTERM raises Terminated in the main thread; a second one ends the process at once."""

    def end(_number: int, _frame: FrameType | None) -> None:
        signal(SIGTERM, SIG_DFL)
        # an exception that is raised while an object is finalized is printed and ignored, and what is cleaned up may hang
        with suppress(RuntimeError):
            threading.Thread(target=_exit_after_grace, args=(status,), daemon=True).start()
        raise Terminated(status)

    signal(SIGTERM, end)


def _exit_after_grace(status: int) -> None:
    time.sleep(TIMING.page.grace_seconds)
    os._exit(status)
