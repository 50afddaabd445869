"""Drive any interactive terminal program; tmux keeps it alive.

    with tmuxctl.session("python3 -q") as py:
        print(py.ask("6*7").text)

The names of the library are loaded when they are used: importing this package loads nothing else.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
"""What type checkers take for true; typing's own would load ten modules."""

if TYPE_CHECKING:
    from typing import Any

    from tmuxctl import aio as aio
    from tmuxctl.errors import Conflict as Conflict
    from tmuxctl.errors import DecisionNeeded as DecisionNeeded
    from tmuxctl.errors import Denied as Denied
    from tmuxctl.errors import Exited as Exited
    from tmuxctl.errors import Failed as Failed
    from tmuxctl.errors import NotFound as NotFound
    from tmuxctl.errors import Timeout as Timeout
    from tmuxctl.errors import TmuxctlError as TmuxctlError
    from tmuxctl.errors import Unreachable as Unreachable
    from tmuxctl.errors import Usage as Usage
    from tmuxctl.model import Asking as Asking
    from tmuxctl.surfaces.library.client import Client as Client
    from tmuxctl.surfaces.library.client import run as run
    from tmuxctl.surfaces.library.client import session as session
    from tmuxctl.surfaces.library.driven import TerminalSession as TerminalSession
    from tmuxctl.surfaces.library.matching import EOF as EOF
    from tmuxctl.surfaces.library.matching import TIMEOUT as TIMEOUT
    from tmuxctl.surfaces.library.matching import TextMatch as TextMatch
    from tmuxctl.surfaces.library.screens import TerminalScreen

    Screen = TerminalScreen

_LIBRARY = "tmuxctl.surfaces.library"
_NAMES = {
    "aio": ("tmuxctl.aio", ""),
    **dict.fromkeys(
        (
            "Conflict",
            "DecisionNeeded",
            "Denied",
            "Exited",
            "Failed",
            "NotFound",
            "Timeout",
            "TmuxctlError",
            "Unreachable",
            "Usage",
        ),
        ("tmuxctl.errors", ""),
    ),
    **dict.fromkeys(("Client", "run", "session"), (f"{_LIBRARY}.client", "")),
    "Asking": ("tmuxctl.model", ""),
    "TerminalSession": (f"{_LIBRARY}.driven", ""),
    **dict.fromkeys(("EOF", "TIMEOUT", "TextMatch"), (f"{_LIBRARY}.matching", "")),
    "Screen": (f"{_LIBRARY}.screens", "TerminalScreen"),
}
"""The public names: the module of each, and what it is called there if not the same."""

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    """A public name of the library, loaded with its first use (PEP 562)."""
    if name not in _NAMES:
        raise AttributeError(f"module 'tmuxctl' has no attribute {name!r}")
    from importlib import import_module

    module, called = _NAMES[name]
    loaded = import_module(module)
    found = loaded if module == f"tmuxctl.{name}" else getattr(loaded, called or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
