"""How the tmuxctl that runs now is started again by another process."""

from __future__ import annotations

import os
import sys


def find_tmuxctl() -> tuple[str, ...]:
    """The words that start from anywhere the tmuxctl that runs now."""
    import shutil

    program = os.path.abspath(shutil.which(sys.argv[0]) or sys.argv[0])
    if os.path.basename(program) == "__main__.py":
        return (sys.executable, "-m", "tmuxctl")
    return (program,) if os.access(program, os.X_OK) else (sys.executable, program)
