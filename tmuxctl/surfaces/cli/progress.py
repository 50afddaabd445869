"""One status line on the terminal while a command waits, gone when it ends."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tmuxctl.surfaces.cli.output import Options, flat

FIRST = 1.0
"""Seconds after which a person may wonder."""


@contextmanager
def waiting(verb: str, arguments: Mapping[str, Any], options: Options) -> Iterator[None]:
    """Show what is waited for, if this command waits and standard error is a terminal that can erase a line."""
    what = _what(verb, arguments)
    if not what or options.quiet or sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = threading.Event()
    stop = "Ctrl-C ends it" if verb == "run" else "Ctrl-C stops waiting"
    thread = threading.Thread(target=_tick, args=(what, stop, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _what(verb: str, arguments: Mapping[str, Any]) -> str:
    session = arguments.get("session", "")
    command = arguments.get("command") or [""]
    if verb == "wait" and not arguments.get("now"):
        ends = {"asking": "to ask", "exit": "to end", "text": "to print it", "gone": "to clear it"}
        ends |= {"change": "to print something", "settle": "to fall silent", "idle": "to be idle"}
        named = session or arguments.get("any") or arguments.get("all") or ""
        return flat(
            f"waiting for {named} {' or '.join(end for name, end in ends.items() if name in arguments) or 'to be idle'}"
        )
    if verb == "ask":
        return flat(f"waiting for {session} to answer")
    if verb == "new" and arguments.get("wait", True) and not arguments.get("dry_run"):
        return flat(f"waiting for {arguments.get('name') or 'the program'} to be ready")
    if verb == "exec":
        return flat(f"waiting for {session} to run {command[0]}")
    return flat(f"waiting for {os.path.basename(command[0])} to end") if verb == "run" else ""


def _tick(what: str, stop: str, done: threading.Event) -> None:
    start = time.monotonic()
    shown = False
    while not done.wait(FIRST):
        shown = True
        text = f"{what[:60]}, {time.monotonic() - start:.0f} s  ({stop})"
        _put(f"\r\x1b[K{text[: _columns() - 1]}")
    if shown:
        _put("\r\x1b[K")


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def _put(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
