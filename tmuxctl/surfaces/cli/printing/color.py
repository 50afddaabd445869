"""What a state looks like in colour, and the one way to put colour around a text."""

from __future__ import annotations

from typing import IO

from tmuxctl.model import State
from tmuxctl.surfaces.cli.printing.output import Options, colorful

STATES = {state.value: state.traits.attributes for state in State}
"""The SGR attributes (ECMA-48) of each state."""


def paint(text: str, attributes: str) -> str:
    """The text in these SGR attributes; as it is without any."""
    return f"\x1b[{attributes}m{text}\x1b[m" if attributes else text


def state(name: str, text: str, stream: IO[str] | None, options: Options) -> str:
    """A text in the colour of this state, if colour may go to the stream."""
    return paint(text, STATES.get(name, "")) if stream is not None and colorful(stream, options) else text
