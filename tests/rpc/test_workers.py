"""Threads that wait for more work."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from gateway.gateway_site import until

from tmuxctl.rpc.workers import Workers

PATIENCE = 20.0


def idents(workers: Workers, number: int) -> list[int]:
    """The threads in which so many pieces of work were carried out, one after the other."""
    found: list[int] = []
    for _ in range(number):
        done = threading.Event()

        def work(done: threading.Event = done) -> None:
            found.append(threading.get_ident())
            done.set()

        until(lambda: workers._idle or not found, "the thread does not wait")
        workers.start(work)
        assert done.wait(PATIENCE)
    return found


def test_a_thread_that_has_ended_its_work_is_given_the_next() -> None:
    assert len(set(idents(Workers("kept", 60.0), 5))) == 1


def test_what_begins_together_runs_together() -> None:
    workers, together = Workers("together", 0.1), threading.Barrier(5)

    def meet() -> None:
        together.wait(PATIENCE)

    for _ in range(4):
        workers.start(meet)
    # broken, and an error, unless all are there at once
    together.wait(PATIENCE)


def test_a_thread_without_work_ends() -> None:
    workers = Workers("ends", 0.01)
    workers.start(lambda: None)
    until(lambda: not any(one.name == "ends" for one in threading.enumerate()), "it stays")
    assert workers._idle == 0


def test_work_that_is_given_while_a_thread_ends_is_carried_out() -> None:
    workers, done = Workers("hurried", 60.0), threading.Event()

    class GivenLate(queue.SimpleQueue[Callable[[], None]]):
        def get(self, block: bool = True, timeout: float | None = None) -> Callable[[], None]:
            """Nothing came in time, and something right after."""
            if timeout is not None and not done.is_set():
                workers.start(done.set)
                raise queue.Empty
            return super().get(block, timeout)

    workers._given = GivenLate()
    workers.start(lambda: None)
    assert done.wait(PATIENCE)
    assert workers._given.empty()
