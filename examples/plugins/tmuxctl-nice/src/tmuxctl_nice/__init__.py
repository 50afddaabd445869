"""Run the program at lower priority, so that what a person does meanwhile stays quick.

Its children inherit the priority; it cannot be raised again without the right to.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Annotated

from tmuxctl.errors import Usage
from tmuxctl.model import SessionSpec

KIND = "wrap"


def transform(
    spec: SessionSpec, *, level: Annotated[int, "1 (hardly) to 19 (only when nothing else runs)"] = 10
) -> SessionSpec:
    """Put nice(1) before the command."""
    if not 1 <= level <= 19:
        raise Usage(f"{level} is no level", reason="bad_option", hint="1 to 19")
    return replace(spec, argv=("nice", "-n", str(level), *spec.argv))


def check() -> str | None:
    """Why it cannot work here, or None."""
    return None if shutil.which("nice") else "there is no nice(1)"
