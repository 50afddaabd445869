"""Screens that were captured while a program was quiet, kept beside its journal: from there on what it drew can be drawn again.

A screen belongs to an offset only if nothing is on its way between the program, tmux and the journal: the journal has to be as
long after the capture as before it, and to have been so for a moment.
"""

from __future__ import annotations

from contextlib import suppress

from tmuxctl.errors import TmuxctlError
from tmuxctl.terminal.panes.captures import capture_session
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.pane_io import PaneIO
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.terminal.tmux.timeline import is_size
from tmuxctl.transport.base import Transport, read_object
from tmuxctl.untrusted import fits, to_record
from tmuxctl.value import Value

STEP = 1 << 20
"""Bytes of output between two keyframes, at least."""

KEPT = 80
"""How many are kept, the newest: a journal of the usual size has no more."""

SHAPE = {"cols!": int, "rows!": int, "x!": int, "y!": int, "visible!": bool, "alternate!": bool, "drawn!": str}


class Keyframe(Value):
    """A screen when the output had come to `offset`: its size in cells, its cursor, and its rows as `capture-pane -e -N` prints
    them."""

    offset: int
    cols: int
    rows: int
    x: int
    y: int
    visible: bool
    alternate: bool
    drawn: bytes


def list_offsets(transport: Transport, folder: str) -> list[int]:
    """The offsets of the keyframes in a session's folder."""
    names = transport.names(f"{folder}/{layout.KEYFRAMES}")
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def read(transport: Transport, folder: str, offset: int) -> Keyframe | None:
    """The keyframe at this offset; None if it cannot be read."""
    with suppress(TmuxctlError, OSError, ValueError):
        kept = read_object(transport, f"{folder}/{layout.KEYFRAMES}/{offset:015d}")
        if fits(kept, SHAPE) and is_size(kept["cols"], kept["rows"]):
            drawn = kept["drawn"].encode("utf-8", "surrogateescape")
            return Keyframe(
                **{**{name: kept[name] for name in Keyframe._names if name in kept}, "offset": offset, "drawn": drawn}
            )
    return None


def keep(io: PaneIO, pane: Pane, folder: str, end: int) -> None:
    """Keep the screen of a program that is quiet since its output came to `end`, if the last one kept is far behind. Nothing is
    raised: it only makes a later question quicker."""
    if end < STEP or not pane.spec.get("journal", True):
        return
    transport, journal = io.transport, io.open_journal(pane, folder)
    with suppress(TmuxctlError, OSError):
        offsets = list_offsets(transport, folder)
        if offsets and end - offsets[-1] < STEP:
            return
        capture = capture_session(io, pane.name, trim=False)
        now = capture.pane
        if now.id != pane.id or journal.end() != end:
            return
        transport.make_folder(f"{folder}/{layout.KEYFRAMES}")
        record = {
            "cols": now.cols,
            "rows": now.rows,
            "x": now.x,
            "y": now.y,
            "visible": now.cursor_visible,
            "alternate": now.alternate,
            "drawn": capture.rows.decode("utf-8", "surrogateescape"),
        }
        transport.put(f"{folder}/{layout.KEYFRAMES}/{end:015d}", to_record(record))
        for offset in offsets[: 1 - KEPT]:
            transport.remove(f"{folder}/{layout.KEYFRAMES}/{offset:015d}")
