"""`python -m tmuxctl`: the command."""

from __future__ import annotations

import sys

from tmuxctl.surfaces.cli import main

if __name__ == "__main__":
    sys.exit(main())
