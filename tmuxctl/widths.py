"""How many columns of a terminal a text takes, by the rules of the tmux that draws it.

A cell holds a character with all that is joined to it: marks, a variation selector, what a zero-width joiner binds. Which
characters those are, and whether the cell grows, differs between versions of tmux (utf8.c, utf8-combined.c and
screen_write_combine of its source; tests/terminal/test_widths.py compares them with the tmux in PATH).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from tmuxctl.value import Value

Version = tuple[int, int] | None
"""The major and minor number of a tmux; None if that is not known."""

JOINER, WIDENING = "\u200d", "\ufe0f"
"""The zero-width joiner, and the variation selector that asks for an emoji (VS16)."""

REPLAYED = (3, 3)
"""The version whose rules count where none is known: looks were recorded, and replays are drawn, by this one."""


def _code_points(ranges: str) -> frozenset[str]:
    """The characters of ranges of code points in hexadecimal."""
    bounds = [[int(bound, 16) for bound in text.split("-")] for text in ranges.split()]
    return frozenset(chr(point) for ends in bounds for point in range(ends[0], ends[-1] + 1))


FLAG_LETTERS = _code_points("1F1E6-1F1FF")
SKIN_TONES = _code_points("1F3FB-1F3FF")

ALWAYS_WIDE = (
    _code_points("261D 26F9 270A-270D 1F3CB-1F3CC 1F574-1F575 1F590 1F90C 1F977 1FAC3-1FAC5 1FAF0-1FAF8") | SKIN_TONES
)
"""Two columns wide since tmux 3.4, whatever the C library says: those of its list that a library may take for narrow."""

TAKES_SKIN_TONE = _code_points(
    "1F44B-1F450 1F466-1F469 1F46E 1F470-1F478 1F47C 1F481-1F483 1F485-1F487 1F4AA 1F575 1F57A 1F590 1F595-1F596 "
    "1F645-1F647 1F64B-1F64F 1F6B4-1F6B6 1F926 1F937-1F939 1F93D-1F93E 1F9B5-1F9B6 1F9B8-1F9B9 1F9CD-1F9CF 1F9D1-1F9DF"
)
"""The people and hands whose skin tone tmux 3.6 and later join to them; earlier ones join a tone to anything, or nothing."""


class WidthRules(Value):
    """What one version of tmux does. `cell_bytes`: so much UTF-8 fits into a cell, and what does not is left out."""

    version: tuple[int, int]
    cell_bytes: int

    def width(self, character: str) -> int:
        """The columns of a character that stands alone; 0 for one that is only ever joined, -1 for one that is not drawn."""
        if self.version >= (3, 4):
            if character in ALWAYS_WIDE:
                return 2
            if character in FLAG_LETTERS:
                return 2 if self.version < (3, 6) else 1
        width = WIDTHS[character]
        return 1 if width < 0 and self.version != (3, 3) and character >= "\u00a0" else width

    def joined(self, cell: str, width: int, character: str) -> int | None:
        """The columns of a cell, so far `width`, with one more character in it; None where that gets a cell of its own."""
        if not self.joins(cell, character):
            return None
        if len((cell + character).encode("utf-8", "replace")) > self.cell_bytes:
            return None
        return 2 if self._becomes_wide(character) else width

    def joins(self, cell: str, character: str) -> bool:
        """Whether a character belongs to the cell before it, if there is room."""
        if character.isascii():
            return False
        if not self.width(character) or (cell.endswith(JOINER) and self.version >= (3, 3)):
            return True
        if self.version < (3, 4) or cell.isascii():
            return False
        pair = {cell[0], character}
        if self.version < (3, 6):
            return character in FLAG_LETTERS or character in SKIN_TONES
        if pair <= FLAG_LETTERS:
            return self.version < (3, 7) or sum(one in FLAG_LETTERS for one in cell) == 1
        return bool(pair & SKIN_TONES and pair & TAKES_SKIN_TONE)

    def leaves_out(self, cell: str, character: str) -> bool:
        """Whether a character is not drawn at all if a cell that it belongs to is full."""
        return self.joins(cell, character) and (self.version < (3, 4) or self.width(character) <= 0)

    def _becomes_wide(self, character: str) -> bool:
        widening = character == WIDENING or character in FLAG_LETTERS or character in SKIN_TONES
        # 3.4 leaves a blank in the second column (a mistake mended in 3.5), which is then a part of the row's text
        return widening and self.version > (3, 4)


@lru_cache(16)
def rules(version: Version) -> WidthRules:
    """The rules of a version of tmux."""
    known = version or REPLAYED
    return WidthRules(known, 21 if known < (3, 6) else 32)


def is_plain(text: str, version: Version = None) -> bool:
    """Whether each character of a text is a cell of its own and one column wide, as in most rows, frames of boxes too: a row
    has few characters that differ, so this takes a fifth of the time of cutting it."""
    return text.isascii() or all(_stands_alone(character, version) for character in set(text))


@lru_cache(4096)
def _stands_alone(character: str, version: Version) -> bool:
    """Whether a character takes one column and is joined to none before it, whatever that is."""
    return character.isascii() or (
        rules(version).width(character) == 1 and character not in FLAG_LETTERS and character not in SKIN_TONES
    )


def cells(text: str, version: Version = None, *, drawn: bool = True) -> Iterator[tuple[str, int]]:
    """The text of one row cut where tmux cuts it into cells, with their columns; it holds no control characters. One that is
    not `drawn` yet may hold what a full cell will have no room for: it counts as a part of the cell, without columns."""
    if is_plain(text, version):
        yield from ((character, 1) for character in text)
        return
    known = rules(version)
    cell, width = "", 0
    for character in text:
        joined = known.joined(cell, width, character) if cell else None
        if joined is None and not drawn and cell and known.leaves_out(cell, character):
            joined = width
        if joined is not None:
            cell, width = cell + character, joined
            continue
        if cell:
            yield cell, width
        cell, width = character, max(0, known.width(character))
    if cell:
        yield cell, width


def bases(text: str, version: Version = None, *, drawn: bool = True) -> str:
    """The first character of each cell of a text, as `cells`: what a typed and a drawn text have in common, however much is
    joined in its cells or left out there."""
    if is_plain(text, version):
        return text
    return "".join(cell[0] for cell, width in cells(text, version, drawn=drawn) if width)


def columns(text: str, version: Version = None) -> int:
    """The columns that a text of one row takes."""
    return len(text) if is_plain(text, version) else sum(width for _, width in cells(text, version))


def first_columns(text: str, count: int, version: Version = None) -> str:
    """What stands in the first `count` columns of a row; a wide cell that only begins there is not part of it."""
    if is_plain(text, version):
        return text[:count]
    at = taken = 0
    for cell, width in cells(text, version):
        taken += width
        if taken > count:
            break
        at += len(cell)
    return text[:at]


def _libc_width() -> Callable[[int], int] | None:
    """The C library's wcwidth(3), which tmux asks too (utf8.c); None where it knows no Unicode (LC_ALL=POSIX)."""
    import ctypes

    try:
        found = ctypes.CDLL(None).wcwidth
        found.argtypes, found.restype = [ctypes.c_wchar], ctypes.c_int
        known = [found(character) for character in "a\u0301中😀"] == [1, 0, 2, 2]
    except (OSError, AttributeError, TypeError):
        return None
    return (lambda point: int(found(chr(point)))) if known else None


# flag letters; trigrams, monograms and counting rods, which Unicode 16 made wide
_NARROW = (range(0x1F1E6, 0x1F200), range(0x2630, 0x2638), range(0x268A, 0x2690), range(0x1D300, 0x1D377))


def _table_width(point: int) -> int:
    """wcwidth's table where the C library's (glibc 2.36) is not to be had, with what differs for text in use."""
    import unicodedata

    from wcwidth import wcwidth

    category = unicodedata.category(chr(point))
    if category == "Cn":
        return -1
    if category == "Mc" or any(point in narrow for narrow in _NARROW):
        return 1
    return int(wcwidth(chr(point)))


class Widths(dict[str, int]):
    """Columns by character, as the C library has them, found on first use; -1 for what it takes for no character."""

    measure: Callable[[int], int] | None = None

    def __missing__(self, character: str) -> int:
        if self.measure is None:
            # loading this takes 3 ms, which a screen of ASCII need not pay
            self.measure = _libc_width() or _table_width
        self[character] = width = self.measure(ord(character))
        return width


WIDTHS = Widths()
