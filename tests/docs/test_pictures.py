"""The pictures of the pages are what their tool draws, fit their boxes, and show nothing of the machine that made them."""

from __future__ import annotations

import re
import xml.etree.ElementTree

import pytest

from tools import links, pictures

CHARACTER = 7.5
"""Pixels that a character of a diagram takes at most on average, in the widest of its fonts."""


@pytest.mark.parametrize("name", pictures.DIAGRAMS)
def test_a_diagram_is_what_the_tool_draws(name: str):
    drawn = pictures.draw(pictures.DIAGRAMS[name]())
    assert (pictures.PICTURES / f"{name}.svg").read_text() == drawn, "make pictures"


@pytest.mark.parametrize("name", pictures.DIAGRAMS)
def test_the_text_of_a_diagram_fits(name: str):
    diagram = pictures.DIAGRAMS[name]()
    for box in diagram.boxes:
        assert box.x >= 0
        assert box.x + box.width <= pictures.WIDTH
        assert box.y + box.height <= diagram.height
        for line in (box.title, *box.lines):
            assert pictures.PADDING + len(line) * CHARACTER <= box.width, line


def test_the_picture_of_top_shows_each_state_of_a_program():
    picture = xml.etree.ElementTree.parse(pictures.PICTURES / "top.svg").getroot()
    shown = "".join(picture.itertext())
    assert picture.get("aria-label") == "tmuxctl top"
    for text in ("5 sessions", "asking", "busy", "idle", "Delete the old shop? [y/N]: yes | no"):
        assert text in shown


@pytest.mark.parametrize("path", sorted(pictures.PICTURES.glob("*")), ids=lambda path: path.name)
def test_a_picture_is_of_no_machine_and_on_a_page(path):
    text = path.read_text()
    assert not re.findall(r"/home|/root|/tmp|/work|/Users|@\w+:|https?://(?!www\.w3\.org/2000/svg)", text)
    assert [page for page in links.pages() if f"pictures/{path.name}" in page.read_text()]
