"""Pictures and pages of a screen as a browser draws them: every character in its own column."""

from __future__ import annotations

import html as markup
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.control.recordings import casts, frames
from tmuxctl.control.recordings.recording import MARKER, OUTPUT, CastEvent, Recording
from tmuxctl.terminal.picture import film
from tmuxctl.terminal.picture.render import BASELINE, HEIGHT, MARGIN, WIDTH, find_colours, render_html, render_svg
from tmuxctl.terminal.picture.replay import styled_cells

HERO = Path(__file__).resolve().parent.parent.parent / "docs" / "hero.svg"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

PAGE = """<!DOCTYPE html><meta charset="utf-8"><body><pre id="found"></pre><div id="drawn"></div><script>
const found = [];
{script}
document.getElementById("drawn").remove();
document.getElementById("found").textContent = JSON.stringify(found);
</script>"""

SVG_PLACES = """
const picture = new DOMParser().parseFromString(SOURCE, "image/svg+xml");
const drawn = document.getElementById("drawn").appendChild(document.importNode(picture.documentElement, true));
for (const text of drawn.querySelectorAll("text"))
    for (let at = 0; at < text.getNumberOfChars(); at++) {
        const start = text.getStartPositionOfChar(at);
        found.push([text.textContent[at], start.x, start.y]);
    }
"""

HTML_PLACES = """
document.getElementById("drawn").innerHTML = SOURCE;
const cell = document.createElement("pre");
cell.innerHTML = '<span style="display:inline-block;width:100ch"></span>';
document.getElementById("drawn").append(cell);
const width = cell.firstChild.getBoundingClientRect().width / 100;
const pre = document.querySelector("#drawn pre");
const left = pre.getBoundingClientRect().left;
const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
for (let row = 0; walker.nextNode(); ) {
    const text = walker.currentNode.data;
    for (let at = 0; at < text.length; at++) {
        if (text[at] === "\\n") { row++; continue; }
        const range = document.createRange();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + 1);
        found.push([text[at], (range.getBoundingClientRect().left - left) / width, row]);
    }
}
"""


class Place(NamedTuple):
    """A character in a cell of the screen, both counted from 0."""

    character: str
    column: float
    row: float


@pytest.fixture
def browser(place: Path) -> Callable[[str, str], list[Any]]:
    """Runs a script over a source in a headless browser; what the script found."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("chromium-headless-shell is not installed")

    def run(script: str, source: str) -> list[Any]:
        page = place / "page.html"
        literal = json.dumps(source).replace("</", "<\\/")
        page.write_text(PAGE.replace("{script}", script.replace("SOURCE", literal)))
        # root has no sandbox of the browser's, a container little /dev/shm
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
        done = subprocess.run(
            [program, *words, f"--user-data-dir={place}/browser", page.as_uri()],
            capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
        )  # fmt: skip
        printed = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
        assert printed, done.stdout + done.stderr
        return list(json.loads(markup.unescape(printed[1])))

    return run


@pytest.fixture
def dump(place: Path) -> Callable[..., str]:
    """Opens an address in a headless browser; the document as it is then."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("chromium-headless-shell is not installed")

    def run(address: str, *more: str) -> str:
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
        done = subprocess.run(
            [program, *words, *more, f"--user-data-dir={place}/browser", address],
            capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
        )  # fmt: skip
        return done.stdout

    return run


def seen(places: list[Any]) -> set[Place]:
    """What is drawn, without spaces and without characters outside ASCII, which a font may lack."""
    shown = [Place._make(place) for place in places if place[0].isascii() and place[0] != " "]
    return {Place(one.character, round(one.column, 1), round(one.row, 1)) for one in shown}


def of_picture(drawn: list[Any]) -> set[Place]:
    return seen([(text, (x - MARGIN) / WIDTH, (y - MARGIN - BASELINE) / HEIGHT) for text, x, y in drawn])


def expected(captured: bytes, columns: int) -> set[Place]:
    found = set()
    for y, row in enumerate(styled_cells(captured, columns)):
        x = 0
        for cell in row:
            found.add(Place(cell.text, float(x), float(y)))
            x += cell.width
    return seen(sorted(found))


