"""What agentapi tells by itself, as server-sent events: messages and states, and the screen.

A reader is told what is new since it was told last, whenever it takes it: one that is slow misses what came between, and
nothing waits for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.errors import TmuxctlError
from tmuxctl.surfaces.adapters.agentapi.conversation import RUNNING, Conversation, TalkError
from tmuxctl.surfaces.server.streams import sse
from tmuxctl.surfaces.server.streams.hub import ENDED
from tmuxctl.timing import TIMING

if TYPE_CHECKING:
    from tmuxctl.model import Session
    from tmuxctl.results import Screen
    from tmuxctl.surfaces.server.calls import Request
    from tmuxctl.surfaces.server.streams.hub import EventHub, Reader

MEDIA = {"cache-control": "no-store", "x-accel-buffering": "no"}


class Follower:
    """One that follows a conversation. `holds` says whether its token still does."""

    def __init__(
        self, conversation: Conversation, request: Request, session: Session, holds: Callable[[], bool]
    ) -> None:
        self.conversation, self.request, self.session, self.holds = conversation, request, session, holds
        self.sent: dict[int, str] = {}
        self.status = ""
        self.told = 0
        self.kind = agent_type(session)

    async def events(self) -> AsyncIterator[str]:
        """All that there is, then what is new, until the session ends."""
        hub = self.conversation.served.hub
        with hub.read(None) as (_, reader):
            for event in await self._news(age=0.0):
                yield event
            checked = looked = spoken = time.monotonic()
            stamp = self.conversation.stamp
            while not reader.lost:
                await _doze(reader)
                now = time.monotonic()
                if now - checked > TIMING.agentapi.holds_seconds:
                    checked = now
                    if not self._may_go_on(hub):
                        return
                pause = (
                    TIMING.agentapi.live_seconds
                    if self.conversation.status(self.session) == RUNNING
                    else TIMING.agentapi.rest_seconds
                )
                if self.conversation.stamp != stamp or self.told != self.conversation.told or now - looked > pause:
                    stamp, looked = self.conversation.stamp, now
                    for event in await self._news():
                        spoken = now
                        yield event
                    if end := self._find_end():
                        yield sse.format_event("agent_error", end.to_json())
                        return
                if now - spoken > TIMING.http.ping_seconds:
                    spoken = now
                    yield sse.PING

    def _may_go_on(self, hub: EventHub) -> bool:
        """Whether the token holds, and is still for this session: it may have another name by now."""
        event = hub.present.get(self.session.lasting_address)
        return self.holds() and (event is None or self.request.access.means(event.session))

    async def _news(self, age: float = TIMING.agentapi.fresh_seconds) -> list[str]:
        """What was not told yet. The state is looked at first: once it is stable, the messages are whole."""
        status, found = self.conversation.status(self.session), []
        with suppress(TmuxctlError):
            for message in await self.conversation.read(self.request, age):
                if self.sent.get(message.id) != message.content:
                    self.sent[message.id] = message.content
                    found.append(sse.format_event("message_update", message.to_json("message")))
        if status != self.status:
            self.status = status
            found.append(sse.format_event("status_change", {"status": status, "agent_type": self.kind}))
        new = self.conversation.told - self.told
        self.told = self.conversation.told
        errors = list(self.conversation.errors)[-new:] if new else []
        return found + [sse.format_event("agent_error", error.to_json()) for error in errors]

    def _find_end(self) -> TalkError | None:
        event = self.conversation.event
        if event is None or event.state not in ENDED:
            return None
        return TalkError(f"the program has ended: {event.why or event.state}", "error", time.time())


async def _doze(reader: Reader) -> None:
    """Sleep until a session changes, at most a tick. What changed is looked up, not taken from here."""
    with suppress(TimeoutError):
        async with asyncio.timeout(TIMING.agentapi.tick_seconds):
            await reader.woken.wait()
    reader.woken.clear()
    reader.waiting.clear()


async def follow_screen(
    conversation: Conversation, request: Request, session: Session, holds: Callable[[], bool]
) -> AsyncIterator[str]:
    """The screen of a session whenever it changes, until the session ends."""
    operate, told, spoken = conversation.served.calls.operate, None, time.monotonic()
    with conversation.served.hub.read(None) as (_, reader):
        while holds() and not reader.lost:
            try:
                screen: Screen = await operate(request, "screen", {"session": session.id, "state": False})
                text, now = screen.text.rstrip(), time.monotonic()
                if text != told:
                    told, spoken = text, now
                    yield sse.format_event("screen", {"screen": text})
                elif now - spoken > TIMING.http.ping_seconds:
                    spoken = now
                    yield sse.PING
                await asyncio.sleep(TIMING.agentapi.frame_seconds)
                arguments = {
                    "session": session.id,
                    "change": True,
                    "since": screen.position,
                    "timeout": TIMING.agentapi.change_seconds,
                }
                waited = await operate(request, "wait", arguments)
            except TmuxctlError:
                # it has ended, or is not to be reached any more, or the server stops
                return
            if waited.state in ENDED:
                return
            reader.waiting.clear()


TYPES = ("claude", "goose", "aider", "codex", "gemini", "copilot", "amp", "cursor", "auggie", "amazonq", "opencode")


def agent_type(session: Session) -> str:
    """agentapi's word for the program."""
    return session.profile if session.profile in TYPES else "custom"
