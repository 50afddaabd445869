"""From a screen to the question on it: its kind, its text, the options with the keys that choose them, and an id.

The keys answer this very screen: for a menu they count from the option that is marked now. Nothing here answers anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from zlib import crc32

from tmuxctl.reading import patterns
from tmuxctl.reading.lazy import Pattern
from tmuxctl.reading.patterns import Match, Text
from tmuxctl.results import Asking, Option

if TYPE_CHECKING:
    from tmuxctl.reading.kinds import Tells

CONTEXT = 4
"""Rows above a question that belong to it."""

SHORT = 12
"""A question shorter than this needs the row above to be understood."""

LABEL_LENGTH = 200

MANY = 40
"""Options of a menu that are told."""

DESTRUCTIVE = Pattern(
    r"\b(?:delet\w+|remov\w+|overwrit\w+|rm -\w*[rf]|drop(?:ping)?|truncat\w+|format(?:ting)?|eras\w+|wip\w+|destroy\w*|purg\w+"
    r"|uninstall\w*|discard\w*|force[- ]push|reset --hard|permanent\w*|irreversibl\w+)\b",
    re.IGNORECASE,
)

# what moves by itself: a clock, a counter of seconds, a spinner
MOVING = Pattern(r"\b\d{1,2}:\d{2}(?::\d{2})?\b|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds|%)(?!\w)|[⠁-⣿◐◓◑◒✢✳✶✻✽█▌]")

LISTED = Pattern(r"^\s*\(?(?P<number>\d{1,2})[.)\]:]\s+(?P<label>\S.*)$")
CHOOSING = Pattern(
    r"(?:^#\?|\b(?:choose|choice|select\w*|pick|option|number|enter)\b[^\n]{0,60}[:?>]|\[\d+(?:-\d+)?\]:?|\(\d+-\d+\):?)$",
    re.I,
)
FRAME = Pattern(r"[\s│┃║|]+$")


def by_rule(match: Match, seen: Text) -> Asking:
    """The question a profile's rule found."""
    rule = match.rule
    question = _worded(match)
    options = tuple(Option(name, name, tuple(keys)) for name, keys in rule.options.items())
    rows = match.region.split("\n")
    at = match.region.count("\n", 0, match.found.start())
    near = rows[max(0, at - 2 * CONTEXT) : at + patterns.BOTTOM]
    if rule.where in ("cursor-line", "last-line"):
        near = [*seen.above(2 * CONTEXT), *near]
    risk = rule.risk if rule.risk != "unknown" else risk_of([question])
    return Asking(rule.kind or "question", identity(rule.id, question, near), question, options, rule.default, risk)


def _worded(match: Match) -> str:
    """The question's text: what its own pattern tells, else the row that fitted."""
    pattern = patterns.compiled(match.rule.question) if match.rule.question else None
    if pattern and "q" in pattern.groupindex:
        found = list(pattern.finditer(match.region))
        nearest = [one for one in found if one.start() <= match.found.end()] or found
        if nearest and nearest[-1]["q"]:
            return nearest[-1]["q"].strip()
    start = match.region.rfind("\n", 0, match.found.start()) + 1
    end = match.region.find("\n", match.found.end())
    row = match.region[start : end if end >= 0 else None].strip()
    return unframed(row.split("\n")[0])


def at_cursor(seen: Text, tells: Tells) -> Asking | None:
    """The question that stands left of the cursor, or that a pager or a secret's reader stands for."""
    left = seen.left.rstrip()
    if tells.secret:
        return asked("password", seen, _question(seen, left) or "password")
    if tells.pager:
        return _pager(seen)
    if found := patterns.SPELLED.search(left):
        return asked("confirm", seen, _until(seen, left, found), _spelled(left, found, tells), _default(found[1]))
    if found := patterns.LETTERS.search(left):
        return _letters(seen, left, found, tells)
    if found := patterns.CONFIRM.search(left):
        options, default = _yes_or_no(found[0], tells)
        return asked("confirm", seen, _until(seen, left, found), options, default)
    if found := patterns.SLASHED.search(left):
        return _letters(seen, left, found, tells)
    if patterns.DOTTED.search(left):
        options = tuple(Option(name, name, _typed(name[0], tells)) for name in ("yes", "no"))
        return asked("confirm", seen, _question(seen, left), options)
    if patterns.MORE.search(left.strip()) and (tells.raw or left.strip() != ":"):
        return _pager(seen)
    if patterns.pauses(left):
        return asked("keys", seen, _question(seen, left), (Option("continue", "continue", ("Enter",)),), "continue")
    if (tells.raw or tells.single) and patterns.SECRET.search(left):
        return asked("password", seen, _question(seen, left))
    return _numbers(seen, left, tells) or _plain(seen, left) if tells.line else None


def _plain(seen: Text, left: str) -> Asking | None:
    """A question that wants yes or no, but does not say how: any text is an answer."""
    return asked("question", seen, _question(seen, left)) if patterns.SURELY.search(left.strip()) else None


# Options that are typed


def _typed(word: str, tells: Tells) -> tuple[str, ...]:
    return (*word,) if tells.single and len(word) == 1 else (*word, "Enter")


