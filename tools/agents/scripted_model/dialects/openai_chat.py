"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..conversation import Json, Part, Speaker, Tool, Turn, text_of
from ..events import Said, Text, Thought, ToolCall
from ..sse import sse, to_json

NAME = "openai-chat"
USAGE = {"prompt_tokens": 42, "completion_tokens": 7, "total_tokens": 49}
SPEAKERS = {"user": Speaker.USER, "tool": Speaker.TOOL, "assistant": Speaker.MODEL}

# answers do not depend on the clock
CREATED = 1_700_000_000


def read(body: Json) -> Turn:
    """The turn that a request asks for."""
    messages = [(message.get("role"), text_of(message.get("content"))) for message in body.get("messages", ())]
    form = body.get("response_format") or {}
    schema = {"json_schema": form.get("json_schema", {}).get("schema", {}), "json_object": {}}.get(form.get("type", ""))
    functions = [tool.get("function", tool) for tool in body.get("tools") or ()]
    turn = Turn(
        NAME,
        model=body.get("model", "fake"),
        stream=bool(body.get("stream")),
        with_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        system="\n".join(text for role, text in messages if role in ("system", "developer")),
        tools=tuple(Tool(function.get("name", ""), function.get("parameters")) for function in functions),
        schema=schema,
    )
    return turn.continued(Part(SPEAKERS[role], text) for role, text in messages if role in SPEAKERS)


def whole(turn: Turn, said: Iterable[Said]) -> Json:
    """An answer in one piece."""
    said = list(said)
    calls = [_call(turn, index, call) for index, call in enumerate(e for e in said if isinstance(e, ToolCall))]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(event.text for event in said if isinstance(event, Text)),
        **({"tool_calls": calls} if calls else {}),
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {**_about(turn), "object": "chat.completion", "usage": USAGE, "choices": [choice]}


def stream(turn: Turn, said: Iterable[Said]) -> Iterator[str]:
    """An answer in chunks."""
    calls = 0
    yield _delta(turn, {"role": "assistant", "content": ""})
    for event in said:
        if isinstance(event, Text):
            yield _delta(turn, {"content": event.text})
        elif isinstance(event, Thought):
            yield _delta(turn, {"reasoning_content": event.text})
        else:
            call = _call(turn, calls, event)
            arguments = call["function"].pop("arguments")
            yield _delta(
                turn, {"tool_calls": [{"index": calls, **call, "function": {**call["function"], "arguments": ""}}]}
            )
            yield _delta(turn, {"tool_calls": [{"index": calls, "function": {"arguments": arguments}}]})
            calls += 1
    yield _delta(turn, {}, "tool_calls" if calls else "stop")
    if turn.with_usage:
        yield sse({**_about(turn), "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
    yield sse("[DONE]")


def _about(turn: Turn) -> dict[str, Any]:
    return {"id": "chatcmpl-fake", "created": CREATED, "model": turn.model}


def _delta(turn: Turn, delta: Json, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return sse({**_about(turn), "object": "chat.completion.chunk", "choices": [choice]})


def _call(turn: Turn, index: int, call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": to_json(call.arguments)}
    return {"id": f"call_fake_{turn.length}_{index}", "type": "function", "function": function}
