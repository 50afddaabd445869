"""A session's terminal on a WebSocket: raw bytes of its journal from any offset on, keystrokes and sizes back.

Binary messages are bytes of the terminal, in both directions. Text messages are JSON objects: to the client `hello`,
`truncated`, `exited` and `error`; from the client `resize`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.operations import to_json
from tmuxctl.surfaces.server.calls import Calls, Request
from tmuxctl.surfaces.server.routes import to_text
from tmuxctl.surfaces.server.streams.raw_terminal import RawTerminal
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.model import Session
    from tmuxctl.results import Output

TYPED_BYTES = 1 << 16
"""Bytes that are typed at once: what came while the last ones were typed."""

INPUT_BYTES = 1 << 20
"""Bytes of input that wait at most, before no more are read from the connection."""

MESSAGE_CHARS = 4096
"""Characters of a text message from the client."""

POLICY_VIOLATION, NORMAL = 1008, 1000
"""Status codes of RFC 6455, 7.4.1, and of its registry."""


class TerminalSocket:
    """One client at one session's terminal. `holds` says whether its token still does; `ended` returns once it may not stay."""

    def __init__(
        self,
        socket: WebSocket,
        calls: Calls,
        request: Request,
        holds: Callable[[], bool],
        ended: Callable[[], Awaitable[None]],
    ) -> None:
        self.socket, self.calls, self.request, self.holds, self.ended = socket, calls, request, holds, ended
        self.typed: asyncio.Queue[bytes] = asyncio.Queue(INPUT_BYTES // TYPED_BYTES)

    async def run(self, session: Session, since: str) -> None:
        """Serve the client until it goes away, the session ends, or its token is revoked."""
        await self.socket.accept()
        hello = {
            "type": "hello",
            "session": session.address,
            "id": session.id,
            "cols": session.cols,
            "rows": session.rows,
        }
        await self.tell(hello | {"cursor": since})
        raw = RawTerminal(self.calls, self.request, session.lasting_address)
        tasks = [
            asyncio.create_task(raw.print_to(since, self.socket.send_bytes, self._tell_gap)),
            asyncio.create_task(self._take(session.lasting_address)),
            asyncio.create_task(self._type(raw)),
            asyncio.create_task(self._leave()),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if tasks[0] in done:
                await self._tell_end(session.lasting_address)
        except WebSocketDisconnect:
            pass
        except TmuxctlError as error:
            await self.tell({"type": "error", "error": to_json(error.to_json())})
            await self.socket.close(POLICY_VIOLATION, error.reason)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def tell(self, message: dict[str, Any]) -> None:
        """Send a text message."""
        await self.socket.send_text(to_text(message))

    async def _tell_end(self, session: str) -> None:
        try:
            shown = await self.calls.operate(self.request, "show", {"session": session})
            ended = {"exit_status": shown.exit_status, "signal": shown.signal}
        except TmuxctlError:
            ended = {"exit_status": None, "signal": None}
        await self.tell({"type": "exited", **ended})
        await self.socket.close(NORMAL)

    async def _tell_gap(self, output: Output) -> None:
        await self.tell({"type": "truncated", "cursor": output.cursor, "missing_bytes": output.missing_bytes})

    async def _leave(self) -> None:
        await self.ended()
        why = "the token is not for this session any more" if self.holds() else "the token was revoked"
        await self.socket.close(POLICY_VIOLATION, why)

    async def _take(self, session: str) -> None:
        """Take what the client sends."""
        while True:
            message = await self.socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", NORMAL))
            if not self.holds():
                await self.socket.close(POLICY_VIOLATION, "the token was revoked")
                return
            if data := message.get("bytes"):
                self.request.access.demand("write", "typing")
                for begin in range(0, len(data), TYPED_BYTES):
                    await self.typed.put(data[begin : begin + TYPED_BYTES])
            elif text := message.get("text"):
                await self._obey(session, text)

    async def _obey(self, session: str, text: str) -> None:
        try:
            told = parse_json(text, limit=MESSAGE_CHARS)
        except ValueError:
            told = None
        if not isinstance(told, dict) or told.get("type") != "resize":
            hint = '{"type": "resize", "cols": 120, "rows": 40}'
            raise Usage("a text message has to be a JSON object that is known", reason="bad_message", hint=hint)
        size = f"{told.get('cols')}x{told.get('rows')}"
        await self.calls.operate(self.request, "resize", {"session": session, "size": size})

    async def _type(self, raw: RawTerminal) -> None:
        """Type what was taken, in order: all that has come while the last was typed at once."""
        while True:
            data = await self.typed.get()
            while len(data) < TYPED_BYTES and not self.typed.empty():
                data += self.typed.get_nowait()
            await raw.type(data)
