"""The command line: `tmuxctl`, `python -m tmuxctl`, and the one-file form."""

from __future__ import annotations


def main() -> int:
    """Run the command that `sys.argv` says; returns the exit status."""
    import sys

    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "hook" and not words[1].startswith("-"):
        # a program waits for it twice a turn: a quarter of the time without the machinery of commands (measured)
        from tmuxctl.surfaces.cli.setup import hook

        hook.report_event(words[1], None)
        return 0
    from tmuxctl.surfaces.cli import app

    return app.run(words)
