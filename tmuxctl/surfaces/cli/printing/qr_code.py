"""A text as a QR code on a terminal, for the camera of a phone."""

from __future__ import annotations

import io


def draw_qr_code(text: str) -> str:
    """Black on white whatever the terminal's colours are, two rows of the code in a line; empty without what draws it."""
    try:
        import segno
    except ModuleNotFoundError:
        return ""
    drawn = io.StringIO()
    segno.make(text, error="m", micro=False).terminal(drawn, compact=True)
    return "".join(f"\x1b[38;5;231;48;5;16m{line}\x1b[0m\n" for line in drawn.getvalue().splitlines())
