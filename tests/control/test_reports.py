"""Reports, and pictures of pixels."""

from __future__ import annotations

import html.parser
import io
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from programs import LINES, SHELL

from tmuxctl.control import Control
from tmuxctl.control.recordings import reporting
from tmuxctl.errors import Failed, Usage
from tmuxctl.results import CursorPosition
from tmuxctl.terminal.picture import raster, render
from tmuxctl.terminal.picture.film import Frame
from tmuxctl.terminal.picture.replay import Cell, Replay, styled_cells

ON_TMUX = pytest.mark.on("tmux")
HIDDEN = CursorPosition(0, 0, False)


# reports


@ON_TMUX
def test_a_report_tells_turns_questions_marks_and_the_end(control: Control, place: Path) -> None:
    control.new("t", SHELL)
    assert control.ask("t", b"echo six times seven").answer == "six times seven"
    control.mark("t", "before the question")
    control.send("t", b"read -p 'Delete it? [y/n] ' answer; exit 3")
    assert control.wait("t", asking=True).matched
    control.decide("t", "y")
    assert control.wait("t", exit=True).exit_status == 3
    written = control.report("t", str(place / "t.md"))
    assert (written.turns, written.questions) == (1, 1)
    text = (place / "t.md").read_text()
    for part in (
        "# t\n",
        "## Turn 1, ",
        "echo six times seven\n```",
        "## Question, ",
        "Delete it? [y/n]",
        "exit status 3",
    ):
        assert part in text
    # what a turn began with is told once
    assert text.count("echo six times seven\n```") == 1
    control.report("t", str(place / "t.html"))
    page = (place / "t.html").read_text()
    assert page.count('<pre class="screen">') == 3
    assert "<script" not in page