TABLE = (
    "  NAME   STATE           IDLE   COMMAND\n"
    "> fix    \x1b[33masking confirm\x1b[0m    3m   \x1b[1mbash -c 'a   b'\x1b[0m  end\n"
    "    漢字  wide\x1b[4m     \x1b[0mafter é\u0301  👍 emoji\x1b[7m   bar   \x1b[0m.\n"
    "\n"
    "x          \x1b[31m   red   \x1b[0m   y\n"
).encode()


def test_every_character_of_a_picture_stands_in_its_column_in_a_browser(browser):
    drawn = browser(SVG_PLACES, render_svg(TABLE, 60, 6, "table"))
    assert of_picture(drawn) == expected(TABLE, 60)


def test_every_character_of_a_page_stands_in_its_column_in_a_browser(browser):
    assert seen(browser(HTML_PLACES, render_html(TABLE, 60, "table"))) == expected(TABLE, 60)


STYLED = {
    "p": "", "b": "1", "d": "2", "i": "3", "u": "4", "U": "4:2", "w": "4:3", "o": "4:4", "s": "4:5", "k": "9",
    "r": "31", "g": "38;5;22", "t": "38;2;1;2;3", "v": "7", "n": "44", "D": "2;7", "a": "1;3;4;9;35",
}  # fmt: skip
"""Letters with the parameters of the SGR each stands in."""

STYLES = """
document.getElementById("drawn").innerHTML = SOURCE;
const root = document.querySelector("#drawn svg") || document.querySelector("#drawn pre");
const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const node = walker.currentNode, of = getComputedStyle(node.parentElement);
    if (node.parentElement.localName === "title") continue;
    for (const letter of node.data.trim())
        found.push([letter, of.fontWeight >= 600, of.fontStyle === "italic", of.textDecorationLine, of.textDecorationStyle,
                    node.parentElement.localName === "text" ? of.fill : of.color]);
}
"""


def computed(cell: Any) -> list[Any]:
    """What a browser should say of the text of a cell."""
    lines = (["underline"] if cell.underline else []) + (["line-through"] if cell.strikethrough else [])
    form = ("solid", "solid", "double", "wavy", "dotted", "dashed")[cell.underline]
    red, green, blue = bytes.fromhex(find_colours(cell)[0][1:])
    return [cell.text, cell.bold, cell.italic, " ".join(lines) or "none", form, f"rgb({red}, {green}, {blue})"]


@pytest.mark.parametrize("form", ["svg", "html"])
def test_every_style_is_what_the_browser_computes(browser, form):
    source = (
        " ".join(f"\x1b[{codes}m{letter}\x1b[0m" for letter, codes in STYLED.items()).encode() + b" \x1b[8mH\x1b[0m"
    )
    picture = render_svg(source, 60, 1, "t") if form == "svg" else render_html(source, 60, "t")
    meant = [computed(cell) for cell in styled_cells(source, 60)[0] if cell.text != " " and not cell.hidden]
    assert len(meant) == len(STYLED)
    assert "H" not in "".join(re.findall(">([^<>]*)</(?:text|span|i|pre)", picture))
    assert browser(STYLES, picture) == meant


@pytest.mark.on("tmux")
def test_the_picture_of_a_session_is_its_screen_in_a_browser(control: Control, browser):
    control.new("t", LINES)
    control.send("t", b"one   two       three")
    control.wait("t", text=r"(?s)three.*three", since="screen")
    rows = control.screen("t").text.split("\n")
    drawn = of_picture(browser(SVG_PLACES, control.screen("t", svg=True).svg))
    lines = {(place.row, place.column): place.character for place in drawn}
    assert lines == {(y, x): one for y, row in enumerate(rows) for x, one in enumerate(row) if one != " "}


def test_the_picture_in_the_readme_keeps_its_columns_in_a_browser(browser):
    source = HERO.read_text(encoding="utf-8")
    meant = {
        Place(one, (int(x) - MARGIN) / WIDTH + at, (int(y) - MARGIN - BASELINE) / HEIGHT)
        for x, y, text in re.findall(r'<text[^>]* x="(\d+)" y="(\d+)"[^>]*>([^<]*)</text>', source)
        for at, one in enumerate(markup.unescape(text))
    }
    assert len(meant) > 500
    assert of_picture(browser(SVG_PLACES, source)) == seen(sorted(meant))


