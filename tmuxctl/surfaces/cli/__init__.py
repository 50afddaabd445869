"""The command line: `tmuxctl`, `python -m tmuxctl`, and the one-file form."""

from __future__ import annotations

COLLECT_AFTER = 50_000
"""How many objects there may be more before the garbage collector looks for cycles: a quick command makes half as many, and
nearly all of them are modules, which stay. With Python's own 700 it is looked for forty times, 4 ms of 90 (measured)."""


def main() -> int:
    """Run the command that `sys.argv` says; returns the exit status."""
    import gc

    gc.set_threshold(COLLECT_AFTER)
    try:
        return _run()
    finally:
        # the process ends: Python would look once more for what is garbage by then, every module: 10 ms of 90 (measured)
        gc.freeze()


def _run() -> int:
    import sys

    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "hook" and not words[1].startswith("-"):
        # a program waits for it twice a turn: a quarter of the time without the machinery of commands (measured)
        from tmuxctl.surfaces.cli.setup import hook

        hook.report_event(words[1], None)
        return 0
    from tmuxctl.surfaces.cli import app

    return app.run(words)
