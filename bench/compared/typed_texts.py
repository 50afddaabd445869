"""Hostile texts typed by each tool, byte for byte."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from exact import BYTES, MEGABYTE, TEXTS
from place import HERE, Place, until

from compared import detail
from compared.table import DRIVEN, Line
from compared.tools import Libtmux, Pexpect, Tmux, Tmuxctl, Tool, shows
from tmuxctl.errors import TmuxctlError


def measure(place: Place) -> list[Line]:
    with place.control() as control:
        tools: dict[str, Tool] = {
            "tmuxctl": Tmuxctl(control),
            "tmux": Tmux(),
            "libtmux": Libtmux(),
            "pexpect": Pexpect(),
        }
        cells = {name: _typed(place, name, tool, tool.type) for name, tool in tools.items()}
    pasters: dict[str, Tmux | Libtmux] = {"tmux": Tmux(), "libtmux": Libtmux()}
    for name, paster in pasters.items():
        pasted = _typed(place, f"{name}-pasted", paster, partial(_paste, paster))
        cells[name] += f"; {pasted} by `paste-buffer -r`"
    total = len(TEXTS) + len(BYTES) + 1
    return [Line(DRIVEN, f"hostile texts typed byte for byte, of {total}[^typing]", cells)]


def _paste(tool: Tmux | Libtmux, text: bytes, *, enter: bool) -> None:
    tool.paste(text + b"\r" * enter)


def _typed(place: Place, name: str, tool: Tool, type_: Callable[..., None]) -> str:
    """How many came as they were given: texts with Enter, bytes without."""
    file = place.folder / f"{name}.typed"
    tool.start(f"typed-{name}", (sys.executable, str(HERE / "recorder.py"), str(file)), place.folder)
    assert shows(tool, "READY"), f"{name} shows no recorder"
    given = [(text.encode(), True) for text in TEXTS] + [(data, False) for data in (*BYTES, MEGABYTE)]
    right = 0
    for text, enter in given:
        before, wanted = file.stat().st_size, text + tool.enter * enter
        try:
            type_(text, enter=enter)
        except (RuntimeError, ValueError, OSError, TmuxctlError):
            # told that it cannot be typed: what came of it is not asked
            until(lambda before=before: file.stat().st_size > before, 0.2)
            detail(f"{name} | {text[:30]!r} of {len(text)} | refused")
            continue
        until(lambda before=before, wanted=wanted: file.stat().st_size >= before + len(wanted), _patience(wanted))
        if (came := file.read_bytes()[before:]) == wanted:
            right += 1
        else:
            detail(f"{name} | {text[:30]!r} of {len(text)} | {came[:40]!r} of {len(came)}")
    return str(right)


def _patience(wanted: bytes) -> float:
    """Seconds after which bytes that have not come will not come."""
    return 0.6 if len(wanted) < 10_000 else 10.0
