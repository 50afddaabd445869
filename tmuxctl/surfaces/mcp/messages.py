"""Messages that the SDK cannot read: it would leave them without an answer, and the client would wait for ever."""

from __future__ import annotations

import contextvars
import json
from types import TracebackType
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from tmuxctl.untrusted import parse_json


class AnsweredMessages:
    """The SDK's stream of messages from the client, without what is no message (the SDK gives an exception for it): that is
    answered with an error of the protocol, on the SDK's stream to the client."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    @property
    def last_context(self) -> contextvars.Context | None:
        """What the SDK asks its own stream for."""
        return getattr(self._incoming, "last_context", None)

    async def receive(self) -> SessionMessage:
        """The next message; raises anyio.EndOfStream."""
        while True:
            item: SessionMessage | Exception = await self._incoming.receive()
            message = mend(item) if isinstance(item, Exception) else item
            if isinstance(message, SessionMessage):
                return message
            await self._outgoing.send(SessionMessage(message))

    async def aclose(self) -> None:
        """End the stream."""
        await self._incoming.aclose()

    def __aiter__(self) -> AnsweredMessages:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> AnsweredMessages:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def mend(error: Exception) -> SessionMessage | types.JSONRPCError:
    """The message that a line was meant to be, with U+FFFD for each half of a surrogate pair, which JavaScript writes where it
    cuts a character in two; else the error that answers it, with its id if it has one."""
    given = [one["input"] for one in error.errors(include_url=False)] if isinstance(error, ValidationError) else [None]
    if not isinstance(given[0], str):
        # of each form that a message may have, the part that does not fit
        return _invalid(next((one for one in given if isinstance(one, dict) and "id" in one), None))
    try:
        value = parse_json(given[0], limit=len(given[0]))
        text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except ValueError:
        return _error(None, types.PARSE_ERROR, "the line is no JSON")
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError:
        return _invalid(value)


def _invalid(value: Any) -> types.JSONRPCError:
    name = value.get("id") if isinstance(value, dict) else None
    known = isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool))
    return _error(name if known else None, types.INVALID_REQUEST, "this is no request of JSON-RPC 2.0")


def _error(name: int | str | None, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=name, error=types.ErrorData(code=code, message=message))
