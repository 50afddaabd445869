"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..conversation import Json, Part, Speaker, Tool, Turn, text_of
from ..events import Said, Text, Thought, ToolCall
from ..sse import sse, to_json

NAME = "anthropic"
USAGE = {"input_tokens": 42, "output_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def read(body: Json) -> Turn:
    """The turn that a request asks for."""
    form = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    turn = Turn(
        NAME,
        model=body.get("model", "fake"),
        stream=bool(body.get("stream")),
        system=text_of(body.get("system")),
        tools=tuple(Tool(tool.get("name", ""), tool.get("input_schema")) for tool in body.get("tools") or ()),
        schema=form.get("schema", {}) if form.get("type") == "json_schema" else None,
    )
    return turn.continued(part for message in body.get("messages", ()) for part in _parts(message))


def _parts(message: Json) -> Iterator[Part]:
    content = message.get("content")
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        if message.get("role") != "user":
            yield Part(Speaker.MODEL)
        elif block.get("type") == "tool_result":
            yield Part(Speaker.TOOL, text_of(block.get("content")))
        elif block.get("type") == "text":
            yield Part(Speaker.USER, block.get("text", ""))


def whole(turn: Turn, said: Iterable[Said]) -> Json:
    """An answer in one piece."""
    blocks: list[dict[str, Any]] = []
    for event in said:
        if isinstance(event, ToolCall) or not blocks or blocks[-1]["type"] != _kind(event):
            blocks.append(_block(turn, len(blocks), event))
        if isinstance(event, ToolCall):
            blocks[-1]["input"] = event.arguments
        else:
            blocks[-1][_kind(event)] += event.text
    return {**_message(turn), "content": blocks, "stop_reason": _stop_reason(block["type"] for block in blocks)}


def stream(turn: Turn, said: Iterable[Said]) -> Iterator[str]:
    """An answer in chunks."""
    yield _told("message_start", message=_message(turn))
    yield _told("ping")
    kinds: list[str] = []
    for event in said:
        if isinstance(event, ToolCall) or not kinds or kinds[-1] != _kind(event):
            yield from _closed(kinds)
            yield _told("content_block_start", index=len(kinds), content_block=_block(turn, len(kinds), event))
            kinds.append(_kind(event))
        yield _told("content_block_delta", index=len(kinds) - 1, delta=_delta(event))
    yield from _closed(kinds)
    yield _told("message_delta", delta={"stop_reason": _stop_reason(kinds), "stop_sequence": None}, usage=USAGE)
    yield _told("message_stop")


def _closed(kinds: list[str]) -> Iterator[str]:
    """The end of the newest block, if there is one; thinking ends with its signature."""
    index = len(kinds) - 1
    if kinds and kinds[-1] == "thinking":
        signature = {"type": "signature_delta", "signature": "ZmFrZQ=="}
        yield _told("content_block_delta", index=index, delta=signature)
    if kinds:
        yield _told("content_block_stop", index=index)


def _told(kind: str, **about: Any) -> str:
    return sse({"type": kind, **about}, kind)


def _message(turn: Turn) -> dict[str, Any]:
    return {
        "id": f"msg_fake_{turn.length}",
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }


def _kind(event: Said) -> str:
    if isinstance(event, ToolCall):
        return "tool_use"
    return "text" if isinstance(event, Text) else "thinking"


def _block(turn: Turn, index: int, event: Said) -> dict[str, Any]:
    """A block as it is announced, without its contents."""
    if isinstance(event, ToolCall):
        return {"type": "tool_use", "id": f"toolu_fake_{turn.length}_{index}", "name": event.name, "input": {}}
    if isinstance(event, Thought):
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": ""}


def _delta(event: Said) -> dict[str, Any]:
    if isinstance(event, ToolCall):
        return {"type": "input_json_delta", "partial_json": to_json(event.arguments)}
    return {"type": f"{_kind(event)}_delta", _kind(event): event.text}


def _stop_reason(kinds: Iterable[str]) -> str:
    return "tool_use" if "tool_use" in kinds else "end_turn"
