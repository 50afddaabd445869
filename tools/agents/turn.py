"""What one turn was: what was asked for, what came back, and what the model's log says of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from .model import Request


class Turn(NamedTuple):
    """One turn of one program.

    `mode` is hooks or screen (where the program's hooks do not reach it), `version` the program's number. `returned` is when
    `ask` gave its result, `seen` when the end of the answer first stood on the screen, both by the host's clock. `failure` is
    what `ask` says of a turn that failed; `wanted` the model's whole text, None where there is none; `printed` all that the
    program printed in the turn, where its answer was read off the screen. `early` is whether the
    command was run before a decision, `ran` whether it was run at all; `stopped` whether the turn before this one was
    interrupted, None if there was nothing to interrupt; `undrawn` whether the program itself left out a part of the answer.
    """

    program: str
    mode: str
    behaviour: str
    round: int
    id: str
    prompt: str
    asked: float
    returned: float
    version: str = ""
    shape: str = "answer"
    policy: bool = False
    answer: str = ""
    state: str = ""
    kind: str | None = None
    detail: str | None = None
    by: str | None = None
    confidence: str | None = None
    source: str | None = None
    complete: bool = False
    submitted: bool = False
    evidence: str = ""
    seen: float | None = None
    failure: str = ""
    wanted: str | None = None
    printed: str = ""
    decided: bool = False
    early: bool = False
    ran: bool = False
    stopped: bool | None = None
    error: str = ""
    requests: tuple[Request, ...] = ()
    broken: tuple[str, ...] = ()
    undrawn: bool = False

    @property
    def delay(self) -> float | None:
        """Seconds from the end of the answer on the screen until the turn was told to have ended."""
        return None if self.seen is None else round(self.returned - self.seen, 3)

    def line(self) -> dict[str, Any]:
        """As one line of JSON; the prompt of fifty thousand characters as its end."""
        about = self._asdict()
        about["prompt"] = self.prompt[-300:]
        # kept where the judgement needs it
        about["printed"] = self.printed if self.broken or self.undrawn else ""
        about["requests"] = [
            {**one._asdict(), "user": one.user[-200:], "tools": len(one.tools)} for one in self.requests
        ]
        return {**about, "delay": self.delay}
