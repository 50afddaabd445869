"""Screens as pictures of pixels, by Pillow: each cell in its place, whatever the font measures."""

from __future__ import annotations

import os
import shutil
import subprocess
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import chain, pairwise
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, BinaryIO

from tmuxctl.errors import Failed, Usage
from tmuxctl.results import CursorPosition
from tmuxctl.terminal.picture.render import DARK, MARGIN, Theme, find_colours, show_cursor
from tmuxctl.terminal.picture.replay import Cell
from tmuxctl.timing import TIMING

if TYPE_CHECKING:
    from PIL import Image, ImageFont

    from tmuxctl.terminal.picture.film import Frame

SIZE = 16
"""Pixels from one baseline to the next are a little more: what the font says."""

STYLES = {(False, False): "", (True, False): ":bold", (False, True): ":italic", (True, True): ":bold:italic"}
"""The styles of a font by bold and italic, as fontconfig writes them (fc-match(1))."""

DOUBLE, CURLY, DOTTED, DASHED = 2, 3, 4, 5
"""Forms of underline (`Cell`)."""

BLOCKS = range(0x2580, 0x2588)
BOXES = range(0x2500, 0x2580)
NO_GLYPH = "\U0010ffff"
"""No font has it: what is drawn for it is drawn for all that a font has not."""

WIDTHS = {"LIGHT": 1, "SINGLE": 1, "DOUBLE": 2, "HEAVY": 3}
ARMS = {"HORIZONTAL": ("LEFT", "RIGHT"), "VERTICAL": ("UP", "DOWN")} | {
    arm: (arm,) for arm in ("LEFT", "RIGHT", "UP", "DOWN")
}

KEPT_BYTES = 16 << 20
"""Bytes of rows that are kept as they were drawn: those of most screens were there before."""

MOST_CELLS = 100_000
"""Cells that a picture may have: one of these takes some 60 MB while it is drawn."""


class Fonts:
    """The faces of one font and, for characters that it has not, others; `missing` are those that none has."""

    def __init__(self, name: str | None = None) -> None:
        """`name` is the path or the family of a font; by default that which fontconfig calls monospace, and Pillow's own where
        there is no fontconfig. Usage `no_font` if it is not there."""
        _load_pillow()
        self.missing: set[str] = set()
        self._fontconfig = shutil.which("fc-match")
        self._paths = {style: self._find_path(name, words) for style, words in STYLES.items()}
        self.faces = {style: _load_face(path) for style, path in self._paths.items()}
        plain = self.faces[False, False]
        ascent, descent = plain.getmetrics()
        self.width, self.height, self.baseline = max(1, round(plain.getlength("M"))), ascent + descent, ascent

    def _find_path(self, name: str | None, style: str) -> str | None:
        if name and os.path.isfile(os.path.expanduser(name)):
            return os.path.expanduser(name)
        if self._fontconfig is None:
            if name:
                raise _no_font(name)
            return None
        path, _, family = self._match(f"{name or 'monospace'}{style}").partition("\n")
        # fontconfig always names one: what is nearest
        if name and name.casefold() not in family.casefold():
            raise _no_font(name)
        return path or None

    def _match(self, pattern: str) -> str:
        words = ["fc-match", "--format", "%{file}\n%{family}", "--", pattern]
        try:
            found = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=TIMING.page.told_seconds,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return found.stdout.decode(errors="replace")

    def find_face(self, cell: Cell) -> ImageFont.FreeTypeFont:
        """The face that has a cell's character, in the cell's style as far as that can be."""
        face = self.faces[cell.bold, cell.italic]
        character = cell.text[0]
        if character.isascii() or _has_glyph(face, character):
            return face
        other = self._find_other(character)
        if other is None:
            self.missing.add(character)
        return other or face

    @lru_cache(maxsize=4096)  # noqa: B019  # it lives as long as one picture is made
    def _find_other(self, character: str) -> ImageFont.FreeTypeFont | None:
        if self._fontconfig is None:
            return None
        path, _, _ = self._match(f"monospace:charset={ord(character):x}").partition("\n")
        face = _load_face(path) if path else None
        return face if face is not None and _has_glyph(face, character) else None


