"""The trace of a test: what was typed into its sessions, what they printed, and their screens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmuxctl.errors import TmuxctlError
from tmuxctl.surfaces.library.driven import TerminalSession

if TYPE_CHECKING:
    from tmuxctl.model import Session
    from tmuxctl.surfaces.library.client import Client


class TracedSession(TerminalSession):
    """A session that notes what is typed into it, but no secret, and the seconds since it began."""

    def __init__(self, client: Client, facts: Session) -> None:
        super().__init__(client, facts)
        self.typed: list[str] = []
        self._began = time.monotonic()

    def send(self, text: str | bytes = "", **options: Any) -> TerminalSession:
        self._note("send", text)
        return super().send(text, **options)

    def send_secret(self, secret: str | bytes) -> TerminalSession:
        self._note("send_secret")
        return super().send_secret(secret)

    def keys(self, *keys: str, **options: Any) -> TerminalSession:
        self._note("keys", *keys)
        return super().keys(*keys, **options)

    def send_and_see(self, text: str | bytes, pattern: str, **options: Any) -> Any:
        self._note("send_and_see", text)
        return super().send_and_see(text, pattern, **options)

    def ask(self, text: str | bytes, **options: Any) -> Any:
        self._note("ask", text)
        return super().ask(text, **options)

    def exec(self, *command: str, **options: Any) -> Any:
        self._note("exec", *command)
        return super().exec(*command, **options)

    def decide(self, option: str | None = None, **options: Any) -> Any:
        self._note("decide", *([] if option is None or options.get("secret") is not None else [option]))
        return super().decide(option, **options)

    def _note(self, verb: str, *words: str | bytes) -> None:
        given = ", ".join(ascii(word) for word in words)
        self.typed.append(f"{time.monotonic() - self._began:8.3f}  {verb}({given})")


def write_trace(folder: Path, sessions: Sequence[TerminalSession]) -> str:
    """Write what is known of each session into a folder of its own, and return what a report says of it."""
    told = []
    for number, session in enumerate(sessions):
        place = folder / str(number)
        with suppress(TmuxctlError):
            place.mkdir(parents=True, exist_ok=True)
            typed = "\n".join(getattr(session, "typed", []))
            (place / "typed.txt").write_text(typed + "\n")
            (place / "printed.log").write_bytes(session.log(raw=True).data)
            screen, facts = session.screen, session.info
            (place / "screen.txt").write_text(screen.text + "\n")
            (place / "screen.svg").write_text(screen.svg())
            session.client.control.export(facts.id, str(place / "run.cast"))
            told.append(f"{facts.name}: {facts.state.value}; trace in {place}\n{typed}\n{screen.text}")
    return "\n\n".join(told)
