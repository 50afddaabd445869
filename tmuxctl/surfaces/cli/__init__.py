"""The command line: `tmuxctl`, `python -m tmuxctl`, and the one-file form."""

from __future__ import annotations

COLLECT_AFTER = 50_000
"""How many objects there may be more before the garbage collector looks for cycles: a quick command makes half as many, and
nearly all of them are modules, which stay. With Python's own 700 it is looked for forty times, 4 ms of 90 (measured)."""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Run the command that `sys.argv` says, and end the process; returns the exit status where that is not possible."""
    import sys

    from tmuxctl.surfaces.cli.command_server import client

    status = client.run(sys.argv[1:])
    if status is not None:
        return leave(status)
    collect_seldom()
    from contextlib import suppress

    from tmuxctl.surfaces.cli import kept_code

    kept = kept_code.install()
    status = run()
    if kept:
        # the command is done: neither a full disk nor a signal changes how it ended
        with suppress(BaseException):
            kept.keep()
    return leave(status)


def collect_seldom() -> None:
    """Have garbage collected only where a command makes much of it."""
    import gc

    gc.set_threshold(COLLECT_AFTER)


def leave(status: int, tell: Callable[[], None] | None = None) -> int:
    """End the process now, if all that was printed is out. Python would first look for garbage, and take every module apart: 7
    ms of 75 (measured). Returns the status where Python has to say why something could not be printed, or threads go on.
    `tell` is called last."""
    import atexit
    import os
    import sys

    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        return status
    atexit._run_exitfuncs()  # noqa: SLF001  # what `os._exit` leaves out
    if _flush_streams():
        if tell:
            tell()
        os._exit(status)
    return status


def _flush_streams() -> bool:
    """False if something that was printed cannot be put out."""
    import sys

    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def run() -> int:
    """Run the command that `sys.argv` says; returns the exit status."""
    import sys

    collect_seldom()
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "hook" and not words[1].startswith("-"):
        # a program waits for it twice a turn: a quarter of the time without the machinery of commands (measured)
        from tmuxctl.surfaces.cli.setup import hook

        hook.report_event(words[1], None)
        return 0
    from tmuxctl.surfaces.cli import app

    return app.run(words)
