"""What a scripted answer is made of, in the order in which the program gets it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Text(NamedTuple):
    """A piece of the answer."""

    text: str


class Thought(NamedTuple):
    """A piece of streamed reasoning."""

    text: str


class Delay(NamedTuple):
    """Silence."""

    seconds: float


class ToolCall(NamedTuple):
    """A tool of the program that the model wants to be run; a custom tool takes text, any other one a JSON object."""

    name: str
    arguments: Any
    custom: bool = False


class Drop(NamedTuple):
    """The connection is cut."""


class Refusal(NamedTuple):
    """An error instead of an answer: the only event of its turn. Without `retry_after` no such header is sent."""

    status: int
    message: str
    retry_after: int | None = None


Said = Text | Thought | ToolCall
"""What a dialect puts into words; the server itself sees to silence, cuts and errors."""

Event = Said | Delay | Drop | Refusal
