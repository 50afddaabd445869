"""Recordings as files: asciicast, versions 2 and 3 (docs.asciinema.org/manual/asciicast)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, TextIO

from tmuxctl import untrusted
from tmuxctl.control.recordings.recording import EXIT, RESIZE, CastEvent, Recording
from tmuxctl.errors import Usage
from tmuxctl.terminal.tmux.timeline import BOUNDS, is_size
from tmuxctl.untrusted import fits, parse_json

LINE_LIMIT = 16 << 20
"""Bytes of one line: an event has what a program wrote at once."""

TIME_LIMIT = 1e9

HEADER = {
    "version!": int,
    "width": int,
    "height": int,
    "term": {"cols!": int, "rows!": int},
    "title": str,
    "command": str,
}
"""The parts of a header that are read."""


def write_cast(
    recording: Recording, events: Iterator[CastEvent], file: TextIO, *, version: int = 3
) -> tuple[int, float]:
    """Write events as an asciicast, each as it comes; returns how many there were, and the seconds they take."""
    header: dict[str, Any] = {"version": version}
    if version == 2:
        header |= {"width": recording.cols, "height": recording.rows}
    else:
        header |= {"term": {"cols": recording.cols, "rows": recording.rows, "type": "tmux-256color"}}
    if recording.began is not None:
        header["timestamp"] = int(recording.began)
    header |= {name: text for name, text in (("title", recording.title), ("command", recording.command)) if text}
    file.write(json.dumps(header, ensure_ascii=False) + "\n")
    count, before = 0, 0.0
    for event in events:
        if version == 2 and event.code == EXIT:
            continue
        # rounded sums would drift: the next interval begins where the rounded one ended
        at = round(event.at if version == 2 else max(0.0, event.at - before), 3)
        file.write(json.dumps([at, event.code, event.data], ensure_ascii=False) + "\n")
        before = before + at if version == 3 else event.at
        count += 1
    return count, before


def read_cast(path: str) -> Recording:
    """The recording in a file. Usage `bad_cast` for what is no asciicast of version 2 or 3, `bad_file` if it cannot be read."""
    header = _read_header(path)
    began = header.get("timestamp")
    size = header.get("term") or {"cols": header.get("width"), "rows": header.get("height")}
    if not all(isinstance(size[name], int) for name in ("cols", "rows")) or not is_size(size["cols"], size["rows"]):
        raise _bad_cast(path, 1, "it names no size of the terminal")
    return Recording(
        size["cols"],
        size["rows"],
        lambda: _read_events(path, header["version"]),
        float(began) if isinstance(began, (int, float)) and 0 <= began < BOUNDS["at"] else None,
        header.get("title") or "",
        header.get("command") or "",
    )


def _read_header(path: str) -> dict[str, Any]:
    with _open(path) as file:
        try:
            header = parse_json(file.readline(LINE_LIMIT), limit=LINE_LIMIT)
        except ValueError:
            header = None
    if not fits(header, HEADER) or header["version"] not in (2, 3):
        raise _bad_cast(path, 1, "it is no header of version 2 or 3")
    return dict(header)


def _read_events(path: str, version: int) -> Iterator[CastEvent]:
    at = 0.0
    with _open(path) as file:
        file.readline(LINE_LIMIT)
        for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT), b""), 2):
            if not line.strip() or line.startswith(b"#"):
                continue
            try:
                event = parse_json(line, limit=LINE_LIMIT)
            except ValueError:
                event = None
            if not _is_event(event):
                raise _bad_cast(path, number, "it is no event")
            at = at + event[0] if version == 3 else max(at, float(event[0]))
            if event[1] != RESIZE or _is_size(event[2]):
                yield CastEvent(at, event[1], event[2])


def _is_event(event: Any) -> bool:
    return (
        isinstance(event, list)
        and len(event) == 3
        and isinstance(event[0], (int, float))
        and 0 <= event[0] < TIME_LIMIT
        and isinstance(event[1], str)
        and isinstance(event[2], str)
    )


def _is_size(text: str) -> bool:
    found = re.fullmatch(r"([0-9]{1,5})x([0-9]{1,5})", text)
    return found is not None and is_size(int(found[1]), int(found[2]))


def _open(path: str) -> BinaryIO:
    try:
        return os.fdopen(untrusted.open_file(path, follow=True), "rb")
    except OSError as error:
        raise Usage(f"{ascii(path)} cannot be read: {error.strerror}", reason="bad_file", hint="name a file") from None


def _bad_cast(path: str, line: int, why: str) -> Usage:
    return Usage(
        f"{ascii(path)} is no asciicast: line {line}: {why}",
        reason="bad_cast",
        hint="make one: tmuxctl export NAME FILE.cast",
    )