class Painter:
    """Draws screens of so many columns and rows; Usage `bad_size` if they are too many."""

    def __init__(self, fonts: Fonts, cols: int, rows: int, theme: Theme = DARK) -> None:
        self.fonts, self.cols, self.rows, self.theme = fonts, cols, rows, theme
        if cols * rows > MOST_CELLS:
            raise Usage(
                f"a picture of {cols}x{rows} cells is too large", reason="bad_size", hint="write .svg, .html or .cast"
            )
        self.size = cols * fonts.width + 2 * MARGIN, rows * fonts.height + 2 * MARGIN
        self._rows_kept = max(rows, KEPT_BYTES // (3 * cols * fonts.width * fonts.height))
        self._kept: dict[tuple[Cell, ...], Image.Image] = {}

    def paint(self, screen: Sequence[Sequence[Cell]], cursor: CursorPosition | None = None) -> Image.Image:
        """A picture of a screen's rows, with the cursor as a block."""
        from PIL import Image

        picture = Image.new("RGB", self.size, self.theme.background)
        for number, row in enumerate(show_cursor(screen[: self.rows], cursor)):
            picture.paste(self._paint_row(tuple(row)), (MARGIN, MARGIN + number * self.fonts.height))
        return picture

    def changed_rows(self, before: Frame | None, after: Frame) -> tuple[int, int]:
        """The first and the last line of pixels, behind it, that are not the same in two frames; one row at least."""
        if before is None:
            return 0, self.size[1]
        cursors = {frame.cursor.y for frame in (before, after)} if before.cursor != after.cursor else set()
        rows = [
            number
            for number in range(self.rows)
            if number in cursors or before.rows[number : number + 1] != after.rows[number : number + 1]
        ] or [0]
        return MARGIN + rows[0] * self.fonts.height, MARGIN + (min(rows[-1], self.rows - 1) + 1) * self.fonts.height

    def _paint_row(self, row: tuple[Cell, ...]) -> Image.Image:
        if row in self._kept:
            return self._kept[row]
        from PIL import Image, ImageDraw

        fonts = self.fonts
        picture = Image.new("RGB", (self.cols * fonts.width, fonts.height), self.theme.background)
        draw = ImageDraw.Draw(picture)
        x = 0
        for cell in row:
            if x + cell.width > self.cols:
                break
            left, right = x * fonts.width, (x + cell.width) * fonts.width
            foreground, background = find_colours(cell, self.theme)
            if background != self.theme.background:
                draw.rectangle((left, 0, right - 1, fonts.height - 1), fill=background)
            if not cell.hidden:
                self._paint_cell(draw, cell, left, right, foreground)
            if cell.underline or cell.strikethrough:
                self._paint_lines(draw, cell, left, right, foreground)
            x += cell.width
        if len(self._kept) >= self._rows_kept:
            self._kept.pop(next(iter(self._kept)))
        self._kept[row] = picture
        return picture

    def _paint_cell(self, draw: Any, cell: Cell, left: int, right: int, colour: str) -> None:
        fonts, point = self.fonts, ord(cell.text[0])
        box = (left, 0, right - 1, fonts.height - 1)
        if point in BLOCKS or point == 0x2588:
            # lower eighths: neighbours join without a gap
            part = point - 0x2580
            top = 0 if part in (0, 8) else fonts.height - round(fonts.height * part / 8)
            bottom = fonts.height // 2 - 1 if part == 0 else fonts.height - 1
            draw.rectangle((left, top, right - 1, bottom), fill=colour)
        elif point in BOXES and (arms := _find_arms(cell.text[0])):
            _draw_arms(draw, arms, box, colour)
        elif cell.text != " ":
            face = fonts.find_face(cell)
            draw.text((left, fonts.baseline), cell.text, font=face, fill=colour, anchor="ls")

    def _paint_lines(self, draw: Any, cell: Cell, left: int, right: int, colour: str) -> None:
        """The lines under and through a cell."""
        fonts = self.fonts
        y = min(fonts.height - 3, fonts.baseline + 2)
        for x in range(left, right) if cell.underline else ():
            if cell.underline == CURLY:
                draw.point((x, y + (0, 1, 1, 0)[x % 4]), fill=colour)
            elif (cell.underline, x % 2) != (DOTTED, 1) and (cell.underline != DASHED or x % 6 < 4):
                draw.point((x, y), fill=colour)
        if cell.underline == DOUBLE:
            draw.line((left, y + 2, right - 1, y + 2), fill=colour)
        if cell.strikethrough:
            y = fonts.baseline - fonts.height // 4
            draw.line((left, y, right - 1, y), fill=colour)


@lru_cache(maxsize=256)
def _find_arms(character: str) -> tuple[tuple[str, int], ...]:
    """The arms of a box-drawing character, by its name (Unicode, Box Drawing): each with a direction and how many lines wide it
    is; none of one that is dashed or diagonal, which the font draws."""
    name = unicodedata.name(character, "").removeprefix("BOX DRAWINGS ")
    if "DASH" in name or "DIAGONAL" in name:
        return ()
    arms: dict[str, int] = {}
    width = 1
    # `LIGHT DOWN AND RIGHT`, `DOWN HEAVY AND RIGHT UP LIGHT`: what does not say how wide it is is as what stands before it
    for clause in name.split(" AND "):
        words = clause.split()
        width = next((WIDTHS[word] for word in words if word in WIDTHS), width)
        arms |= {arm: width for word in words for arm in ARMS.get(word, ())}
    return tuple(arms.items())


def _draw_arms(draw: Any, arms: Sequence[tuple[str, int]], box: tuple[int, int, int, int], colour: str) -> None:
    """Draw lines from the middle of a box to its edges."""
    left, top, right, bottom = box
    x, y = (left + right) // 2, (top + bottom) // 2
    for direction, width in arms:
        # a double line is two with a gap of one pixel
        for by in {1: (0,), 2: (-1, 1), 3: (-1, 0, 1)}[width]:
            line = {
                "LEFT": (left, y + by, x + 1, y + by),
                "RIGHT": (x - 1, y + by, right, y + by),
                "UP": (x + by, top, x + by, y + 1),
                "DOWN": (x + by, y - 1, x + by, bottom),
            }[direction]
            draw.line(line, fill=colour)


def _load_pillow() -> None:
    try:
        import PIL.ImageFont  # noqa: F401
    except ImportError:
        raise Failed(
            "Pillow is not installed",
            reason="no_pillow",
            hint="install the extra: pip install 'tmux-control-plane[pictures]'",
        ) from None


def _load_face(path: str | None) -> ImageFont.FreeTypeFont:
    from PIL import ImageFont

    if path is None:
        return ImageFont.load_default(SIZE)  # type: ignore[return-value]  # with a size it is a FreeType font
    try:
        return ImageFont.truetype(path, SIZE)
    except OSError:
        raise _no_font(path) from None


@lru_cache(maxsize=8192)
def _has_glyph(face: ImageFont.FreeTypeFont, character: str) -> bool:
    return bool(bytes(face.getmask(character)) != bytes(face.getmask(NO_GLYPH)))


def _no_font(name: str) -> Usage:
    return Usage(
        f"there is no font {ascii(name)}",
        reason="no_font",
        hint="name a file, or a family: fc-list :spacing=100 family",
    )


def write_png(picture: Image.Image, file: BinaryIO, *, title: str) -> None:
    """Write a picture as PNG, with its title as text (PNG, 11.3.3)."""
    from PIL.PngImagePlugin import PngInfo

    about = PngInfo()
    about.add_itxt("Title", title)
    picture.save(file, "PNG", pnginfo=about, optimize=True)


def write_gif(frames: Iterable[Frame], file: BinaryIO, painter: Painter) -> tuple[int, float]:
    """Write frames as a GIF that plays again and again, each as it comes; returns how many there are, and their seconds.

    Of each frame only the rows that changed are in the file. Its times are hundredths of a second (GIF89a, 23).
    """
    width, height = painter.size
    file.write(b"GIF89a" + pack("<HHBBB", width, height, 0x70, 0, 0) + b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
    count, written, before = 0, 0.0, None
    for frame, after in pairwise(chain(frames, (None,))):
        assert frame is not None
        until = after.at if after else frame.at + TIMING.page.film_end_seconds
        hundredths = min(0xFFFF, max(2, round(100 * (until - written))))
        written += hundredths / 100
        picture = painter.paint(frame.rows, frame.cursor)
        top, bottom = painter.changed_rows(before, frame)
        file.write(b"\x21\xf9\x04\x04" + pack("<HBB", hundredths, 0, 0))
        file.write(_encode_gif_image(picture.crop((0, top, width, bottom)), top))
        count, before = count + 1, frame
    file.write(b"\x3b")
    return count, written


def _encode_gif_image(picture: Image.Image, top: int) -> bytes:
    """An image of a GIF (GIF89a, 20-22): its descriptor, its colours, its pixels, as Pillow encodes them."""
    from PIL import Image

    whole = BytesIO()
    picture.quantize(256, dither=Image.Dither.NONE).save(whole, "GIF", optimize=False, interlace=False)
    data = whole.getvalue()
    bits = data[10] & 7
    colours, at = data[13 : 13 + 6 * 2**bits], 13 + 6 * 2**bits
    while data[at] == 0x21:
        at = _skip_blocks(data, at + 2)
    width, height = unpack("<HH", data[at + 5 : at + 9])
    descriptor = b"\x2c" + pack("<HHHHB", 0, top, width, height, 0x80 | bits)
    return descriptor + colours + data[at + 10 : _skip_blocks(data, at + 11)]


def _skip_blocks(data: bytes, at: int) -> int:
    """Where the data go on behind a row of blocks, each behind its length, the last one empty."""
    while data[at]:
        at += data[at] + 1
    return at + 1