def _letters(seen: Text, left: str, found: re.Match[str], tells: Tells) -> Asking:
    # where commas part them, a slash is an answer of its own
    letters = list(dict.fromkeys(found[1].split("," if "," in found[1] else "/")))
    options = tuple(Option(one, one, _typed(one, tells)) for one in letters)
    capital = [one for one in letters if one.isupper()]
    # with both cases among them, a letter and its capital are two answers
    default = capital[0] if len(capital) == 1 and capital[0].lower() not in letters else None
    return asked("approval", seen, _until(seen, left, found), options, default)


def _yes_or_no(found: str, tells: Tells) -> tuple[tuple[Option, ...], str | None]:
    """The options of `[Y/n]`, `(yes/no/[fingerprint])`, `(y or [n])`, and what Enter alone would say."""
    closed = max(found.rfind(one) for one in "])>")
    inside = found[found[0] in "[(<" : closed if closed >= 0 else None]
    words = [(one, one.strip("[]")) for one in re.findall(r"\[?\w+\]?", inside) if one != "or"]
    options = []
    default = None
    for word, plain in words:
        name = {"y": "yes", "n": "no"}.get(plain.lower(), plain.lower())
        bracketed = word != plain
        if plain[:1].isupper() or (bracketed and len(words) == 2):
            default = name if default is None else ""
        # `[fingerprint]` stands for a text of one's own: no key chooses it
        if not (bracketed and len(plain) > 3):
            options.append(Option(name, plain, _typed(plain.lower(), tells)))
    return tuple(options), default or None


def _spelled(left: str, found: re.Match[str], tells: Tells) -> tuple[Option, ...]:
    pairs = re.findall(r"[\[(](\w)[\])]([\w' -]{1,20})", found[0])
    return tuple(Option(slug(a + b), (a + b).strip(), _typed(a.lower(), tells)) for a, b in pairs)


def _default(word: str | None) -> str | None:
    return slug(word) if word else None


def _numbers(seen: Text, left: str, tells: Tells) -> Asking | None:
    """A list of numbered answers above, one of which is to be typed."""
    if not CHOOSING.search(left.strip()):
        return None
    rows = [part for row in seen.above(patterns.BOTTOM * 2) for part in re.split(r"\s{2,}(?=\d{1,2}\) )", row)]
    found: list[tuple[str, str]] = []
    for row in reversed(rows):
        listed = LISTED.match(row)
        if listed:
            found.append((listed["number"], listed["label"].strip()))
        elif found and row.strip():
            break
        if found and found[-1][0] == "1":
            break
    if len(found) < 2 or found[-1][0] not in ("0", "1"):
        return None
    options = tuple(Option(number, label[:LABEL_LENGTH], _typed(number, tells)) for number, label in reversed(found))
    return asked("choice", seen, _question(seen, left), options[:MANY])


def _pager(seen: Text) -> Asking:
    options = (Option("more", "more", ("Space",)), Option("quit", "quit", ("q",)))
    return asked("pager", seen, unframed(seen.rows[-1]) if seen.rows else "", options, "more")


# The question's text, its id, its risk


def asked(kind: str, seen: Text, question: str, options: tuple[Option, ...] = (), default: str | None = None) -> Asking:
    """A question of this kind; the default counts if it is one of the options."""
    known = default if any(one.id == default for one in options) else None
    risk = risk_of([question]) if kind not in ("password", "pager", "keys") else "unknown"
    return Asking(kind, identity(kind, question, seen.above(patterns.BOTTOM)), question, options, known, risk)


def _until(seen: Text, left: str, found: re.Match[str]) -> str:
    """The question up to the end of its pattern's brackets: what was typed behind it is no part of it."""
    closed = max(left.rfind(one, found.start()) for one in "])>?:")
    return _question(seen, left[: closed + 1] if closed >= 0 else left)


def _question(seen: Text, left: str) -> str:
    """The text left of the cursor, with the row above where it is too short to be understood."""
    text = unframed(left)
    above = [unframed(row) for row in seen.above(3) if unframed(row)]
    return f"{above[-1]} {text}".strip() if len(text) < SHORT and above else text


def unframed(row: str, *, keep_left: bool = False) -> str:
    """A row without the box around it."""
    row = FRAME.sub("", row)
    return row if keep_left else row.lstrip(" \t│┃║|")


def slug(label: str) -> str:
    """The id of an option: its words in small letters."""
    words = re.findall(r"\w+", label.replace("'", "").lower())
    return "-".join(words)[:24].strip("-")


def risk_of(rows: Iterable[str]) -> str:
    """`high` where these rows speak of destruction, else unknown: a hint."""
    return "high" if any(DESTRUCTIVE.search(row) for row in rows) else "unknown"


def identity(rule: str, question: str, rows: Iterable[str]) -> str:
    """Eight hexadecimal digits: the same for the same question on the same screen, whatever ticks on it."""
    still = [MOVING.sub("", row).strip() for row in (rule, question, *rows)]
    return f"{crc32(chr(10).join(still).encode(errors='replace')):08x}"
