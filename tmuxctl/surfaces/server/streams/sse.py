"""Events as server-sent events (WHATWG HTML, 9.2): of all sessions, and of one session with what it prints."""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import from_thread

from tmuxctl.access import still_means
from tmuxctl.errors import TmuxctlError
from tmuxctl.operations import to_json
from tmuxctl.surfaces.server.calls import Calls, Request
from tmuxctl.surfaces.server.streams.hub import Change, EventHub, parse_number
from tmuxctl.timing import TIMING

if TYPE_CHECKING:
    from tmuxctl.access import CallerAccess


PING = ": ping\n\n"
MEDIA_TYPE = "text/event-stream"
WAITING_PARTS = 16
"""Parts of a session's output that wait for a slow reader; its journal has the rest."""


def format_event(name: str, data: Any, event_id: str | None = None) -> str:
    """One event as text. JSON has no line end in it, so one `data` line is enough."""
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


async def pack(events: AsyncGenerator[str, None]) -> AsyncIterator[bytes]:
    """These events in gzip's format (RFC 1952), so that each can be read as soon as it comes."""
    packing = zlib.compressobj(1, wbits=31)
    async with aclosing(events):
        async for event in events:
            yield packing.compress(event.encode()) + packing.flush(zlib.Z_SYNC_FLUSH)


async def stream_all(
    hub: EventHub, access: CallerAccess, last_id: str | None, holds: Callable[[], bool]
) -> AsyncIterator[str]:
    """The present state of each session that the caller may know of, then every change; or what changed since the event with
    this id, if that is known. Ends for a reader that is too slow, which it is told, and for a token that was revoked."""
    with hub.read(parse_number(last_id, hub.life)) as (begin, reader):
        for change in begin:
            if access.means(change.event.session):
                yield _format_change(hub, change)
        changes = reader.changes()
        while holds():
            following = asyncio.ensure_future(anext(changes, None))
            try:
                while not (await asyncio.wait({following}, timeout=TIMING.http.ping_seconds))[0] and holds():
                    yield PING
                found = following.result() if following.done() else None
            finally:
                following.cancel()
            if found is None or not holds():
                break
            if access.means(found.event.session):
                yield _format_change(hub, found)
        if reader.lost:
            yield format_event("dropped", {"why": "this reader was too slow, or the server stops"})


def _format_change(hub: EventHub, change: Change) -> str:
    return format_event(change.name, to_json(change.event), f"{hub.life}-{change.number}")


async def stream_session(
    hub: EventHub,
    calls: Calls,
    request: Request,
    session: str,
    since: str,
    raw: bool,
    ended: Callable[[], Awaitable[None]],
) -> AsyncIterator[str]:
    """The state of a session and its changes, and what it prints after a cursor. Only events of output have an id, the cursor
    behind them: whoever comes back with it misses nothing of the output. It ends once `ended` returns."""
    told = _SessionEvents(calls, request, session)
    works = (told.tell_states(hub), told.tell_output(since, raw), told.tell_end(ended))
    tasks = [asyncio.create_task(work) for work in works]
    try:
        while True:
            try:
                async with asyncio.timeout(TIMING.http.ping_seconds):
                    part = await told.parts.get()
            except TimeoutError:
                yield PING
                continue
            if part is None or told.over:
                break
            yield part
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _SessionEvents:
    """The events of one session on their way to one reader. `parts` waits for it, and None is the end; `over`: nothing of what
    waits is to be told any more."""

    def __init__(self, calls: Calls, request: Request, session: str) -> None:
        self.calls, self.request, self.session = calls, request, session
        self.parts: asyncio.Queue[str | None] = asyncio.Queue(WAITING_PARTS)
        self.over = False

    async def tell_states(self, hub: EventHub) -> None:
        """Tell the present state, then each change of it."""
        with hub.read(None) as (begin, reader):
            for change in begin:
                await self._tell_change(change)
            async for change in reader.changes():
                await self._tell_change(change)

    async def _tell_change(self, change: Change) -> None:
        # an address is by the id too: `web1/ID`
        machine = change.event.session.rpartition("/")[0]
        if self.session == (f"{machine}/{change.event.id}" if machine else change.event.id):
            await self.parts.put(format_event(change.name, to_json(change.event)))

    async def tell_output(self, since: str, raw: bool) -> None:
        """Tell what is printed, to its end."""
        await self.calls.in_thread(partial(self._print, since, raw))
        await self.parts.put(None)

    def _print(self, since: str, raw: bool) -> None:
        arguments = {"session": self.session, "since": since, "follow": True, "raw": raw}
        try:
            for output in self.calls.operate_here(self.request, "read", arguments):
                if not still_means(self.request.access, self.calls.control, self.session):
                    return
                text = {"data": base64.b64encode(output.data).decode()} if raw else {"text": output.text}
                gap = {"truncated": output.truncated, "missing_bytes": output.missing_bytes}
                about = {"session": output.session, **text, "cursor": output.cursor, **gap}
                from_thread.run(self.parts.put, format_event("output", about, output.cursor))
        except TmuxctlError as error:
            if error.reason != "cancelled":
                from_thread.run(self.parts.put, format_event("error", {"error": to_json(error.to_json())}))

    async def tell_end(self, ended: Callable[[], Awaitable[None]]) -> None:
        """Tell nothing any more once that has returned."""
        await ended()
        self.over = True
        while not self.parts.empty():
            self.parts.get_nowait()
        await self.parts.put(None)
