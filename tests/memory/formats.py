"""The formats tmuxctl sends (tmux(1), FORMATS)."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

Look = Callable[[str], str]


class Unknown(AssertionError):
    """Something the fake was not taught: teach it, or do not send it."""


def expand(text: str, look: Look) -> str:
    """The text with each `#{...}` replaced; `look` gives a variable's value, or raises Unknown."""
    made, at = "", 0
    while (found := text.find("#", at)) >= 0:
        if text[found + 1 : found + 2] != "{":
            raise Unknown(f"format {text[found : found + 10]!r}")
        close = _end(text, found + 2)
        made += text[at:found] + _value(text[found + 2 : close], look)
        at = close + 1
    return made + text[at:]


def _end(text: str, at: int) -> int:
    depth = 1
    for index in range(at, len(text)):
        depth += text.startswith("#{", index) - (text[index] == "}")
        if not depth:
            return index
    raise Unknown(f"unclosed format {text!r}")


def _value(body: str, look: Look) -> str:
    if body.startswith("?"):
        condition, yes, no = _parts(body[1:])
        asked = expand(condition, look) if "#" in condition else look(condition)
        return expand(yes if truth(asked) else no, look)
    two = re.match(r"(==|!=|&&|\|\||m|e\|>=?|e\|\+\|):", body)
    if two:
        left, right = (expand(part, look) for part in _parts(body[two.end() :]))
        return str(int(COMPARE[two[1]](left, right)))
    part = re.fullmatch(r"=(-?)(\d+):(@?\w+)", body)
    if part:
        return look(part[3])[-int(part[2]) :] if part[1] else look(part[3])[: int(part[2])]
    if re.fullmatch(r"@?\w+", body):
        return look(body)
    raise Unknown(f"format #{{{body}}}")


COMPARE: dict[str, Callable[[str, str], int]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "&&": lambda left, right: truth(left) and truth(right),
    "||": lambda left, right: truth(left) or truth(right),
    "m": lambda pattern, text: fnmatchcase(text, pattern),
    "e|>": lambda left, right: float(left or 0) > float(right or 0),
    "e|>=": lambda left, right: float(left or 0) >= float(right or 0),
    "e|+|": lambda left, right: int(left or 0) + int(right or 0),
}


def truth(value: str) -> bool:
    """What counts as true in a condition: neither empty nor 0."""
    return value not in ("", "0")


def _parts(body: str) -> list[str]:
    """Split at the commas that are in no inner format."""
    parts, depth = [""], 0
    for index, character in enumerate(body):
        depth += body.startswith("#{", index) - (character == "}" and depth > 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts
