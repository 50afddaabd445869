"""Runs one short program: bytes in, bytes out, a deadline. What subprocess does, without the 5 ms its import costs."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

READ = 1 << 16
DEFAULT_SIGNALS = (13, 25)
"""SIGPIPE and SIGXFSZ, which Python ignores and a program expects to have (signal(7); the same numbers on macOS)."""


class Done(NamedTuple):
    """How a program ended: its exit status (-n for signal n), standard output and standard error."""

    status: int
    output: bytes
    errors: bytes


class Late(Exception):
    """The program did not end in time and was killed."""


def run(argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
    """Run a program from PATH with these bytes as standard input, for at most `timeout` seconds.

    Raises FileNotFoundError if there is none, Late after killing it.
    """
    deadline = time.monotonic() + timeout
    inner = [os.pipe(), os.pipe(), os.pipe()]
    child = (inner[0][0], inner[1][1], inner[2][1])
    mine = (inner[0][1], inner[1][0], inner[2][0])
    try:
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(child)]
        pid = os.posix_spawnp(argv[0], list(argv), os.environ, file_actions=actions, setsigdef=DEFAULT_SIGNALS)
    except BaseException:
        for pipe in mine:
            os.close(pipe)
        raise
    finally:
        for pipe in child:
            os.close(pipe)
    try:
        output, errors = _talk(mine, stdin, deadline)
        return Done(os.waitstatus_to_exitcode(_wait(pid, deadline)), output, errors)
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        raise


def _talk(pipes: tuple[int, int, int], stdin: bytes, deadline: float) -> tuple[bytes, bytes]:
    """Feed and read until both outputs are closed."""
    to, *sources = pipes
    left = memoryview(stdin)
    found: dict[int, bytearray] = {source: bytearray() for source in sources}
    waiting = select.poll()
    for source in sources:
        waiting.register(source, select.POLLIN)
    still, open_ = set(sources), {*pipes}
    try:
        if left:
            os.set_blocking(to, False)
            waiting.register(to, select.POLLOUT)
        else:
            os.close(to)
            open_.discard(to)
        while still:
            events = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not events and time.monotonic() >= deadline:
                raise Late
            for pipe, _ in events:
                if pipe == to:
                    left = _feed(to, left)
                    done = not left
                else:
                    data = os.read(pipe, READ)
                    found[pipe] += data
                    done = not data
                if done:
                    waiting.unregister(pipe)
                    os.close(pipe)
                    open_.discard(pipe)
                    still.discard(pipe)
    finally:
        for pipe in open_:
            os.close(pipe)
    return bytes(found[sources[0]]), bytes(found[sources[1]])


def _feed(pipe: int, left: memoryview) -> memoryview:
    try:
        return left[os.write(pipe, left[:READ]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return left[:0]


def _wait(pid: int, deadline: float) -> int:
    """The wait status of a child that closed its outputs, and so is about to end."""
    pause = 0.0002
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() >= deadline:
            raise Late
        time.sleep(pause)
        pause = min(pause * 2, 0.01)
