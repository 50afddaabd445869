"""Every link of every page leads to a file and a heading that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import links

PAGES = links.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(links.ROOT).as_posix())
def test_a_page_has_no_dead_link(page: Path):
    assert not [f"line {link.line}: {link.target}" for link in links.dead_links(page)]


def test_the_pages_link_to_each_other():
    assert sum(len(links.links(page.read_text())) for page in PAGES) > 70


def test_links_stand_in_prose_only():
    text = "[a](one.md) `[b](two.md)` [c](https://example.org) [`d`](three.md#four)\n```sh\n[e](five.md)\n```\n<!--\n[f](six)\n-->"
    assert links.links(text) == [links.Link(1, "one.md"), links.Link(1, "three.md#four")]


@pytest.mark.parametrize("target", ["none.md", "page.md#none", "#none", "../../../../../etc/passwd"])
def test_a_dead_link_is_found(target: str, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n[there](page.md#a-page) [here](#a-page) [nowhere]({target})\n")
    assert links.dead_links(page, tmp_path) == [links.Link(3, target)]


def test_headings_are_named_as_github_does():
    found: list[str] = []
    for heading in ("`ask`, and what it answers", "Claude Code", "[ask](x.md)!", "Claude Code"):
        found.append(links.heading_id(heading, found))
    assert found == ["ask-and-what-it-answers", "claude-code", "ask", "claude-code-1"]
