"""Screens in the order in which they were seen, as a moving picture: an SVG that plays by itself, or a page with a player.

Both are one file with nothing in it but what is shown, and are written as the screens come: of those before, only a digest of each
row is kept.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple, TextIO

from tmuxctl.results import CursorPosition
from tmuxctl.terminal.picture.render import (
    DARK,
    FONT,
    HEIGHT,
    MARGIN,
    SIZE,
    WIDTH,
    Theme,
    escape_markup,
    render_spans,
    render_svg_row,
)
from tmuxctl.terminal.picture.replay import Cell
from tmuxctl.timing import TIMING

WHOLE = 100
"""Every so many screens of a page one is written as a whole: any moment is found by going on from such a one."""


class Frame(NamedTuple):
    """A screen from `at` seconds on: its rows as styled cells, and the cursor; `marker` is the name of this moment, if it has
    one. A row that did not change is the same list as in the frame before."""

    at: float
    rows: list[list[Cell]]
    cursor: CursorPosition
    marker: str = ""


def write_svg(
    frames: Iterable[Frame], file: TextIO, *, cols: int, rows: int, title: str, theme: Theme = DARK
) -> tuple[int, float]:
    """Write an SVG of `cols` by `rows` cells that shows the frames one after the other, again and again; returns how many there
    are, and the seconds they take.

    The frames stand below each other on a strip, which a single CSS animation moves. A row that was drawn before is a
    reference to it. Where a reader prefers less motion only the last frame is shown.
    """
    width, height = cols * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN
    name, seen, times = escape_markup(title), dict[bytes, int](), list[float]()
    file.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{name}">\n<title>{name}</title>\n<rect width="100%" height="100%" fill="{theme.background}"/>\n'
        f'<g class="film" font-family="{FONT}" font-size="{SIZE}" fill="{theme.foreground}">\n'
    )
    known: dict[int, str] = {}
    before: list[list[Cell]] = []
    for number, frame in enumerate(frames):
        top = number * height
        times.append(frame.at)
        # a row that scrolled is still the same list; those of the frame before are kept until here
        known = {id(row): known[id(row)] if id(row) in known else _draw_row(row, theme) for row in frame.rows}
        before = frame.rows
        for y, row in enumerate(before[:rows]):
            if not (drawn := known[id(row)]):
                continue
            digest, place = sha256(drawn.encode("utf-8", "replace")).digest()[:16], top + y * HEIGHT
            if digest in seen:
                file.write(f'<use href="#r{seen[digest]}" y="{place}"/>\n')
            else:
                seen[digest] = len(seen)
                file.write(f'<g transform="translate(0 {place})"><g id="r{seen[digest]}">{drawn}</g></g>\n')
        if frame.cursor.visible and frame.cursor.y < rows:
            x, y = MARGIN + min(frame.cursor.x, cols - 1) * WIDTH, top + MARGIN + frame.cursor.y * HEIGHT
            file.write(
                f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="{theme.foreground}" opacity=".6"/>\n'
            )
    seconds = (times[-1] if times else 0.0) + TIMING.page.film_end_seconds
    file.write("</g>\n<style>\n@keyframes film {\n")
    for number, at in enumerate(times):
        # the first stands from the beginning, whenever it came
        file.write(f"{100 * at / seconds if number else 0:.4f}% {{ transform: translateY({-number * height}px) }}\n")
    rest = f"transform: translateY({-(len(times) - 1) * height}px)"
    file.write(
        f"to {{ {rest} }}\n}}\n.film {{ animation: film {seconds:.3f}s steps(1, end) infinite }}\n"
        f"@media (prefers-reduced-motion: reduce) {{ .film {{ animation: none; {rest} }} }}\n</style>\n</svg>\n"
    )
    return len(times), seconds - TIMING.page.film_end_seconds


def _draw_row(row: list[Cell], theme: Theme) -> str:
    return "".join(render_svg_row(row, MARGIN, theme))


_PLAYER = """\
const film = document.getElementById("film").textContent.trim().split("\\n").map(line => JSON.parse(line));
const rows = document.getElementById("rows"), cursor = document.getElementById("cursor");
const bar = document.getElementById("bar"), time = document.getElementById("time"), name = document.getElementById("name");
const play = document.getElementById("play"), speed = document.getElementById("speed");
const end = film[film.length - 1].at;
let shown = -1, at = 0, playing = false, before = 0;
bar.max = end;
function draw(frame) {
  for (const [y, row] of Object.entries(frame.rows)) {
    while (rows.children.length <= y) rows.append(document.createElement("div"));
    rows.children[y].innerHTML = row + "\\n";
  }
  while (rows.children.length > frame.count) rows.lastChild.remove();
  const [x, y, visible] = frame.cursor;
  cursor.style.display = visible ? "block" : "none";
  cursor.style.left = x + "ch";
  cursor.style.top = 1.2 * y + "em";
}
function show() {
  let low = 0, high = film.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (film[middle].at <= at) low = middle; else high = middle - 1;
  }
  let from = shown + 1;
  if (low < shown || low - shown > 100) { from = low; while (!film[from].whole) from--; }
  for (let number = from; number <= low; number++) draw(film[number]);
  shown = low;
  bar.value = at;
  const clock = seconds => Math.floor(seconds / 60) + ":" + String(Math.floor(seconds % 60)).padStart(2, "0");
  time.textContent = clock(at) + " / " + clock(end);
  let last = low;
  while (last > 0 && !film[last].marker) last--;
  name.textContent = film[last].marker || "";
}
function step(now) {
  if (!playing) return;
  at = Math.min(end, at + (now - before) / 1000 * speed.value);
  before = now;
  show();
  if (at >= end) set(false); else requestAnimationFrame(step);
}
function set(on) {
  if (on && at >= end) at = 0;
  playing = on;
  play.textContent = on ? "Pause" : "Play";
  if (on) { before = performance.now(); requestAnimationFrame(step); }
}
function seek(to) { at = Math.max(0, Math.min(end, to)); show(); }
play.onclick = () => set(!playing);
bar.oninput = () => seek(Number(bar.value));
document.onkeydown = event => {
  if (event.target.tagName === "SELECT" || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === " ") { set(!playing); event.preventDefault(); }
  else if (event.key === "ArrowLeft") seek(at - 5);
  else if (event.key === "ArrowRight") seek(at + 5);
  else return;
  if (event.target === play || event.target === bar) event.preventDefault();
};
const wanted = /^#t=([0-9.]+)$/.exec(location.hash);
seek(wanted ? Number(wanted[1]) : 0);
"""

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'">
<title>{title}</title>
<style>
body {{ margin: 0; padding: 1ch; background: {background}; color: {foreground}; font: 15px/1.2 {font} }}
#screen {{ position: relative; min-width: {cols}ch; min-height: {height}em; overflow: hidden }}
#rows {{ font-variant-ligatures: none; direction: ltr; white-space: pre }}
#rows div {{ height: 1.2em }}
#rows i.c {{ display: inline-block; font-style: inherit; overflow: hidden; vertical-align: bottom; height: 1.2em }}
#cursor {{ position: absolute; width: 1ch; height: 1.2em; background: {foreground}; opacity: .6 }}
#controls {{ display: flex; flex-wrap: wrap; gap: 1ch; align-items: center; margin-top: 1em; max-width: {cols}ch }}
#bar {{ flex: 1 1 20ch; accent-color: {foreground} }}
button, select {{ font: inherit; color: inherit; background: #333; border: 1px solid #777; border-radius: 4px; padding: 2px 1ch }}
:focus-visible {{ outline: 2px solid #6cf }}
</style>
</head>
<body>
<div id="screen"><div id="rows"></div><div id="cursor"></div></div>
<div id="controls">
<button id="play">Play</button>
<input id="bar" type="range" min="0" step="any" value="0" aria-label="position">
<span id="time"></span>
<select id="speed" aria-label="speed"><option>0.5</option><option selected>1</option><option>2</option><option>5</option></select>
<span id="name"></span>
</div>
<script id="film" type="application/jsonl">
"""


