"""What a session's program wants when it waits: its next command, or input for what it does already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.errors import Conflict, DecisionNeeded
from tmuxctl.model import State
from tmuxctl.reading.state import wanted
from tmuxctl.reading.state.wanted import INPUT, PROMPT
from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.reading.state.judging import Verdict

__all__ = ["INPUT", "PROMPT", "has_prompt", "input_wanted", "not_at_prompt", "what_is_wanted"]

TAIL_BYTES = 1 << 16
"""Bytes of the newest output searched for a prompt."""


def what_is_wanted(observer: Observer, verdict: Verdict) -> str | None:
    """PROMPT if the program is ready for the next command, INPUT if anything else is wanted, None if nothing is."""
    on_whole_screen = verdict.state is State.IDLE and bool(verdict.kind and verdict.kind.traits.whole_screen)
    return wanted.find_wanted(verdict, has_prompt=on_whole_screen and has_prompt(observer))


def has_prompt(observer: Observer) -> bool:
    """Whether the session's own program has a prompt: a shell that marks it, or a program that has shown the one its profile
    describes. A script of python3 has the profile of python3, and shows no prompt of it."""
    if observer.mark_token:
        return True
    prompts = wanted.list_row_prompts(observer.session_profile) if observer.session_profile else []
    if not prompts:
        return False
    from tmuxctl.reading.text.lines import Lines

    # the journal has also what was printed before a program took the alternate screen
    pieces: list[str] = []
    lines = Lines(observer.pane.cols, observer.pane.rows, sink=pieces.append)
    lines.feed(observer.journal.tail(TAIL_BYTES).data)
    lines.finish()
    return wanted.shows_prompt("".join(pieces).split("\n"), prompts)


def input_wanted(name: str, verdict: Verdict) -> DecisionNeeded:
    """The error for a program that waits for input where its next prompt is waited for."""
    what, hint = _describe_wanted(name, verdict)
    return DecisionNeeded(f"{name} waits for {what}", reason=verdict.kind or InputKind.LINE, hint=hint)


def not_at_prompt(name: str, verdict: Verdict) -> Conflict:
    """The error for a turn that would go into what a command under way reads."""
    what, hint = _describe_wanted(name, verdict)
    return Conflict(
        f"{name} is not at its prompt: a running command waits for {what}",
        reason=verdict.kind or InputKind.LINE,
        hint=f"{hint}; or wait for its prompt with --queue; or stop the command with --interrupt",
    )


def _describe_wanted(name: str, verdict: Verdict) -> tuple[str, str]:
    """What is wanted, and how it is given."""
    prompt = f": {verdict.prompt}" if verdict.prompt else ""
    if verdict.kind and verdict.kind.traits.whole_screen:
        return "a key, on a full-screen display", f"press it: tmuxctl keys {name} KEY; look: tmuxctl screen {name}"
    what = "the rest of its input" if verdict.kind is InputKind.CONTINUATION else f"a line of input{prompt}"
    return what, f"send it: tmuxctl send {name} TEXT"
