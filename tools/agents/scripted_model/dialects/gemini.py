"""Gemini's generated content. The model and whether to stream stand in the request's path, not in its body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..conversation import Json, Part, Speaker, Tool, Turn, text_of
from ..events import Said, Text, Thought
from ..sse import sse, to_json

NAME = "gemini"
USAGE = {"promptTokenCount": 42, "candidatesTokenCount": 7, "totalTokenCount": 49}


def read(body: Json) -> Turn:
    """The turn that a request asks for."""
    config = body.get("generationConfig") or {}
    wants_json = config.get("responseMimeType") == "application/json"
    functions = (one for group in body.get("tools") or () for one in group.get("functionDeclarations") or ())
    turn = Turn(
        NAME,
        system=text_of(body.get("systemInstruction")),
        tools=tuple(
            Tool(one.get("name", ""), one.get("parametersJsonSchema") or one.get("parameters")) for one in functions
        ),
        schema=(config.get("responseJsonSchema") or config.get("responseSchema") or {}) if wants_json else None,
    )
    return turn.continued(part for content in body.get("contents", ()) for part in _parts(content))


def _parts(content: Json) -> Iterator[Part]:
    for part in content.get("parts", ()):
        if content.get("role") == "model":
            yield Part(Speaker.MODEL)
        elif "functionResponse" in part:
            result = part["functionResponse"].get("response") or {}
            yield Part(Speaker.TOOL, text_of(result.get("output", result.get("error", to_json(result)))))
        elif "text" in part:
            yield Part(Speaker.USER, part["text"])


def whole(turn: Turn, said: Iterable[Said]) -> Json:
    """An answer in one piece."""
    said = [event for event in said if not isinstance(event, Thought)]
    text = "".join(event.text for event in said if isinstance(event, Text))
    parts = [_part(event) for event in said if not isinstance(event, Text)]
    return _content(turn, [*([{"text": text}] if text else []), *parts], finish="STOP")


def stream(turn: Turn, said: Iterable[Said]) -> Iterator[str]:
    """An answer in chunks."""
    for event in said:
        yield sse(_content(turn, [_part(event)]))
    yield sse(_content(turn, [{"text": ""}], finish="STOP"))


def _content(turn: Turn, parts: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": turn.model, "responseId": "fake"}


def _part(event: Said) -> dict[str, Any]:
    if isinstance(event, Text):
        return {"text": event.text}
    if isinstance(event, Thought):
        return {"text": f"**Considering**\n\n{event.text}", "thought": True}
    return {"functionCall": {"name": event.name, "args": event.arguments}, "thoughtSignature": "ZmFrZQ=="}
