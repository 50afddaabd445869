"""Finds the links and headings of Markdown pages, and the links that lead nowhere: `python -m tools.links`.

Only links to files and headings of this tree are followed; no other machine is asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]

FENCE = re.compile(r"^ *(```+|~~~+)")
HEADING = re.compile(r"^#{1,6} +(.+?)[ #]*$")
LINK = re.compile(r"(?P<before>!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?P<target>[^()\s]+)(?P<after>\))")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")


class Link(NamedTuple):
    """Where a link of a page stands, and what it names: a path beside the page, a heading, or both."""

    line: int
    target: str


def main() -> int:
    """Print every dead link; the exit status."""
    dead = [f"{page.relative_to(ROOT)}:{link.line}: {link.target}" for page in pages() for link in dead_links(page)]
    print("\n".join(dead) or f"{len(pages())} pages, no dead link")
    return 1 if dead else 0


def pages() -> list[Path]:
    """Every page of the tree that is read by people."""
    folders = [ROOT / name for name in ("docs", "examples", "profiles", "tests")]
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def dead_links(page: Path, root: Path = ROOT) -> list[Link]:
    """The links of a page whose file or heading is not in the tree."""
    return [link for link in links(page.read_text(encoding="utf-8")) if not _leads_somewhere(page, link.target, root)]


def _leads_somewhere(page: Path, target: str, root: Path) -> bool:
    path, _, heading = target.partition("#")
    file = (page.parent / unquote(path)).resolve() if path else page
    if not file.is_relative_to(root) or not file.exists():
        return False
    return not heading or (file.suffix == ".md" and heading in headings(file))


def links(text: str) -> list[Link]:
    """The links of a page to files and headings of this tree, in order."""
    return [Link(number, found["target"]) for number, line in prose(text) for found in links_of_line(line)]


def links_of_line(line: str) -> Iterator[re.Match[str]]:
    """The links in a line that lead to this tree; what stands in code is none."""
    without_code = re.sub(r"(`+).*?\1", lambda code: "x" * len(code[0]), line)
    return (found for found in LINK.finditer(without_code) if not ELSEWHERE.match(found["target"]))


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside blocks of code and comments, with their numbers."""
    return ((number, line) for number, (kind, line) in enumerate(classify(text), 1) if kind == "prose")


def classify(text: str) -> Iterator[tuple[str, str]]:
    """Each line with what it belongs to: `prose`, `code` (a block with its fences) or `comment`."""
    fence, in_comment = "", False
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if fence:
            yield "code", line
            fence = "" if mark and line.strip().startswith(fence) and not line.strip().strip(fence[0]) else fence
        elif in_comment or line.lstrip().startswith("<!--"):
            yield "comment", line
            in_comment = "-->" not in line
        else:
            yield "code" if mark else "prose", line
            fence = mark[1] if mark else ""


@lru_cache
def headings(page: Path) -> frozenset[str]:
    """What a link to a heading of the page may say behind `#`."""
    found: list[str] = []
    for _, line in prose(page.read_text(encoding="utf-8")):
        if heading := HEADING.match(line):
            found.append(heading_id(heading[1], found))
    return frozenset(found)


def heading_id(heading: str, before: list[str]) -> str:
    """The name of a heading in links, as GitHub makes it; one that is there before gets a number."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
    numbered = [name, *(f"{name}-{number}" for number in range(1, len(before) + 1))]
    return next(one for one in numbered if one not in before)


if __name__ == "__main__":
    sys.exit(main())
