"""A session's terminal as raw bytes, for one client: what it prints from a point on, and what is typed, as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import from_thread

from tmuxctl.control.sessions import finding
from tmuxctl.errors import Conflict, TmuxctlError, Unreachable, Usage
from tmuxctl.operations import current, in_pieces
from tmuxctl.terminal.input.paste import LINE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tmuxctl.results import Output
    from tmuxctl.surfaces.server.calls import Calls, Request

UNREAD_BYTES = 1 << 16
"""Bytes that may be typed before the program has read those before them. tmux keeps what the terminal does not take, without
end: 10 MB typed at a program that sleeps made a server of 5 MB one of 15 MB (measured)."""

PASSING = ("human", "leased", "copy_mode", "input_off")
"""Why nothing can be typed now, but later."""

Sent = Coroutine[Any, Any, None]


class RawTerminal:
    """One client at the terminal of a session, which is given by its id."""

    def __init__(self, calls: Calls, request: Request, session: str) -> None:
        self.calls, self.request, self.session = calls, request, session
        self.timing = calls.control.machine.timing.raw_terminal
        self.unread = 0
        """Bytes typed since the program was last seen to have read all."""

    async def find_end(self) -> str:
        """The cursor behind what the session has printed so far. Raises TmuxctlError; Conflict `no_journal` where that is not kept
        as bytes."""
        return await self.calls.in_thread(self._find_end)

    def _find_end(self) -> str:
        # `show` judges the state too: a hundred clients that connect at once would wait for that
        service, name = self.calls.control.reach(self.session)
        if service.machine.remote is not None:
            return str(self.calls.control.call("show", {"session": self.session}).cursor or "screen")
        pane = finding.find_session(service.machine, name)
        if not pane.spec.get("journal", True):
            hint = f"tmuxctl attach {pane.name}"
            raise Conflict(f"what {pane.name} prints is not kept as bytes", reason="no_journal", hint=hint)
        return finding.cursor_at(pane, finding.open_journal(service.machine, pane).end())

    async def print_to(self, since: str, send: Callable[[bytes], Sent], behind: Callable[[Output], Sent]) -> None:
        """Send what the session prints after a cursor, until it has ended. A slow client holds up a thread, and its journal
        keeps the rest; `behind` is called where that did not reach back far enough, with the output after the gap."""
        await self.calls.in_thread(partial(self._print, since, send, behind), wait_for_ever)

    def _print(self, since: str, send: Callable[[bytes], Sent], behind: Callable[[Output], Sent]) -> None:
        cursor, follow = since, True
        while True:
            try:
                for output in self._read(cursor, follow=follow):
                    cursor = output.cursor
                    if output.truncated:
                        from_thread.run(behind, output)
                    if output.data:
                        from_thread.run(send, output.data)
            except TmuxctlError as error:
                if follow and error.reason == "backend_timeout":
                    self._wait()
                    continue
                if follow or error.reason == "cancelled":
                    raise
            if not follow:
                return
            # a session that was removed keeps its last output elsewhere: it is read from there
            follow = False

    def _wait(self) -> None:
        """Let tmux come to itself."""
        current().check()
        self.calls.control.machine.clock.sleep(self.timing.hold_seconds)

    def _read(self, since: str, *, follow: bool) -> Iterator[Output]:
        arguments = {"session": self.session, "since": since, "follow": follow, "raw": True}
        with in_pieces("data"):
            outputs: Iterator[Output] = self.calls.operate_here(self.request, "read", arguments)
        return outputs

    async def type(self, data: bytes) -> None:
        """Type bytes exactly as they are, no sooner than the program reads: what it does not read stays with the client. Input
        that cannot be typed now, as while a person types, is held back. Raises what `send` raises for good."""
        position, pause = 0, self.timing.pause_seconds
        while position < len(data):
            typed = await self.calls.in_thread(
                partial(self._type_some, data[position : position + UNREAD_BYTES]), wait_for_ever
            )
            position += typed or 0
            if typed:
                pause = self.timing.pause_seconds
            elif typed is None:
                await asyncio.sleep(self.timing.hold_seconds)
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, self.timing.rare_pause_seconds)

    def _type_some(self, data: bytes) -> int | None:
        """Type as much as there is room for; how many bytes that was, None if nothing may be typed now."""
        part = data[: self._find_room(len(data))]
        try:
            if part:
                self._send(part)
        except Usage as error:
            if error.reason != "line_too_long":
                raise
            # of a longer line this terminal drops the rest, as any does: that is not ours to judge
            part = part[:LINE_LIMIT]
            self._send(part)
        except Conflict as error:
            if error.reason not in PASSING:
                raise
            return None
        self.unread += len(part)
        return len(part)

    def _find_room(self, wanted: int) -> int:
        """How many of these bytes may be typed now."""
        if self.unread + wanted > UNREAD_BYTES and self._has_read_all():
            self.unread = 0
        return min(wanted, UNREAD_BYTES - self.unread)

    def _has_read_all(self) -> bool:
        """Whether the program has read all that was typed; True where that cannot be told."""
        service, name = self.calls.control.reach(self.session)
        machine = service.machine
        if machine.remote is not None:
            return True
        path = finding.find_known(machine, name).tty
        for again in (True, False):
            tty = machine.transport.tty(path)
            if tty is not None and tty.unread:
                return False
            if again:
                machine.clock.sleep(self.timing.drained_seconds)
        return True

    def _send(self, data: bytes) -> None:
        """Type this once: where tmux did not say whether it did, it is asked again."""
        # keys of a password are typed where nobody can read along
        given = {"session": self.session, "text": data, "enter": False, "multiline": True}
        given["insecure"] = self.request.access.private
        rights, cancelled = self.request.access.rights, current().cancelled
        while True:
            try:
                self.calls.control.call("send", given, rights=rights, cancelled=cancelled)
                return
            except Unreachable as error:
                if error.reason == "outcome_unknown":
                    given["id"] = error.details["id"]
                elif error.reason != "backend_timeout":
                    raise
            self._wait()


async def wait_for_ever() -> None:
    """A client of which the task tells that it has gone away, by being cancelled."""
    await asyncio.Event().wait()
