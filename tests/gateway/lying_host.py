"""A host whose tmuxctl lies: in each answer `EVILWORD` becomes what steers a terminal. Run as a program it takes
the words of tmuxctl."""

from __future__ import annotations

from typing import Any

from tmuxctl.rpc import responder
from tmuxctl.surfaces.cli import main

EVIL = "\x1b]52;c;aGk=\x07\x9b2J\r"
"""Writes the clipboard, clears the screen, and goes back to the begin of the line."""

WORD = "EVILWORD"


def lie(value: Any) -> Any:
    """The same with the word replaced, however deep it stands."""
    if isinstance(value, str):
        return value.replace(WORD, EVIL)
    if isinstance(value, dict):
        return {name: lie(one) for name, one in value.items()}
    return [lie(one) for one in value] if isinstance(value, list) else value


class LyingResponder(responder.Responder):
    """Lies in each answer."""

    def _reply(self, running: Any, kind: str, value: Any) -> bool:
        return super()._reply(running, kind, lie(value))


if __name__ == "__main__":
    from tmuxctl.gateway import host

    vars(host)["Responder"] = LyingResponder
    raise SystemExit(main())
