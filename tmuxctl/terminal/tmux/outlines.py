"""What is asked of all sessions all the time, in a module of its own: quick commands do without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.terminal.tmux import options, server
from tmuxctl.value import NamedTuple

if TYPE_CHECKING:
    from tmuxctl.terminal.tmux.pane_io import PaneIO


class Outline(NamedTuple):
    """Of a session what tells whether one came, went or was changed, and what changes all the time."""

    id: str
    incarnation: str
    name: str
    dead: bool
    tags: tuple[str, ...]
    attached: int
    active: int


OUTLINE = (
    options.ID, options.INCARNATION, "session_name", "pane_dead", options.TAGS, "session_attached", "window_activity",
)  # fmt: skip


def list_outlines(io: PaneIO) -> list[Outline]:
    """The outline of every session of ours, hidden ones left out: a quarter of the work of `list_panes`."""
    rows = (
        Outline(*(server.READERS[field](value) for field, value in zip(OUTLINE, values, strict=True)))
        for values in io.list_values(OUTLINE)
        if values[0]
    )
    return [one for one in rows if not one.name.startswith("_")]
