"""Recordings written to files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from tmuxctl.control.recordings import casts, played
from tmuxctl.control.recordings.recording import CastEvent, Recording, pace
from tmuxctl.errors import Usage
from tmuxctl.results import Exported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tmuxctl.control.machine import Machine

FORMS = (".cast", ".svg", ".html")


def is_file(source: str) -> bool:
    """Whether a source names a file, and no session: sessions have neither slashes nor this ending."""
    return "/" in source or source.endswith(".cast")


def open_recording(machine: Machine, source: str, *, since: str | None, until: str | None) -> Recording:
    """The recording in a file, or that of a session between two moments."""
    if not is_file(source):
        return played.record(machine, source, since=since, until=until)
    if since or until:
        raise Usage(
            "a file is shown from its beginning to its end", reason="bad_option", hint="leave --since and --until out"
        )
    return casts.read_cast(os.path.expanduser(source))


def check_idle_limit(seconds: float | None) -> None:
    """Usage for pauses that are too short to be seen."""
    if seconds is not None and seconds < 0.01:
        raise Usage("--idle-limit is too short", reason="bad_number", hint="--idle-limit 1s")


def export(
    machine: Machine,
    source: str,
    out: str,
    *,
    since: str | None,
    until: str | None,
    idle_limit: float | None,
    speed: float,
    version: int,
) -> Exported | None:
    """Write a recording to a file, whose ending says in which form; `-` is an asciicast on standard output, of
    which nothing else is told."""
    check_idle_limit(idle_limit)
    if version not in (2, 3):
        raise Usage(
            f"there is no asciicast of version {version} to write", reason="bad_number", hint="--cast-version 2"
        )
    form = ".cast" if out == "-" else os.path.splitext(out)[1]
    if form not in FORMS:
        raise Usage(
            f"{ascii(out)} has no known ending",
            reason="bad_option",
            hint=f"name a file that ends in {', '.join(FORMS)}",
        )
    recording = open_recording(machine, source, since=since, until=until)

    def write(file: TextIO) -> tuple[int, float]:
        return _write(recording, pace(recording.events(), idle_limit=idle_limit, speed=speed), file, form, version)

    if out == "-":
        write(sys.stdout)
        return None
    count, seconds = write_whole(os.path.expanduser(out), write)
    return Exported(out, count, round(seconds, 3), recording.estimated)


def _write(
    recording: Recording, events: Iterator[CastEvent], file: TextIO, form: str, version: int
) -> tuple[int, float]:
    if form == ".cast":
        return casts.write_cast(recording, events, file, version=version)
    from tmuxctl.control.recordings import frames
    from tmuxctl.terminal.picture import film

    cols, rows = frames.largest_size(recording)
    shown = frames.list_frames(recording, events)
    return (film.write_svg if form == ".svg" else film.write_page)(
        shown, file, cols=cols, rows=rows, title=recording.title
    )


def write_whole(path: str, write: Callable[[TextIO], tuple[int, float]]) -> tuple[int, float]:
    """Write a file that is there as a whole or not at all: under another name first. Usage `bad_file` if it cannot be."""
    part = f"{path}.{os.getpid()}.part"
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            found = write(file)
        os.replace(part, path)
    except BaseException as error:
        os.unlink(part)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from None
        raise
    return found


def _unwritable(path: str, error: OSError) -> Usage:
    return Usage(f"{ascii(path)} cannot be written: {error.strerror}", reason="bad_file", hint="name another file")
