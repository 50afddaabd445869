"""A session as agentapi sees it: stable or running, what it was told and said, what went wrong."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from tmuxctl.errors import TmuxctlError
from tmuxctl.model import State
from tmuxctl.surfaces.adapters.agentapi import problems
from tmuxctl.surfaces.adapters.agentapi.messages import (
    MessageReader,
    PostedMessage,
    TalkMessage,
    TurnTexts,
    format_time,
)
from tmuxctl.surfaces.adapters.agentapi.screens import begin_of
from tmuxctl.terminal.tmux.journal import parse_cursor
from tmuxctl.timing import TIMING
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.model import Session
    from tmuxctl.results import Answer, Asking, Event, Screen
    from tmuxctl.surfaces.server.app import Served
    from tmuxctl.surfaces.server.calls import Request
    from tmuxctl.surfaces.server.streams.hub import Change

STABLE, RUNNING = "stable", "running"

WAITING = (State.IDLE, State.ASKING, State.UNKNOWN)
"""States in which agentapi calls a program stable: it waits, or is quiet."""

TURN_TIMEOUT = "24h"
"""How long a turn may take: agentapi knows no end."""

KNOWN = 1000
"""Sessions of which something is remembered."""

ERRORS = 100
"""Errors that are told again to whoever comes later, as agentapi does."""


class TalkError(Value):
    """What went wrong after a message had been taken: an `error`, or a `warning` after which the program goes on."""

    message: str
    level: str
    at: float

    def to_json(self) -> dict[str, str]:
        """It as an object."""
        return {"message": self.message, "level": self.level, "time": format_time(self.at)}


class Conversation:
    """That of one session, by its id."""

    def __init__(self, served: Served, session: str) -> None:
        self.served, self.session = served, session
        self.posted: PostedMessage | None = None
        self.claimed = False
        """A message is about to be typed."""
        self.quiet = False
        """The turn goes on, but its program shows its prompt, and has been silent."""
        self.version = 0
        """Grows with each turn that begins or ends here."""
        self._turn_end: tuple[Event | None, Asking | None] = (None, None)
        """The newest change of the state when the last turn ended here, and the question in which it ended: who follows the session
        may hear of that a moment later."""
        self.errors: deque[TalkError] = deque(maxlen=ERRORS)
        self.told = 0
        """How many errors there ever were."""
        self.texts = TurnTexts()
        self.uploading = asyncio.Lock()
        self._task: asyncio.Task[TmuxctlError | None] | None = None
        self._given_up = asyncio.Event()
        self._reading = asyncio.Lock()
        self._read: tuple[float, object, tuple[TalkMessage, ...]] | None = None

    @property
    def event(self) -> Event | None:
        """The newest change of the session's state; None if nothing is known."""
        return self.served.hub.present.get(self.session)

    def status(self, shown: Session | None = None) -> str:
        """agentapi's word for what the program does; `shown` counts where no change of it was seen yet."""
        if self.claimed or self.posted is not None:
            return STABLE if self.quiet else RUNNING
        state = self.event.state if self.event else shown.state if shown else None
        return STABLE if state in WAITING else RUNNING

    @property
    def stamp(self) -> object:
        """Another one whenever there may be other messages, but for what a program prints."""
        event = self.event
        return self.version, event and event.time, event and event.state

    async def read(self, request: Request, age: float = TIMING.agentapi.fresh_seconds) -> tuple[TalkMessage, ...]:
        """The messages, as they were at most so many seconds ago."""
        async with self._reading:
            stamp, now = self.stamp, time.monotonic()
            if self._read is None or self._read[1] != stamp or now - self._read[0] > age:
                event, asking = self._turn_end
                if self.event is not event:
                    asking = self.event.asking if self.event and self.event.state is State.ASKING else None
                work = partial(self._read_now, request, self.posted, asking if self.posted is None else None)
                self._read = now, stamp, await self.served.calls.in_thread(work)
            return self._read[2]

    def _read_now(self, request: Request, *about: Any) -> tuple[TalkMessage, ...]:
        return MessageReader(self.served.calls, request, self.session, self.texts).read(*about)

    async def post(self, request: Request, text: str) -> None:
        """Give the program a message, and return once it works on it, or has answered. RefusedMessage where it does not wait
        for one."""
        if self.claimed or (self.posted is not None and not self.quiet):
            raise problems.refuse_message(problems.CHANGING, "GET /status says stable when it does")
        event = self.event
        self.claimed, self.quiet = True, False
        try:
            await self._give_up()
            arguments = {"session": self.session, "state": False}
            screen: Screen = await self.served.calls.operate(request, "screen", arguments)
            assert screen.position
            begin = begin_of(screen, parse_cursor(screen.position).offset)
            self.posted, self._given_up = PostedMessage(text, begin, time.time()), asyncio.Event()
        finally:
            self.claimed = False
        self._task = asyncio.create_task(self._ask(request, self.posted))
        await self._await_begin(self._task, event)

    async def _give_up(self) -> None:
        """Wait no longer for the end of a turn whose program is quiet."""
        self._given_up.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _await_begin(self, task: asyncio.Task[TmuxctlError | None], before: Event | None) -> None:
        until = time.monotonic() + TIMING.agentapi.begin_seconds
        while time.monotonic() < until:
            if (await asyncio.wait({task}, timeout=TIMING.agentapi.begin_pause_seconds))[0]:
                if error := task.result():
                    raise problems.as_refusal(error)
                return
            event = self.event
            if event is not None and event is not before and event.state is State.BUSY:
                break
        task.add_done_callback(self._tell_failure)

    def _tell_failure(self, task: asyncio.Task[TmuxctlError | None]) -> None:
        if not task.cancelled() and (error := task.result()) and error.reason != "cancelled":
            self.add_error(error.message, "error")

    async def _ask(self, request: Request, posted: PostedMessage) -> TmuxctlError | None:
        """Carry out the turn, whoever goes away meanwhile; why it failed, if it did."""
        self.version += 1
        watching = asyncio.create_task(self._watch_quiet(request, posted))
        try:
            work = partial(self._ask_now, request, posted)
            answer = await self.served.calls.in_thread(work, self._await_given_up)
            self.texts.keep(posted, answer.turn)
            self._turn_end = self.event, answer.status.asking
            if answer.error:
                self.add_error(answer.error, "error")
            if answer.warning:
                self.add_error(answer.warning, "warning")
        except TmuxctlError as error:
            return error
        finally:
            watching.cancel()
            self.posted, self.quiet = None, False
            self.version += 1
        return None

    async def _await_given_up(self) -> None:
        await self._given_up.wait()

    def _ask_now(self, request: Request, posted: PostedMessage) -> Answer:
        arguments = {"session": self.session, "text": posted.text, "timeout": TURN_TIMEOUT}
        try:
            answer: Answer = self.served.calls.operate_here(request, "ask", arguments)
            return answer
        except TmuxctlError as error:
            if error.reason == "cancelled":
                # the server stops, or the next message comes: what there is of the turn is kept, as its end would be
                MessageReader(self.served.calls, request, self.session, self.texts).note_unfinished(posted)
            raise

    async def _watch_quiet(self, request: Request, posted: PostedMessage) -> None:
        """Look again and again whether the program is quiet at its prompt."""
        seen, since = posted.begin.offset, time.monotonic()
        while True:
            await asyncio.sleep(TIMING.agentapi.quiet_pause_seconds)
            screen: Screen | None = None
            with suppress(TmuxctlError):
                screen = await self.served.calls.operate(request, "screen", {"session": self.session, "state": False})
            if screen is None or screen.position is None:
                continue
            now = begin_of(screen, parse_cursor(screen.position).offset)
            if now.offset != seen:
                seen, since = now.offset, time.monotonic()
            prompts = bool(now.left.strip()) and now.left == posted.begin.left and now.offset > posted.begin.offset
            quiet = prompts and time.monotonic() - since > TIMING.agentapi.quiet_seconds
            if quiet != self.quiet:
                self.quiet = quiet
                self.version += 1

    def add_error(self, message: str, level: str) -> None:
        """Tell all who follow, and those who come later, that something went wrong."""
        self.errors.append(TalkError(message, level, time.time()))
        self.told += 1


class Conversations:
    """Those of one server. That of a session which is gone is forgotten."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.known: dict[str, Conversation] = {}
        served.hub.listeners.append(self._forget)

    def find(self, session: str) -> Conversation:
        """The conversation of a session, by its id."""
        found = self.known.get(session)
        if found is None:
            if len(self.known) >= KNOWN:
                idle = next((name for name, one in self.known.items() if one.posted is None), None)
                self.known.pop(idle or "", None)
            found = self.known[session] = Conversation(self.served, session)
        return found

    def _forget(self, change: Change) -> None:
        if change.gone:
            self.known.pop(change.event.id or "", None)
