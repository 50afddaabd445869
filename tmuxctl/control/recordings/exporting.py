"""Recordings written to files."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from tmuxctl.control.recordings import casts, played
from tmuxctl.control.recordings.recording import CastEvent, Recording, pace
from tmuxctl.errors import Usage
from tmuxctl.machines import MACHINE
from tmuxctl.model import NAME
from tmuxctl.results import Exported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tmuxctl.control.machine import Machine

FORMS = (".cast", ".svg", ".html", ".gif", ".png")

CAST_VERSION = 3
"""The newest version of asciicast."""

GIF_RATE = 10.0
"""Screens a second of a GIF: it is large, and programs show no more than fifty."""


ADDRESS = re.compile(rf"{MACHINE.pattern}/{NAME.pattern}", re.ASCII)
"""A session of another machine."""


def is_file(source: str) -> bool:
    """Whether a source names a file, and no session: sessions do not end so, and have no slash but that behind a machine."""
    return source.endswith(".cast") or ("/" in source and (not ADDRESS.fullmatch(source) or os.path.exists(source)))


def open_recording(
    machine: Machine, source: str, *, since: str | None, until: str | None, only_end: bool = False
) -> Recording:
    """The recording in a file, or that of a session between two moments; with `only_end` at least its last screen."""
    if not is_file(source):
        if "/" in source:
            from tmuxctl.control.machines import reaching

            name, _, source = source.partition("/")
            machine = reaching.reach_shell(machine, name)
        return played.record(machine, source, since=since, until=until, only_end=only_end)
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
    font: str | None = None,
    theme: str = "dark",
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
    recording = open_recording(machine, source, since=since, until=until, only_end=form == ".png")
    events = pace(recording.events(), idle_limit=idle_limit, speed=speed)
    if form in (".gif", ".png"):
        return _export_pixels(recording, events, out, form, font, theme)
    if font is not None:
        raise Usage("only .gif and .png have a font in them", reason="bad_option", hint="leave --font out")

    if out == "-":
        _write(recording, events, sys.stdout, form, version, theme)
        return None
    return _save(recording, events, out, form, version, theme)


def save_cast(recording: Recording, out: str) -> Exported:
    """Write a recording as an asciicast, as it is."""
    return _save(recording, recording.events(), out, ".cast", CAST_VERSION, "dark")


def _save(recording: Recording, events: Iterator[CastEvent], out: str, form: str, version: int, theme: str) -> Exported:
    count, seconds = write_whole(
        os.path.expanduser(out), lambda file: _write(recording, events, file, form, version, theme)
    )
    return Exported(out, count, round(seconds, 3), recording.estimated)


def _export_pixels(
    recording: Recording, events: Iterator[CastEvent], out: str, form: str, font: str | None, theme: str
) -> Exported:
    """Write a recording as a GIF, or its last screen as a PNG."""
    from tmuxctl.control.recordings import frames
    from tmuxctl.terminal.picture import raster
    from tmuxctl.terminal.picture.render import THEMES

    fonts = raster.Fonts(font)

    def write(file: TextIO) -> tuple[int, float]:
        if form == ".gif":
            painter = raster.Painter(fonts, *frames.largest_size(recording), THEMES[theme])
            return raster.write_gif(frames.list_frames(recording, events, rate=GIF_RATE), file.buffer, painter)
        *_, last = deque(frames.list_frames(recording, events), maxlen=1)
        cols = max((sum(cell.width for cell in row) for row in last.rows), default=1)
        painter = raster.Painter(fonts, cols, len(last.rows), THEMES[theme])
        raster.write_png(painter.paint(last.rows, last.cursor), file.buffer, title=recording.title)
        return 1, last.at

    count, seconds = write_whole(os.path.expanduser(out), write)
    missing = "".join(sorted(fonts.missing))
    return Exported(out, count, round(seconds, 3), recording.estimated, missing)


def _write(
    recording: Recording, events: Iterator[CastEvent], file: TextIO, form: str, version: int, theme: str = "dark"
) -> tuple[int, float]:
    if form == ".cast":
        return casts.write_cast(recording, events, file, version=version)
    from tmuxctl.control.recordings import frames
    from tmuxctl.terminal.picture import film
    from tmuxctl.terminal.picture.render import THEMES

    cols, rows = frames.largest_size(recording)
    shown = frames.list_frames(recording, events)
    return (film.write_svg if form == ".svg" else film.write_page)(
        shown, file, cols=cols, rows=rows, title=recording.title, theme=THEMES[theme]
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
