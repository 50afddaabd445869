"""Runs one short program: bytes in, bytes out, a deadline. What subprocess does, without the 5 ms its import costs."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from contextlib import suppress

from tmuxctl.value import Value

READ = 1 << 16
DEFAULT_SIGNALS = (13, 25)
"""SIGPIPE and SIGXFSZ, which Python ignores and a program expects to have (signal(7); the same numbers on macOS)."""


ahead: list[str] = []
"""Names of modules that this process will need soon, which are loaded while a program runs, until it answers: a processor more
works for a quick command then."""


class FinishedProgram(Value):
    """How a program ended: its exit status (-n for signal n), standard output and standard error."""

    status: int
    output: bytes
    errors: bytes


class SpawnTimeout(Exception):
    """The program did not end in time and was killed."""


def run(argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> FinishedProgram:
    """Run a program from PATH with these bytes as standard input, for at most `timeout` seconds.

    Raises FileNotFoundError if there is none, SpawnTimeout after killing it.
    """
    deadline = time.monotonic() + timeout
    output_pipes = _open_pipes()
    try:
        child_ends = (_open_input(stdin), output_pipes[0][1], output_pipes[1][1])
    except BaseException:
        for pipe in (*output_pipes[0], *output_pipes[1]):
            os.close(pipe)
        raise
    read_ends = (output_pipes[0][0], output_pipes[1][0])
    try:
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(child_ends)]
        pid = os.posix_spawnp(argv[0], list(argv), os.environ, file_actions=actions, setsigdef=DEFAULT_SIGNALS)
    except BaseException:
        for pipe in read_ends:
            os.close(pipe)
        raise
    finally:
        for pipe in child_ends:
            os.close(pipe)
    try:
        if ahead:
            _load_ahead(read_ends)
        output, errors = _read_outputs(read_ends, deadline)
        return FinishedProgram(os.waitstatus_to_exitcode(_wait_for_end(pid, deadline)), output, errors)
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        raise


def _load_ahead(pipes: Sequence[int]) -> None:
    """Load one module after the other until something can be read or the outputs are closed."""
    waiting = select.poll()
    for pipe in pipes:
        waiting.register(pipe, select.POLLIN)
    while ahead and not waiting.poll(0):
        __import__(ahead.pop(0))


def _open_pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """Two pipes, or none where the second cannot be had."""
    first = os.pipe()
    try:
        return first, os.pipe()
    except OSError:
        for end in first:
            os.close(end)
        raise


def _open_input(data: bytes) -> int:
    """A descriptor from which exactly these bytes can be read, all of them from the start: were they fed through a pipe, a
    program would take what has come for the whole when we are killed meanwhile (measured: tmux pastes half a text)."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    handle = _open_unnamed_file()
    try:
        unwritten = memoryview(data)
        while unwritten:
            unwritten = unwritten[os.write(handle, unwritten) :]
        os.lseek(handle, 0, os.SEEK_SET)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _open_unnamed_file() -> int:
    """A file that is in no folder: in memory (memfd_create(2)), or where that is not to be had on the disk."""
    try:
        return os.memfd_create("input", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        pass  # an older kernel, or another
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _read_outputs(pipes: tuple[int, int], deadline: float) -> tuple[bytes, bytes]:
    """Read until both outputs are closed."""
    received: dict[int, bytearray] = {pipe: bytearray() for pipe in pipes}
    waiting = select.poll()
    for pipe in pipes:
        waiting.register(pipe, select.POLLIN)
    open_ = set(pipes)
    try:
        while open_:
            events = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not events and time.monotonic() >= deadline:
                raise SpawnTimeout
            for pipe, _ in events:
                data = os.read(pipe, READ)
                received[pipe] += data
                if not data:
                    waiting.unregister(pipe)
                    os.close(pipe)
                    open_.discard(pipe)
    finally:
        for pipe in open_:
            os.close(pipe)
    return bytes(received[pipes[0]]), bytes(received[pipes[1]])


def _wait_for_end(pid: int, deadline: float) -> int:
    """The wait status of a child that closed its outputs, and so is about to end."""
    pause = 0.0002
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() >= deadline:
            raise SpawnTimeout
        time.sleep(pause)
        pause = min(pause * 2, 0.01)
