"""Carrying out operations for callers of the server: in threads, with what the caller may, until it goes away."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from tmuxctl.access import CallerAccess, check_arguments
from tmuxctl.control.service import Control
from tmuxctl.errors import Denied, TmuxctlError
from tmuxctl.model import NOTHING
from tmuxctl.operations import Call, Cancellation, current, find, under
from tmuxctl.results import Sessions
from tmuxctl.surfaces.server.admission.guard import Busy
from tmuxctl.surfaces.server.logs import AuditLog
from tmuxctl.surfaces.server.metrics import Metrics
from tmuxctl.value import Value, changed

T = TypeVar("T")

CALLS = 512
"""Calls under way at once, each in a thread that mostly sleeps; one more is refused."""

Gone = Callable[[], Awaitable[None]]
"""Returns when the caller has gone away."""


class Request(Value):
    """Who calls, and the id of its request. `repeat_id`, where the caller chose one, makes a repeated write happen once."""

    access: CallerAccess
    id: str
    repeat_id: str | None = None
    gone: Gone | None = None


class NewDefaults(Value):
    """What `new` gets where a caller does not say: the words of a shell, none for the user's, and a folder."""

    shell: tuple[str, ...] = ()
    cwd: str | None = None

    def fill(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call of `new`, with these. A profile or candidates bring a command of their own."""
        found = dict(arguments)
        named = found.get("profile") not in (None, "auto", "none") or found.get("candidates")
        if self.shell and not found.get("command") and not named:
            found["command"] = self.shell
        if self.cwd is not None and found.get("cwd") is None:
            found["cwd"] = self.cwd
        return found


NO_DEFAULTS = NewDefaults()


class Calls:
    """The calls of one server, all of them on one Control."""

    def __init__(
        self, control: Control, audit: AuditLog, metrics: Metrics, defaults: NewDefaults = NO_DEFAULTS
    ) -> None:
        self.control, self.audit, self.metrics, self.defaults = control, audit, metrics, defaults
        self.threads = anyio.CapacityLimiter(CALLS)
        self.running: set[Cancellation] = set()
        metrics.under_way.set_function(lambda: len(self.running))

    async def operate(self, request: Request, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out an operation by its name, with plain values. Raises TmuxctlError.

        A caller that goes away cancels it: a wait ends, a program goes on.
        """
        return await self.in_thread(partial(self.operate_here, request, operation, arguments), request.gone)

    async def in_thread(self, work: Callable[[], T], gone: Gone | None = None) -> T:
        """What a function returns, called in a thread under a call of its own that ends when the caller goes away."""
        if len(self.running) >= CALLS:
            raise Busy(f"{CALLS} calls are under way", reason="busy", hint="try again when one of them has ended")
        cancelled = Cancellation()
        self.running.add(cancelled)

        def called() -> T:
            with under(Call("", cancelled=cancelled)):
                return work()

        try:
            return await self._until_gone(called, gone or anyio.sleep_forever, cancelled)
        finally:
            # also where our own task is cancelled: its thread would go on for ever
            cancelled.set()
            self.running.discard(cancelled)

    async def _until_gone(self, called: Callable[[], T], gone: Gone, cancelled: Cancellation) -> T:
        async def watch() -> None:
            try:
                await gone()
            finally:
                cancelled.set()

        found: list[T] = []
        failed: list[BaseException] = []
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            try:
                found.append(await to_thread.run_sync(called, limiter=self.threads))
            except Exception as error:
                failed.append(error)
            group.cancel_scope.cancel()
        if failed:
            raise failed[0]
        return found[0]

    def cancel_all(self) -> None:
        """End what still waits: the server stops."""
        for cancelled in list(self.running):
            cancelled.set()

    def operate_here(
        self, request: Request, name: str, arguments: Mapping[str, Any], own: Mapping[str, Any] = NOTHING
    ) -> Any:
        """As `operate`, in a thread that the caller already has. `own` are arguments that are the server's, not the caller's."""
        operation = find(Control, name)
        access, changes, session = request.access, operation.meta.right != "read", _session_of(arguments)
        began = time.monotonic()
        if name == "new":
            arguments = self.defaults.fill(arguments)
        try:
            access.demand(operation.meta.right, operation.spoken)
            result = self.control.call(
                name,
                {**check_arguments(access, operation, arguments, self.control), **own},
                rights=access.rights,
                request_id=request.repeat_id,
                cancelled=current().cancelled,
            )
        except TmuxctlError as error:
            self.metrics.note_error(name, error.code)
            if changes or isinstance(error, Denied):
                self.audit.note(access, request.id, name, session, error.reason)
            raise
        if isinstance(result, Sessions):
            result = changed(result, sessions=access.select(result.sessions))
        self.metrics.note_call(name, time.monotonic() - began, result)
        if changes:
            self.audit.note(access, request.id, name, session or getattr(result, "name", None), "done")
        return result

    async def decide(self, request: Request, session: str, secret: str, arguments: Mapping[str, Any]) -> Any:
        """Answer the question of a session for a password. Denied `not_private` where somebody could read it on its way."""
        request.access.demand("write", "decide")
        if not request.access.private:
            raise Denied(
                "a password could be read on its way here",
                reason="not_private",
                hint="send it over the server's Unix socket, or serve with --tls-cert and --tls-key",
            )

        def work() -> Any:
            # the operation takes it from a descriptor, so that it is in no argument; a pipe holds more than a secret may have
            reads, writes = os.pipe()
            try:
                os.write(writes, secret.encode())
                os.close(writes)
                return self.operate_here(
                    request, "decide", {**arguments, "session": session}, {"secret_from_fd": reads}
                )
            finally:
                os.close(reads)

        return await self.in_thread(work, request.gone)


def _session_of(arguments: Mapping[str, Any]) -> str | None:
    """The session that a call names, shortened: a caller may give anything."""
    named = arguments.get("session") or arguments.get("name")
    if isinstance(named, (list, tuple)):
        return ",".join(str(one) for one in named)[:200]
    return str(named)[:200] if named else None
