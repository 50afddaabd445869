"""A captured screen as a page or a picture: self-contained, and nothing in it but what is shown.

Title and text come from programs: all of it is escaped, and control characters, text direction overrides and what XML
cannot hold are left out.
"""

from __future__ import annotations

import html as markup
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tmuxctl.results import CursorPosition
from tmuxctl.terminal.picture.replay import Cell, styled_cells
from tmuxctl.value import Value
from tmuxctl.widths import Version


class Theme(Value):
    """Colours as `#rrggbb`: those of text and of what is behind it where a program chose none, and of the sixteen names."""

    foreground: str
    background: str
    colours: Mapping[str, str]


DARK = Theme(
    "#d4d4d4",
    "#1e1e1e",
    {
        "black": "#000000", "red": "#cd3131", "green": "#0dbc79", "yellow": "#e5e510",
        "blue": "#2472c8", "magenta": "#bc3fbc", "cyan": "#11a8cd", "white": "#e5e5e5",
        "brightblack": "#666666", "brightred": "#f14c4c", "brightgreen": "#23d18b", "brightyellow": "#f5f543",
        "brightblue": "#3b8eea", "brightmagenta": "#d670d6", "brightcyan": "#29b8db", "brightwhite": "#ffffff",
    },
)  # fmt: skip
LIGHT = Theme(
    "#1f2328",
    "#ffffff",
    {
        "black": "#1f2328", "red": "#b3261e", "green": "#1a6e34", "yellow": "#7a5600",
        "blue": "#0b57c2", "magenta": "#8a2da5", "cyan": "#12656f", "white": "#6b7280",
        "brightblack": "#57606a", "brightred": "#c93028", "brightgreen": "#23803d", "brightyellow": "#8d6600",
        "brightblue": "#1f6fd6", "brightmagenta": "#a03bbd", "brightcyan": "#177a86", "brightwhite": "#8a919b",
    },
)  # fmt: skip
"""Each colour stands out from the white behind it by 3 to 1 at least (WCAG 2.2, 1.4.11)."""

THEMES = {"dark": DARK, "light": LIGHT}
FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
WIDTH, HEIGHT, SIZE, MARGIN, BASELINE = 9, 18, 15, 8, 14
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ margin: 0; padding: 1ch; background: {background}; color: {foreground} }}
pre {{ margin: 0; font: 15px/1.2 {font}; font-variant-ligatures: none; direction: ltr }}
i.c {{ display: inline-block; font-style: inherit; overflow: hidden; vertical-align: bottom; height: 1.2em }}
</style>
</head>
<body>
<pre>
{rows}
</pre>
</body>
</html>
"""


def render_html(
    captured: bytes,
    cols: int,
    title: str,
    tmux: Version = None,
    cursor: CursorPosition | None = None,
    theme: Theme = DARK,
) -> str:
    """What `capture-pane -p -e` printed as an HTML page; `cols` is the screen's width in cells."""
    grid = show_cursor(styled_cells(captured, cols, tmux), cursor)
    rows = "\n".join("".join(render_spans(row, theme)) for row in grid)
    colours = {"background": theme.background, "foreground": theme.foreground}
    return _PAGE.format(title=escape_markup(title), rows=rows, font=FONT, **colours)


def render_svg(
    captured: bytes,
    cols: int,
    rows: int,
    title: str,
    tmux: Version = None,
    cursor: CursorPosition | None = None,
    theme: Theme = DARK,
) -> str:
    """What `capture-pane -p -e` printed as an SVG picture of `cols` by `rows` cells, or as many rows as it has."""
    grid = show_cursor(styled_cells(captured, cols, tmux), cursor)
    columns = max([cols, *(sum(cell.width for cell in row) for row in grid)])
    width, height = columns * WIDTH + 2 * MARGIN, max(rows, len(grid)) * HEIGHT + 2 * MARGIN
    name = escape_markup(title)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{name}">',
        f"<title>{name}</title>",
        f'<rect width="100%" height="100%" fill="{theme.background}"/>',
        f'<g font-family="{FONT}" font-size="{SIZE}" fill="{theme.foreground}">',
    ]
    for y, row in enumerate(grid):
        parts += render_svg_row(row, MARGIN + y * HEIGHT, theme)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def show_cursor(rows: Sequence[Sequence[Cell]], cursor: CursorPosition | None) -> list[list[Cell]]:
    """The rows with the cursor as a block: its cell in reverse video, if it is visible and on one of them."""
    shown = [list(row) for row in rows]
    if cursor is None or not cursor.visible or cursor.y >= len(shown):
        return shown
    row, x = shown[cursor.y], 0
    for number, cell in enumerate(row):
        if x <= cursor.x < x + cell.width:
            row[number] = cell._replace(reverse=not cell.reverse)
        x += cell.width
    return shown


