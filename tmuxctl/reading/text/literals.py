"""Texts that every match of a pattern holds, read off the pattern: where none of them is, nothing has to be searched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

CROSSES_LINES = re.compile(r"\\[sWDnrtvfxuUN0-9A]|\[\^|[\x00-\x1f]|\(\?")
"""What may match a newline, or looks beyond what it matches. `\\A`, too: where a text begins depends on how much is kept."""

COUNT = re.compile(r"\{[0-9]*,?[0-9]*\}")
GROUP = re.compile(r"\((?!\?)|\(\?:|\(\?P<\w+>")
CLASS = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*+\]", re.DOTALL)
WITHOUT_TEXT = "dDwWsSbBAZnrtvfa"
"""Escapes of one letter that stand for no text that could be looked for."""


class Unreadable(Exception):
    """A part of a pattern that is not read here."""


def stays_in_line(pattern: str) -> bool:
    """True if no match reaches beyond its line, nor looks beyond it."""
    return not CROSSES_LINES.search(re.sub(r"\(\?:|\(\?P<\w+>", "(", pattern))


def required_texts(pattern: str) -> list[frozenset[str]]:
    """Sets of texts: of each set, every match holds at least one, in one line. The rarer ones, which are longer, come first."""
    try:
        needs, end = _read_choice(pattern, 0)
    except (Unreadable, RecursionError):
        return []
    return [] if end < len(pattern) else sorted(needs, key=_shortest, reverse=True)


def _shortest(texts: frozenset[str]) -> int:
    return min(map(len, texts))


def _read_choice(pattern: str, at: int) -> tuple[list[frozenset[str]], int]:
    """Alternatives up to the end of their group, or of the pattern: what they require, and where they end."""
    alternatives = []
    while True:
        needs, at = _read_sequence(pattern, at)
        alternatives.append(needs)
        if pattern[at : at + 1] != "|":
            break
        at += 1
    if not all(alternatives):
        return [], at
    for needs in alternatives:
        needs.sort(key=_shortest, reverse=True)
    ranks = range(max(map(len, alternatives)))
    # of each alternative one need: the best of all of them, the second, and so on
    return [frozenset[str]().union(*(needs[min(rank, len(needs) - 1)] for needs in alternatives)) for rank in ranks], at


def _read_sequence(pattern: str, at: int) -> tuple[list[frozenset[str]], int]:
    """One alternative: what its parts require, and where it ends."""
    needs: list[frozenset[str]] = []
    run = ""
    while at < len(pattern) and pattern[at] not in "|)":
        part = _read_part(pattern, at)
        least, at = _read_repetition(pattern, part.end)
        if least:
            needs += part.needs
            run += part.text
        if run and not (part.text and least == 1):
            needs.append(frozenset({run}))
            run = ""
    return [*needs, *([frozenset({run})] if run else [])], at


class _Part(NamedTuple):
    """One part of a sequence: a character of text, a group with what it requires, or anything else, without either."""

    end: int
    text: str = ""
    needs: Sequence[frozenset[str]] = ()


def _read_part(pattern: str, at: int) -> _Part:
    character = pattern[at]
    if character == "(":
        return _read_group(pattern, at)
    if character == "[":
        found = CLASS.match(pattern, at)
        if not found:
            raise Unreadable
        return _Part(found.end())
    if character in "*+?" or COUNT.match(pattern, at):
        raise Unreadable
    if character in ".^$":
        return _Part(at + 1)
    if character != "\\":
        return _Part(at + 1, _shown(character))
    escaped = pattern[at + 1 : at + 2]
    if escaped.isalnum() and escaped not in WITHOUT_TEXT:
        raise Unreadable
    return _Part(at + 2, "" if escaped.isalnum() else _shown(escaped))


def _shown(character: str) -> str:
    """A character that stands in a line as it stands in the pattern; else nothing."""
    return character if character.isprintable() and character != "\ufffd" else ""


def _read_group(pattern: str, at: int) -> _Part:
    opening = GROUP.match(pattern, at)
    if not opening:
        raise Unreadable
    needs, end = _read_choice(pattern, opening.end())
    if pattern[end : end + 1] != ")":
        raise Unreadable
    return _Part(end + 1, "", needs)


def _read_repetition(pattern: str, at: int) -> tuple[int, int]:
    """How often a part comes at least (0; 1; 2 for once or more) and where what follows it begins."""
    count = COUNT.match(pattern, at)
    if pattern[at : at + 1] in ("*", "?") or count:
        least, end = 0, count.end() if count else at + 1
    elif pattern[at : at + 1] == "+":
        least, end = 2, at + 1
    else:
        return 1, at
    return least, end + (pattern[end : end + 1] in ("?", "+"))
