"""What the newest part of a conversation asks for, whatever dialect it came in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

Json = Mapping[str, Any]

# what a program adds to a prompt on its own is never taken for the prompt
ADDED = re.compile(r"<(system-reminder|environment_context|env|context|session_context)>.*?</\1>", re.DOTALL)


class Speaker(Enum):
    """Whose part of a conversation something is."""

    USER = "user"
    MODEL = "model"
    TOOL = "tool"


class Part(NamedTuple):
    """One part of a conversation; of the model's own parts nobody needs the text."""

    speaker: Speaker
    text: str = ""


class Tool(NamedTuple):
    """A tool that the program offers. A custom one takes text, any other one what its schema says; one of a namespace is
    called with its name."""

    name: str
    schema: Json | None = None
    custom: bool = False
    namespace: str = ""


class Turn(NamedTuple):
    """One request: the newest prompt, the results of the tools called since then, and what the program wants to be told.

    `schema` is the form that a structured answer must have. `length` is how many parts the conversation has: ids that are
    made with it are unique there.
    """

    dialect: str
    user: str = ""
    results: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    system: str = ""
    schema: Json | None = None
    model: str = "fake"
    stream: bool = False
    with_usage: bool = False
    length: int = 0

    def continued(self, parts: Iterable[Part]) -> Turn:
        """This turn with the prompt and the results that a conversation ends with."""
        parts = list(parts)
        results: list[str] = []
        user = ""
        for part in reversed(parts):
            if part.speaker is Speaker.TOOL:
                results.insert(0, part.text)
            elif part.speaker is Speaker.USER and (user := without_added(part.text)):
                break
        return self._replace(user=user, results=tuple(results), length=len(parts))


def without_added(text: str) -> str:
    """A prompt without what the program adds to it."""
    text = ADDED.sub("", text).strip()
    return "" if text in ("(no content)", "Tool loaded.") else text


def text_of(content: Any) -> str:
    """The text of a body that may be a string, a block, or a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return next((text_of(content[key]) for key in ("text", "content", "output", "parts") if key in content), "")
    return "\n".join(text for block in content or () if (text := text_of(block)))
