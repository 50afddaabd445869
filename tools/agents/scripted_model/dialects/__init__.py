"""The interfaces of models that agent programs speak: how each puts a request, and how each wants its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..conversation import Json, Turn
from ..events import Refusal, Said
from . import anthropic, gemini, openai_chat, openai_responses

ERRORS = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
GEMINI_ERRORS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}


class Dialect(NamedTuple):
    """One interface: a request read, and an answer written, as chunks of a stream of server-sent events or as a whole."""

    read: Callable[[Json], Turn]
    stream: Callable[[Turn, Iterable[Said]], Iterator[str]]
    whole: Callable[[Turn, Iterable[Said]], Json]


CHAT = Dialect(openai_chat.read, openai_chat.stream, openai_chat.whole)
RESPONSES = Dialect(openai_responses.read, openai_responses.stream, openai_responses.whole)
ANTHROPIC = Dialect(anthropic.read, anthropic.stream, anthropic.whole)
GEMINI = Dialect(gemini.read, gemini.stream, gemini.whole)


def error(dialect: str, refusal: Refusal) -> dict[str, Any]:
    """The body of an error."""
    kind = ERRORS.get(refusal.status, "api_error")
    if dialect == anthropic.NAME:
        return {"type": "error", "error": {"type": kind, "message": refusal.message}, "request_id": "req_fake"}
    if dialect == gemini.NAME:
        status = GEMINI_ERRORS.get(refusal.status, "UNKNOWN")
        return {"error": {"code": refusal.status, "message": refusal.message, "status": status}}
    code = "rate_limit_exceeded" if refusal.status == 429 else kind
    return {"error": {"message": refusal.message, "type": kind, "param": None, "code": code}}
