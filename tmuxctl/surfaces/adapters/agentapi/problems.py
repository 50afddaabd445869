"""Failures as agentapi tells them: problem details (RFC 9457), by their HTTP status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Response

from tmuxctl.errors import Conflict, DecisionNeeded, Denied, TmuxctlError

MEDIA_TYPE = "application/problem+json"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"message": {"type": "string"}, "location": {"type": "string"}},
            },
        },
    },
}

EMPTY = "message must not be empty"
CHANGING = "message can only be sent when the agent is waiting for user input"
"""agentapi's own words: clients look for them."""


class RefusedMessage(TmuxctlError):
    """A message that agentapi refuses, with the status that it has there: 500."""

    http_status = 500


class InvalidRequest(TmuxctlError):
    """A request that is not of the shape that it has to have. `location` is where."""

    code, exit, http_status = "usage", 2, 422


def refuse_message(why: str, hint: str = "") -> RefusedMessage:
    """The refusal of a message for one of agentapi's reasons."""
    return RefusedMessage(f"failed to send message: {why}", reason="refused", hint=hint)


def as_refusal(error: TmuxctlError) -> TmuxctlError:
    """What agentapi says where a turn could not begin: it knows one reason, that the program does not wait for a message."""
    if isinstance(error, (Conflict, DecisionNeeded)) and not isinstance(error, Denied):
        return refuse_message(f"{CHANGING}: {error.message}", error.hint)
    return error


def answer_problem(error: TmuxctlError) -> Response:
    """An answer that tells a failure."""
    if isinstance(error, RefusedMessage):
        detail = "unexpected error occurred"
    elif isinstance(error, InvalidRequest):
        detail = "validation failed"
    else:
        detail = error.message
    told: list[dict[str, str]] = [{"message": error.message}]
    if "location" in error.details:
        told[0]["location"] = error.details["location"]
    if error.hint:
        told.append({"message": error.hint})
    return _write(error.http_status, detail, told)


def _write(status: int, detail: str, errors: Sequence[dict[str, str]]) -> Response:
    title = next((known.phrase for known in HTTPStatus if known == status), "Error")
    body = {"title": title, "status": status, "detail": detail, "errors": list(errors)}
    return Response(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"), status, media_type=MEDIA_TYPE)
