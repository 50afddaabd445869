"""The site has every page, brought to the form and the place it has there. `make site` follows the links of what is built."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import build_site, links

DOCS = links.ROOT / "docs"


def in_navigation(entries: list) -> Iterator[str]:
    for entry in entries:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from in_navigation(target)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build_site.write_source(folder)
    return folder


def test_the_navigation_has_every_page_once():
    navigation = sorted(in_navigation(tomllib.loads(build_site.CONFIG.read_text())["project"]["nav"]))
    pages = [path.name for path in DOCS.glob("*.md")]
    assert navigation == sorted([*pages, *build_site.PLACES.values()])


def test_the_browser_is_sent_to_no_other_host():
    theme = tomllib.loads(build_site.CONFIG.read_text())["project"]["theme"]
    assert theme["font"] is False


def test_no_page_of_the_site_has_a_dead_link(source: Path):
    pages = list(source.rglob("*.md"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    assert not {
        str(page.relative_to(source)): links.dead_links(page, source)
        for page in pages
        if links.dead_links(page, source)
    }


def test_comments_are_left_out(source: Path):
    assert "<!--" not in (source / "quickstart.md").read_text()


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("README.md", "[a](docs/states.md#kinds)", "[a](states.md#kinds)"),
        ("README.md", "[`a`](CONTRIBUTING.md), `[b](c.md)`", "[`a`](contributing.md), `[b](c.md)`"),
        ("docs/programs.md", "[a](../examples/) [b](agents.md)", "[a](examples.md) [b](agents.md)"),
        ("docs/adr/0031-rooms-and-values.md", "[a](../glossary.md)", "[a](../glossary.md)"),
        ("examples/README.md", "[a](gdb.sh)", "[a](files/examples/gdb.sh.md)"),
        ("docs/states.md", "[a](https://example.org/) [b](#c)", "[a](https://example.org/) [b](#c)"),
        ("docs/states.md", "| `a\\|b` | c |", "| `a|b` | c |"),
    ],
)
def test_a_link_leads_to_where_the_page_stands_in_the_site(name: str, line: str, expected: str):
    assert build_site.convert(line, name) == expected


def test_lists_are_indented_by_four():
    written = "1. One\n\n   ```sh\n   a\n     b\n   ```\n\n   - two\n     more\n\n```yaml\na:\n  - b\n```\n2. Three"
    expected = (
        "1. One\n\n    ```sh\n    a\n      b\n    ```\n\n    - two\n        more\n\n```yaml\na:\n  - b\n```\n2. Three"
    )
    assert build_site.convert(written, "docs/states.md") == expected


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ('<p id="a"><a href="#a">', []),
        ('<a href="#b">', ["page.html: #b names no heading"]),
        ('<a href="none.html">', ["page.html: none.html is not there"]),
        ('<a href="https://example.org/">', []),
        ('<link href="https://example.org/font.css">', ["page.html: loads https://example.org/font.css"]),
        ('<img src="//example.org/a.png">', ["page.html: loads //example.org/a.png"]),
    ],
)
def test_a_built_page_is_followed(page: str, wrong: list[str], tmp_path: Path):
    (tmp_path / "page.html").write_text(page)
    assert list(build_site.wrong_links(tmp_path)) == wrong
