"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, groupby
from typing import Any

from ..conversation import Json, Part, Speaker, Tool, Turn, text_of
from ..events import Said, Text, Thought, ToolCall
from ..sse import sse, to_json
from .openai_chat import CREATED

NAME = "openai-responses"
USAGE = {
    "input_tokens": 42,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 49,
}


def read(body: Json) -> Turn:
    """The turn that a request asks for."""
    given = body.get("input", [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    form = (body.get("text") or {}).get("format") or {}
    turn = Turn(
        NAME,
        model=body.get("model", "fake"),
        stream=bool(body.get("stream")),
        system="\n".join(
            [body.get("instructions") or "", *(text_of(item["content"]) for item in items if _is_system(item))]
        ),
        tools=tuple(_tools(body)),
        schema=form.get("schema", {}) if form.get("type") == "json_schema" else None,
    )
    return turn.continued(part for item in items if not _is_system(item) for part in _parts(item))


def _is_system(item: Json) -> bool:
    return item.get("type", "message") == "message" and item.get("role") in ("system", "developer")


def _parts(item: Json) -> Iterator[Part]:
    if item.get("type", "message") == "message" and item.get("role") == "user":
        content = item.get("content")
        for block in content if isinstance(content, list) else [content]:
            yield Part(Speaker.USER, text_of(block))
    elif item.get("type", "").endswith("_output"):
        yield Part(Speaker.TOOL, text_of(item.get("output")))
    else:
        yield Part(Speaker.MODEL)


def _tools(body: Json) -> Iterator[Tool]:
    """The tools that are offered, those in a namespace too; one without a name is called what it is."""
    for group in body.get("tools") or ():
        namespace = group.get("name", "") if group.get("type") == "namespace" else ""
        for tool in group.get("tools", ()) if namespace else [group]:
            kind = tool.get("type", "function")
            yield Tool(tool.get("name") or kind, tool.get("parameters"), kind == "custom", namespace)


def whole(turn: Turn, said: Iterable[Said]) -> Json:
    """An answer in one piece."""
    items = []
    for index, (_, group) in enumerate(groupby(said, _groups())):
        events = list(group)
        items.append({**_item(turn, index, events[0]), **_filled(events), "status": "completed"})
    return _response(turn, items)


def stream(turn: Turn, said: Iterable[Said]) -> Iterator[str]:
    """An answer in chunks: each item is announced, then filled, then done."""
    numbers = count()

    def told(kind: str, **about: Any) -> str:
        return sse({**about, "type": kind, "sequence_number": next(numbers)}, kind)

    begun = {**_response(turn, []), "status": "in_progress", "usage": None}
    yield told("response.created", response=begun)
    yield told("response.in_progress", response=begun)
    items = []
    for index, (_, group) in enumerate(groupby(said, _groups())):
        events = iter(group)
        first = next(events)
        item = _item(turn, index, first)
        place = {"item_id": item["id"], "output_index": index}
        yield told("response.output_item.added", output_index=index, item=item)
        seen = [first]
        if isinstance(first, ToolCall):
            item |= _filled(seen)
            name = "custom_tool_call_input" if first.custom else "function_call_arguments"
            key = "input" if first.custom else "arguments"
            if key in item:
                yield told(f"response.{name}.done", **place, **{key: item[key]})
        else:
            part, text = _names(first)
            inner = {"summary_index": 0} if isinstance(first, Thought) else {"content_index": 0}
            yield told(f"response.{part}.added", **place, **inner, part=_block(first, ""))
            yield told(f"response.{text}.delta", **place, **inner, delta=first.text)
            for event in events:
                seen.append(event)
                yield told(f"response.{text}.delta", **place, **inner, delta=event[0])
            whole_text = "".join(event[0] for event in seen)
            yield told(f"response.{text}.done", **place, **inner, text=whole_text)
            yield told(f"response.{part}.done", **place, **inner, part=_block(first, whole_text))
            item |= _filled(seen)
        item["status"] = "completed"
        yield told("response.output_item.done", output_index=index, item=item)
        items.append(item)
    yield told("response.completed", response=_response(turn, items))


def _groups() -> Any:
    """What tells one item of an answer from the next: pieces of text, or of thought, make one; each call is its own."""
    calls = count()
    return lambda event: next(calls) if isinstance(event, ToolCall) else type(event).__name__


def _response(turn: Turn, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"resp_fake_{turn.length}",
        "object": "response",
        "created_at": CREATED,
        "model": turn.model,
        "status": "completed",
        "output": items,
        "usage": USAGE,
        "error": None,
    }


def _item(turn: Turn, index: int, first: Said) -> dict[str, Any]:
    """An item as it is announced, without its contents."""
    place = f"{turn.length}_{index}"
    if isinstance(first, Text):
        return {
            "id": f"msg_fake_{place}",
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
    if isinstance(first, Thought):
        return {"id": f"rs_fake_{place}", "type": "reasoning", "summary": []}
    about = {"call_id": f"call_fake_{place}", "status": "in_progress"}
    if first.custom:
        return {"id": f"ctc_fake_{place}", "type": "custom_tool_call", "name": first.name, "input": "", **about}
    if first.name == "local_shell":
        return {"id": f"lsh_fake_{place}", "type": "local_shell_call", **about}
    if namespace := next((tool.namespace for tool in turn.tools if tool.name == first.name), ""):
        about["namespace"] = namespace
    return {"id": f"fc_fake_{place}", "type": "function_call", "name": first.name, "arguments": "", **about}


def _filled(events: list[Said]) -> dict[str, Any]:
    """The contents of an item."""
    first = events[0]
    if isinstance(first, ToolCall):
        if first.custom:
            return {"input": first.arguments}
        if first.name == "local_shell":
            return {"action": {"type": "exec", "command": first.arguments["command"], "env": {}}}
        return {"arguments": to_json(first.arguments)}
    text = "".join(event[0] for event in events)
    return {"summary" if isinstance(first, Thought) else "content": [_block(first, text)]}


def _block(first: Text | Thought, text: str) -> dict[str, Any]:
    if isinstance(first, Thought):
        return {"type": "summary_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": []}


def _names(first: Text | Thought) -> tuple[str, str]:
    """What the events of a part, and those of its text, are called."""
    if isinstance(first, Thought):
        return "reasoning_summary_part", "reasoning_summary_text"
    return "content_part", "output_text"