def write_page(
    frames: Iterable[Frame], file: TextIO, *, cols: int, rows: int, title: str, theme: Theme = DARK
) -> tuple[int, float]:
    """Write a page with a player that shows the frames; returns how many there are, and the seconds they take. Keys: space, left,
    right. Its policy allows this one script and nothing from elsewhere."""
    script = f"\n{_PLAYER}"
    page = _PAGE.format(
        digest=b64encode(sha256(script.encode()).digest()).decode(),
        title=escape_markup(title),
        background=theme.background,
        foreground=theme.foreground,
        font=FONT,
        cols=cols,
        height=1.2 * rows,
    )
    file.write(page)
    before: list[list[Cell]] = []
    known: dict[int, str] = {}
    number, at = -1, 0.0
    for number, frame in enumerate(frames):
        whole = number % WHOLE == 0
        # a row that scrolled is still the same list
        known = {
            id(row): known[id(row)] if id(row) in known else "".join(render_spans(row, theme)) for row in frame.rows
        }
        drawn = {
            str(y): known[id(row)]
            for y, row in enumerate(frame.rows)
            if whole or y >= len(before) or row is not before[y]
        }
        told = {
            "at": round(frame.at, 3),
            "whole": whole,
            "count": len(frame.rows),
            "rows": drawn,
            "cursor": [frame.cursor.x, frame.cursor.y, frame.cursor.visible],
            **({"marker": frame.marker} if frame.marker else {}),
        }
        # inside of a script only its end tag and a comment mean something
        file.write(json.dumps(told, ensure_ascii=False).replace("<", "\\u003c") + "\n")
        before, at = frame.rows, frame.at
    file.write(f"</script>\n<script>{script}</script>\n</body>\n</html>\n")
    return number + 1, at