def render_spans(row: list[Cell], theme: Theme = DARK) -> Iterator[str]:
    """The parts of a row in a page: text, and spans with its styles."""
    for (style, single), run in _group_runs(row):
        text = _visible_text(run)
        width = run[0].width
        # any glyph that a font may make wider or narrower stands in a box of its own
        shown = escape_markup(text) if single else f'<i class="c" style="width:{width}ch">{escape_markup(text)}</i>'
        css = _style_rules(style, theme)
        yield f'<span style="{css}">{shown}</span>' if css else shown


def render_svg_row(row: list[Cell], top: int, theme: Theme = DARK) -> Iterator[str]:
    """The elements of a row in a picture, `top` units below its upper edge."""
    x = MARGIN
    for (style, _), run in _group_runs(row):
        text = _visible_text(run)
        columns = sum(cell.width for cell in run)
        _, background = find_colours(style, theme)
        if background != theme.background:
            yield f'<rect x="{x}" y="{top}" width="{columns * WIDTH}" height="{HEIGHT}" fill="{background}"/>'
        if text.strip(" ") or style.underline or style.strikethrough:
            length = f'textLength="{columns * WIDTH}" lengthAdjust="spacingAndGlyphs"'
            # browsers ignore xml:space on the group: runs of spaces become one there (measured with Chromium)
            attributes = f'x="{x}" y="{top + BASELINE}" {length} xml:space="preserve"{_style_attributes(style, theme)}'
            yield f"<text {attributes}>{escape_markup(text)}</text>"
        x += columns * WIDTH


def _visible_text(run: list[Cell]) -> str:
    """The text of cells of one style; of hidden ones (SGR 8) there is nothing in a picture."""
    return "".join(" " * cell.width if cell.hidden else cell.text for cell in run)


def _group_runs(row: list[Cell]) -> Iterator[tuple[tuple[Cell, bool], list[Cell]]]:
    """Neighbours of one style together, as long as they are ASCII; the style is a cell without text."""
    end = len(row)
    while end and row[end - 1] == Cell(" ", 1):
        end -= 1
    for (style, index), run in groupby(
        enumerate(row[:end]),
        key=lambda item: (item[1]._replace(text="", width=0), -1 if item[1].text.isascii() else item[0]),
    ):
        yield (style, index < 0), [cell for _, cell in run]


def find_colours(style: Cell, theme: Theme = DARK) -> tuple[str, str]:
    """The colours of a cell's text and of what is behind it, as `#rrggbb`. Dim text is half as far from its background."""
    foreground = theme.foreground if style.fg == "default" else theme.colours.get(style.fg, style.fg)
    background = theme.background if style.bg == "default" else theme.colours.get(style.bg, style.bg)
    if style.dim:
        foreground = _mix(foreground, background)
    return (background, foreground) if style.reverse else (foreground, background)


def _mix(one: str, other: str) -> str:
    parts = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return f"#{bytes((first + second) // 2 for first, second in parts).hex()}"


UNDERLINES = ("", "", " double", " wavy", " dotted", " dashed")
"""The forms of underline as CSS names them (CSS Text Decoration 3, 2.2)."""


def _line_decoration(style: Cell) -> str:
    lines = (("underline", style.underline), ("line-through", style.strikethrough))
    return " ".join(name for name, on in lines if on) + UNDERLINES[style.underline]


def _style_rules(style: Cell, theme: Theme) -> str:
    foreground, background = find_colours(style, theme)
    rules = [
        f"color:{foreground}" if foreground != theme.foreground else "",
        f"background:{background}" if background != theme.background else "",
        "font-weight:bold" if style.bold else "",
        "font-style:italic" if style.italic else "",
        f"text-decoration:{_line_decoration(style)}" if _line_decoration(style) else "",
    ]
    return ";".join(rule for rule in rules if rule)


def _style_attributes(style: Cell, theme: Theme) -> str:
    foreground, _ = find_colours(style, theme)
    return "".join(
        [
            f' fill="{foreground}"' if foreground != theme.foreground else "",
            ' font-weight="bold"' if style.bold else "",
            ' font-style="italic"' if style.italic else "",
            f' style="text-decoration:{_line_decoration(style)}"' if _line_decoration(style) else "",
        ]
    )


def escape_markup(text: str) -> str:
    """A text for HTML and XML, without what neither may hold and what changes the direction of text."""
    return markup.escape(_UNSAFE.sub("", text), quote=True)
