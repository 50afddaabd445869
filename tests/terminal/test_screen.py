"""The text of a screen, its styled cells, its pictures, and what may not come through them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as Tree
from html.parser import HTMLParser

import pytest

from tmuxctl.results import CursorPosition
from tmuxctl.terminal.picture.render import DARK, LIGHT, render_html, render_svg
from tmuxctl.terminal.picture.replay import Cell, Replay, styled_cells
from tmuxctl.terminal.tmux import screen

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
HOSTILE = [
    b"\x1b]52;c;cm0gLXJm\x07x\x1b]0;title\x1b\\y",
    b"\x1b[2J\x1b[31mred\x1b[0m\x1b[?1049h",
    b"\x1bPq#0~~\x1b\\\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\z",
    b"a\x1b]52;c;never ended\nnext line",
    b"a\x1bPnever ended\nnext line",
    b"a\xc2\x9b31mb\xc2\x9d52;c;x\xc2\x9cc\xc2\x85d",
    b"\x9b31m\x90\xff\xfe",
    b"\x1b\x1b\x1b[\x1b]",
    b"bell\x07 back\x08 del\x7f nul\x00 \x0e\x0f",
    b"\x1b",
    b"\x1b[",
    b"\x1b[31",
    b"\x1b(0\x1b[1;2\x1b[3m",
    b"\x1b[\x1b[31mm\x1b]\x1b]x\x07\x07",
    bytes(range(256)),
]


def test_text_has_no_styles_no_links_and_no_trailing_blanks() -> None:
    captured = b"\x1b[1;31mred\x1b[0m  \n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \n  in \n\n \n"
    assert screen.plain_text(captured) == "red\nlink\n  in"
    assert screen.plain_text(captured, trim=False) == "red  \nlink \n  in \n\n \n"


def test_text_draws_lines_across_rows() -> None:
    captured = b"\x0elqqk\n\x0fx \x0ex\x1b[31mx\x1b[39m\nmqj\x0f m\n"
    assert screen.plain_text(captured) == "┌──┐\nx ││\n└─┘ m"


@pytest.mark.parametrize(
    ("captured", "place"),
    [
        (b"answer\n> \x1b[7mT\x1b[27mype here\n\x1b[7m status \x1b[0m\n", (2, 1)),
        (b"> \x1b[38;5;2;7m \x1b[0m\n", (2, 0)),
        ("漢字> \x1b[0;7m \x1b[0m".encode(), (6, 0)),
        ("> 👨\u200d👧 a\x1b[7m\n\x1b[0m\x1b[39mbelow\n".encode(), (6, 0)),
        (b"> \x1b[7mmarked\n\n\x1b[0mbelow\n", None),
        (b"\x1b[7mmarked\x1b[0m text\n", None),
        (b"\x1b[7ma\x1b[0m b \x1b[7mc\x1b[0m\n", None),
        (b"> \x1b[7m \x1b[0m\nbelow\n\x1b[7mx\x1b[0m\n", (0, 2)),
    ],
)
def test_a_cursor_that_a_program_draws_is_one_cell_in_reverse_video(captured: bytes, place) -> None:
    assert screen.find_drawn_cursor(captured) == place


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert screen.plain_text(b"a\xffb\xe4\xb8") == "a\ufffdb\ufffd"
    assert screen.strip_escapes(b"a\xffb") == screen.strip_escapes("a\udcffb") == "a\ufffdb"


@pytest.mark.parametrize("data", HOSTILE)
def test_no_control_reaches_a_reader(data: bytes) -> None:
    for shown in (screen.strip_escapes(data), screen.strip_escapes(data.decode("utf-8", "surrogateescape"))):
        assert not CONTROL.search(shown)
    assert not CONTROL.search(screen.plain_text(data).replace("\t", "\x00"))
    assert not CONTROL.search(re.sub(r"\x1b\[[0-9:;]*m", "", screen.styled_text(data)))
    for row in styled_cells(data, 10):
        assert not any(CONTROL.search(cell.text) or "\n" in cell.text for cell in row)


def test_clean_keeps_what_follows_a_string_that_never_ends() -> None:
    assert screen.strip_escapes("a\x1b]0;never ended\nnext\x1b[0m\tline\r\n") == "a\nnext\tline\n"
    assert screen.strip_escapes("a\x1bPnever ended\nnext") == "a\nnext"
    assert screen.strip_escapes("a\x1bPq\n#0\n\x1b\\b") == "ab"


def test_clean_is_quick_on_output_full_of_escapes() -> None:
    assert screen.strip_escapes("\x1b]" * 200_000 + "\nx") == "\nx"
    assert screen.strip_escapes("\x1bP" * 20_000 + "\nx") == "\nx"


def test_each_row_of_ansi_can_be_shown_by_itself() -> None:
    captured = b"\x1b[1;38;5;208mone\ntwo \x1b[0m.\n\x1b[44m  \x1b[49m\n\n\x1b[31m\n"
    assert screen.styled_text(captured).split("\n") == [
        "\x1b[1;38;5;208mone\x1b[0m",
        "\x1b[1;38;5;208mtwo \x1b[0m.",
        "\x1b[44m  \x1b[49m",
    ]


@pytest.mark.parametrize(
    ("sequence", "ends"),
    [
        ("1;22", False), ("1", True), ("4:3", True), ("4:3;4:0", False), ("38:2::1:2:3", True),
        ("38;2;1;2;0;39", False),
        ("48;5;0", True), ("58:5:9;59", False), ("31;0", False), ("31;", False), ("0;31", True), ("53;55", False),
        ("99999999999999999999", False), ("7;27;9;29;3;23;5;25;8;28;2;22", False),
    ],
)  # fmt: skip
def test_a_row_ends_in_a_reset_if_a_style_is_on(sequence: str, ends: bool) -> None:
    assert screen.styled_text(f"\x1b[{sequence}mx".encode()).endswith("\x1b[0m") is ends


def test_cells_know_their_style_and_width() -> None:
    captured = (
        b"\x1b[1;3;4;7;9;31;104mA\x1b[0m\x1b[38;5;208mB\x1b[48:2::1:2:3mC\x1b[m\xe4\xb8\xad\x0eq\x0f\n"
        b"\x1b[33;58:5:9;4:3mx"
    )
    first, second = styled_cells(captured, 8)
    assert first[0] == Cell("A", 1, True, True, True, True, True, "red", "brightblue")
    assert first[1] == Cell("B", 1, fg="#ff8700")
    assert first[2] == Cell("C", 1, fg="#ff8700", bg="#010203")
    assert first[3:] == [Cell("中", 2), Cell("─", 1), Cell(" ", 1), Cell(" ", 1)]
    assert second[0] == Cell("x", 1, underline=3, fg="yellow")
    assert sum(cell.width for cell in second) == 8


@pytest.mark.parametrize(
    "text",
    [
        "e\u0301x",
        "👩\u200d👩\u200d👧x",
        "❤\ufe0fx",
        "1\ufe0f\u20e3x",
        "🇩🇪x",
        "\u0301x",
        "\u200dx",
        "نص",
        "x\u0378\ue000",
    ],
)
def test_cells_lose_no_text(text: str) -> None:
    (row,) = styled_cells(text.encode(), 20)
    assert "".join(cell.text for cell in row).rstrip(" ") == text
    assert [cell.text for cell in row][:1] != [""]


def test_joined_rows_longer_than_the_screen_stay_whole() -> None:
    (row,) = styled_cells(b"x" * 30, 20)
    assert len(row) == 30


class Page(HTMLParser):
    """Notes the elements, attributes and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