TALK = Recording(
    30,
    4,
    lambda: iter(
        [
            CastEvent(0.0, OUTPUT, "first\r\n\x1b[32m\u6f22 green\x1b[0m"),
            CastEvent(1.0, MARKER, "a <mark>"),
            CastEvent(1.0, OUTPUT, "\r\nthird </script>"),
            CastEvent(2.0, OUTPUT, "\x1b[2J\x1b[Hlast"),
        ]
    ),
)
SCREENS = (["first", "\u6f22 green"], ["first", "\u6f22 green", "third </script>"], ["last"])


@pytest.mark.parametrize(
    ("at", "number", "marker"), [(0, 0, ""), (1.5, 1, "a <mark>"), (2, 2, "a <mark>"), (99, 2, "a <mark>")]
)
def test_the_player_of_a_page_shows_what_stood_there_at_a_moment(
    dump: Callable[[str], str], place: Path, at: float, number: int, marker: str
) -> None:
    path = place / "talk.html"
    with path.open("w") as file:
        film.write_page(frames.list_frames(TALK, TALK.events()), file, cols=30, rows=4, title="talk")
    page = dump(f"{path.as_uri()}#t={at}")
    rows = re.search(r'<div id="rows">(.*?)</div></div>', page, re.DOTALL)
    assert rows, page
    lines = markup.unescape(re.sub(r"<[^>]*>", "", rows[1])).split("\n")
    assert [line.rstrip() for line in lines if line.strip()] == SCREENS[number]
    assert f'<span id="name">{markup.escape(marker)}</span>' in page


PLAYER = Path(sys.prefix) / "player-node" / "node_modules" / "asciinema-player" / "dist" / "bundle"
PLAYER_PAGE = """<!DOCTYPE html><meta charset="utf-8"><link rel="stylesheet" href="{player}/asciinema-player.css"><div id="p"></div>
<script src="{player}/asciinema-player.min.js"></script><script>
AsciinemaPlayer.create({{data: {cast}}}, document.getElementById("p"), {{preload: true, poster: "npt:0:01.5", fit: false}});
</script>"""


@pytest.mark.parametrize("version", [2, 3])
def test_the_player_of_asciinema_plays_a_cast_of_ours(
    dump: Callable[..., str], place: Path, until: Callable[[Callable[[], Any]], Any], version: int
) -> None:
    if not PLAYER.exists():
        pytest.skip("asciinema-player is not installed: make nightly SUITES=browsers")
    file = io.StringIO()
    casts.write_cast(TALK, TALK.events(), file, version=version)
    cast = json.dumps(file.getvalue()).replace("</", "<\\/")
    path = place / "player.html"
    path.write_text(PLAYER_PAGE.format(player=PLAYER.as_uri(), cast=cast))

    def drawn() -> list[str]:
        page = dump(path.as_uri(), "--allow-file-access-from-files", "--virtual-time-budget=10000")
        rows = re.findall(r'<span class="ap-line"[^>]*>(.*?)</span></span>', page)
        return [line for row in rows if (line := markup.unescape(re.sub(r"<[^>]*>", "", row)).rstrip())]

    # the document may be looked at before the player has loaded its other half
    assert until(lambda: [lines for lines in [drawn()] if "first" in lines]) == [SCREENS[1]]


FILM_AT = """
const picture = new DOMParser().parseFromString(SOURCE, "image/svg+xml");
const drawn = document.getElementById("drawn").appendChild(document.importNode(picture.documentElement, true));
const [animation] = document.getAnimations();
animation.pause();
const strip = drawn.querySelector(".film");
for (const at of [0, 500, 999, 1001, 1999, 2001, 3900]) {
    animation.currentTime = at;
    found.push(new DOMMatrix(getComputedStyle(strip).transform).f);
}
"""


def test_the_film_shows_each_screen_for_its_time_in_a_browser(
    browser: Callable[[str, str], list[Any]], place: Path
) -> None:
    path = place / "talk.svg"
    with path.open("w") as file:
        film.write_svg(frames.list_frames(TALK, TALK.events()), file, cols=30, rows=4, title="talk")
    height = 4 * HEIGHT + 2 * MARGIN
    assert browser(FILM_AT, path.read_text()) == [0, 0, 0, -height, -height, -2 * height, -2 * height]
