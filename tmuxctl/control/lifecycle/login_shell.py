"""The environment the user has at login, as the login shell's start-up files make it."""

from __future__ import annotations

import os
import pwd
import select
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from tmuxctl.terminal.launch import launch
from tmuxctl.timing import TIMING, SessionTiming

LIMIT = 1 << 20
"""Bytes of an environment: Linux starts no program with more than 2 MiB of words and variables."""

COMMAND = "printf '\\0%s\\0' {mark}; env -0; printf '%s\\0' {mark}"
"""Prints the variables between two marks: start-up files may print too, and leave something behind that holds the pipe."""

_asking = threading.Lock()
_last: tuple[float, Mapping[str, str], Mapping[str, str]] | None = None
"""When the shell was asked last, with which variables, and what it said."""


def login_variables(timing: SessionTiming = TIMING.session) -> Mapping[str, str]:
    """The variables at login, asked for at most once a minute; none if the shell fails or takes too long."""
    global _last
    env = launch.select_environment(os.environ, clean=True)
    env |= {"SHELL": env.get("SHELL") or pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh", "TERM": "dumb"}
    with _asking:
        if _last is None or time.monotonic() - _last[0] >= timing.login_fresh_seconds or _last[1] != env:
            _last = (time.monotonic(), env, _ask_shell(env, timing.login_seconds))
        return _last[2]


def _ask_shell(env: Mapping[str, str], seconds: float) -> Mapping[str, str]:
    import subprocess

    mark, quiet, home = os.urandom(16).hex(), subprocess.DEVNULL, env.get("HOME", "")
    try:
        process = subprocess.Popen(
            [env["SHELL"], "-l", "-c", COMMAND.format(mark=mark)],
            env=env,
            cwd=home if os.path.isdir(home) else "/",
            stdin=quiet,
            stdout=subprocess.PIPE,
            stderr=quiet,
            start_new_session=True,
        )
    except OSError:
        return {}
    assert process.stdout
    try:
        printed = _read_between_marks(process.stdout.fileno(), f"{mark}\0".encode(), time.monotonic() + seconds)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    pairs = (os.fsdecode(one).partition("=") for one in printed.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


def _read_between_marks(handle: int, mark: bytes, deadline: float) -> bytes:
    """What is printed between two marks; nothing if that is too late or too much."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    data = b""
    while data.count(mark) < 2:
        if len(data) > LIMIT or not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return b""
        more = os.read(handle, 1 << 16)
        if not more:
            return b""
        data += more
    return data.split(mark)[1]