@ON_TMUX
def test_nothing_a_program_prints_is_markup_in_a_report(control: Control, place: Path) -> None:
    control.new("t", ("sh", "-c", "printf '```\\n<script>alert(1)</script>\\n````\\n'; exec cat"))
    assert control.wait("t", text="^````$").matched
    control.mark("t", "<b>bold</b>")
    control.report("t", str(place / "t.md"))
    text = (place / "t.md").read_text()
    assert "`````text\n```\n<script>alert(1)</script>\n````\n`````" in text
    control.report("t", str(place / "t.html"))
    page = (place / "t.html").read_text()
    found: list[str] = []

    class Tags(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            found.append(tag)

    Tags().feed(page)
    assert not {"script", "b"} & set(found)
    assert "&lt;script&gt;" in page


@ON_TMUX
@pytest.mark.parametrize("form", [".md", ".html"])
def test_a_report_has_no_secret_that_was_typed(
    control: Control, place: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("PW", "s3cr3t-word")
    control.new("t", ("sh", "-c", "stty -echo; printf 'Password: '; read p; stty echo; echo; exec cat"))
    assert control.wait("t", input=True).matched
    control.decide("t", secret_from_env="PW")
    control.send("t", b"plain")
    assert control.wait("t", text="^plain$").matched
    control.report("t", str(place / f"t{form}"))
    text = (place / f"t{form}").read_text()
    assert "s3cr3t" not in text
    assert "a text that the terminal did not show" in text
    assert "plain" in text


@pytest.mark.on("tmux")
def test_an_ending_that_is_none_is_refused(control: Control, place: Path) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage):
        control.report("t", str(place / "t.pdf"))


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert reporting._fence("a ```` b") == "`````text\na ```` b\n`````"
    assert "\x1b" not in reporting._fence("\x1b[31mred")


# pictures of pixels


@pytest.fixture(scope="module")
def fonts() -> raster.Fonts:
    return raster.Fonts()


def paint(
    fonts: raster.Fonts, text: str, cols: int = 20, rows: int = 4, cursor: CursorPosition = HIDDEN
) -> Image.Image:
    return raster.Painter(fonts, cols, rows).paint(styled_cells(text.encode(), cols), cursor)


def colours_of(picture: Image.Image, fonts: raster.Fonts, column: int, row: int, width: int = 1) -> set[str]:
    """The colours in a cell of a picture."""
    left, top = render.MARGIN + column * fonts.width, render.MARGIN + row * fonts.height
    cell = picture.crop((left, top, left + width * fonts.width, top + fonts.height))
    return colours_in(cell)


def colours_in(picture: Image.Image) -> set[str]:
    data = picture.tobytes()
    return {f"#{data[at : at + 3].hex()}" for at in range(0, len(data), 3)}


def test_each_cell_has_its_own_place_and_colours(fonts: raster.Fonts) -> None:
    picture = paint(fonts, "\x1b[41m \x1b[0m\x1b[48;2;1;2;3m \x1b[0m\x1b[7m \x1b[0m a█\n中\x1b[42m \x1b[0m")
    assert picture.size == (20 * fonts.width + 2 * render.MARGIN, 4 * fonts.height + 2 * render.MARGIN)
    assert colours_of(picture, fonts, 0, 0) == {render.DARK.colours["red"]}
    assert colours_of(picture, fonts, 1, 0) == {"#010203"}
    assert colours_of(picture, fonts, 2, 0) == {render.DARK.foreground}
    assert colours_of(picture, fonts, 3, 0) == {render.DARK.background}
    assert len(colours_of(picture, fonts, 4, 0)) > 1
    assert colours_of(picture, fonts, 5, 0) == {render.DARK.foreground}
    assert colours_of(picture, fonts, 2, 1) == {render.DARK.colours["green"]}
    assert colours_of(picture, fonts, 6, 0) == {render.DARK.background}


def test_the_cursor_is_a_block(fonts: raster.Fonts) -> None:
    picture = paint(fonts, "ab", cursor=CursorPosition(3, 0, True))
    assert colours_of(picture, fonts, 3, 0) == {render.DARK.foreground}
    assert colours_of(paint(fonts, "ab", cursor=CursorPosition(3, 0, False)), fonts, 3, 0) == {render.DARK.background}
    wide = paint(fonts, "中", cursor=CursorPosition(1, 0, True))
    assert render.DARK.foreground in colours_of(wide, fonts, 0, 0, 2)


def test_dim_hidden_and_underlined_cells_are_seen_as_such(fonts: raster.Fonts) -> None:
    picture = paint(
        fonts, "█\x1b[2m█\x1b[22;8mX\x1b[28;4mX\x1b[4:2mX\x1b[4:3mX\x1b[4:4mX\x1b[4:5mX\x1b[24m \x1b[2;7m \x1b[0m"
    )
    assert colours_of(picture, fonts, 1, 0) == {"#797979"}
    assert colours_of(picture, fonts, 2, 0) == {render.DARK.background}
    assert colours_of(picture, fonts, 8, 0) == {render.DARK.background}
    assert colours_of(picture, fonts, 9, 0) == {"#797979"}
    cells = [picture.crop((render.MARGIN + x * fonts.width, render.MARGIN, render.MARGIN + (x + 1) * fonts.width,
                           render.MARGIN + fonts.height)).tobytes() for x in range(3, 8)]  # fmt: skip
    # each form of underline is another picture of the same letter
    assert len(set(cells)) == 5


@pytest.mark.parametrize("pair", ["──", "━━", "══", "██", "┼─", "├┤", "╠╣"])
def test_lines_join_from_one_cell_to_the_next(fonts: raster.Fonts, pair: str) -> None:
    picture = paint(fonts, pair)
    edge = render.MARGIN + fonts.width
    for x in (edge - 1, edge):
        column = picture.crop((x, render.MARGIN, x + 1, render.MARGIN + fonts.height))
        assert render.DARK.foreground in colours_in(column)


@pytest.mark.parametrize("character", "│┃║├┼╫█")
def test_lines_join_from_one_row_to_the_next(fonts: raster.Fonts, character: str) -> None:
    picture = paint(fonts, f"{character}\n{character}")
    edge = render.MARGIN + fonts.height
    for y in (edge - 1, edge):
        line = picture.crop((render.MARGIN, y, render.MARGIN + fonts.width, y + 1))
        assert render.DARK.foreground in colours_in(line)


@pytest.mark.parametrize(
    ("character", "arms"),
    [
        ("─", {"LEFT": 1, "RIGHT": 1}),
        ("┃", {"UP": 3, "DOWN": 3}),
        ("╔", {"DOWN": 2, "RIGHT": 2}),
        ("╼", {"LEFT": 1, "RIGHT": 3}),
        ("┽", {"LEFT": 3, "RIGHT": 1, "UP": 1, "DOWN": 1}),
        ("╒", {"DOWN": 1, "RIGHT": 2}),
        ("┄", {}),
        ("╱", {}),
    ],
)
def test_the_name_of_a_box_says_its_arms(character: str, arms: dict[str, int]) -> None:
    assert dict(raster._find_arms(character)) == arms


def test_a_character_that_no_font_has_is_told(fonts: raster.Fonts) -> None:
    fonts.missing.clear()
    paint(fonts, "a\U00100001b")
    assert fonts.missing == {"\U00100001"}


def test_a_picture_has_a_largest_size(fonts: raster.Fonts) -> None:
    with pytest.raises(Usage) as told:
        raster.Painter(fonts, 1000, 101)
    assert told.value.reason == "bad_size"


def test_a_font_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.ttf").write_text("this is no font")
    for name in ("No Such Family At All", str(tmp_path / "no.ttf")):
        with pytest.raises(Usage) as told:
            raster.Fonts(name)
        assert told.value.reason == "no_font"


def test_without_fontconfig_there_is_a_font_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    picture = paint(raster.Fonts(), "text")
    assert len(colours_in(picture)) > 1
    with pytest.raises(Usage):
        raster.Fonts("monospace")


def test_a_gif_shows_each_frame_for_its_time() -> None:
    """Pillow reads back what was written: the pixels of each frame, and how long it is shown."""
    fonts = raster.Fonts()
    painter = raster.Painter(fonts, 12, 3)
    replay, frames = Replay(12, 3, history=0), []
    for at, text in ((0.0, "one"), (0.5, "\r\ntwo \x1b[31mred"), (1.25, "\r\n\x1b[0m█\x1b[H"), (1.25, "x")):
        replay.feed(text.encode())
        frames.append(Frame(at, replay.cells(), replay.cursor))
    file = io.BytesIO()
    count, seconds = raster.write_gif(iter(frames), file, painter)
    read = Image.open(io.BytesIO(file.getvalue()))
    assert (count, getattr(read, "n_frames", None), read.info["loop"]) == (4, 4, 0)
    durations = []
    for number, frame in enumerate(frames):
        read.seek(number)
        durations.append(read.info["duration"])
        assert read.convert("RGB").tobytes() == painter.paint(frame.rows, frame.cursor).tobytes()
    assert durations[:2] == [500, 750]
    assert seconds == pytest.approx(sum(durations) / 1000)


@ON_TMUX
@pytest.mark.parametrize("form", [".svg", ".html", ".gif", ".png"])
def test_a_recording_is_light_if_that_was_asked_for(control: Control, place: Path, form: str) -> None:
    control.new("t", LINES, size="20x3")
    path = place / f"t{form}"
    control.export("t", str(path), theme="light")
    if form in (".svg", ".html"):
        text = path.read_text()
        assert render.LIGHT.background in text
        assert render.DARK.background not in text
    else:
        assert render.LIGHT.background in colours_in(Image.open(path).convert("RGB"))


@ON_TMUX
def test_a_session_is_exported_as_gif_and_png(control: Control, place: Path) -> None:
    control.new("t", LINES, size="30x5")
    control.send("t", b"hello")
    assert control.wait("t", text="^hello$").matched
    control.mark("t", "hello")
    control.send("t", b"\x1b[2J\x1b[Hbye")
    assert control.wait("t", text="bye$").matched
    for name in ("t.gif", "t.png"):
        written = control.export("t", str(place / name))
        assert written is not None
        assert Image.open(place / name).size[0] > 30 * 5
    control.export("t", str(place / "then.png"), until="mark:hello")
    now, then = (Image.open(place / name) for name in ("t.png", "then.png"))
    assert now.size == then.size
    assert now.tobytes() != then.tobytes()
    with pytest.raises(Usage):
        control.export("t", str(place / "t.svg"), font="monospace")


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.ImageFont", None)
    with pytest.raises(Failed) as told:
        raster.Fonts()
    assert "pictures" in (told.value.hint or "")


def test_a_glyph_is_found_in_another_font(fonts: raster.Fonts) -> None:
    """What fontconfig knows is used; a character that is in the first font is drawn with it."""
    listed = subprocess.run(["fc-list", ":charset=4e2d", "file"], capture_output=True, text=True, check=True).stdout
    face = fonts.find_face(Cell("中", 2))
    assert (face is not fonts.faces[False, False]) == bool(listed)
