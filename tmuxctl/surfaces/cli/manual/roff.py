"""Text as lines of a manual page, in the macros of man(7). Every character comes out as it is, also to be copied."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
"""What roff would read as its own, or print as a typographic relative of the character."""

LINE = 96
"""Columns of a line of the source; roff fills them anew."""


def escape(text: str) -> str:
    """The text of one line: ASCII, and no request however it begins."""
    shown = "".join(ESCAPES.get(one) or (one if one.isascii() else rf"\[u{ord(one):04X}]") for one in text)
    return rf"\&{shown}" if shown.startswith(".") else shown


def bold(text: str) -> str:
    """The text in bold."""
    return rf"\fB{escape(text)}\fR" if text else ""


def italic(text: str) -> str:
    """The text in italics."""
    return rf"\fI{escape(text)}\fR" if text else ""


def head(name: str, section: int, release: str, manual: str) -> Iterator[str]:
    """What begins a page. Nothing is hyphenated or stretched: names of commands stay what they are."""
    yield rf'.TH "{escape(name)}" "{section}" "" "{escape(release)}" "{escape(manual)}"'
    yield from (".nh", ".ad l")


def section(title: str) -> str:
    """A heading."""
    return rf'.SH "{escape(title)}"'


def subsection(title: str) -> str:
    """A heading below a heading."""
    return rf'.SS "{escape(title)}"'


def paragraph(text: str) -> Iterator[str]:
    """A paragraph; what stands in backquotes is code."""
    yield ".PP"
    yield from prose(text)


def item(text: str) -> Iterator[str]:
    """A paragraph behind a bullet."""
    yield r".IP \(bu 2"
    yield from prose(text)


def tagged(term: str, text: str) -> Iterator[str]:
    """A term, made of escaped text, and what it means below it."""
    yield from (".TP", term)
    yield from prose(text) if text.strip() else [r"\&"]


def literal(lines: Iterable[str]) -> Iterator[str]:
    """Lines as they are, set in."""
    yield from (".PP", ".RS 4", ".nf")
    yield from (escape(line) or r"\&" for line in lines)
    yield from (".fi", ".RE")


def option(spelled: str) -> str:
    """An option with its values: `-e, --env NAME=VALUE`."""
    words = re.split(r"(, | )", spelled)
    return "".join(bold(one) if one.startswith("-") else one if one in (", ", " ") else italic(one) for one in words)


def prose(text: str) -> Iterator[str]:
    """Running text, what stands in backquotes in bold; an escape never holds the end of a line."""
    code = False
    for line in textwrap.wrap(" ".join(text.split()), LINE, break_long_words=False, break_on_hyphens=False):
        made = ""
        for number, part in enumerate(line.split("`")):
            code = code if number == 0 else not code
            made += bold(part) if code else escape(part)
        yield made
