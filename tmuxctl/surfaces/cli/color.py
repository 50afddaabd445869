"""What a state looks like in colour, and the one way to put colour around a text."""

from __future__ import annotations

from typing import IO

from tmuxctl.surfaces.cli.output import Options, colorful

STATES = {"starting": "36", "busy": "33", "idle": "32", "asking": "1;35", "exited": "2", "lost": "31", "unknown": ""}
"""The SGR attributes (ECMA-48) of each state; none where the terminal's own colour says enough."""


def paint(text: str, attributes: str) -> str:
    """The text in these SGR attributes; as it is without any."""
    return f"\x1b[{attributes}m{text}\x1b[m" if attributes else text


def state(name: str, text: str, stream: IO[str] | None, options: Options) -> str:
    """A text in the colour of this state, if colour may go to the stream."""
    return paint(text, STATES.get(name, "")) if stream is not None and colorful(stream, options) else text
