"""How the asyncio twin calls the library: each call in a thread, which ends when its task is cancelled."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from tmuxctl.errors import TmuxctlError
from tmuxctl.model import Asking
from tmuxctl.operations import Call, Cancellation, current, under

AsyncAnswerer = Callable[[Asking], "str | bytes | Awaitable[str | bytes | None] | None"]
"""As `Answerer`; called in the event loop, and may be a coroutine function."""

MOST_WAITS = 4096
"""Threads at most: each wait has one, and sleeps there."""

SHORT_AT_ONCE = 8
"""Calls that do not wait, carried out at the same time: more only make each other slow."""

T = TypeVar("T")


class CallThreads:
    """The threads of one asyncio client, started as they are needed, ended by `close`."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._short: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    async def run(self, function: Callable[[], T], *, waits: bool) -> T:
        """What the function returns, called in a thread. A cancelled task cancels its call, and ends when that has ended: a
        wait at once, a write when it is done. `waits`: it may sleep as long as it likes; others go on beside it."""
        if waits:
            return await self._run(function)
        async with self._semaphore():
            return await self._run(function)

    async def _run(self, function: Callable[[], T]) -> T:
        cancelled = Cancellation()

        def work() -> T:
            with under(Call(os.urandom(8).hex(), cancelled=cancelled)):
                return function()

        if self._pool is None:
            self._pool = ThreadPoolExecutor(MOST_WAITS, thread_name_prefix="tmuxctl")
        future = asyncio.wrap_future(self._pool.submit(work))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            cancelled.set()
            with suppress(TmuxctlError):
                await future
            raise

    async def iterate(self, iterator: Iterator[T]) -> AsyncIterator[T]:
        """The items of an iterator that sleeps between them."""
        end = object()
        try:
            while (item := await self.run(lambda: next(iterator, end), waits=True)) is not end:
                yield item  # type: ignore[misc]
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                await self.run(close, waits=False)

    def _semaphore(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._short is None or self._short[0] is not loop:
            self._short = loop, asyncio.Semaphore(SHORT_AT_ONCE)
        return self._short[1]

    async def close(self) -> None:
        """End the threads, when their calls have ended."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.get_running_loop().run_in_executor(None, pool.shutdown)


def in_loop(answer: AsyncAnswerer | None) -> Callable[[Asking], str | bytes | None] | None:
    """A function that asks `answer` in the event loop of the caller, from another thread."""
    if answer is None:
        return None
    loop = asyncio.get_running_loop()

    async def call(asking: Asking) -> str | bytes | None:
        found = answer(asking)
        return await found if inspect.isawaitable(found) else found

    def ask(asking: Asking) -> str | bytes | None:
        future: Future[str | bytes | None] = asyncio.run_coroutine_threadsafe(call(asking), loop)
        current().wake_by(lambda: (future.cancel(), None)[1])
        return future.result()

    return ask
