"""The segments of a journal, files that are named by the offset of their first byte: `seg.000000000004096`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmuxctl.transport.base import Command, File

END = "@journal-end@"
"""Stands in a command list for the offset behind the last byte of a journal."""


def segment_name(start: int) -> str:
    """The name of the segment that begins at this offset."""
    return f"seg.{start:015d}"


def list_starts(names: Collection[str]) -> list[int]:
    """The offsets at which the segments among these files begin, in their order."""
    segments = [name[4:] for name in names if len(name) == 19 and name.startswith("seg.")]
    return sorted([int(start) for start in segments if start.isascii() and start.isdecimal()])


def find_end(files: Mapping[str, File]) -> int | None:
    """The offset behind the last byte of a journal with these files; None for one that is not there."""
    starts = list_starts(files)
    return starts[-1] + files[segment_name(starts[-1])].size if starts else None


def fill_in(commands: Sequence[Command], end: int) -> list[Command]:
    """A command list with the offset in the place of `END`."""
    return [
        tuple(word.replace(END, str(end)) for word in command) if any(END in word for word in command) else command
        for command in commands
    ]
