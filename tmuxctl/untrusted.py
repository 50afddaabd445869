"""Reading what a program or another release may have written: files that are never waited for, JSON that is never too deep
or too large, records whose format is known.

A program chooses what stands in its folder and in its events: a FIFO where a file is looked for, a link to elsewhere, a
file without end, brackets without end. Plugins may import this too.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from errno import EINVAL
from typing import Any

from tmuxctl.errors import Failed

FORMAT = 1
"""The format of all that we keep in files and options. A release raises it where an earlier one would misread what it keeps.
0, which has no number, is that of the first releases; it is read as 1 is."""

JSON_LIMIT = 4 << 20
"""Bytes of JSON that are parsed unless the caller says otherwise: reading 4 MiB of empty lists takes 130 MB (measured)."""

_STRING = rb'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
"""A string of JSON (RFC 8259, section 7), as far as where it ends, or to the end of the text where it does not: each byte is looked
at once, whatever the text is."""

JSON_DEPTH = 64
"""Levels of nesting that are allowed: nothing of ours has more than a dozen, and every function that descends into what was
read stays far from Python's limit of 1,000 calls."""


class TooDeep(ValueError):
    """JSON whose brackets are nested too deeply."""


NEWER = "newer_format"


class NewerFormat(Failed):
    """A file of ours, or a session, was written by a release that this one cannot read."""


def open_file(path: str, *, follow: bool = False, folder: int | None = None) -> int:
    """A descriptor to read a regular file; the caller closes it.

    The last part of `path` may be a link only if `follow` is set. `folder` is a descriptor that a relative path starts
    from. Raises OSError as open(2) does, and with EINVAL for a FIFO, a socket, a device or a folder: none is waited for.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(path, flags, dir_fd=folder)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(EINVAL, "not a regular file", path)


def read_file(path: str, limit: int, *, offset: int = 0, follow: bool = False, folder: int | None = None) -> bytes:
    """At most `limit` bytes of a regular file, from `offset` on. Raises what `open_file` raises.

    A file that may not be larger is asked for with one byte more than it may have.
    """
    with os.fdopen(open_file(path, follow=follow, folder=folder), "rb") as file:
        file.seek(offset)
        return file.read(limit)


def read_below(folder: str, path: str, limit: int) -> bytes:
    """At most `limit` bytes of a regular file below a folder: no part of `path` may be a link, and it may not lead out.

    Raises what `open_file` raises, and OSError with EINVAL for a path that is absolute or has `..` in it.
    """
    *folders, name = path.split("/")
    if not name or "" in folders[:1] or ".." in (*folders, name):
        raise OSError(EINVAL, "leads out of its folder", path)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    at = os.open(folder, flags)
    try:
        for step in folders:
            inner = os.open(step or ".", flags | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return read_file(name, limit, folder=at)
    finally:
        os.close(at)


def remove_tree(path: str) -> None:
    """Remove a folder that a program may have filled, with all below it; links are removed, not followed.

    Python's own way ends at a thousand folders in one another (RecursionError, measured). Raises OSError as that does, and
    subprocess.SubprocessError where rm(1) does not end within a minute.
    """
    # loads bz2 and lzma: 3 ms that no quick command has to pay
    import shutil

    try:
        shutil.rmtree(path)
    except RecursionError:
        import subprocess

        rm = shutil.which("rm", path=os.defpath) or "rm"
        subprocess.run([rm, "-rf", "--", path], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True)


def parse_json(text: bytes | str, *, limit: int = JSON_LIMIT, values: int | None = None, **hooks: Any) -> Any:
    """The value that a JSON text of at most `limit` bytes (characters of a str) stands for. `hooks` are those of json.loads.

    Raises ValueError for what is no JSON, is larger, has more than `values` values, or is nested more than JSON_DEPTH deep. An
    empty object takes 30 times as much memory as its text, so values are counted before there are any; bytes are UTF-8 then.
    """
    if len(text) > limit:
        raise ValueError(f"more than {limit} bytes of JSON")
    if values is not None:
        if has_more_values(text, values):
            raise ValueError(f"more than {values} values of JSON")
        # json.loads takes UTF-16 and UTF-32 too, in which other bytes are quotes than were counted (RFC 8259, section 8.1)
        text = text.decode() if isinstance(text, bytes) else text
    import json

    try:
        value = json.loads(text, **hooks)
    except RecursionError:
        # it is no ValueError, and every caller would have to know
        raise TooDeep("JSON is nested too deeply") from None
    inner = [value]
    for _ in range(JSON_DEPTH):
        inner = [part for outer in inner for part in _inner_values(outer) if isinstance(part, (dict, list))]
        if not inner:
            return value
    raise TooDeep("JSON is nested too deeply")


def has_more_values(text: bytes | str, most: int) -> bool:
    """Whether a JSON text has more values than that: each but the first has a comma, a bracket or a brace before it."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    # what stands in strings counts too at first, as that is quick
    return _count_marks(data) >= most and _count_marks(re.sub(_STRING, b"", data)) >= most


def _count_marks(data: bytes) -> int:
    return sum(data.count(mark) for mark in (b",", b"[", b"{"))


def parse_record(text: bytes | str, path: str, *, limit: int = JSON_LIMIT) -> dict[str, Any]:
    """The object in a file of ours. ValueError for anything else, NewerFormat for that of a later release."""
    value = parse_json(text, limit=limit)
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds no JSON object")
    if not isinstance(value.get("format", 0), int):
        raise ValueError(f"{path} has a format that is not a number")
    check_format(value.get("format"), path)
    return value


def check_format(found: Any, path: str) -> None:
    """NewerFormat if a format that was found is a later one than ours."""
    if isinstance(found, int) and found > FORMAT:
        message = f"{path} has format {found}, and this tmuxctl reads formats up to {FORMAT}"
        raise NewerFormat(message, reason=NEWER, hint="a newer tmuxctl wrote it: use that version, or upgrade this one")


def to_record(about: Mapping[str, Any]) -> bytes:
    """What `parse_record` reads. What was read before keeps its format."""
    import json

    return json.dumps({"format": FORMAT, **about}).encode()


def fits(value: Any, shape: Any) -> bool:
    """Whether a value from a file has this shape: a type, several types, a list of what all its items are, or an object
    of what each key leads to, where it is there. A key with a `!` has to be."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        names = {name.rstrip("!"): inner for name, inner in shape.items()}
        there = all(name.rstrip("!") in value for name in shape if name.endswith("!"))
        return there and all(fits(value[name], inner) for name, inner in names.items() if name in value)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(inner, shape[0]) for inner in value)
    return isinstance(value, shape)


def _inner_values(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
