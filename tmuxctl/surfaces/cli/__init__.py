"""The command line: `tmuxctl`, `python -m tmuxctl`, and the one-file form."""

from __future__ import annotations


def main() -> int:
    """Run the command that `sys.argv` says; returns the exit status."""
    import sys

    from tmuxctl.surfaces.cli import app

    return app.run(sys.argv[1:])
