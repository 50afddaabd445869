"""How many columns a character takes, as tmux counts them."""

from __future__ import annotations

import ctypes
import unicodedata
from collections.abc import Callable

from wcwidth import wcwidth


def _libc() -> Callable[[int], int] | None:
    """The C library's wcwidth(3), which tmux asks too (utf8.c); None where it knows no Unicode (LC_ALL=POSIX)."""
    try:
        found = ctypes.CDLL(None).wcwidth
        found.argtypes, found.restype = [ctypes.c_wchar], ctypes.c_int
        known = [found(character) for character in "a\u0301中😀"] == [1, 0, 2, 2]
    except (OSError, AttributeError, TypeError):
        return None
    return (lambda point: int(found(chr(point)))) if known else None


# flag letters; trigrams, monograms and counting rods, which Unicode 16 made wide
_NARROW = (range(0x1F1E6, 0x1F200), range(0x2630, 0x2638), range(0x268A, 0x2690), range(0x1D300, 0x1D377))


def _table(point: int) -> int:
    """wcwidth's table where the C library's (glibc 2.36) is not to be had, with what differs for text in use."""
    category = unicodedata.category(chr(point))
    if category == "Cn":
        return -1
    if category == "Mc" or any(point in narrow for narrow in _NARROW):
        return 1
    return int(wcwidth(chr(point)))


class Widths(dict[str, int]):
    """Columns by character, found on first use; -1 for what tmux does not draw."""

    def __init__(self, measure: Callable[[int], int]) -> None:
        super().__init__()
        self.measure = measure

    def __missing__(self, character: str) -> int:
        self[character] = width = self.measure(ord(character))
        return width


WIDTHS = Widths(_libc() or _table)