EVIL = '</title></pre></svg><script>alert(1)</script>"onload="x" & \x1b]0;t\x07\u202eo\x00\ufffe\ud800'


def test_a_page_shows_hostile_text_and_runs_none_of_it() -> None:
    page = Page()
    page.feed(render_html(EVIL.encode("utf-8", "replace") + "\n中 \x1b[31mred".encode(), 40, EVIL))
    assert page.elements == {"html", "head", "meta", "title", "style", "body", "pre", "i", "span"}
    assert page.attributes == {"lang", "charset", "http-equiv", "content", "class", "style"}
    assert "<script>alert(1)</script>" in page.text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", page.text)


def test_a_picture_is_sound_xml_whatever_it_shows() -> None:
    root = Tree.fromstring(render_svg(EVIL.encode("utf-8", "replace") + b"\n\x1b[7;31mx\x1b[0m", 80, 24, EVIL))
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names == {"svg", "title", "rect", "g", "text"}
    assert "<script>alert(1)</script>" in "".join(root.itertext())
    assert not any(name.startswith("on") or "href" in name for element in root.iter() for name in element.attrib)


def test_wide_characters_keep_their_columns_in_pictures() -> None:
    root = Tree.fromstring(render_svg("中a".encode(), 4, 1, "t"))
    places = [(element.text, element.get("x")) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert places == [("中", "8"), ("a", "26")]
    assert 'style="width:2ch">中</i>a' in render_html("中a".encode(), 4, "t")


def test_the_cursor_is_a_block_in_pictures() -> None:
    cursor = CursorPosition(2, 1, True)
    plain, shown = (render_svg(b"ab\ncd\n", 10, 2, "t", None, one) for one in (None, cursor))
    block = '<rect x="26" y="26" width="9" height="18" fill="#d4d4d4"/>'
    assert block not in plain
    assert shown.replace(block + "\n", "") == plain
    for hidden in (CursorPosition(3, 1, False), CursorPosition(3, 5, True), CursorPosition(10, 1, True)):
        assert render_svg(b"ab\ncd\n", 10, 2, "t", None, hidden) == plain
    assert '<span style="color:#1e1e1e;background:#d4d4d4">b</span>' in render_html(
        b"ab\n", 10, "t", None, CursorPosition(1, 0, True)
    )


def test_colours_of_a_page_are_those_of_the_screen() -> None:
    page = render_html(b"\x1b[31ma\x1b[38;5;208mb\x1b[48;2;1;2;3mc\x1b[0;7md", 10, "t")
    for rule in ("color:#cd3131", "color:#ff8700", "background:#010203", "background:#d4d4d4"):
        assert rule in page


def test_a_replay_tells_lines_history_cursor_and_screen() -> None:
    replay = Replay(10, 2)
    replay.feed(b"one\r\ntwo\r\nthree is longer")
    assert replay.history() == ["one", "two"]
    assert replay.lines() == ["three is l", "onger"]
    assert replay.text() == "one\ntwo\nthree is longer"
    assert replay.cursor == CursorPosition(5, 1, True)
    replay.feed(b"\x1b[?1049h\x1b[?25l")
    assert replay.alternate
    assert replay.lines() == ["", ""]
    assert not replay.cursor.visible


def test_a_replay_keeps_no_more_history_than_asked() -> None:
    replay = Replay(10, 2, history=50)
    replay.feed(b"".join(b"%d\r\n" % number for number in range(1000)))
    assert 40 <= len(replay.history()) <= 50
    assert replay.history()[-1] == "998"
    none = Replay(10, 2, history=0)
    none.feed(b"1\r\n2\r\n3\r\n\x1b[H\x1b[2J4")
    assert (none.history(), none.lines()) == ([], ["4", ""])


@pytest.mark.parametrize("data", HOSTILE)
def test_a_replay_survives_anything(data: bytes) -> None:
    replay = Replay(5, 3)
    for byte in data * 3:
        replay.feed(bytes([byte]))
        replay.resize(2 + byte % 7, 2 + byte % 5)
    assert not any(CONTROL.search(line) for line in [*replay.lines(), *replay.history()])


def test_reading_a_screen_imports_nothing_heavy() -> None:
    heavy = "{'pyte', 'wcwidth', 'yaml', 'asyncio', 'ctypes', 'unicodedata', 'dataclasses', 'html'}"
    code = f"import sys, tmuxctl.terminal.tmux.screen; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    # without what coverage.py goes by: it would be loaded too
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_light_picture_is_light_all_over_and_can_be_read() -> None:
    """Every name of a colour stands out from the background by 3 to 1 (WCAG 2.2, 1.4.11)."""

    def luminance(colour: str) -> float:
        parts = [part / 255 for part in bytes.fromhex(colour[1:])]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    behind = luminance(LIGHT.background) + 0.05
    for colour in (LIGHT.foreground, *LIGHT.colours.values()):
        assert behind / (luminance(colour) + 0.05) >= 3
    captured = b"plain \x1b[31mred\x1b[0m \x1b[7mreverse\x1b[0m\n"
    for made in (
        render_svg(captured, 30, 1, "t", theme=LIGHT),
        render_html(captured, 30, "t", theme=LIGHT),
    ):
        assert LIGHT.background in made
        assert LIGHT.colours["red"] in made
        assert not {DARK.background, DARK.foreground, DARK.colours["red"]} & set(re.findall("#[0-9a-f]{6}", made))
